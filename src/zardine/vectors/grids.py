"""From positions to chunks and bins: pure arithmetic.

A chunk is a box of size ``chunk_shape``; it holds its lower faces and not its upper ones. The chunk of a position is
``floor(position / chunk_shape)``, computed in float64: that is monotonic, so that the chunks of a closed box are those
from ``floor(lo / chunk_shape)`` to ``floor(hi / chunk_shape)``, and none of its points is in another one.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from zardine.errors import DataError
from zardine.vectors.ragged import Ints

_MOST_COORDINATE = 2**53


def chunks_of(positions: npt.NDArray[Any], chunk_shape: Sequence[float]) -> Ints:
    """The chunk of each position: shape ``(N, D)``. Positions are finite."""
    quotients = np.floor(np.divide(positions, np.asarray(chunk_shape, np.float64), dtype=np.float64))
    if quotients.size and np.abs(quotients).max() > _MOST_COORDINATE:
        raise DataError(f"positions are more than 2^53 chunks of {tuple(chunk_shape)} away from the origin")
    chunks: Ints = quotients.astype(np.int64)
    return chunks


def bins_per_chunk(chunk_shape: Sequence[float], bin_shape: Sequence[float]) -> tuple[int, ...]:
    """How many bins a chunk has along each axis. Raises :class:`DataError` unless they divide it evenly."""
    ratios = tuple(a / b for a, b in zip(chunk_shape, bin_shape, strict=True))
    counts = tuple(round(ratio) for ratio in ratios)
    if any(count < 1 or abs(ratio - count) > 1e-6 * count for ratio, count in zip(ratios, counts, strict=True)):
        raise DataError(f"bins of {tuple(bin_shape)} do not divide chunks of {tuple(chunk_shape)} evenly")
    return counts


def bins_of(positions: npt.NDArray[Any], chunks: Ints, chunk_shape: Sequence[float], per_chunk: Sequence[int]) -> Ints:
    """For each position the number of its bin within its chunk, in C order of the bins.

    Where rounding puts a position beside its chunk, the nearest bin of the chunk is taken.
    """
    size = np.asarray(chunk_shape, np.float64)
    inside = positions / size - chunks
    local = np.floor(inside * np.asarray(per_chunk)).astype(np.int64)
    np.clip(local, 0, np.asarray(per_chunk) - 1, out=local)
    return np.asarray(np.ravel_multi_index(tuple(local.T), tuple(per_chunk)), np.int64)


def grid_for(
    low: Sequence[float] | npt.NDArray[Any], high: Sequence[float] | npt.NDArray[Any], chunk_shape: Sequence[float]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Origin and shape, in chunks, of the smallest grid that holds the closed box from ``low`` to ``high``."""
    corners = chunks_of(np.asarray([low, high], np.float64), chunk_shape)
    origin, last = corners.tolist()
    shape = tuple(max(1, b - a + 1) for a, b in zip(origin, last, strict=True))
    if prod(shape) > 2**40:
        raise DataError(f"a grid of {shape} chunks is too large: make chunk_shape larger than {tuple(chunk_shape)}")
    return tuple(origin), shape


def automatic_chunk_shape(low: npt.NDArray[Any], high: npt.NDArray[Any], count: int) -> tuple[float, ...]:
    """A chunk shape, the same along each axis, of which about one holds 8,192 of ``count`` evenly spread points."""
    extent = np.maximum(np.asarray(high, np.float64) - low, 0)
    spread = extent[extent > 0]
    if len(spread) == 0:
        return (1.0,) * len(extent)
    wanted = max(1.0, count / 8192)
    side = float((np.prod(spread) / wanted) ** (1 / len(spread)))
    side = max(side, float(spread.max()) / 4096)
    return (side,) * len(extent)


def in_box(positions: npt.NDArray[Any], low: Sequence[float], high: Sequence[float]) -> npt.NDArray[np.bool_]:
    """Which positions lie in the closed box."""
    inside = np.ones(len(positions), np.bool_)
    for axis, (a, b) in enumerate(zip(low, high, strict=True)):
        column = positions[:, axis]
        inside &= (column >= np.float64(a)) & (column <= np.float64(b))
    return inside
