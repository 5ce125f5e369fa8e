"""Finding the last valid index in a shard whose last write was cut off.

A write that appends puts its chunks and a whole new index behind what is there and overwrites nothing, so a shard whose
end is no index still holds the one before: directly in front of what was cut off. Only an index with a checksum can be
told from other bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from zardine.buffers import BytesLike
from zardine.codecs.crc32c import Crc32cCodec
from zardine.errors import DataError
from zardine.sharding.index import EMPTY, ShardIndex, decode_index
from zardine.sharding.layout import ShardLayout

_PROBED = 4
"""Entries that are looked at before a checksum is computed."""

_BLOCK = 2**18
"""Places that are looked at together."""


@dataclass(frozen=True, slots=True)
class FoundIndex:
    """A valid index and the bytes of the shard that it ends at (exclusive)."""

    index: ShardIndex
    end: int


def has_checksum(layout: ShardLayout) -> bool:
    """Whether damage of the index is noticed."""
    return any(isinstance(codec, Crc32cCodec) for codec in layout.index_chain.compressors)


def last_index(shard: BytesLike, layout: ShardLayout) -> FoundIndex | None:
    """The last valid index that ends in ``shard`` (at any byte), all of whose entries lie in front of it.

    For shards with the index at the start, whose copy at the end a write leaves until the start is written. ``None``
    if there is none, or the index has no checksum to know it by.
    """
    size = layout.index_size
    if not has_checksum(layout) or len(shard) < size:
        return None
    view = memoryview(shard).cast("B")
    for start in _candidates(view, layout):
        found = _valid(view, start, layout)
        if found is not None:
            return FoundIndex(found, start + size)
    return None


def _candidates(view: memoryview, layout: ShardLayout) -> Iterator[int]:
    """Where an index could begin, the last place first: the first entries are empty, or lie in front of it."""
    stop = len(view) - layout.index_size + 1
    while stop > 0:
        start = max(0, stop - _BLOCK)
        places = np.arange(stop - 1, start - 1, -1, dtype=np.int64)
        yield from (_plausible(view, places, layout) if _is_plain(layout) else places).tolist()
        stop = start


def _plausible(view: memoryview, places: npt.NDArray[np.int64], layout: ShardLayout) -> npt.NDArray[np.int64]:
    windows = np.lib.stride_tricks.sliding_window_view(np.frombuffer(view, np.uint8), 8)
    for entry in range(min(_PROBED, layout.count)):
        if not len(places):
            break
        offsets = np.ascontiguousarray(windows[places + 16 * entry]).view("<u8")[:, 0]
        lengths = np.ascontiguousarray(windows[places + 16 * entry + 8]).view("<u8")[:, 0]
        limit = np.full(len(places), len(view), np.uint64) if layout.index_at_start else places.astype(np.uint64)
        inside = (offsets <= limit) & (lengths <= limit) & (offsets + lengths <= limit)
        places = places[inside | ((offsets == EMPTY) & (lengths == EMPTY))]
    return places


def _is_plain(layout: ShardLayout) -> bool:
    """Whether the encoded index begins with its entries as little-endian words."""
    codecs = layout.index_chain.codecs
    first = codecs[0]
    return first.name == "bytes" and first.configuration() == {"endian": "little"}


def _valid(view: memoryview, start: int, layout: ShardLayout) -> ShardIndex | None:
    size = layout.index_size
    try:
        index = decode_index(view[start : start + size], layout.index_chain)
        stored = index.stored()
        ends = index.offsets[stored] + index.lengths[stored]
        if not layout.index_at_start and len(ends) and int(ends.max()) > start:
            return None
    except DataError:
        return None
    return index
