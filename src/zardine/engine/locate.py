"""The chunk locator: where the encoded bytes of chunks are. It alone reads, checks and remembers the indexes of shards.

For a reader, :func:`find_chunks` says for each chunk in which buffer or open file it is, at which offset and how long,
all from one version of the stored object. There are three ways to the chunks of a shard: the store gives it as an open
file; its index is read first, then the ranges of the wanted chunks, near ones joined (of large ones that are stored as
they lie in memory only what is wanted of them); or, where that is cheaper, the whole of it is read in one request. A
writer takes :func:`index_to_edit` for a shard that it changes as a file, and :func:`read_whole_shard` for one that it
replaces.

An index is decoded and checked against its shard in two functions: :func:`read_index`, by requests to a store, and
:func:`index_in_file`, in an open file. What was checked is remembered with the version of the shard
(:data:`INDEXES`). Whether the last write of a shard was cut off is known from the record that its
writer left (:func:`recorded_index`), never from what bytes look like.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import closing, contextmanager
from dataclasses import dataclass
from mmap import mmap
from threading import Lock

import numpy as np

from zardine.buffers import BytesLike, Ints
from zardine.cache import Cache
from zardine.codecs.chain import CodecChain
from zardine.engine.freshness import is_far
from zardine.engine.handle import ArrayHandle
from zardine.engine.raw_ranges import has_raw_ranges, raw_ranges
from zardine.engine.read_ahead import window_bytes
from zardine.errors import (
    ConditionFailedError,
    CorruptionError,
    DataError,
    ShardIndexError,
    StoreError,
    TornShardWarning,
)
from zardine.indexing.plan import ObjectPart
from zardine.limits import CHUNK, TEXT, UNUSED, check_size, limit_of
from zardine.settings import config, is_on
from zardine.sharding.index import MISSING, ShardIndex
from zardine.sharding.layout import ShardLayout
from zardine.stores.attempts import CHANGES, attempts
from zardine.stores.base import ByteRange, EditableFile, OpenFile, Reading, Store, Version
from zardine.stores.file_calls import read_part
from zardine.stores.local.beside import checksum

# indexes that were seen lately


_OVERHEAD = 512
"""Bytes counted for an entry beside its arrays."""


@dataclass(frozen=True, slots=True, eq=False)
class KnownIndex:
    """The ``index`` of one version of a shard, which was checked."""

    index: ShardIndex
    version: Version | None
    checksum: int | None = None
    """Of its stored bytes, as :mod:`zardine.stores.local.beside` has it, for who edits the shard in its file."""


class IndexCache:
    """Indexes of shards seen lately, of ``cache.shard_index_bytes`` at most, by space and key.

    An entry is used only together with the version of the object that it came from: a read of chunks that finds another
    version throws the entry away and starts anew. Shards of stores without versions are not remembered.
    """

    def __init__(self) -> None:
        self._kept: Cache[tuple[int, str], KnownIndex] = Cache(0)

    @property
    def nbytes(self) -> int:
        """Return the bytes of the entries kept now."""
        return self._kept.nbytes

    def clear(self) -> None:
        """Forget everything."""
        self._kept.clear()

    def get(self, space: int, key: str) -> KnownIndex | None:
        """Return the entry of ``key``, or ``None``."""
        return self._kept.get((space, key))

    def put(self, space: int, key: str, entry: KnownIndex) -> None:
        """Remember an entry, if it has a version and fits."""
        if entry.version is not None:
            self._kept.limit = int(config.snapshot["cache.shard_index_bytes"] or 0)
            self._kept.put((space, key), entry, entry.index.offsets.nbytes + entry.index.lengths.nbytes + _OVERHEAD)

    def drop(self, space: int, key: str) -> None:
        """Forget the entry of ``key``."""
        self._kept.drop((space, key))


INDEXES = IndexCache()


def is_known(handle: ArrayHandle, parts: Iterable[ObjectPart], keys: Iterable[str]) -> bool:
    """Tell whether the indexes of all these objects are remembered, so that reading may find them unchanged."""
    return all(
        handle.layout.shard(part.object) is not None and INDEXES.get(handle.cache_space, key) is not None
        for part, key in zip(parts, keys, strict=True)
    )


# where chunks are

_MOSTLY = 0.5
"""The share of its inner chunks from which on a shard is mostly wanted."""

_FEW = 16
"""Lengths of which Python finds the longest sooner than NumPy does."""

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
        if span > _AT_ONCE or self.lengths[stored].sum() < _MOSTLY * span:
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
    if files:
        looks = attempts(CHANGES) if unlocked else (True,)
    for last in looks:
        file = handle.store.open_file(key)
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
        with _unasked(handle, part, layout, 0 if raw else together) as along:
            known, fresh, held = _read_once(handle, layout, key, along)
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
        known, _ = _read_known(handle, layout, key)
        found = _none(part) if known is None else _in_ranges(handle, part, layout, key, known, 0, raw, fresh=True)
        if found is not None:
            return found
        if last:
            break
    raise StoreError(f"key {key!r} of {store} is replaced as often as it is read")


_OF_MEMORY = 4
"""What is read unasked of all objects of a call is this part of its memory, at most."""


@contextmanager
def _unasked(handle: ArrayHandle, part: ObjectPart, layout: ShardLayout, together: int) -> Iterator[int]:
    """Say how many bytes to read along with the index of a shard: as many as its chunks take as a rule, or none.

    Far away that saves a request, if what is not wanted of these bytes flows in a quarter of its time, and in its time
    what the other objects, with which this is read ``together``, and other calls read so. What was measured there says
    how much that is. Until this context ends, the bytes count as under way.
    """
    size = _usual_size(handle, part) if together and is_far(handle.store) and is_on("speculative_read") else None
    if size is None:
        yield 0
        return
    cost = handle.store.cost
    one, most = cost.spare
    inside = handle.layout.chunks_in_array(part.object)
    nbytes, unasked = inside * size, max(0, inside - _read_anyway(part, layout, size, cost.gap)) * size
    little = unasked <= one and unasked * together <= min(most, window_bytes() // _OF_MEMORY)
    if not (little and nbytes <= limit_of(CHUNK) and _UNDER_WAY.add(unasked, most)):
        yield 0
        return
    try:
        yield nbytes
    finally:
        _UNDER_WAY.remove(unasked)


def _usual_size(handle: ArrayHandle, part: ObjectPart) -> int | None:
    """Return how many bytes a chunk takes at most, as a rule; ``None`` where its elements vary in length.

    Then who has opened the array may know it.

    Few writers store what does not become smaller in much more bytes than it has: those of a header and a checksum, or
    of the index of a shard in the shard, for which a 64th is enough.
    """
    chain = handle.layout.chain_of(part.object)
    if chain.encoded_size is not None or chain.encoded_limit is None:
        return handle.usual_nbytes if chain.encoded_size is None else chain.encoded_size
    nbytes = handle.layout.chunk_nbytes
    return min(chain.encoded_limit, nbytes + nbytes // 64 + 64)


def _read_anyway(part: ObjectPart, layout: ShardLayout, size: int, gap: int) -> int:
    """Return how many chunks of a shard are read for ``part``: what lies between near ones is."""
    rows = part.positions(layout.strides)
    span = int(rows.max()) - int(rows.min()) + 1
    return span if (span - part.count) * size <= gap else part.count


class _UnderWay:
    """Bytes that all calls of this process read unasked just now."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Begin at nothing: in a forked process nobody waits for them."""
        self._lock, self._nbytes = Lock(), 0

    def add(self, nbytes: int, most: int) -> bool:
        """Count so many, unless that makes more than ``most``."""
        with self._lock:
            fits = self._nbytes + nbytes <= most
            self._nbytes += nbytes if fits else 0
            return fits

    def remove(self, nbytes: int) -> None:
        """Count them no more."""
        with self._lock:
            self._nbytes = max(0, self._nbytes - nbytes)


