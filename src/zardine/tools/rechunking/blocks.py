"""Which blocks an array is read and written in, so that they fit into memory and nothing is read twice. Pure.

Three shapes matter: of what is read as one (a stored object of the source, or an inner chunk where shards are too
large), of what is written as one (a stored object of the target), and of the most elements that memory has room for.
Where blocks of whole target objects cut few source objects, they are *pulled* from the source. Else blocks of whole
source objects are written as shards of an array *between*, whose inner chunks are the pieces that blocks of the target
need.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, permutations
from math import gcd, lcm, prod
from typing import Final

import numpy as np

from zardine.chunk_grids.axis import Axis
from zardine.limits import check_size

_MOST_TWICE: Final = 2.0
"""How often source objects may be read, on average, where blocks are pulled."""
_ORDERS: Final = 24
"""Orders of axes in which blocks are grown."""
_PIECE: Final = 2**18
"""Bytes that could be read in the time that one more piece takes."""

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Blocks:
    """What is read and written at a time. ``read`` and ``inner`` are ``None`` where blocks are pulled."""

    write: Shape
    read: Shape | None = None
    """Whole multiples of ``inner``."""
    inner: Shape | None = None
    times_read: float = 1.0
    """How often a source object is read, on average."""


def choose_blocks(source: Sequence[Axis], unit: Shape, target: Shape, most: int, item_size: int) -> Blocks:
    """Return the blocks for an array whose source objects lie in the grid ``source`` (``unit``: their largest shape).

    ``target`` is the shape of target objects; a block has at most ``most`` elements, which both have to fit into.
    """
    shape = tuple(axis.length for axis in source)
    writes = list(dict.fromkeys(_grown(shape, target, most)))
    pulled = min(
        (Blocks(write, times_read=_times(source, write)) for write in writes),
        key=lambda each: (round(each.times_read, 3), prod(_counts(shape, each.write))),
    )
    if pulled.times_read <= _MOST_TWICE:
        return pulled
    best = pulled
    lowest = np.inf
    for read in dict.fromkeys(_grown(shape, unit, most)):
        for write in writes:
            blocks = _aligned(source, unit, target, read, write)
            cost = _cost(shape, blocks, item_size)
            if cost < lowest:
                best, lowest = blocks, cost
    return best


def _grown(shape: Shape, unit: Shape, most: int) -> Iterator[Shape]:
    """Give blocks of whole units that have about ``most`` elements, grown along the axes in several orders."""
    counts = _counts(shape, unit)
    for order in islice(permutations(range(len(shape))), _ORDERS):
        units = [1] * len(shape)
        for axis in order:
            others = prod(min(unit[i] * units[i], shape[i]) for i in range(len(shape)) if i != axis)
            fitting = max(1, most // max(1, others) // unit[axis])
            if others * shape[axis] <= most or fitting >= counts[axis]:
                units[axis] = max(1, counts[axis])
            else:
                blocks = -(-counts[axis] // fitting)
                units[axis] = -(-counts[axis] // blocks)
        yield tuple(number * size for number, size in zip(units, unit, strict=True))


def _counts(shape: Shape, block: Shape) -> Shape:
    return tuple(-(-length // size) for length, size in zip(shape, block, strict=True))


def _times(source: Sequence[Axis], block: Shape) -> float:
    """Return how often a source object is read by blocks, on average."""
    times = 1.0
    for axis, size in zip(source, block, strict=True):
        if not axis.count:
            continue
        if axis.is_regular:
            pieces = pieces_between(axis.length, axis.runs[0][0], size)
        else:
            check_size("the list of the chunks along an axis", 16 * axis.count)
            inside = axis.starts(np.arange(1, axis.count, dtype=np.int64)) % size != 0
            pieces = -(-axis.length // size) + int(inside.sum())
        times *= pieces / axis.count
    return times


def _aligned(source: Sequence[Axis], unit: Shape, target: Shape, read: Shape, write: Shape) -> Blocks:
    """Return blocks near ``read`` and ``write`` whose pieces are inner chunks of one shape."""
    reads, writes, inner = [], [], []
    for axis, own, wanted, r, w in zip(source, unit, target, read, write, strict=True):
        length = max(1, axis.length)
        if r >= length and w >= length:
            r = c = length
        elif r >= length:
            r, c = -(-length // w) * w, w
        elif w >= length:
            c = r
        elif r >= w and lcm(own, w) <= r:
            r, c = r // lcm(own, w) * lcm(own, w), w
        elif w >= r and lcm(wanted, r) <= w:
            w, c = w // lcm(wanted, r) * lcm(wanted, r), r
        else:
            c = gcd(r, w)
        reads.append(r)
        writes.append(w)
        inner.append(c)
    return Blocks(tuple(writes), tuple(reads), tuple(inner), _times(source, tuple(reads)))


def _cost(shape: Shape, blocks: Blocks, item_size: int) -> float:
    """Return about how many bytes are read and written, and what requests take in bytes."""
    assert blocks.inner is not None
    assert blocks.read is not None
    stored = prod(count * size for count, size in zip(_counts(shape, blocks.inner), blocks.inner, strict=True))
    pieces = prod(pieces_between(length, r, w) for length, r, w in zip(shape, blocks.read, blocks.write, strict=True))
    small = prod(_counts(shape, blocks.inner)) * 2**11
    return item_size * (2.0 * stored + prod(shape) * blocks.times_read) + pieces * _PIECE + small


def pieces_between(length: int, a: int, b: int) -> int:
    """Return how many pieces of an axis lie between the cuts at multiples of ``a`` and of ``b``."""
    if not length:
        return 0
    both = lcm(a, b)
    return 1 + (length - 1) // a + (length - 1) // b - (length - 1) // both


__all__ = ["Blocks", "choose_blocks", "pieces_between"]
