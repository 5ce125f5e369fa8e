"""How many objects of an array are stored, and how large they are: from a few of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from math import prod
from typing import Final

from zardine.chunk_grids.axis import Axis
from zardine.engine.handle import ArrayHandle
from zardine.jobs.stages import Cells

_SAMPLE: Final = 16
"""Objects that are looked at."""


def stored_sample(handle: ArrayHandle) -> tuple[int, int]:
    """Return about how many objects of an array are stored, and their bytes. Asks for a few sizes.

    Objects that differ in length are taken to have as many bytes an element.
    """
    axes = handle.layout.grids.storage
    cells = Cells(tuple(axis.count for axis in axes))
    step = max(1, cells.count // _SAMPLE)
    places = [cells.place(number) for number in islice(_numbers(step // 2, cells.count, step), _SAMPLE)]
    sizes = [handle.store.size(handle.key(place)) for place in places]
    known = [(size, _elements(axes, place)) for size, place in zip(sizes, places, strict=True) if size is not None]
    if not known:
        return 0, 0
    stored, elements = map(sum, zip(*known, strict=True))
    everything = prod(axis.start(axis.count - 1) + axis.extent(axis.count - 1) for axis in axes)
    return round(cells.count * len(known) / len(sizes)), everything * len(known) * stored // (len(sizes) * elements)


def _elements(axes: Sequence[Axis], place: Sequence[int]) -> int:
    return prod(axis.extent(i) for axis, i in zip(axes, place, strict=True))


def _numbers(start: int, stop: int, step: int) -> Iterator[int]:
    while start < stop:  # a range is limited to what an index can be
        yield start
        start += step


__all__ = ["stored_sample"]
