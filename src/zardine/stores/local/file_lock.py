"""Locks on files: between threads and between processes of one machine, leaving nothing behind.

What is locked (``flock``) is the file itself, wherever it is reached from: through another store's root, or through a
link. The kernel drops the lock of a process that dies. Because a file may be replaced while one waits for its lock,
whoever gets the lock looks whether the name still means that file, and begins again if not. Where the name is new,
there is no file to lock: then only threads of this process exclude each other, and creation itself must be exclusive
(``os.link``), which it is in :class:`~zardine.stores.local.store.LocalStore`.

On file systems without ``flock`` threads still exclude each other, processes do not.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import threading
from types import TracebackType
from typing import Final, Self

from zardine.stores.keyed_lock import KeyedLock
from zardine.stores.late_closing import close_late
from zardine.stores.open_files import owners

try:
    import fcntl
except ImportError:  # not POSIX: threads only
    fcntl = None  # type: ignore[assignment]

_OPEN: Final = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0)
_EDIT: Final = _OPEN | os.O_RDWR | getattr(os, "O_NOFOLLOW", 0)
_UNSUPPORTED: Final = {errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP, errno.EINVAL, errno.EBADF}


class FileLock(KeyedLock):
    """``with FileLock(directory, name) as lock:`` excludes all others who lock this name in this directory.

    ``directory`` is an open descriptor that stays open for as long. One thread may nest it. ``lock.status`` is what
    the name means once it is locked (``None``: no such file). With ``editing`` the file is opened for writing if that
    is possible, and is no link; then ``lock.file`` is its descriptor, which stays open for as long as it is locked.
    """

    __slots__ = ("_directory", "_editing", "_file_name", "file", "status")

    def __init__(self, directory: int, name: str, *, editing: bool = False) -> None:
        where = os.fstat(directory)
        super().__init__((where.st_dev, where.st_ino, name))
        self._directory = directory
        self._file_name = name
        self._editing = editing
        self.file: int | None = None
        self.status: os.stat_result | None = None

    def __enter__(self) -> Self:
        super().__enter__()
        try:
            if self._entry.depth == 1:
                self._lock_file()
            else:
                self.status = self.look()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._entry.depth == 1:
            while self._entry.files:
                self._unlock()
        super().__exit__(kind, error, trace)

    def moves_to(self, file: int, *, stays: bool = False) -> None:
        """Say that the open ``file`` is about to take the name: an enclosing lock then holds it as well.

        With ``stays``, this one does, which outlives that.
        """
        if stays or self._entry.depth > 1:
            self._lock(os.dup(file), os.fstat(file))

    def look(self) -> os.stat_result | None:
        """What the name means now, which programs that take no locks may have changed (a link to nowhere: nothing)."""
        try:
            return os.stat(self._file_name, dir_fd=self._directory)
        except FileNotFoundError:
            return None
        except OSError as error:
            if error.errno != errno.ELOOP:  # links in a circle lead nowhere, too
                raise
            return None

    def _lock_file(self) -> None:
        while True:
            try:
                file, to_edit = -1, self._editing
                if to_edit:
                    try:
                        file = os.open(self._file_name, _EDIT, dir_fd=self._directory)
                    except OSError:
                        to_edit = False
                if not to_edit:
                    file = os.open(self._file_name, _OPEN | os.O_RDONLY, dir_fd=self._directory)
            except FileNotFoundError:
                if self.look() is None:
                    return
                continue  # just made
            except OSError:  # not for us to open, so not to lock either
                self.status = self.look()
                return
            held = os.fstat(file)
            if owners.get((held.st_dev, held.st_ino)) == threading.get_ident():
                os.close(file)  # we hold it by another name of it (a hard link); waiting for us would never end
                self.status = self.look()
                return
            if not stat.S_ISREG(held.st_mode):
                os.close(file)
                self.status = self.look()
                return
            locked = self._lock(file, held)
            if not locked:
                to_edit = False
                locked = self._lock_for_writing(held)
            self.status = self.look()
            if not locked or (self.status is not None and os.path.samestat(self.status, held)):
                self.file = file if to_edit else None
                return
            self._unlock()

    def _lock(self, file: int, status: os.stat_result) -> bool:
        """Wait for the lock of an open file, to be kept until the end; close it where it cannot be had at all."""
        name = status.st_dev, status.st_ino
        self._entry.files[file] = name  # first, so that a process forked while we wait knows of it
        try:
            if fcntl is not None:
                fcntl.flock(file, fcntl.LOCK_EX)
                owners[name] = threading.get_ident()
                return True
        except OSError as error:
            if error.errno not in _UNSUPPORTED:
                raise
        del self._entry.files[file]
        os.close(file)
        return False

    def _lock_for_writing(self, status: os.stat_result) -> bool:
        """The same with the file opened for writing: network file systems lock no other."""
        try:
            file = os.open(self._file_name, _OPEN | os.O_RDWR, dir_fd=self._directory)
        except OSError:
            return False
        return self._lock(file, status)

    def _unlock(self) -> None:
        """Let go of the file that was locked last."""
        file, name = next(reversed(self._entry.files.items()))
        owners.pop(name, None)
        if fcntl is not None:
            with contextlib.suppress(OSError):  # in words: closing does not unlock if a forked process has a copy
                fcntl.flock(file, fcntl.LOCK_UN)
        del self._entry.files[file]
        close_late(file)


def is_locked(path: str) -> bool:
    """Whether another thread or process holds the :class:`FileLock` of a file now; true where that cannot be told."""
    if fcntl is None:
        return True
    try:
        file = os.open(path, _OPEN | os.O_RDONLY)
    except OSError:
        return True
    try:
        held = os.fstat(file)
        owner = owners.get((held.st_dev, held.st_ino))
        if owner is not None:
            return owner != threading.get_ident()
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        fcntl.flock(file, fcntl.LOCK_UN)
        return False
    except OSError:
        return True
    finally:
        os.close(file)


__all__ = ["FileLock", "is_locked"]
