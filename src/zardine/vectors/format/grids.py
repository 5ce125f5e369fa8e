"""From positions to chunks and bins: pure arithmetic.

A chunk is a box of size ``chunk_shape``; it holds its lower faces and not its upper ones. The chunk of a position is
``floor(position / chunk_shape)``, computed in float64: that is monotonic, so that the chunks of a closed box are those
from ``floor(lo / chunk_shape)`` to ``floor(hi / chunk_shape)``, and none of its points is in another one.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import floor, nan, prod
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from zardine.buffers import Ints
from zardine.errors import DataError
from zardine.kernel import KERNEL
from zardine.settings import thread_count
from zardine.vectors.format.ragged import bounds_of, find_runs, unique_numbers, unique_rows

Corners: TypeAlias = tuple[Sequence[float], Sequence[float]]

MOST_COORDINATE = 2**53
"""Of a chunk, along each axis."""

MOST_CELLS = 2**40
"""Of a grid."""

_AT_ONCE = 2**14
"""Positions."""

_MANY = 2**12
"""Positions that are worth a call of the kernel."""

_MOST_NUMBERED = 2**31 - 1
"""Cells that the kernel numbers."""


def chunks_of(positions: npt.NDArray[Any], chunk_shape: Sequence[float]) -> Ints:
    """The chunk of each position: shape ``(N, D)``. Raises :class:`DataError` for NaN and for what is too far away."""
    quotients = np.floor(np.divide(positions, np.asarray(chunk_shape, np.float64), dtype=np.float64))
    if quotients.size:
        _check_distance(float(np.abs(quotients).max()), chunk_shape)
    chunks: Ints = quotients.astype(np.int64)
    return chunks


def distinct_chunks_of(positions: npt.NDArray[Any], chunk_shape: Sequence[float]) -> tuple[Ints, Ints]:
    """The chunks that positions are in, ascending, and for each position the number of its chunk among these.

    Raises as :func:`chunks_of`.
    """
    return counted_chunks_of(positions, chunk_shape)[:2]


def counted_chunks_of(
    positions: npt.NDArray[Any], chunk_shape: Sequence[float], corners: Corners | None = None
) -> tuple[Ints, Ints, Ints]:
    """:func:`distinct_chunks_of`, and how many positions are in each chunk.

    ``corners``: of a box that holds all positions, if one is known. Raises as :func:`chunks_of`.
    """
    if len(positions) == 0:
        return *unique_rows(chunks_of(positions, chunk_shape)), np.zeros(0, np.int64)
    first, widths = _grid_around(positions, chunk_shape, corners)
    low, cells = first.astype(np.int64), prod(widths)
    if cells == 1:
        return low.reshape(1, -1), np.zeros(len(positions), np.int64), np.array([len(positions)])
    if cells > MOST_COORDINATE:
        keys, numbers = unique_rows(chunks_of(positions, chunk_shape))
        return keys, numbers, np.bincount(numbers, minlength=len(keys))
    if _is_for_kernel(positions, cells):
        assert KERNEL is not None
        plain = positions.reshape(-1).view(np.uint8)
        parts = KERNEL.number_cells(
            plain, positions.itemsize == 8, _for_kernel(first, widths, chunk_shape), thread_count()
        )
        numbers, found, counts = (np.frombuffer(each, np.int64) for each in parts)
        return np.stack(np.unravel_index(found, widths), axis=1) + low, numbers, counts
    numbers = np.empty(len(positions), np.int64)
    for start in range(0, len(positions), _AT_ONCE):  # that stay in the cache of a processor
        part = positions[start : start + _AT_ONCE]
        line = np.zeros(len(part))  # of integers that float64 holds
        for axis, width in enumerate(widths):
            column = np.divide(part[:, axis], np.float64(chunk_shape[axis]), dtype=np.float64)
            np.floor(column, out=column)
            column -= first[axis]
            line *= width
            line += column
        numbers[start : start + _AT_ONCE] = line
    found, numbers = unique_numbers(numbers, cells)
    counts = np.bincount(numbers, minlength=len(found))
    return np.stack(np.unravel_index(found, widths), axis=1) + low, numbers, counts


def chunk_runs(
    positions: npt.NDArray[Any], chunk_shape: Sequence[float], edges: Ints, corners: Corners | None = None
) -> tuple[Ints, Ints, Ints, Ints]:
    """Where runs of positions begin that are in one chunk, cut at the rows ``edges`` (ascending), and in which chunk.

    That is the first row of each run, the number of its chunk, the chunks in ascending order, and how many positions
    are in each of these. ``corners``: of a box that holds all positions, if one is known. Raises as :func:`chunks_of`.
    """
    if len(positions):
        first, widths = _grid_around(positions, chunk_shape, corners)
        if _is_for_kernel(positions, prod(widths)):
            assert KERNEL is not None
            grid, plain = _for_kernel(first, widths, chunk_shape), positions.reshape(-1).view(np.uint8)
            cuts = np.ascontiguousarray(edges, np.int64)
            parts = KERNEL.find_cell_runs(plain, positions.itemsize == 8, grid, cuts, thread_count())
            runs, cells, found, counts = (np.frombuffer(each, np.int64) for each in parts)
            return runs, cells, np.stack(np.unravel_index(found, widths), axis=1) + first.astype(np.int64), counts
    keys, numbers, counts = counted_chunks_of(positions, chunk_shape, corners)
    runs = find_runs(numbers, edges)
    return runs, numbers[runs], keys, counts


def _grid_around(
    positions: npt.NDArray[Any], chunk_shape: Sequence[float], corners: Corners | None
) -> tuple[npt.NDArray[np.float64], list[int]]:
    """The first chunk that any position can be in, and how many there are from there, along each axis.

    Raises as :func:`chunks_of`.
    """
    lowest, highest = (np.asarray(each).tolist() for each in (bounds_of(positions) if corners is None else corners))
    low, high = ([a / float(b) for a, b in zip(each, chunk_shape, strict=True)] for each in (lowest, highest))
    are_numbers = all(a <= b for a, b in zip(low, high, strict=True))
    _check_distance(max(-min(low), max(high)) if are_numbers else nan, chunk_shape)
    first = np.array([floor(each) for each in low], np.float64)
    widths = [floor(b) - floor(a) + 1 for a, b in zip(low, high, strict=True)]
    if corners is not None and prod(widths) > 4 * len(positions):  # a box that is much too large
        return _grid_around(positions, chunk_shape, None)
    return first, widths


def _is_for_kernel(positions: npt.NDArray[Any], cells: int) -> bool:
    is_worth_it = len(positions) >= _MANY and cells <= min(4 * len(positions), _MOST_NUMBERED)
    return KERNEL is not None and is_worth_it and _is_plain(positions)


def _for_kernel(first: npt.NDArray[np.float64], widths: Sequence[int], chunk_shape: Sequence[float]) -> Any:
    """A grid as the kernel takes it."""
    return [float(each) for each in chunk_shape], first.tolist(), widths


def _is_plain(positions: npt.NDArray[Any]) -> bool:
    native = positions.dtype in (np.dtype("f4"), np.dtype("f8"))
    return native and positions.flags.c_contiguous and 1 <= positions.shape[1] <= 4


def _check_distance(chunks: float, chunk_shape: Sequence[float]) -> None:
    if not chunks <= MOST_COORDINATE:  # also true of NaN
        raise DataError(f"positions are more than 2^53 chunks of {tuple(chunk_shape)} away from the origin, or NaN")


def bins_per_chunk(chunk_shape: Sequence[float], bin_shape: Sequence[float]) -> tuple[int, ...]:
    """How many bins a chunk has along each axis. Raises :class:`DataError` unless they divide it evenly."""
    if chunk_shape == bin_shape:
        return (1,) * len(chunk_shape)
    ratios = tuple(a / b for a, b in zip(chunk_shape, bin_shape, strict=True))
    if max(ratios, default=0) > 2**31:
        raise DataError(f"chunks of {tuple(chunk_shape)} have too many bins of {tuple(bin_shape)}")
    counts = tuple(round(ratio) for ratio in ratios)
    if any(count < 1 or abs(ratio - count) > 1e-6 * count for ratio, count in zip(ratios, counts, strict=True)):
        raise DataError(f"bins of {tuple(bin_shape)} do not divide chunks of {tuple(chunk_shape)} evenly")
    return counts


def bins_of(positions: npt.NDArray[Any], chunks: Ints, chunk_shape: Sequence[float], per_chunk: Sequence[int]) -> Ints:
    """For each position the number of its bin within its chunk, in C order of the bins.

    The bin is ``floor(position / bin_shape)``, which is how zarr-vectors finds the bins of a box. Where rounding puts
    that beside the chunk, the nearest bin of the chunk is taken.
    """
    sizes = [_plain(size / count) for size, count in zip(chunk_shape, per_chunk, strict=True)]
    local = np.floor(np.divide(positions, sizes, dtype=np.float64)) - chunks * np.asarray(per_chunk, np.float64)
    local = np.clip(local, 0, np.asarray(per_chunk) - 1).astype(np.int64)
    return np.asarray(np.ravel_multi_index(tuple(local.T), tuple(per_chunk)), np.int64)


def _plain(size: float) -> float:
    """The size that a user meant: 0.1 for what 0.3 / 3 gives; the same number where none of few digits is near."""
    rounded = float(f"{size:.12g}")
    return rounded if abs(rounded - size) <= 4 * np.spacing(size) else size


def grid_for(
    low: Sequence[float] | npt.NDArray[Any], high: Sequence[float] | npt.NDArray[Any], chunk_shape: Sequence[float]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Origin and shape, in chunks, of the smallest grid that holds the closed box from ``low`` to ``high``."""
    corners = chunks_of(np.asarray([low, high], np.float64), chunk_shape)
    origin, last = corners.tolist()
    shape = tuple(max(1, b - a + 1) for a, b in zip(origin, last, strict=True))
    if prod(shape) > MOST_CELLS:
        raise DataError(
            f"from {np.asarray(low).tolist()} to {np.asarray(high).tolist()} a grid has {shape} chunks of "
            f"{tuple(chunk_shape)}, which is too many. The size of chunks is chosen when a store is written, as "
            "chunk_shape; positions this far apart need a larger one"
        )
    return tuple(origin), shape


