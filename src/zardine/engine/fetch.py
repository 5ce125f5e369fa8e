"""Getting the encoded bytes of inner chunks out of a stored shard, checked, and all from one version of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from zardine.buffers import BytesLike
from zardine.engine.index_cache import INDEXES, KnownIndex
from zardine.engine.ranges import JoinedRanges, join_ranges
from zardine.engine.source import ArraySource
from zardine.errors import ShardIndexError
from zardine.indexing.plan import ObjectPart
from zardine.sharding.index import ShardIndex, decode_index
from zardine.sharding.layout import ShardLayout
from zardine.stores.base import WHOLE

_WHOLE_SHARE = 0.5
"""A shard of which at least this share of inner chunks is wanted is read whole, index and all, in one request."""


@dataclass(frozen=True, slots=True, eq=False)
class FetchedChunks:
    """Encoded inner chunks: row ``i`` is chunk ``i`` of the part that was asked for."""

    stored: npt.NDArray[np.bool_]
    entries: ShardIndex
    _joined: JoinedRanges
    _rows: npt.NDArray[Any]
    _parts: tuple[BytesLike, ...]

    def chunk(self, i: int) -> BytesLike | None:
        """The bytes of chunk ``i``; ``None`` if it is empty."""
        return self._joined.cut(self._parts, int(self._rows[i])) if self.stored[i] else None

    def byte_range(self, i: int) -> tuple[int, int]:
        """Offset and length of chunk ``i`` in the shard."""
        return int(self.entries.offsets[i]), int(self.entries.lengths[i])


def fetch_chunks(source: ArraySource, part: ObjectPart, layout: ShardLayout, key: str) -> FetchedChunks | None:
    """The inner chunks that ``part`` asks for; ``None`` if the shard is not stored.

    Raises :class:`~zardine.errors.ShardIndexError` for an index that is damaged or points outside the shard.
    """
    rows = part.positions(layout.strides)
    whole = part.count >= _WHOLE_SHARE * layout.count
    known = INDEXES.get(source.cache_space, key)
    fresh = known is None
    if known is None and not whole:
        known = _read_index(source, layout, key)
        if known is None:
            return None
    if known is not None:
        entries = checked_entries(known.index.take(rows), layout, known.size, part)
        joined, order = _join(entries)
        if not joined.fetched:
            if fresh or source.store.version(key) == known.version:
                return FetchedChunks(entries.stored(), entries, joined, order, ())
        else:
            reading = source.store.read(key, joined.fetched)
            if reading is None:
                INDEXES.drop(source.cache_space, key)
                return None
            if reading.version == known.version:
                return FetchedChunks(entries.stored(), entries, joined, order, reading.parts)
        INDEXES.drop(source.cache_space, key)  # replaced since: read it anew, in one piece
    reading = source.store.read(key, (WHOLE,))
    if reading is None:
        return None
    shard = reading.parts[0]
    index = layout.index_of(shard)
    INDEXES.put(source.cache_space, key, KnownIndex(index, len(shard), reading.version))
    entries = checked_entries(index.take(rows), layout, len(shard), part)
    every = JoinedRanges(
        (WHOLE,),
        np.zeros(len(rows), np.int64),
        entries.offsets.astype(np.int64),
        entries.lengths.astype(np.int64),
    )
    return FetchedChunks(entries.stored(), entries, every, np.arange(len(rows)), reading.parts)


def checked_entries(entries: ShardIndex, layout: ShardLayout, size: int, part: ObjectPart) -> ShardIndex:
    """``entries``, none of which points outside the shard."""
    outside = entries.beyond(*layout.data_bounds(size))
    if outside.any():
        i = int(np.flatnonzero(outside)[0])
        raise ShardIndexError(
            f"the shard index places this inner chunk at offset {entries.offsets[i]} with length {entries.lengths[i]}, "
            f"outside the data of a shard of {size} bytes",
            chunk=part.chunk(i),
        )
    return entries


def _read_index(source: ArraySource, layout: ShardLayout, key: str) -> KnownIndex | None:
    reading = source.store.read(key, (layout.index_range,))
    if reading is None:
        return None
    if reading.size < layout.index_size:
        raise ShardIndexError(f"the shard has {reading.size} bytes, too few for its index of {layout.index_size}")
    known = KnownIndex(decode_index(reading.parts[0], layout.index_chain), reading.size, reading.version)
    INDEXES.put(source.cache_space, key, known)
    return known


def _join(entries: ShardIndex) -> tuple[JoinedRanges, npt.NDArray[Any]]:
    """The ranges of stored entries joined, and for each entry its row among them."""
    stored = entries.stored()
    joined = join_ranges(entries.offsets[stored], entries.lengths[stored])
    return joined, np.cumsum(stored) - 1
