"""Finding the encoded bytes of chunks: in buffers or in an open file, checked, all from one version of the object."""

from __future__ import annotations

import os
from contextlib import closing
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from zardine.buffers import BytesLike
from zardine.engine.file_index import known_index
from zardine.engine.index_cache import INDEXES, KnownIndex
from zardine.engine.ranges import join_ranges
from zardine.engine.shard_size import most_of_shard, read_index
from zardine.engine.source import ArraySource
from zardine.errors import CorruptionError, DataError, StoreError
from zardine.indexing.plan import ObjectPart
from zardine.limits import check_size
from zardine.settings import config
from zardine.sharding.index import ShardIndex, decode_index
from zardine.sharding.layout import ShardLayout
from zardine.stores.attempts import attempts
from zardine.stores.base import OpenFile, Version

Ints: TypeAlias = npt.NDArray[np.int64]

_MOSTLY = 0.5
"""The share of its inner chunks from which on a shard is mostly wanted."""

_FEW = 16

MISSING = -1
"""Length of a chunk that is not stored."""


@dataclass(frozen=True, slots=True, eq=False)
class FoundChunks:
    """Where chunks are: chunk ``i`` is ``lengths[i]`` bytes at ``offsets[i]`` of ``sources[within[i]]``."""

    sources: tuple[BytesLike | OpenFile, ...]
    within: Ints
    offsets: Ints
    lengths: Ints
    """:data:`MISSING` for chunks that are not stored."""
    stored_at: Ints
    """Offset of each chunk in the stored object, for error texts."""
    version: Version | None = None
    """Version of the stored object, where the store has versions."""

    settled: bool = False
    """Whether the file, if it is one, is not edited before it is closed."""

    is_stored: bool = True
    """Whether the object is stored at all."""

    unchanged: bool = False
    """Whether the object still is the one that an earlier read found; then the array was not resharded since."""

    @property
    def in_file(self) -> bool:
        """Whether the chunks are in an open file."""
        return any(isinstance(source, OpenFile) for source in self.sources)

    def is_settled(self) -> bool:
        """Whether nobody has edited the file, if it is one, since it was opened."""
        return self.settled or all(s.is_settled() for s in self.sources if isinstance(s, OpenFile))

    def chunk(self, i: int) -> BytesLike | None:
        """The bytes of chunk ``i``; ``None`` if it is not stored."""
        length = int(self.lengths[i])
        if length == MISSING:
            return None
        source, offset = self.sources[int(self.within[i])], int(self.offsets[i])
        if isinstance(source, OpenFile):
            return os.pread(source.fd, length, offset)
        return memoryview(source)[offset : offset + length]

    def byte_range(self, i: int) -> tuple[int, int]:
        """Offset and length of chunk ``i`` in the stored object."""
        return int(self.stored_at[i]), int(self.lengths[i])

    def in_memory(self) -> FoundChunks:
        """The same chunks as bytes in memory; the files among the sources are closed."""
        if not self.in_file:
            return self
        with closing(self):
            parts = [self.chunk(i) for i in range(len(self.lengths))]
        within = np.arange(len(parts))
        sources = tuple(b"" if part is None else part for part in parts)
        return FoundChunks(sources, within, np.zeros_like(within), self.lengths, self.stored_at, self.version, True)

    def close(self) -> None:
        """Close the files among the sources."""
        for source in self.sources:
            if isinstance(source, OpenFile):
                source.close()


