"""Threads in which requests read and decode: few enough that memory stays bounded, whatever clients ask for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, ParamSpec, TypeVar

from anyio import CapacityLimiter, to_thread
from anyio.lowlevel import RunVar

P = ParamSpec("P")
T = TypeVar("T")

_MOST: Final = 16
"""Requests that read at the same time; others wait in turn, and are forgotten when their client goes."""

_MOST_LARGE: Final = 2
"""Answers of many megabytes that are made at the same time; each takes a few times its size while it is made."""

_limiters: Final[RunVar[dict[int, CapacityLimiter]]] = RunVar("limiters of zardine")
"""Of an event loop, by how many they let in."""


async def in_thread(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a function that waits for a store, or computes, without holding up others."""
    return await to_thread.run_sync(lambda: function(*args, **kwargs), limiter=_limiter(_MOST))


async def in_large_thread(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a function that takes much memory, without holding up the other requests."""
    return await to_thread.run_sync(lambda: function(*args, **kwargs), limiter=_limiter(_MOST_LARGE))


def _limiter(most: int) -> CapacityLimiter:
    try:
        limiters = _limiters.get()
    except LookupError:
        limiters = {}
        _limiters.set(limiters)
    return limiters.get(most) or limiters.setdefault(most, CapacityLimiter(most))
