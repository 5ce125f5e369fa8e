"""A value as a new store: what all writers end in. It is checked, cut into cells, and then written."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, assert_never

import numpy as np
import numpy.typing as npt

from zardine.buffers import Ints
from zardine.errors import DataError
from zardine.stores.resolve import StoreLike
from zardine.vectors.changing.creating import (
    GivenObjects,
    Prepared,
    StoreOptions,
    check_options,
    new_objects,
    object_rows,
    prepare,
)
from zardine.vectors.changing.large_stores import Lines, store_content, store_lines, store_points
from zardine.vectors.content.arguments import (
    Attributes,
    checked_ids,
    checked_links,
    checked_parents,
    checked_rows,
    positions_and_corners,
)
from zardine.vectors.content.columns import checked_mapping, columns_of
from zardine.vectors.content.content import Content
from zardine.vectors.content.parts import VerticesInMemory
from zardine.vectors.content.point_content import groups_of, linked_content, object_points
from zardine.vectors.content.run_content import skeleton_content
from zardine.vectors.results import Geometry, Graph, Mesh, Points, Polylines, Skeleton

Array = npt.NDArray[Any]


def write_value(
    path: StoreLike,
    value: Geometry,
    kind: str,
    given: GivenObjects,
    options: StoreOptions,
    dtype: npt.DTypeLike | None = None,
    origin: str | None = None,
) -> None:
    """Write a value of the geometry ``kind`` to a new store.

    Its arrays may be whatever NumPy makes arrays of. ``given`` says what the value does not say of objects and groups.
    ``origin`` as in :func:`~zardine.vectors.changing.large_stores.store_points`.
    Raises :class:`~zardine.errors.DataError` for what does not fit together, before anything is written, and
    ``TypeError`` for names that are no options.
    """
    check_options(options)
    given = replace(given, ids=value.object_ids)
    of_lines = isinstance(value, Polylines)
    what = "vertices of polylines" if of_lines else "positions"
    points, corners = positions_and_corners(value.positions, dtype, what)
    if isinstance(value, Polylines):
        given = replace(given, attributes=value.object_attributes)
        columns = columns_of(value.attributes, len(points), "vertices")
        lengths = np.diff(value.starts)
        lines = Lines(VerticesInMemory(points, columns, corners), lengths, *new_objects(given, len(lengths)))
        store_lines(path, lines, checked_kind(kind, lengths), options, origin=origin)
        return
    if isinstance(value, Points) and not _has_objects(given):
        columns = columns_of(value.attributes, len(points), "points")
        store_points(path, VerticesInMemory(points, columns, corners), options, origin=origin)
        return
    chosen = prepare(points, options, may_ignore=isinstance(value, Points))
    match value:
        case Points():
            content = _points(value, points, given, chosen)
        case Skeleton():
            content = _skeleton(value, points, given, chosen)
        case Graph():
            edges = checked_rows(checked_links(value.edges, "edges", 2), len(points), "edges")
            content = _linked(value, points, edges, value.edge_attributes, given, chosen)
        case Mesh():
            faces = checked_rows(checked_links(value.faces, "faces", 3), len(points), "faces")
            content = _linked(value, points, faces, value.face_attributes, given, chosen)
        case _:
            assert_never(value)
    store_content(path, content, kind, chosen, options, origin)


def _has_objects(given: GivenObjects) -> bool:
    """Return whether points are part of objects. Raises :class:`DataError` for attributes of groups without these."""
    if given.ids is not None or checked_mapping(given.attributes) or given.groups is not None:
        return True
    if checked_mapping(given.group_attributes):
        raise DataError("group_attributes need groups")
    return False


def checked_kind(kind: Any, lengths: Ints) -> str:
    """Return what lines of ``lengths`` vertices are to be. Raises :class:`~zardine.errors.DataError`."""
    if kind not in ("streamline", "polyline", "line"):
        raise DataError(f"geometry_type is 'streamline', 'polyline' or 'line', not {kind!r}")
    if kind == "line" and (lengths != 2).any():
        raise DataError(f"a line has 2 vertices, not {int(lengths[lengths != 2][0])}: see write_polylines")
    return str(kind)


def _points(value: Points, points: Array, given: GivenObjects, chosen: Prepared) -> Content:
    """Points that are part of objects; without ids each is one."""
    count, kept = len(points), chosen.kept
    columns = columns_of(value.attributes, count, "points")
    ids = np.arange(count) if given.ids is None else checked_ids(given.ids, count, "object_ids")
    distinct = np.unique(ids)
    if kept is not None:
        points, columns = points[kept], {name: column.take(kept) for name, column in columns.items()}
        ids = ids[kept]
    of_objects = columns_of(given.attributes, len(distinct), "objects (one for each distinct id)")
    groups = groups_of(given.groups, given.group_attributes, distinct)
    content = object_points(points, columns, ids, chosen.chunk_shape, object_columns=of_objects, object_ids=distinct)
    return replace(content, groups=groups)


def _skeleton(value: Skeleton, points: Array, given: GivenObjects, chosen: Prepared) -> Content:
    parents = checked_parents(value.parents, len(points))
    objects, row, groups = object_rows(given, len(points))
    if (row[parents[parents >= 0]] != row[parents >= 0]).any():
        raise DataError("a vertex and its parent belong to different objects")
    columns = columns_of(value.attributes, len(points), "vertices")
    return replace(skeleton_content(points, columns, parents, row, chosen.chunk_shape, objects), groups=groups)


def _linked(
    value: Graph | Mesh,
    points: Array,
    links: npt.NDArray[np.int64],
    of_links: Attributes,
    given: GivenObjects,
    chosen: Prepared,
) -> Content:
    """Vertices, and edges or faces between them: ``links`` ``(M, width)``, rows of the vertices."""
    objects, row, groups = object_rows(given, len(points))
    columns = columns_of(value.attributes, len(points), "vertices")
    link_columns = columns_of(of_links, len(links), "edges" if isinstance(value, Graph) else "faces")
    content = linked_content(points, columns, row, objects, links, link_columns, chosen.chunk_shape)
    return replace(content, groups=groups)


__all__ = ["checked_kind", "write_value"]
