"""Locks: of names between threads, of files and directories between the processes of one machine, too.

:class:`KeyedLock` excludes the threads of this process. :class:`FileLock` excludes processes as well, and leaves
nothing behind. It locks the file itself (:mod:`zardine.stores.system_locks`), wherever that is reached from: through
the root of another store, or through a link. The kernel drops the lock of a process that dies. Because a file may be
replaced while one waits for its lock, whoever gets the lock looks whether the name still means that file, and begins
again if not. Where the name is new, there is no file to lock: then only threads of this process exclude each other,
and creation itself must be exclusive (``os.link``), which it is in :class:`~zardine.stores.local.store.LocalStore`.

:class:`DirectoryWriter` says who is writing into a directory, so that one who is about to change what is there can wait
for them: each holds a shared lock of the directory; who waits asks for the exclusive one, which
:class:`NoDirectoryWriter` keeps.

On file systems without locks (Lustre mounted without ``-o flock``, NFS without a lock service) threads still
exclude each other, processes do not. One process alone can make a new name there, but two may replace the same file.
:attr:`FileLock.refusal` and :func:`has_locks` tell whether a file system has locks; stores decide what follows.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import threading
from collections.abc import Hashable
from time import sleep
from typing import Final, Self

from zardine.contexts import SureExit
from zardine.errors import StoreError
from zardine.stores.file_calls import TOO_MANY, close_file, copy_descriptor, open_descriptor
from zardine.stores.late_closing import close_late
from zardine.stores.local.beside import temporary_name
from zardine.stores.open_files import owners
from zardine.stores.system_locks import HAS_LOCKS, REFUSALS, lock_file, unlock_file

_DIRECTORY: Final = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)
_OPEN: Final = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0)
_EDIT: Final = _OPEN | os.O_RDWR | getattr(os, "O_NOFOLLOW", 0)

_UNKNOWN: Final = (-1, -1)
"""Of a descriptor whose file was not looked at yet; a process that is forked meanwhile closes its copy."""


# between threads


class _Entry:
    __slots__ = ("depth", "files", "lock", "owned", "users")

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.users = 0
        self.depth = 0  # how often the thread that holds it has entered it
        # descriptors of the locked files that belong to it, each with its device and inode
        self.files: dict[int, tuple[int, int]] = {}
        # device and inode of files that belong to it and cannot be locked
        self.owned: list[tuple[int, int]] = []


_entries: dict[Hashable, _Entry] = {}
_guard = threading.Lock()


class KeyedLock(SureExit):
    """``with KeyedLock(name):`` excludes other threads that name the same; one thread may nest it."""

    __slots__ = ("_counts", "_entry", "_holds", "_name")

    def __init__(self, name: Hashable) -> None:
        self._name = name
        self._counts = self._holds = False

    def __enter__(self) -> Self:
        with _guard:
            entry = _entries.get(self._name)
            if entry is None:
                entry = _entries[self._name] = _Entry()
            self._entry = entry
            entry.users += 1
            self._counts = True
        try:
            entry.lock.acquire()
            self._holds = True
            entry.depth += 1
        except BaseException:
            if not self._holds:
                with contextlib.suppress(RuntimeError):  # it is ours already where Ctrl-C came right after
                    entry.lock.release()
            self.__exit__(None, None, None)
            raise
        return self

    def _exit(self, error: BaseException | None) -> None:
        if self._holds:
            self._holds = False
            self._entry.depth -= 1
            self._entry.lock.release()
        if self._counts:
            with _guard:
                self._counts = False
                self._entry.users -= 1
                if self._entry.users == 0 and _entries.get(self._name) is self._entry:
                    del _entries[self._name]

    def is_held_by_others(self) -> bool:
        """Whether another thread holds it now."""
        entry = _entries.get(self._name)
        if entry is None:
            return False
        if not entry.lock.acquire(blocking=False):
            return True
        entry.lock.release()
        return False


def _drop_locks() -> None:
    """The child holds nothing: its copies of descriptors must neither keep nor drop the parent's locks."""
    global _guard
    _guard = threading.Lock()
    for entry in _entries.values():
        for file in entry.files:
            close_file(file)
        entry.files = {}
    _entries.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_drop_locks)


# of files


def _failure(error: OSError, path: str) -> StoreError:
    """Return the error of the library for one of the system, as what it tells of ``path`` or of a lock of that."""
    failure = StoreError(f"cannot lock {path!r}: {error.strerror}")
    failure.errno, failure.filename = error.errno, path
    return failure


