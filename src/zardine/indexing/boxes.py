"""Boxes of elements: ranges without steps along every axis."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

from zardine.chunk_grids.axis import Axis
from zardine.indexing.selection import AxisSlice, GridSelection


def box_of(ranges: Sequence[tuple[int, int]]) -> GridSelection:
    """The elements from a first one (inclusive) to a last (exclusive) along each axis."""
    axes = tuple(AxisSlice(start, 1, stop - start) for start, stop in ranges)
    return GridSelection(axes, (False,) * len(axes), (False,) * len(axes))


def ranges_of(box: GridSelection) -> list[tuple[int, int]]:
    """The first element (inclusive) and the last (exclusive) of a box along each axis; inverse of :func:`box_of`."""
    ranges = []
    for whole in box.axes:
        assert isinstance(whole, AxisSlice)
        ranges.append((whole.start, whole.start + whole.count))
    return ranges


def boxes_beyond(starts: Sequence[int], cuts: Sequence[int], stops: Sequence[int]) -> Iterator[GridSelection]:
    """What of the box from ``starts`` to ``stops`` lies beyond the one from ``starts`` to ``cuts``: a slab per axis.

    Slabs do not overlap, and those without elements are left out.
    """
    for axis in range(len(starts)):
        before = list(zip(starts[:axis], cuts[:axis], strict=True))
        after = list(zip(starts[axis + 1 :], stops[axis + 1 :], strict=True))
        box = box_of([*before, (cuts[axis], stops[axis]), *after])
        if box.size:
            yield box


def cut_box(box: GridSelection, pieces: Sequence[Axis]) -> Iterator[GridSelection]:
    """The parts of a box in each of the chunks, or objects, that it touches."""
    ranges = []
    for axis, (start, stop) in zip(pieces, ranges_of(box), strict=True):
        parts = []
        while start < stop:
            end = min(stop, end_of_piece(axis, start))
            parts.append((start, end))
            start = end
        ranges.append(parts)
    yield from map(box_of, product(*ranges))


def end_of_piece(axis: Axis, element: int) -> int:
    """Where (exclusive) the chunk or object ends that ``element`` lies in; that may be beyond the array.

    It is 2^63 - 1 at most, the longest that an array can be.
    """
    piece = axis.find(element)
    return min(axis.start(piece) + axis.extent(piece), 2**63 - 1)
