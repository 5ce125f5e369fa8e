"""Telling a write that was cut off from an index that was damaged later.

Both leave a shard whose end is no valid index. Behind a write that was cut off the index before it counts: nothing that
came later was ever acknowledged. A damaged index was whole once, so that an older one would show old values as if they
were the last: that is an error, which ``zardine.repair`` may mend.

Power loss may leave some blocks of an index and not others, which looks like damage. So a writer that promises that
nothing is lost by that puts :data:`UNFINISHED` before the index, and takes it away when the index is on the disk.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from zardine.buffers import BytesLike
from zardine.codecs.crc32c import Crc32cCodec
from zardine.sharding.index import EMPTY
from zardine.sharding.layout import ShardLayout
from zardine.sharding.recovery import FoundIndex

UNFINISHED: Final = b"zardine-unfinish"
"""What stands behind the new chunks while it is not sure that the index that follows is whole."""

_SIMILAR = 0.5
"""Share of the entries for stored chunks that agree with the index before, or follow it, in what was an index."""


def is_unfinished(shard: BytesLike, layout: ShardLayout) -> bool:
    """Whether :data:`UNFINISHED` says so of a shard that has no valid index; it is before the index, or last of all."""
    view = memoryview(shard).cast("B")
    start = max(0, len(view) - layout.index_size)
    before, last = (view[max(0, end - len(UNFINISHED)) : end] for end in (start, len(view)))
    return not layout.index_at_start and UNFINISHED in (before, last)


def is_torn_write(shard: BytesLike, found: FoundIndex, layout: ShardLayout) -> bool:
    """Whether what follows ``found``, the last valid index of the shard, is a write that was cut off."""
    start = 0 if layout.index_at_start else len(shard) - layout.index_size
    if found.end in (start, len(shard)) or not _is_words(layout) or is_unfinished(shard, layout):
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
