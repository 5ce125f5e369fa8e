"""The chunk locator: where the encoded bytes of chunks are.

For a reader, :func:`find_chunks` says for each chunk in which buffer or open file it is, at which offset and how long,
all from one version of the stored object. There are three ways to the chunks of a shard: the store gives it as an open
file (its index: :mod:`zardine.engine.file_index`); its index is read first (:mod:`zardine.engine.read_index`), then the
ranges of the wanted chunks, near ones joined (:mod:`zardine.engine.joined_ranges`; of large chunks that are stored as
they lie in memory, only what is wanted of them); or, where that is cheaper, the whole of it is read in one request
(:mod:`zardine.engine.whole_shard`). Indexes are remembered with the version of the shard
(:mod:`zardine.engine.index_cache`).

A writer takes :func:`~zardine.engine.file_index.index_to_edit` for a shard that it changes as a file, and
:func:`~zardine.engine.whole_shard.read_whole_shard` for one that it replaces.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from mmap import mmap

import numpy as np

from zardine.buffers import BytesLike, Ints
from zardine.engine.file_index import known_index, with_writer
from zardine.engine.freshness import is_far
from zardine.engine.handle import ArrayHandle
from zardine.engine.index_cache import INDEXES, KnownIndex
from zardine.engine.joined_ranges import join_ranges
from zardine.engine.raw_ranges import has_raw_ranges, raw_ranges
from zardine.engine.read_index import HeldBytes, fetch_index, fetch_index_once
from zardine.engine.speculative_read import speculative_bytes
from zardine.engine.whole_shard import most_of_shard, whole_is_cheaper
from zardine.errors import CorruptionError, DataError, StoreError
from zardine.indexing.plan import ObjectPart
from zardine.limits import check_size
from zardine.sharding.index import MISSING
from zardine.sharding.layout import ShardLayout
from zardine.stores.attempts import CHANGES, attempts
from zardine.stores.base import OpenFile, Reading, Version
from zardine.stores.file_calls import read_part

_FEW = 16
"""Lengths of which Python finds the longest sooner than NumPy does."""

_DENSE = 0.5
"""The share of a span of a file from which on the wanted chunks in it are read by one call."""

_AT_ONCE = 2**30
"""Bytes of a file that are read by one call at most."""


@dataclass(frozen=True, slots=True, eq=False)
class FoundChunks:
    """Where chunks are: chunk ``i`` is ``lengths[i]`` bytes at ``offsets[i]`` of ``buffers[within[i]]``."""

    buffers: tuple[BytesLike | OpenFile, ...]
    within: Ints
    offsets: Ints
    lengths: Ints
    """:data:`~zardine.sharding.index.MISSING` for chunks that are not stored."""
    stored_at: Ints
    """Offset of each chunk in the stored object, for error texts."""
    version: Version | None = None
    """Version of the stored object, where the store has versions."""
    unlocked: bool = False
    """Whether the file, if it is one, was waited for, so that its writers are kept out, or it is stalled."""
    is_stored: bool = True
    """Whether the object is stored at all."""
    unchanged: bool = False
    """Whether the object still is the one that an earlier read found; then the array was not resharded since."""

    @property
    def in_file(self) -> bool:
        """Whether the chunks are in an open file."""
        return any(True for _ in self.files)

    @property
    def files(self) -> Iterator[OpenFile]:
        """Yield the open files among the buffers."""
        return (each for each in self.buffers if isinstance(each, OpenFile))

    def is_unedited(self) -> bool:
        """Tell whether nobody has edited the file, if it is one, since it was opened."""
        return all(each.is_unedited() for each in self.files)

    def stalled_file(self) -> OpenFile | None:
        """Return the file that a writer has locked, which was waited for in vain."""
        return next((each for each in self.files if each.is_stalled), None)

    def is_untorn(self) -> bool:
        """Tell whether what was read after :meth:`OpenFile.wait` cannot be bytes of a write that is under way."""
        return not any(each.may_be_torn() for each in self.files) and self.is_unedited()

    def check_untorn(self, key: str) -> None:
        """Raise :class:`~zardine.errors.StoreError` unless :meth:`is_untorn`, for chunks without checksums."""
        file = None if self.is_untorn() else next(self.files)
        if file is not None:
            raise StoreError(
                f"cannot read key {key!r}: {file.lock_holder()} has locked {file.path!r} and may be stopped while it "
                "writes into it, and no checksum tells which bytes are whole; let that process go on, or end it"
            )

    def chunk(self, i: int) -> BytesLike | None:
        """Return the bytes of chunk ``i``; ``None`` if it is not stored."""
        length = int(self.lengths[i])
        if length == MISSING:
            return None
        buffer, offset = self.buffers[int(self.within[i])], int(self.offsets[i])
        if isinstance(buffer, OpenFile):
            return read_part(buffer.fd, offset, length)
        return memoryview(buffer)[offset : offset + length]

    def chunks(self, rows: Ints) -> list[BytesLike | None]:
        """Return the bytes of the chunks ``rows``, as :meth:`chunk`; of a file at once where they are most of it."""
        stored = rows[self.lengths[rows] != MISSING]
        if not self.in_file or len(self.buffers) != 1 or not len(stored):
            return [self.chunk(i) for i in rows.tolist()]
        start = int(self.offsets[stored].min())
        span = int((self.offsets[stored] + self.lengths[stored]).max()) - start
        if span > _AT_ONCE or self.lengths[stored].sum() < _DENSE * span:
            return [self.chunk(i) for i in rows.tolist()]
        (file,) = self.buffers
        assert isinstance(file, OpenFile)
        whole = memoryview(read_part(file.fd, start, span))
        places = zip((self.offsets[rows] - start).tolist(), self.lengths[rows].tolist(), strict=True)
        return [None if length == MISSING else whole[at : at + length] for at, length in places]

    def byte_range(self, i: int) -> tuple[int, int]:
        """Return offset and length of chunk ``i`` in the stored object."""
        return int(self.stored_at[i]), int(self.lengths[i])

    def in_memory(self) -> FoundChunks:
        """Return the same chunks as bytes in memory, and close the files among the buffers."""
        if not self.in_file:
            return self
        with closing(self):
            parts = [self.chunk(i) for i in range(len(self.lengths))]
        within = np.arange(len(parts))
        buffers = tuple(b"" if part is None else part for part in parts)
        return FoundChunks(buffers, within, np.zeros_like(within), self.lengths, self.stored_at, self.version, True)

    def close(self) -> None:
        """Close the files among the buffers."""
        for buffer in self.buffers:
            if isinstance(buffer, OpenFile):
                buffer.close()


def find_chunks(
    handle: ArrayHandle,
    part: ObjectPart,
    key: str,
    *,
    files: bool,
    unlocked: bool = False,
    whole: bool = True,
    together: int = 0,
) -> FoundChunks:
    """Return where the chunks of ``part`` are; with ``files``, in an open file if the store gives files.

    ``together``: of how many objects chunks are asked for at the same time; without, nothing is read unasked.
    With ``unlocked``, this waits until no writer edits the file, and keeps writers out until it is closed; or, if a
    writer does not let go of it, reads what its record says (see :meth:`OpenFile.wait`). Chunks that are not needed
    ``whole`` may have zeros in the place of what ``part`` does not take of them.

    Raises :class:`~zardine.errors.ShardIndexError` or :class:`~zardine.errors.ChecksumError` for an index that is
    damaged or points outside the shard.
    """
    layout = handle.layout.shard(part.object)
    looks: Iterable[object] = ()
    in_files = handle.store.files if files else None
    if in_files is not None:
        looks = attempts(CHANGES) if unlocked else (True,)
    for last in looks:
        assert in_files is not None  # else nothing is looked at
        file = in_files.open(key)
        if file is None:
            return _none(part)
        try:
            if unlocked:
                file.wait()
            if layout is None:
                _check_length(handle, part, file.size)
                return _whole_object(file, file.size, file.version, unlocked)
            return _in_file(handle, part, layout, key, file, unlocked=unlocked)
        except CorruptionError as error:
            with file:
                # by a writer that has put it in order, or one that could not be kept out
                changed = unlocked and (file.is_replaced() or not file.is_unedited())
                if last or not changed:
                    raise with_writer(error, file) from None
        except BaseException:
            file.close()
            raise
    if layout is None:
        return _in_chunk_object(handle, part, key, whole=whole)
    return _in_shard(handle, part, layout, key, whole=whole, together=together)


def _in_chunk_object(handle: ArrayHandle, part: ObjectPart, key: str, *, whole: bool) -> FoundChunks:
    """Find the chunk that is an object: of one far away that is stored as it lies in memory only what is wanted."""
    store, wanted = handle.store, None if whole else _raw_parts(handle, part).get(0)
    if wanted is not None:
        reading = store.read(key, wanted)
        if reading is None:
            return _none(part)
        if reading.size == handle.layout.chain_of(part.object).encoded.nbytes:
            chunk = _sparse(reading.size)
            for (start, size), data in zip(wanted, reading.parts, strict=True):
                chunk[start : start + size] = data
            return _whole_object(chunk, reading.size, reading.version)
    reading = read_chunk_object(handle, part.object, key)
    return _none(part) if reading is None else _whole_object(reading.parts[0], reading.size, reading.version)


def _raw_parts(handle: ArrayHandle, part: ObjectPart) -> dict[int, tuple[tuple[int, int], ...]]:
    """Return the byte ranges that hold what is wanted of chunks, by their numbers, where that saves bytes.

    Far away, of chunks that are stored as they lie in memory, each range saves more bytes than flow in the time of a
    request.
    """
    chain, gap = handle.layout.chain_of(part.object), handle.store.cost.gap
    if not (has_raw_ranges(chain, gap) and is_far(handle.store) and handle.layout.pipeline is not None):
        return {}
    if chain.encoded.nbytes > chain.most_for_kernel():
        return {}
    found = {i: raw_ranges(chain, part.inner(i), gap) for i in range(part.count)}
    return {i: ranges for i, ranges in found.items() if ranges is not None}


def _sparse(size: int) -> memoryview:
    """Return so many zeros, which take no memory where nothing else is put."""
    return memoryview(mmap(-1, size))


def read_chunk_object(handle: ArrayHandle, coordinates: tuple[int, ...], key: str) -> Reading | None:
    """Return a stored object that is one chunk, encoded; ``None`` if it is not stored.

    Raises :class:`~zardine.errors.CorruptionError` for one that is longer than any can be.
    """
    chain = handle.layout.chain_of(coordinates)
    reading = handle.store.read_up_to(key, chain.most_stored())
    if reading is not None:
        try:
            chain.check_stored(reading.size)
        except DataError as error:
            raise error.at(chunk=coordinates, byte_range=(0, reading.size)) from None
    return reading


def _in_file(
    handle: ArrayHandle, part: ObjectPart, layout: ShardLayout, key: str, file: OpenFile, *, unlocked: bool
) -> FoundChunks:
    known = known_index(handle, layout, key, file, unlocked=unlocked)
    offsets, lengths = _entries(handle, part, layout, known)
    return FoundChunks((file,), np.zeros(len(offsets), np.int64), offsets, lengths, offsets, file.version, unlocked)


def _in_shard(
    handle: ArrayHandle, part: ObjectPart, layout: ShardLayout, key: str, *, whole: bool, together: int
) -> FoundChunks:
    """Find the chunks of a shard by requests: by its index where that is known or cheaper, else in the whole of it."""
    store = handle.store
    known = INDEXES.get(handle.cache_space, key)
    raw = {} if whole else _raw_parts(handle, part)
    fresh, held = False, None
    if known is None and (raw or not whole_is_cheaper(handle, part.object, part.count)):
        with speculative_bytes(handle, part, layout, 0 if raw else together) as along:
            known, fresh, held = fetch_index_once(handle, layout, key, along)
        if known is None:
            return _none(part)
    if known is not None:
        found = _in_held(handle, part, layout, known, held) if held is not None else None
        found = found or _in_ranges(handle, part, layout, key, known, store.cost.gap, raw, fresh=fresh)
        if found is not None:
            return found
        # replaced since: read it anew, in one piece
    if not raw:
        reading = store.read_up_to(key, most_of_shard(layout, handle.layout.chain_of(part.object)))
        if reading is None:
            return _none(part)
        if reading.parts:
            known = KnownIndex(layout.checked_index_of(reading.parts[0]), reading.version)
            INDEXES.put(handle.cache_space, key, known)
            at, lengths = _entries(handle, part, layout, known)
            return FoundChunks(reading.parts, np.zeros(len(at), np.int64), at, lengths, at, reading.version)
    for last in attempts():  # with much unused space: by ranges in any case
        known, _ = fetch_index(handle, layout, key)
        found = _none(part) if known is None else _in_ranges(handle, part, layout, key, known, 0, raw, fresh=True)
        if found is not None:
            return found
        if last:
            break
    raise StoreError(f"key {key!r} of {store} is replaced as often as it is read")


def _in_held(
    handle: ArrayHandle, part: ObjectPart, layout: ShardLayout, known: KnownIndex, held: HeldBytes
) -> FoundChunks | None:
    """Find chunks in what was read with the index; ``None`` if they are not all in it."""
    at, lengths = _entries(handle, part, layout, known)
    stored = lengths != MISSING
    starts = at[stored]
    if len(starts) and not held.has(int(starts.min()), int((starts + lengths[stored]).max())):
        return None
    offsets = np.where(stored, at - held.start, 0)
    return FoundChunks((held.data,), np.zeros(len(at), np.int64), offsets, lengths, at, known.version)


def _in_ranges(
    handle: ArrayHandle,
    part: ObjectPart,
    layout: ShardLayout,
    key: str,
    known: KnownIndex,
    gap: int,
    raw: dict[int, tuple[tuple[int, int], ...]],
    *,
    fresh: bool,
) -> FoundChunks | None:
    """Find chunks where the ``known`` index says; ``None`` if the shard was replaced since that was read.

    ``fresh``: that was just now. ``raw``: the ranges that are enough of some chunks, by their numbers.
    """
    store = handle.store
    at, lengths = _entries(handle, part, layout, known)
    stored = lengths != MISSING
    starts, sizes = at[stored], lengths[stored]
    if raw:
        exact = handle.layout.chain_of(part.object).encoded.nbytes
        raw = {i: ranges for i, ranges in raw.items() if lengths[i] == exact}
        stored[list(raw)] = False
        pieces = [(int(at[i]) + start, size) for i, ranges in raw.items() for start, size in ranges]
        first, second = np.array(pieces, np.int64).reshape(-1, 2).T
        starts, sizes = np.append(at[stored], first), np.append(lengths[stored], second)
    joined = join_ranges(starts, sizes, gap)
    parts: tuple[BytesLike, ...] = ()
    if joined.fetched:
        check_size("what is read of one shard at a time", sum(size or 0 for _, size in joined.fetched))
        reading = store.read(key, joined.fetched)
        if reading is None and not fresh:
            INDEXES.drop(handle.cache_space, key)
            return _none(part)
        unchanged = reading is not None and reading.version == known.version
        parts = () if reading is None else tuple(reading.parts)
    else:
        unchanged = fresh or store.version(key) == known.version
    if not unchanged:
        INDEXES.drop(handle.cache_space, key)
        return None
    within, offsets = np.zeros((2, len(at)), np.int64)
    whole = len(starts) - sum(map(len, raw.values()))
    within[stored], offsets[stored] = joined.within[:whole], joined.offsets[:whole]
    places = zip(joined.within[whole:].tolist(), joined.offsets[whole:].tolist(), strict=True)
    for i, ranges in raw.items():
        chunk = _sparse(int(lengths[i]))
        for start, size in ranges:
            n, offset = next(places)
            chunk[start : start + size] = memoryview(parts[n])[offset : offset + size]
        within[i] = len(parts)
        parts += (chunk,)
    return FoundChunks(parts, within, offsets, lengths, at, known.version, unchanged=not fresh)


def _entries(handle: ArrayHandle, part: ObjectPart, layout: ShardLayout, known: KnownIndex) -> tuple[Ints, Ints]:
    """Return offset and length of each chunk of ``part``, none of which is longer than what may be read."""
    rows = part.positions(layout.strides)
    offsets, lengths = known.index.offsets[rows], known.index.lengths[rows]
    most = handle.layout.chain_of(part.object).most_stored()
    longest = max(lengths.tolist(), default=MISSING) if len(lengths) <= _FEW else int(lengths.max())
    if longest > most:
        i = int(np.argmax(lengths > most))
        _check_length(handle, part, int(lengths[i]), i, int(offsets[i]))
    return offsets, lengths


def _check_length(handle: ArrayHandle, part: ObjectPart, length: int, i: int = 0, offset: int = 0) -> None:
    """Raise the error for chunk ``i`` if it is longer than what may be read; see :meth:`CodecChain.check_stored`."""
    chain = handle.layout.chain_of(part.object)
    if length > chain.most_stored():
        try:
            chain.check_stored(length)
        except DataError as error:
            raise error.at(chunk=part.chunk(i), byte_range=(offset, length)) from None


def _none(part: ObjectPart) -> FoundChunks:
    nothing = np.zeros(part.count, np.int64)
    return FoundChunks((), nothing, nothing, np.full(part.count, MISSING, np.int64), nothing, is_stored=False)


def _whole_object(
    value: BytesLike | OpenFile, size: int, version: Version | None, unlocked: bool = False
) -> FoundChunks:
    zero = np.zeros(1, np.int64)
    return FoundChunks((value,), zero, zero, np.array([size], np.int64), zero, version, unlocked)


__all__ = ["FoundChunks", "find_chunks", "read_chunk_object"]
