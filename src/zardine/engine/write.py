"""Writing: from a chunk plan and values to one conditional write for each stored object.

Chunks that are covered are encoded from the values alone; others are read, changed and encoded again; chunks of a shard
that the plan does not touch are carried over as the encoded bytes they are.
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
from zardine.engine.source import ArraySource
from zardine.engine.workers import for_each
from zardine.errors import ConditionFailedError, DataError, ShardIndexError
from zardine.indexing.plan import ChunkPlan, ObjectPart
from zardine.sharding.index import ShardIndex, empty_index
from zardine.sharding.layout import ShardLayout
from zardine.stores.base import Condition, Reading

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
    for_each(lambda part: _write_part(source, part, values, fields), parts, plan.object_count)


def _write_part(
    source: ArraySource, part: ObjectPart, values: npt.NDArray[Any], fields: str | list[str] | None
) -> None:
    key = source.key(part.object)
    layout = source.layout.shard(part.object)
    write = _write_chunk if layout is None else _write_shard
    change = _Change(source, part, key, layout, values, fields)
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


@dataclass(frozen=True, slots=True, eq=False)
class _Change:
    """What is to be written to one object."""

    source: ArraySource
    part: ObjectPart
    key: str
    layout: ShardLayout | None
    values: npt.NDArray[Any]
    fields: str | list[str] | None

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
        if not source.config.write_empty_chunks and chain.is_fill(chunk):
            return None
        try:
            return chain.encode(chunk)
        except DataError as error:
            raise error.at(array=source.path, key=self.key, chunk=part.chunk(i)) from None

    def _put(self, chunk: npt.NDArray[Any], i: int, new: npt.NDArray[Any]) -> None:
        target: npt.NDArray[Any] = chunk if self.fields is None else chunk[self.fields]
        target[self.part.inner(i)] = new


def _write_chunk(change: _Change) -> None:
    store, key = change.source.store, change.key
    covered = bool(change.covered()[0])
    old = None if covered else store.read(key)
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
    old = None if replaced else store.read(key)
    shard: BytesLike = b"" if old is None else old.parts[0]
    index = empty_index(layout.count) if old is None else _old_index(change, layout, shard)
    view = memoryview(shard)

    def old_chunk(row: int) -> BytesLike | None:
        offset, length = int(index.offsets[row]), int(index.lengths[row])
        return view[offset : offset + length] if stored[row] else None

    stored = index.stored()
    touched = {int(row): i for i, row in enumerate(rows)}
    chunks: list[BytesLike | None] = [None if row in touched else old_chunk(row) for row in range(layout.count)]

    def work(batch: range) -> None:
        for i in batch:
            row = int(rows[i])
            chunks[row] = change.encode(i, None if covered[i] else old_chunk(row), bool(covered[i]))

    batches = row_batches(change.source, change.part.count)
    for_each(work, batches, len(batches))
    if any(chunk is not None for chunk in chunks):
        store.set(key, layout.assemble(chunks), condition=None if replaced else _condition(old))
    elif replaced or old is not None:
        store.erase(key)
    INDEXES.drop(change.source.cache_space, key)


def _old_index(change: _Change, layout: ShardLayout, shard: BytesLike) -> ShardIndex:
    """The index of the stored shard, all of whose entries can be carried over."""
    index = layout.index_of(shard)
    outside = index.beyond(*layout.data_bounds(len(shard)))
    if outside.any():
        row = int(np.flatnonzero(outside)[0])
        raise ShardIndexError(
            f"the stored shard is damaged, so nothing was written: its index places inner chunk {row} at offset "
            f"{index.offsets[row]} with length {index.lengths[row]}, outside the data of a shard of {len(shard)} bytes"
        )
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
