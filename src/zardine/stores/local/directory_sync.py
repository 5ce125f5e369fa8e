"""Syncing names to the disk: of files in a directory, and of the directories above it.

A file survives the loss of power if it is synced, the directory that names it is, and so is every directory above.
Another writer may have made these without syncing them. To sync all of them in each write would take too long, so a
process syncs the names above a directory once, and remembers it.
"""

from __future__ import annotations

import os
from typing import Final

from zardine.cache import Cache

DIRECTORY: Final = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)

_synced: Final[Cache[tuple[int, int], bool]] = Cache(2**14)
"""Directories whose own name, and the names of those above, this process has synced: device and inode, each counted
as one."""


def sync_names(directory: int) -> None:
    """Sync the names in an open directory, and once in a process the names of it and of the directories above it.

    This stops at the root of a file system, and at a directory that the process may not read.
    """
    os.fsync(directory)
    status = os.fstat(directory)
    passed = []
    here = directory
    try:
        while _synced.get((status.st_dev, status.st_ino)) is None:
            passed.append((status.st_dev, status.st_ino))
            try:
                above = os.open("..", DIRECTORY, dir_fd=here)
            except PermissionError:
                break
            if here != directory:
                os.close(here)
            here = above
            status = os.fstat(above)
            if status.st_dev != passed[-1][0] or (status.st_dev, status.st_ino) == passed[-1]:
                break
            os.fsync(above)
    finally:
        if here != directory:
            os.close(here)
    for each in passed:
        _synced.put(each, True, 1)


def forget_directory(status: os.stat_result) -> None:
    """Forget a directory that was made just now: it may have the inode of one that is gone."""
    _synced.drop((status.st_dev, status.st_ino))


def forget_directories() -> None:
    """Forget all directories: one of them got another name, which is not synced."""
    _synced.clear()


__all__ = ["DIRECTORY", "forget_directories", "forget_directory", "sync_names"]
