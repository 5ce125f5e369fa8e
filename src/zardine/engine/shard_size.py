"""How large a shard can be that is read whole, and reading one without its unused space."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from zardine.buffers import BytesLike
from zardine.codecs.chain import CodecChain
from zardine.engine.ranges import join_ranges
from zardine.errors import ConditionFailedError, CorruptionError, DataError, ShardIndexError
from zardine.limits import CHUNK, TEXT, UNUSED, check_size, limit_of
from zardine.sharding.index import EMPTY, ShardIndex, decode_index
from zardine.sharding.layout import ShardLayout
from zardine.stores.base import Reading, Store, Version


@dataclass(frozen=True, slots=True, eq=False)
class WholeShard:
    """A shard in memory, and its index, which was checked. ``size`` is that of what is stored, which may be larger."""

    data: BytesLike
    index: ShardIndex
    version: Version | None
    size: int


def most_of_shard(layout: ShardLayout, chain: CodecChain) -> int:
    """The most bytes of a shard that are read in one piece: what its chunks can take, and some unused space."""
    limit = chain.encoded.now() if TEXT in chain.encoded.settings else chain.encoded
    return min(limit_of(CHUNK), layout.index_size + layout.count * limit.nbytes + limit_of(UNUSED))


def read_index(store: Store, key: str, layout: ShardLayout) -> Reading | None:
    """The bytes of the index of a shard, still encoded; fewer than that where the shard is too short.

    Raises :class:`~zardine.errors.ChunkTooLargeError` where the settings forbid to read one of that size.
    """
    if layout.index_memory > limit_of(CHUNK):
        size = store.size(key)
        if size is None:
            return None
        layout.check_too_short(size)
        layout.check_memory()
    return store.read(key, (layout.index_range,))


def read_whole_shard(store: Store, key: str, layout: ShardLayout, chain: CodecChain) -> WholeShard | None:
    """A shard with all of its inner chunks; where it has much unused space, without that.

    Then the offsets in its index are those in ``data``. Raises :class:`~zardine.errors.ConditionFailedError` if others
    replace it meanwhile, and :class:`~zardine.errors.DataError` as reading does.
    """
    reading = store.read_up_to(key, most_of_shard(layout, chain))
    if reading is None:
        return None
    if reading.parts:
        shard = reading.parts[0]
        return WholeShard(shard, layout.checked_index_of(shard), reading.version, reading.size)
    first = read_index(store, key, layout)
    if first is None:
        return None
    layout.check_too_short(first.size)
    try:
        index = decode_index(first.parts[0], layout.index_chain)
    except DataError as error:
        raise error.at(byte_range=layout.index_bytes(first.size)) from None
    layout.check(index, first.size, lambda part: _part(store, key, part))
    check_carried(index, layout, chain)
    stored = index.stored()
    starts, lengths = index.offsets[stored], index.lengths[stored]
    joined = join_ranges(starts, lengths, 0)
    check_size("a shard without its unused space", sum(size or 0 for _, size in joined.fetched))
    second = store.read(key, joined.fetched)
    if second is None or second.version != first.version:
        raise ConditionFailedError(f"key {key!r} of {store} changed while it was read")
    begins = np.cumsum([0, *map(len, second.parts)])
    index.offsets[stored] = (begins[joined.within] + joined.offsets).astype(np.uint64)
    return WholeShard(b"".join(second.parts), index, first.version, first.size)


def _part(store: Store, key: str, part: tuple[int, int]) -> BytesLike:
    reading = store.read(key, (part,))
    return b"" if reading is None else reading.parts[0]


def check_carried(
    index: ShardIndex,
    layout: ShardLayout,
    chain: CodecChain,
    *,
    but: npt.NDArray[np.int64] | None = None,
    message: str = "",
) -> None:
    """Raise for the first inner chunk that is longer than any can be, but for the rows ``but`` of the index."""
    too_long = (index.lengths > np.uint64(chain.most_stored())) & (index.lengths != EMPTY)
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


__all__ = ["WholeShard", "check_carried", "most_of_shard", "read_index", "read_whole_shard"]
