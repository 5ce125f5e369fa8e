"""Locks on the files of zip archives: one process writes, and readers can tell whether one does.

A file is locked under whatever name it has; whoever gets the lock of a name looks whether the name still means the file
that is locked. The kernel drops the lock of a process that dies. On file systems without locks one process can make
a new archive, and one that is there is changed only if the user says that no other process does.

An archive that is new, or rewritten, is an unfinished file beside its place first; a process that is killed leaves it.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
import time
from collections.abc import Generator, Iterator
from typing import Final

from zardine.contexts import sure_context
from zardine.settings import is_on
from zardine.stores.attempts import RACES
from zardine.stores.file_calls import close_file, link_file, open_descriptor
from zardine.stores.local.file_times import ask_clock, is_older
from zardine.stores.system_locks import HAS_LOCKS, lock_file, unlock_file

_OPEN: Final = os.O_RDWR | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0)
_NEW: Final = _OPEN | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
_HELD: Final = {errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES}
_NO_LINKS: Final = {errno.EPERM, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP, errno.EMLINK, errno.EXDEV}
_PATIENCE: Final = 10.0
"""Seconds for readers that look whether somebody writes, which takes them as long as reading a directory."""


class HeldError(Exception):
    """Somebody else writes to the archive."""


class NoLocksError(Exception):
    """Files cannot be locked here, so that others may write to the archive; its argument is the number of the error."""


def open_locked(path: str) -> int:
    """A descriptor of the file at ``path``, made if it is missing, that this process alone may write to.

    Raises :class:`HeldError` if somebody else does, :class:`NoLocksError` if that cannot be known, ``OSError`` if the
    file cannot be opened or made.
    """
    os.makedirs(os.path.dirname(path), exist_ok=True)
    for _ in range(RACES):
        try:
            file = open_descriptor(path, _OPEN)
        except FileNotFoundError:
            made = _made(path)
            if made is not None:
                return made
            continue
        try:
            refusal = _lock(file)
            if refusal and not is_on("allow_lost_updates"):
                raise NoLocksError(refusal)
            if _is_at(file, path):
                return file
        except BaseException:
            close_file(file)
            raise
        close_file(file)  # replaced while we waited
    raise HeldError


def new_file(path: str) -> tuple[int, str]:
    """A new, locked file beside ``path``, as a descriptor and a name that nobody else has: see :func:`leftovers`."""
    name = _unfinished_name(path)
    file = open_descriptor(name, _NEW, 0o666)
    try:
        _lock(file)
    except BaseException:
        close_file(file)
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise
    return file, name


def _unfinished_name(path: str) -> str:
    return f"{path}.{os.urandom(8).hex()}.part"


def unlock(file: int) -> None:
    """Let others write, and close the file."""
    release(file)
    close_file(file)


def release(file: int) -> None:
    """Let others write: to close the file would not be enough if a forked process has a copy."""
    if HAS_LOCKS:
        with contextlib.suppress(OSError):
            unlock_file(file)


@sure_context
def no_writer(file: int) -> Generator[bool, None, None]:
    """Whether nobody writes to the open file; if so, nobody begins to while the context lasts."""
    free = not HAS_LOCKS or _try(file, alone=False)
    try:
        yield free
    finally:
        if free:
            release(file)


def _is_at(file: int, path: str) -> bool:
    """Whether ``path`` means the open ``file``."""
    try:
        return os.path.samestat(os.stat(path), os.fstat(file))
    except OSError:
        return False


def _made(path: str) -> int | None:
    """The file at ``path``, new and locked from the first moment that others can see it; ``None`` if one is there."""
    file, name = new_file(path)
    is_made = False
    try:
        try:
            link_file(name, path, file)
            is_made = True
        except FileExistsError:
            return None
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            return _made_unlocked(path)
        finally:
            with contextlib.suppress(OSError):
                os.unlink(name)
    except BaseException:
        with contextlib.suppress(OSError):  # Ctrl-C: an empty file would be no archive
            if _is_at(file, path):
                os.unlink(path)
        is_made = False
        raise
    finally:
        if not is_made:
            unlock(file)
    return file


def _made_unlocked(path: str) -> int | None:
    try:
        file = open_descriptor(path, _NEW, 0o666)
    except FileExistsError:
        return None
    try:
        _lock(file)
    except BaseException:
        close_file(file)
        raise
    return file


def _lock(file: int) -> int:
    """Have the open file alone. Readers who look whether somebody writes are waited for, writers are not.

    Return 0, or the error number where files cannot be locked.
    """
    if not HAS_LOCKS:  # there two processes can spoil an archive; the documentation says that one may write
        return 0
    end = time.monotonic() + _PATIENCE
    while (refusal := _refusal(file, alone=True)) in _HELD:
        if not _try(file, alone=False) or time.monotonic() > end:
            raise HeldError
        unlock_file(file)
        time.sleep(0.001)
    return refusal


def _try(file: int, *, alone: bool) -> bool:
    return _refusal(file, alone=alone) not in _HELD  # others: there are no locks here


def _refusal(file: int, *, alone: bool) -> int:
    """Lock the file; return 0, or the number of the error."""
    try:
        lock_file(file, alone=alone, wait=False)
    except OSError as error:
        return error.errno or errno.ENOLCK
    return 0


_NAME: Final = re.compile(r"[0-9a-f]{16}\.part")
_READ: Final = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0)


def leftovers(path: str, older_than: float) -> Iterator[str]:
    """Paths of unfinished files of the archive at ``path`` that no process writes to.

    Those that were changed in the last ``older_than`` seconds are left out: where there are no locks, somebody may be
    writing to them.
    """
    folder, name = os.path.split(path)
    try:
        found = sorted(os.listdir(folder))
    except OSError:
        return
    for each in found:
        if each.startswith(f"{name}.") and _NAME.fullmatch(each, len(name) + 1):
            there = os.path.join(folder, each)
            with contextlib.suppress(OSError):
                if is_older(os.lstat(there), older_than) and _is_left(there):
                    yield there


def remove_leftovers(path: str, older_than: float) -> int:
    """Remove the :func:`leftovers`; gives their number."""
    count = 0
    folder, name = os.path.split(path)
    ask_clock(folder, _unfinished_name(name))
    for each in leftovers(path, older_than):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(each)
            count += 1
    return count


def _is_left(path: str) -> bool:
    file = open_descriptor(path, _READ)
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            return False
        with no_writer(file) as free:
            return free
    finally:
        close_file(file)


__all__ = [
    "HeldError",
    "NoLocksError",
    "leftovers",
    "new_file",
    "no_writer",
    "open_locked",
    "release",
    "remove_leftovers",
]
