"""Writing whole shards, or many whole chunks, into files of their own: encoded, written and named by the kernel.

Many in one call; large shards are written while they are encoded. The kernel does the usual case only
(``rust/src/new_file.rs``): a name that is free, or a file that nobody has locked. What it leaves is written as any
other object is.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import accumulate, islice
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from zardine.buffers import Ints
from zardine.engine.change import Settled
from zardine.engine.handle import ArrayHandle
from zardine.engine.locate import INDEXES
from zardine.engine.read_ahead import window_bytes
from zardine.indexing.block import BlockPlan
from zardine.indexing.plan import ChunkPlan, GridPart, GridPlan, ObjectPart
from zardine.settings import thread_count
from zardine.sharding.layout import ShardLayout
from zardine.sharding.order import chunk_ranks

_MOST: Final = 64
"""Objects that one call of the kernel writes, and so directories that are open for it, at most."""

_MOST_BYTES: Final = 2**28
"""Bytes of the elements of these, at most, where that is more than one object for each thread: calls can be stopped
between them only."""

_DONE: Final = 1
"""What the kernel says of an object that was put into its file."""

_Wanted = tuple[GridPart, str, bool]
"""A part, its key, and whether nothing may be stored there."""


def put_whole_chunks(
    handle: ArrayHandle,
    plan: ChunkPlan,
    values: npt.NDArray[Any],
    settled: dict[str, Settled],
) -> Iterator[ObjectPart]:
    """Write what of ``plan`` is whole chunks, or shards, of which nothing stored is kept, and give its other parts.

    ``settled`` are the versions that some objects must have still, by their keys.
    """
    layout = handle.layout
    if layout.pipeline is None or not layout.fits_memory or not isinstance(plan, GridPlan):
        return plan.parts()
    shard = layout.uniform_shard
    if layout.sharding is not None and (shard is None or not shard.has_words or shard.index_memory > window_bytes()):
        return plan.parts()
    return _others(handle, plan, values.view(f"V{values.dtype.itemsize}"), settled)


def _one_by_one(handle: ArrayHandle, count: int) -> bool:
    """Whether ``count`` shards are better made one after the other, each by all threads, than one by a thread."""
    threads = thread_count()
    return count < threads or handle.layout.object_nbytes > window_bytes() // (2 * threads)


def _others(
    handle: ArrayHandle,
    plan: GridPlan,
    values: npt.NDArray[Any],
    settled: dict[str, Settled],
) -> Iterator[ObjectPart]:
    axes = plan.kernel_axes()
    parts = plan.parts()
    all_whole = handle.layout.sharding is None and all(axis.whole.all() for axis in plan.axes)
    most = min(_MOST, max(thread_count(), _MOST_BYTES // max(1, handle.layout.object_nbytes)))
    while batch := list(islice(parts, most)):
        wanted: list[_Wanted] = []
        for part in batch:
            key = handle.key(part.object)
            there = settled.get(key)
            is_new = there is not None and there.version is None
            if (is_new or there is None) and (all_whole or _is_whole(handle, part, is_new=is_new)):
                wanted.append((part, key, is_new))
            else:
                yield part
        yield from _put(handle, axes, wanted, values)


def _is_whole(handle: ArrayHandle, part: GridPart, *, is_new: bool) -> bool:
    """Whether a part is all of its object. What lies beyond the array counts, unless nothing is stored there."""
    layout = handle.layout
    beyond = handle.watched and not is_new
    if layout.uniform_shard is not None:
        count = layout.uniform_shard.count if beyond else layout.chunks_in_array(part.object)
        if part.count != count:
            return False
    return part.is_whole() if beyond else part.is_covered()


def _put(
    handle: ArrayHandle, axes: list[Any], wanted: list[_Wanted], values: npt.NDArray[Any]
) -> Collection[ObjectPart]:
    """Write these objects, and return those of which that is still to be done."""
    parts = [part for part, _, _ in wanted]
    if not wanted:
        return ()
    shard = handle.layout.uniform_shard
    if shard is None:
        jobs, shards = np.array([part.low for part in parts], np.int64), None
    else:
        order = handle.config.chunk_order
        ranks = chunk_ranks(shard.grid, shard.strides, order) if order in ("f", "morton") else None
        jobs, shards = shards_for_kernel(shard, parts, _whole_shards(shard, parts, ranks))
    with handle.store.new_files([key for _, key, _ in wanted]) as files:
        if files is None:
            return parts
        if shard is not None:
            for _, key, _ in wanted:
                INDEXES.drop(handle.cache_space, key)
        puts, _ = handle.layout.pipeline.encode_to_files(
            values,
            jobs,
            axes,
            write_empty=handle.write_empty_chunks,
            threads=thread_count(),
            files=[(*file, is_new) for file, (_, _, is_new) in zip(files, wanted, strict=True)],
            shards=shards,
            one_by_one=shard is not None and _one_by_one(handle, len(wanted)),
        )
    return [part for part, put in zip(parts, puts, strict=True) if put != _DONE]


def _whole_shards(
    shard: ShardLayout, parts: Sequence[GridPart], ranks: Ints | None
) -> Iterator[tuple[npt.NDArray[Any], npt.NDArray[Any]]]:
    """Give the chunks of whole shards, in the order of their ``ranks`` if there are any, and their places."""
    known: dict[tuple[int, ...], tuple[npt.NDArray[Any], npt.NDArray[Any]]] = {}
    for part in parts:
        found = known.get(part.shape)
        if found is None:
            own, places = part.rows() - np.array(part.low, np.int64), part.positions(shard.strides)
            if ranks is not None:
                sorting = np.argsort(ranks[places])
                own, places = own[sorting], places[sorting]
            found = known[part.shape] = own, places  # as for all that begin a shard, as whole ones do
        yield found[0] + np.array(part.low, np.int64), found[1]


def shards_for_kernel(
    shard: ShardLayout,
    parts: Sequence[GridPart | BlockPlan],
    chunks: Iterable[tuple[npt.NDArray[Any], npt.NDArray[Any]]],
) -> tuple[npt.NDArray[Any], Any]:
    """Return the ``chunks`` of all parts, each with its chunks and their places in the shard, for the kernel."""
    jobs, rows = zip(*chunks, strict=True)
    bounds = np.array([0, *accumulate(part.count for part in parts)], np.int64)
    form = (shard.count, shard.index_at_start, shard.has_checksum)
    if len(jobs) == 1:
        return np.ascontiguousarray(jobs[0]), (bounds, rows[0], *form)
    return np.ascontiguousarray(np.concatenate(jobs)), (bounds, np.concatenate(rows), *form)


__all__ = ["put_whole_chunks", "shards_for_kernel"]
