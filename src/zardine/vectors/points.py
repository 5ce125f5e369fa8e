"""Points: writing and reading."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Unpack, cast

import numpy as np
import numpy.typing as npt

from zardine.errors import DataError, UnsupportedError
from zardine.stores.resolve import StoreLike
from zardine.vectors.changing.appending import add, checked_kind, new_points
from zardine.vectors.changing.asking_ahead import ask_for_cells, of_points
from zardine.vectors.changing.creating import GivenObjects, StoreOptions, new_objects
from zardine.vectors.changing.large_stores import store_points
from zardine.vectors.changing.levels import open_to_change
from zardine.vectors.changing.one_writer import alone_asking, repeated
from zardine.vectors.changing.values import write_value
from zardine.vectors.content.arguments import Attributes, Box, GroupsLike, checked_ids, plain_array, plain_ids
from zardine.vectors.content.changes import plain_points
from zardine.vectors.content.columns import checked_mapping, columns_of
from zardine.vectors.content.content import Content
from zardine.vectors.content.grouping import gains_of
from zardine.vectors.content.parts import Vertices, loaded
from zardine.vectors.content.point_content import by_object
from zardine.vectors.format.grids import distinct_chunks_of
from zardine.vectors.format.ragged import rows_at
from zardine.vectors.reading.ahead import expected_of
from zardine.vectors.reading.answer import crs_of, ids_of_rows, run_query, values_of
from zardine.vectors.reading.loading_objects import known_ids
from zardine.vectors.reading.query import ALL, Names, Query, Where
from zardine.vectors.reading.rereading import read_steadily
from zardine.vectors.results import Points
from zardine.vectors.storing.level_in_parts import Step
from zardine.vectors.storing.store import Level


def write_points(
    path: StoreLike,
    positions: npt.ArrayLike,
    *,
    vertex_attributes: Attributes = None,
    object_ids: npt.ArrayLike | None = None,
    object_attributes: Attributes = None,
    groups: GroupsLike = None,
    group_attributes: Attributes = None,
    dtype: npt.DTypeLike | None = None,
    **options: Unpack[StoreOptions],
) -> None:
    """Write points to a new store at ``path``.

    - ``positions``: ``(N, D)``, D from 1 to 4, finite. float32 and float64 stay as they are, unless ``dtype`` says.
    - ``vertex_attributes``: for each name ``(N,)`` or ``(N, channels)`` numbers, or text.
    - ``object_ids``: ``(N,)`` 64-bit integers. ``object_attributes`` have a row for each distinct id, ascending.
    - ``groups``: lists of object ids, or such by names; ``group_attributes`` have a row for each.

    With object attributes or groups, and without ids, each point is an object.

    ``options``, the same for every geometry:

    - ``chunk_shape``: size of a chunk in the units of the positions; left out, about 8,192 vertices make a chunk.
    - ``bin_shape``: divides ``chunk_shape`` (default: the same). A coarser level has a vertex for each bin, times its
      factor; points that are part of no object are ordered by bins.
    - ``shard_shape``: chunks in one stored object, along each axis or along all; ``1`` or ``None``: one. Cut to the
      grid, but not below 8.
    - ``compressor``: codecs such as ``"zstd"``; none if left out. ``codec_config``: the same as a list of codecs, or as
      a Zarr array document has it. ``checksum``: whether a ``crc32c`` ends every cell, so that changed bytes are
      noticed (default: yes, unless ``codec_config`` is given; then that says all).
    - ``bounds``: lowest and highest corner, both included (default: those of the positions).
    - ``out_of_bounds``: whether positions outside are an error (``"raise"``), make the bounds larger (``"expand"``) or,
      of points alone, are left out (``"ignore"``).
    - ``axes``: names of the axes, or a table for each, with ``unit``. ``crs``: a table of what the coordinates are.
    - ``overwrite``: whether what is stored at ``path`` is replaced.

    Raises :class:`~zardine.errors.DataError` for unusable arguments before anything is written,
    :class:`~zardine.errors.NodeExistsError` where something is stored and ``overwrite`` is false.
    """
    columns = checked_mapping(vertex_attributes) or {}
    value = Points(plain_array(positions, "positions"), columns, plain_ids(object_ids))
    given = GivenObjects(None, object_attributes, groups, group_attributes)
    write_value(path, value, "point_cloud", given, options, dtype)


def write_spooled_points(
    path: StoreLike, spool: Vertices, options: Mapping[str, Any], step: Step, origin: str | None = None
) -> None:
    """Write points that came piece by piece; ``options`` are those of :func:`write_points`, also attributes and ids.

    With attributes or ids the points must fit in memory. ``origin`` as in
    :func:`~zardine.vectors.changing.large_stores.store_points`.
    """
    plain = {name: value for name, value in options.items() if name != "dtype"}
    if not set(plain) - set(StoreOptions.__annotations__):
        store_points(path, spool, cast(StoreOptions, plain), step, origin)
        return
    positions, columns = loaded(spool)
    decoded = {name: column.decoded() for name, column in columns.items()}
    write_points(path, positions, **{"vertex_attributes": decoded, **options})
    step(1)


def append_points(
    path: StoreLike,
    positions: npt.ArrayLike,
    *,
    vertex_attributes: Attributes = None,
    object_ids: npt.ArrayLike | None = None,
    object_attributes: Attributes = None,
    groups: GroupsLike = None,
) -> None:
    """Add points to a store of points. Bounds and grid grow where that is needed.

    Attributes that are not given for the new points, or were not there before, get fill values (NaN, 0, missing text);
    those of objects are absent (NaN, the lowest integer or, without a sign, the highest, ``""``).
    Where the store has objects, ``object_ids`` are needed; known ids add to these objects, and ``object_attributes``
    have a row for each distinct new id, ascending. ``groups``: lists of ids of what is added, in order, by number or by
    name, as :func:`write_points` takes them; groups that are there gain these, others are new.

    Raises as :func:`write_points`, and :class:`~zardine.errors.DataError` for a store of another geometry, before
    anything is written.
    """
    _append_points(path, positions, vertex_attributes, object_ids, object_attributes, groups)


@repeated
@alone_asking(of_points)
def _append_points(
    path: StoreLike,
    positions: npt.ArrayLike,
    vertex_attributes: Attributes,
    object_ids: npt.ArrayLike | None,
    object_attributes: Attributes,
    groups: GroupsLike,
) -> None:
    level = checked_kind(open_to_change(path), "append_points", "point_cloud")
    points = new_points(positions, level)
    ask_for_cells(level, points)
    columns = columns_of(vertex_attributes, len(points), "points")
    known = known_ids(level)
    if (object_ids is not None) != (known is not None):
        reason = "has objects: give object_ids" if known is not None else "has no objects: leave object_ids out"
        raise DataError(f"{level.owner.name} {reason}")
    if known is None:
        if level.names("fragment_attributes") or level.attributes("links/0") is not None:
            what = "fragments have attributes" if level.names("fragment_attributes") else "points have links"
            raise UnsupportedError(f"nothing can be added to {level.owner.name}: its {what}, and it has no objects")
        if checked_mapping(object_attributes) or groups is not None:
            name = "object_attributes" if object_attributes else "groups"
            raise DataError(f"{level.owner.name} has no objects: leave {name} out")
        if len(points) == 0:
            return
        shapes = level.document.chunk_shape, level.owner.root.bin_shape

        def in_bins(both: Content) -> Content:
            return plain_points(both.positions, both.vertex_attributes, both.visible(), *shapes)

        add(level, plain_points(points, columns, None, *shapes), remake=in_bins)
        return
    ids = checked_ids(object_ids, len(points), "object_ids")
    distinct, row = np.unique(ids, return_inverse=True)
    fresh = distinct[known.rows_of(distinct) < 0]
    keys, cell = distinct_chunks_of(points, level.document.chunk_shape)
    objects, _ = new_objects(GivenObjects(distinct), len(distinct))
    content, _ = by_object(points, columns, keys, cell, row.reshape(-1), objects)
    given = columns_of(object_attributes, len(fresh), "new objects (one for each distinct new id)")
    gains = gains_of(groups, distinct, numbered=False)
    if len(points):
        add(level, content, known, given, gains=gains)


def read_points(
    path: StoreLike,
    *,
    level: int = 0,
    bbox: Box = None,
    object_ids: Collection[int] | None = None,
    group_ids: Collection[int] | None = None,
    chunks: Collection[Sequence[int]] | None = None,
    where: Where = None,
    attributes: Names = ALL,
) -> Points:
    """Read points: those for which everything holds that is given. They come chunk by chunk, as they are stored.

    - ``bbox``: lowest and highest corner of a closed box: points on its faces are in it.
    - ``object_ids``, ``group_ids``: points of these objects, and of the objects in these groups.
    - ``chunks``: integer coordinates of chunks.
    - ``where``: for names of attributes a value, a list of values, a ``slice(low, high)`` with both ends included, or a
      function of the values that gives truth values. Attributes are those of vertices, or else of objects, all of whose
      vertices are meant then.
    - ``attributes``: names of the attributes to read, ``"all"``, or ``None``.
    - ``level``: 0 is full resolution.

    Raises :class:`~zardine.errors.SelectionError` for what the store does not have,
    :class:`~zardine.errors.CorruptionError` for damaged cells.
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
    return read_steadily(path, level, lambda opened: _points(opened, query), expected_of(query))


def _points(level: Level, query: Query) -> Points:
    found = run_query(level, query)
    values = values_of(found.content.vertex_attributes, found.rows, query.attributes)
    whole = len(found.rows) == len(found.content.positions)
    positions = found.content.positions if whole else rows_at(found.content.positions, found.rows)
    return Points(positions, values, ids_of_rows(found), crs_of(level))
