"""Locks between the threads of this process, one for each name that somebody holds or waits for."""

from __future__ import annotations

import os
import threading
from collections.abc import Hashable
from types import TracebackType
from typing import Self


class _Entry:
    __slots__ = ("depth", "files", "lock", "users")

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.users = 0
        self.depth = 0  # how often the thread that holds it has entered it
        # descriptors of the locked files that belong to it, each with its device and inode; see file_lock
        self.files: dict[int, tuple[int, int]] = {}


_entries: dict[Hashable, _Entry] = {}
_guard = threading.Lock()


class KeyedLock:
    """``with KeyedLock(name):`` excludes other threads that name the same; one thread may nest it."""

    __slots__ = ("_entry", "_name")

    def __init__(self, name: Hashable) -> None:
        self._name = name

    def __enter__(self) -> Self:
        with _guard:
            entry = _entries.get(self._name)
            if entry is None:
                entry = _entries[self._name] = _Entry()
            entry.users += 1
        self._entry = entry
        try:
            entry.lock.acquire()
        except BaseException:
            self._leave()
            raise
        entry.depth += 1
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._entry.depth -= 1
        self._entry.lock.release()
        self._leave()

    def is_held_by_others(self) -> bool:
        """Whether another thread holds it now."""
        entry = _entries.get(self._name)
        if entry is None:
            return False
        if not entry.lock.acquire(blocking=False):
            return True
        entry.lock.release()
        return False

    def _leave(self) -> None:
        with _guard:
            self._entry.users -= 1
            if self._entry.users == 0 and _entries.get(self._name) is self._entry:
                del _entries[self._name]


def _after_fork_in_child() -> None:
    """The child holds nothing: its copies of descriptors must neither keep nor drop the parent's locks."""
    global _guard
    _guard = threading.Lock()
    for entry in _entries.values():
        for file in entry.files:
            os.close(file)
        entry.files = {}
    _entries.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)


__all__ = ["KeyedLock"]
