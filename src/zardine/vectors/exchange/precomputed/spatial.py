"""Which annotations are in which cells of which level of a spatial index. Pure.

Levels have finer and finer grids. Each annotation is in one level, the sooner the smaller its number in a random order,
and in all cells of that level which it touches: so what a viewer sees of the first levels is a fair sample.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from zardine.buffers import Ints
from zardine.vectors.exchange.precomputed.annotations import Index, SpatialLevel

Floats = npt.NDArray[np.float64]

_MOST_CELLS: Final = 2**60
"""Of a level: each has a number of 64 bits."""
_MOST_COPIES: Final = 8
"""Cells that an annotation may be in, on average: a finer grid than that is not made."""
_SEED: Final = 20240229


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """The cells of a level that hold something."""

    level: SpatialLevel
    cells: Ints
    """``(C, axes)``."""
    starts: Ints
    """``(C + 1,)``: the annotations of cell ``i`` are ``rows[starts[i]:starts[i + 1]]``, in random order."""
    rows: Ints


def build(kind: str, geometry: npt.NDArray[np.float32], limit: int) -> tuple[Floats, Floats, list[Cells]]:
    """Return the bounds of annotations ``(N, corners, axes)``, and levels of ``limit`` annotations in a cell, about.

    ``kind``: ``"line"`` for what is only in the cells that the line between its ends touches; of boxes, all from one
    corner to the other. Equal input gives equal levels.
    """
    rank = geometry.shape[2]
    low = geometry.min(axis=1).astype(np.float64)
    high = geometry.max(axis=1).astype(np.float64)
    lower = low.min(axis=0) if len(low) else np.zeros(rank)
    upper = high.max(axis=0) if len(high) else np.ones(rank)
    upper = np.where(upper > lower, upper, lower + np.maximum(1.0, np.spacing(np.abs(lower))))
    extent = upper - lower
    left = np.random.default_rng(_SEED).permutation(len(geometry)).astype(np.int64)
    shape = np.ones(rank, np.int64)
    found: list[Cells] = []
    while not found or len(left):
        first, last = _ranges(low[left], high[left], lower, extent / shape, shape)
        rows, cells = _touched(kind, geometry, left, first, last, lower, extent / shape)
        codes, inverse, counts = np.unique(_raveled(cells, shape), return_inverse=True, return_counts=True)
        most = int(counts.max(initial=1))
        finer = _finer(shape, extent)
        if most <= limit or finer.astype(object).prod() > _MOST_CELLS or _copies(low, high, left, lower, extent, finer):
            taken = len(left)
        else:
            taken = max(1, len(left) * limit // most)
        chosen = rows < taken  # rows are numbers of ``left``, which is in random order
        order = np.argsort(inverse[chosen], kind="stable")
        of_cell = np.bincount(inverse[chosen], minlength=len(codes))
        there = of_cell > 0
        starts = np.concatenate((np.zeros(1, np.int64), np.cumsum(of_cell[there])))
        size = tuple((extent / shape).tolist())
        at_most = int(of_cell.max(initial=1))
        level = SpatialLevel(Index(f"spatial{len(found)}"), tuple(shape.tolist()), size, at_most)
        keys = np.stack(np.unravel_index(codes[there], shape), axis=1)
        found.append(Cells(level, keys, starts, left[rows[chosen][order]]))
        left = left[taken:]
        shape = finer
    return lower, upper, found


def morton_codes(cells: Ints, grid_shape: tuple[int, ...]) -> npt.NDArray[np.uint64]:
    """Return the compressed Morton code of each cell ``(N, axes)``: bits in turns, as far as each axis has any."""
    bits = [int(length - 1).bit_length() for length in grid_shape]
    codes = np.zeros(len(cells), np.uint64)
    place = 0
    for bit in range(max(bits, default=0)):
        for axis, count in enumerate(bits):
            if bit < count:
                codes |= ((cells[:, axis].astype(np.uint64) >> np.uint64(bit)) & np.uint64(1)) << np.uint64(place)
                place += 1
    return codes


def has_codes(grid_shape: tuple[int, ...]) -> bool:
    """Return whether 64 bits are enough for the codes of a grid."""
    return sum(int(length - 1).bit_length() for length in grid_shape) <= 64


def _raveled(cells: Ints, shape: Ints) -> Ints:
    """A number for each cell."""
    found: Ints = np.ravel_multi_index(tuple(cells.T), tuple(shape.tolist()))
    return found


def _finer(shape: Ints, extent: Floats) -> Ints:
    """Halve the cells along those axes where that makes them more alike: longer than 0.7 of the longest side."""
    size = extent / shape
    return np.where(size >= size.max() * 0.7, shape * 2, shape)


def _ranges(low: Floats, high: Floats, lower: Floats, size: Floats, shape: Ints) -> tuple[Ints, Ints]:
    """The first and the last cell of each box, both included."""
    first = np.floor((low - lower) / size).astype(np.int64)
    last = np.floor((high - lower) / size).astype(np.int64)
    return np.clip(first, 0, shape - 1), np.clip(last, 0, shape - 1)


def _copies(low: Floats, high: Floats, left: Ints, lower: Floats, extent: Floats, shape: Ints) -> bool:
    """Whether annotations are in so many cells of a finer grid that it is none to make."""
    first, last = _ranges(low[left], high[left], lower, extent / shape, shape)
    return float((last - first + 1).astype(np.float64).prod(axis=1).mean()) > _MOST_COPIES


def _touched(
    kind: str, geometry: npt.NDArray[np.float32], left: Ints, first: Ints, last: Ints, lower: Floats, size: Floats
) -> tuple[Ints, Ints]:
    """Numbers of ``left``, ascending, and cells that these touch: for each of both a row."""
    spans = last - first + 1
    counts = spans.prod(axis=1) if len(spans) else np.zeros(0, np.int64)
    rows = np.repeat(np.arange(len(left)), counts)
    within = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    cells = np.empty((len(rows), first.shape[1]), np.int64)
    for axis in range(first.shape[1]):
        cells[:, axis] = first[rows, axis] + within % spans[rows, axis]
        within //= spans[rows, axis]
    if kind == "line" and (counts > 1).any():
        kept = _crossed(geometry[left[rows]], lower + cells * size, size) | (counts[rows] == 1)
        rows, cells = rows[kept], cells[kept]
    return rows, cells


def _crossed(ends: npt.NDArray[Any], corner: Floats, size: Floats) -> npt.NDArray[np.bool_]:
    """Whether the line between two ends touches a box, faces included; with room for rounding."""
    start = ends[:, 0].astype(np.float64)
    step = ends[:, 1].astype(np.float64) - start
    room = size * 1e-6
    with np.errstate(divide="ignore", invalid="ignore"):
        near = (corner - room - start) / step
        far = (corner + size + room - start) / step
    still = step == 0
    inside = (start >= corner - room) & (start <= corner + size + room)
    enter = np.where(still, -np.inf, np.minimum(near, far)).max(axis=1)
    leave = np.where(still, np.inf, np.maximum(near, far)).min(axis=1)
    crossed: npt.NDArray[np.bool_] = (enter <= leave) & (enter <= 1) & (leave >= 0) & (inside | ~still).all(axis=1)
    return crossed


__all__ = ["Cells", "build", "has_codes", "morton_codes"]
