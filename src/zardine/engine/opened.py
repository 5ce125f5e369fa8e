"""Handles of arrays that came out of pickles lately: those of one array share one.

A worker that is sent an array with each of its tasks so reads the index of a shard once, looks at the document as often
as one array does, and keeps one set of connections. Arrays that were opened by the user are not among them.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final

from zardine.cache import Cache
from zardine.engine.handle import ArrayHandle
from zardine.stores.base import Store
from zardine.stores.memory import MemoryStore
from zardine.stores.wrappers.wrapper import WrapperStore

_KEPT: Final = 2**28
"""Bytes of all handles that are remembered, as they are counted."""
_EACH: Final = 2**22
"""Bytes counted for a handle, if its cache of decoded chunks may not have more: so there are 64 of them."""

_handles: Cache[Hashable, ArrayHandle] = Cache(_KEPT)


def opened_before(store: Store, facts: Hashable) -> ArrayHandle | None:
    """Return the handle that was remembered for an equal store and equal ``facts``, or ``None``."""
    return _handles.get((store, facts)) if _outlives_arrays(store) else None


def remember_opened(handle: ArrayHandle, facts: Hashable) -> None:
    """Keep a handle for the arrays of which all ``facts`` are equal."""
    if _outlives_arrays(handle.store):
        _handles.put((handle.store, facts), handle, max(_EACH, handle.config.cache))


def forget_opened() -> None:
    """Forget all of them."""
    _handles.clear()


def _outlives_arrays(store: Store) -> bool:
    """Return whether a store may be kept after its arrays: it can be compared, and its values are not in memory."""
    while isinstance(store, WrapperStore):
        store = store.store
    return not isinstance(store, MemoryStore) and type(store).__eq__ is not object.__eq__


__all__ = ["forget_opened", "opened_before", "remember_opened"]
