"""Meshes: writing, adding to and reading."""

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
from zardine.vectors.content.arguments import Attributes, Box, GroupsLike, one_of, plain_array, plain_ids
from zardine.vectors.content.columns import checked_mapping
from zardine.vectors.content.parts import LinksInParts, Vertices
from zardine.vectors.reading.ahead import expected_of
from zardine.vectors.reading.answer import check_geometry, ids_of_rows, links_between_rows, run_query, values_of
from zardine.vectors.reading.loading_links import expect_links
from zardine.vectors.reading.query import ALL, Names, Query, Where, checked_names
from zardine.vectors.reading.rereading import read_steadily
from zardine.vectors.results import Mesh
from zardine.vectors.storing.level_in_parts import Step
from zardine.vectors.storing.store import Level


def write_mesh(
    path: StoreLike,
    positions: npt.ArrayLike,
    faces: npt.ArrayLike,
    *,
    vertex_attributes: Attributes = None,
    link_attributes: Attributes = None,
    face_attributes: Attributes = None,
    object_ids: npt.ArrayLike | None = None,
    object_attributes: Attributes = None,
    groups: GroupsLike = None,
    group_attributes: Attributes = None,
    dtype: npt.DTypeLike | None = None,
    **options: Unpack[StoreOptions],
) -> None:
    """Write vertices ``(N, D)`` and faces ``(F, corners)`` of three corners or more to a new store.

    The order of the corners is kept. ``face_attributes`` is another name for ``link_attributes``. Everything else as in
    :func:`write_graph`.
    """
    of_links = one_of(link_attributes, face_attributes, "face_attributes")
    columns = checked_mapping(vertex_attributes) or {}, checked_mapping(of_links) or {}
    arrays = plain_array(positions, "positions"), plain_array(faces, "faces")
    value = Mesh(*arrays, *columns, plain_ids(object_ids))
    given = GivenObjects(None, object_attributes, groups, group_attributes)
    write_value(path, value, "mesh", given, options, dtype)


def write_spooled_mesh(
    path: StoreLike,
    vertices: Vertices,
    links: LinksInParts,
    options: Mapping[str, Any],
    step: Step,
    origin: str | None = None,
) -> None:
    """Write vertices and faces that came piece by piece; ``options`` are those of :func:`write_mesh`.

    One of the columns of the vertices is :data:`~zardine.vectors.content.parts.OWNER`. With other ids, attributes of
    vertices or faces, or another data type, they must fit in memory. ``origin`` as in
    :func:`~zardine.vectors.changing.large_stores.store_points`.
    """
    write_linked(path, "mesh", write_mesh, vertices, links, options, step, origin)


@repeated
@alone_asking(of_addition)
def append_mesh(
    path: StoreLike,
    positions: npt.ArrayLike,
    faces: npt.ArrayLike,
    *,
    vertex_attributes: Attributes = None,
    link_attributes: Attributes = None,
    face_attributes: Attributes = None,
    object_ids: npt.ArrayLike | None = None,
    object_attributes: Attributes = None,
    groups: GroupsLike = None,
) -> None:
    """Add vertices and faces, with as many corners as those that are there, to a store of meshes.

    ``face_attributes`` is another name for ``link_attributes``. Everything else as in :func:`append_graph`.
    """
    given = one_of(link_attributes, face_attributes, "face_attributes")
    of_objects = object_ids, object_attributes, groups
    append_links(path, "append_mesh", ("mesh",), positions, faces, vertex_attributes, given, *of_objects)


def read_mesh(
    path: StoreLike,
    *,
    level: int = 0,
    bbox: Box = None,
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
    expected = expected_of(query, objects=True, links=True, of_links=of_faces)
    return read_steadily(path, level, lambda opened: _mesh(opened, query, of_faces), expected)


def _mesh(level: Level, query: Query, of_faces: Names) -> Mesh:
    check_geometry(level, "mesh")
    expect_links(level, attributes=of_faces)
    found = run_query(level, query, fragments=True)
    links, columns = links_between_rows(found, 3, of_faces)
    values = values_of(found.content.vertex_attributes, found.rows, query.attributes)
    return Mesh(found.content.positions[found.rows], links, values, columns, ids_of_rows(found))
