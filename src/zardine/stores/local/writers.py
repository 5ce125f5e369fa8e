"""Who is writing into a directory, so that one who is about to change what is there can wait for them.

Each holds a shared ``flock`` of the directory, which the kernel drops when the process dies; who waits asks for the
exclusive one. Nothing is left in the directory.
"""

from __future__ import annotations

import contextlib
import errno
import os
import threading
from types import TracebackType
from typing import Final

try:
    import fcntl
except ImportError:  # not POSIX: nobody is waited for
    fcntl = None  # type: ignore[assignment]

_DIRECTORY: Final = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)
_UNSUPPORTED: Final = {errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP, errno.EINVAL, errno.EBADF}
_held: dict[int, tuple[int, tuple[int, int]]] = {}
"""Descriptors of locked directories of this process, each with the thread that holds it, and the directory."""


_exclusive: dict[int, bool] = {}
"""Devices, and whether their directories can be locked by one alone."""


class DirectoryWriter:
    """``with DirectoryWriter(path) as known:`` says that this thread writes below the directory ``path``.

    ``known`` is false where that cannot be said: there is no such directory, or it cannot be locked.
    """

    __slots__ = ("_file", "_path")

    def __init__(self, path: str) -> None:
        self._path = path
        self._file = -1

    def __enter__(self) -> bool:
        if fcntl is None:
            return False
        while True:
            try:
                file = os.open(self._path, _DIRECTORY)
            except OSError:
                return False
            self._file = file
            try:
                _held[file] = threading.get_ident(), (-1, -1)
                fcntl.flock(file, fcntl.LOCK_SH)
                status = os.fstat(file)
                _held[file] = threading.get_ident(), (status.st_dev, status.st_ino)
                if status.st_nlink > 0:  # else it was removed while we waited, and perhaps made anew
                    known = _exclusive.get(status.st_dev)
                    return _can_be_waited_for(file, status.st_dev) if known is None else known
            except OSError as error:
                self._leave()
                if error.errno not in _UNSUPPORTED:
                    raise
                return False
            except BaseException:
                self._leave()
                raise
            self._leave()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file >= 0:
            self._leave()

    def _leave(self) -> None:
        file, self._file = self._file, -1
        if file not in _held:
            return  # in a child that was forked inside the context: it is closed already
        with contextlib.suppress(OSError):  # in words: closing does not unlock if a forked process has a copy
            fcntl.flock(file, fcntl.LOCK_UN)
        del _held[file]
        os.close(file)


def _can_be_waited_for(file: int, device: int) -> bool:
    """Find out whether a directory can be locked by one alone, which network file systems do not know."""
    other = os.open(".", _DIRECTORY, dir_fd=file)
    try:
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        known = True
    except BlockingIOError:
        known = True  # not now, since we hold it
    except OSError:
        known = False
    finally:
        os.close(other)
    _exclusive[device] = known
    return known


def wait_for_writers(path: str) -> bool:
    """Wait until no one is in the context of a :class:`DirectoryWriter`. False where that cannot be known.

    Nor can it be waited for by a thread that is in it.
    """
    if fcntl is None:
        return False
    try:
        file = os.open(path, _DIRECTORY)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False
    try:
        status = os.fstat(file)
        if (threading.get_ident(), (status.st_dev, status.st_ino)) in tuple(_held.values()):
            return False
        fcntl.flock(file, fcntl.LOCK_EX)
        fcntl.flock(file, fcntl.LOCK_UN)
        return True
    except OSError as error:
        if error.errno not in _UNSUPPORTED:
            raise
        return False
    finally:
        os.close(file)


def _after_fork_in_child() -> None:
    """The child writes nothing of what its parent was writing: its copies must not keep the parent's locks."""
    for file in _held:
        os.close(file)
    _held.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)


__all__ = ["DirectoryWriter", "wait_for_writers"]
