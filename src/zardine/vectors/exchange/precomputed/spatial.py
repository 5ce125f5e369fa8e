"""Which annotations are in which cells of which level of a spatial index. Pure.

Levels have finer and finer grids. Each annotation is in one level, the sooner the smaller its rank, which is as good as
random and follows from its id, and in all cells of that level which it touches: so what a viewer sees of the first
levels is a fair sample.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from zardine.buffers import Ints
from zardine.vectors.exchange.precomputed.annotations import Index, SpatialLevel
from zardine.vectors.exchange.precomputed.sharding import Ids, murmurhash3_x86_128

Floats = npt.NDArray[np.float64]

_MOST_CELLS: Final = 2**60
"""Of a level: each has a number of 64 bits."""
_MOST_COPIES: Final = 8
"""Cells that an annotation may be in, on average: a finer grid than that is not made."""
_MOST_COUNTED: Final = 2**21
"""Cells that hold something and are counted at a time: no finer grid is made than one with so many."""
_ALL: Final = 2**64
"""More than any rank."""

Blocks: TypeAlias = Callable[[], Iterable[tuple[Ids, npt.NDArray[np.float32]]]]
"""Gives ids and geometry ``(N, corners, axes)`` of all annotations, some at a time."""


@dataclass(frozen=True, slots=True)
class Sample:
    """A level, and the ranks of the annotations that are in it."""

    level: SpatialLevel
    first: int
    last: int
    """Not among them."""
    cells: int = 0
    """How many hold something."""
    entries: int = 0
    """How many annotations there are in all of these together."""

    def among(self, ranks: Ids) -> Ints:
        """Return the rows of ``ranks`` that are of this level."""
        kept = ranks >= np.uint64(self.first)
        if self.last < _ALL:
            kept &= ranks < np.uint64(self.last)
        return np.flatnonzero(kept)


@dataclass(frozen=True, slots=True, eq=False)
class Space:
    """The bounds of all annotations, and of what kind these are."""

    kind: str
    """``"line"`` for what is only in the cells that the line between its ends touches; others are in all that their
    box touches."""
    lower: Floats
    upper: Floats

    @classmethod
    def of(cls, kind: str, blocks: Blocks, rank: int) -> Space:
        """Go through all annotations once."""
        lower, upper = np.full(rank, np.inf), np.full(rank, -np.inf)
        for _, geometry in blocks():
            if len(geometry):
                lower = np.minimum(lower, geometry.min(axis=(0, 1)).astype(np.float64))
                upper = np.maximum(upper, geometry.max(axis=(0, 1)).astype(np.float64))
        if (lower > upper).any():
            lower, upper = np.zeros(rank), np.ones(rank)
        return cls(kind, lower, np.where(upper > lower, upper, lower + np.maximum(1.0, np.spacing(np.abs(lower)))))

    def touched(self, geometry: npt.NDArray[np.float32], shape: Ints) -> tuple[Ints, Ints]:
        """Return rows of ``geometry``, ascending, and cells of a grid that these touch: for each of both a row."""
        size = (self.upper - self.lower) / shape
        first, last = self._spans(geometry, shape)
        return _touched(self.kind, geometry, first, last, self.lower, size)

    def copies(self, geometry: npt.NDArray[np.float32], shape: Ints) -> float:
        """Return in how many cells of a grid the boxes of annotations are, all together."""
        first, last = self._spans(geometry, shape)
        return float((last - first + 1).astype(np.float64).prod(axis=1).sum())

    def _spans(self, geometry: npt.NDArray[np.float32], shape: Ints) -> tuple[Ints, Ints]:
        """The first and the last cell of each box, both included."""
        size = (self.upper - self.lower) / shape
        low, high = (each.astype(np.float64) for each in (geometry.min(axis=1), geometry.max(axis=1)))
        first = np.floor((low - self.lower) / size).astype(np.int64)
        last = np.floor((high - self.lower) / size).astype(np.int64)
        return np.clip(first, 0, shape - 1), np.clip(last, 0, shape - 1)


def ranks_of(ids: Ids) -> Ids:
    """Return the rank of each annotation."""
    return murmurhash3_x86_128(ids)


def samples(space: Space, blocks: Blocks, limit: int) -> list[Sample]:
    """Return levels of ``limit`` annotations in a cell, about. Equal annotations in any order give equal levels.

    They are gone through twice for each level. In memory are those of a block, and 16 bytes for each cell that is
    counted.
    """
    extent = space.upper - space.lower
    shape = np.ones(len(extent), np.int64)
    found: list[Sample] = []
    first = 0
    while not found or first < _ALL:
        finer = _finer(shape, extent)
        counted, left, copies = _Counts(shape), 0, 0.0
        for geometry in _ranked(blocks, first, _ALL):
            counted.add(space.touched(geometry, shape)[1])
            left, copies = left + len(geometry), copies + space.copies(geometry, finer)
        most = counted.most
        ends = most <= limit or finer.astype(object).prod() > _MOST_CELLS or copies > _MOST_COPIES * left
        last = _ALL
        if not ends and len(counted) <= _MOST_COUNTED:
            last = first + max(1, (_ALL - first) * limit // most)
            counted = _Counts(shape)
            for geometry in _ranked(blocks, first, last):
                counted.add(space.touched(geometry, shape)[1])
        size = tuple((extent / shape).tolist())
        level = SpatialLevel(Index(f"spatial{len(found)}"), tuple(shape.tolist()), size, counted.most)
        found.append(Sample(level, first, last, len(counted), counted.total))
        first, shape = last, finer
    return found


def _ranked(blocks: Blocks, first: int, last: int) -> Iterator[npt.NDArray[np.float32]]:
    """The geometry of annotations with some ranks."""
    of_them = Sample(_NO_LEVEL, first, last)
    for ids, geometry in blocks():
        yield geometry[of_them.among(ranks_of(ids))]


_NO_LEVEL: Final = SpatialLevel(Index(""), (), (), 0)


class _Counts:
    """How many annotations are in each cell of a grid that holds any."""

    def __init__(self, shape: Ints) -> None:
        self._shape = tuple(shape.tolist())
        self._codes, self._counts = np.zeros(0, np.int64), np.zeros(0, np.int64)

    def add(self, cells: Ints) -> None:
        """Count these cells, too."""
        codes, counts = np.unique(np.ravel_multi_index(tuple(cells.T), self._shape), return_counts=True)
        joined, inverse = np.unique(np.concatenate((self._codes, codes)), return_inverse=True)
        sums = np.zeros(len(joined), np.int64)
        np.add.at(sums, inverse, np.concatenate((self._counts, counts)))
        self._codes, self._counts = joined, sums

    def __len__(self) -> int:
        return len(self._codes)

    @property
    def most(self) -> int:
        """The most that are in a cell; 1 where there are none."""
        return int(self._counts.max(initial=1))

    @property
    def total(self) -> int:
        """How many there are in all."""
        return int(self._counts.sum())


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


def cells_of(codes: Ids, grid_shape: tuple[int, ...]) -> Ints:
    """Return the cells ``(N, axes)`` of compressed Morton codes."""
    bits = [int(length - 1).bit_length() for length in grid_shape]
    cells = np.zeros((len(codes), len(bits)), np.int64)
    place = 0
    for bit in range(max(bits, default=0)):
        for axis, count in enumerate(bits):
            if bit < count:
                cells[:, axis] |= ((codes >> np.uint64(place)) & np.uint64(1)).astype(np.int64) << bit
                place += 1
    return cells


def _finer(shape: Ints, extent: Floats) -> Ints:
    """Halve the cells along those axes where that makes them more alike: longer than 0.7 of the longest side."""
    size = extent / shape
    return np.where(size >= size.max() * 0.7, shape * 2, shape)


def _touched(
    kind: str, geometry: npt.NDArray[np.float32], first: Ints, last: Ints, lower: Floats, size: Floats
) -> tuple[Ints, Ints]:
    spans = last - first + 1
    counts = spans.prod(axis=1) if len(spans) else np.zeros(0, np.int64)
    rows = np.repeat(np.arange(len(spans)), counts)
    within = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    cells = np.empty((len(rows), first.shape[1]), np.int64)
    for axis in range(first.shape[1]):
        cells[:, axis] = first[rows, axis] + within % spans[rows, axis]
        within //= spans[rows, axis]
    if kind == "line" and (counts > 1).any():
        kept = _crossed(geometry[rows], lower + cells * size, size) | (counts[rows] == 1)
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


__all__ = ["Blocks", "Sample", "Space", "cells_of", "morton_codes", "ranks_of", "samples"]
