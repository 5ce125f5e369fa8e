"""Stages: grids of elements cut into blocks, a job for each. Integers only."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, product
from math import prod
from typing import Any

from zardine.errors import PlanError


@dataclass(frozen=True)
class BlockGrid:
    """The elements of one array in blocks of ``block`` elements along each axis, the last of which may be shorter."""

    shape: tuple[int, ...]
    block: tuple[int, ...]

    @cached_property
    def counts(self) -> tuple[int, ...]:
        """Blocks along each axis."""
        return tuple(-(-length // size) for length, size in zip(self.shape, self.block, strict=True))

    def __len__(self) -> int:
        return prod(self.counts)

    def box(self, number: int) -> tuple[tuple[int, int], ...]:
        """Return the first element and the end (exclusive) along each axis of a block, counted in C order."""
        found = []
        for length, size, count in reversed(list(zip(self.shape, self.block, self.counts, strict=True))):
            number, place = divmod(number, count)
            found.append((place * size, min(length, (place + 1) * size)))
        return tuple(reversed(found))

    def meeting(self, box: Sequence[tuple[int, int]]) -> Iterator[int]:
        """Give the numbers of all blocks that share an element with ``box``."""
        axes = zip(box, self.block, self.counts, strict=True)
        places = [range(start // size, min(count, -(-stop // size))) for (start, stop), size, count in axes]
        for place in product(*places):
            number = 0
            for i, count in zip(place, self.counts, strict=True):
                number = number * count + i
            yield number

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON."""
        return {"shape": list(self.shape), "block": list(self.block)}

    @classmethod
    def from_json(cls, document: Any) -> BlockGrid:
        """Return the grid that :meth:`to_json` wrote. Raises :class:`~zardine.errors.PlanError` for anything else."""
        if not isinstance(document, dict):
            raise PlanError(f"a grid of jobs is an object with shape and block, not {document!r}")
        shape, block = _lengths(document.get("shape"), 0), _lengths(document.get("block"), 1)
        if len(shape) != len(block):
            raise PlanError(f"a grid of jobs has blocks of {len(block)} axes in a shape of {len(shape)}")
        return cls(shape, block)


def _lengths(value: Any, least: int) -> tuple[int, ...]:
    if not isinstance(value, list) or not all(type(each) is int and least <= each < 2**63 for each in value):
        raise PlanError(f"a grid of jobs has lengths that are integers from {least} on, not {value!r}")
    return tuple(value)


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

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON."""
        return {"name": self.name, "grids": [grid.to_json() for grid in self.grids], "memory": self.memory}

    @classmethod
    def from_json(cls, document: Any) -> Stage:
        """Return the stage that :meth:`to_json` wrote. Raises :class:`~zardine.errors.PlanError` for anything else."""
        try:
            name, grids, memory = document["name"], document["grids"], document["memory"]
        except (TypeError, KeyError):
            raise PlanError(f"a stage is an object with name, grids and memory, not {document!r}") from None
        if not isinstance(name, str) or not isinstance(grids, list) or type(memory) is not int:
            raise PlanError("a stage has a name that is text, a list of grids, and a number of bytes of memory")
        return cls(name, tuple(map(BlockGrid.from_json, grids)), memory)


__all__ = ["BlockGrid", "Cells", "Stage"]
