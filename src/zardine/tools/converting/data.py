"""Re-encoding the elements of an array, portion by portion of its stored objects, with bounded memory."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt

from zardine.engine.read_ahead import window, window_bytes
from zardine.engine.workers import for_each
from zardine.errors import EncodeError
from zardine.indexing.boxes import cut_box, ranges_of
from zardine.indexing.selection import GridSelection
from zardine.jobs.job import Job
from zardine.limits import within_memory
from zardine.settings import thread_count
from zardine.tools.converting.work import ArrayWork
from zardine.tools.copying.array_blocks import fetched_ahead
from zardine.tools.copying.compare import sum_of
from zardine.tools.copying.move import keys_of, move, read_elements, write_elements

_MOST_AT_ONCE = 4
"""Portions that are in memory at a time."""


def convert_array(work: ArrayWork, job: Job, *, sums: bool = False) -> tuple[int, str | None]:
    """Write every object of ``work``, each whole and once.

    Gives how many were stored, and with ``sums`` the sum of all elements: of what each is more than the fill value, so
    that those that are stored nowhere count as nothing.
    """
    made = 0
    found = []
    guard = Lock()
    metadata = work.target.layout.metadata
    fill = int(sum_of(np.full(1, metadata.fill[()], metadata.dtype)), 16) if sums else 0

    def make(box: GridSelection) -> None:
        nonlocal made
        nbytes = box.size * work.item_size
        read = nbytes // 2
        store = job.guarded(work.target.store, keys_of(work.target, box))
        target = replace(work.target, store=store)
        if work.behind is not None:
            read = 0
            for each in cut_box(box, target.layout.grids.storage):
                with within_memory("an object of the array", target.layout.object_nbytes, array=work.source.path):
                    move(work.source, target, each, encoded=True, behind=work.behind)
        else:
            with fetched(work), within_memory("a portion of the array", work.portion_nbytes, array=work.source.path):
                values = read_source(work, box)
                job.advance(read)
                if sums:
                    found.append(int(sum_of(values), 16) - fill * values.size)
                write_elements(target, box, values)
        with guard:
            made += store.stored
        job.advance(nbytes - read)

    for_each(make, work.portions(), work.count, at_once(work))
    return made, f"{sum(found) % 2**64:016x}" if sums else None


def fetched(work: ArrayWork) -> AbstractContextManager[None]:
    """Bound what is fetched ahead by the memory of the work."""
    return nullcontext() if work.memory is None else window(fetched_ahead(work.memory))


def read_source(work: ArrayWork, box: GridSelection) -> npt.NDArray[Any]:
    """Return elements of the source, as those of the target are to be."""
    values = read_elements(work.source, box)
    return text_of(work, values, ranges_of(box)) if work.as_text else values


def at_once(work: ArrayWork) -> int:
    """Return how many portions may be in memory at a time."""
    room = window_bytes() if work.memory is None else min(window_bytes(), work.memory)
    fitting = room // (work.copies * max(1, work.portion_nbytes))
    return max(1, min(_MOST_AT_ONCE, thread_count(), fitting))


def text_of(work: ArrayWork, values: npt.NDArray[Any], ranges: Sequence[tuple[int, int]]) -> npt.NDArray[Any]:
    """Return objects as text. What equals the fill value of the source becomes that of the target."""
    metadata = work.target.layout.metadata
    old, new = work.source.layout.metadata.fill[()], metadata.fill[()]
    elements: Sequence[Any] = values.reshape(-1).tolist()
    text = []
    for number, each in enumerate(elements):
        if not isinstance(each, str) and (type(each) is not type(old) or each != old):
            raise _no_text(each, number, values, ranges, work)
        text.append(each if isinstance(each, str) else new)
    return np.array(text, metadata.dtype).reshape(values.shape)


def _no_text(
    each: object, number: int, values: npt.NDArray[Any], ranges: Sequence[tuple[int, int]], work: ArrayWork
) -> EncodeError:
    within = np.unravel_index(number, values.shape) if values.ndim else ()
    place = tuple(int(i) + start for i, (start, _) in zip(within, ranges, strict=True))
    shown = repr(each)
    shown = shown if len(shown) <= 40 else f"{shown[:37]}..."
    reason = f"the object at {place} is no text but {shown}, so that the array cannot become one of text"
    return EncodeError(reason, array=work.source.path)