def find_chunks(source: ArraySource, part: ObjectPart, key: str, *, files: bool, settled: bool = False) -> FoundChunks:
    """Where the chunks of ``part`` are; with ``files``, in an open file if the store gives files.

    A file is ``settled`` when no one edits it until it is closed, for which this waits.

    Raises :class:`~zardine.errors.ShardIndexError` or :class:`~zardine.errors.ChecksumError` for an index that is
    damaged or points outside the shard.
    """
    layout = source.layout.shard(part.object)
    while files:
        file = source.store.open_file(key)
        if file is None:
            return _none(part)
        try:
            if settled:
                file.wait()
            if layout is None:
                _check_length(source, part, file.size)
                return _whole_object(file, file.size, file.version, settled)
            return _in_file(source, part, layout, key, file, settled=settled)
        except CorruptionError:
            replaced = settled and file.is_replaced()  # by a writer that has put it in order
            file.close()
            if not replaced:
                raise
        except BaseException:
            file.close()
            raise
    if layout is None:
        reading = source.store.read_up_to(key, source.layout.chain_of(part.object).most_stored())
        if reading is None:
            return _none(part)
        _check_length(source, part, reading.size)
        return _whole_object(reading.parts[0], reading.size, reading.version)
    return _in_shard(source, part, layout, key)


def _in_file(
    source: ArraySource, part: ObjectPart, layout: ShardLayout, key: str, file: OpenFile, *, settled: bool
) -> FoundChunks:
    known = known_index(source, layout, key, file, settled=settled)
    rows = part.positions(layout.strides)
    offsets, lengths = known.offsets[rows], known.lengths[rows]
    _check_lengths(source, part, lengths, offsets)
    zeros = np.zeros(len(rows), np.int64)
    return FoundChunks((file,), zeros, offsets, lengths, offsets, file.version, settled)


def _in_shard(source: ArraySource, part: ObjectPart, layout: ShardLayout, key: str) -> FoundChunks:
    rows = part.positions(layout.strides)
    store = source.store
    known = INDEXES.get(source.cache_space, key)
    fresh = known is None
    if known is None and not _whole_is_cheaper(source, part, layout):
        known = _read_index(source, layout, key)
        if known is None:
            return _none(part)
    if known is not None:
        at, lengths = known.offsets[rows], known.lengths[rows]
        _check_lengths(source, part, lengths, at)
        stored = lengths != MISSING
        joined = join_ranges(at[stored], lengths[stored], store.cost.gap)
        if joined.fetched:
            check_size("what is read of one shard at a time", sum(size or 0 for _, size in joined.fetched))
            reading = store.read(key, joined.fetched)
            if reading is None:
                INDEXES.drop(source.cache_space, key)
                return _none(part)
            unchanged = reading.version == known.version
            parts = reading.parts
        else:
            unchanged = fresh or store.version(key) == known.version
            parts = ()
        if unchanged:
            within, offsets = np.zeros((2, len(rows)), np.int64)
            within[stored], offsets[stored] = joined.within, joined.offsets
            return FoundChunks(parts, within, offsets, lengths, at, known.version, unchanged=not fresh)
        INDEXES.drop(source.cache_space, key)  # replaced since: read it anew, in one piece
    reading = store.read_up_to(key, most_of_shard(layout, source.layout.chain_of(part.object)))
    if reading is None:
        return _none(part)
    if not reading.parts:  # with much unused space: piece by piece
        return _in_large_shard(source, part, layout, key)
    shard = reading.parts[0]
    known = _known(layout.checked_index_of(shard), reading.version)
    INDEXES.put(source.cache_space, key, known)
    at, lengths = known.offsets[rows], known.lengths[rows]
    _check_lengths(source, part, lengths, at)
    return FoundChunks(reading.parts, np.zeros(len(rows), np.int64), at, lengths, at, reading.version)


