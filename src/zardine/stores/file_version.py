"""Version tokens of files."""

from __future__ import annotations

import os
import time

from zardine.stores.byte_ranges import Version


def version_of(status: os.stat_result) -> Version:
    """The token of a file in this state: its identity, size and times."""
    return f"{status.st_ino:x}-{status.st_size:x}-{status.st_mtime_ns:x}-{status.st_ctime_ns:x}"


def stamp(file: int) -> None:
    """Give an open file that was just written the present time to the nanosecond.

    The times that the kernel sets move in steps of milliseconds, and inode numbers come back at once: without this,
    two values written in one step could have the same token.
    """
    now = time.time_ns()
    os.utime(file, ns=(now, now))


__all__ = ["stamp", "version_of"]
