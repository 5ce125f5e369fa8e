"""What reading cells takes, without reading them: which objects, how many requests, how many bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from zardine.buffers import Ints
from zardine.cache import Cache
from zardine.engine.joined_ranges import join_ranges
from zardine.engine.read_index import StoredIndex, read_index
from zardine.engine.whole_shard import whole_is_cheaper
from zardine.engine.workers import for_each, most_requests
from zardine.errors import DataError
from zardine.nodes.array import Array
from zardine.vectors.format.ragged import unique_rows
from zardine.vectors.storing.cells import CellArray

_MOST: Final = 32 * 2**20
"""Bytes of sizes of cells that are remembered of an array."""
_OF_A_SHARD: Final = 200
"""Bytes that are counted for a shard beside them."""


@dataclass(frozen=True, slots=True, eq=False)
class CellCosts:
    """What it takes to read some cells when nothing is remembered of them yet."""

    sizes: Ints
    """Stored bytes of each cell; 0 for those that are not stored."""
    objects: int
    """Stored objects that they are in: shards, or single cells."""
    requests: int
    """Values and parts of values that are asked for; also of objects that are not stored."""
    nbytes: int
    """Bytes that come back, with indexes of shards and what lies between cells that are fetched together."""


def cell_costs(array: CellArray, chunks: Ints) -> CellCosts:
    """Look up what reading the cells of ``chunks`` ``(C, K)`` takes, which are distinct; reads indexes of shards."""
    sizes = np.zeros(len(chunks), np.int64)
    inside = np.flatnonzero(array.inside(chunks))
    local = chunks[inside] - np.asarray(array.origin)
    if len(inside) == 0:
        return CellCosts(sizes, 0, 0, 0)
    if array.array.shards is None:
        sizes[inside] = _sizes_of_objects(array.array, local)
        return CellCosts(sizes, int((sizes > 0).sum()), len(inside), int(sizes.sum()))
    shards, order, edges = _by_shard(local, array.array.shards)
    found = np.zeros((len(shards), 3), np.int64)

    def look(which: int) -> None:
        cells = order[edges[which] : edges[which + 1]]
        stored, *cost = _in_shard(array.array, shards[which].tolist(), local[cells])
        sizes[inside[cells]] = stored
        found[which] = cost

    for_each(look, range(len(shards)), len(shards), most_requests(array.array.store))
    objects, requests, nbytes = found.sum(axis=0).tolist()
    return CellCosts(sizes, objects, requests, nbytes)


class CellSizes:
    """Stored bytes of cells of an array, as they are when the shards that hold them are first looked at.

    For who goes through an array more than once: indexes are not read again, as far as they are remembered.
    """

    def __init__(self, array: CellArray) -> None:
        self._array = array
        self._known: Cache[tuple[int, ...], Ints] = Cache(_MOST)
        """By the grid coordinates of a shard, what its cells take; nothing where it is not stored."""

    def of(self, chunks: Ints) -> Ints:
        """Return the stored bytes of the cells of ``chunks`` ``(C, K)``, which are distinct; 0 for those not stored."""
        array, shape = self._array.array, self._array.array.shards
        if shape is None:
            return cell_costs(self._array, chunks).sizes
        sizes = np.zeros(len(chunks), np.int64)
        inside = np.flatnonzero(self._array.inside(chunks))
        if len(inside) == 0:
            return sizes
        local = chunks[inside] - np.asarray(self._array.origin)
        shards, order, edges = _by_shard(local, shape)
        rows = np.ravel_multi_index(tuple((local % np.asarray(shape)).T), shape)

        def look(which: int) -> None:
            mine = order[edges[which] : edges[which + 1]]
            stored = self._stored(tuple(shards[which].tolist()))
            sizes[inside[mine]] = stored[rows[mine]] if len(stored) else 0

        for_each(look, range(len(shards)), len(shards), most_requests(array.store))
        return sizes

    def _stored(self, where: tuple[int, ...]) -> Ints:
        known = self._known.get(where)
        if known is None:
            found = _index(self._array.array, where)
            known = np.zeros(0, np.int64)
            if found is not None:
                known = np.where(found.index.stored(), found.index.lengths, 0).astype(np.int64, copy=False)
            self._known.put(where, known, known.nbytes + _OF_A_SHARD)
        return known


def _by_shard(cells: Ints, shape: Sequence[int]) -> tuple[Ints, Ints, list[int]]:
    """Return the shards of cells, these in the order of shards, and where those of each start in it, and in all."""
    shards, number = unique_rows(cells // np.asarray(shape))
    order = np.argsort(number, kind="stable")
    return shards, order, np.searchsorted(number[order], np.arange(len(shards) + 1)).tolist()


def _sizes_of_objects(array: Array, cells: Ints) -> Ints:
    handle, sizes = array._handle, np.zeros(len(cells), np.int64)

    def look(which: int) -> None:
        sizes[which] = handle.store.size(handle.key(tuple(cells[which].tolist()))) or 0

    for_each(look, range(len(cells)), len(cells), most_requests(handle.store))
    return sizes


def _in_shard(array: Array, where: list[int], cells: Ints) -> tuple[Ints, int, int, int]:
    """Stored bytes of cells of one shard; and how many objects, requests and bytes reading them takes."""
    handle, shape, layout = array._handle, array.shards, array._handle.layout.shard(where)
    assert layout is not None
    assert shape is not None
    found = _index(array, where)
    if found is None:
        return np.zeros(len(cells), np.int64), 0, 1, 0
    rows = np.ravel_multi_index(tuple((cells % np.asarray(shape)).T), shape)
    there = found.index.stored()[rows]
    sizes = np.where(there, found.index.lengths[rows], 0)
    if whole_is_cheaper(handle, where, len(cells)):
        return sizes, 1, 1, found.size
    joined = join_ranges(found.index.offsets[rows[there]], sizes[there], handle.store.cost.gap)
    parts = [size for _, size in joined.fetched if size is not None]
    return sizes, 1, 1 + len(parts), layout.index_size + sum(parts)


def _index(array: Array, where: Sequence[int]) -> StoredIndex | None:
    """Read the index of a shard; ``None`` where that is not stored."""
    handle = array._handle
    layout, key = handle.layout.shard(where), handle.key(tuple(where))
    assert layout is not None
    try:
        return read_index(handle.store, key, layout)
    except DataError as error:
        raise error.at(array=handle.path, key=key) from None


__all__ = ["CellCosts", "CellSizes", "cell_costs"]
