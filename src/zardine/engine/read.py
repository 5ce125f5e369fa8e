"""Reading: from a chunk plan to elements in the output array."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from zardine.buffers import BytesLike
from zardine.engine.fetch import fetch_chunks
from zardine.engine.source import ArraySource
from zardine.engine.workers import for_each
from zardine.errors import ChunkNotFoundError, DataError
from zardine.indexing.plan import ChunkPlan, ObjectPart

_BATCH_BYTES = 2**20
"""Decoded bytes that make it worth handing chunks to another thread."""


def read_plan(source: ArraySource, plan: ChunkPlan, out: npt.NDArray[Any]) -> None:
    """Fill ``out`` (of the selection's full shape; flat for points) with what ``plan`` asks for.

    Raises :class:`~zardine.errors.CorruptionError`, with array, key and chunk, for stored bytes that are damaged.
    """
    parts: Iterator[ObjectPart] = plan.parts()
    for_each(lambda part: _read_part(source, part, out), parts, plan.object_count)


def decode_chunk(
    source: ArraySource, part: ObjectPart, i: int, data: BytesLike, key: str, byte_range: tuple[int, int] | None = None
) -> npt.NDArray[Any]:
    """Chunk ``i`` of ``part`` out of its bytes; errors say where they come from."""
    try:
        return source.layout.chain(part.chunk_shape(i)).decode(data)
    except DataError as error:
        raise error.at(array=source.path, key=key, chunk=part.chunk(i), byte_range=byte_range) from None


def _read_part(source: ArraySource, part: ObjectPart, out: npt.NDArray[Any]) -> None:
    key = source.key(part.object)
    layout = source.layout.shard(part.object)
    if layout is None:
        data = source.store.get(key)
        if data is None:
            _fill(source, part, 0, out, key)
        else:
            out[part.outer(0)] = decode_chunk(source, part, 0, data, key)[part.inner(0)]
        return
    try:
        fetched = fetch_chunks(source, part, layout, key)
    except DataError as error:
        raise error.at(array=source.path, key=key) from None

    def work(rows: range) -> None:
        for i in rows:
            data = None if fetched is None else fetched.chunk(i)
            if data is None:
                _fill(source, part, i, out, key)
            else:
                assert fetched is not None
                chunk = decode_chunk(source, part, i, data, key, fetched.byte_range(i))
                out[part.outer(i)] = chunk[part.inner(i)]

    batches = row_batches(source, part.count)
    for_each(work, batches, len(batches))


def row_batches(source: ArraySource, count: int) -> list[range]:
    """The rows of a part in batches, each worth a thread's while."""
    assert source.layout.sharding is not None
    item = source.layout.metadata.dtype.itemsize
    chunk = int(np.prod(source.layout.sharding.chunk_shape, dtype=object)) * item
    size = max(1, _BATCH_BYTES // max(chunk, 1))
    return [range(start, min(start + size, count)) for start in range(0, count, size)]


def _fill(source: ArraySource, part: ObjectPart, i: int, out: npt.NDArray[Any], key: str) -> None:
    if not source.config.read_missing_chunks:
        raise ChunkNotFoundError(f"chunk {part.chunk(i)} of array {source.path!r} is not stored (key {key!r})")
    out[part.outer(i)] = source.layout.metadata.fill
