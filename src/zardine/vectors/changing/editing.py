"""Changing what is in a store: the whole of level 0 is worked out anew and replaced at one moment.

Coarser levels that would no longer agree are removed; :func:`zardine.vectors.build_pyramid` makes them again.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from zardine.errors import DataError, SelectionError
from zardine.stores.resolve import StoreLike
from zardine.vectors.changing.levels import (
    attributes_for,
    erase_levels,
    kind_of,
    load_whole,
    open_to_change,
    plan_whole,
    replace_level,
)
from zardine.vectors.changing.one_writer import alone, repeated
from zardine.vectors.changing.setting import set_of_objects
from zardine.vectors.content.arguments import Box, checked_ids, checked_positions
from zardine.vectors.content.changes import changed_vertices
from zardine.vectors.content.columns import Column, check_name, column_of
from zardine.vectors.content.content import Columns, Content, Groups
from zardine.vectors.reading.answer import matching_rows, wanted_objects
from zardine.vectors.reading.loading_objects import load_manifests
from zardine.vectors.reading.query import Query, Where
from zardine.vectors.storing.level_nodes import replaced_nodes
from zardine.vectors.storing.store import Level
from zardine.vectors.storing.transactions import replace_nodes

__all__ = [
    "delete",
    "move_vertices",
    "set_attribute",
]


@repeated
@alone
def delete(
    path: StoreLike,
    *,
    bbox: Box = None,
    object_ids: Collection[int] | None = None,
    group_ids: Collection[int] | None = None,
    where: Where = None,
) -> int:
    """Remove the vertices for which everything holds that is given, and links to them; gives how many there were.

    At least one condition is needed, and an empty ``where`` is none; they are those of :func:`read_points`. Objects
    without vertices go, also from groups. All attributes stay with their rows. Raises
    :class:`~zardine.errors.SelectionError`.
    """
    query = Query(bbox=bbox, object_ids=object_ids, group_ids=group_ids, where=where).checked()
    if bbox is None and object_ids is None and group_ids is None and not query.where:
        raise SelectionError("say what to delete: bbox, object_ids, group_ids or where")
    level = open_to_change(path)
    content = load_whole(level)
    for name in query.where or {}:
        if name not in content.vertex_attributes:
            raise SelectionError(f"{level.owner.name} has no vertex attribute {name!r}")
    gone = matching_rows(level, content, query, wanted_objects(level, load_manifests(level), query))
    if len(gone) == 0:
        return 0
    kept = np.ones(len(content.positions), np.bool_)
    kept[gone] = False
    left = _remade(level, content, content.positions, kept)
    if left.groups is not None and left.objects is not None:
        members = tuple(each[np.isin(each, left.objects.ids)] for each in left.groups.members)
        left = replace(left, groups=Groups(members, left.groups.attributes))
    replace_level(level, left)
    return len(gone)


@alone
def move_vertices(path: StoreLike, rows: npt.ArrayLike, positions: npt.ArrayLike) -> None:
    """Put vertices elsewhere: ``rows`` count them in the order in which :func:`read_points` gives the whole level.

    Everything that belongs to them goes with them. Raises :class:`~zardine.errors.SelectionError` for other rows.
    """
    level = open_to_change(path)
    content = load_whole(level)
    visible = np.flatnonzero(content.visible())
    numbers = checked_ids(rows, None, "rows")
    if len(numbers) and (numbers.min() < 0 or numbers.max() >= len(visible)):
        raise SelectionError(f"rows {numbers.min()} to {numbers.max()}: there are {len(visible)} vertices")
    points = checked_positions(positions, content.positions.dtype)
    if points.shape[1] != level.owner.root.ndim:
        raise DataError(f"positions have {points.shape[1]} coordinates, the store has {level.owner.root.ndim} axes")
    if len(points) != len(numbers):
        raise DataError(f"{len(points)} positions for {len(numbers)} rows")
    moved = content.positions.copy()
    moved[visible[numbers]] = points
    replace_level(level, _remade(level, content, moved, np.ones(len(moved), np.bool_)))


@alone
def set_attribute(
    path: StoreLike,
    name: str,
    values: Sequence[Any] | npt.ArrayLike | None,
    *,
    kind: str = "vertex",
    object_ids: Collection[int] | None = None,
) -> None:
    """Give the things of one ``kind`` an attribute, or other values of one; ``None`` removes it.

    ``values`` has a row for each, in the order in which the whole level is read: of ``"vertex"`` by
    :func:`read_points`, ``"link"`` by :func:`read_graph` or :func:`read_mesh`, ``"object"``, ``"group"`` and
    ``"fragment"`` by :func:`read_objects`, :func:`read_groups` and :func:`read_fragments`.

    ``object_ids``: only these objects, or their vertices, get other values of an attribute that there is, in the order
    in which :func:`read_points` gives their vertices; of ``"object"`` in that of the ids. That costs what it changes.

    Nothing else is changed. Coarser levels stay, but not for ``"object"`` and ``"group"``, of whose attributes they
    have copies.
    """
    check_name(name)
    level = open_to_change(path)
    if object_ids is not None:
        set_of_objects(level, name, values, kind, object_ids)
        return
    content = load_whole(level)
    if kind == "vertex":
        visible = np.flatnonzero(content.visible())
        columns = _with_column(content.vertex_attributes, name, values, len(visible), "vertices")
        if values is not None:
            given = columns[name]
            whole = np.zeros((len(content.positions), *given.row_shape), given.values.dtype)
            whole[visible] = given.values
            columns[name] = replace(given, values=whole)
        content = replace(content, vertex_attributes=columns)
    elif kind == "fragment":
        columns = _with_column(content.fragment_attributes, name, values, content.fragments.count, "fragments")
        content = replace(content, fragment_attributes=columns)
    elif kind == "link" and 0 in content.links and kind_of(level) in ("graph", "mesh"):
        links = content.links[0]
        columns = _with_column(links.attributes, name, values, len(links.endpoints), "links")
        content = replace(content, links={0: replace(links, attributes=columns)})
    elif kind == "object" and content.objects is not None:
        columns = _with_column(content.objects.attributes, name, values, len(content.objects.ids), "objects")
        content = replace(content, objects=replace(content.objects, attributes=columns))
    elif kind == "group" and content.groups is not None:
        columns = _with_column(content.groups.attributes, name, values, len(content.groups.members), "groups")
        content = replace(content, groups=replace(content.groups, attributes=columns))
    else:
        raise DataError(f"{level.owner.name} has nothing of the kind {kind!r}")
    _replace_family(level, content, kind, name)


def _replace_family(level: Level, content: Content, kind: str, name: str) -> None:
    """Store what ``content`` has otherwise than the level: an attribute of one kind."""
    owner, planned = level.owner, plan_whole(level, content)
    nodes = [node for node in planned if _belongs(node.path, kind, name)]
    levels_go = kind in ("object", "group")
    coarser = [number for number in owner.level_numbers() if number > 0 and levels_go]
    gone = replaced_nodes(level, {node.path for node in planned}, other_levels=levels_go)
    linked = {path for path in gone if levels_go and path.split("/")[0] in ("links", "link_attributes")}
    removed = [path for path in gone if path in linked or _belongs(path, kind, name)]
    replace_nodes(
        level,
        nodes,
        removed,
        attributes_for(level, content, planned),
        before=lambda: erase_levels(owner, coarser, links=False),
    )


def _belongs(path: str, kind: str, name: str) -> bool:
    """Whether a node is stored anew for an attribute; for one of links all links are, which sets their order."""
    if kind == "link":
        return path.split("/")[0] in ("links", "link_fragments", "link_attributes")
    family = f"{kind}_attributes"
    return path in (family, f"{family}/{name}")


def _with_column(old: Columns, name: str, values: Any, rows: int, what: str) -> dict[str, Column]:
    columns = {each: column for each, column in old.items() if each != name}
    if values is not None:
        columns[name] = column_of(name, values, rows, what)
    return columns


def _remade(level: Level, content: Content, positions: npt.NDArray[Any], kept: npt.NDArray[np.bool_]) -> Content:
    shapes = level.document.chunk_shape, level.owner.root.bin_shape
    return changed_vertices(content, kind_of(level), positions, kept, *shapes)
