"""What was read or worked out lately, kept within a number of bytes: the one cache, of which each user has its own."""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Hashable, Iterator
from threading import RLock
from typing import Final, Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

GUARD: Final = RLock()
"""Held by whoever changes a cache, whichever it is, for a microsecond; so a forked process finds all of them whole."""

if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=GUARD.acquire, after_in_parent=GUARD.release, after_in_child=GUARD.release)


class _Entry(Generic[V]):
    __slots__ = ("nbytes", "used", "value")

    def __init__(self, value: V, nbytes: int) -> None:
        self.value = value
        self.nbytes = nbytes
        self.used = False


class Cache(Generic[K, V]):
    """Values by their keys, of at most ``limit`` bytes in all; those that were not used lately go first.

    Any number of threads may use one. :meth:`get` takes no lock: it notes that the value is in use, and a value that
    was used since room was last made is passed over once when room is made again.
    """

    __slots__ = ("_entries", "limit", "nbytes")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        """Bytes kept at most; a change counts from the next :meth:`put` on."""
        self.nbytes = 0
        """Bytes kept now, as those who put them count them."""
        self._entries: OrderedDict[K, _Entry[V]] = OrderedDict()
        """The next one to go first."""

    def get(self, key: K) -> V | None:
        """Return the value of ``key``; ``None`` where there is none."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        entry.used = True
        return entry.value

    def put(self, key: K, value: V, nbytes: int) -> list[tuple[K, V]]:
        """Keep a value of ``nbytes`` bytes in the place of the one before, and return the others that went for it.

        A value of more bytes than the limit is not kept.
        """
        entry = _Entry(value, nbytes)
        with GUARD:
            old = self._entries.pop(key, None)
            if old is not None:
                self.nbytes -= old.nbytes
            if nbytes > self.limit:
                return []
            gone = [] if self.nbytes + nbytes <= self.limit else self._make_room(self.limit - nbytes)
            self._entries[key] = entry
            self.nbytes += nbytes
            return gone

    def drop(self, key: K) -> V | None:
        """Forget the value of ``key``, and return it."""
        if key not in self._entries:
            return None
        with GUARD:
            entry = self._entries.pop(key, None)
            if entry is None:
                return None
            self.nbytes -= entry.nbytes
            return entry.value

    def clear(self) -> list[tuple[K, V]]:
        """Forget all values, and return them with their keys."""
        with GUARD:
            gone = [(key, entry.value) for key, entry in self._entries.items()]
            self._entries.clear()
            self.nbytes = 0
            return gone

    def __iter__(self) -> Iterator[K]:
        """Give the keys that all values have now."""
        with GUARD:
            return iter(list(self._entries))

    def __len__(self) -> int:
        return len(self._entries)

    def _make_room(self, most: int) -> list[tuple[K, V]]:
        """Forget values until no more than ``most`` bytes are kept."""
        gone: list[tuple[K, V]] = []
        pardons = len(self._entries)  # each once, however often it is used meanwhile
        while self.nbytes > most:
            key = next(iter(self._entries), None)
            entry = None if key is None else self._entries.get(key)
            if key is None or entry is None:
                self.nbytes = 0  # it counted something too much, where Ctrl-C came between two steps
                return gone
            if entry.used and pardons:
                pardons -= 1
                entry.used = False
                self._entries.move_to_end(key)
            else:
                del self._entries[key]
                self.nbytes -= entry.nbytes
                gone.append((key, entry.value))
        return gone


__all__ = ["GUARD", "Cache"]
