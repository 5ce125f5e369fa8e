"""Comparing a converted array with its source, element by element and bit by bit."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from zardine.engine.workers import for_each
from zardine.errors import Problem
from zardine.tools.converting.data import at_once, fetched, nbytes_of, read, read_source
from zardine.tools.converting.work import ArrayWork, Coordinates
from zardine.tools.rechunking.sums import same_bits

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

    def look(portion: list[Coordinates]) -> None:
        region = work.region(portion)
        if len(problems) < MOST:
            with fetched(work):
                wanted, found = read_source(work, region), read(work.target, region)
            if not is_same(wanted, found):
                differs = differences(wanted, found)
                first = tuple(int(i) for i in np.argwhere(differs)[0])
                at = tuple(i + own.start for i, own in zip(first, region, strict=True))
                number = int(differs.sum())
                text = (
                    f"region [{_shown(region)}]: {number:,} of {differs.size:,} elements differ, the first at {at}: "
                    f"{_element(wanted, first)} became {_element(found, first)}"
                )
                with guard:
                    problems.append(Problem(place, text))
        advance(nbytes_of(work, region))

    for_each(look, work.portions(), work.count, at_once(work))
    return problems


def is_same(a: npt.NDArray[Any], b: npt.NDArray[Any]) -> bool:
    """Whether all elements of two arrays of one shape are equal, as :func:`differences` tells it, and sooner."""
    if a.dtype != b.dtype or a.dtype.kind in "TO" or a.dtype.hasobject:
        return not differences(a, b).any()
    return same_bits(a, b)


def differences(a: npt.NDArray[Any], b: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Return where elements of two arrays of one shape differ."""
    if a.dtype != b.dtype:
        return np.ones(a.shape, np.bool_)
    if a.dtype.kind == "T":
        return np.asarray(a != b)
    if a.dtype.kind == "O":
        pairs = zip(a.reshape(-1).tolist(), b.reshape(-1).tolist(), strict=True)
        return np.array([not same_object(one, other) for one, other in pairs], np.bool_).reshape(a.shape)
    raw = [np.ascontiguousarray(each).reshape(-1).view(np.uint8).reshape(a.size, -1) for each in (a, b)]
    return np.asarray((raw[0] != raw[1]).any(axis=1)).reshape(a.shape)


def same_object(a: Any, b: Any) -> bool:
    """Whether two objects have the same type and value; floats the same bits."""
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray):
        return a.shape == b.shape and not bool(differences(a, b).any())
    if isinstance(a, float):
        return bool(a.hex() == b.hex())
    if isinstance(a, dict):
        return list(a) == list(b) and all(same_object(a[key], b[key]) for key in a)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same_object, a, b))
    return bool(a == b)


def _shown(region: tuple[slice, ...]) -> str:
    return ", ".join(f"{each.start}:{each.stop}" for each in region) or "..."


def _element(values: npt.NDArray[Any], place: tuple[int, ...]) -> str:
    text = repr(values[place])
    return text if len(text) <= 60 else f"{text[:57]}..."
