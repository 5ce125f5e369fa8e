"""Read a shard in one piece: when that is cheaper, how much it may be, and how a writer that replaces it reads it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from zardine.buffers import BytesLike, Ints
from zardine.codecs.chain import CodecChain
from zardine.engine.handle import ArrayHandle
from zardine.engine.joined_ranges import join_ranges
from zardine.engine.read_index import read_index
from zardine.errors import ConditionFailedError, CorruptionError, DataError, ShardIndexError
from zardine.limits import CHUNK, TEXT, UNUSED, check_size, limit_of
from zardine.sharding.index import ShardIndex
from zardine.sharding.layout import ShardLayout
from zardine.stores.base import Store, Version

_MOSTLY = 0.5
"""The share of its inner chunks from which on a shard is mostly wanted."""


@dataclass(frozen=True, slots=True, eq=False)
class WholeShard:
    """A shard in memory, and its index, which was checked. ``size`` is that of what is stored, which may be larger."""

    data: BytesLike
    index: ShardIndex
    version: Version | None
    size: int


def whole_is_cheaper(handle: ArrayHandle, coordinates: Sequence[int], count: int) -> bool:
    """Tell whether to read ``count`` chunks of a shard with all of it in one request, rather than index, then ranges.

    The shard is the one at these grid ``coordinates``. It is cheaper if most is wanted, and the bytes of the rest flow
    in the time of a request. How long the shard is cannot be known yet: as long as its decoded chunks at most, as a
    rule.
    """
    inside = handle.layout.chunks_in_array(coordinates)
    rest = (inside - count) * max(handle.layout.chunk_nbytes, handle.usual_nbytes or 0)
    return count >= _MOSTLY * inside and (rest <= handle.store.cost.gap or count >= inside)


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


__all__ = ["WholeShard", "check_carried", "most_of_shard", "read_whole_shard", "whole_is_cheaper"]
