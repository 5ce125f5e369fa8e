"""Skeletons: writing, adding to and reading."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Unpack, cast

import numpy as np
import numpy.typing as npt

from zardine.buffers import Ints
from zardine.errors import DataError
from zardine.stores.resolve import StoreLike
from zardine.vectors.changing.appending import add, ids_to_add_to, new_points, objects_for, open_to_add
from zardine.vectors.changing.asking_ahead import ask_for_cells, of_addition
from zardine.vectors.changing.creating import GivenObjects, StoreOptions, check_options, new_objects
from zardine.vectors.changing.large_stores import Lines, store_trees
from zardine.vectors.changing.one_writer import alone_asking, repeated
from zardine.vectors.changing.values import write_value
from zardine.vectors.content.arguments import Attributes, Box, GroupsLike, checked_parents, plain_array, plain_ids
from zardine.vectors.content.columns import checked_mapping, columns_of
from zardine.vectors.content.grouping import gains_of
from zardine.vectors.content.parts import ABOVE, Vertices, loaded
from zardine.vectors.content.run_content import parents_of, skeleton_content
from zardine.vectors.reading.ahead import expected_of
from zardine.vectors.reading.answer import Found, check_geometry, ids_of_rows, run_query, values_of
from zardine.vectors.reading.loading_links import expect_links, load_links
from zardine.vectors.reading.query import ALL, Names, Query, Where
from zardine.vectors.reading.rereading import read_steadily
from zardine.vectors.results import Skeleton
from zardine.vectors.storing.level_in_parts import Step
from zardine.vectors.storing.store import Level


def write_skeleton(
    path: StoreLike,
    positions: npt.ArrayLike,
    parents: npt.ArrayLike,
    *,
    vertex_attributes: Attributes = None,
    object_ids: npt.ArrayLike | None = None,
    object_attributes: Attributes = None,
    groups: GroupsLike = None,
    group_attributes: Attributes = None,
    dtype: npt.DTypeLike | None = None,
    **options: Unpack[StoreOptions],
) -> None:
    """Write trees to a new store: vertices ``(N, D)`` and for each the row of its parent, -1 for roots.

    An object may have several roots. Everything else as in :func:`write_graph`.
    """
    arrays = plain_array(positions, "positions"), plain_array(parents, "parents")
    value = Skeleton(*arrays, checked_mapping(vertex_attributes) or {}, plain_ids(object_ids))
    given = GivenObjects(None, object_attributes, groups, group_attributes)
    write_value(path, value, "skeleton", given, options, dtype)


def write_spooled_trees(
    path: StoreLike,
    spool: Vertices,
    lengths: Ints,
    ids: Ints,
    options: Mapping[str, Any],
    step: Step,
    origin: str | None = None,
) -> None:
    """Write skeletons that came piece by piece, object by object in the order of ``ids``, to a new store.

    Their parents are the column :data:`~zardine.vectors.content.parts.ABOVE`. ``options`` are those of
    :func:`write_skeleton`; with other ids, attributes of vertices, or another data type they must fit in memory.
    ``origin`` as in :func:`~zardine.vectors.changing.large_stores.store_points`.
    """
    own = ("object_attributes", "groups", "group_attributes")
    plain = cast(StoreOptions, {name: value for name, value in options.items() if name not in own})
    if set(options) & {"object_ids", "vertex_attributes"} or options.get("dtype") is not None:
        positions, columns = loaded(spool)
        above = columns[ABOVE].values.astype(np.int64)
        parents = np.where(above != 0, np.arange(len(above)) - above, -1)
        decoded = {name: column.decoded() for name, column in columns.items() if name != ABOVE}
        given = {"object_ids": np.repeat(ids, lengths), "vertex_attributes": decoded}
        write_skeleton(path, positions, parents, **{**given, **options})
        step(1)
        return
    check_options(plain)
    objects = new_objects(GivenObjects(ids, *(options.get(name) for name in own)), len(ids))
    store_trees(path, Lines(spool, lengths, *objects), plain, step, origin)


@repeated
@alone_asking(of_addition)
def append_skeleton(
    path: StoreLike,
    positions: npt.ArrayLike,
    parents: npt.ArrayLike,
    *,
    vertex_attributes: Attributes = None,
    object_ids: npt.ArrayLike | None = None,
    object_attributes: Attributes = None,
    groups: GroupsLike = None,
) -> None:
    """Add trees to a store of skeletons; ``parents`` are rows of the new vertices, -1 for roots.

    Everything else as in :func:`append_graph`.
    """
    level = open_to_add(path, "append_skeleton", "skeleton")
    points = new_points(positions, level)
    above = checked_parents(parents, len(points))
    children = np.flatnonzero(above >= 0)
    ask_for_cells(level, points, lambda: np.stack([children, above[children]], axis=1), only_across=True)
    known = ids_to_add_to(level)
    objects, row, of_objects = objects_for(object_ids, object_attributes, points, known)
    if (row[above[above >= 0]] != row[above >= 0]).any():
        raise DataError("a vertex and its parent belong to different objects")
    columns = columns_of(vertex_attributes, len(points), "vertices")
    gains = gains_of(groups, objects.ids, numbered=object_ids is None)
    if len(points):
        content = skeleton_content(points, columns, above, row, level.document.chunk_shape, objects)
        add(level, content, known, of_objects, gains=gains)


def read_skeleton(
    path: StoreLike,
    *,
    level: int = 0,
    bbox: Box = None,
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
    expected = expected_of(query, objects=True, links=True)
    return read_steadily(path, level, lambda opened: _in_space(opened, query, world), expected)


def _in_space(level: Level, query: Query, world: bool) -> Skeleton:
    check_geometry(level, "skeleton")
    expect_links(level)
    skeleton = skeleton_of(run_query(level, query, fragments=True), query.attributes)
    offset = level.owner.root.block.get("coordinate_offset")
    if not world or offset is None:
        return skeleton
    moved = skeleton.positions.astype(np.float64) + np.asarray(offset, np.float64)
    return Skeleton(moved, skeleton.parents, skeleton.attributes, skeleton.object_ids)


def skeleton_of(found: Found, attributes: Names) -> Skeleton:
    """The vertices that were found, and for each its parent among them."""
    parents = parents_of(found.content, load_links(found.level, found.content))
    number = np.full(len(found.content.positions) + 1, -1, np.int64)
    number[found.rows] = np.arange(len(found.rows))
    values = values_of(found.content.vertex_attributes, found.rows, attributes)
    return Skeleton(found.content.positions[found.rows], number[parents[found.rows]], values, ids_of_rows(found))
