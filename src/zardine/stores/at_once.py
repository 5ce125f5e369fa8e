"""Several requests of one call under way at the same time."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from threading import Lock
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

T = TypeVar("T")
R = TypeVar("R")

_MOST = 64
"""Threads; a request that waits for one costs little, since only calls with several ranges come here."""


class _Pool:
    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        self._lock = Lock()
        self._executor: ThreadPoolExecutor | None = None

    def executor(self) -> ThreadPoolExecutor:
        from concurrent.futures import ThreadPoolExecutor

        with self._lock:
            if self._executor is None:
                self._executor = ThreadPoolExecutor(_MOST, thread_name_prefix="zardine-store")
            return self._executor


_pool = _Pool()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.forget)


def at_once(work: Callable[[T], R], items: Sequence[T]) -> list[R]:
    """``work`` of each item, all at the same time, in their order; the first error is raised.

    ``work`` must not call this function: it could wait for a thread that waits for it.
    """
    if len(items) <= 1:
        return [work(item) for item in items]
    try:
        others = [_pool.executor().submit(work, item) for item in items[1:]]
    except RuntimeError:  # the interpreter is shutting down
        return [work(item) for item in items]
    first = work(items[0])
    return [first, *(other.result() for other in others)]


__all__ = ["at_once"]
