"""The functions that make, open, save and load arrays and groups, for code that runs in an event loop.

Each takes what the function of the same name in :mod:`zardine` takes, and runs it in a thread. Arrays and groups among
the arguments and results are :class:`~zardine.AsyncArray` and :class:`~zardine.AsyncGroup`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from functools import wraps
from typing import Any

from zardine.api import synchronous
from zardine.nodes.array import Array
from zardine.nodes.asynchronous import AsyncArray, AsyncGroup, as_async, as_sync, in_thread
from zardine.nodes.group import Group


def _awaitable(function: Callable[..., Any]) -> Callable[..., Awaitable[Any]]:
    @wraps(function)
    async def run(*args: Any, **kwargs: Any) -> Any:
        plain = {name: as_sync(value) for name, value in kwargs.items()}
        return _outward(await in_thread(function, *map(as_sync, args), **plain))

    return run


def _outward(found: Any) -> Any:
    if isinstance(found, (Array, Group)):
        return as_async(found)
    return type(found)(map(_outward, found)) if type(found) in (tuple, list) else found


array: Callable[..., Awaitable[AsyncArray]] = _awaitable(synchronous.array)
consolidate_metadata: Callable[..., Awaitable[AsyncGroup]] = _awaitable(synchronous.consolidate_metadata)
copy: Callable[..., Awaitable[Any]] = _awaitable(synchronous.copy)
copy_all: Callable[..., Awaitable[Any]] = _awaitable(synchronous.copy_all)
copy_store: Callable[..., Awaitable[Any]] = _awaitable(synchronous.copy_store)
create: Callable[..., Awaitable[AsyncArray]] = _awaitable(synchronous.create)
create_array: Callable[..., Awaitable[AsyncArray]] = _awaitable(synchronous.create_array)
create_group: Callable[..., Awaitable[AsyncGroup]] = _awaitable(synchronous.create_group)
empty: Callable[..., Awaitable[AsyncArray]] = _awaitable(synchronous.empty)
empty_like: Callable[..., Awaitable[AsyncArray]] = _awaitable(synchronous.empty_like)
from_array: Callable[..., Awaitable[AsyncArray]] = _awaitable(synchronous.from_array)
full: Callable[..., Awaitable[AsyncArray]] = _awaitable(synchronous.full)
full_like: Callable[..., Awaitable[AsyncArray]] = _awaitable(synchronous.full_like)
group: Callable[..., Awaitable[AsyncGroup]] = _awaitable(synchronous.group)
load: Callable[..., Awaitable[Any]] = _awaitable(synchronous.load)
ones: Callable[..., Awaitable[AsyncArray]] = _awaitable(synchronous.ones)
ones_like: Callable[..., Awaitable[AsyncArray]] = _awaitable(synchronous.ones_like)
open: Callable[..., Awaitable[AsyncArray | AsyncGroup]] = _awaitable(synchronous.open)
open_array: Callable[..., Awaitable[AsyncArray]] = _awaitable(synchronous.open_array)
open_consolidated: Callable[..., Awaitable[AsyncGroup]] = _awaitable(synchronous.open_consolidated)
open_group: Callable[..., Awaitable[AsyncGroup]] = _awaitable(synchronous.open_group)
open_like: Callable[..., Awaitable[AsyncArray]] = _awaitable(synchronous.open_like)
save: Callable[..., Awaitable[None]] = _awaitable(synchronous.save)
save_array: Callable[..., Awaitable[None]] = _awaitable(synchronous.save_array)
save_group: Callable[..., Awaitable[None]] = _awaitable(synchronous.save_group)
zeros: Callable[..., Awaitable[AsyncArray]] = _awaitable(synchronous.zeros)
zeros_like: Callable[..., Awaitable[AsyncArray]] = _awaitable(synchronous.zeros_like)


async def create_hierarchy(**kwargs: Any) -> AsyncIterator[tuple[str, AsyncArray | AsyncGroup]]:
    """See :func:`zardine.create_hierarchy`."""
    for path, node in await in_thread(lambda: list(synchronous.create_hierarchy(**kwargs))):
        yield path, as_async(node)


async def tree(grp: AsyncGroup, expand: bool | None = None, level: int | None = None) -> Any:
    """See :func:`zardine.tree`. What is given is drawn already."""
    return await grp.tree(expand, level)


__all__ = list(synchronous.__all__)