_UNDER_WAY = _UnderWay()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_UNDER_WAY.forget)


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


def whole_is_cheaper(handle: ArrayHandle, coordinates: Sequence[int], count: int) -> bool:
    """Tell whether to read ``count`` chunks of a shard with all of it in one request, rather than index, then ranges.

    The shard is the one at these grid ``coordinates``. It is cheaper if most is wanted, and the bytes of the rest flow
    in the time of a request. How long the shard is cannot be known yet: as long as its decoded chunks at most, as a
    rule.
    """
    inside = handle.layout.chunks_in_array(coordinates)
    rest = (inside - count) * max(handle.layout.chunk_nbytes, handle.usual_nbytes or 0)
    return count >= _MOSTLY * inside and (rest <= handle.store.cost.gap or count >= inside)


def _none(part: ObjectPart) -> FoundChunks:
    nothing = np.zeros(part.count, np.int64)
    return FoundChunks((), nothing, nothing, np.full(part.count, MISSING, np.int64), nothing, is_stored=False)


def _whole_object(
    value: BytesLike | OpenFile, size: int, version: Version | None, unlocked: bool = False
) -> FoundChunks:
    zero = np.zeros(1, np.int64)
    return FoundChunks((value,), zero, zero, np.array([size], np.int64), zero, version, unlocked)


