"""Locks of open files that the system keeps between processes, and drops when the process that holds them dies.

Usually ``flock``. A file system that refuses it may know locks of byte ranges all the same: then all bytes are locked,
by ``F_OFD_SETLK`` of Linux. Such a lock belongs to the open file, as that of ``flock`` does, so that it excludes
threads, too. It locks a file alone only if that is open for writing, so never a directory.

On systems without either (not POSIX), :data:`HAS_LOCKS` is false, and nothing else here may be called.
"""

from __future__ import annotations

import errno
import os
import struct
from typing import Final

try:
    import fcntl
except ImportError:
    fcntl = None  # type: ignore[assignment]

HAS_LOCKS: Final = fcntl is not None
"""Whether this system locks files at all."""

REFUSALS: Final = {errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP, errno.EINVAL, errno.EBADF}
"""Error numbers by which a file system says that it has no such locks, or none of this open file."""

_NOW: Final[int] = getattr(fcntl, "F_OFD_SETLK", 0)
_WAITING: Final[int] = getattr(fcntl, "F_OFD_SETLKW", 0)


def lock_file(file: int, *, alone: bool, wait: bool = True) -> None:
    """Lock an open file: ``alone``, or with others who do not lock it alone.

    Raise ``BlockingIOError`` where others hold it and this is not to ``wait``, and ``OSError`` with a number among
    :data:`REFUSALS` where it cannot be locked.
    """
    try:
        fcntl.flock(file, (fcntl.LOCK_EX if alone else fcntl.LOCK_SH) | (0 if wait else fcntl.LOCK_NB))
    except OSError as error:
        if error.errno not in REFUSALS or not _NOW:
            raise
        if not _lock_range(file, fcntl.F_WRLCK if alone else fcntl.F_RDLCK, wait=wait):
            raise


def unlock_file(file: int) -> None:
    """Unlock an open file; one that is not locked stays so."""
    try:
        fcntl.flock(file, fcntl.LOCK_UN)
    except OSError as error:
        if error.errno in REFUSALS and _NOW:
            _lock_range(file, fcntl.F_UNLCK, wait=False)


def _lock_range(file: int, kind: int, *, wait: bool) -> bool:
    """Lock all bytes of an open file, also those to come; return False where byte ranges cannot be locked either."""
    whole = struct.pack("hhqqi4x", kind, os.SEEK_SET, 0, 0, 0)
    try:
        fcntl.fcntl(file, _WAITING if wait else _NOW, whole)
    except OSError as error:
        if error.errno in (errno.EAGAIN, errno.EACCES):
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN)) from None
        if error.errno not in REFUSALS:
            raise
        return False
    return True


__all__ = ["HAS_LOCKS", "REFUSALS", "lock_file", "unlock_file"]