class FileLock(KeyedLock):
    """``with FileLock(directory, name) as lock:`` excludes all others who lock this name in this directory.

    ``directory`` is an open descriptor that stays open for as long. One thread may nest it. ``lock.status`` is what
    the name means once it is locked (``None``: no such file). With ``editing`` the file is opened for writing if that
    is possible, and is no link; then ``lock.file`` is its descriptor, which stays open for as long as it is locked.
    """

    __slots__ = ("_directory", "_editing", "_file_name", "file", "status")

    def __init__(self, directory: int, name: str, *, editing: bool = False) -> None:
        try:
            where = os.fstat(directory)
        except OSError as error:
            raise _failure(error, name) from error
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

    def _exit(self, error: BaseException | None) -> None:
        if self._holds and self._entry.depth == 1:
            while self._entry.files:
                self._unlock()
            while self._entry.owned:
                owners.pop(self._entry.owned[-1], None)
                self._entry.owned.pop()
        super()._exit(error)

    @property
    def refusal(self) -> int:
        """The system's error number if the file cannot be locked, so that other processes are not excluded; else 0."""
        if self._entry.files or self.status is None:
            return 0
        return _refusals.get(self.status.st_dev, 0)

    def moves_to(self, file: int, *, stays: bool = False) -> None:
        """Say that the open ``file`` is about to take the name: an enclosing lock then holds it as well.

        With ``stays``, this one does, which outlives that.
        """
        if stays or self._entry.depth > 1:
            status, copy = os.fstat(file), copy_descriptor(file)
            self._entry.files[copy] = _UNKNOWN
            self._lock(copy, status)

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
                        file = open_descriptor(self._file_name, _EDIT, dir_fd=self._directory)
                    except OSError:
                        to_edit = False
                if not to_edit:
                    file = open_descriptor(self._file_name, _OPEN | os.O_RDONLY, dir_fd=self._directory)
            except FileNotFoundError:
                if self.look() is None:
                    return
                continue  # just made
            except OSError as error:
                if error.errno in TOO_MANY:
                    raise self._failure(error) from error
                self.status = self.look()  # not for us to open, so not to lock either
                return
            self._entry.files[file] = _UNKNOWN
            try:
                held = os.fstat(file)
            except OSError as error:
                raise self._failure(error) from error
            if owners.get((held.st_dev, held.st_ino)) == threading.get_ident():
                self._unlock()  # we hold it by another name of it (a hard link); waiting for us would never end
                self.status = self.look()
                return
            if not stat.S_ISREG(held.st_mode):
                self._unlock()
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
        self._entry.files[file] = name
        try:
            if HAS_LOCKS:
                lock_file(file, alone=True)
                owners[name] = threading.get_ident()
                return True
        except OSError as error:
            if error.errno not in REFUSALS:
                raise self._failure(error) from error
            refused = error.errno or errno.ENOLCK
        else:
            refused = 0
        self._unlock()
        if refused:
            _refusals[status.st_dev] = refused
            owners[name] = threading.get_ident()  # readers of this process wait for it all the same
            self._entry.owned.append(name)
        return False

    def _failure(self, error: OSError) -> StoreError:
        try:
            above = os.readlink(f"/proc/self/fd/{self._directory}")
        except OSError:
            above = ""
        return _failure(error, os.path.join(above, self._file_name))

    def _lock_for_writing(self, status: os.stat_result) -> bool:
        """The same with the file opened for writing: network file systems lock no other."""
        try:
            file = open_descriptor(self._file_name, _OPEN | os.O_RDWR, dir_fd=self._directory)
        except OSError:
            return False
        self._entry.files[file] = _UNKNOWN
        return self._lock(file, status)

    def _unlock(self) -> None:
        """Let go of the file that was locked last."""
        file, name = next(reversed(self._entry.files.items()))
        owners.pop(name, None)
        if HAS_LOCKS:
            with contextlib.suppress(OSError):  # in words: closing does not unlock if a forked process has a copy
                unlock_file(file)
        del self._entry.files[file]
        close_late(file)


# of file systems


_refusals: dict[int, int] = {}
"""Devices whose files could not be locked, and the system's error number."""


_probed: dict[int, bool] = {}
"""Devices of directories in which a new file was locked to see whether that is possible, and whether it was."""


def has_locks(path: str) -> bool | None:
    """Return whether files in the directory ``path`` can be locked: its file system is tried once, with a new file.

    ``None`` where that is not known: there is no such directory, or nothing can be written to it.
    """
    try:
        device = os.stat(path).st_dev
        if device not in _probed:
            _probed[device] = not HAS_LOCKS or _lock_new_file(os.path.join(path, temporary_name()))
        return _probed[device]
    except OSError:
        return None


