"""Reading: from a chunk plan to elements in the output array.

The kernel decodes the chunks of many objects in one call; where it cannot, each chunk goes through its codec chain in
a thread. A chunk that the kernel refuses goes through the chain too, which gives the exact reason.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate, islice
from typing import Any

import numpy as np
import numpy.typing as npt

from zardine.buffers import BytesLike
from zardine.engine.chunk_cache import ChunkCache
from zardine.engine.fetch import MISSING, FoundChunks, find_chunks
from zardine.engine.source import ArraySource
from zardine.engine.workers import for_each
from zardine.errors import ChunkNotFoundError, ChunkTooLargeError, DataError
from zardine.indexing.plan import ChunkPlan, GridPlan, ObjectPart
from zardine.settings import thread_count
from zardine.stores.base import OpenFile

_BATCH_BYTES = 2**20
"""Decoded bytes that make it worth handing chunks to another thread."""

_MOST_OBJECTS = 64
"""Objects whose chunks the kernel decodes in one call, and so files that one read holds open."""


def read_plan(source: ArraySource, plan: ChunkPlan, out: npt.NDArray[Any]) -> None:
    """Fill ``out`` (of the selection's full shape; flat for points) with what ``plan`` asks for.

    Raises :class:`~zardine.errors.CorruptionError`, with array, key and chunk, for stored bytes that are damaged.
    """
    parts: Iterator[ObjectPart] = plan.parts()
    if source.chunk_cache is not None:
        cache = source.chunk_cache
        for_each(lambda part: _read_through(cache, source, part, out), parts, plan.object_count)
        return
    if source.layout.pipeline is None or out.dtype != source.layout.metadata.dtype:
        for_each(lambda part: _read_part(source, part, out), parts, plan.object_count)
        return
    raw = out.view(f"V{out.dtype.itemsize}")
    while group := list(islice(parts, _MOST_OBJECTS)):
        _decode_group(source, plan, group, out, raw)


def decode_chunk(
    source: ArraySource, part: ObjectPart, i: int, data: BytesLike, key: str, byte_range: tuple[int, int] | None = None
) -> npt.NDArray[Any]:
    """Chunk ``i`` of ``part`` out of its bytes; errors say where they come from."""
    try:
        return source.layout.chain(part.chunk_shape(i)).decode(data)
    except DataError as error:
        raise error.at(array=source.path, key=key, chunk=part.chunk(i), byte_range=byte_range) from None
    except MemoryError as error:
        reason = f"a chunk of shape {part.chunk_shape(i)} does not fit into memory: {error}"
        raise ChunkTooLargeError(reason, array=source.path, key=key, chunk=part.chunk(i)) from None


def row_batches(source: ArraySource, count: int) -> list[range]:
    """The chunks of a shard in batches, each worth a thread's while."""
    assert source.layout.sharding is not None
    item = source.layout.metadata.dtype.itemsize
    chunk = int(np.prod(source.layout.sharding.chunk_shape, dtype=object)) * item
    size = max(1, _BATCH_BYTES // max(chunk, 1))
    return [range(start, min(start + size, count)) for start in range(0, count, size)]


def _read_part(source: ArraySource, part: ObjectPart, out: npt.NDArray[Any]) -> None:
    key = source.key(part.object)
    found = _find(source, part, key, files=False)

    def work(rows: range) -> None:
        for i in rows:
            _read_chunk(source, part, i, found, key, out)

    batches = [range(1)] if source.layout.sharding is None else row_batches(source, part.count)
    for_each(work, batches, len(batches))


def _read_chunk(
    source: ArraySource, part: ObjectPart, i: int, found: FoundChunks, key: str, out: npt.NDArray[Any]
) -> None:
    data = found.chunk(i)
    if data is None:
        if not source.config.read_missing_chunks:
            raise _not_stored(source, part, i, key)
        out[part.outer(i)] = source.layout.metadata.fill
    else:
        out[part.outer(i)] = decode_chunk(source, part, i, data, key, found.byte_range(i))[part.inner(i)]


def _read_through(cache: ChunkCache, source: ArraySource, part: ObjectPart, out: npt.NDArray[Any]) -> None:
    """Read a part with the help of decoded chunks kept from earlier reads."""
    key = source.key(part.object)
    version = source.store.version(key)
    if version is None:
        _read_part(source, part, out)
        return
    layout = source.layout.shard(part.object)
    numbers = [0] if layout is None else part.positions(layout.strides).tolist()
    missing = []
    for i, number in enumerate(numbers):
        chunk = cache.get((key, number, version))
        if chunk is None:
            missing.append(i)
        else:
            out[part.outer(i)] = chunk[part.inner(i)]
    if not missing:
        return
    found = _find(source, part, key, files=False)
    for i in missing:
        data = found.chunk(i)
        if data is None:
            _read_chunk(source, part, i, found, key, out)
            continue
        chunk = decode_chunk(source, part, i, data, key, found.byte_range(i))
        out[part.outer(i)] = chunk[part.inner(i)]
        if found.version == version:
            cache.put((key, numbers[i], version), chunk)


def _decode_group(
    source: ArraySource, plan: ChunkPlan, group: list[ObjectPart], out: npt.NDArray[Any], raw: npt.NDArray[Any]
) -> None:
    files = source.store.gives_files
    keys = [source.key(part.object) for part in group]
    found: list[FoundChunks | None] = [None] * len(group)

    def find(number: int) -> None:
        found[number] = _find(source, group[number], keys[number], files=files)

    try:
        if files or len(group) == 1:
            for number in range(len(group)):
                find(number)
        else:
            for_each(find, range(len(group)), len(group))
        _decode_found(source, plan, group, keys, [each for each in found if each is not None], out, raw)
    finally:
        for each in found:
            if each is not None:
                each.close()


def _decode_found(
    source: ArraySource,
    plan: ChunkPlan,
    group: list[ObjectPart],
    keys: list[str],
    found: list[FoundChunks],
    out: npt.NDArray[Any],
    raw: npt.NDArray[Any],
) -> None:
    starts = np.array([0, *accumulate(part.count for part in group)])
    columns = len(plan.axes) if isinstance(plan, GridPlan) else 1
    jobs = np.empty((int(starts[-1]), 3 + columns), np.int64)
    sources: list[BytesLike | int] = []
    for start, part, each in zip(starts[:-1].tolist(), group, found, strict=True):
        rows = jobs[start : start + part.count]
        rows[:, 0] = each.within
        rows[:, 0] += len(sources)
        rows[:, 1] = each.offsets
        rows[:, 2] = each.lengths
        rows[:, 3:] = part.rows()
        sources += [item.fd if isinstance(item, OpenFile) else item for item in each.sources]
    if not source.config.read_missing_chunks and (jobs[:, 2] == MISSING).any():
        number, i = _place(starts, int(np.flatnonzero(jobs[:, 2] == MISSING)[0]))
        raise _not_stored(source, group[number], i, keys[number])
    pipeline = source.layout.pipeline
    if isinstance(plan, GridPlan):
        failed = pipeline.decode(sources, jobs, plan.kernel_axes(), raw, thread_count())
    else:
        failed = pipeline.decode_points(
            sources, jobs, plan.extents, plan.point_bounds, plan.points, plan.places, raw, thread_count()
        )
    for job, _ in failed:
        number, i = _place(starts, job)
        _read_chunk(source, group[number], i, found[number], keys[number], out)


def _find(source: ArraySource, part: ObjectPart, key: str, *, files: bool) -> FoundChunks:
    try:
        return find_chunks(source, part, key, files=files)
    except DataError as error:
        raise error.at(array=source.path, key=key) from None


def _place(starts: npt.NDArray[Any], job: int) -> tuple[int, int]:
    """The part that job number ``job`` belongs to, and its number there."""
    number = int(np.searchsorted(starts, job, side="right")) - 1
    return number, job - int(starts[number])


def _not_stored(source: ArraySource, part: ObjectPart, i: int, key: str) -> ChunkNotFoundError:
    return ChunkNotFoundError(f"chunk {part.chunk(i)} of array {source.path!r} is not stored (key {key!r})")
