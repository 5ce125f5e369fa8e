"""Stages: grids of elements cut into blocks, a job for each. Integers only."""

from __future__ import annotations

import sys
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, product
from math import prod

from zardine.chunk_grids.axis import Axis
from zardine.errors import PlanError


@dataclass(frozen=True)
class BlockGrid:
    """The elements of one array in blocks: those that the chunks of each axis are, the last of which may be cut."""

    axes: tuple[Axis, ...]

    @classmethod
    def regular(cls, shape: Sequence[int], block: Sequence[int]) -> BlockGrid:
        """Blocks of ``block`` elements along each axis."""
        return cls(tuple(map(Axis.regular, shape, block)))

    @cached_property
    def counts(self) -> tuple[int, ...]:
        """Blocks along each axis."""
        return tuple(axis.count for axis in self.axes)

    @property
    def cells(self) -> Cells:
        """The blocks as cells."""
        return Cells(self.counts)

    def __len__(self) -> int:
        """Return how many blocks. Raises :class:`~zardine.errors.PlanError` for more than can be numbered."""
        count = self.cells.count
        if count > sys.maxsize:
            raise PlanError(f"{count:,} blocks, {self.counts} along the axes, are more than {sys.maxsize:,}")
        return count

    @property
    def largest(self) -> tuple[int, ...]:
        """The most elements that a block has along each axis."""
        return tuple(min(axis.longest, axis.length) for axis in self.axes)

    def box(self, number: int) -> tuple[tuple[int, int], ...]:
        """Return the first element and the end (exclusive) along each axis of a block, counted in C order."""
        found = []
        for axis, count in reversed(list(zip(self.axes, self.counts, strict=True))):
            number, place = divmod(number, count)
            start = axis.start(place)
            found.append((start, min(axis.length, start + axis.extent(place))))
        return tuple(reversed(found))

    def meeting(self, box: Sequence[tuple[int, int]]) -> Iterator[int]:
        """Give the numbers of all blocks that share an element with ``box``."""
        places = [
            range(axis.find(start), min(axis.count, axis.find(stop - 1) + 1)) if start < stop else range(0)
            for (start, stop), axis in zip(box, self.axes, strict=True)
        ]
        return map(self.cells.number, product(*places))


@dataclass(frozen=True)
class Cells:
    """The cells of a grid, ``counts`` along each axis, numbered in C order."""

    counts: tuple[int, ...]

    @cached_property
    def count(self) -> int:
        """How many cells; may be more than ``len`` can say."""
        return prod(self.counts)

    def number(self, place: Sequence[int]) -> int:
        """Return the number of the cell at a place."""
        number = 0
        for i, count in zip(place, self.counts, strict=True):
            number = number * count + i
        return number

    def place(self, number: int) -> tuple[int, ...]:
        """Return the place of a cell."""
        found = []
        for count in reversed(self.counts):
            number, i = divmod(number, count)
            found.append(i)
        return tuple(reversed(found))


@dataclass(frozen=True)
class Stage:
    """Jobs that may run in any order and at the same time, once the stage before is complete."""

    name: str
    """What its jobs do, as a verb: ``read``, ``write``, ``check``."""
    grids: tuple[BlockGrid, ...]
    """A job for each block, those of the first grid first."""
    memory: int
    """Bytes that a job needs at most, beside the interpreter."""

    @cached_property
    def _ends(self) -> list[int]:
        return list(accumulate(len(grid) for grid in self.grids))

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    def locate(self, job: int) -> tuple[int, int]:
        """Return the number of the grid of a job, and of its block there."""
        if not 0 <= job < len(self):
            raise IndexError(f"stage {self.name!r} has {len(self)} jobs, counted from 0: there is no job {job}")
        number = bisect_right(self._ends, job)
        return number, job - (self._ends[number - 1] if number else 0)


__all__ = ["BlockGrid", "Cells", "Stage"]
