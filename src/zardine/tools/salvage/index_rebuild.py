"""Putting together a shard index of which a part is damaged. Pure.

In a shard that was written whole (:func:`rebuilt_index`) the inner chunks lie one after the other in the order of the
index, without a gap. Entries that fit into that, and whose chunks are sound, are taken; what lies between two of them
belongs to the entries between. What follows from that, and is not in the index itself, counts only if the checksum of
the index then is the one that is stored: in a shard that was edited, old chunks may lie where new ones are expected.
Without that, all that does not fill the data exactly (entries that moved, bytes that are missing, shards that were
appended to) is refused, as is an index of which less than half fits, or with empty entries: if such a one moved, chunks
would be taken for others. Nor does an entry count then whose chunk touches neither that of an entry beside it nor an
end of the data: where the index moved by a part of an entry, a length and the offset behind it may say where another
chunk is.

In a shard that writes were appended to (:func:`merged_index`) lies the index before it, too. Entries that say the same
in both are sound. The others are what the damaged index still says, where a chunk is there, or fill what was appended
and has no entry. It counts if its checksum is the one that is stored; else only those entries count that say the same
in both, and where the others are is not known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations, islice, product
from math import comb, prod
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from zardine.buffers import BytesLike, Ints
from zardine.codecs.crc32c import Crc32cCodec
from zardine.sharding.index import MISSING, ShardIndex, empty_index
from zardine.sharding.layout import ShardLayout
from zardine.tools.salvage.chunk_places import IsSound
from zardine.tools.salvage.older_index import FoundIndex

NOWHERE: Final = 2**62
"""Offset of an inner chunk whose bytes cannot be told from those of its neighbours."""

_MOST_BYTES: Final = 2**26
"""Bytes of indexes of which checksums are computed, at most."""

Pieces: TypeAlias = list[tuple[int, int]]
"""Offsets and lengths of chunks."""
Cut: TypeAlias = Callable[[int, int], Pieces | None]


def rebuilt_index(shard: BytesLike, layout: ShardLayout, is_sound: IsSound, cut: Cut) -> ShardIndex | None:
    """Return the index, or ``None`` where too little of it is left.

    ``is_sound`` says of an offset and a length whether a chunk with a right checksum is there; ``cut`` gives the chunks
    that fill the bytes from a start to an end, if it can tell.
    """
    codecs = layout.index_chain.codecs
    plain = codecs[0].name == "bytes" and codecs[0].configuration() == {"endian": "little"}
    if not plain or not layout.has_checksum or len(shard) < layout.index_size:
        return None
    start, size = layout.index_bytes(len(shard))
    table = np.frombuffer(shard, "<i8", 2 * layout.count, start).reshape(-1, 2)
    claimed = _index_of(table)
    empty = (claimed.offsets == MISSING) & (claimed.lengths == MISSING)
    low, high = layout.data_bounds(len(shard))
    fitting = _in_order(claimed, low, high, is_sound)
    for rows in (fitting, _touching(claimed, fitting, low, high)):
        found = empty_index(layout.count)
        found.offsets[rows], found.lengths[rows] = claimed.offsets[rows], claimed.lengths[rows]
        gaps = list(_gaps(claimed, rows, empty, low, high))
        for tried in _filled(found, gaps, cut, max(1, _MOST_BYTES // size)):
            if _has_stored_checksum(tried, shard, layout):
                return tried
    if empty.any() or 2 * len(rows) < layout.count or any(bool(between) != (b > a) for between, a, b in gaps):
        return None
    deduced = [row for between, _, _ in gaps for row in between]
    found.offsets[deduced], found.lengths[deduced] = NOWHERE, 1
    return found


def _gaps(
    claimed: ShardIndex, rows: Ints, empty: npt.NDArray[np.bool_], low: int, high: int
) -> Iterator[tuple[list[int], int, int]]:
    """Yield, between the chunks in ``rows``, rows of which nothing is known, and the bytes from a start to an end."""
    row, position = -1, low
    for following in [*rows.tolist(), len(claimed)]:
        is_last = following == len(claimed)
        end = high if is_last else int(claimed.offsets[following])
        yield [each for each in range(row + 1, following) if not empty[each]], position, end
        if not is_last:
            row, position = following, end + int(claimed.lengths[following])


def _filled(found: ShardIndex, gaps: list[tuple[list[int], int, int]], cut: Cut, most: int) -> Iterator[ShardIndex]:
    """Yield ``found`` with the chunks in the gaps given to the rows there in every way; rows without one are empty.

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


