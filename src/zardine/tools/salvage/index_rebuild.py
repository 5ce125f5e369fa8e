"""Putting together a shard index of which a part is damaged, in a shard that was written whole. Pure.

In such a shard the inner chunks lie one after the other in the order of the index, without a gap. Entries that fit into
that, and whose chunks are sound, are taken; what lies between two of them belongs to the entries between. What follows
from that, and is not in the index itself, counts only if the checksum of the index then is the one that is stored: in a
shard that was edited, old chunks may lie where new ones are expected. Without that, all that does not fill the data
exactly (entries that moved, bytes that are missing, shards that were appended to) is refused, as is an index of which
less than half fits, or with empty entries: if such a one moved, chunks would be taken for others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations, product
from math import comb, prod
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from zardine.buffers import BytesLike
from zardine.codecs.crc32c import Crc32cCodec
from zardine.sharding.index import MISSING, ShardIndex, empty_index
from zardine.sharding.layout import ShardLayout

Ints = npt.NDArray[np.int64]

NOWHERE: Final = 2**62
"""Offset of an inner chunk whose bytes cannot be told from those of its neighbours."""


_MOST_BYTES: Final = 2**26
"""Bytes of indexes of which checksums are computed, at most."""

Pieces: TypeAlias = list[tuple[int, int]]
"""Offsets and lengths of chunks."""
Cut: TypeAlias = Callable[[int, int], Pieces | None]


def rebuilt_index(
    shard: BytesLike, layout: ShardLayout, is_sound: Callable[[int, int], bool], cut: Cut
) -> ShardIndex | None:
    """The index, or ``None`` where too little of it is left.

    ``is_sound`` says of an offset and a length whether a chunk with a right checksum is there; ``cut`` gives the chunks
    that fill the bytes from a start to an end, if it can tell.
    """
    codecs = layout.index_chain.codecs
    plain = codecs[0].name == "bytes" and codecs[0].configuration() == {"endian": "little"}
    if not plain or not layout.has_checksum or len(shard) < layout.index_size:
        return None
    start, size = layout.index_bytes(len(shard))
    table = np.frombuffer(shard, "<i8", 2 * layout.count, start).reshape(-1, 2)
    claimed = ShardIndex(np.ascontiguousarray(table[:, 0]), np.ascontiguousarray(table[:, 1]))
    empty = (claimed.offsets == MISSING) & (claimed.lengths == MISSING)
    low, high = layout.data_bounds(len(shard))
    rows = _in_order(claimed, low, high, is_sound)
    found = empty_index(layout.count)
    found.offsets[rows], found.lengths[rows] = claimed.offsets[rows], claimed.lengths[rows]
    gaps = list(_gaps(claimed, rows, empty, low, high))
    for tried in _filled(found, gaps, cut, max(1, _MOST_BYTES // size)):
        if has_stored_checksum(tried, shard, layout):
            return tried
    if empty.any() or 2 * len(rows) < layout.count or any(bool(between) != (b > a) for between, a, b in gaps):
        return None
    deduced = [row for between, _, _ in gaps for row in between]
    found.offsets[deduced], found.lengths[deduced] = NOWHERE, 1
    return found


def _gaps(
    claimed: ShardIndex, rows: Ints, empty: npt.NDArray[np.bool_], low: int, high: int
) -> Iterator[tuple[list[int], int, int]]:
    """Between the chunks in ``rows``: the rows of which nothing is known, and the bytes from a start to an end."""
    row, position = -1, low
    for following in [*rows.tolist(), len(claimed)]:
        is_last = following == len(claimed)
        end = high if is_last else int(claimed.offsets[following])
        yield [each for each in range(row + 1, following) if not empty[each]], position, end
        if not is_last:
            row, position = following, end + int(claimed.lengths[following])


def _filled(found: ShardIndex, gaps: list[tuple[list[int], int, int]], cut: Cut, most: int) -> Iterator[ShardIndex]:
    """``found`` with the chunks in the gaps given to the rows there in every way; rows without one are empty.

    Nothing if there are more than ``most`` ways.
    """
    choices = []
    for rows, start, end in gaps:
        pieces: Pieces | None = [] if start == end else cut(start, end)
        if pieces is None and len(rows) == 1:
            pieces = [(start, end - start)]
        if pieces is None or len(pieces) > len(rows):
            return
        choices.append((pieces, rows))
    if prod(comb(len(rows), len(pieces)) for pieces, rows in choices) > most:
        return
    for chosen in product(*(combinations(rows, len(pieces)) for pieces, rows in choices)):
        tried = ShardIndex(found.offsets.copy(), found.lengths.copy())
        for (pieces, _), own in zip(choices, chosen, strict=True):
            for row, (offset, length) in zip(own, pieces, strict=True):
                tried.offsets[row], tried.lengths[row] = offset, length
        yield tried


def has_stored_checksum(index: ShardIndex, shard: BytesLike, layout: ShardLayout) -> bool:
    """Whether an index has the checksum that is stored at the end of the damaged one."""
    compressors = layout.index_chain.compressors
    if not compressors or not isinstance(compressors[-1], Crc32cCodec):
        return False
    start, size = layout.index_bytes(len(shard))
    stored = bytes(memoryview(shard)[start + size - 4 : start + size])
    return bytes(layout.encode_index(index))[-4:] == stored


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
    starts = claimed.offsets[rows]
    ends = starts + claimed.lengths[rows]
    before = np.concatenate(([low], np.maximum.accumulate(ends)[:-1]))
    after = np.concatenate((np.minimum.accumulate(starts[::-1])[::-1][1:], [high]))
    return rows[(before <= starts) & (ends <= after)]
