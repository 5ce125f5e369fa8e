"""What reading cells takes, without reading them: which objects, how many requests, how many bytes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from zardine.buffers import Ints
from zardine.engine.locate import join_ranges, read_index, whole_is_cheaper
from zardine.engine.workers import for_each, most_requests
from zardine.errors import DataError
from zardine.nodes.array import Array
from zardine.vectors.format.ragged import unique_rows
from zardine.vectors.storing.cells import CellArray


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
    shards, number = unique_rows(local // np.asarray(array.array.shards))
    order = np.argsort(number, kind="stable")
    edges = np.searchsorted(number[order], np.arange(len(shards) + 1)).tolist()
    found = np.zeros((len(shards), 3), np.int64)

    def look(which: int) -> None:
        cells = order[edges[which] : edges[which + 1]]
        stored, *cost = _in_shard(array.array, shards[which].tolist(), local[cells])
        sizes[inside[cells]] = stored
        found[which] = cost

    for_each(look, range(len(shards)), len(shards), most_requests(array.array.store))
    objects, requests, nbytes = found.sum(axis=0).tolist()
    return CellCosts(sizes, objects, requests, nbytes)


def _sizes_of_objects(array: Array, cells: Ints) -> Ints:
    handle, sizes = array._handle, np.zeros(len(cells), np.int64)

    def look(which: int) -> None:
        sizes[which] = handle.store.size(handle.key(tuple(cells[which].tolist()))) or 0

    for_each(look, range(len(cells)), len(cells), most_requests(handle.store))
    return sizes


def _in_shard(array: Array, where: list[int], cells: Ints) -> tuple[Ints, int, int, int]:
    """Stored bytes of cells of one shard; and how many objects, requests and bytes reading them takes."""
    handle = array._handle
    layout = handle.layout.shard(tuple(where))
    assert layout is not None
    shape = array.shards
    assert shape is not None
    key = handle.key(tuple(where))
    try:
        found = read_index(handle.store, key, layout)
    except DataError as error:
        raise error.at(array=handle.path, key=key) from None
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


__all__ = ["CellCosts", "cell_costs"]