# byte ranges


@dataclass(frozen=True, slots=True, eq=False)
class JoinedRanges:
    """Wanted ranges, each inside one of the ``fetched`` ranges."""

    fetched: tuple[ByteRange, ...]
    within: Ints
    """For each wanted range, the number of the fetched range that holds it."""
    offsets: Ints
    """Where it starts in that range."""


def join_ranges(starts: Ints, sizes: Ints, gap: int) -> JoinedRanges:
    """Join ranges that overlap or lie at most ``gap`` bytes apart. Ranges may come in any order and be shared."""
    if len(starts) <= 1:
        fetched = tuple(zip(starts.tolist(), sizes.tolist(), strict=True))
        return JoinedRanges(fetched, np.zeros(len(starts), np.int64), np.zeros(len(starts), np.int64))
    order = np.argsort(starts, kind="stable")
    sorted_starts = starts[order]
    reach = np.maximum.accumulate(sorted_starts + sizes[order])
    new = np.concatenate(([True], sorted_starts[1:] > reach[:-1] + gap))
    firsts = np.flatnonzero(new)
    begins = sorted_starts[firsts]
    ends = reach[np.append(firsts[1:], len(order)) - 1]
    within = np.empty(len(order), np.int64)
    within[order] = np.cumsum(new) - 1
    fetched = tuple(zip(begins.tolist(), (ends - begins).tolist(), strict=True))
    return JoinedRanges(fetched, within, starts - begins[within])


# indexes by requests to a store


@dataclass(frozen=True, slots=True, eq=False)
class StoredIndex:
    """The index of a shard of ``size`` bytes, in one ``version`` of it."""

    index: ShardIndex
    size: int
    version: Version | None
    held: HeldBytes
    """What was read of the shard, the index and more."""
    encoded: BytesLike
    """The index as it is stored."""


@dataclass(frozen=True, slots=True, eq=False)
class HeldBytes:
    """A part of a stored object: its bytes from ``start`` on."""

    data: BytesLike
    start: int

    def has(self, start: int, stop: int) -> bool:
        """Whether these bytes of the object are in it."""
        return self.start <= start and stop <= self.start + len(self.data)


