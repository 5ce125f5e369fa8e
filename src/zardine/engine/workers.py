"""Threads that share the work of one call. I/O and codecs release the GIL, so threads are enough."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from itertools import chain
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar

from zardine.settings import thread_count

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

    from zardine.stores.base import Store

T = TypeVar("T")
R = TypeVar("R")

_DONE: Any = object()


class _Pool:
    """One pool of threads for the process, made when first needed, and anew in a forked child."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._executor: ThreadPoolExecutor | None = None
        self._size = 0

    def executor(self, size: int) -> ThreadPoolExecutor:
        from concurrent.futures import ThreadPoolExecutor  # costs a tenth of the import of zardine; few need it

        with self._lock:
            if self._executor is None or self._size < size:
                if self._executor is not None:
                    self._executor.shutdown(wait=False)
                self._executor, self._size = ThreadPoolExecutor(size, thread_name_prefix="zardine"), size
            return self._executor

    def forget(self) -> None:
        self._lock, self._executor, self._size = Lock(), None, 0


_pool = _Pool()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.forget)


def for_each(work: Callable[[T], object], items: Iterable[T], count: int, threads: int | None = None) -> None:
    """Call ``work`` with each of ``items`` (about ``count`` of them), spread over threads; raise the first error.

    ``threads``: how many of them at most; without, as many as the settings say.

    The calling thread works too, so that calls may nest without waiting for a free thread. After an error no new item
    is started; items under way are finished first, after Ctrl-C too, unless it comes a second time.
    """
    size = thread_count() if threads is None else threads
    threads = min(size, count)
    if threads <= 1:
        for item in items:
            work(item)
        return
    iterator = iter(items)
    first = next(iterator, _DONE)  # here: finding it may be all that there is to do
    if first is _DONE:
        return
    iterator = chain((first,), iterator)
    lock = Lock()
    errors: list[BaseException] = []

    def run() -> None:
        while not errors:
            try:
                with lock:
                    item = next(iterator, _DONE)
                if item is _DONE:
                    return
                work(item)
            except BaseException as error:
                errors.append(error)

    futures: list[Future[None]] = []

    def wait() -> None:
        for future in futures:
            if not future.cancel():
                future.result()

    try:
        for _ in range(threads - 1):
            try:
                futures.append(_pool.executor(size).submit(run))  # calls nest: others may need the rest
            except RuntimeError:  # the interpreter is shutting down, or another thread has just enlarged the pool
                break
        run()
        wait()
    except BaseException as error:  # Ctrl-C while the others were waited for: who called may remove what they make
        errors.append(error)
        wait()
    if errors:
        raise errors[0]


def most_requests(store: Store, threads: int | None = None) -> int:
    """Return how many threads of one call ask ``store``: as many as are worth while there, by its cost.

    No fewer than ``threads`` (without: as many as the settings say), where there is other work to do for each.
    """
    return max(thread_count() if threads is None else threads, store.cost.requests + store.cost.waiting)


def most_between(*stores: Store, threads: int | None = None) -> int:
    """Return how many objects go from store to store at a time: as many as far ones have requests, or one."""
    far = [store for store in stores if store.cost.is_slow]
    return min(most_requests(store, threads) for store in far) if far else 1


def in_background(work: Callable[[T], R], item: T, threads: int | None = None) -> Callable[[], R]:
    """Start ``work(item)`` in another thread, if one is free; call what this gives to wait for the result.

    ``threads``: how many there are; without, one more than the settings say.
    """
    try:
        future = _pool.executor(thread_count() + 1 if threads is None else threads).submit(work, item)
    except RuntimeError:  # see above
        return lambda: work(item)
    return lambda: work(item) if future.cancel() else future.result()


def beside(work: Callable[[], object], other: Callable[[], object], threads: int | None = None) -> None:
    """Do ``work`` in another thread, if one is free, beside ``other`` in this one; ``threads`` as above.

    Raises what ``other`` raises, or else what ``work`` does. Both are at their ends then, after Ctrl-C too, unless it
    comes a second time: who called may remove what they make. Work that has not begun when ``other`` fails never does.
    """
    try:
        future = _pool.executor(thread_count() + 1 if threads is None else threads).submit(work)
    except RuntimeError:  # see above
        other()
        work()
        return
    try:
        other()
        if future.cancel():
            work()
        else:
            future.result()
    except BaseException:
        if not future.cancel():
            future.exception()  # waits
        raise
