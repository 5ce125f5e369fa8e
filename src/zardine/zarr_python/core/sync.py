"""``zarr.core.sync``, for programs that import it: waiting for what may be awaitable."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from concurrent.futures import ThreadPoolExecutor
from inspect import isawaitable
from typing import Any, TypeVar

T = TypeVar("T")


def sync(value: Awaitable[T] | T, loop: object = None, timeout: float | None = None) -> T:
    """Return the result of an awaitable; anything else as it is, since methods of zardine's stores are plain ones."""
    if not isawaitable(value):
        return value

    async def wait() -> Any:
        return await asyncio.wait_for(value, timeout)

    with ThreadPoolExecutor(1) as thread:  # the caller may be in an event loop of its own
        found: T = thread.submit(lambda: asyncio.run(wait())).result()
    return found


class SyncMixin:
    """:func:`sync` as a method, as programs take it from zarr-python."""

    def _sync(self, value: Awaitable[T] | T) -> T:
        return sync(value)


__all__ = ["SyncMixin", "sync"]
