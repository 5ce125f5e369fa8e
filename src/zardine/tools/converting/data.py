"""Re-encoding the elements of an array, portion by portion of its stored objects, with bounded memory."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from math import prod
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt

from zardine.engine.read_ahead import window, window_bytes
from zardine.engine.workers import for_each
from zardine.errors import EncodeError
from zardine.jobs.job import Job
from zardine.limits import within_memory
from zardine.settings import thread_count
from zardine.tools.converting.work import ArrayWork, Coordinates, Region
from zardine.tools.rechunking.sums import sum_of
from zardine.tools.resharding.move import box_of, move, object_bytes

_MOST_AT_ONCE = 4
"""Portions that are in memory at a time."""
_WINDOW = 16
"""One part in so many of the memory is for fetching ahead."""


def convert_array(work: ArrayWork, job: Job, *, sums: bool = False) -> tuple[int, str | None]:
    """Write every object of ``work``, each whole and once.

    Gives how many were stored, and with ``sums`` the sum of all elements: of what each is more than the fill value, so
    that those that are stored nowhere count as nothing.
    """
    made = 0
    found = []
    guard = Lock()
    fill = int(sum_of(np.full(1, work.target.metadata.fill[()], work.target.dtype)), 16) if sums else 0

    def make(portion: list[Coordinates]) -> None:
        nonlocal made
        region = work.region(portion)
        nbytes = nbytes_of(work, region)
        read = nbytes // 2
        store = job.guarded(work.target.store, work.keys(portion))
        target = work.target._with_handle(replace(work.target._handle, store=store))
        if work.behind is not None:
            read = 0
            for each in portion:
                with within_memory("an object of the array", object_bytes(target._handle), array=work.source.path):
                    move(work.source._handle, target._handle, box_of(each), encoded=True, behind=work.behind)
        else:
            with fetched(work), within_memory("a portion of the array", work.portion_nbytes, array=work.source.path):
                values = read_source(work, region)
                job.advance(read)
                if sums:
                    found.append(int(sum_of(values), 16) - fill * values.size)
                target[region or ...] = values
        with guard:
            made += store.stored
        job.advance(nbytes - read)

    for_each(make, work.portions(), work.count, at_once(work))
    return made, f"{sum(found) % 2**64:016x}" if sums else None


def fetched(work: ArrayWork) -> AbstractContextManager[None]:
    """Bound what is fetched ahead by the memory of the work."""
    return nullcontext() if work.memory is None else window(max(2**20, work.memory // _WINDOW))


def nbytes_of(work: ArrayWork, region: Region) -> int:
    """Return bytes of the elements of a region of the target."""
    return int(prod(each.stop - each.start for each in region) * work.target.dtype.itemsize)


def read_source(work: ArrayWork, region: Region) -> npt.NDArray[Any]:
    """Return elements of the source, as those of the target are to be."""
    values = read(work.source, region)
    return text_of(work, values, region) if work.as_text else values


def read(array: Any, region: Region) -> npt.NDArray[Any]:
    """Return elements of a region, always as an array."""
    shape = tuple(each.stop - each.start for each in region)
    out = np.empty(shape, array.dtype)
    return np.asarray(array.get_basic_selection(region, out=out))


def at_once(work: ArrayWork) -> int:
    """Return how many portions may be in memory at a time."""
    room = window_bytes() if work.memory is None else min(window_bytes(), work.memory)
    fitting = room // (work.copies * max(1, work.portion_nbytes))
    return max(1, min(_MOST_AT_ONCE, thread_count(), fitting))


def text_of(work: ArrayWork, values: npt.NDArray[Any], region: Region) -> npt.NDArray[Any]:
    """Return objects as text. What equals the fill value of the source becomes that of the target."""
    old, new = work.source.metadata.fill[()], work.target.metadata.fill[()]
    elements: Sequence[Any] = values.reshape(-1).tolist()
    text = []
    for number, each in enumerate(elements):
        if not isinstance(each, str) and (type(each) is not type(old) or each != old):
            raise _no_text(each, number, values, region, work)
        text.append(each if isinstance(each, str) else new)
    return np.array(text, work.target.dtype).reshape(values.shape)


def _no_text(each: object, number: int, values: npt.NDArray[Any], region: Region, work: ArrayWork) -> EncodeError:
    within = np.unravel_index(number, values.shape) if values.ndim else ()
    place = tuple(int(i) + own.start for i, own in zip(within, region, strict=True))
    shown = repr(each)
    shown = shown if len(shown) <= 40 else f"{shown[:37]}..."
    reason = f"the object at {place} is no text but {shown}, so that the array cannot become one of text"
    return EncodeError(reason, array=work.source.path)