def _has_stored_checksum(index: ShardIndex, shard: BytesLike, layout: ShardLayout) -> bool:
    """Whether an index has the checksum that is stored at the end of the damaged one."""
    compressors = layout.index_chain.compressors
    if not compressors or not isinstance(compressors[-1], Crc32cCodec):
        return False
    start, size = layout.index_bytes(len(shard))
    stored = bytes(memoryview(shard)[start + size - 4 : start + size])
    return bytes(layout.encode_index(index))[-4:] == stored


def _in_order(claimed: ShardIndex, low: int, high: int, is_sound: IsSound) -> Ints:
    """Return rows of sound chunks, none of which lies before one of a lower row."""
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


def _touching(claimed: ShardIndex, rows: Ints, low: int, high: int) -> Ints:
    """Return the rows whose chunk touches that of the row before or behind, or, of the first and last, an end."""
    starts, ends = claimed.offsets, claimed.offsets + claimed.lengths
    own = set(rows.tolist())
    last = len(claimed) - 1

    def touches(row: int) -> bool:
        before = starts[row] == low if row == 0 else row - 1 in own and ends[row - 1] == starts[row]
        behind = ends[row] == high if row == last else row + 1 in own and starts[row + 1] == ends[row]
        return bool(before or behind)

    return np.array([row for row in rows.tolist() if touches(row)], np.int64)


def merged_index(
    shard: BytesLike, layout: ShardLayout, before: FoundIndex, is_sound: IsSound, encoded_size: int | None
) -> tuple[ShardIndex, bool]:
    """Return the last index, put together from what is left of it and from the one ``before``; and whether it is whole.

    Entries that are not known point to :data:`NOWHERE`. The encoded index is its
    entries as little-endian words, and a checksum; ``encoded_size`` is what every chunk takes, if they take the same.
    """
    start, size = layout.index_bytes(len(shard))
    high = layout.data_bounds(len(shard))[1]
    claimed = np.frombuffer(shard, "<i8", 2 * layout.count, start).reshape(-1, 2)
    old = np.stack((before.index.offsets, before.index.lengths), axis=1)
    same = (claimed == old).all(axis=1)
    known = old.copy()
    open_rows = []
    taken = []
    for row in np.flatnonzero(~same).tolist():
        offset, length = (int(each) for each in claimed[row])
        appended = before.end <= offset and length > 0 and offset + length <= high
        in_place = offset == int(old[row, 0]) and 0 < length < int(old[row, 1])
        if (appended or in_place) and is_sound(offset, length):
            known[row] = claimed[row]
            taken += [(offset, length)] if appended else []
        elif (claimed[row] == MISSING).all():
            known[row] = MISSING
        else:
            open_rows.append(row)
    pieces = _left(taken, before.end, high, encoded_size)
    if all(is_sound(*piece) for piece in pieces):
        for tried in islice(_completed(known, open_rows, pieces), max(1, _MOST_BYTES // size)):
            index = _index_of(tried)
            if _has_stored_checksum(index, shard, layout):
                return index, True
    known[~same] = NOWHERE, 1
    return _index_of(known), False


def _completed(known: Ints, rows: list[int], pieces: list[tuple[int, int]]) -> Iterator[Ints]:
    """Yield ``known`` with every distribution of ``pieces``, in their order, to ``rows``, and with some rows empty."""
    for emptied in range(len(rows) - len(pieces) + 1):
        for filled in combinations(rows, len(pieces)):
            rest = [row for row in rows if row not in filled]
            for empty in combinations(rest, emptied):
                tried = known.copy()
                if pieces:
                    tried[list(filled)] = pieces
                tried[list(empty)] = MISSING
                yield tried


def _index_of(table: Ints) -> ShardIndex:
    return ShardIndex(np.ascontiguousarray(table[:, 0]), np.ascontiguousarray(table[:, 1]))


def _left(taken: list[tuple[int, int]], start: int, end: int, encoded_size: int | None) -> list[tuple[int, int]]:
    """Return what lies between the ranges that are ``taken``, cut into chunks where these all have one size."""
    gaps = []
    for offset, length in [*sorted(taken), (end, 0)]:
        if offset > start:
            gaps.append((start, offset - start))
        start = max(start, offset + length)
    if encoded_size is None:
        return gaps
    pieces = []
    for offset, length in gaps:
        if length % encoded_size:
            return gaps
        pieces += [(place, encoded_size) for place in range(offset, offset + length, encoded_size)]
    return pieces
