"""A shard without unused space, made of encoded inner chunks. Pure."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from zardine.buffers import BytesLike
from zardine.sharding.index import ShardIndex, empty_index
from zardine.sharding.layout import ShardLayout
from zardine.sharding.order import chunk_ranks

Ints = npt.NDArray[np.int64]

ORDERS = ("c", "f", "morton")


def row_order(index: ShardIndex, layout: ShardLayout, order: str | None) -> Ints:
    """Rows of the stored inner chunks in ``order``, or (``None``) in that of their bytes."""
    rows = np.flatnonzero(index.stored())
    if order is None:
        return rows[np.lexsort((rows, index.offsets[rows]))]
    return rows[np.argsort(chunk_ranks(layout.grid, layout.strides, order)[rows])]


def packed_index(index: ShardIndex, layout: ShardLayout, rows: Ints) -> tuple[ShardIndex, list[int], int]:
    """The index of a shard that holds its inner chunks one after the other in the order of ``rows``.

    Ranges that several inner chunks share stay shared. Gives the rows whose bytes are written, too, and the size of
    the whole shard.
    """
    after = empty_index(layout.count)
    written = []
    places: dict[tuple[int, int], int] = {}
    position = layout.index_size if layout.index_at_start else 0
    for row in rows.tolist():
        old = int(index.offsets[row]), int(index.lengths[row])
        if old not in places:
            places[old] = position
            position += old[1]
            written.append(row)
        after.offsets[row], after.lengths[row] = places[old], old[1]
    return after, written, position + (0 if layout.index_at_start else layout.index_size)


def pack(shard: BytesLike, index: ShardIndex, layout: ShardLayout, order: str | None = None) -> bytes:
    """The same inner chunks, undecoded, in ``order``, without unused space."""
    after, written, _ = packed_index(index, layout, row_order(index, layout, order))
    view = memoryview(shard)
    encoded = layout.encode_index(after)
    chunks = [view[int(index.offsets[row]) : int(index.offsets[row]) + int(index.lengths[row])] for row in written]
    return b"".join((encoded, *chunks) if layout.index_at_start else (*chunks, encoded))
