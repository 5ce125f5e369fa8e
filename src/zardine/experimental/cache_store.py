"""A cache with the arguments of zarr-python's ``zarr.experimental.cache_store``."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any, Literal

from zardine.stores.base import ByteRange, Reading, Store
from zardine.stores.local.store import LocalStore
from zardine.stores.memory import MemoryStore
from zardine.stores.wrappers.cached import CachedStore


class CacheStore(CachedStore):
    """A store with what was read from it kept, made as zarr-python's is.

    ``cache_store`` says where: a :class:`~zardine.storage.MemoryStore` means the memory of this process (that store
    itself stays empty), a :class:`~zardine.storage.LocalStore` files in its directory. ``TypeError`` for other stores.
    ``max_size``: bytes kept at most; ``None``: any number.

    The version of a value is asked for each time before what is kept of it is used, so that nothing old is ever given:
    ``max_age_seconds`` is checked and has no other effect. What is written is kept when it is read next, whatever
    ``cache_set_data`` says. For data that nobody changes, ``CachedStore(store, immutable=True)`` asks for nothing.
    """

    def __init__(
        self,
        store: Store,
        *,
        cache_store: Store,
        max_age_seconds: float | Literal["infinity"] = "infinity",
        max_size: int | None = None,
        cache_set_data: bool = True,
        read_only: bool = False,
    ) -> None:
        known = max_age_seconds == "infinity" if isinstance(max_age_seconds, str) else max_age_seconds >= 0
        if not known:
            raise ValueError(f"max_age_seconds is a number of seconds or 'infinity', not {max_age_seconds!r}")
        super().__init__(
            store, _directory(cache_store), limit=sys.maxsize if max_size is None else max_size, read_only=read_only
        )
        self._cache_store = cache_store
        self._max_age_seconds, self._max_size, self._cache_set_data = max_age_seconds, max_size, cache_set_data
        self._hits = self._misses = 0

    def _known(self, key: str, ranges: Sequence[ByteRange]) -> Reading | None:
        known = super()._known(key, ranges)
        if known is None:
            self._misses += 1
        else:
            self._hits += 1
        return known

    def cache_info(self) -> dict[str, Any]:
        """Return what the cache is and holds, by zarr-python's names; ``current_size`` in bytes."""
        return {
            "cache_store_type": type(self._cache_store).__name__,
            "max_age_seconds": self._max_age_seconds,
            "max_size": self._max_size,
            "current_size": self.cached_bytes,
            "cache_set_data": self._cache_set_data,
            "tracked_keys": self.cached_keys,
            "cached_keys": self.cached_keys,
        }

    def cache_stats(self) -> dict[str, Any]:
        """Return how many reads found what they wanted in the cache, and how many did not."""
        reads = self._hits + self._misses
        return {
            "hits": self._hits,
            "misses": self._misses,
            "total_requests": reads,
            "hit_rate": self._hits / reads if reads else 0.0,
        }

    async def clear_cache(self) -> None:
        """Forget everything that is kept."""
        self.clear()

    def _parts(self) -> tuple[object, ...]:
        return *super()._parts(), self._max_age_seconds, self._cache_set_data

    def __reduce__(self) -> tuple[object, ...]:
        options = (self._max_age_seconds, self._max_size, self._cache_set_data, self._read_only)
        return _rebuild, (type(self), self._store, self._cache_store, options)


def _directory(cache_store: Store) -> str | None:
    if isinstance(cache_store, MemoryStore):
        return None
    if isinstance(cache_store, LocalStore):
        return os.fspath(cache_store.root)
    raise TypeError(
        f"cache_store must be a MemoryStore or a LocalStore, where the cache is kept, not {type(cache_store).__name__}"
    )


def _rebuild(kind: type[CacheStore], store: Store, cache_store: Store, options: tuple[Any, ...]) -> CacheStore:
    max_age_seconds, max_size, cache_set_data, read_only = options
    return kind(
        store,
        cache_store=cache_store,
        max_age_seconds=max_age_seconds,
        max_size=max_size,
        cache_set_data=cache_set_data,
        read_only=read_only,
    )


__all__ = ["CacheStore"]
