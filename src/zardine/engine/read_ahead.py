"""Fetching what comes next while what is there is decoded, within a bounded window of memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import Any, TypeVar

from zardine.engine.array_config import parse_bytes
from zardine.engine.handle import ArrayHandle
from zardine.engine.workers import in_background
from zardine.indexing.block import BlockPlan
from zardine.indexing.plan import ObjectPart, PointPart
from zardine.settings import config

T = TypeVar("T")
R = TypeVar("R")


def batches(handle: ArrayHandle, parts: Iterable[ObjectPart], most_parts: int) -> Iterator[list[ObjectPart]]:
    """``parts`` in lists of at most ``most_parts``, whose chunks take at most half of the window when decoded.

    A part that is larger than that is cut between its chunks. One chunk is the least that can be fetched.
    """
    most = max(1, window_bytes() // 2 // max(1, handle.layout.chunk_nbytes))
    batch: list[ObjectPart] = []
    chunks = 0
    for part in parts:
        for piece in _pieces(part, most):
            if batch and (chunks + piece.count > most or len(batch) == most_parts):
                yield batch
                batch, chunks = [], 0
            batch.append(piece)
            chunks += piece.count
    if batch:
        yield batch


def ahead(fetch: Callable[[T], R], items: Iterator[T]) -> Iterator[tuple[T, R]]:
    """Each item with what ``fetch`` makes of it; the next one is fetched while the caller works with this one."""
    item = next(items, None)
    if item is None:
        return
    found = fetch(item)  # nothing else is to be done meanwhile
    while (following := next(items, None)) is not None:
        result = in_background(fetch, following)
        yield item, found
        item, found = following, result()
    yield item, found


_window: ContextVar[int | None] = ContextVar("window", default=None)


def window_bytes() -> int:
    """How much memory a call may use beside its result, about."""
    given = _window.get()
    if given is not None:
        return given
    settings, nbytes = _seen[0]
    if settings is not config.snapshot:
        settings, nbytes = config.snapshot, parse_bytes(config["window_bytes"])
        _seen[0] = settings, nbytes
    return nbytes


_seen: list[tuple[Any, int]] = [(None, 0)]
"""The settings that were looked at last, and what they say."""


@contextmanager
def window(nbytes: int) -> Iterator[None]:
    """Let calls of this thread use so much, or as the settings say where that is less, within the block."""
    token = _window.set(min(nbytes, window_bytes()))
    try:
        yield
    finally:
        _window.reset(token)


def read_together(count: int) -> int:
    """Return of how many objects this call reads at the same time, so that it may read some of them unasked.

    0, none, within :func:`window`: what works take that state their memory is forecast, too.
    """
    return count if _window.get() is None else 0


def _pieces(part: ObjectPart, most: int) -> Iterator[ObjectPart]:
    if part.count <= most or isinstance(part, BlockPlan):
        yield part
        return
    if isinstance(part, PointPart):
        for first in range(part.low, part.high, most):
            yield replace(part, low=first, high=min(first + most, part.high))
        return
    axis = next(i for i, length in enumerate(part.shape) if length > 1)
    step = max(1, most // (part.count // part.shape[axis]))
    for start in range(part.low[axis], part.high[axis], step):
        stop = min(start + step, part.high[axis])
        low = (*part.low[:axis], start, *part.low[axis + 1 :])
        high = (*part.high[:axis], stop, *part.high[axis + 1 :])
        yield from _pieces(replace(part, low=low, high=high), most)
