"""Adding to a store: level 0 is worked out anew and replaced at one moment.

Coarser levels would no longer agree and are removed; :func:`zardine.vectors.build_pyramid` makes them again.
Where there is nothing to add, nothing changes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from zardine.errors import DataError, UnsupportedError
from zardine.stores.resolve import StoreLike
from zardine.vectors.changing.creating import new_objects, object_rows
from zardine.vectors.changing.levels import kind_of, load_whole, open_to_change, replace_level
from zardine.vectors.changing.one_writer import alone
from zardine.vectors.content.arguments import checked_ids, checked_links, checked_positions, one_of
from zardine.vectors.content.changes import LINES, merge, plain_points
from zardine.vectors.content.columns import checked_mapping, columns_of, join_columns
from zardine.vectors.content.content import Content, Links
from zardine.vectors.content.point_content import by_object
from zardine.vectors.content.run_content import (
    inverse,
    joined_columns,
    joined_lines,
    polyline_content,
    skeleton_content,
)
from zardine.vectors.format.grids import chunks_of
from zardine.vectors.format.ragged import Ints, unique_rows
from zardine.vectors.storing.store import Level

_APPENDS = {
    **dict.fromkeys(LINES, "append_polylines"),
    "point_cloud": "append_points",
    "graph": "append_graph",
    "mesh": "append_mesh",
    "skeleton": "append_skeleton",
}


@alone
def append_points(
    path: StoreLike,
    positions: npt.ArrayLike,
    *,
    vertex_attributes: Mapping[str, Any] | None = None,
    object_ids: npt.ArrayLike | None = None,
    object_attributes: Mapping[str, Any] | None = None,
) -> None:
    """Add points to a store of points. Bounds and grid grow where that is needed.

    Attributes that are not given for the new points, or were not there before, get fill values (NaN, 0, missing text);
    those of objects are absent (NaN, the lowest integer or, without a sign, the highest, ``""``).
    Where the store has objects, ``object_ids`` are needed; known ids add to these objects, and ``object_attributes``
    have a row for each distinct new id, ascending. Raises as :func:`write_points`, and
    :class:`~zardine.errors.DataError` for a store of another geometry, before anything is written.
    """
    level = _open(path, "append_points", "point_cloud")
    old = load_whole(level)
    points = _points(positions, level, old)
    columns = columns_of(vertex_attributes, len(points), "points")
    if (object_ids is not None) != (old.objects is not None):
        reason = "has objects: give object_ids" if old.objects is not None else "has no objects: leave object_ids out"
        raise DataError(f"{level.owner.name} {reason}")
    if old.objects is None:
        if old.fragment_attributes or old.links:
            what = "fragments have attributes" if old.fragment_attributes else "points have links"
            raise UnsupportedError(f"nothing can be added to {level.owner.name}: its {what}, and it has no objects")
        if checked_mapping(object_attributes):
            raise DataError(f"{level.owner.name} has no objects: leave object_attributes out")
        if len(points) == 0:
            return
        shapes = level.document.chunk_shape, level.owner.root.bin_shape
        both = merge(old, plain_points(points, columns, None, *shapes))
        joined = plain_points(both.positions, both.vertex_attributes, both.visible(), *shapes)
        replace_level(level, joined.changed(groups=old.groups))
        return
    ids = checked_ids(object_ids, len(points), "object_ids")
    distinct, row = np.unique(ids, return_inverse=True)
    fresh = distinct[~np.isin(distinct, old.objects.ids)]
    keys, cell = unique_rows(chunks_of(points, level.document.chunk_shape))
    objects, _ = new_objects(distinct, len(distinct), None, None, None)
    content, _ = by_object(points, columns, keys, cell, row.reshape(-1), objects)
    given = columns_of(object_attributes, len(fresh), "new objects (one for each distinct new id)")
    if len(points):
        replace_level(level, _with_new_attributes(merge(old, content), old, given))


@alone
def append_polylines(
    path: StoreLike,
    polylines: Sequence[npt.ArrayLike],
    *,
    vertex_attributes: Mapping[str, Any] | None = None,
    object_ids: npt.ArrayLike | None = None,
    object_attributes: Mapping[str, Any] | None = None,
) -> None:
    """Add lines to a store of lines; ``object_ids`` are new ones (default: on from the highest).

    A store of straight lines takes lines of two vertices. Everything else as in :func:`append_points`.
    """
    level = _open(path, "append_polylines", *LINES)
    old = load_whole(level)
    if old.objects is None:
        raise DataError(f"{level.owner.name} has no object index, which says what its lines are")
    whole, lengths = joined_lines(polylines, level.owner.root.ndim)
    points = _points(whole, level, old)
    if kind_of(level) == "line" and (lengths != 2).any():
        which = int(np.flatnonzero(lengths != 2)[0])
        raise DataError(f"{level.owner.name} holds straight lines; line {which} has {lengths[which]} vertices, not 2")
    columns = columns_of(joined_columns(vertex_attributes, lengths), len(points), "vertices")
    ids = _new_ids(object_ids, len(lengths), old.objects.ids)
    objects, _ = new_objects(ids, len(ids), object_attributes, None, None)
    if len(lengths):
        content = polyline_content(points, columns, lengths, level.document.chunk_shape, objects)
        replace_level(level, merge(old, content))


@alone
def append_graph(
    path: StoreLike,
    positions: npt.ArrayLike,
    links: npt.ArrayLike,
    *,
    vertex_attributes: Mapping[str, Any] | None = None,
    link_attributes: Mapping[str, Any] | None = None,
    edge_attributes: Mapping[str, Any] | None = None,
    object_ids: npt.ArrayLike | None = None,
) -> None:
    """Add vertices and edges to a store of graphs, or faces to one of meshes; ``links`` are rows of the new vertices.

    ``object_ids`` ``(N,)``: known ids add to these objects (default: all belong to one new object).
    ``edge_attributes`` is another name for ``link_attributes``. Everything else as in :func:`append_points`.
    """
    given = one_of(link_attributes, edge_attributes, "edge_attributes")
    _append_links(path, "append_graph", ("graph", "mesh"), positions, links, vertex_attributes, given, object_ids)


@alone
def append_mesh(
    path: StoreLike,
    positions: npt.ArrayLike,
    faces: npt.ArrayLike,
    *,
    vertex_attributes: Mapping[str, Any] | None = None,
    link_attributes: Mapping[str, Any] | None = None,
    face_attributes: Mapping[str, Any] | None = None,
    object_ids: npt.ArrayLike | None = None,
) -> None:
    """Add vertices and faces, with as many corners as those that are there, to a store of meshes.

    ``face_attributes`` is another name for ``link_attributes``. Everything else as in :func:`append_graph`.
    """
    given = one_of(link_attributes, face_attributes, "face_attributes")
    _append_links(path, "append_mesh", ("mesh",), positions, faces, vertex_attributes, given, object_ids)


@alone
def append_skeleton(
    path: StoreLike,
    positions: npt.ArrayLike,
    parents: npt.ArrayLike,
    *,
    vertex_attributes: Mapping[str, Any] | None = None,
    object_ids: npt.ArrayLike | None = None,
) -> None:
    """Add trees to a store of skeletons; ``parents`` are rows of the new vertices, -1 for roots.

    Everything else as in :func:`append_graph`.
    """
    level = _open(path, "append_skeleton", "skeleton")
    old = load_whole(level)
    points = _points(positions, level, old)
    above = checked_ids(parents, len(points), "parents")
    if ((above < -1) | (above >= len(points))).any():
        raise DataError(f"parents are rows of the {len(points)} new vertices, or -1")
    objects, row = _objects_for(object_ids, points, old, level)
    if (row[above[above >= 0]] != row[above >= 0]).any():
        raise DataError("a vertex and its parent belong to different objects")
    columns = columns_of(vertex_attributes, len(points), "vertices")
    if len(points):
        content = skeleton_content(points, columns, above, row, level.document.chunk_shape, objects)
        replace_level(level, merge(old, content))


def _append_links(
    path: StoreLike,
    name: str,
    kinds: tuple[str, ...],
    positions: npt.ArrayLike,
    links: npt.ArrayLike,
    vertex_attributes: Mapping[str, Any] | None,
    link_attributes: Mapping[str, Any] | None,
    object_ids: npt.ArrayLike | None,
) -> None:
    level = _open(path, name, *kinds)
    old = load_whole(level)
    if 0 not in old.links:
        raise DataError(f"{level.owner.name} has no links to add to")
    width = old.links[0].endpoints.shape[1]
    array = checked_links(links, "links", 2 if width == 2 else 3)
    if len(array) == 0:
        array = np.zeros((0, width), np.int64)
    points = _points(positions, level, old)
    if array.shape[1] != width or (len(array) and (array.min() < 0 or array.max() >= len(points))):
        raise DataError(f"links are {width} rows of the {len(points)} new vertices each")
    objects, row = _objects_for(object_ids, points, old, level)
    keys, cell = unique_rows(chunks_of(points, level.document.chunk_shape))
    columns = columns_of(vertex_attributes, len(points), "vertices")
    content, order = by_object(points, columns, keys, cell, row, objects)
    stored = inverse(order)
    of_links = columns_of(link_attributes, len(array), "links")
    content = content.changed(links={0: Links(stored[array] if len(array) else array, of_links)})
    if len(points):
        replace_level(level, merge(old, content))


def _open(path: StoreLike, name: str, *kinds: str) -> Level:
    level = open_to_change(path)
    kind = kind_of(level)
    if kind not in kinds:
        advice = f": see {_APPENDS[kind]}" if kind in _APPENDS else ""
        raise DataError(f"{level.owner.name} is of the geometry {kind}; {name} adds to {' or '.join(kinds)}{advice}")
    return level


def _points(positions: Any, level: Level, old: Content) -> npt.NDArray[Any]:
    points = checked_positions(positions, old.positions.dtype)
    if points.shape[1] != level.owner.root.ndim:
        raise DataError(f"positions have {points.shape[1]} coordinates, the store has {level.owner.root.ndim} axes")
    return points


def _objects_for(ids: npt.ArrayLike | None, points: npt.NDArray[Any], old: Content, level: Level) -> tuple[Any, Ints]:
    """The objects that the new vertices are part of, and the row among these of each vertex."""
    if old.objects is None:
        raise DataError(f"{level.owner.name} has no object index: nothing can be added to its objects")
    if ids is None:
        ids = np.full(len(points), _new_ids(None, 1, old.objects.ids)[0])
    objects, row, _ = object_rows(ids, len(points), None, None, None)
    return objects, row


def _new_ids(ids: npt.ArrayLike | None, count: int, known: Ints) -> Ints:
    if ids is None:
        first = int(known.max()) + 1 if len(known) else 0
        if first + count > 2**63:
            raise DataError("no ids are left above the highest: give object_ids")
        return np.arange(count) + np.int64(first if count else 0)  # arange(first, 2**63) would be floats
    found = checked_ids(ids, count, "object_ids")
    if np.isin(found, known).any():
        raise DataError(f"object_ids: {int(found[np.isin(found, known)][0])} is there already")
    return found


def _with_new_attributes(joined: Content, old: Content, given: Mapping[str, Any]) -> Content:
    """Attributes of the objects that ``joined`` has after those of ``old``."""
    assert joined.objects is not None
    assert old.objects is not None
    count, total = len(old.objects.ids), len(joined.objects.ids)
    columns = dict(joined.objects.attributes)
    for name, column in given.items():
        before = old.objects.attributes.get(name)
        if before is None:
            before = join_columns(name, column.take(np.zeros(0, np.int64)), None, count, of_objects=True)
        columns[name] = join_columns(name, before, column.decoded(), total - count, of_objects=True)
    return joined.changed(objects=replace(joined.objects, attributes=columns))
