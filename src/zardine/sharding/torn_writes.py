"""Telling a write that was cut off from an index that was damaged later.

Both leave a shard whose end is no valid index. Behind a write that was cut off the index before it counts: nothing that
came later was ever acknowledged. A damaged index was whole once, so that an older one would show old values as if they
were the last: that is an error, which ``zardine.repair`` may mend.
"""

from __future__ import annotations

import numpy as np

from zardine.buffers import BytesLike
from zardine.codecs.crc32c import Crc32cCodec
from zardine.sharding.index import EMPTY
from zardine.sharding.layout import ShardLayout
from zardine.sharding.recovery import FoundIndex

_SIMILAR = 0.5
"""Share of the entries for stored chunks that agree with the index before, or follow it, in what was an index."""


def is_torn_write(shard: BytesLike, found: FoundIndex, layout: ShardLayout) -> bool:
    """Whether what follows ``found``, the last valid index of the shard, is a write that was cut off."""
    start = 0 if layout.index_at_start else len(shard) - layout.index_size
    if found.end in (start, len(shard)) or not _is_words(layout):
        return True
    end = np.frombuffer(shard, "<u8", 2 * layout.count, start).reshape(-1, 2)
    before = np.stack((found.index.offsets, found.index.lengths), axis=1)
    follows = (end[:, 0] >= np.uint64(found.end)) & (end[:, 0] < np.uint64(len(shard)))
    if layout.index_at_start:
        return not follows.any()  # only an index that was whole once names what was written behind its copy
    if start < found.end:
        return True
    agrees = (end == before).all(axis=1) | follows
    stored = (before != EMPTY).any(axis=1) | follows
    return not stored.any() or float(agrees[stored].mean()) < _SIMILAR


def _is_words(layout: ShardLayout) -> bool:
    """Whether an encoded index is its entries as little-endian words, followed by a checksum at most."""
    first, *others = layout.index_chain.codecs
    words = first.name == "bytes" and first.configuration() == {"endian": "little"}
    return words and all(isinstance(codec, Crc32cCodec) for codec in others)
