"""Stores that many processes write at the same time, each the cells of its own boxes: as plans of jobs."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypedDict, Unpack

import numpy as np
import numpy.typing as npt

from zardine.errors import DataError
from zardine.hierarchy.find import find_node, taken
from zardine.hierarchy.place import find_place
from zardine.jobs.places import Place
from zardine.jobs.plan import Plan, PlanStatus
from zardine.jobs.running import ExecutorLike
from zardine.stores.resolve import StoreLike
from zardine.vectors.changing.cell_jobs import CellSource, CellsWork, name_of
from zardine.vectors.changing.creating import new_store, prepare, rank_of
from zardine.vectors.content.arguments import Box, checked_positions
from zardine.vectors.content.changes import LINES
from zardine.vectors.content.column_types import ColumnTypesLike, column_types
from zardine.vectors.format.layouts import Shards, fitting_shards, shards_from
from zardine.vectors.writing import Layout, Space, kind_named, options_of

_USUAL = 8
"""Chunks of a job along each axis, where there are no shards."""


class CellKeywords(TypedDict, total=False):
    """What :func:`write_cells` and :func:`plan_write_cells` are asked for; see the latter."""

    bounds: Box
    layout: Layout
    space: Space | None
    dtype: npt.DTypeLike
    attributes: ColumnTypesLike
    objects: bool
    object_attributes: ColumnTypesLike
    renumber: bool
    job_shape: Shards
    max_vertices: int
    arguments: Mapping[str, Any] | None
    storage_options: Mapping[str, Any] | None


def write_cells(
    path: StoreLike,
    source: CellSource | str,
    kind: str = "points",
    *,
    executor: ExecutorLike | None = None,
    workers: int | None = None,
    progress: Callable[[int, int], object] | None = None,
    **options: Unpack[CellKeywords],
) -> PlanStatus:
    """Write points or lines to a new store by many processes: ``source`` is called for each box, wherever that is.

    The arguments are those of :func:`plan_write_cells`; ``executor``, ``workers`` and ``progress`` (of chunks) those of
    :meth:`zardine.jobs.Plan.run`. Interrupted or killed, the same call goes on.
    """
    return plan_write_cells(path, source, kind, **options).run(executor, workers=workers, progress=progress)


def plan_write_cells(
    path: StoreLike, source: CellSource | str, kind: str = "points", **options: Unpack[CellKeywords]
) -> Plan:
    """Return a plan of jobs that write a new store of points or lines together. Nothing is written yet.

    Space is cut into boxes of whole shards, a job for each. A job calls ``source(box)``, ``box`` being the lowest and
    the highest corner, and stores what that gives: :class:`Points` or :class:`Polylines`, or ``None`` for nothing.
    Points on an upper face of the box are of the next one: they are left out, and have to be given again there; those
    on the upper ``bounds`` are of the last one. No box is without thickness. Nothing is seen of the store before
    :meth:`~zardine.jobs.Plan.finish`, which :meth:`~zardine.jobs.Plan.run` calls in the end.

    - ``source``: a function at the top of a module, or its name as ``"module:function"``. It has to give the same
      whenever it is called for a box: a job that was killed runs again. ``arguments`` are given to it by name; JSON.
    - ``kind``: ``"points"``, ``"lines"``, ``"polylines"`` or ``"streamlines"``. A line has to lie in one box.
    - ``bounds``: lowest and highest corner of the store, both included; the same as those of ``space``.
    - ``layout``: its ``chunk_shape`` is needed. ``dtype``: of positions, ``"float32"`` or ``"float64"``.
    - ``attributes``: the types of those of vertices by name: ``"float32"``, ``("uint8", 3)`` for three values, or a
      list of all texts that there may be. ``object_attributes``: of lines; also ``"text"``.
    - ``objects``: whether points have ``object_ids``; an object may be in many boxes. Ids of lines are distinct, unless
      ``renumber`` lets them be numbered from 0, in the order of boxes.
    - ``job_shape``: chunks of a box along each axis, whole shards (default: one, or 8 chunks without shards).
    - ``max_vertices``: that a job may have, from which its memory is forecast; more are an error.

    ``space`` may say ``out_of_bounds="ignore"``: then points outside of the box are left out, and no error.

    Raises :class:`~zardine.errors.DataError` for unusable arguments, and
    :class:`~zardine.errors.NodeExistsError` where something is stored.
    """
    unknown = sorted(set(options) - set(CellKeywords.__annotations__))
    if unknown:
        raise TypeError(f"unexpected argument {unknown[0]!r}; there are {', '.join(CellKeywords.__annotations__)}")
    named, layout, where = kind_named(kind), options.get("layout"), options.get("space") or Space()
    if named not in ("point_cloud", *LINES):
        raise DataError(f"points and lines can be written by jobs, not {named}")
    if where.bounds is not None and options.get("bounds") is not None:
        raise DataError("bounds are given twice: as an argument, and in space")
    where = replace(where, bounds=options["bounds"]) if options.get("bounds") is not None else where
    if where.bounds is None or not isinstance(layout, Layout) or layout.chunk_shape is None:
        raise DataError(
            "give bounds=(lowest, highest corner) and layout=Layout(chunk_shape=...): jobs are cut by these"
        )
    if where.out_of_bounds == "expand":
        raise DataError("out_of_bounds='expand' is not for jobs: each knows its own box alone")
    if named in LINES and where.out_of_bounds == "ignore":
        raise DataError("out_of_bounds='ignore' leaves out points; lines stay whole")
    request = _request(named, layout, where, options)
    storage = options.get("storage_options")
    store, inner = find_place(path, mode="a", storage_options=storage)
    arguments = _plain(options.get("arguments"))
    function = None if isinstance(source, str) else source
    work = CellsWork(Place.of(store, inner, path), name_of(source), function, arguments, request)
    plan = Plan(work.checked())
    node = find_node(store, inner)
    if node is not None and not work.is_finished(plan.id):
        raise taken(store, inner, node, "erase it first, or choose another place")
    return plan


def _plain(arguments: Any) -> dict[str, Any]:
    try:
        found = json.loads(json.dumps({} if arguments is None else arguments, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise DataError(f"arguments of a function in a plan are JSON: {error}") from None
    if not isinstance(found, dict):
        raise DataError(f"arguments are a table of values by name, not {arguments!r}")
    return found


def _request(kind: str, layout: Layout, space: Space, options: CellKeywords) -> dict[str, Any]:
    plain = options_of(layout, space, overwrite=False)
    plain["out_of_bounds"] = "raise"
    rank = rank_of(plain) or 0
    dtype = checked_positions(np.zeros((0, rank)), options.get("dtype", "float32")).dtype
    prepared = prepare(np.zeros((0, rank), dtype), plain, may_ignore=True)
    grid = new_store(kind, np.zeros((0, rank), np.int64), prepared, plain).grid
    shards = fitting_shards(grid.layout.shard_shape, grid.shape)
    block = shards_from(options.get("job_shape"), rank) or (
        tuple(min(_USUAL, length) for length in grid.shape) if shards is None else shards
    )
    if options.get("objects") and kind in LINES:
        raise DataError("objects=True is for points: each line is an object")
    if options.get("object_attributes") and kind not in LINES:
        raise DataError("object_attributes are of lines; see vectors.set_attribute(..., kind='object') for points")
    return {
        "kind": kind,
        "bounds": [list(map(float, corner)) for corner in prepared.bounds],
        "chunk_shape": list(prepared.chunk_shape),
        "bin_shape": None if prepared.bin_shape is None else list(prepared.bin_shape),
        "shard_shape": None if grid.layout.shard_shape is None else list(grid.layout.shard_shape),
        "codecs": [codec.to_json() for codec in grid.layout.compressors],
        "axes": prepared.axes,
        "crs": None if space.crs is None else _plain(space.crs),
        "dtype": dtype.name,
        "attributes": column_types(options.get("attributes"), any_text=False),
        "object_attributes": column_types(options.get("object_attributes"), any_text=True),
        "objects": bool(options.get("objects", False)),
        "renumber": bool(options.get("renumber", False)),
        "outside": space.out_of_bounds,
        "job_shape": list(block),
        "max_vertices": options.get("max_vertices", 2**21),
    }


__all__ = ["CellKeywords", "plan_write_cells", "write_cells"]
