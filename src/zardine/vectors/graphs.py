"""Graphs, skeletons and meshes: writing and reading."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from zardine.errors import DataError
from zardine.stores.resolve import StoreLike
from zardine.vectors.changing.creating import StoreOptions, object_rows, prepare, store_content
from zardine.vectors.content.arguments import checked_links, checked_positions, one_of, plain_array
from zardine.vectors.content.columns import Column, columns_of
from zardine.vectors.content.content import Links
from zardine.vectors.content.point_content import by_object
from zardine.vectors.content.run_content import inverse, parents_of, skeleton_content
from zardine.vectors.format.grids import chunks_of
from zardine.vectors.format.ragged import Ints, unique_rows
from zardine.vectors.reading.answer import Found, check_geometry, ids_of_rows, run_query, values_of
from zardine.vectors.reading.loading_links import load_links
from zardine.vectors.reading.query import ALL, Names, Query, Where, checked_names
from zardine.vectors.reading.rereading import read_steadily
from zardine.vectors.results import Graph, Mesh, Skeleton
from zardine.vectors.storing.store import Level


def write_graph(
    path: StoreLike,
    positions: npt.ArrayLike,
    edges: npt.ArrayLike,
    *,
    vertex_attributes: Mapping[str, Any] | None = None,
    link_attributes: Mapping[str, Any] | None = None,
    edge_attributes: Mapping[str, Any] | None = None,
    object_ids: npt.ArrayLike | None = None,
    object_attributes: Mapping[str, Any] | None = None,
    groups: Any = None,
    group_attributes: Mapping[str, Any] | None = None,
    dtype: npt.DTypeLike | None = None,
    **options: Any,
) -> None:
    """Write vertices ``(N, D)`` and edges ``(E, 2)`` (rows of vertices, in an order that is kept) to a new store.

    ``object_ids`` ``(N,)``: the object of each vertex (default: all are object 0). Attributes of objects have a row for
    each distinct id, ascending. ``link_attributes`` have a row for each edge; ``edge_attributes`` is another name for
    them. ``options`` and errors as in :func:`write_polylines`.
    """
    links = checked_links(edges, "edges", 2)
    columns = {"vertex": vertex_attributes, "link": one_of(link_attributes, edge_attributes, "edge_attributes")}
    _write(
        path,
        "graph",
        positions,
        links,
        columns,
        object_ids,
        object_attributes,
        (groups, group_attributes),
        dtype,
        options,
    )


def write_mesh(
    path: StoreLike,
    positions: npt.ArrayLike,
    faces: npt.ArrayLike,
    *,
    vertex_attributes: Mapping[str, Any] | None = None,
    link_attributes: Mapping[str, Any] | None = None,
    face_attributes: Mapping[str, Any] | None = None,
    object_ids: npt.ArrayLike | None = None,
    object_attributes: Mapping[str, Any] | None = None,
    groups: Any = None,
    group_attributes: Mapping[str, Any] | None = None,
    dtype: npt.DTypeLike | None = None,
    **options: Any,
) -> None:
    """Write vertices ``(N, D)`` and faces ``(F, corners)`` of three corners or more to a new store.

    The order of the corners is kept. ``face_attributes`` is another name for ``link_attributes``. Everything else as in
    :func:`write_graph`.
    """
    links = checked_links(faces, "faces", 3)
    columns = {"vertex": vertex_attributes, "link": one_of(link_attributes, face_attributes, "face_attributes")}
    _write(
        path,
        "mesh",
        positions,
        links,
        columns,
        object_ids,
        object_attributes,
        (groups, group_attributes),
        dtype,
        options,
    )


def write_skeleton(
    path: StoreLike,
    positions: npt.ArrayLike,
    parents: npt.ArrayLike,
    *,
    vertex_attributes: Mapping[str, Any] | None = None,
    object_ids: npt.ArrayLike | None = None,
    object_attributes: Mapping[str, Any] | None = None,
    groups: Any = None,
    group_attributes: Mapping[str, Any] | None = None,
    dtype: npt.DTypeLike | None = None,
    **options: Any,
) -> None:
    """Write trees to a new store: vertices ``(N, D)`` and for each the row of its parent, -1 for roots.

    An object may have several roots. Everything else as in :func:`write_graph`.
    """
    settings = StoreOptions.of(options)
    points = checked_positions(positions, dtype)
    found = plain_array(parents, "parents")
    if found.shape != (len(points),) or found.dtype.kind not in "iu":
        raise DataError(f"parents are {len(points)} integers, not {found.dtype} of shape {found.shape}")
    if found.dtype.kind == "u" and found.size and int(found.max()) >= 2**63:
        raise DataError(f"parents are rows of the {len(points)} vertices, or -1; found {int(found.max())}")
    above = found.astype(np.int64)
    if ((above < -1) | (above >= len(points))).any():
        raise DataError(
            f"parents are rows of the {len(points)} vertices, or -1; found {int(above.max())}, {int(above.min())}"
        )
    objects, row, found_groups = object_rows(object_ids, len(points), object_attributes, groups, group_attributes)
    if (row[above[above >= 0]] != row[above >= 0]).any():
        raise DataError("a vertex and its parent belong to different objects")
    columns = columns_of(vertex_attributes, len(points), "vertices")
    chosen = prepare(points, settings)
    content = skeleton_content(points, columns, above, row, chosen.chunk_shape, objects)
    store_content(path, content.changed(groups=found_groups), "skeleton", chosen, settings)


def read_graph(
    path: StoreLike,
    *,
    level: int = 0,
    bbox: Any = None,
    object_ids: Collection[int] | None = None,
    group_ids: Collection[int] | None = None,
    chunks: Collection[Sequence[int]] | None = None,
    where: Where = None,
    attributes: Names = ALL,
    edge_attributes: Names = ALL,
) -> Graph:
    """Read the vertices for which everything holds that is given, and the edges between them.

    Arguments and errors are those of :func:`read_points`. Of a skeleton, edges are child and parent; points
    may have edges, too. Other geometries are :class:`~zardine.errors.SelectionError`.
    """
    query = Query(
        level=level,
        bbox=bbox,
        object_ids=object_ids,
        group_ids=group_ids,
        chunks=chunks,
        where=where,
        attributes=attributes,
    ).checked()
    of_edges = checked_names(edge_attributes, "edge_attributes")
    return read_steadily(path, level, lambda opened: _graph(opened, query, of_edges))


def read_mesh(
    path: StoreLike,
    *,
    level: int = 0,
    bbox: Any = None,
    object_ids: Collection[int] | None = None,
    group_ids: Collection[int] | None = None,
    chunks: Collection[Sequence[int]] | None = None,
    where: Where = None,
    attributes: Names = ALL,
    face_attributes: Names = ALL,
) -> Mesh:
    """Read the vertices for which everything holds that is given, and the faces all of whose corners are among them.

    Arguments and errors are those of :func:`read_points`.
    """
    query = Query(
        level=level,
        bbox=bbox,
        object_ids=object_ids,
        group_ids=group_ids,
        chunks=chunks,
        where=where,
        attributes=attributes,
    ).checked()
    of_faces = checked_names(face_attributes, "face_attributes")
    return read_steadily(path, level, lambda opened: _mesh(opened, query, of_faces))


def read_skeleton(
    path: StoreLike,
    *,
    level: int = 0,
    bbox: Any = None,
    object_ids: Collection[int] | None = None,
    group_ids: Collection[int] | None = None,
    chunks: Collection[Sequence[int]] | None = None,
    where: Where = None,
    attributes: Names = ALL,
    world: bool = False,
) -> Skeleton:
    """Read the vertices for which everything holds that is given, and for each its parent if that is among them.

    ``world``: add the ``coordinate_offset`` of the store, in float64. Other arguments, and errors, are those of
    :func:`read_points`.
    """
    query = Query(
        level=level,
        bbox=bbox,
        object_ids=object_ids,
        group_ids=group_ids,
        chunks=chunks,
        where=where,
        attributes=attributes,
    ).checked()
    return read_steadily(path, level, lambda opened: _in_space(opened, query, world))


def _write(
    path: StoreLike,
    kind: str,
    positions: Any,
    links: Ints,
    attributes: Mapping[str, Any],
    object_ids: Any,
    object_attributes: Any,
    groups: tuple[Any, Any],
    dtype: Any,
    options: Mapping[str, Any],
) -> None:
    settings = StoreOptions.of(options)
    points = checked_positions(positions, dtype)
    if len(links) and (links.min() < 0 or links.max() >= len(points)):
        what = "edges" if kind == "graph" else "faces"
        raise DataError(f"{what} name rows {int(links.min())} to {int(links.max())}; there are {len(points)} vertices")
    objects, row, found_groups = object_rows(object_ids, len(points), object_attributes, *groups)
    columns = columns_of(attributes["vertex"], len(points), "vertices")
    of_links = columns_of(attributes["link"], len(links), "edges" if kind == "graph" else "faces")
    chosen = prepare(points, settings)
    keys, cell = unique_rows(chunks_of(points, chosen.chunk_shape))
    content, order = by_object(points, columns, keys, cell, row, objects)
    stored = inverse(order)
    endpoints = stored[links] if len(links) else links
    content = content.changed(links={0: Links(endpoints, of_links)}, groups=found_groups)
    store_content(path, content, kind, chosen, settings)


def _links(found: Found, width: int, names: Names) -> tuple[Ints, dict[str, npt.NDArray[Any]]]:
    """Links between found rows, as numbers among these, and their attributes."""
    links = load_links(found.level, found.content, attributes=names)
    if links is None:
        return np.zeros((0, width), np.int64), {}
    number = np.full(len(found.content.positions) + 1, -1, np.int64)
    number[found.rows] = np.arange(len(found.rows))
    endpoints = number[links.endpoints]
    kept = np.flatnonzero((endpoints >= 0).all(axis=1))
    columns: Mapping[str, Column] = links.attributes
    return endpoints[kept], {name: column.take(kept).decoded() for name, column in columns.items()}


def _graph(level: Level, query: Query, of_edges: Names) -> Graph:
    check_geometry(level, "graph", "skeleton", "point_cloud")
    found = run_query(level, query, fragments=True)
    if level.owner.root.geometry_types[:1] == ("skeleton",):
        skeleton = _skeleton(found, query.attributes)
        return Graph(skeleton.positions, skeleton.edges, skeleton.attributes, {}, skeleton.object_ids)
    links, columns = _links(found, 2, of_edges)
    return Graph(_positions(found), links, _values(found, query.attributes), columns, ids_of_rows(found))


def _mesh(level: Level, query: Query, of_faces: Names) -> Mesh:
    check_geometry(level, "mesh")
    found = run_query(level, query, fragments=True)
    links, columns = _links(found, 3, of_faces)
    return Mesh(_positions(found), links, _values(found, query.attributes), columns, ids_of_rows(found))


def _in_space(level: Level, query: Query, world: bool) -> Skeleton:
    check_geometry(level, "skeleton")
    skeleton = _skeleton(run_query(level, query, fragments=True), query.attributes)
    offset = level.owner.root.block.get("coordinate_offset")
    if not world or offset is None:
        return skeleton
    moved = skeleton.positions.astype(np.float64) + np.asarray(offset, np.float64)
    return Skeleton(moved, skeleton.parents, skeleton.attributes, skeleton.object_ids)


def _skeleton(found: Found, attributes: Names) -> Skeleton:
    parents = parents_of(found.content, load_links(found.level, found.content))
    number = np.full(len(found.content.positions) + 1, -1, np.int64)
    number[found.rows] = np.arange(len(found.rows))
    return Skeleton(_positions(found), number[parents[found.rows]], _values(found, attributes), ids_of_rows(found))


def _positions(found: Found) -> npt.NDArray[Any]:
    return found.content.positions[found.rows]


def _values(found: Found, attributes: Names) -> dict[str, npt.NDArray[Any]]:
    return values_of(found.content.vertex_attributes, found.rows, attributes)
