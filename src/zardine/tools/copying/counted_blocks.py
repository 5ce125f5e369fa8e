"""Blocks of whole objects that differ in length, and the pieces that the blocks of two arrays cut. Pure.

Blocks are so many objects along each axis. They are *pulled* where that reads no source object more than twice; else
they go by way of an array between, whose chunks are cut wherever a block of either kind begins.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice, permutations
from math import prod
from typing import Final, Literal

import numpy as np

from zardine.chunk_grids.axis import Axis
from zardine.limits import check_size
from zardine.tools.copying.blocks import Between, Blocks, pieces_between, reads_too_often, times_along, volume

_ORDERS: Final = 24
"""Orders of axes in which blocks are grown."""

Shape = tuple[int, ...]


def counted_blocks(
    source: Sequence[Axis],
    target: Sequence[Axis],
    most: int,
    counted: Literal["objects", "chunks"],
    *,
    between: bool = True,
) -> Blocks:
    """Return blocks of at most ``most`` elements, which one object of either array has to fit into.

    ``source`` and ``target`` are the grids of their objects, or of the chunks in them (``counted`` tells which of the
    source). Without ``between`` they are pulled, though source objects may be read more than twice.
    """
    writes = list(dict.fromkeys(_grown(target, most)))
    pulled = [(_together(target, numbers), numbers) for numbers in writes]
    seldom = [each for each in pulled if not (between and reads_too_often(source, each[0]))]
    if seldom:
        times, numbers = min((prod(map(times_along, source, axes)), numbers) for axes, numbers in seldom)
        return Blocks(numbers, (), times, counted=counted)
    reads = [(_together(source, numbers), numbers) for numbers in dict.fromkeys(_grown(source, most))]
    _, read, write = min(
        (prod(map(pieces_along, first, then)), read, write) for first, read in reads for then, write in pulled
    )
    return Blocks(write, (Between(read, ()),), counted=counted)


def smaller_counted_blocks(source: Sequence[Axis], target: Sequence[Axis], blocks: Blocks, wanted: int) -> Blocks:
    """Return pulled blocks of about ``wanted`` elements, or of as few more as read source objects no more often."""
    shape = [axis.length for axis in target]
    most = max(wanted, volume([axis.longest for axis in target], shape))
    if blocks.between or not blocks.counted:
        return blocks
    while most < volume([axis.longest for axis in _together(target, blocks.write)], shape):
        found = counted_blocks(source, target, most, blocks.counted)
        if not found.between and found.times_read <= blocks.times_read:
            return found
        most *= 2
    return blocks


def pieces_along(one: Axis, other: Axis) -> int:
    """Return how many pieces of an axis lie between the borders of both."""
    if one.is_regular and other.is_regular:
        return pieces_between(one.length, one.runs[0][0], other.runs[0][0])
    return pieces_of(one, other).count


def pieces_of(one: Axis, other: Axis) -> Axis:
    """Return the axis that is cut at the borders of both."""
    check_size("the list of the pieces along an axis", 32 * (one.count + other.count))
    starts = [axis.starts(np.arange(axis.count, dtype=np.int64)) for axis in (one, other)]
    return Axis.cut(one.length, np.union1d(*starts))


def _together(axes: Sequence[Axis], numbers: Shape) -> list[Axis]:
    return [axis.together(number) for axis, number in zip(axes, numbers, strict=True)]


def _grown(axes: Sequence[Axis], most: int) -> Iterator[Shape]:
    """Give blocks that have about ``most`` elements, grown along the axes in several orders."""
    for order in islice(permutations(range(len(axes))), _ORDERS):
        numbers = [1] * len(axes)
        sizes = [min(axis.longest, max(1, axis.length)) for axis in axes]
        for i in order:
            room = most // max(1, prod(size for j, size in enumerate(sizes) if j != i))
            numbers[i] = _fitting(axes[i], room)
            sizes[i] = min(axes[i].together(numbers[i]).longest, max(1, axes[i].length))
        yield tuple(numbers)


def _fitting(axis: Axis, room: int) -> int:
    """Return how many objects along an axis can be together, so that no such block has more elements than ``room``."""
    if axis.length <= room:
        return max(1, axis.count)
    if axis.is_regular:
        return max(1, room // axis.runs[0][0])
    check_size("the list of the chunks along an axis", 32 * axis.count)
    low, high = 1, axis.count  # one fits, all do not
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if axis.together(middle).longest <= room else (low, middle)
    return low


__all__ = ["counted_blocks", "pieces_along", "pieces_of", "smaller_counted_blocks"]
