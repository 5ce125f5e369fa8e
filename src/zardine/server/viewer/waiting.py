"""Work that ends when nobody waits for it any more."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event
from typing import TypeVar

import anyio
from starlette.requests import Request

from zardine.server.threads import in_thread

T = TypeVar("T")


async def while_waited_for(request: Request, work: Callable[[Callable[[], bool]], T]) -> T | None:
    """Call ``work`` in a thread, with a function that tells whether the client is gone; ``None`` where it is.

    Work that waits for a thread is not begun then.
    """
    gone = Event()
    result: list[T] = []
    errors: list[Exception] = []

    async def watch(scope: anyio.CancelScope) -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass
        gone.set()
        scope.cancel()

    async with anyio.create_task_group() as group:
        group.start_soon(watch, group.cancel_scope)
        try:
            result.append(await in_thread(work, gone.is_set))
        except Exception as error:
            errors.append(error)
        group.cancel_scope.cancel()
    if gone.is_set():
        return None
    if errors:
        raise errors[0]
    return result[0] if result else None


__all__ = ["while_waited_for"]
