"""Changing files in part: chunks that are files, and shards, read, changed and written anew by the kernel.

Many in one call. The kernel does the usual case only
(``rust/src/files/new_file.rs``): a name that is free, or a file that nobody has locked and whose last edit was not cut
off. What it leaves, and what it finds to be damaged, is changed as any other object is, which says what is wrong.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import islice
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from zardine.engine.change import Settled
from zardine.engine.handle import ArrayHandle
from zardine.engine.index_cache import INDEXES, KnownIndex
from zardine.engine.layout import Blocks
from zardine.engine.read_ahead import window_bytes
from zardine.engine.whole_chunks import kernel_form, kernel_parts
from zardine.indexing.block import BlockPlan
from zardine.indexing.plan import ChunkPlan, GridPart, GridPlan, ObjectPart, PointPart, PointPlan
from zardine.settings import thread_count
from zardine.sharding.index import ShardIndex
from zardine.stores.file_seam import replace_files
from zardine.stores.late_closing import close_late
from zardine.stores.open_files import version_from

_MOST: Final = 64
"""Objects that one call of the kernel changes, at most."""

_SMALL: Final = 4 * 2**20
"""Bytes of the elements of one object, or of its index, that one thread changes by itself."""

_ALONE: Final = 2**20
"""The same where there are fewer objects than threads, so that these would have nothing to do in compressing."""


def change_files(
    handle: ArrayHandle,
    plan: ChunkPlan,
    parts: Iterator[ObjectPart],
    values: npt.NDArray[Any],
    settled: dict[str, Settled],
) -> Iterator[ObjectPart]:
    """Write what of ``parts`` can be put into files that keep the rest of what they hold, and give the other parts.

    ``settled`` are the versions that some objects must have still, by their keys: those are given.
    """
    chunks = handle.layout.blocks
    if chunks is None or isinstance(plan, PointPlan) or not is_usual(handle, chunks):
        return parts
    threads = thread_count()
    most = _SMALL if plan.object_count >= threads or not chunks.is_compressed else _ALONE
    most = min(most, window_bytes() // (2 * threads))
    return _others(handle, chunks, plan, parts, values.view(chunks.opaque), settled, most)


def is_usual(handle: ArrayHandle, chunks: Blocks) -> bool:
    """Whether objects are changed by reading and writing them whole, and the kernel knows their form."""
    layout, config = handle.layout, handle.config
    if layout.pipeline is None or not handle.watched or chunks.chain.most_for_kernel() < 0:
        return False
    if layout.sharding is None:
        return True
    shard = layout.uniform_shard
    if shard is None or not shard.has_words or shard.is_chunk is not None or shard.index_memory > _SMALL:
        return False
    return config.write_strategy == "rewrite" and config.chunk_order == "as_written"


def _others(
    handle: ArrayHandle,
    chunks: Blocks,
    plan: GridPlan | BlockPlan,
    parts: Iterator[ObjectPart],
    values: npt.NDArray[Any],
    settled: dict[str, Settled],
    most: int,
) -> Iterator[ObjectPart]:
    nbytes = chunks.nbytes
    while batch := list(islice(parts, _MOST)):
        wanted: list[tuple[GridPart | BlockPlan, str]] = []
        for part in batch:
            key = handle.key(part.object)
            if not isinstance(part, PointPart) and key not in settled and part.count * nbytes <= most:
                wanted.append((part, key))
            else:
                yield part
        if wanted:
            yield from _change(handle, chunks, plan, wanted, values)


def _change(
    handle: ArrayHandle,
    chunks: Blocks,
    plan: GridPlan | BlockPlan,
    wanted: list[tuple[GridPart | BlockPlan, str]],
    values: npt.NDArray[Any],
) -> Collection[ObjectPart]:
    """Change these objects, and return those of which that is still to be done."""
    parts = [part for part, _ in wanted]
    shard = handle.layout.uniform_shard
    with replace_files(handle.store, [key for _, key in wanted], changing=True) as files:
        if files is None:
            return parts
        changed, _ = handle.layout.pipeline.change_files(
            values,
            kernel_parts(parts),
            plan.kernel_axes(),
            write_empty=handle.write_empty_chunks,
            threads=thread_count(),
            files=files,
            most=chunks.chain.most_for_kernel(),
            shard=None if shard is None else kernel_form(shard, plan),
        )
    shares = zip(wanted, changed, strict=True)
    return [part for (part, key), done in shares if not note_changed(handle, key, done)]


def note_changed(handle: ArrayHandle, key: str, done: Any) -> bool:
    """Note what the kernel says of a file that it was to change; whether it has changed it."""
    if done is None:
        return False
    old, status, offsets, lengths = done
    if old is not None:
        close_late(old.detach())
    if status is not None:
        index = ShardIndex(np.frombuffer(offsets, np.int64), np.frombuffer(lengths, np.int64))
        INDEXES.put(handle.cache_space, key, KnownIndex(index, version_from(*status)))
    return True


__all__ = ["change_files", "is_usual", "note_changed"]
