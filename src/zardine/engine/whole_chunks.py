"""Writing whole shards, or many whole chunks, into files of their own: encoded, written and named by the kernel.

Many in one call; large shards are written while they are encoded. The kernel does the usual case only
(``rust/src/files/new_file.rs``): a name that is free, or a file that nobody has locked. What it leaves is written as
any other object is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from zardine.buffers import Ints
from zardine.engine.change import Settled
from zardine.engine.handle import ArrayHandle
from zardine.engine.index_cache import INDEXES
from zardine.engine.read_ahead import window_bytes
from zardine.indexing.block import BlockPlan
from zardine.indexing.plan import ChunkPlan, GridPart, GridPlan, ObjectPart, PointPlan
from zardine.settings import thread_count
from zardine.sharding.layout import ShardLayout
from zardine.sharding.order import chunk_ranks
from zardine.stores.base import Condition
from zardine.stores.file_seam import replace_files

_MOST: Final = 1024
"""Objects that one call of the kernel writes, at most."""

_MOST_DIRECTORIES: Final = 64
"""Directories that are open for it, at most."""

_MOST_BYTES: Final = 2**28
"""Bytes of the elements of these, at most, where that is more than one object for each thread: calls can be stopped
between them only."""

_DONE: Final = 1
"""What the kernel says of an object that was put into its file."""

_Wanted = tuple[GridPart | BlockPlan, str, Settled | None]
"""A part, its key, and the version that is replaced, if no other one may be."""


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
    if layout.pipeline is None or not layout.fits_memory or isinstance(plan, PointPlan):
        return plan.parts()
    shard = layout.uniform_shard
    if layout.sharding is not None and (shard is None or not shard.has_words or shard.index_memory > window_bytes()):
        return plan.parts()
    return _others(handle, plan, values.view(f"V{values.dtype.itemsize}"), settled)


def _few_at_a_time(handle: ArrayHandle, count: int) -> bool:
    """Whether ``count`` shards are better made a few at a time, each by several threads, than each by a thread."""
    threads = thread_count()
    return count < threads or handle.layout.object_nbytes > window_bytes() // (2 * threads)


def _most_at_once(handle: ArrayHandle, plan: GridPlan | BlockPlan) -> int:
    """How many objects one call writes. Those that follow each other along the last axis lie in one directory."""
    if isinstance(plan, BlockPlan):
        return 1
    in_one = len(plan.groups[-1].objects) if plan.groups else 1
    most = min(_MOST, (_MOST_DIRECTORIES - 1) * in_one) if in_one > 1 else _MOST_DIRECTORIES
    return min(most, max(thread_count(), _MOST_BYTES // max(1, handle.layout.object_nbytes)))


def _others(
    handle: ArrayHandle,
    plan: GridPlan | BlockPlan,
    values: npt.NDArray[Any],
    settled: dict[str, Settled],
) -> Iterator[ObjectPart]:
    most = _most_at_once(handle, plan)
    if handle.layout.sharding is None and isinstance(plan, GridPlan) and plan.all_whole and not settled:
        yield from _all(handle, plan, values, most)
        return
    parts: Iterator[GridPart | BlockPlan] = plan.parts()
    while batch := list(islice(parts, most)):
        wanted: list[_Wanted] = []
        for part in batch:
            key = handle.key(part.object)
            known = settled.get(key)
            if _is_whole(handle, part, known):
                wanted.append((part, key, known))
            else:
                yield part
        if wanted:
            conditions = [None if known is None else Condition(known.version) for _, _, known in wanted]
            taken = [part for part, _, _ in wanted]
            puts = _put(handle, plan, kernel_parts(taken), [key for _, key, _ in wanted], conditions, values)
            yield from [part for part, put in zip(taken, puts, strict=True) if put != _DONE]


def _all(handle: ArrayHandle, plan: GridPlan, values: npt.NDArray[Any], most: int) -> Iterator[ObjectPart]:
    """As :func:`_others`, of objects that are one chunk each, of each of which everything is new."""
    coordinates = plan.object_coordinates()
    for start in range(0, plan.object_count, most):
        objects = list(islice(coordinates, most))
        rows = plan.rows_of_objects(start, len(objects))
        puts = _put(handle, plan, np.concatenate((rows, rows + 1), axis=1), handle.keys(objects), (), values)
        for number, put in enumerate(puts):
            if put != _DONE:
                yield GridPart(plan, objects[number], tuple(rows[number].tolist()), tuple((rows[number] + 1).tolist()))


def _is_whole(handle: ArrayHandle, part: GridPart | BlockPlan, known: Settled | None) -> bool:
    """Whether a part is all of its object. What lies beyond the array counts, unless that is settled."""
    layout = handle.layout
    beyond = handle.watched and known is None
    if layout.uniform_shard is not None:
        count = layout.uniform_shard.count if beyond else layout.chunks_in_array(part.object)
        if part.count != count:
            return False
    return part.is_whole() if beyond else part.is_covered()


def _put(
    handle: ArrayHandle,
    plan: GridPlan | BlockPlan,
    parts: Ints,
    keys: Sequence[str],
    conditions: Sequence[Condition | None],
    values: npt.NDArray[Any],
) -> bytes:
    """Write some objects, as the kernel takes their ``parts``, and return what became of each."""
    layout, config = handle.layout, handle.config
    shard, form = layout.uniform_shard, None
    if shard is not None:
        ordered = config.chunk_order in ("f", "morton")
        form = kernel_form(shard, plan, chunk_ranks(shard.grid, shard.strides, config.chunk_order) if ordered else None)
    with replace_files(handle.store, keys, conditions=conditions) as files:
        if files is None:
            return bytes(len(keys))
        if shard is not None:
            for key in keys:
                INDEXES.drop(handle.cache_space, key)
        puts: bytes
        puts, _ = layout.pipeline.encode_to_files(
            values,
            parts,
            plan.kernel_axes(),
            write_empty=handle.write_empty_chunks,
            threads=thread_count(),
            files=files,
            shard=form,
            few_at_a_time=shard is not None and _few_at_a_time(handle, len(keys)),
        )
    return puts


def kernel_parts(parts: Sequence[GridPart | BlockPlan]) -> Ints:
    """Return ``parts`` of one plan as the kernel takes them."""
    return np.array([part.low + part.high for part in parts], np.int64)


def kernel_form(shard: ShardLayout, plan: GridPlan | BlockPlan, ranks: Ints | None = None) -> tuple[Any, ...]:
    """Return what shards are whose chunks are those of parts of ``plan``, written in the order of ``ranks``, if any."""
    return shard.count, shard.index_at_start, shard.has_checksum, plan.kernel_places(shard.strides), ranks


__all__ = ["kernel_form", "kernel_parts", "put_whole_chunks"]
