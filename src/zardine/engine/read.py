"""Reading: from a chunk plan to elements in the output array.

The kernel decodes the chunks of many objects in one call, out of open files where the store has them; from other stores
the next objects are fetched meanwhile. Where the kernel cannot decode, each chunk goes through its codec chain in a
thread. A chunk that the kernel refuses goes through the chain too, which gives the exact reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import accumulate, islice
from math import inf
from typing import Any

import numpy as np
import numpy.typing as npt

from zardine.buffers import BytesLike
from zardine.codecs.chain import CodecChain
from zardine.engine.chunk_cache import ChunkCache
from zardine.engine.fetching import fetch_each
from zardine.engine.file_index import with_writer
from zardine.engine.freshness import check_fresh, is_far
from zardine.engine.handle import ArrayHandle
from zardine.engine.locate import FoundChunks, find_chunks
from zardine.engine.read_ahead import ahead, batches, read_together
from zardine.engine.read_elements import decode_elements, element_chain, element_places
from zardine.engine.read_files import read_whole_files
from zardine.engine.workers import for_each, most_requests
from zardine.errors import ChunkNotFoundError, CorruptionError, DataError
from zardine.indexing.plan import ChunkPlan, ObjectPart, PointPlan
from zardine.limits import no_memory
from zardine.settings import thread_count
from zardine.sharding.index import MISSING
from zardine.stores.attempts import TORN, WRITES, attempts
from zardine.stores.base import OpenFile
from zardine.stores.file_seam import files_to_edit, files_to_read

_BATCH_BYTES = 2**20
"""Decoded bytes that make it worth handing chunks to another thread."""

_AS_IT_COMES = 2**17
"""Decoded bytes of an object from which on it is decoded by itself as soon as it is there."""

_MOST_OBJECTS = 64
"""Objects whose chunks the kernel decodes in one call, and so files that one read holds open."""


def read_plan(handle: ArrayHandle, plan: ChunkPlan, out: npt.NDArray[Any]) -> None:
    """Fill ``out`` (of the selection's full shape; flat for points) with what ``plan`` asks for.

    Raises :class:`~zardine.errors.CorruptionError`, with array, key and chunk, for stored bytes that are damaged.
    """
    try:
        _read_plan(handle, plan, out)
    except DataError:
        check_fresh(handle, surely=True)  # perhaps it is no damage but another layout
        raise
    except MemoryError:
        raise no_memory("what is read of one array at a time").at(array=handle.path) from None


def _read_plan(handle: ArrayHandle, plan: ChunkPlan, out: npt.NDArray[Any]) -> None:
    parts: Iterator[ObjectPart] = plan.parts()
    if handle.chunk_cache is not None:
        cache, at_once = handle.chunk_cache, None if files_to_read(handle.store) else most_requests(handle.store)
        count, among = plan.object_count, read_together(plan.object_count)
        for_each(lambda part: _read_through(cache, handle, part, out, among), parts, count, at_once)
        check_fresh(handle)
        return
    native = handle.layout.pipeline is not None and out.dtype == handle.layout.metadata.dtype
    native = native and handle.layout.fits_memory  # else the reason is found chunk by chunk
    raw = out.view(f"V{out.dtype.itemsize}") if native else None
    if files_to_read(handle.store):
        if raw is not None:
            parts = read_whole_files(handle, plan, raw)
        while group := list(islice(parts, _MOST_OBJECTS)):
            with closing(_Fetched.files(handle, group)) as fetched:
                check_fresh(handle)
                _decode(handle, plan, fetched, out, raw, thread_count())
                if not handle.layout.is_checked:
                    _read_edited(handle, fetched, out)
        return
    requests = most_requests(handle.store)
    steps, among = batches(handle, parts, max(requests, _MOST_OBJECTS)), read_together(1)

    def decode(fetched: _Fetched, among: int = 1) -> None:
        if fetched.parts:
            _decode(handle, plan, fetched, out, raw, max(1, thread_count() // among))

    as_it_comes = raw is not None and is_far(handle.store) and handle.config.read_missing_chunks
    early = decode if as_it_comes else None
    for _, fetched in ahead(lambda batch: _Fetched.bytes(handle, batch, requests, among * len(batch), early), steps):
        if handle.store.has_cheap_looks or not all(each.unchanged for each in fetched.found):
            check_fresh(handle)
        decode(fetched.rest())


def decode_chunk(
    handle: ArrayHandle,
    part: ObjectPart,
    i: int,
    data: BytesLike,
    key: str,
    byte_range: tuple[int, int] | None = None,
    inner: tuple[Any, ...] | None = None,
) -> npt.NDArray[Any]:
    """Chunk ``i`` of ``part`` out of its bytes, or what ``inner`` takes of it; errors say where they come from."""
    try:
        return handle.layout.chain(part.chunk_shape(i)).decode(data, inner)
    except DataError as error:
        raise error.at(array=handle.path, key=key, chunk=part.chunk(i), byte_range=byte_range) from None
    except MemoryError:
        nbytes = handle.layout.chain(part.chunk_shape(i)).memory
        raise no_memory(f"a chunk of shape {part.chunk_shape(i)}", nbytes).at(
            array=handle.path, key=key, chunk=part.chunk(i), byte_range=byte_range
        ) from None


def row_batches(handle: ArrayHandle, count: int) -> list[range]:
    """The chunks of a shard in batches, each worth a thread's while."""
    size = max(1, _BATCH_BYTES // max(handle.layout.chunk_nbytes, 1))
    return [range(start, min(start + size, count)) for start in range(0, count, size)]


def _read_chunk(
    handle: ArrayHandle, part: ObjectPart, i: int, found: FoundChunks, key: str, out: npt.NDArray[Any]
) -> None:
    data = stored_bytes(handle, part, i, found, key)
    if data is None:
        if not handle.config.read_missing_chunks:
            raise _not_stored(handle, part, i, key)
        out[part.outer(i)] = handle.layout.metadata.fill
        return
    try:
        inner = part.inner(i)
        chunk = decode_chunk(handle, part, i, data, key, found.byte_range(i), inner)
    except CorruptionError:
        if found.unlocked or not (found.in_file or files_to_edit(handle.store)):
            raise
        # perhaps someone was editing the file: it is damaged only if it is so when nobody does
        _read_unlocked(handle, part, [i], key, out)
        return
    out[part.outer(i)] = chunk[inner]


def stored_bytes(handle: ArrayHandle, part: ObjectPart, i: int, found: FoundChunks, key: str) -> BytesLike | None:
    """Return the encoded bytes of chunk ``i`` of ``part``; ``None`` where it is not stored."""
    try:
        return found.chunk(i)
    except MemoryError:
        where = found.byte_range(i)
        raise no_memory("the stored chunk", where[1]).at(
            array=handle.path, key=key, chunk=part.chunk(i), byte_range=where
        ) from None


def _read_unlocked(
    handle: ArrayHandle, part: ObjectPart, numbers: Iterable[int], key: str, out: npt.NDArray[Any]
) -> None:
    """Read some chunks of ``part`` while nobody edits their file; or as its record says, if its writer is stopped."""
    numbers = list(numbers)
    for last in attempts(TORN if handle.layout.is_checked else WRITES):
        with closing(find_part(handle, part, key, files=True, unlocked=True)) as found:
            try:
                for i in numbers:
                    _read_chunk(handle, part, i, found, key, out)
            except CorruptionError as error:
                if last or (found.stalled_file() is None and found.is_unedited()):
                    raise with_writer(error, found.stalled_file()) from None
                continue
            if handle.layout.is_checked or found.is_untorn():
                return
            if last:
                found.check_untorn(key)


def _read_through(cache: ChunkCache, handle: ArrayHandle, part: ObjectPart, out: npt.NDArray[Any], among: int) -> None:
    """Read a part, one among so many, with the help of decoded chunks kept from earlier reads."""
    key = handle.key(part.object)
    layout = handle.layout.shard(part.object)
    numbers = [0] if layout is None else part.positions(layout.strides).tolist()
    entries = [cache.get(key, number) for number in numbers]
    known = {kept.version for kept in entries if kept is not None}
    if len(known) == 1:
        version = next((each for each in known if handle.store.is_unchanged(key, each)), None)
    else:
        version = handle.store.version(key) if known else None
    missing = []
    for i, kept in enumerate(entries):
        if kept is None or kept.version != version:
            missing.append(i)
        else:
            out[part.outer(i)] = kept.chunk[part.inner(i)]
    if not missing:
        return
    with closing(find_part(handle, part, key, files=files_to_read(handle.store) is not None, together=among)) as found:
        for i in missing:
            data = stored_bytes(handle, part, i, found, key)
            if data is None:
                _read_chunk(handle, part, i, found, key, out)
                continue
            try:
                chunk = decode_chunk(handle, part, i, data, key, found.byte_range(i))
            except CorruptionError:
                _read_chunk(handle, part, i, found, key, out)
                continue
            out[part.outer(i)] = chunk[part.inner(i)]
            if found.version is not None and found.is_unedited():
                cache.put(key, numbers[i], found.version, chunk)
        if not handle.layout.is_checked and not found.is_unedited():
            _read_unlocked(handle, part, missing, key, out)


@dataclass(frozen=True, slots=True, eq=False)
class _Fetched:
    """Parts of a plan, their keys, and where their chunks are."""

    parts: list[ObjectPart]
    keys: list[str]
    found: list[FoundChunks]
    done: frozenset[int] = frozenset()
    """Numbers of the parts whose chunks are decoded already; their bytes are gone."""

    @classmethod
    def files(cls, handle: ArrayHandle, parts: list[ObjectPart]) -> _Fetched:
        """In open files, to be closed."""
        fetched = cls(parts, [handle.key(part.object) for part in parts], [])
        try:
            for part, key in zip(parts, fetched.keys, strict=True):
                fetched.found.append(find_part(handle, part, key, files=True))
        except BaseException:
            fetched.close()
            raise
        return fetched

    @classmethod
    def bytes(
        cls,
        handle: ArrayHandle,
        parts: list[ObjectPart],
        requests: int,
        among: int,
        decode: Callable[[_Fetched, int], None] | None,
    ) -> _Fetched:
        """In memory, fetched with so many requests at a time. A look at the document that is due is one of them.

        The parts are read ``among`` so many at the same time, for :func:`find_part`. Large ones of several are given to
        ``decode`` as they come, with the number of all, while others are under way.
        """
        keys = [handle.key(part.object) for part in parts]
        found: list[Any] = [None] * len(parts)
        done: set[int] = set()
        least = _AS_IT_COMES // max(1, handle.layout.chunk_nbytes) if len(parts) > 1 else inf

        def fetch(number: int) -> None:
            part, key = parts[number], keys[number]
            chunks = find_part(handle, part, key, files=False, whole=False, together=among).in_memory()
            if decode is not None and part.count >= least:
                decode(cls([part], [key], [chunks]), len(parts))
                done.add(number)
                chunks = replace(chunks, buffers=())
            found[number] = chunks

        fetch_each(handle, parts, keys, fetch, requests)
        return cls(parts, keys, found, frozenset(done))

    def rest(self) -> _Fetched:
        """What is not decoded yet."""
        if not self.done:
            return self
        left = [number for number in range(len(self.parts)) if number not in self.done]
        return _Fetched(
            [self.parts[number] for number in left],
            [self.keys[number] for number in left],
            [self.found[number] for number in left],
        )

    def close(self) -> None:
        """Close the files."""
        for each in self.found:
            each.close()

    def starts(self) -> npt.NDArray[np.int64]:
        """How many chunks are in the parts before each part, and in all parts."""
        return np.array([0, *accumulate(part.count for part in self.parts)])


def _decode(
    handle: ArrayHandle,
    plan: ChunkPlan,
    fetched: _Fetched,
    out: npt.NDArray[Any],
    raw: npt.NDArray[Any] | None,
    threads: int,
) -> None:
    if raw is not None:
        _decode_by_kernel(handle, plan, fetched, out, raw, threads)
        return
    chain = element_chain(handle.layout)
    if chain is not None:
        _decode_elements(handle, chain, fetched, out)
        return

    def work(batch: tuple[int, range]) -> None:
        number, rows = batch
        for i in rows:
            _read_chunk(handle, fetched.parts[number], i, fetched.found[number], fetched.keys[number], out)

    work_batches = [(n, rows) for n, part in enumerate(fetched.parts) for rows in row_batches(handle, part.count)]
    for_each(work, work_batches, len(work_batches))


def _decode_elements(handle: ArrayHandle, chain: CodecChain, fetched: _Fetched, out: npt.NDArray[Any]) -> None:
    """Decode chunks that hold one byte string each."""
    together = []
    for part, found, key in zip(fetched.parts, fetched.found, fetched.keys, strict=True):
        places = element_places(part) if part.count > 1 else None
        if places is not None:
            together.append((part, found, key, places))
            continue
        for i in range(part.count):
            _read_chunk(handle, part, i, found, key, out)
    if not together:
        return
    values = iter(decode_elements(chain, [found for _, found, _, _ in together]))
    for part, found, key, places in together:
        _place_elements(handle, part, found, key, places, list(islice(values, part.count)), out)


def _place_elements(
    handle: ArrayHandle,
    part: ObjectPart,
    found: FoundChunks,
    key: str,
    places: tuple[Any, ...],
    values: list[Any],
    out: npt.NDArray[Any],
) -> None:
    """Put the ``values`` of the chunks of an object where they belong; those that are ``None`` are looked at again."""
    left = [i for i, value in enumerate(values) if value is None]
    if left and handle.config.read_missing_chunks:
        nothing = handle.layout.metadata.fill.item()
        missing = (found.lengths == MISSING).tolist()
        for i in left:
            values[i] = nothing if missing[i] else None
        left = [i for i in left if not missing[i]]
    flat = np.empty(len(values), object)
    flat[:] = values
    out[places] = flat.reshape(np.broadcast_shapes(*(each.shape for each in places)))
    for i in left:
        _read_chunk(handle, part, i, found, key, out)


def _decode_by_kernel(
    handle: ArrayHandle, plan: ChunkPlan, fetched: _Fetched, out: npt.NDArray[Any], raw: npt.NDArray[Any], threads: int
) -> None:
    starts = fetched.starts()
    axes = None if isinstance(plan, PointPlan) else plan.kernel_axes()
    columns = 1 if axes is None else len(axes)
    jobs = np.empty((int(starts[-1]), 3 + columns), np.int64)
    sources: list[BytesLike | int] = []
    for start, part, each in zip(starts[:-1].tolist(), fetched.parts, fetched.found, strict=True):
        rows = jobs[start : start + part.count]
        rows[:, 0] = each.within
        rows[:, 0] += len(sources)
        rows[:, 1] = each.offsets
        rows[:, 2] = each.lengths
        rows[:, 3:] = part.rows()
        sources += [item.fd if isinstance(item, OpenFile) else item for item in each.buffers]
    if not handle.config.read_missing_chunks and (jobs[:, 2] == MISSING).any():
        number, i = _place(starts, int(np.flatnonzero(jobs[:, 2] == MISSING)[0]))
        raise _not_stored(handle, fetched.parts[number], i, fetched.keys[number])
    pipeline = handle.layout.pipeline
    if isinstance(plan, PointPlan):
        failed = pipeline.decode_points(
            sources, jobs, plan.extents, plan.point_bounds, plan.points, plan.places, raw, threads
        )
    else:
        failed = pipeline.decode(sources, jobs, axes, raw, threads)
    for job, _ in failed:
        number, i = _place(starts, job)
        _read_chunk(handle, fetched.parts[number], i, fetched.found[number], fetched.keys[number], out)


def _read_edited(handle: ArrayHandle, fetched: _Fetched, out: npt.NDArray[Any]) -> None:
    """Read those parts again, when nobody edits them, whose files were edited while they were read."""
    for part, key, found in zip(fetched.parts, fetched.keys, fetched.found, strict=True):
        if not found.is_unedited():
            _read_unlocked(handle, part, range(part.count), key, out)


def find_part(
    handle: ArrayHandle,
    part: ObjectPart,
    key: str,
    *,
    files: bool,
    unlocked: bool = False,
    whole: bool = True,
    together: int = 0,
) -> FoundChunks:
    """Return where the chunks of ``part`` are; what is damaged is looked at again when nobody edits it.

    Raises as :func:`~zardine.engine.locate.find_chunks`, with array and key.
    """
    try:
        return find_chunks(handle, part, key, files=files, unlocked=unlocked, whole=whole, together=together)
    except MemoryError as error:
        if isinstance(error, DataError):
            check_fresh(handle)
            raise error.at(array=handle.path, key=key) from None
        raise no_memory("what is stored under one key").at(array=handle.path, key=key) from None
    except DataError as error:
        if not unlocked and (files or files_to_edit(handle.store)):  # a writer may be at work, or was killed
            return find_part(handle, part, key, files=True, unlocked=True)
        raise error.at(array=handle.path, key=key) from None


def _place(starts: npt.NDArray[Any], job: int) -> tuple[int, int]:
    """The part that job number ``job`` belongs to, and its number there."""
    number = int(np.searchsorted(starts, job, side="right")) - 1
    return number, job - int(starts[number])


def _not_stored(handle: ArrayHandle, part: ObjectPart, i: int, key: str) -> ChunkNotFoundError:
    return ChunkNotFoundError(f"chunk {part.chunk(i)} of array {handle.path!r} is not stored (key {key!r})")
