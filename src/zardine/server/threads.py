"""Threads in which requests read and decode: few enough that memory stays bounded, whatever clients ask for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

import anyio.lowlevel
from anyio import CapacityLimiter, to_thread

P = ParamSpec("P")
T = TypeVar("T")

_MOST: Final = 16
"""Requests that read at the same time; others wait in turn, and are forgotten when their client goes."""

_limiters: WeakKeyDictionary[Any, CapacityLimiter] = WeakKeyDictionary()


async def in_thread(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a function that waits for a store, or computes, without holding up others."""
    token = anyio.lowlevel.current_token()
    limiter = _limiters.get(token)
    if limiter is None:
        limiter = _limiters[token] = CapacityLimiter(_MOST)
    return await to_thread.run_sync(lambda: function(*args, **kwargs), limiter=limiter)
