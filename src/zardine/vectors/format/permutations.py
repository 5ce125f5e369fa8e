"""Orders of the endpoints of a link as one number each: the Lehmer rank.

``sigma[i]`` is the place, among the endpoints as they were given, of the endpoint that is stored at place ``i``.
"""

from __future__ import annotations

from math import factorial

import numpy as np

from zardine.errors import ChunkDecodeError
from zardine.vectors.format.ragged import Ints


def rank_of(sigma: Ints) -> Ints:
    """The rank of each row of ``sigma`` ``(M, L)``."""
    width = sigma.shape[1]
    rank = np.zeros(len(sigma), np.int64)
    for i in range(width):
        smaller = (sigma[:, i + 1 :] < sigma[:, i : i + 1]).sum(axis=1)
        rank += smaller * factorial(width - 1 - i)
    return rank


def sigma_of(ranks: Ints, width: int) -> Ints:
    """The permutation of each rank: ``(M, width)``. Raises :class:`~zardine.errors.ChunkDecodeError`."""
    if len(ranks) and (ranks.min() < 0 or ranks.max() >= factorial(width)):
        raise ChunkDecodeError(f"a link of {width} endpoints has no order number {int(ranks.max())}")
    distinct, numbers = np.unique(ranks, return_inverse=True)
    table = np.array([_permutation(int(rank), width) for rank in distinct], np.int64).reshape(-1, width)
    return table[numbers.reshape(-1)]


def _permutation(rank: int, width: int) -> list[int]:
    unused = list(range(width))
    found = []
    for i in range(width):
        index, rank = divmod(rank, factorial(width - 1 - i))
        found.append(unused.pop(index))
    return found
