"""Running out of space: on a small file system in memory, or by a limit on the size of files."""

from __future__ import annotations

import errno
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

PAGE = 4096
_SIZE = 2**20


class Space(Protocol):
    """A folder in which there may be little room."""

    folder: Path
    step: int
    """Bytes by which room makes a difference."""
    errno: int
    """What the system says when there is no more."""

    def leave(self, room: int) -> None:
        """From now on only ``room`` bytes more can be written (or files can have that size)."""

    def free(self) -> None:
        """There is enough again."""


class FullDisk:
    """A file system that a ballast fills."""

    step = PAGE
    errno = errno.ENOSPC

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._ballast = folder / "ballast"

    def leave(self, room: int) -> None:
        status = os.statvfs(self.folder)
        with open(self._ballast, "wb") as file:
            os.posix_fallocate(file.fileno(), 0, status.f_bavail * status.f_frsize - room)

    def free(self) -> None:
        self._ballast.unlink(missing_ok=True)


class SmallFiles:
    """A limit on the size of the files that this process writes."""

    step = 97
    errno = errno.EFBIG

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def leave(self, room: int) -> None:
        sys.dont_write_bytecode = True  # Python would keep the half of a compiled module that fits
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, resource.RLIM_INFINITY))

    def free(self) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


@contextmanager
def full_disk(folder: Path) -> Iterator[Space | None]:
    """A mounted file system; ``None`` where none may be mounted."""
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={_SIZE}", "zardine-test", str(folder)])
    if mounted.returncode != 0:
        yield None
        return
    try:
        yield FullDisk(folder)
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)  # others may look for an open file below it now


@contextmanager
def small_files(folder: Path) -> Iterator[Space]:
    """The limit, without the signal that would end the process."""
    space = SmallFiles(folder)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        yield space
    finally:
        space.free()
        signal.signal(signal.SIGXFSZ, before)