def automatic_chunk_shape(low: npt.NDArray[Any], high: npt.NDArray[Any], count: int) -> tuple[float, ...]:
    """A chunk shape, the same along each axis, of which about one holds 8,192 of ``count`` evenly spread points."""
    corners = np.asarray([low, high], np.float64)
    with np.errstate(over="ignore"):
        extent = np.maximum(corners[1] - corners[0], 0)
    if not np.isfinite(extent).all():
        raise DataError(f"from {corners[0].tolist()} to {corners[1].tolist()} is farther than float64 can tell")
    spread = extent[extent > 0]
    if len(spread) == 0:
        return (1.0,) * len(extent)
    wanted = max(1.0, count / 8192)
    with np.errstate(over="ignore", under="ignore"):
        volume = float(np.prod(spread)) / wanted
    if 0 < volume < np.inf:
        side = volume ** (1 / len(spread))
    else:
        side = float(np.exp((np.log(spread).sum() - np.log(wanted)) / len(spread)))
    side = max(side, float(spread.max()) / 4096, float(np.abs(corners).max()) / 2**40)
    return (side,) * len(extent)


def in_box(positions: npt.NDArray[Any], low: Sequence[float], high: Sequence[float]) -> npt.NDArray[np.bool_]:
    """Which positions lie in the closed box."""
    inside = np.ones(len(positions), np.bool_)
    for axis, (a, b) in enumerate(zip(low, high, strict=True)):
        column = positions[:, axis]
        inside &= (column >= np.float64(a)) & (column <= np.float64(b))
    return inside
