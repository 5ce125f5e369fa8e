"""One :class:`ZipArchive` for all stores of this process that name the same file, until the last of them is gone."""

from __future__ import annotations

import atexit
import contextlib
import os
import threading
import warnings
from weakref import WeakSet

from zardine.stores.zip.archive import Replaced, ZipArchive

_archives: dict[str, ZipArchive] = {}
_all: WeakSet[ZipArchive] = WeakSet()
"""Also those whose file was replaced while they wrote to it."""
_guard = threading.RLock()
"""Reentrant: the last store of an archive may be collected at any time, also by a thread that has this lock."""


class ArchiveUse:
    """What a store, and its read-only twins, hold: as long as there is one, the archive is the one of its path.

    When the last is gone, what is not written yet is. Only then the archive is forgotten, so that nobody who opens the
    path meanwhile reads what it was before.
    """

    __slots__ = ("archive",)

    def __init__(self, path: str, replaces: Replaced = "nothing") -> None:
        """``path`` without symbolic links; ``replaces`` as in :class:`ZipArchive`."""
        with _guard:
            archive = _archives.get(path)
            if archive is None or archive.is_left_behind():
                archive = ZipArchive(path)
                _all.add(archive)
            archive.users += 1
            _archives[path] = archive
            self.archive = archive
            if replaces != "nothing":
                archive.replaces = replaces
        archive.load()

    def is_current(self) -> bool:
        """Whether the archive is still the one of its path, or has something to say about what became of it."""
        return _archives.get(self.archive.path) is self.archive or self.archive.is_left_behind()

    def __del__(self) -> None:
        with contextlib.suppress(Exception):  # at the end of the program there may be nothing left to call
            _leave(self.archive)


def _leave(archive: ZipArchive) -> None:
    with _guard:
        archive.users -= 1
        if archive.users:
            return
    _close(archive)
    with _guard:
        if not archive.users and _archives.get(archive.path) is archive:
            del _archives[archive.path]


def _close(archive: ZipArchive) -> None:
    try:
        archive.close()
    except Exception as error:
        archive.abandon()
        warnings.warn(f"what was written to {archive} is lost: {error}", RuntimeWarning, stacklevel=2)


@atexit.register
def _close_all() -> None:
    for archive in list(_all):
        _close(archive)


def _after_fork_in_child() -> None:
    global _guard
    _guard = threading.RLock()
    for archive in list(_all):
        archive.after_fork_in_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)


__all__ = ["ArchiveUse"]