def read_index(
    store: Store, key: str, layout: ShardLayout, *, check: bool = True, along: int = 0
) -> StoredIndex | None:
    """Return the index of a shard, checked against the shard; ``None`` if that is not stored.

    So many bytes are read ``along`` with it, of those next to it. Without ``check``, entries may point anywhere. Raises
    :class:`~zardine.errors.CorruptionError` for a damaged one, :class:`~zardine.errors.ChunkTooLargeError` where the
    settings forbid to read one of that size, and :class:`~zardine.errors.StoreError` where others replace the shard as
    often as it is read.
    """
    for last in attempts():
        if layout.index_memory > limit_of(CHUNK):
            size = store.size(key)
            if size is None:
                return None
            layout.check_too_short(size)
            layout.check_memory()
        start, length = layout.index_range
        reading = store.read(key, ((start, length + along) if length is not None else (start - along, None),))
        if reading is None:
            return None
        data = memoryview(reading.parts[0])
        held = HeldBytes(data, 0 if layout.index_at_start else reading.size - len(data))
        encoded = data[: layout.index_size] if layout.index_at_start else data[-layout.index_size :]
        index = layout.decode_index(encoded, reading.size)
        if not check:
            return StoredIndex(index, reading.size, reading.version, held, encoded)
        try:
            layout.check(index, reading.size, _Parts(store, key, reading.version, held).read)
            return StoredIndex(index, reading.size, reading.version, held, encoded)
        except _ReplacedError:
            if last:
                break
    raise StoreError(f"key {key!r} of {store} is replaced as often as it is read")


class _ReplacedError(Exception):
    """The object was replaced while its index was looked at."""


@dataclass(frozen=True, slots=True)
class _Parts:
    """Reads parts of one version of an object, some of which are ``held``."""

    store: Store
    key: str
    version: Version | None
    held: HeldBytes

    def read(self, part: tuple[int, int]) -> BytesLike:
        """Return one part. Raises :class:`_ReplacedError` where that version is not there any more."""
        start, length = part
        if self.held.has(start, start + length):
            return memoryview(self.held.data)[start - self.held.start :][:length]
        reading = self.store.read(self.key, (part,))
        if reading is None or reading.version != self.version:
            raise _ReplacedError
        return reading.parts[0]


def _read_known(
    handle: ArrayHandle, layout: ShardLayout, key: str, along: int = 0
) -> tuple[KnownIndex | None, HeldBytes | None]:
    stored = read_index(handle.store, key, layout, along=along)
    if stored is None:
        return None, None
    known = KnownIndex(stored.index, stored.version, checksum(stored.encoded) if handle.store.edits_files else None)
    INDEXES.put(handle.cache_space, key, known)
    return known, stored.held


_reading: dict[tuple[int, int, str], Future[KnownIndex | None]] = {}
"""Indexes that are asked for just now, by process (a fork has copies that never come), space and key."""


def _read_once(
    handle: ArrayHandle, layout: ShardLayout, key: str, along: int
) -> tuple[KnownIndex | None, bool, HeldBytes | None]:
    """Read an index, say whether that was now, and what was read ``along``; or wait for who is reading it already.

    What that has found may be older than this call: it counts as what is remembered does. That nothing is stored is not
    remembered, nor is an error.
    """
    place, mine = (os.getpid(), handle.cache_space, key), Future[KnownIndex | None]()
    other = _reading.setdefault(place, mine)
    if other is not mine:
        known = None if other.exception() else other.result()
        if known is not None:
            return known, False, None
        known, held = _read_known(handle, layout, key, along)
        return known, True, held
    held = None
    try:
        known = INDEXES.get(handle.cache_space, key)  # by one who was done before this was noted
        fresh = known is None
        if known is None:
            known, held = _read_known(handle, layout, key, along)
        mine.set_result(known)
    except BaseException as error:
        mine.set_exception(error)
        raise
    finally:
        del _reading[place]
    return known, fresh, held


# indexes in open files


