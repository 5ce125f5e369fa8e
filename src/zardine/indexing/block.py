"""A block of elements, and the plan of one that lies in one chunk: what most programs read and write, told at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from zardine.buffers import Ints
from zardine.chunk_grids.axis import Axis


class Block(NamedTuple):
    """The indices from ``starts`` on, ``counts`` of them along each axis."""

    starts: tuple[int, ...]
    counts: tuple[int, ...]
    dropped: tuple[slice | int, ...] | None
    """What takes the axes out of the result that were selected by a single integer; ``None``: there are none."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the result."""
        if self.dropped is None:
            return self.counts
        return tuple([count for count, kept in zip(self.counts, self.dropped, strict=True) if kept != 0])


@dataclass(frozen=True, slots=True, eq=False)
class BlockPlan:
    """The plan of a block within one chunk, and its only part: see :mod:`zardine.indexing.plan` for what they tell."""

    object: tuple[int, ...]
    """Grid coordinates of the object."""
    row: int
    """Row of the chunk in the index of the object."""
    place: tuple[int, ...]
    """Grid coordinates of the chunk."""
    extents: tuple[int, ...]
    """Shape of the chunk."""
    first: tuple[int, ...]
    """The first element of the block within the chunk."""
    counts: tuple[int, ...]
    valid: tuple[int, ...]
    """How many elements of the chunk lie in the array, along each axis."""

    count = object_count = chunk_count = 1

    def parts(self) -> Iterator[BlockPlan]:
        """Itself."""
        return iter((self,))

    def border_parts(self, storage: tuple[Axis, ...]) -> list[BlockPlan]:
        """Itself, if it takes all that lies in the array of a chunk that reaches beyond it."""
        return [self] if self.counts == self.valid != self.extents else []

    def kernel_axes(self) -> list[tuple[Any, ...]]:
        """The axes as plain tuples of arrays, in the form that the native kernel takes."""
        table = np.array((self.extents, self.first, self.counts, (0,) * len(self.first)), np.int64).T
        axes = []
        for row in np.ascontiguousarray(table):
            axes.append(("s", row[0:1], row[1:2], row[2:3], row[3:4], 1))
        return axes

    def kernel_places(self, strides: tuple[int, ...]) -> list[Ints]:
        """Of each axis what its chunk adds to the place in the object's index: all at the first axis."""
        return [np.array([0 if axis else self.row]) for axis in range(len(self.first))]

    @property
    def low(self) -> tuple[int, ...]:
        """The first chunk of the plan along each axis."""
        return (0,) * len(self.first)

    @property
    def high(self) -> tuple[int, ...]:
        """The last one (exclusive)."""
        return (1,) * len(self.first)

    def rows(self) -> Ints:
        """The row of the chunk in the plan of each axis: the only one."""
        return np.zeros((1, len(self.first)), np.int64)

    def positions(self, strides: tuple[int, ...]) -> Ints:
        """The place of the chunk in the object's index."""
        return np.array([self.row])

    def covered(self) -> npt.NDArray[np.bool_]:
        """Whether all elements of the chunk that lie in the array are selected."""
        return np.array([self.counts == self.valid])

    def is_covered(self) -> bool:
        """Whether all elements of the chunk that lie in the array are selected."""
        return self.counts == self.valid

    def whole(self) -> npt.NDArray[np.bool_]:
        """Whether all elements of the chunk are selected, and none of them lies beyond the array."""
        return np.array([self.counts == self.extents])

    def is_whole(self) -> bool:
        """Whether all elements of the chunk are selected, and none of them lies beyond the array."""
        return self.counts == self.extents

    def chunk(self, i: int) -> tuple[int, ...]:
        """Grid coordinates of the chunk."""
        return self.place

    def chunk_shape(self, i: int) -> tuple[int, ...]:
        """Full shape of the chunk."""
        return self.extents

    def inner(self, i: int) -> tuple[Any, ...]:
        """The elements of the block, as an index into the chunk."""
        pairs = zip(self.first, self.counts, strict=True)
        return tuple([slice(first, first + count) for first, count in pairs]) or (...,)

    def outer(self, i: int) -> tuple[Any, ...]:
        """Their places in the values: all."""
        return (...,)
