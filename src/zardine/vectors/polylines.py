"""Polylines, streamlines and lines: writing and reading."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import Any, Literal, Unpack, cast

import numpy as np
import numpy.typing as npt

from zardine.buffers import Ints
from zardine.engine.side_by_side import begun
from zardine.errors import DataError, SelectionError
from zardine.stores.resolve import StoreLike
from zardine.vectors.changing.appending import add, new_ids, new_points, open_to_add
from zardine.vectors.changing.asking_ahead import ask_for_cells, of_addition
from zardine.vectors.changing.creating import GivenObjects, StoreOptions, check_options, new_objects, rank_of
from zardine.vectors.changing.large_stores import Lines, store_lines
from zardine.vectors.changing.levels import kind_of
from zardine.vectors.changing.one_writer import alone_asking, repeated
from zardine.vectors.changing.values import checked_kind, write_value
from zardine.vectors.content.arguments import Attributes, Box, GroupsLike, plain_array
from zardine.vectors.content.changes import LINES
from zardine.vectors.content.columns import Column, checked_mapping, columns_of
from zardine.vectors.content.grouping import gains_of
from zardine.vectors.content.parts import Vertices, loaded
from zardine.vectors.content.run_content import joined_columns, joined_lines, polyline_content
from zardine.vectors.format.ragged import ranges, rows_at, starts_of
from zardine.vectors.reading.ahead import expected_of
from zardine.vectors.reading.answer import check_geometry, crs_of, find_objects, resolve, values_of
from zardine.vectors.reading.loading_objects import (
    expect_tables,
    known_ids,
    load_object_tables,
    load_tables,
    rows_of_objects,
)
from zardine.vectors.reading.manifests import Manifests
from zardine.vectors.reading.query import ALL, Names, Query, QueryOptions, Where, checked_names
from zardine.vectors.reading.rereading import read_steadily
from zardine.vectors.reading.whole_objects import read_whole
from zardine.vectors.results import Polylines
from zardine.vectors.storing.level_in_parts import Step
from zardine.vectors.storing.store import Level


def write_polylines(
    path: StoreLike,
    polylines: Sequence[npt.ArrayLike],
    *,
    geometry_type: Literal["streamline", "polyline", "line"] = "streamline",
    vertex_attributes: Attributes = None,
    object_ids: npt.ArrayLike | None = None,
    object_attributes: Attributes = None,
    groups: GroupsLike = None,
    group_attributes: Attributes = None,
    dtype: npt.DTypeLike | None = None,
    **options: Unpack[StoreOptions],
) -> None:
    """Write lines to a new store at ``path``: each an array ``(vertices, D)``.

    - ``vertex_attributes``: for each name a list with the values of each line, or the values of all lines in a row.
    - ``object_ids``: an id for each line (default: its number). ``object_attributes``: a row for each line.

    ``options`` are ``chunk_shape``, ``bin_shape``, ``shard_shape``, ``codec_config``, ``compressor``, ``checksum``,
    ``bounds``, ``out_of_bounds``, ``axes``, ``crs`` and ``overwrite``, as in :func:`write_points`; so are groups and
    errors. Lines are whole: ``out_of_bounds`` cannot be ``"ignore"``.
    """
    checked_kind(geometry_type, np.zeros(0, np.int64))
    whole, lengths = joined_lines(polylines, rank_of(options))
    ids = np.arange(len(lengths)) if object_ids is None else plain_array(object_ids, "object_ids")
    columns = joined_columns(vertex_attributes, lengths) or {}, checked_mapping(object_attributes) or {}
    value = Polylines(whole, starts_of(lengths), ids, *columns)
    given = GivenObjects(None, None, groups, group_attributes)
    write_value(path, value, geometry_type, given, options, dtype)


def write_spooled_lines(
    path: StoreLike,
    spool: Vertices,
    lengths: Ints,
    options: Mapping[str, Any],
    step: Step,
    origin: str | None = None,
) -> None:
    """Write lines whose vertices came piece by piece; ``options`` are those of :func:`write_polylines`.

    With other attributes of vertices, or another data type, they must fit in memory. ``origin`` as in
    :func:`~zardine.vectors.changing.large_stores.store_points`.
    """
    if "vertex_attributes" in options or options.get("dtype") is not None:
        positions, columns = loaded(spool)
        decoded = {name: column.decoded() for name, column in columns.items()}
        lines = np.split(positions, np.cumsum(lengths)[:-1]) if len(lengths) else []
        write_polylines(path, lines, **{"vertex_attributes": decoded, **options})
        step(1)
        return
    own = ("geometry_type", "object_ids", "object_attributes", "groups", "group_attributes", "dtype")
    plain = cast(StoreOptions, {name: value for name, value in options.items() if name not in own})
    check_options(plain)
    kind = checked_kind(options.get("geometry_type", "streamline"), lengths)
    given = GivenObjects(*(options.get(name) for name in own[1:5]))
    store_lines(path, Lines(spool, lengths, *new_objects(given, len(lengths))), kind, plain, step, origin)


@repeated
@alone_asking(of_addition)
def append_polylines(
    path: StoreLike,
    polylines: Sequence[npt.ArrayLike],
    *,
    vertex_attributes: Attributes = None,
    object_ids: npt.ArrayLike | None = None,
    object_attributes: Attributes = None,
    groups: GroupsLike = None,
) -> None:
    """Add lines to a store of lines; ``object_ids`` are new ones (default: on from the highest).

    ``groups`` name lines by ``object_ids``, or where these are left out by their numbers from 0 on.
    A store of straight lines takes lines of two vertices. Everything else as in :func:`append_points`.
    """
    level = open_to_add(path, "append_polylines", *LINES)
    known = known_ids(level)
    if known is None:
        raise DataError(f"{level.owner.name} has no object index, which says what its lines are")
    whole, lengths = joined_lines(polylines, level.owner.root.ndim)
    points = new_points(whole, level)
    goes_on = np.ones(len(points), np.bool_)
    goes_on[starts_of(lengths)[:-1][lengths > 0]] = False
    later = np.flatnonzero(goes_on)
    ask_for_cells(level, points, lambda: np.stack([later - 1, later], axis=1), only_across=True)
    if kind_of(level) == "line" and (lengths != 2).any():
        which = int(np.flatnonzero(lengths != 2)[0])
        raise DataError(f"{level.owner.name} holds straight lines; line {which} has {lengths[which]} vertices, not 2")
    columns = columns_of(joined_columns(vertex_attributes, lengths), len(points), "vertices")
    ids = new_ids(object_ids, len(lengths), known)
    objects, _ = new_objects(GivenObjects(ids, object_attributes), len(ids))
    gains = gains_of(groups, ids, numbered=object_ids is None)
    if len(lengths):
        content = polyline_content(points, columns, lengths, level.document.chunk_shape, objects)
        add(level, content, known, objects.attributes, gains=gains)


class LineOptions(StoreOptions, total=False):
    """Options of :func:`write_polylines` for whoever hands them on."""

    vertex_attributes: Attributes
    object_ids: npt.ArrayLike | None
    object_attributes: Attributes
    groups: GroupsLike
    group_attributes: Attributes
    dtype: npt.DTypeLike | None


def write_lines(path: StoreLike, endpoints: npt.ArrayLike, **options: Unpack[LineOptions]) -> None:
    """Write straight lines: ``endpoints`` of shape ``(N, 2, D)``. ``options`` as in :func:`write_polylines`.

    ``vertex_attributes`` have two rows for each line.
    """
    array = plain_array(endpoints, "endpoints")
    if array.ndim != 3 or array.shape[1] != 2:
        raise DataError(f"endpoints of lines are of shape (N, 2, D), not {array.shape}")
    if "geometry_type" in options:
        raise TypeError("unexpected argument 'geometry_type': see write_polylines")
    attributes = checked_mapping(options.get("vertex_attributes"))
    if attributes is not None:
        options["vertex_attributes"] = {name: _flat(values, len(array)) for name, values in attributes.items()}
    if len(array) == 0 and options.get("bounds") is None:
        raise DataError("there are no lines: give bounds=(lowest, highest corner) for an empty store")
    write_polylines(path, list(array), geometry_type="line", **options)


def read_polylines(
    path: StoreLike,
    *,
    level: int = 0,
    bbox: Box = None,
    object_ids: Collection[int] | None = None,
    group_ids: Collection[int] | None = None,
    chunks: Collection[Sequence[int]] | None = None,
    where: Where = None,
    attributes: Names = ALL,
    object_attributes: Names = ALL,
) -> Polylines:
    """Read whole lines, in the order of the object index; those for which everything holds that is given.

    - ``bbox``, ``chunks``, ``where``: lines with a vertex in the closed box, in one of the chunks, with such values of
      its attributes; all that is given must hold for one and the same vertex. ``where`` knows attributes of lines, too.
    - ``object_ids``, ``group_ids``: these lines.

    The other arguments, and errors, are those of :func:`read_points`.
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
    of_objects = checked_names(object_attributes, "object_attributes")
    expected = expected_of(query, objects=True, of_objects=of_objects)
    return read_steadily(path, level, lambda opened: _polylines(opened, query, of_objects), expected)


