"""Which blocks an array is read and written in, so that they fit into memory and nothing is read twice. Pure.

Shapes matter: of what is read as one (a stored object of the source, or an inner chunk where shards are too large), of
what is written as one (a stored object of the target, or an inner chunk where those can be appended to shards), and of
the most elements that memory has room for. Three ways, of which the cheapest is chosen:

- *pull*: blocks of whole target objects, which cut source objects into two at most, straight from the source.
- *push*: blocks of whole inner chunks of the target, which are appended to its shards.
- *between*: blocks of whole source objects are written as shards of an array between, whose inner chunks are the pieces
  that the next blocks need. Where such pieces would be small, several arrays between follow each other: the shards of
  each have shapes between those of its neighbours.

Where objects differ in length, blocks are so many of them along each axis, whatever their lengths. Of an array between
the pieces, cut at the borders of both kinds of blocks, are chunks without shards.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice, pairwise, permutations
from math import gcd, lcm, prod
from typing import Any, Final, Literal

import numpy as np

from zardine.buffers import Ints
from zardine.chunk_grids.axis import Axis
from zardine.errors import PlanError
from zardine.limits import check_size

_MOST_READS: Final = 2
"""How often any source object may be read where blocks are pulled."""
_AXES_TOGETHER: Final = 6
"""Axes of which all combinations are tried."""
_ORDERS: Final = 24
"""Orders of axes in which blocks are grown."""
_REQUEST: Final = 2**18
"""Bytes that could be read in the time that one more request takes."""
_TRIED: Final = 1000
"""Lengths that are tried for one that divides another."""
_SMALL: Final = 2**20
"""Bytes of a piece, below which one more array between may pay."""
_MOST_BETWEEN: Final = 8
"""Arrays between that are tried one after the other."""
_OF_A_SHARD: Final = 3
"""Requests that a shard between takes beside its pieces: it is written, its index is read, it is erased."""
_OF_AN_APPEND: Final = 3
"""Requests that an append to a shard is worth: locked, its index read, its chunks and index written."""

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Between:
    """An array between: its shards, and their inner chunks."""

    block: Shape
    """Whole multiples of ``inner``; where blocks are ``counted``: source objects, or chunks, along each axis."""
    inner: Shape
    """None where blocks are counted: the pieces differ."""


@dataclass(frozen=True)
class Blocks:
    """What is read and written at a time."""

    write: Shape
    """Of the target: whole objects, or with ``appends`` whole inner chunks."""
    between: tuple[Between, ...] = ()
    """None where blocks are pulled or pushed."""
    times_read: float = 1.0
    """How often a source object is read, on average."""
    appends: bool = False
    counted: Literal["", "objects", "chunks"] = ""
    """Whether blocks are told by how many objects they are, and which of the source (chunks are those in shards)."""

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON."""
        return {
            "write": list(self.write),
            "between": [{"block": list(each.block), "inner": list(each.inner)} for each in self.between],
            "appends": self.appends,
            "times_read": self.times_read,
            "counted": self.counted,
        }

    @classmethod
    def from_json(cls, document: Any) -> Blocks:
        """Return what :meth:`to_json` wrote. Raises :class:`~zardine.errors.PlanError` for lengths that none can be."""
        between = tuple(Between(_lengths(each["block"]), _lengths(each["inner"])) for each in document["between"])
        write, counted = _lengths(document["write"]), document["counted"]
        if counted not in ("", "objects", "chunks") or (counted and len(between) > 1):
            raise PlanError(
                f"blocks of a plan count objects or chunks, with one array between at most, not {counted!r}"
            )
        return cls(write, between, float(document["times_read"]), bool(document["appends"]), counted)


def choose_blocks(
    source: Sequence[Axis], unit: Shape, target: Shape, most: int, item_size: int, *, inner: Shape | None = None
) -> Blocks:
    """Return the blocks for an array whose source objects lie in the grid ``source`` (``unit``: their largest shape).

    ``target`` is the shape of target objects, ``inner`` that of their inner chunks where these can be appended. A block
    has at most ``most`` elements, which ``unit`` and either of the others have to fit into.
    """
    shape = tuple(axis.length for axis in source)
    writes: dict[Shape, bool] = {}
    if volume(target, shape) <= most:
        writes = dict.fromkeys(_grown(shape, target, most), False)
    if inner is not None and inner != target:
        writes = dict.fromkeys(_grown(shape, inner, most), True) | writes
    reads = list(dict.fromkeys(_grown(shape, unit, most)))
    found: list[Blocks] = []
    for write, appends in writes.items():
        smallest = inner if appends and inner is not None else target
        found += (_aligned(source, unit, smallest, read, write, appends) for read in reads)
    if volume(target, shape) <= most:
        found += _pulled(source, target, most)
    if inner is not None and inner != target:
        found += (replace(each, appends=True) for each in _pulled(source, inner, most))
    best = min(found, key=lambda each: (_cost(shape, target, each, item_size), each.appends))
    return _in_steps(shape, target, best, most, item_size) if best.between else best


