"""The order of inner chunks within a shard ("Binary shard format": it is the writer's choice)."""

from __future__ import annotations

from math import prod

import numpy as np

from zardine.buffers import Ints
from zardine.cache import Cache

_ranks_known: Cache[tuple[tuple[int, ...], tuple[int, ...], str], Ints] = Cache(64 * 2**20)


def chunk_ranks(grid: tuple[int, ...], strides: tuple[int, ...], order: str) -> Ints:
    """For each row of the index of a shard of ``grid`` inner chunks, its place in ``order``: c, f or morton.

    ``strides`` tells how many rows lie between neighbours along each axis. Those worked out last are remembered.
    """
    known = _ranks_known.get((grid, strides, order))
    if known is not None:
        return known
    ranks = _ranks(grid, strides, order)
    ranks.flags.writeable = False
    _ranks_known.put((grid, strides, order), ranks, ranks.nbytes + 1024)
    return ranks


def _ranks(grid: tuple[int, ...], strides: tuple[int, ...], order: str) -> Ints:
    if not grid:
        return np.zeros(1, np.int64)
    coordinates = np.indices(grid, np.int64).reshape(len(grid), -1)
    rows: Ints = np.array(strides, np.int64) @ coordinates
    if order == "f":
        keys = coordinates
    elif order == "morton":
        bits = max(length - 1 for length in grid).bit_length()
        places = [coordinates[axis] >> bit & 1 for bit in range(bits) for axis in range(len(grid))]
        keys = np.array(places or [np.zeros(prod(grid), np.int64)])
    else:
        keys = coordinates[::-1]
    ranks = np.empty(prod(grid), np.int64)
    ranks[rows[np.lexsort(keys)]] = np.arange(prod(grid))
    return ranks
