"""One writer at a time: who changes a store waits for others that do."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

from zardine.stores.path import StorePath
from zardine.stores.resolve import StoreLike
from zardine.vectors.changing.creating import complete
from zardine.vectors.changing.levels import erase_unfinished
from zardine.vectors.storing.cells import child
from zardine.vectors.storing.consolidation import forget_consolidated
from zardine.vectors.storing.store import VectorStore

P = ParamSpec("P")
R = TypeVar("R")


def alone(change: Callable[Concatenate[StoreLike, P], R]) -> Callable[Concatenate[StoreLike, P], R]:
    """Let a function that changes the store at its first argument hold the lock of level 0 meanwhile.

    As :func:`locked`; and consolidated metadata, which would no longer be true, goes first.
    """

    @locked
    def run(path: StoreLike, /, *args: P.args, **kwargs: P.kwargs) -> R:
        forget_consolidated(VectorStore.open(path, writable=True))
        return change(path, *args, **kwargs)

    return wraps(change)(run)


def locked(change: Callable[Concatenate[StoreLike, P], R]) -> Callable[Concatenate[StoreLike, P], R]:
    """Let a function hold the lock of level 0 of the store at its first argument.

    Other threads, and where the store can do that (local files) other processes, wait for their turn. What a writer was
    killed over that replaced the store is brought to an end first, and levels that are unfinished go.
    """

    @wraps(change)
    def run(path: StoreLike, /, *args: P.args, **kwargs: P.kwargs) -> R:
        owner = VectorStore.open(path, writable=True)
        with owner.store.lock(child(owner.path, "0/zarr.json")):
            complete(owner.store, owner.path)
            erase_unfinished(VectorStore.open(path, writable=True))
            return change(StorePath(owner.store, owner.path), *args, **kwargs)

    return run
