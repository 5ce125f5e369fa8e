"""Putting together a shard index of which a part is damaged, in a shard that was written whole. Pure.

In such a shard the inner chunks lie one after the other in the order of the index, without a gap. Entries that fit into
that, and whose chunks are sound, are taken; what lies between two of them belongs to the entries between. Anything that
does not fill the data exactly (entries that moved, bytes that are missing, shards that were appended to) is refused, as
is an index of which less than half fits, or with empty entries: if such a one moved, chunks would be taken for others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
import numpy.typing as npt

from zardine.buffers import BytesLike
from zardine.sharding.index import EMPTY, ShardIndex, empty_index
from zardine.sharding.layout import ShardLayout
from zardine.sharding.recovery import has_checksum

Ints = npt.NDArray[np.int64]

NOWHERE: Final = 2**62
"""Offset of an inner chunk whose bytes cannot be told from those of its neighbours."""


def rebuilt_index(
    shard: BytesLike, layout: ShardLayout, is_sound: Callable[[int, int], bool], encoded_size: int | None
) -> ShardIndex | None:
    """The index, or ``None`` where too little of it is left.

    ``is_sound`` says of an offset and a length whether a chunk with a right checksum is there; ``encoded_size`` is
    what every chunk takes, if they take the same.
    """
    codecs = layout.index_chain.codecs
    plain = codecs[0].name == "bytes" and codecs[0].configuration() == {"endian": "little"}
    if not plain or not has_checksum(layout) or len(shard) < layout.index_size:
        return None
    start, _ = layout.index_bytes(len(shard))
    table = np.frombuffer(shard, "<u8", 2 * layout.count, start).reshape(-1, 2)
    claimed = ShardIndex(np.ascontiguousarray(table[:, 0]), np.ascontiguousarray(table[:, 1]))
    if ((claimed.offsets == EMPTY) & (claimed.lengths == EMPTY)).any():
        return None
    low, high = layout.data_bounds(len(shard))
    rows = _in_order(claimed, low, high, is_sound)
    if 2 * len(rows) < layout.count:  # a few may fit by chance
        return None
    found = empty_index(layout.count)
    found.offsets[rows], found.lengths[rows] = claimed.offsets[rows], claimed.lengths[rows]
    row, position = -1, low
    for following in [*rows.tolist(), layout.count]:
        end = high if following == layout.count else int(claimed.offsets[following])
        open_rows = list(range(row + 1, following))
        if bool(open_rows) != (end > position):
            return None
        _share_out(found, open_rows, position, end, encoded_size)
        if following < layout.count:
            row, position = following, end + int(claimed.lengths[following])
    return found


def _in_order(claimed: ShardIndex, low: int, high: int, is_sound: Callable[[int, int], bool]) -> Ints:
    """Rows of sound chunks, none of which lies before one of a lower row."""
    inside = claimed.stored() & ~claimed.beyond(low, high) & (claimed.lengths > 0)
    rows = np.array(
        [
            row
            for row in np.flatnonzero(inside).tolist()
            if is_sound(int(claimed.offsets[row]), int(claimed.lengths[row]))
        ],
        np.int64,
    )
    if not len(rows):
        return rows
    starts = claimed.offsets[rows].astype(np.int64)
    ends = starts + claimed.lengths[rows].astype(np.int64)
    before = np.concatenate(([low], np.maximum.accumulate(ends)[:-1]))
    after = np.concatenate((np.minimum.accumulate(starts[::-1])[::-1][1:], [high]))
    return rows[(before <= starts) & (ends <= after)]


def _share_out(found: ShardIndex, rows: list[int], start: int, end: int, encoded_size: int | None) -> None:
    """Give the bytes from ``start`` to ``end`` to the chunks in ``rows``, if it is clear which has which."""
    if not rows:
        return
    size, rest = divmod(end - start, len(rows))
    if len(rows) > 1 and (rest or size != encoded_size):
        found.offsets[rows], found.lengths[rows] = NOWHERE, 1
        return
    found.offsets[rows] = start + size * np.arange(len(rows))
    found.lengths[rows] = size
