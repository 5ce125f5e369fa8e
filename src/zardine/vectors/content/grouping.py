"""Names of groups, and groups that gain members. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from zardine.buffers import Ints
from zardine.errors import DataError
from zardine.vectors.content.arguments import checked_ids
from zardine.vectors.content.columns import column_of, join_columns
from zardine.vectors.content.content import Groups

NAME = "name"
"""The attribute that names of groups are put into."""
_NAMES = (NAME, "label")
"""Attributes of groups that are their names, in this order, if they are text."""

Gains = Sequence[tuple[int | str, Ints]]
"""Numbers or names of groups, and the ids of the objects that they gain."""


def names_attribute(attributes: Mapping[str, npt.NDArray[Any]]) -> str | None:
    """The attribute that holds the names of groups: ``name``, else ``label``, else the only one that is text."""
    texts = [name for name, values in attributes.items() if values.ndim == 1 and values.dtype.kind in "TOU"]
    chosen = next((name for name in _NAMES if name in texts), None)
    return texts[0] if chosen is None and len(texts) == 1 else chosen


def gains_of(groups: Any, ids: Ints, *, numbered: bool) -> Gains:
    """A user's groups for new things, whose ids are ``ids``: lists of ids, in order, by number or by name.

    ``numbered``: nobody chose the ids, and the lists are numbers from 0 on. Raises :class:`DataError` for other ids.
    """
    if groups is None:
        return ()
    pairs = groups.items() if isinstance(groups, Mapping) else enumerate(groups) if np.iterable(groups) else None
    if pairs is None or isinstance(groups, str):
        raise DataError(f"groups are lists of object ids, in order, by number or by name, not {groups!r}")
    found = []
    for key, each in pairs:
        if isinstance(key, bool) or not isinstance(key, int | np.integer | str):
            raise DataError(f"a group has a number or a name, not {key!r}")
        given = checked_ids(list(each) if np.iterable(each) else each, None, f"group {key!r}")
        known = np.arange(len(ids)) if numbered else ids
        unknown = given[~np.isin(given, known)]
        if len(unknown):
            what = f"number {int(unknown[0])}; there are {len(ids)}, from 0" if numbered else f"id {int(unknown[0])}"
            raise DataError(f"group {key!r}: nothing that is added has the {what}")
        found.append((key if isinstance(key, str) else int(key), ids[given] if numbered else given))
    return found


def with_gains(groups: Groups | None, gains: Gains) -> Groups:
    """Groups, each with its new members behind those that it has; those that are new follow.

    What a new group has no value for is absent, as for objects. Raises :class:`DataError` for numbers with a gap, and
    for names where groups have none, or several that one.
    """
    old = Groups(()) if groups is None else groups
    attributes = {name: column.decoded() for name, column in old.attributes.items()}
    attribute = names_attribute(attributes) if old.members else NAME
    names = [] if attribute is None else [str(each) for each in attributes.get(attribute, np.zeros(0, str)).tolist()]
    members, added = [each.tolist() for each in old.members], list[str]()
    for key, ids in gains:
        if isinstance(key, str) and attribute is None:
            raise DataError(f"groups have no names here, only numbers: {key!r} is none")
        if isinstance(key, str) and names.count(key) > 1:
            raise DataError(f"{names.count(key)} groups have the name {key!r}: give the number of one")
        number = key if isinstance(key, int) else names.index(key) if key in names else len(members)
        if not 0 <= number <= len(members):
            raise DataError(f"there is no group {number}: there are {len(members)}, and a new one comes next")
        if number == len(members):
            members.append([])
            added.append(key if isinstance(key, str) else "")
            names += added[-1:] if attribute is not None else []
        known = set(members[number])
        members[number] += [each for each in dict.fromkeys(ids.tolist()) if each not in known]
    columns = {}
    for name, column in old.attributes.items():
        own = np.array(added, object) if name == attribute and any(added) else None
        columns[name] = join_columns(name, column, own, len(added), of_objects=True)
    if attribute is not None and attribute not in columns and any(added):
        columns[attribute] = column_of(attribute, np.array(added, object), len(added), "groups")
    return Groups(tuple(np.array(each, np.int64) for each in members), columns)


__all__ = ["NAME", "Gains", "gains_of", "names_attribute", "with_gains"]
