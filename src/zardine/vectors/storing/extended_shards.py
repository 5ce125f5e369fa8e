"""Cells that go into their shards in local folders: behind what is there, many shards by one call of the kernel.

The kernel does the usual case only: shards that are there and whole, that nobody has locked, cells with checksums and
no compression. All else is left to the arrays of :mod:`zardine.nodes.array`, which also say what is wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from zardine.buffers import Ints
from zardine.engine.changed_files import note_changed
from zardine.engine.read_elements import element_chain, sums_of
from zardine.kernel import KERNEL
from zardine.nodes.array import Array
from zardine.vectors.storing.cell_bytes import by_shard

_MOST_INDEX: Final = 4 * 2**20
"""Bytes of an index that the kernel reads, of which it makes a few copies: a document may say anything."""


def extend_shards(array: Array, cells: Ints, values: Sequence[bytes]) -> Ints:
    """Put cells ``(C, K)`` into their shards, empty ones out of them; gives the numbers of those that are still to do.

    For who looks after the document of the array, and writes into shards of which all that is there stays.
    """
    handle = array._handle
    layout, config = handle.layout, handle.config
    chain, shard, every = element_chain(layout), layout.uniform_shard, np.arange(len(values))
    sums = None if chain is None else sums_of(chain)
    if KERNEL is None or chain is None or sums is None or shard is None or not len(values):
        return every
    if not shard.has_words or not shard.has_checksum or shard.index_at_start or handle.write_empty_chunks:
        return every
    if shard.index_memory > _MOST_INDEX:
        return every
    if handle.watched or config.write_strategy != "append" or chain.most_for_kernel() < 0:
        return every
    shards, order, bounds, rows = by_shard(cells, shard)
    table = bounds, rows, shard.count, shard.index_at_start, shard.has_checksum
    keys = handle.keys(map(tuple, shards.tolist()))
    some = [values[cell] for cell in order.tolist()]
    with handle.store.new_files(keys, changing=True) as files:
        if files is None:
            return every
        done = KERNEL.extend_shards(some, sums, table, files, chain.most_for_kernel(), config.most_unused)
    left = [which for which, key in enumerate(keys) if not note_changed(handle, key, done[which])]
    return np.sort(np.concatenate([every[:0], *(order[bounds[which] : bounds[which + 1]] for which in left)]))


__all__ = ["extend_shards"]