def known_index(handle: ArrayHandle, layout: ShardLayout, key: str, file: OpenFile, *, unlocked: bool) -> KnownIndex:
    """Return the index of the shard that is open as ``file``, for a reader.

    Raises :class:`~zardine.errors.CorruptionError` for an index that is damaged or points outside the shard. If the
    file is ``unlocked`` (no one edits it meanwhile) the record of a write that was cut off says which index counts, if
    there is one; a warning says so.
    """
    known = INDEXES.get(handle.cache_space, key)
    if known is not None and known.version == file.version:
        return known
    try:
        index, encoded = index_in_file(layout, file)
        known = KnownIndex(index, file.version, checksum(encoded))
    except CorruptionError as error:
        found = recorded_index(layout, file) if unlocked else None
        if found is None:
            raise
        warn_of_torn(key, error, file)
        known = KnownIndex(found, file.version)
        if not file.keeps_writers_out:
            return known  # which may count for this file alone, before its writer goes on
    INDEXES.put(handle.cache_space, key, known)
    return known


def with_writer(error: CorruptionError, file: OpenFile | None) -> CorruptionError:
    """Return ``error``, which says too that a writer has the file locked, if it was waited for in vain."""
    if file is None or not file.is_stalled:
        return error
    reason = (
        f"{error.reason}; {file.lock_holder()} has locked {file.path!r} and may be stopped while it writes this: let "
        "it go on, or end it, and read again"
    )
    return type(error)(
        reason,
        array=error.array,
        key=error.key,
        chunk=error.chunk,
        codec=error.codec,
        byte_range=error.byte_range,
    )


def index_in_file(layout: ShardLayout, file: OpenFile) -> tuple[ShardIndex, BytesLike]:
    """Return the index that stands at its place in an open shard, checked against the shard; and its bytes."""
    layout.check_too_short(file.size)
    layout.check_memory()
    encoded = file.read(layout.index_range)
    index = layout.decode_index(encoded, file.size)
    layout.check(index, file.size, file.read)
    return index, encoded


def index_to_edit(handle: ArrayHandle, layout: ShardLayout, key: str, file: EditableFile) -> tuple[ShardIndex, int]:
    """Return the index of a shard that is to be changed, all of whose entries can be carried over; and its checksum.

    A write that was cut off before is undone, or finished. Raises :class:`~zardine.errors.CorruptionError` for an index
    that is damaged otherwise.
    """
    known = INDEXES.get(handle.cache_space, key)
    if known is not None and known.checksum is not None and known.version == file.version:
        return known.index, known.checksum
    try:
        index, encoded = index_in_file(layout, file)
        return index, checksum(encoded)
    except CorruptionError as error:
        if file.mend():
            return index_to_edit(handle, layout, key, file)
        raise not_written(error) from None


def recorded_index(layout: ShardLayout, file: OpenFile) -> ShardIndex | None:
    """Return the index that counts in a shard whose last write is not finished, by the record that its writer left.

    For a reader that has waited for writers. ``None``: no write is unfinished.
    """
    table = file.cut_off()
    if table is None:
        return None
    try:
        index = layout.decode_index(file.read((table.at, layout.index_size)))
        layout.check(index, table.size, file.read)
    except DataError:
        return None  # a shard of another form
    return index


def recorded_index_of(store: Store, layout: ShardLayout, key: str, version: Version | None) -> ShardIndex | None:
    """Return the same for a shard that was read as bytes, in that ``version``."""
    file = store.open_file(key) if store.edits_files else None
    if file is None:
        return None
    with file:
        file.wait()
        return recorded_index(layout, file) if file.version == version else None


def warn_of_torn(key: str, error: CorruptionError, file: OpenFile) -> None:
    """Warn that a shard is read as it was before its last write, which is not finished."""
    if file.is_stalled:
        reason = (
            f"the last write of shard {key!r} is not finished ({error.reason}), and {file.lock_holder()} still has "
            f"{file.path!r} locked, perhaps stopped: the shard is read as it was before"
        )
    else:
        reason = (
            f"the last write of shard {key!r} was cut off ({error.reason}): it is read as it was before; the next "
            "write to it, or zardine.repair, puts it in order"
        )
    warnings.warn(reason, TornShardWarning, stacklevel=3)


