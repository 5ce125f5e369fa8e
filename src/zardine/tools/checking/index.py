"""What the entries of a shard index say about a shard of a known size. Pure."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from zardine.buffers import Ints
from zardine.sharding.index import MISSING, ShardIndex, as_stored
from zardine.sharding.layout import ShardLayout
from zardine.tools.report import Flaw


def usable_rows(index: ShardIndex, layout: ShardLayout, size: int) -> Ints:
    """Return rows of the stored inner chunks that lie within the data of a shard of ``size`` bytes."""
    return np.flatnonzero(index.stored() & ~index.beyond(*layout.data_bounds(size)))


def check_entries(index: ShardIndex, layout: ShardLayout, size: int) -> Iterator[Flaw]:
    """Yield entries that point outside of the data, ranges that overlap in part; as notes, shared and unused bytes."""
    for row in np.flatnonzero(index.beyond(*layout.data_bounds(size))).tolist():
        offset, length = int(index.offsets[row]), int(index.lengths[row])
        if MISSING in (offset, length):
            yield Flaw("bounds", f"only one of offset and length says that the chunk is empty{layout.remark}", row)
        else:
            yield Flaw(
                "bounds",
                f"the range lies outside of the data of a shard of {size} bytes{layout.remark}",
                row,
                (as_stored(offset), as_stored(length)),
            )
    yield from _overlaps(index, layout, size)


def _overlaps(index: ShardIndex, layout: ShardLayout, size: int) -> Iterator[Flaw]:
    rows = usable_rows(index, layout, size)
    offsets, ends, firsts, shared = _distinct(index, rows)
    low, high = layout.data_bounds(size)
    if len(offsets):
        reach = np.maximum.accumulate(ends)
        for i in np.flatnonzero(offsets[1:] < reach[:-1]).tolist():
            start, end = int(offsets[i + 1]), int(ends[i + 1])
            yield Flaw(
                "overlap",
                f"its bytes from {start} on belong to another chunk too, up to {min(int(reach[i]), end)}",
                int(firsts[i + 1]),
                (start, end - start),
            )
    if shared:
        yield Flaw("shared", f"{shared} inner chunks share the bytes of others", severity="warning")
    unused = high - low - _used(offsets, ends)
    if unused:
        yield Flaw("unused", f"{unused} of {size} bytes are unused: zardine.compact drops them", severity="warning")


def _distinct(index: ShardIndex, rows: Ints) -> tuple[Ints, Ints, Ints, int]:
    """Return the different ranges that are not empty, sorted: start, end and first row; and how many are repeated."""
    offsets, lengths = index.offsets[rows], index.lengths[rows]
    rows, offsets, lengths = rows[lengths > 0], offsets[lengths > 0], lengths[lengths > 0]
    order = np.lexsort((lengths, offsets))
    rows, offsets, ends = rows[order], offsets[order], (offsets + lengths)[order]
    new = np.ones(len(rows), np.bool_)
    new[1:] = (offsets[1:] != offsets[:-1]) | (ends[1:] != ends[:-1])
    return offsets[new], ends[new], rows[new], int(len(rows) - new.sum())


def _used(offsets: Ints, ends: Ints) -> int:
    if not len(offsets):
        return 0
    before = np.concatenate((offsets[:1], np.maximum.accumulate(ends)[:-1]))
    return int(np.maximum(ends - np.maximum(offsets, before), 0).sum())
