"""Comparing a converted array with its source, element by element and bit by bit."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from zardine.engine.workers import for_each
from zardine.errors import Problem
from zardine.indexing.boxes import ranges_of
from zardine.indexing.selection import GridSelection
from zardine.tools.converting.data import at_once, fetched, read_source
from zardine.tools.converting.work import ArrayWork
from zardine.tools.copying.compare import differences, is_same
from zardine.tools.copying.move import read_elements

MOST = 20
"""Problems of an array that are listed."""


def compare_array(work: ArrayWork, advance: Callable[[int], object], place: str | None = None) -> list[Problem]:
    """Return every portion of the array whose elements differ; empty if all are equal.

    ``place`` is where problems are said to be; without, at the target.
    Floats are compared bit by bit, NaN and -0.0 included; text and bytes by their characters; other objects by type
    and value. Where nothing of the source is stored, nothing of the target may be, and both have the fill value.
    """
    problems: list[Problem] = []
    guard = threading.Lock()
    place = f"/{work.target.path}" if place is None else place

    def look(box: GridSelection) -> None:
        if len(problems) < MOST:
            with fetched(work):
                wanted, found = read_source(work, box), read_elements(work.target, box)
            if not is_same(wanted, found):
                differs = differences(wanted, found)
                first = tuple(int(i) for i in np.argwhere(differs)[0])
                at = tuple(i + start for i, (start, _) in zip(first, ranges_of(box), strict=True))
                number = int(differs.sum())
                text = (
                    f"region [{_shown(box)}]: {number:,} of {differs.size:,} elements differ, the first at {at}: "
                    f"{_element(wanted, first)} became {_element(found, first)}"
                )
                with guard:
                    problems.append(Problem(place, text))
        advance(box.size * work.item_size)

    for_each(look, work.portions(), work.count, at_once(work))
    return problems


def _shown(box: GridSelection) -> str:
    return ", ".join(f"{start}:{stop}" for start, stop in ranges_of(box)) or "..."


def _element(values: npt.NDArray[Any], place: tuple[int, ...]) -> str:
    text = repr(values[place])
    return text if len(text) <= 60 else f"{text[:57]}..."