NOTHING_WRITTEN = "the stored shard is damaged, so nothing was written: "


def not_written(error: CorruptionError) -> CorruptionError:
    """Return ``error``, which says too that it kept something from being written."""
    reason = f"{NOTHING_WRITTEN}{error.reason}"
    return type(error)(reason, codec=error.codec, byte_range=error.byte_range)


# whole shards


@dataclass(frozen=True, slots=True, eq=False)
class WholeShard:
    """A shard in memory, and its index, which was checked. ``size`` is that of what is stored, which may be larger."""

    data: BytesLike
    index: ShardIndex
    version: Version | None
    size: int


def most_of_shard(layout: ShardLayout, chain: CodecChain) -> int:
    """Return the most bytes of a shard that are read in one piece: what its chunks can take, and some unused space."""
    limit = chain.encoded.now() if TEXT in chain.encoded.settings else chain.encoded
    return min(limit_of(CHUNK), layout.index_size + layout.count * limit.nbytes + limit_of(UNUSED))


def read_whole_shard(store: Store, key: str, layout: ShardLayout, chain: CodecChain) -> WholeShard | None:
    """Return a shard with all of its inner chunks; where it has much unused space, without that.

    Then the offsets in its index are those in ``data``. Raises :class:`~zardine.errors.ConditionFailedError` if others
    replace it meanwhile, and :class:`~zardine.errors.DataError` as reading does.
    """
    reading = store.read_up_to(key, most_of_shard(layout, chain))
    if reading is None:
        return None
    if reading.parts:
        shard = reading.parts[0]
        return WholeShard(shard, layout.checked_index_of(shard), reading.version, reading.size)
    stored = read_index(store, key, layout)
    if stored is None:
        return None
    index = stored.index
    check_carried(index, layout, chain)
    there = index.stored()
    joined = join_ranges(index.offsets[there], index.lengths[there], 0)
    check_size("a shard without its unused space", sum(size or 0 for _, size in joined.fetched))
    rest = store.read(key, joined.fetched)
    if rest is None or rest.version != stored.version:
        raise ConditionFailedError(f"key {key!r} of {store} changed while it was read")
    begins = np.cumsum([0, *map(len, rest.parts)])
    offsets = index.offsets.copy()
    offsets[there] = begins[joined.within] + joined.offsets
    return WholeShard(b"".join(rest.parts), ShardIndex(offsets, index.lengths), stored.version, stored.size)


def check_carried(
    index: ShardIndex,
    layout: ShardLayout,
    chain: CodecChain,
    *,
    but: Ints | None = None,
    message: str = "",
) -> None:
    """Raise for the first inner chunk that is longer than any can be, but for the rows ``but`` of the index."""
    too_long = index.lengths > chain.most_stored()
    if but is not None:
        too_long[but] = False
    if too_long.any():
        row = int(np.flatnonzero(too_long)[0])
        offset, length = int(index.offsets[row]), int(index.lengths[row])
        try:
            chain.check_stored(length)
        except DataError as error:
            kind = ShardIndexError if isinstance(error, CorruptionError) else type(error)
            reason = f"{message}inner chunk {layout.position_of(row)} of the shard: {error.reason}"
            raise kind(reason, byte_range=(offset, length)) from None


__all__ = [
    "INDEXES",
    "NOTHING_WRITTEN",
    "FoundChunks",
    "IndexCache",
    "JoinedRanges",
    "KnownIndex",
    "StoredIndex",
    "WholeShard",
    "check_carried",
    "find_chunks",
    "index_in_file",
    "index_to_edit",
    "join_ranges",
    "known_index",
    "most_of_shard",
    "not_written",
    "read_chunk_object",
    "read_index",
    "read_whole_shard",
    "recorded_index",
    "recorded_index_of",
    "warn_of_torn",
    "with_writer",
]
