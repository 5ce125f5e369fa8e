"""Changing what is in a store, all at one moment: by the cells that are touched, or where that cannot be, as a whole.

Coarser levels are older then; :func:`zardine.vectors.build_pyramid` makes them anew.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from zardine.buffers import Ints
from zardine.errors import DataError, SelectionError
from zardine.stores.resolve import StoreLike
from zardine.vectors.changing.asking_ahead import ask_for_tables, of_change
from zardine.vectors.changing.levels import (
    attributes_for,
    change_cells,
    kind_of,
    load_whole,
    open_to_change,
    plan_whole,
    replace_level,
)
from zardine.vectors.changing.moving import movement, numbers_of
from zardine.vectors.changing.one_writer import alone_asking, repeated
from zardine.vectors.changing.patching import UnfitError
from zardine.vectors.changing.reading_order import rows_as_read
from zardine.vectors.changing.removing import removal
from zardine.vectors.changing.setting import set_of_objects
from zardine.vectors.changing.spelling import check_spelling
from zardine.vectors.changing.whole_columns import KINDS, set_of_all
from zardine.vectors.content.arguments import Box, checked_ids, checked_positions
from zardine.vectors.content.changes import changed_vertices
from zardine.vectors.content.columns import Column, check_name, column_of
from zardine.vectors.content.content import Columns, Content, Groups
from zardine.vectors.format.ragged import find_rows
from zardine.vectors.reading.answer import matching_rows, wanted_objects, with_objects_named
from zardine.vectors.reading.loading_objects import load_manifests
from zardine.vectors.reading.missing import no_attribute
from zardine.vectors.reading.query import Query, Where
from zardine.vectors.storing.level_nodes import replaced_nodes
from zardine.vectors.storing.store import Level
from zardine.vectors.storing.transactions import replace_nodes

_FAMILIES = ("vertex", "fragment", "link", "object", "group")
"""What has attributes."""

__all__ = [
    "delete",
    "move_vertices",
    "set_attribute",
]


@repeated
@alone_asking(of_change)
def delete(
    path: StoreLike,
    *,
    bbox: Box = None,
    object_ids: Collection[int] | None = None,
    group_ids: Collection[int] | None = None,
    where: Where = None,
) -> int:
    """Remove the vertices for which everything holds that is given, and links to them; gives how many there were.

    At least one condition is needed, and an empty ``where`` is none; they are those of :func:`read_points`:
    ``where={"length": slice(None, 3)}`` removes objects by their attribute, and vertices by one of theirs. Objects
    without vertices go, also from groups. All attributes stay with their rows. Raises
    :class:`~zardine.errors.SelectionError`.
    """
    query = Query(bbox=bbox, object_ids=object_ids, group_ids=group_ids, where=where).checked()
    if bbox is None and object_ids is None and group_ids is None and not query.where:
        raise SelectionError("say what to delete: bbox, object_ids, group_ids or where")
    level = open_to_change(path)
    ask_for_tables(level)
    try:
        patch, count = removal(level, query)
    except UnfitError:
        return _delete_from_whole(level, query)
    if patch is not None:
        change_cells(level, patch)
    return count


def _delete_from_whole(level: Level, query: Query) -> int:
    content, query = load_whole(level), with_objects_named(level, query)
    for name in query.where or {}:
        if name not in content.vertex_attributes:
            raise no_attribute(level, name)
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


@alone_asking(of_change)
def move_vertices(
    path: StoreLike,
    rows: npt.ArrayLike | None = None,
    positions: npt.ArrayLike | None = None,
    *,
    object_ids: Collection[int] | None = None,
) -> None:
    """Put vertices elsewhere: ``move_vertices(path, positions)`` all, ``move_vertices(path, rows, positions)`` some.

    Positions, and ``rows``, which count vertices, are in the order in which :meth:`Vectors.read` gives the whole level:
    of lines along each, as :func:`read_polylines`; of everything else as :func:`read_points`.

    ``object_ids``: they are of these objects alone, as ``read(object_ids=...)`` gives them; then nothing else is looked
    at. Everything that belongs to vertices goes with them; only cells that they leave or enter are stored, of lines and
    skeletons with a vertex in another chunk all. Raises :class:`~zardine.errors.SelectionError` for other rows and for
    such that come twice, :class:`~zardine.errors.DataError` for other numbers of positions.
    """
    if positions is None:
        rows, positions = None, rows
    if positions is None:
        raise DataError("say where vertices are to be: move(positions) for all, or move(rows, positions) for some")
    level = open_to_change(path)
    ask_for_tables(level)
    try:
        patch = movement(level, rows, positions, object_ids)
    except UnfitError:
        _move_in_whole(level, rows, positions, object_ids)
    else:
        if patch is not None:
            change_cells(level, patch)


def _move_in_whole(level: Level, rows: Any, positions: Any, object_ids: Collection[int] | None) -> None:
    content = load_whole(level)
    among: Ints | None = None
    if object_ids is not None:
        if content.objects is None:
            raise SelectionError(f"{level.owner.name} has no objects")
        ids = np.unique(checked_ids(list(object_ids), None, "object_ids"))
        among = np.sort(find_rows(content.objects.ids.reshape(-1, 1), ids.reshape(-1, 1)))
        if (among < 0).any():
            raise SelectionError(f"there is no object with the id {int(ids[~np.isin(ids, content.objects.ids)][0])}")
    mine = rows_as_read(level, content, among)
    points = checked_positions(positions, content.positions.dtype)
    if points.shape[1] != level.owner.root.ndim:
        raise DataError(f"positions have {points.shape[1]} coordinates, the store has {level.owner.root.ndim} axes")
    moved = content.positions.copy()
    moved[mine[numbers_of(rows, len(points), len(mine))]] = points
    replace_level(level, _remade(level, content, moved, np.ones(len(moved), np.bool_)))


@alone_asking(of_change)
def set_attribute(
    path: StoreLike,
    name: str,
    values: Sequence[Any] | npt.ArrayLike | None,
    *,
    kind: str = "vertex",
    object_ids: Collection[int] | None = None,
    new: bool = False,
) -> None:
    """Give the things of one ``kind`` an attribute, or other values of one; ``None`` removes it.

    A name that looks like that of another attribute (``raduis``) is an error, unless ``new`` says that it is a new one.

    ``values`` has a row for each, in the order in which :meth:`Vectors.read` gives the whole level: of ``"vertex"``
    along lines, as :func:`read_polylines`, and where there are none as :func:`read_points`; of ``"link"`` as
    :func:`read_graph` or :func:`read_mesh`, of ``"object"``, ``"group"`` and ``"fragment"`` as :func:`read_objects`,
    :func:`read_groups` and :func:`read_fragments`.

    ``object_ids``: only these objects, or their vertices, get other values of an attribute that there is, in the order
    in which ``read(object_ids=...)`` gives their vertices; of ``"object"`` in that of the ids. That costs what it
    changes.

    Nothing else is stored, but all links for ``"link"``; values are encoded cell after cell. Coarser levels, which have
    copies of the attributes of objects and groups, are older after a change of these.
    """
    check_name(name)
    level = open_to_change(path)
    if not new and kind in _FAMILIES:
        check_spelling(level, kind, [name], "new=True makes a new one")
    if object_ids is not None:
        set_of_objects(level, name, values, kind, object_ids)
        return
    if kind in KINDS:
        set_of_all(level, name, values, kind)
        return
    content = load_whole(level)
    if kind != "link" or 0 not in content.links or kind_of(level) not in ("graph", "mesh"):
        raise DataError(f"{level.owner.name} has nothing of the kind {kind!r}")
    links = content.links[0]
    columns = _with_column(links.attributes, name, values, len(links.endpoints), "links")
    _replace_links(level, replace(content, links={0: replace(links, attributes=columns)}))


def _replace_links(level: Level, content: Content) -> None:
    """Store all links anew, which sets their order."""
    planned = plan_whole(level, content)
    nodes = [node for node in planned if _is_of_links(node.path)]
    removed = [path for path in replaced_nodes(level, {node.path for node in planned}) if _is_of_links(path)]
    replace_nodes(level, nodes, removed, attributes_for(level, content, planned), is_whole=True)


def _is_of_links(path: str) -> bool:
    return path.split("/")[0] in ("links", "link_fragments", "link_attributes")


def _with_column(old: Columns, name: str, values: Any, rows: int, what: str) -> dict[str, Column]:
    columns = {each: column for each, column in old.items() if each != name}
    if values is not None:
        columns[name] = column_of(name, values, rows, what)
    return columns


def _remade(level: Level, content: Content, positions: npt.NDArray[Any], kept: npt.NDArray[np.bool_]) -> Content:
    shapes = level.document.chunk_shape, level.owner.root.bin_shape
    return changed_vertices(content, kind_of(level), positions, kept, *shapes)