def smaller_blocks(source: Sequence[Axis], target: Shape, blocks: Blocks, wanted: int) -> Blocks:
    """Return pulled blocks of about ``wanted`` elements, or of as few more as read source objects no more often.

    So there are more jobs, which need less memory each. Other blocks than pulled ones stay what they are.
    """
    shape = tuple(axis.length for axis in source)
    most = max(wanted, volume(target, shape))
    if blocks.between or blocks.appends:
        return blocks
    while most < volume(blocks.write, shape):
        found = min(_pulled(source, target, most), key=lambda each: each.times_read, default=blocks)
        if found.times_read <= blocks.times_read and found is not blocks:
            return found
        most *= 2
    return blocks


def pulled_blocks(source: Sequence[Axis], target: Shape, most: int) -> Blocks | None:
    """Return the best blocks of about ``most`` elements that are pulled, and read no source object more than twice."""
    return min(_pulled(source, target, most), key=lambda each: each.times_read, default=None)


def seldom_pulled_blocks(source: Sequence[Axis], target: Shape, most: int) -> Blocks:
    """Return blocks that are pulled, whatever that costs: source objects are read as seldom as can be, on average."""
    shape = tuple(axis.length for axis in source)
    return min(_all_pulled(source, target, max(most, volume(target, shape))), key=lambda each: each.times_read)


def reads_too_often(source: Sequence[Axis], blocks: Sequence[Axis]) -> bool:
    """Whether some blocks, along each axis, read any source object more often than is allowed."""
    return prod(map(_most_times, source, blocks)) > _MOST_READS


def _lengths(value: Any) -> Shape:
    if not isinstance(value, list) or not all(type(each) is int and each >= 1 for each in value):
        raise PlanError(f"blocks of a plan have lengths of 1 or more, not {value!r}")
    return tuple(value)


def _pulled(source: Sequence[Axis], target: Shape, most: int) -> Iterator[Blocks]:
    """Give blocks of whole ``target`` objects that read no source object more often than is allowed."""
    return (
        each for each in _all_pulled(source, target, most) if not reads_too_often(source, _blocks(source, each.write))
    )


def _all_pulled(source: Sequence[Axis], target: Shape, most: int) -> Iterator[Blocks]:
    """Give blocks of whole ``target`` objects; along some axes they end where source objects do, too."""
    shape = tuple(axis.length for axis in source)
    both = tuple(
        lcm(size, axis.runs[0][0]) if axis.is_regular else size for axis, size in zip(source, target, strict=True)
    )
    differing = [i for i, (a, b) in enumerate(zip(both, target, strict=True)) if a != b and target[i] < shape[i]]
    number = len(differing)
    chosen = range(2**number) if number <= _AXES_TOGETHER else (0, 2**number - 1)
    blocks: dict[Shape, None] = {}
    for bits in chosen:
        aligned = {axis for place, axis in enumerate(differing) if bits >> place & 1}
        unit = tuple(both[i] if i in aligned else size for i, size in enumerate(target))
        if volume(unit, shape) <= most:
            blocks |= dict.fromkeys(_grown(shape, unit, most))
    return (Blocks(write, (), _times(source, write)) for write in blocks)


def volume(block: Sequence[int], shape: Sequence[int]) -> int:
    """Return elements of a block within an array."""
    return prod(min(a, b) for a, b in zip(block, shape, strict=True))


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


def _blocks(source: Sequence[Axis], block: Shape) -> list[Axis]:
    """Return the axes of blocks of one shape."""
    return [Axis.regular(axis.length, size) for axis, size in zip(source, block, strict=True)]


def _times(source: Sequence[Axis], block: Shape) -> float:
    """Return how often a source object is read by blocks of one shape, on average."""
    return prod(map(times_along, source, _blocks(source, block)))


def times_along(axis: Axis, blocks: Axis) -> float:
    """Return how often a source object along an axis is read by blocks, on average."""
    if not axis.count:
        return 1.0
    if axis.is_regular and blocks.is_regular:
        return pieces_between(axis.length, axis.runs[0][0], blocks.runs[0][0]) / axis.count
    first, last = _met(axis, blocks)
    return float((last - first + 1).sum()) / axis.count


def _most_times(axis: Axis, blocks: Axis) -> int:
    """Return how often any source object along an axis is read by blocks at most."""
    size = blocks.longest
    if blocks.count <= 1 or not axis.count:
        return 1
    if axis.is_regular and blocks.is_regular and axis.count > _TRIED:  # all remainders come up, about
        own = axis.runs[0][0]
        return (size - gcd(own, size) + own - 1) // size + 1
    first, last = _met(axis, blocks)
    return int((last - first).max()) + 1


def _met(axis: Axis, blocks: Axis) -> tuple[Ints, Ints]:
    """Return the first and the last block that each source object along an axis meets."""
    check_size("the list of the chunks along an axis", 48 * axis.count)
    chunks = np.arange(axis.count, dtype=np.int64)
    starts = axis.starts(chunks)
    stops = np.minimum(starts + axis.extents(chunks), axis.length)
    return blocks.locate(starts)[0], blocks.locate(stops - 1)[0]


