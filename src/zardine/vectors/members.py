"""What a store is made of, looked up by id and by name: ``v.objects[7]``, ``v.groups["left"]``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import index
from typing import Any, SupportsIndex

import numpy as np
import numpy.typing as npt

from zardine.errors import SelectionError
from zardine.public_names import public
from zardine.stores.resolve import StoreLike
from zardine.vectors.content.arguments import shown
from zardine.vectors.content.grouping import names_attribute
from zardine.vectors.inspecting import read_groups, read_objects
from zardine.vectors.results import Arrays, Geometry
from zardine.vectors.selecting import Selection


@public("zardine.vectors")
class Objects:
    """The objects of level 0, by id. Ids are looked up each time; every object is read by itself.

    ``objects[7]`` is the object with the id 7, as :meth:`Vectors.read` gives it; ``objects[[7, 9]]`` those with these
    ids, ``objects[10:20]`` those with ids from 10 to 19: numbers are ids, never places. Unknown ids are a
    :class:`~zardine.errors.SelectionError`.
    """

    def __init__(self, path: StoreLike, kind: str) -> None:
        self._path = path
        self._kind = kind

    @property
    def ids(self) -> npt.NDArray[np.int64]:
        """The ids of all objects, in the order of the object index."""
        return read_objects(self._path).ids

    @property
    def attributes(self) -> Arrays:
        """For each attribute of objects its values, a row for each of :attr:`ids`."""
        return read_objects(self._path).attributes

    def __len__(self) -> int:
        return len(self.ids)

    def __iter__(self) -> Iterator[int]:
        """Go through the ids."""
        return iter(self.ids.tolist())

    def __contains__(self, object_id: object) -> bool:
        return isinstance(object_id, int | np.integer) and bool((self.ids == object_id).any())

    def __getitem__(self, object_id: SupportsIndex | slice | Sequence[int] | npt.NDArray[Any]) -> Geometry:
        """Read the object with an id, or those with some ids."""
        if isinstance(object_id, slice):
            return self._read(_ids_in(self.ids, object_id))
        try:
            return self._read([index(object_id)])  # type: ignore[arg-type]
        except TypeError:
            return self._read(object_id)

    def items(self) -> Iterator[tuple[int, Geometry]]:
        """Go through ids and objects, reading one after the other; ``select().batches(n)`` reads many at a time."""
        for each in self:
            yield each, self[each]

    def __repr__(self) -> str:
        return f"<{len(self)} objects of {self._kind}>"

    def _read(self, ids: Any) -> Geometry:
        return Selection(self._path, self._kind, object_ids=ids).read()


def _ids_in(ids: npt.NDArray[np.int64], wanted: slice) -> npt.NDArray[np.int64]:
    try:
        low, high, step = (None if each is None else index(each) for each in (wanted.start, wanted.stop, wanted.step))
    except TypeError:
        raise SelectionError(f"a slice of objects goes from one id to another, not {wanted}") from None
    if step is not None and step < 1:
        raise SelectionError(f"a slice of ids goes up: its step is 1 or more, not {step}")
    first = int(ids.min()) if low is None and len(ids) else low or 0
    inside = ids >= first
    if high is not None:
        inside &= ids < high
    if step is not None:
        inside &= (ids - first) % step == 0
    return ids[inside]


@public("zardine.vectors")
class Groups:
    """The groups of level 0, numbered from 0, and by name. They are looked up each time.

    ``groups[0]`` and ``groups["left"]`` are the objects of a group, as :meth:`Vectors.read` gives them. Names are those
    of the group attribute ``name``, else of ``label``, else of the only attribute that is text.
    """

    def __init__(self, path: StoreLike, kind: str) -> None:
        self._path = path
        self._kind = kind

    @property
    def attributes(self) -> Arrays:
        """For each attribute of groups its values, a row for each group."""
        return read_groups(self._path).attributes

    @property
    def names(self) -> list[str]:
        """The names of the groups, in order; none where no attribute tells them."""
        return _names_of(self.attributes)

    def members(self, group: int | str) -> npt.NDArray[np.int64]:
        """Return the ids of the objects in a group."""
        return read_groups(self._path).members[self._number(group)]

    def __len__(self) -> int:
        return len(read_groups(self._path).members)

    def __iter__(self) -> Iterator[int]:
        """Go through the numbers."""
        return iter(range(len(self)))

    def __contains__(self, group: object) -> bool:
        if isinstance(group, str):
            return group in self.names
        return isinstance(group, int | np.integer) and 0 <= int(group) < len(self)

    def __getitem__(self, group: int | str) -> Geometry:
        """Read the objects of a group. Raises :class:`~zardine.errors.SelectionError` for unknown numbers and names."""
        return Selection(self._path, self._kind, group_ids=[self._number(group)]).read()

    def __repr__(self) -> str:
        names = self.names
        return f"<{len(self)} groups{f': {shown(names)}' if names else ''}>"

    def _number(self, group: int | str) -> int:
        table = read_groups(self._path)
        if isinstance(group, str):
            names = _names_of(table.attributes)
            if not table.members:
                raise SelectionError(f"there is no group {group!r}: the store has no groups")
            found = [number for number, name in enumerate(names) if name == group]
            if not names:
                raise SelectionError(f"groups have no names here, only numbers from 0 to {len(table.members) - 1}")
            if len(found) != 1:
                reason = "no group has" if not found else f"{len(found)} groups have"
                raise SelectionError(f"{reason} the name {group!r}; there are {shown(names)}")
            return found[0]
        try:
            number = index(group)
        except TypeError:
            raise SelectionError(f"a group is a number or a name, not {group!r}") from None
        if not 0 <= number < len(table.members):
            raise SelectionError(f"there is no group {number}: there are {len(table.members)}, numbered from 0")
        return number


def _names_of(attributes: Arrays) -> list[str]:
    chosen = names_attribute(attributes)
    return [] if chosen is None else [str(each) for each in attributes[chosen].tolist()]


__all__ = ["Groups", "Objects"]