def _lock_new_file(path: str) -> bool:
    file = os.open(path, _EDIT | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        os.unlink(path)
        lock_file(file, alone=True, wait=False)
        return True
    except OSError as error:
        if error.errno not in REFUSALS:
            raise
        _refusals[os.fstat(file).st_dev] = error.errno or errno.ENOLCK
        return False
    finally:
        os.close(file)


def without_locks(path: str, refusal: int) -> str:
    """Say that the file system at ``path`` has no locks, and by which error number it refused one (``refusal``)."""
    name = errno.errorcode.get(refusal, str(refusal))
    return f"the file system of {path!r} has no file locks (flock and byte ranges: {name}, {os.strerror(refusal)})"


MOUNT: Final = "mount it with locks (Lustre: -o flock; NFS: with its lock service, or local_lock=flock on one machine)"
"""What a user can do about that."""


def is_locked(path: str) -> bool:
    """Whether another thread or process holds the :class:`FileLock` of a file now; true where that cannot be told."""
    if not HAS_LOCKS:
        return True
    try:
        file = open_descriptor(path, _OPEN | os.O_RDONLY)
    except OSError:
        return True
    try:
        held = os.fstat(file)
        owner = owners.get((held.st_dev, held.st_ino))
        if owner is not None:
            return owner != threading.get_ident()
        lock_file(file, alone=False, wait=False)
        unlock_file(file)
        return False
    except OSError:
        return True
    finally:
        close_file(file)


# of directories


_NOBODY: Final = 0, (-1, -1)
"""Of a descriptor that is not locked yet; a process that is forked meanwhile closes its copy."""

_TRIES: Final = 50
"""How often, a millisecond apart, a directory is tried that another thread is about to remove."""

_held: dict[int, tuple[int, tuple[int, int]]] = {}
"""Descriptors of locked directories of this process, each with the thread that holds it, and the directory."""


_closed: dict[int, tuple[int, tuple[int, int]]] = {}
"""The same of those among them that are locked by one alone."""


_exclusive: dict[int, bool] = {}
"""Devices, and whether their directories can be locked by one alone."""


class _LockedDirectory(SureExit):
    """A directory that is open, and locked by this thread or about to be, while the context lasts."""

    __slots__ = ("_file", "_path")

    def __init__(self, path: str) -> None:
        self._path = path
        self._file = -1

    def _unopened(self, error: OSError) -> bool:
        """Return False for a directory that this process may not open; raise if it has too many open files."""
        if error.errno in TOO_MANY:
            raise _failure(error, self._path) from error
        return False

    def _refuse(self, error: OSError) -> None:
        """Leave, where it cannot be locked; raises an error of the library where that has another reason."""
        self._leave()
        if error.errno not in REFUSALS:
            raise _failure(error, self._path) from error

    def _exit(self, error: BaseException | None) -> None:
        if self._file >= 0:
            self._leave()

    def _leave(self) -> None:
        self._file = _let_go(self._file)


class DirectoryWriter(_LockedDirectory):
    """``with DirectoryWriter(path) as known:`` says that this thread writes below the directory ``path``.

    ``known`` is false where that cannot be said: there is no such directory, or it cannot be locked.
    """

    __slots__ = ()

    def __enter__(self) -> bool:
        if not HAS_LOCKS:
            return False
        while True:
            try:
                file = open_descriptor(self._path, _DIRECTORY)
            except OSError as error:
                return self._unopened(error)
            self._file = file
            try:
                _held[file] = _NOBODY
                if _closed and _holds(_closed, os.fstat(file)):  # this thread would wait for itself
                    self._leave()
                    return True
                lock_file(file, alone=False)
                status = os.fstat(file)
                _held[file] = threading.get_ident(), (status.st_dev, status.st_ino)
                if status.st_nlink > 0:  # else it was removed while we waited, and perhaps made anew
                    known = _exclusive.get(status.st_dev)
                    return _can_be_waited_for(file, status.st_dev) if known is None else known
            except OSError as error:
                self._refuse(error)
                return False
            except BaseException:
                self._leave()
                raise
            self._leave()


class NoDirectoryWriter(_LockedDirectory):
    """``with NoDirectoryWriter(path) as known:`` waits until no one is in a :class:`DirectoryWriter`, and lets none in.

    ``known`` as :func:`wait_for_writers` gives it. Where there is no such directory, one that is made is not kept free.
    A thread may nest it, also by another name of the directory (a link).
    """

    __slots__ = ()

    def __enter__(self) -> bool:
        if not HAS_LOCKS:
            return False
        while True:
            try:
                file = open_descriptor(self._path, _DIRECTORY)
            except (FileNotFoundError, NotADirectoryError):
                return True
            except OSError as error:
                return self._unopened(error)
            self._file = file
            try:
                _held[file] = _NOBODY
                status = os.fstat(file)
                is_closed, is_inside = _holds(_closed, status), _holds(_held, status)
                if is_closed or is_inside:
                    self._leave()
                    return is_closed
                lock_file(file, alone=True)
                if os.fstat(file).st_nlink > 0:  # else it was removed while we waited, and perhaps made anew
                    _closed[file] = threading.get_ident(), (status.st_dev, status.st_ino)
                    return True
            except OSError as error:
                self._refuse(error)
                return False
            except BaseException:
                self._leave()
                raise
            self._leave()


def _holds(locked: dict[int, tuple[int, tuple[int, int]]], status: os.stat_result) -> bool:
    """Whether a directory is among those that this thread has locked."""
    return (threading.get_ident(), (status.st_dev, status.st_ino)) in tuple(locked.values())


def _let_go(file: int) -> int:
    """Unlock and close a directory; in a child that was forked meanwhile it is closed already. Gives no descriptor."""
    if file in _held:
        _closed.pop(file, None)
        with contextlib.suppress(OSError):  # in words: closing does not unlock if a forked process has a copy
            unlock_file(file)
        del _held[file]
        close_file(file)
    return -1


def _can_be_waited_for(file: int, device: int) -> bool:
    """Find out whether a directory can be locked by one alone, which network file systems do not know."""
    other = open_descriptor(".", _DIRECTORY, dir_fd=file)
    try:
        lock_file(other, alone=True, wait=False)
        known = True
    except BlockingIOError:
        known = True  # not now, since we hold it
    except OSError:
        known = False
    finally:
        close_file(other)
    _exclusive[device] = known
    return known


def wait_for_writers(path: str) -> bool:
    """Wait until no one is in the context of a :class:`DirectoryWriter`. False where that cannot be known.

    Nor can it be waited for by a thread that is in it.
    """
    if not HAS_LOCKS:
        return False
    try:
        file = open_descriptor(path, _DIRECTORY)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False
    try:
        status = os.fstat(file)
        if _holds(_closed, status):
            return True
        if _holds(_held, status):
            return False
        lock_file(file, alone=True)
        unlock_file(file)
        return True
    except OSError as error:
        if error.errno not in REFUSALS:
            raise _failure(error, path) from error
        return False
    finally:
        close_file(file)


def remove_unused(above: int, name: str) -> bool:
    """Remove the empty directory ``name`` in the open one ``above``, unless someone writes below it.

    A process that would write there waits meanwhile, and finds that it is gone. Return whether it was removed.
    """
    if not HAS_LOCKS:
        os.rmdir(name, dir_fd=above)
        return True
    with _EmptyDirectory(above, name) as file:
        try:
            if not _lock_against_writers(file):
                return False
        except OSError as error:
            if error.errno not in REFUSALS:
                raise
        with contextlib.suppress(FileNotFoundError):  # it is gone: see file_calls
            os.rmdir(name, dir_fd=above)
        return True


class _EmptyDirectory(_LockedDirectory):
    """``with _EmptyDirectory(above, name) as file:`` opens a directory that is about to be removed."""

    __slots__ = ("_above",)

    def __init__(self, above: int, name: str) -> None:
        super().__init__(name)
        self._above = above

    def __enter__(self) -> int:
        self._file = open_descriptor(self._path, _DIRECTORY | getattr(os, "O_NOFOLLOW", 0), dir_fd=self._above)
        _held[self._file] = _NOBODY
        return self._file


def _lock_against_writers(file: int) -> bool:
    """Lock a directory; return False if a writer holds it.

    Another thread that tries to remove the directory holds it for a moment. It may have found a name there that is gone
    by now, so this one tries again.
    """
    for _ in range(_TRIES):
        try:
            lock_file(file, alone=True, wait=False)
            return True
        except BlockingIOError:
            pass
        try:
            lock_file(file, alone=False, wait=False)
        except BlockingIOError:
            sleep(0.001)
            continue
        try:
            lock_file(file, alone=True, wait=False)  # the other thread may just have let it go
            return True
        except BlockingIOError:
            return False  # writers share it
    return False


def _drop_directories() -> None:
    """The child writes nothing of what its parent was writing: its copies must not keep the parent's locks."""
    for file in _held:
        close_file(file)
    _held.clear()
    _closed.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_drop_directories)


__all__ = [
    "MOUNT",
    "DirectoryWriter",
    "FileLock",
    "KeyedLock",
    "NoDirectoryWriter",
    "has_locks",
    "is_locked",
    "remove_unused",
    "wait_for_writers",
    "without_locks",
]