def _polylines(level: Level, query: Query, of_objects: Names) -> Polylines:
    check_geometry(level, "line", "polyline", "streamline")
    expect_tables(level, of_objects)
    asked = resolve(level, query)
    level = asked.level
    whole = read_whole(asked)
    if whole is not None:
        tables = load_object_tables(level, whole.manifests, of_objects)
        columns = {name: column.decoded() for name, column in whole.vertex_attributes.items()}
        return _made(level, whole.manifests, (whole.positions, whole.starts), columns, tables)
    if asked.manifests is None:
        raise SelectionError(f"{level.owner.name} has no lines: level {query.level} has no object index")
    load = partial(load_tables, level, "object_attributes", asked.manifests.row_count, of_objects)
    of_lines, of_tables = begun(level.owner.store, (partial(find_objects, asked), load))
    found = of_lines()
    assert found is not None  # since there are manifests
    content, manifests = found.content, found.manifests
    starts, rows = content.rows_of_objects()
    columns = values_of(content.vertex_attributes, rows, query.attributes)
    tables = rows_of_objects(of_tables(), manifests)
    return _made(level, manifests, (rows_at(content.positions, rows), starts), columns, tables)


def _made(
    level: Level,
    manifests: Manifests,
    vertices: tuple[npt.NDArray[Any], npt.NDArray[np.int64]],
    columns: dict[str, npt.NDArray[Any]],
    tables: dict[str, Column],
) -> Polylines:
    """What was read of lines: ``vertices`` are positions, and where those of each line start."""
    of_lines = {name: column.decoded() for name, column in tables.items()}
    return Polylines(*vertices, manifests.ids.copy(), columns, of_lines, crs_of(level))


class LineQuestions(QueryOptions, total=False):
    """Options of :func:`read_polylines` for whoever hands them on."""

    object_attributes: Names


def read_lines(path: StoreLike, **options: Unpack[LineQuestions]) -> npt.NDArray[Any]:
    """Read the endpoints of straight lines, ``(N, 2, D)``. ``options`` as in :func:`read_polylines`."""
    found = read_polylines(path, **options)
    lengths = np.diff(found.starts)
    if (lengths != 2).any():
        raise DataError(f"line {int(np.flatnonzero(lengths != 2)[0])} has not 2 vertices: see read_polylines")
    rows = ranges(found.starts[:-1], lengths)
    assert len(rows) == int(starts_of(lengths)[-1])
    return found.positions[rows].reshape(-1, 2, found.positions.shape[1])


def _flat(values: Any, count: int) -> Any:
    array = plain_array(values, "vertex_attributes")
    return array.reshape(2 * count, *array.shape[2:]) if array.shape[:2] == (count, 2) else array
