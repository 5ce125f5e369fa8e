"""How many objects of an array are stored, and how large they are: from a few of them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Final

from zardine.engine.handle import ArrayHandle
from zardine.jobs.stages import Cells

_SAMPLE: Final = 16
"""Objects that are looked at."""


def stored_sample(handle: ArrayHandle) -> tuple[int, int]:
    """Return about how many objects of an array are stored, and their bytes. Asks for a few sizes."""
    cells = Cells(tuple(axis.count for axis in handle.layout.grids.storage))
    step = max(1, cells.count // _SAMPLE)
    sizes = [
        handle.store.size(handle.key(cells.place(number)))
        for number in islice(_numbers(step // 2, cells.count, step), _SAMPLE)
    ]
    known = [each for each in sizes if each is not None]
    if not known:
        return 0, 0
    count = round(cells.count * len(known) / len(sizes))
    return count, round(count * sum(known) / len(known))


def _numbers(start: int, stop: int, step: int) -> Iterator[int]:
    while start < stop:  # a range is limited to what an index can be
        yield start
        start += step


__all__ = ["stored_sample"]