def _in_large_shard(source: ArraySource, part: ObjectPart, layout: ShardLayout, key: str) -> FoundChunks:
    """As :func:`_in_shard`, by ranges in any case; again where the shard is replaced in between."""
    rows = part.positions(layout.strides)
    for last in attempts():
        known = _read_index(source, layout, key)
        if known is None:
            return _none(part)
        at, lengths = known.offsets[rows], known.lengths[rows]
        _check_lengths(source, part, lengths, at)
        stored = lengths != MISSING
        joined = join_ranges(at[stored], lengths[stored], 0)
        check_size("what is read of one shard at a time", sum(size or 0 for _, size in joined.fetched))
        reading = source.store.read(key, joined.fetched)
        if reading is not None and reading.version == known.version:
            within, offsets = np.zeros((2, len(rows)), np.int64)
            within[stored], offsets[stored] = joined.within, joined.offsets
            return FoundChunks(reading.parts, within, offsets, lengths, at, known.version)
        INDEXES.drop(source.cache_space, key)
        if last:
            break
    raise StoreError(f"key {key!r} of {source.store} is replaced as often as it is read")


def _check_lengths(source: ArraySource, part: ObjectPart, lengths: Ints, offsets: Ints) -> None:
    """Raise the error for the first chunk that is longer than what may be read; see :meth:`CodecChain.check_stored`."""
    most = source.layout.chain_of(part.object).most_stored()
    longest = max(lengths.tolist(), default=MISSING) if len(lengths) <= _FEW else int(lengths.max())
    if longest > most:
        i = int(np.argmax(lengths > most))
        _check_length(source, part, int(lengths[i]), i, int(offsets[i]))


def _check_length(source: ArraySource, part: ObjectPart, length: int, i: int = 0, offset: int = 0) -> None:
    """Raise the error for chunk ``i`` if it is longer than what may be read."""
    chain = source.layout.chain_of(part.object)
    if length > chain.most_stored():
        try:
            chain.check_stored(length)
        except DataError as error:
            raise error.at(chunk=part.chunk(i), byte_range=(offset, length)) from None


def _whole_is_cheaper(source: ArraySource, part: ObjectPart, layout: ShardLayout) -> bool:
    """Whether to read a shard whole, index and all, in one request, rather than its index and then what is wanted.

    It is if most is wanted (or the setting ``speculative_read`` says that this does not matter), and the bytes of the
    rest flow in the time of a request. How long the shard is cannot be known yet: as long as its decoded chunks at
    most, as a rule.
    """
    rest = (layout.count - part.count) * source.layout.chunk_nbytes
    cheap = rest <= source.store.cost.gap
    return (part.count >= _MOSTLY * layout.count and (cheap or part.count == layout.count)) or (
        cheap and bool(config["speculative_read"])
    )


def _read_index(source: ArraySource, layout: ShardLayout, key: str) -> KnownIndex | None:
    reading = read_index(source.store, key, layout)
    if reading is None:
        return None
    layout.check_too_short(reading.size)
    try:
        index = decode_index(reading.parts[0], layout.index_chain)
    except DataError as error:
        raise error.at(byte_range=layout.index_bytes(reading.size)) from None

    def read(part_range: tuple[int, int]) -> BytesLike:
        part = source.store.read(key, (part_range,))
        if part is None or part.version != reading.version:
            raise _ReplacedError
        return part.parts[0]

    try:
        layout.check(index, reading.size, read)
    except _ReplacedError:
        return _read_index(source, layout, key)
    known = _known(index, reading.version)
    INDEXES.put(source.cache_space, key, known)
    return known


class _ReplacedError(Exception):
    """The object was replaced while its index was looked at."""


def _known(index: ShardIndex, version: Version | None) -> KnownIndex:
    # EMPTY becomes MISSING
    return KnownIndex(index.offsets.astype(np.int64), index.lengths.astype(np.int64), version)


def _none(part: ObjectPart) -> FoundChunks:
    nothing = np.zeros(part.count, np.int64)
    return FoundChunks((), nothing, nothing, np.full(part.count, MISSING, np.int64), nothing, is_stored=False)


def _whole_object(
    value: BytesLike | OpenFile, size: int, version: Version | None, settled: bool = False
) -> FoundChunks:
    zero = np.zeros(1, np.int64)
    return FoundChunks((value,), zero, zero, np.array([size], np.int64), zero, version, settled)
