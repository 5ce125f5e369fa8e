"""What readers are asked for, checked before anything is read. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, TypedDict

from zardine.buffers import Ints
from zardine.errors import DataError, SelectionError
from zardine.vectors.content.arguments import Box, checked_ids

ALL = "all"
Names: TypeAlias = Collection[str] | str | None
"""Names of attributes, ``"all"``, or ``None`` for none."""

Where: TypeAlias = Mapping[str, Any] | None


class QueryOptions(TypedDict, total=False):
    """Options of every reader; see :func:`zardine.vectors.read_points`."""

    level: int
    bbox: Box
    object_ids: Collection[int] | None
    group_ids: Collection[int] | None
    chunks: Collection[Sequence[int]] | None
    where: Where
    attributes: Names


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """What is wanted; see the ``read_*`` functions. Everything that is not ``None`` must hold."""

    level: int = 0
    bbox: Box = None
    object_ids: Collection[int] | None = None
    group_ids: Collection[int] | None = None
    chunks: Collection[Sequence[int]] | None = None
    where: Where = None
    attributes: Names = ALL

    @property
    def names(self) -> Names:
        """The attributes that have to be read: those that are wanted, and those that conditions are about."""
        if not self.where or self.attributes == ALL:
            return self.attributes
        given = self.attributes
        known = [] if given is None else [given] if isinstance(given, str) else list(given)
        return list(dict.fromkeys([*known, *self.where]))

    def checked(self) -> Query:
        """The same with lists that can be looked at again and again; boxes and chunks are left to the level.

        Raises :class:`~zardine.errors.SelectionError` for what can be no ids, chunks, conditions or names.
        """
        return replace(
            self,
            object_ids=_ids(self.object_ids, "object_ids"),
            group_ids=_ids(self.group_ids, "group_ids"),
            chunks=None if self.chunks is None else _listed(self.chunks, "chunks", "rows of integers"),
            where=_conditions(self.where),
            attributes=checked_names(self.attributes, "attributes"),
        )


def checked_names(names: Any, argument: str) -> Names:
    """Names of attributes as a list, each once. Raises :class:`~zardine.errors.SelectionError` for what is none."""
    if names is None or isinstance(names, str):
        return names
    listed = _listed(names, argument, "names of attributes, 'all' or None")
    wrong = [each for each in listed if not isinstance(each, str)]
    if wrong:
        raise SelectionError(f"{argument}: {wrong[0]!r} is no name of an attribute")
    return list(dict.fromkeys(listed))


def _conditions(where: Any) -> Where:
    if where is None:
        return None
    if not isinstance(where, Mapping) or not all(isinstance(name, str) for name in where):
        raise SelectionError(f"where is a mapping of names of attributes to what they must be, not {where!r}")
    return dict(where)


def _ids(values: Any, argument: str) -> Ints | None:
    if values is None:
        return None
    try:
        listed = _listed(values, argument, "integers")
        if argument == "group_ids" and any(isinstance(each, str) for each in listed):
            raise SelectionError("group_ids are integers; open(path).groups[name] reads a group by its name")
        return checked_ids(listed, None, argument)
    except DataError as error:
        raise SelectionError(error.reason) from None


def _listed(values: Any, argument: str, what: str) -> list[Any]:
    if isinstance(values, Iterable) and not isinstance(values, str | bytes):
        try:
            return list(values)
        except TypeError:  # an array of no axes
            pass
    raise SelectionError(f"{argument} are {what}, not {values!r}")
