"""The functions that make, open, save and load arrays and groups, for code that runs in an event loop.

Each takes what the function of the same name in :mod:`zardine` takes, and runs it in a thread. Arrays and groups among
the arguments and results are :class:`~zardine.AsyncArray` and :class:`~zardine.AsyncGroup`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial, wraps
from typing import Any

from zardine.api import synchronous
from zardine.nodes.array import Array
from zardine.nodes.asynchronous import AsyncArray, AsyncGroup, as_async, as_sync, change_in_thread, in_thread
from zardine.nodes.group import Group


def _awaitable(function: Callable[..., Any]) -> Callable[..., Awaitable[Any]]:
    @wraps(function)
    async def run(*args: Any, **kwargs: Any) -> Any:
        plain = {name: as_sync(value) for name, value in kwargs.items()}
        work = partial(function, *map(as_sync, args), **plain)
        only_opens = function.__name__.startswith(("open", "load")) and kwargs.get("mode") != "w"
        return _outward(await (in_thread(work) if only_opens else change_in_thread(None, work)))

    run.__module__ = __name__
    return run


def _outward(found: Any) -> Any:
    if isinstance(found, (Array, Group)):
        return as_async(found)
    return type(found)(map(_outward, found)) if type(found) in (tuple, list) else found


array: Callable[..., Awaitable[AsyncArray]]
consolidate_metadata: Callable[..., Awaitable[AsyncGroup]]
copy: Callable[..., Awaitable[Any]]
copy_all: Callable[..., Awaitable[Any]]
copy_store: Callable[..., Awaitable[Any]]
create: Callable[..., Awaitable[AsyncArray]]
create_array: Callable[..., Awaitable[AsyncArray]]
create_group: Callable[..., Awaitable[AsyncGroup]]
empty: Callable[..., Awaitable[AsyncArray]]
empty_like: Callable[..., Awaitable[AsyncArray]]
from_array: Callable[..., Awaitable[AsyncArray]]
full: Callable[..., Awaitable[AsyncArray]]
full_like: Callable[..., Awaitable[AsyncArray]]
group: Callable[..., Awaitable[AsyncGroup]]
load: Callable[..., Awaitable[Any]]
ones: Callable[..., Awaitable[AsyncArray]]
ones_like: Callable[..., Awaitable[AsyncArray]]
open: Callable[..., Awaitable[AsyncArray | AsyncGroup]]
open_array: Callable[..., Awaitable[AsyncArray]]
open_consolidated: Callable[..., Awaitable[AsyncGroup]]
open_group: Callable[..., Awaitable[AsyncGroup]]
open_like: Callable[..., Awaitable[AsyncArray]]
save: Callable[..., Awaitable[None]]
save_array: Callable[..., Awaitable[None]]
save_group: Callable[..., Awaitable[None]]
zeros: Callable[..., Awaitable[AsyncArray]]
zeros_like: Callable[..., Awaitable[AsyncArray]]

for _name in synchronous.__all__:
    globals()[_name] = _awaitable(getattr(synchronous, _name))


async def create_hierarchy(**kwargs: Any) -> AsyncIterator[tuple[str, AsyncArray | AsyncGroup]]:
    """See :func:`zardine.create_hierarchy`."""
    for path, node in await change_in_thread(None, lambda: list(synchronous.create_hierarchy(**kwargs))):
        yield path, as_async(node)


async def tree(grp: AsyncGroup, expand: bool | None = None, level: int | None = None) -> Any:
    """See :func:`zardine.tree`. What is given is drawn already."""
    return await grp.tree(expand, level)


__all__ = list(synchronous.__all__)


def __dir__() -> list[str]:
    return sorted(__all__)
