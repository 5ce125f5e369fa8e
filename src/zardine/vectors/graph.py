"""Graphs: writing, adding to and reading."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Unpack

import numpy.typing as npt

from zardine.stores.resolve import StoreLike
from zardine.vectors.changing.appending import append_links
from zardine.vectors.changing.asking_ahead import of_addition
from zardine.vectors.changing.creating import GivenObjects, StoreOptions
from zardine.vectors.changing.large_stores import write_linked
from zardine.vectors.changing.one_writer import alone_asking, repeated
from zardine.vectors.changing.values import write_value
from zardine.vectors.content.arguments import LINK_COLUMNS, Attributes, Box, GroupsLike, one_of, plain_array, plain_ids
from zardine.vectors.content.columns import checked_mapping
from zardine.vectors.content.parts import LinksInParts, Vertices
from zardine.vectors.reading.ahead import expected_of
from zardine.vectors.reading.answer import check_geometry, ids_of_rows, links_between_rows, run_query, values_of
from zardine.vectors.reading.loading_links import expect_links
from zardine.vectors.reading.query import ALL, Names, Query, Where, checked_names
from zardine.vectors.reading.rereading import read_steadily
from zardine.vectors.results import Graph
from zardine.vectors.skeleton import skeleton_of
from zardine.vectors.storing.level_in_parts import Step
from zardine.vectors.storing.store import Level


def write_graph(
    path: StoreLike,
    positions: npt.ArrayLike,
    edges: npt.ArrayLike,
    *,
    vertex_attributes: Attributes = None,
    link_attributes: Attributes = None,
    edge_attributes: Attributes = None,
    object_ids: npt.ArrayLike | None = None,
    object_attributes: Attributes = None,
    groups: GroupsLike = None,
    group_attributes: Attributes = None,
    dtype: npt.DTypeLike | None = None,
    **options: Unpack[StoreOptions],
) -> None:
    """Write vertices ``(N, D)`` and edges ``(E, 2)`` (rows of vertices, in an order that is kept) to a new store.

    ``object_ids`` ``(N,)``: the object of each vertex (default: all are object 0). Attributes of objects have a row for
    each distinct id, ascending. ``link_attributes`` have a row for each edge; ``edge_attributes`` is another name for
    them. ``options`` and errors as in :func:`write_polylines`.
    """
    of_links = one_of(link_attributes, edge_attributes, "edge_attributes")
    columns = checked_mapping(vertex_attributes) or {}, checked_mapping(of_links) or {}
    arrays = plain_array(positions, "positions"), plain_array(edges, "edges", LINK_COLUMNS)
    value = Graph(*arrays, *columns, plain_ids(object_ids))
    given = GivenObjects(None, object_attributes, groups, group_attributes)
    write_value(path, value, "graph", given, options, dtype)


def write_spooled_graph(
    path: StoreLike,
    vertices: Vertices,
    links: LinksInParts,
    options: Mapping[str, Any],
    step: Step,
    origin: str | None = None,
) -> None:
    """Write vertices and edges that came piece by piece; ``options`` are those of :func:`write_graph`.

    One of the columns of the vertices is :data:`~zardine.vectors.content.parts.OWNER`. With other ids, attributes of
    vertices or edges, or another data type, they must fit in memory. ``origin`` as in
    :func:`~zardine.vectors.changing.large_stores.store_points`.
    """
    write_linked(path, "graph", write_graph, vertices, links, options, step, origin)


@repeated
@alone_asking(of_addition)
def append_graph(
    path: StoreLike,
    positions: npt.ArrayLike,
    links: npt.ArrayLike,
    *,
    vertex_attributes: Attributes = None,
    link_attributes: Attributes = None,
    edge_attributes: Attributes = None,
    object_ids: npt.ArrayLike | None = None,
    object_attributes: Attributes = None,
    groups: GroupsLike = None,
) -> None:
    """Add vertices and edges to a store of graphs, or faces to one of meshes; ``links`` are rows of the new vertices.

    ``object_ids`` ``(N,)``: known ids add to these objects (default: all belong to one new object).
    ``object_attributes`` have a row for each distinct new id, ascending. ``groups`` name objects by their ids; the new
    one that nobody chose an id for is number 0.
    ``edge_attributes`` is another name for ``link_attributes``. Everything else as in :func:`append_points`.
    """
    given = one_of(link_attributes, edge_attributes, "edge_attributes")
    of_objects = object_ids, object_attributes, groups
    append_links(path, "append_graph", ("graph", "mesh"), positions, links, vertex_attributes, given, *of_objects)


def read_graph(
    path: StoreLike,
    *,
    level: int = 0,
    bbox: Box = None,
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
    expected = expected_of(query, objects=True, links=True, of_links=of_edges)
    return read_steadily(path, level, lambda opened: _graph(opened, query, of_edges), expected)


def _graph(level: Level, query: Query, of_edges: Names) -> Graph:
    check_geometry(level, "graph", "skeleton", "point_cloud")
    expect_links(level, attributes=of_edges)
    found = run_query(level, query, fragments=True)
    if level.owner.root.geometry_types[:1] == ("skeleton",):
        skeleton = skeleton_of(found, query.attributes)
        return Graph(skeleton.positions, skeleton.edges, skeleton.attributes, {}, skeleton.object_ids)
    links, columns = links_between_rows(found, 2, of_edges)
    values = values_of(found.content.vertex_attributes, found.rows, query.attributes)
    return Graph(found.content.positions[found.rows], links, values, columns, ids_of_rows(found))
