"""Putting together the last index of a shard that writes were appended to, of which a part is damaged. Pure.

The index before it lies in the shard, too. Entries that say the same in both are sound. The others are what the damaged
index still says, where a chunk is there, or fill what was appended and has no entry. It counts if its checksum is the
one that is stored; else only those entries count that say the same in both, and where the others are is not known.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, islice
from typing import Final

import numpy as np
import numpy.typing as npt

from zardine.buffers import BytesLike
from zardine.sharding.index import MISSING, ShardIndex
from zardine.sharding.layout import ShardLayout
from zardine.tools.salvage.chunk_places import IsSound
from zardine.tools.salvage.index_rebuild import NOWHERE, has_stored_checksum
from zardine.tools.salvage.older_index import FoundIndex

Ints = npt.NDArray[np.int64]

_MOST_BYTES: Final = 2**26
"""Bytes of indexes of which checksums are computed, at most."""


def merged_index(
    shard: BytesLike, layout: ShardLayout, before: FoundIndex, is_sound: IsSound, encoded_size: int | None
) -> tuple[ShardIndex, bool]:
    """The last index, put together from what is left of it and from the one ``before``; and whether it is all of it.

    Entries that are not known point to :data:`~zardine.tools.salvage.index_rebuild.NOWHERE`. The encoded index is its
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
            index = _index(tried)
            if has_stored_checksum(index, shard, layout):
                return index, True
    known[~same] = NOWHERE, 1
    return _index(known), False


def _completed(known: Ints, rows: list[int], pieces: list[tuple[int, int]]) -> Iterator[Ints]:
    """``known`` with every distribution of ``pieces``, in their order, to ``rows``, and with some of these empty."""
    for emptied in range(len(rows) - len(pieces) + 1):
        for filled in combinations(rows, len(pieces)):
            rest = [row for row in rows if row not in filled]
            for empty in combinations(rest, emptied):
                tried = known.copy()
                if pieces:
                    tried[list(filled)] = pieces
                tried[list(empty)] = MISSING
                yield tried


def _index(table: Ints) -> ShardIndex:
    return ShardIndex(np.ascontiguousarray(table[:, 0]), np.ascontiguousarray(table[:, 1]))


def _left(taken: list[tuple[int, int]], start: int, end: int, encoded_size: int | None) -> list[tuple[int, int]]:
    """What lies between the ranges that are ``taken``, cut into chunks where these all have one size."""
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
