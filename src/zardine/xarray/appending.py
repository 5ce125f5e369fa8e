"""Making a dataset longer: the same place in all its variables, however many processes do so at a time."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from functools import partial

from zardine.nodes.array import Array

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Place:
    """Where an append goes: the same in all arrays, and nobody else's."""

    arrays: tuple[tuple[Array, int], ...]
    """Each with its axis; that which decides on the place comes first."""
    start: int
    stop: int

    @property
    def part(self) -> slice:
        """The place on the axis that became longer."""
        return slice(self.start, self.stop)

    def give_back(self) -> bool:
        """Make the arrays as short as they were, and erase what is at the place; gives whether that was possible.

        Nothing happens where another writer has appended behind it: that must stay where it is. The array that decides
        is the last to become shorter, so that nobody gets the place before it is free in all.
        """
        free = True
        for array, axis in reversed(self.arrays):
            _, shape = array._reshape(partial(self._shorter, axis), erase=True)
            free &= shape[axis] == self.start
        return free

    def _shorter(self, axis: int, shape: Shape) -> Shape | None:
        return _with_length(shape, axis, self.start) if shape[axis] == self.stop else None


def reserve(arrays: Mapping[str, tuple[Array, int, int]], append_dim: Hashable) -> Place:
    """Make arrays longer on an axis; gives the place that is this caller's alone, in all of them.

    ``arrays`` are, by name, those that have the dimension, its axis and how many elements are added. One of them
    decides on the place, by a conditional write: the coordinate of the dimension, or else the first by name. So two
    callers never get parts of one place, nor different places in two variables.

    Raises ``ValueError`` where variables of one call add different numbers.
    """
    counts = {count for _, _, count in arrays.values()}
    if len(counts) != 1:
        raise ValueError(f"the variables to append have different lengths of {append_dim!r}: {sorted(counts)}")
    (count,) = counts
    leader = str(append_dim) if append_dim in arrays else min(arrays)
    array, axis, _ = arrays[leader]
    before, after = array._reshape(partial(_longer, axis, count), erase=False)
    stop = after[axis]
    others = [(other, at) for name, (other, at, _) in arrays.items() if name != leader]
    for other, at in others:
        other._reshape(partial(_up_to, at, stop), erase=False)
    return Place(((array, axis), *others), before[axis], stop)


def _longer(axis: int, count: int, shape: Shape) -> Shape:
    return _with_length(shape, axis, shape[axis] + count)


def _up_to(axis: int, stop: int, shape: Shape) -> Shape:
    return _with_length(shape, axis, max(stop, shape[axis]))


def _with_length(shape: Shape, axis: int, length: int) -> Shape:
    return (*shape[:axis], length, *shape[axis + 1 :])