def _aligned(source: Sequence[Axis], unit: Shape, target: Shape, read: Shape, write: Shape, appends: bool) -> Blocks:
    """Return blocks near ``read`` and ``write`` whose pieces are inner chunks of one shape."""
    reads, writes = [], []
    for axis, own, wanted, r, w in zip(source, unit, target, read, write, strict=True):
        length = max(1, axis.length)
        if r < length and w < length:
            if r >= w:
                r, w = (r // lcm(own, w) * lcm(own, w), w) if lcm(own, w) <= r else (r, _dividing(w, wanted, r))
            else:
                r, w = (r, w // lcm(wanted, r) * lcm(wanted, r)) if lcm(wanted, r) <= w else (_dividing(r, own, w), w)
        reads.append(r)
        writes.append(w)
    between = _between(tuple(axis.length for axis in source), tuple(reads), tuple(writes))
    return Blocks(tuple(writes), (between,), _times(source, between.block), appends)


def _dividing(size: int, unit: int, whole: int) -> int:
    """Return the largest number of units that divides ``whole``, from ``size`` down to half of it; else ``size``."""
    most = size // unit
    return next((n * unit for n in range(most, max(most // 2, most - _TRIED), -1) if whole % (n * unit) == 0), size)


def _between(shape: Shape, block: Shape, following: Shape) -> Between:
    """Return the array between that is written in blocks and read in the ``following`` ones."""
    blocks, inner = [], []
    for length, r, w in zip(shape, block, following, strict=True):
        length = max(1, length)
        if r >= length and w >= length:
            r = c = length
        elif r >= length:
            r, c = -(-length // w) * w, w
        else:
            c = r if w >= length else gcd(r, w)
        blocks.append(r)
        inner.append(c)
    return Between(tuple(blocks), tuple(inner))


def _in_steps(shape: Shape, target: Shape, blocks: Blocks, most: int, item_size: int) -> Blocks:
    """Return the blocks with as many arrays between as are cheapest: more than one only where pieces are small."""
    first = blocks.between[0].block
    best, lowest = blocks, _cost(shape, target, blocks, item_size)
    nbytes = prod(shape) * item_size
    for number in range(2, _MOST_BETWEEN + 1):
        if nbytes // max(1, sum(_pieces(shape, best)) // len(best.between)) >= _SMALL:
            break
        steps = [first, *(_midway(shape, first, blocks.write, i / number) for i in range(1, number)), blocks.write]
        if any(volume(each, shape) > most for each in steps) or len(set(steps)) < len(steps):
            continue
        between = tuple(_between(shape, a, b) for a, b in pairwise(steps))
        made = Blocks(blocks.write, between, blocks.times_read, blocks.appends)
        cost = _cost(shape, target, made, item_size)
        if cost < lowest:
            best, lowest = made, cost
    return best


def _midway(shape: Shape, first: Shape, last: Shape, share: float) -> Shape:
    """Return a block between two others, of about their size; along an axis a multiple of the one, or all of it."""
    block = []
    for length, a, b in zip(shape, first, last, strict=True):
        length = max(1, length)
        a, b = min(a, length), min(b, length)
        low, high = min(a, b), max(a, b)
        if high != length and high % low:
            block.append(a)
            continue
        units = max(1, int(a ** (1 - share) * b**share / low + 1e-9))
        if high != length:
            while high // low % units:
                units -= 1
        block.append(low * units)
    return tuple(block)


def _pieces(shape: Shape, blocks: Blocks) -> list[int]:
    """Return how many pieces of each array between are read."""
    steps = [*(each.block for each in blocks.between), blocks.write]
    return [
        prod(pieces_between(length, r, w) for length, r, w in zip(shape, a, b, strict=True)) for a, b in pairwise(steps)
    ]


def _cost(shape: Shape, target: Shape, blocks: Blocks, item_size: int) -> float:
    """Return about how many bytes are read and written beside the target, and what requests take in bytes."""
    nbytes = prod(shape) * blocks.times_read
    requests, small = float(sum(_pieces(shape, blocks))), 0
    for each in blocks.between:
        counts = _counts(shape, each.inner)
        nbytes += 2.0 * prod(count * size for count, size in zip(counts, each.inner, strict=True))
        requests += _OF_A_SHARD * prod(_counts(shape, each.block))
        small += prod(counts) * 2**11
    if blocks.appends:
        meetings = (pieces_between(*each) for each in zip(shape, blocks.write, target, strict=True))
        requests += _OF_AN_APPEND * prod(meetings)
    return item_size * nbytes + requests * _REQUEST + small


def pieces_between(length: int, a: int, b: int) -> int:
    """Return how many pieces of an axis lie between the cuts at multiples of ``a`` and of ``b``."""
    if not length:
        return 0
    both = lcm(a, b)
    return 1 + (length - 1) // a + (length - 1) // b - (length - 1) // both


__all__ = [
    "Between",
    "Blocks",
    "choose_blocks",
    "pieces_between",
    "pulled_blocks",
    "reads_too_often",
    "seldom_pulled_blocks",
    "smaller_blocks",
    "times_along",
    "volume",
]
