"""The vertices that stand for those of a finer level: one for each bin, the mean of what is in it. Pure.

Chunks of two levels nest in *blocks*: the least boxes that are cut into whole chunks of both. What is made of the cells
of a block lies in it, so that a block can be made by itself, and is the same whatever else is made with it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import lcm
from typing import Any

import numpy as np
import numpy.typing as npt

from zardine.buffers import Ints
from zardine.errors import DataError
from zardine.vectors.content.content import Content, Fragments
from zardine.vectors.content.link_placement import anchors_for
from zardine.vectors.format.grids import chunks_of
from zardine.vectors.format.ragged import starts_of, unique_rows

_FAR = 2**60
"""Chunks from the origin, more than any is away."""

_MOST_NUDGES = 16
"""How often a mean may be moved to the next number, so that it is in the chunk of what it stands for."""


@dataclass(frozen=True, slots=False, eq=False)
class Nesting:
    """How the chunks of a level nest in those of a coarser one: both as whole multiples of the chunks of level 0."""

    own: Ints
    """Of the finer level, along each axis."""
    its: Ints
    """Of the coarser level."""

    @cached_property
    def step(self) -> Ints | None:
        """The size of a block, in chunks of level 0; ``None`` where that is larger than space."""
        sizes = [lcm(own, its) for own, its in zip(self.own.tolist(), self.its.tolist(), strict=True)]
        return None if max(sizes) > _FAR else np.array(sizes, np.int64)

    def blocks_of(self, keys: Ints) -> Ints:
        """The block that each chunk of the finer level is in."""
        assert self.step is not None
        return _divided(keys, self.step // self.own)

    def blocks_of_coarse(self, keys: Ints) -> Ints:
        """The block that each chunk of the coarser level is in."""
        assert self.step is not None
        return _divided(keys, self.step // self.its)

    def first_coarse(self, keys: Ints) -> tuple[Ints, Ints]:
        """The first chunk of the coarser level in the block of each chunk of the finer, and the one behind the last."""
        if self.step is None:
            return np.full_like(keys, -_FAR), np.full_like(keys, _FAR)
        low = self.blocks_of(keys) * self.step // self.its
        return low, low + self.step // self.its

    def pairs(self, keys: Ints) -> tuple[Ints, Ints]:
        """Each of ``keys`` of the finer level with each chunk of the coarser that is in the same block."""
        low, high = self.first_coarse(keys)
        shape = tuple((high[0] - low[0]).tolist()) if len(keys) else (1,) * keys.shape[1]
        inner = np.indices(shape).reshape(len(shape), -1).T
        times = len(inner)
        return np.repeat(keys, times, axis=0), (low[:, None] + inner).reshape(-1, keys.shape[1])

    def offsets(self, fine: Ints, coarse: Ints, delta: int) -> Ints:
        """What the names of arrays of links count from one chunk to another; ``delta``: 1 from the finer, -1 to it."""
        if delta > 0:
            return np.asarray(coarse - anchors_for(fine, self.own, self.its))
        return np.asarray(fine - anchors_for(coarse, self.its, self.own))


def _divided(keys: Ints, by: Ints) -> Ints:
    """Rounded down. By one number that is several times as fast as by one for each axis."""
    if not len(by) or (by != by[0]).any():
        found: Ints = keys // by
        return found
    return keys // int(by[0]) if by[0] > 1 else keys


def coarsened(
    content: Content,
    kept: npt.NDArray[np.bool_],
    bin_shape: npt.NDArray[np.float64],
    chunk_shape: npt.NDArray[np.float64],
    nesting: Nesting,
) -> tuple[Content, Ints]:
    """Return the vertices that stand for the rows that are ``kept``, and for each row the one of these, or -1.

    Where rounding lets a bin have rows of several blocks, there is one in each. ``chunk_shape``: of the coarser level.
    """
    rows = np.flatnonzero(kept)
    low, high = nesting.first_coarse(content.keys)
    bins, cell = chunks_of(content.positions[rows], bin_shape.tolist()), content.cell_of_rows()[rows]
    _, number = unique_rows(bins)
    count = int(number.max()) + 1 if len(number) else 0
    first = np.zeros(count, np.int64)
    first[number] = cell
    if (low[cell] != low[first[number]]).any():
        _, number = unique_rows(np.concatenate([low[cell], bins], axis=1))
        count = int(number.max()) + 1
        first = np.zeros(count, np.int64)
        first[number] = cell
    totals = np.bincount(number, minlength=count)
    means = _means(content.positions[rows], number, totals)
    chunks = _chunks_within(means, chunk_shape, (low[first], high[first]))
    keys, cell = unique_rows(chunks)
    order = np.argsort(cell, kind="stable")
    place = np.empty(count, np.int64)
    place[order] = np.arange(count)
    parent = np.full(len(content.positions), -1, np.int64)
    parent[rows] = place[number]
    starts = starts_of(np.bincount(cell, minlength=len(keys)))
    return Content(keys, starts, means[order], each_alone(starts)), parent


def _chunks_within(means: npt.NDArray[Any], chunk_shape: npt.NDArray[np.float64], within: tuple[Ints, Ints]) -> Ints:
    """The chunks of ``means``, which are moved by the least that there is where rounding puts them off their block."""
    low, high = within
    chunks = chunks_of(means, chunk_shape.tolist())
    for _ in range(_MOST_NUDGES):
        below, above = chunks < low, chunks >= high
        if not (below | above).any():
            return chunks
        means[below] = np.nextafter(means[below], np.asarray(np.inf, means.dtype))
        means[above] = np.nextafter(means[above], np.asarray(-np.inf, means.dtype))
        chunks = chunks_of(means, chunk_shape.tolist())
    raise DataError(f"positions are too far from 0 for their data type, {means.dtype}, to tell chunks of {chunk_shape}")


def _means(positions: npt.NDArray[Any], number: Ints, counts: Ints) -> npt.NDArray[Any]:
    """The mean of the positions with each number, of which there are ``counts``, rounded to none outside of them."""
    if len(counts) == 0:
        return positions[:0]
    order = np.argsort(number, kind="stable")
    starts = starts_of(counts)[:-1]
    columns = []
    for column in positions[order].T:
        mean = (np.add.reduceat(column.astype(np.float64), starts) / counts).astype(column.dtype)
        columns.append(np.clip(mean, np.minimum.reduceat(column, starts), np.maximum.reduceat(column, starts)))
    return np.stack(columns, axis=1)


def each_alone(starts: Ints) -> Fragments:
    """A fragment for each row."""
    count = int(starts[-1])
    return Fragments.tiling(starts, np.arange(count + 1))


__all__ = ["Nesting", "coarsened", "each_alone"]
