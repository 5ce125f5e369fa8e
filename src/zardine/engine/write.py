"""Writing: from a chunk plan and values to one conditional write for each stored object.

Chunks of which nothing stored is needed are encoded from the values alone, all at once where the kernel can; others
are read, changed and encoded again; chunks of a shard that the plan does not touch are carried over as the encoded
bytes they are.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from zardine.buffers import BytesLike
from zardine.engine.index_cache import INDEXES
from zardine.engine.read import decode_chunk, row_batches
from zardine.engine.read_ahead import window_bytes
from zardine.engine.source import ArraySource
from zardine.engine.workers import for_each
from zardine.errors import ChunkTooLargeError, ConditionFailedError, CorruptionError, DataError, EncodeError
from zardine.indexing.plan import ChunkPlan, GridPlan, ObjectPart
from zardine.settings import thread_count
from zardine.sharding.index import EMPTY, ShardIndex, empty_index, encode_index
from zardine.sharding.layout import ShardLayout
from zardine.stores.base import Condition, Reading

_COPIES = 2
"""An object is in memory that often while it is written, at most: as it is stored, and as it is to be."""

_ATTEMPTS = 1000
"""How often a conditional write is tried again after another writer came first."""


def write_plan(
    source: ArraySource, plan: ChunkPlan, values: npt.NDArray[Any], fields: str | list[str] | None = None
) -> None:
    """Store ``values`` (of the selection's full shape; flat for points) where ``plan`` says.

    With ``fields``, only these fields of a struct type are written. Every object is written whole or, after an error,
    not at all.
    """
    parts: Iterator[ObjectPart] = plan.parts()
    fitting = window_bytes() // (_COPIES * max(1, source.layout.object_nbytes))
    at_once = max(1, min(plan.object_count, fitting, max(thread_count(), source.store.cost.requests)))
    threads = max(1, thread_count() // at_once)
    for_each(lambda part: _write_part(source, plan, part, values, fields, threads), parts, plan.object_count, at_once)


def _write_part(
    source: ArraySource,
    plan: ChunkPlan,
    part: ObjectPart,
    values: npt.NDArray[Any],
    fields: str | list[str] | None,
    threads: int,
) -> None:
    key = source.key(part.object)
    layout = source.layout.shard(part.object)
    write = _write_chunk if layout is None else _write_shard
    change = _Change(source, plan, part, key, layout, values, fields, threads)
    for attempt in range(_ATTEMPTS):
        try:
            with source.store.lock(key):
                write(change)
            return
        except ConditionFailedError:
            if attempt == _ATTEMPTS - 1:
                raise
            time.sleep(random.uniform(0, min(0.05, 0.0005 * 2 ** min(attempt, 10))))
        except DataError as error:
            raise error.at(array=source.path, key=key) from None
        except MemoryError as error:
            reason = f"there is not enough memory to encode what is stored under one key: {error}"
            raise ChunkTooLargeError(reason, array=source.path, key=key) from None


@dataclass(frozen=True, slots=True, eq=False)
class _Change:
    """What is to be written to one object."""

    source: ArraySource
    plan: ChunkPlan
    part: ObjectPart
    key: str
    layout: ShardLayout | None
    values: npt.NDArray[Any]
    fields: str | list[str] | None
    threads: int

    def covered(self) -> npt.NDArray[np.bool_]:
        """Which chunks need nothing of what is stored."""
        covered = self.part.covered()
        return covered if self.fields is None else np.zeros_like(covered)

    def encode(self, i: int, old: BytesLike | None, covered: bool) -> BytesLike | None:
        """Chunk ``i`` with the new values in it, encoded; ``None`` if it is to be left out as empty."""
        source, part = self.source, self.part
        chain = source.layout.chain(part.chunk_shape(i))
        new = self.values[part.outer(i)]
        if covered and new.shape == chain.spec.shape and all(isinstance(each, slice) for each in part.inner(i)):
            chunk = new  # the whole chunk, in order: no copy is needed
        elif old is None or covered:
            chunk = np.empty(chain.spec.shape, chain.spec.dtype)
            chunk[...] = chain.spec.fill
            self._put(chunk, i, new)
        else:
            chunk = decode_chunk(source, part, i, old, self.key)
            if not chunk.flags.writeable or not chunk.flags.owndata:
                chunk = chunk.copy()
            self._put(chunk, i, new)
        if not source.keeps_empty_chunks and chain.is_fill(chunk):
            return None
        try:
            return chain.encode(chunk)
        except DataError as error:
            raise error.at(array=source.path, key=self.key, chunk=part.chunk(i)) from None

    def encode_fresh(self, which: npt.NDArray[np.bool_], head: int, tail: int) -> _Encoded | None:
        """The chunks marked in ``which``, of which nothing stored is needed, in one call of the kernel.

        ``None`` where the kernel cannot.
        """
        pipeline = self.source.layout.pipeline
        if pipeline is None or self.fields is not None or not isinstance(self.plan, GridPlan):
            return None
        data, offsets, lengths, failed = pipeline.encode(
            self.values.view(f"V{self.values.dtype.itemsize}"),
            np.ascontiguousarray(self.part.rows()[which]),
            self.plan.kernel_axes(),
            keep_fill=self.source.keeps_empty_chunks,
            head=head,
            tail=tail,
            threads=self.threads,
        )
        if failed:
            job, reason = failed[0]
            raise EncodeError(reason, chunk=self.part.chunk(int(np.flatnonzero(which)[job])))
        return _Encoded(data, np.frombuffer(offsets, np.uint64), np.frombuffer(lengths, np.uint64))

    def _put(self, chunk: npt.NDArray[Any], i: int, new: npt.NDArray[Any]) -> None:
        target: npt.NDArray[Any] = chunk if self.fields is None else chunk[self.fields]
        target[self.part.inner(i)] = new


@dataclass(frozen=True, slots=True, eq=False)
class _Encoded:
    """Encoded chunks one after the other in ``data``; offset and length are :data:`EMPTY` for those left out."""

    data: bytearray
    offsets: npt.NDArray[np.uint64]
    lengths: npt.NDArray[np.uint64]

    def chunks(self) -> Iterator[BytesLike | None]:
        """The bytes of each chunk."""
        view = memoryview(self.data)
        for offset, length in zip(self.offsets.tolist(), self.lengths.tolist(), strict=True):
            yield None if length == EMPTY else view[offset : offset + length]


def _write_chunk(change: _Change) -> None:
    store, key = change.source.store, change.key
    covered = bool(change.covered()[0])
    old = None if covered else store.read(key)
    fresh = change.encode_fresh(np.ones(1, np.bool_), 0, 0) if old is None else None
    if fresh is not None:
        encoded: BytesLike | None = None if fresh.lengths[0] == EMPTY else fresh.data
    else:
        encoded = change.encode(0, None if old is None else old.parts[0], covered)
    if encoded is not None:
        store.set(key, encoded, condition=None if covered else _condition(old))
    elif covered or old is not None:
        store.erase(key)


def _write_shard(change: _Change) -> None:
    layout = change.layout
    assert layout is not None
    store, key = change.source.store, change.key
    rows = change.part.positions(layout.strides)
    covered = change.covered()
    replaced = bool(covered.all()) and change.part.count == _chunks_in_array(change)
    if replaced:
        _replace_shard(change, layout, rows)
        return
    old = store.read(key)
    shard: BytesLike = b"" if old is None else old.parts[0]
    index = empty_index(layout.count) if old is None else _old_index(layout, shard)
    chunks = _merged_chunks(change, layout, rows, covered, index, memoryview(shard))
    if any(chunk is not None for chunk in chunks):
        store.set(key, layout.assemble(chunks), condition=_condition(old))
    elif old is not None:
        store.erase(key)
    INDEXES.drop(change.source.cache_space, key)


def _replace_shard(change: _Change, layout: ShardLayout, rows: npt.NDArray[np.int64]) -> None:
    """Write a shard of which nothing stored is kept."""
    store, key = change.source.store, change.key
    head, tail = (layout.index_size, 0) if layout.index_at_start else (0, layout.index_size)
    fresh = change.encode_fresh(np.ones(len(rows), np.bool_), head, tail)
    shard: BytesLike
    if fresh is not None:
        index = empty_index(layout.count)
        index.offsets[rows] = fresh.offsets
        index.lengths[rows] = fresh.lengths
        empty = not index.stored().any()
        at = 0 if layout.index_at_start else len(fresh.data) - layout.index_size
        fresh.data[at : at + layout.index_size] = encode_index(index, layout.index_chain)
        shard = fresh.data
    else:
        chunks: list[BytesLike | None] = [None] * layout.count

        def work(batch: range) -> None:
            for i in batch:
                chunks[int(rows[i])] = change.encode(i, None, True)

        batches = row_batches(change.source, change.part.count)
        for_each(work, batches, len(batches))
        empty = all(chunk is None for chunk in chunks)
        shard = b"" if empty else layout.assemble(chunks)
    if empty:
        store.erase(key)
    else:
        store.set(key, shard)
    INDEXES.drop(change.source.cache_space, key)


def _merged_chunks(
    change: _Change,
    layout: ShardLayout,
    rows: npt.NDArray[np.int64],
    covered: npt.NDArray[np.bool_],
    index: ShardIndex,
    shard: memoryview,
) -> list[BytesLike | None]:
    """All inner chunks of the shard as it is to be: new where the plan touches them, else as they are stored."""
    stored = index.stored()
    offsets, lengths = index.offsets.tolist(), index.lengths.tolist()
    chunks: list[BytesLike | None] = [
        shard[offset : offset + length] if there else None
        for there, offset, length in zip(stored.tolist(), offsets, lengths, strict=True)
    ]
    independent = (covered | ~stored[rows]) if change.fields is None else np.zeros_like(covered)
    fresh = change.encode_fresh(independent, 0, 0) if independent.any() else None
    if fresh is not None:
        for row, chunk in zip(rows[independent].tolist(), fresh.chunks(), strict=True):
            chunks[row] = chunk
        left = np.flatnonzero(~independent)
    else:
        left = np.arange(len(rows))

    def work(batch: range) -> None:
        for i in left[batch.start : batch.stop].tolist():
            row = int(rows[i])
            chunks[row] = change.encode(i, None if covered[i] else chunks[row], bool(covered[i]))

    batches = row_batches(change.source, len(left))
    for_each(work, batches, len(batches))
    return chunks


def _old_index(layout: ShardLayout, shard: BytesLike) -> ShardIndex:
    """The index of the stored shard, all of whose entries can be carried over."""
    try:
        index = layout.index_of(shard)
        layout.check(index, len(shard))
    except CorruptionError as error:
        reason = f"the stored shard is damaged, so nothing was written: {error.reason}"
        raise type(error)(reason, codec=error.codec, byte_range=error.byte_range) from None
    return index


def _chunks_in_array(change: _Change) -> int:
    """How many inner chunks of the object hold elements of the array."""
    count = 1
    grids = change.source.layout.grids
    for coordinate, objects, chunks in zip(change.part.object, grids.objects, grids.chunks, strict=True):
        start = objects.start(coordinate)
        stop = min(start + objects.extent(coordinate), objects.length)
        size = chunks.runs[0][0]
        count *= -(-(stop - start) // size)
    return count


def _condition(old: Reading | None) -> Condition | None:
    """That nobody has written since ``old`` was read; nothing where the store has no versions."""
    if old is None:
        return Condition(None)
    return None if old.version is None else Condition(old.version)
