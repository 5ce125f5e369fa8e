"""Files below a base directory as values of a store: to open, to edit, to replace, to lock."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import threading
import warnings
from collections.abc import Generator, Iterable, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Final, NoReturn

from zardine.buffers import BytesLike
from zardine.contexts import sure_context
from zardine.errors import ConditionFailedError, InvalidKeyError, StoreError, UnsupportedError
from zardine.kernel import KERNEL
from zardine.settings import is_on
from zardine.stores.attempts import RACES
from zardine.stores.base import (
    Condition,
    OpenFile,
    Version,
)
from zardine.stores.file_calls import (
    close_file,
    flush_file,
    link_file,
    open_descriptor,
    rename_file,
)
from zardine.stores.file_seam import FilePaths, PathForm, StoreFiles, check_writable
from zardine.stores.late_closing import made_room
from zardine.stores.local import file_tree
from zardine.stores.local.base_directory import BaseDirectory, check_file_key
from zardine.stores.local.beside import RecordFile, edit_record_name, forget_edit, open_new_files, temporary_name
from zardine.stores.local.directory_sync import sync_names
from zardine.stores.local.many_files import make_cell_files, make_file, make_files, name_files, read_files
from zardine.stores.local.new_file import NEW, NewFile
from zardine.stores.locks import (
    MOUNT,
    FileLock,
    remove_unused,
    without_locks,
)
from zardine.stores.open_files import (
    EditableFile,
    FilePart,
    KeptFile,
    are_current,
    copy_part,
    joined,
    kept_files,
    known_file,
    may_keep,
    stamp,
    version_of,
)
from zardine.stores.url_text import uri_of_path

if TYPE_CHECKING:
    from zardine._kernel import Crew, KnownFile, NewFiles


_READ: Final = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0)  # a FIFO must not hang us
NO_LINK: Final = getattr(os, "O_NOFOLLOW", 0)
_EDIT: Final = os.O_RDWR | getattr(os, "O_CLOEXEC", 0) | NO_LINK
_MOST: Final = 0x7FFFF000  # bytes that Linux moves in one call
_LONGEST_NAME: Final = 255
"""Bytes of a file name; a file whose record would need a longer one is not edited."""
_SHORT_NAME: Final = 32
"""Characters of a name that leave enough room in any case."""
_NO_LINKS: Final = {errno.EPERM, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP, errno.EMLINK, errno.EXDEV}
last_change: list[object] = [object()]
"""Another one after each time that this process began to change files of a store."""

_warned: Final[set[int]] = set()
"""Devices without locks that this process has warned of."""

_held: dict[tuple[int, str, str], tuple[int, FileLock]] = {}
"""For threads that are within :meth:`LocalFiles.lock`, the base and the key: the open directory, and the lock."""

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_held.clear)

_SEEN: Final = frozenset({"read", "lock", "writer"})
"""Methods of a store by which a subclass may see changes that the kernel makes in files."""


class LocalFiles(StoreFiles):
    """The files of a :class:`~zardine.stores.local.store.LocalStore`.

    A subclass that opens or edits files in another way sees all that are opened, or edited. ``overridden``: the methods
    of :class:`~zardine.stores.local.store.LocalStore` that a subclass has replaced, and which are not passed by.
    """

    can_read = can_edit = True

    def __init__(self, base: BaseDirectory, overridden: frozenset[str], *, read_only: bool, durable: bool) -> None:
        self._base = base
        self._overridden = overridden
        self._read_only = read_only
        self._durable = durable
        self._form: tuple[str, str, PathForm] | None = None  # the last one: whose, and what it is

    def __str__(self) -> str:
        return uri_of_path(self._base.path)

    @property
    def folder(self) -> str | None:
        return None if self._overridden or type(self) is not LocalFiles else self._base.path

    @property
    def can_make(self) -> bool:
        return self.folder is not None and not (self._durable or self._read_only)

    def _check_writable(self) -> None:
        check_writable(self, self._read_only)

    def open(self, key: str) -> OpenFile | None:
        check_file_key(key)
        path = self._base.path_of(key)
        file = OpenFile(-1, 0, "", path)
        try:
            file.fd, lies_in_base = _open(path, key)
        except (FileNotFoundError, NotADirectoryError):
            link = self._base.link_to_nowhere(path)
            if link is not None:
                what = "it" if link == path else repr(link)
                raise StoreError(
                    f"cannot read key {key!r} of {self}: {what} is a link that leads nowhere. What it means was not "
                    "fetched, or is gone; remove the link if nothing is meant to be stored there"
                ) from None
            return None
        except OSError as error:
            if error.errno == errno.ENXIO:  # a socket, or a FIFO
                return None
            self.fail("read", key, error)
        try:
            if not lies_in_base:
                self._base.check_inside(file.fd, path)
            status = os.fstat(file.fd)
            if stat.S_ISREG(status.st_mode):
                file.size, file.version = status.st_size, version_of(status)
                return file
        except FileNotFoundError:
            pass
        except OSError as error:
            file.close()
            self.fail("read", key, error)
        file.close()
        return None

    def keep_open(self, keys: Sequence[str], *, sparing: bool = False, look: bool = True) -> Sequence[KeptFile] | None:
        if type(self).open is not LocalFiles.open:  # a subclass wants to see what is opened
            return None
        base = self._base.path
        files: list[KeptFile] = []
        for key in keys:
            file = kept_files.get((base, key))
            if file is None:
                break
            files.append(file)
        if len(files) == len(keys) and (not look or are_current(files)):
            return files
        if sparing and not may_keep([(base, key) for key in keys]):
            return None
        files.clear()
        for key in keys:
            file = kept_files.get((base, key))
            if file is None or not are_current((file,)):
                kept_files.drop((base, key))
                opened = self.open(key)
                if opened is None:
                    return None
                try:
                    file = KeptFile(opened)
                except OSError as error:
                    self.fail("read", key, error)
                kept_files.put((base, key), file, 1)
            files.append(file)
        return files

    def identify(self, key: str, version: Version) -> KnownFile | None:
        if "is_unchanged" in self._overridden:
            return None
        path = f"{self._base.path}/{key}"
        try:
            status = os.stat(path)
        except OSError:
            return None
        return known_file(path, status) if version_of(status) == version else None

    def paths(self, keys: Sequence[str]) -> FilePaths | None:
        if type(self).open is not LocalFiles.open:
            return None
        below = self._base.below()
        if below is None:
            return None
        base = self._base.path
        paths = [f"{base}/{check_file_key(key)}" for key in keys]
        encoded = os.fsencode("\0".join(paths)).split(b"\0") if paths else []  # all at once; no path has a NUL
        return FilePaths(os.fsencode(below), encoded)

    def path_form(self, form: str) -> PathForm | None:
        if type(self).open is not LocalFiles.open:
            return None
        below = self._base.below()
        known = self._form
        if known is None or known[:2] != (below, form):
            if below is None:
                return None
            path = f"{self._base.path.replace('%', '%%')}/{check_file_key(form)}"
            known = self._form = below, form, PathForm(os.fsencode(below), os.fsencode(path))
        return known[2]

    def note_change(self, key: str) -> None:
        """Forget what was read of a key, which is about to be changed."""
        last_change[0] = object()
        kept_files.drop((self._base.path, key))

    @sure_context
    def new_value(self, key: str) -> Generator[NewFile, None, None]:
        prefix, _, name = key.rpartition("/")

        def put(new: NewFile, condition: Condition | None) -> Version:
            self.note_change(key)
            directory, lock = _held.get((threading.get_ident(), self._base.path, key), (new.directory, None))
            if not os.path.samestat(os.fstat(directory), os.fstat(new.directory)):  # erased meanwhile, and made anew
                self.lost(key)
            try:
                if lock is not None:
                    lock.status = lock.look()
                status = self._rename_under_lock(new.directory, new.temporary, new.fd, name, key, condition, lock)
            except FileNotFoundError:  # the directory is gone, and the file with it
                self.lost(key)
            self._sync_name(new.directory)
            return version_of(status)

        new = NewFile(
            lambda: self._base.open(prefix, create=True),
            self._finish,
            put,
            lambda error: self.fail("write", key, error),
        )
        try:
            yield new
        finally:
            new.close()
            if not new.is_put:
                self.remove_empty(prefix)

    @sure_context
    def lock(self, key: str) -> Generator[None, None, None]:
        prefix, _, name = key.rpartition("/")
        made = made_base = False
        try:
            try:
                directory = self._base.open(prefix)
            except FileNotFoundError:
                made, made_base = True, not os.path.isdir(self._base.path)
                directory = self._base.open(prefix, create=True)
        except OSError as error:
            self.fail("lock", key, error)
        try:
            holds = False
            place = threading.get_ident(), self._base.path, key
            before = _held.get(place)
            with FileLock(directory, name) as lock:
                holds = True
                _held[place] = directory, lock
                try:
                    yield
                finally:
                    _held.pop(place, None)
                    if before is not None:
                        _held[place] = before
        except OSError as error:
            if holds:
                raise
            self.fail("lock", key, error)
        finally:
            close_file(directory)
            if made:
                self.remove_empty(prefix)  # if nothing was put into it
            if made_base:
                with contextlib.suppress(OSError):
                    os.rmdir(self._base.path)

    def replace(
        self,
        keys: Sequence[str],
        *,
        conditions: Sequence[Condition | None] = (),
        changing: bool = False,
    ) -> AbstractContextManager[NewFiles | None]:
        self._check_writable()
        files = None if changing and self._sees_changes() else self._new_files(keys, conditions)
        return nullcontext() if files is None else files

    def _new_files(self, keys: Sequence[str], conditions: Sequence[Condition | None]) -> NewFiles | None:
        """Where the files of ``keys`` go; ``None`` where to write one is more than that, or fails."""
        if not self._is_plain():
            return None
        for key in keys:
            self.note_change(key)
        named = self._base.named()
        if named is not None:
            return open_new_files(named, keys, conditions)
        try:
            base = self._base.open("")
        except (OSError, InvalidKeyError):  # which `set` puts into words, as all else that is wrong
            return None
        try:
            return open_new_files(base, keys, conditions)
        finally:
            os.close(base)

    def make(self, values: Iterable[tuple[str, BytesLike]]) -> None:
        with self._telling():
            make_files(self._base, values)

    def make_parts(self, key: str, parts: Iterable[BytesLike]) -> None:
        with self._telling():
            make_file(self._base, key, parts)

    def make_cells(self, path: str, arrays: Sequence[tuple[object, ...]], threads: int, crew: Crew) -> None:
        with self._telling(), self.directory(path, create=True) as directory:
            for key, code in make_cell_files(directory, arrays, threads, crew):
                raise OSError(code, os.strerror(code), key)

    def name_again(self, names: Iterable[tuple[str, str]]) -> None:
        def copy(old: str, new: str) -> None:
            file = self.open(old)
            if file is not None:
                with file:
                    self.make([(new, file.read((0, file.size)))])

        with self._telling():
            name_files(self._base.path, names, copy)

    def read_whole(self, keys: Sequence[str], most: int) -> Sequence[BytesLike | None]:
        return super().read_whole(keys, most) if self.folder is None else read_files(self._base, keys, most)

    @contextmanager
    def _telling(self) -> Generator[None, None, None]:
        """Put errors of the system into words, where many files are made."""
        try:
            yield
        except OSError as error:
            raise StoreError(f"cannot write to {self}: {error}") from error

    def _is_plain(self) -> bool:
        """Whether files are written by the kernel: nobody wants to see it, nor to wait for the disk."""
        return KERNEL is not None and not self._durable and "set" not in self._overridden

    def _sees_changes(self) -> bool:
        """Whether a subclass wants to see what is read or locked, or who writes."""
        kind = type(self)
        if kind is LocalFiles:
            return not _SEEN.isdisjoint(self._overridden)
        own = (kind.open, kind.edit) == (LocalFiles.open, LocalFiles.edit)
        return not (own and _SEEN.isdisjoint(self._overridden))

    @sure_context
    def edit(self, key: str) -> Generator[EditableFile | None, None, None]:
        """See :meth:`StoreFiles.edit`; the file is locked, and all who lock it wait.

        ``None`` also for a link, a file with another name, a name that leaves no room for that of a record, and on a
        file system without locks: the caller then puts a whole new value.
        """
        check_file_key(key)
        self._check_writable()
        self.note_change(key)
        prefix, _, name = key.rpartition("/")
        try:
            directory = self._base.open(prefix)
        except (FileNotFoundError, NotADirectoryError):
            yield None
            return
        except OSError as error:
            self.fail("edit", key, error)
        try:
            holds = False
            with FileLock(directory, name, editing=True) as lock:
                may_edit = not lock.refusal or is_on("allow_lost_updates")  # else `set` refuses, or replaces it
                file = self._open_to_edit(directory, name, key, lock) if may_edit else None
                holds = True
                try:
                    yield file
                except OSError as error:
                    self.fail("edit", key, error)
                finally:
                    if file is not None:
                        file.close()
        except OSError as error:
            if holds:
                raise
            self.fail("edit", key, error)
        finally:
            close_file(directory)

    def _open_to_edit(self, directory: int, name: str, key: str, lock: FileLock) -> EditableFile | None:
        status, fd = lock.status, lock.file
        if status is None or not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
            return None
        if len(name) > _SHORT_NAME and len(os.fsencode(edit_record_name(name))) > _LONGEST_NAME:
            return None

        def look_again() -> Version:
            try:
                now = os.stat(name, dir_fd=directory)
            except FileNotFoundError:
                self.lost(key)
            except OSError:
                return ""  # no version: the edit is done, and the next reader looks again
            if not os.path.samestat(now, status):
                self.lost(key)
            return version_of(now)

        def put(pieces: Sequence[BytesLike | FilePart], version: Version) -> Version:
            try:
                return self._put(directory, name, key, pieces, Condition(version), lock)
            except FileNotFoundError:  # the directory is gone, and the file with it
                self.lost(key)

        record = RecordFile(directory, name, durable=self._durable)
        version, path, durable = version_of(status), self._base.path_of(key), self._durable
        lent = fd is not None
        file = EditableFile(
            -1 if fd is None else fd, status.st_size, version, path, look_again, put, record, durable=durable, lent=lent
        )
        if lent:
            return file
        try:
            file.fd = open_descriptor(name, _EDIT, dir_fd=directory)
        except FileNotFoundError:
            self.lost(key)  # removed just now
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.EACCES, errno.EPERM, errno.ETXTBSY):
                return None  # a link, or a file that may be replaced but not changed
            self.fail("edit", key, error)
        if not os.path.samestat(os.fstat(file.fd), status):  # a program that takes no locks has replaced it just now
            file.close()
            self.lost(key)
        return file

    def finish_edit(self, directory: int, name: str) -> bool:
        """Have no record of an edit of the file ``name``; ``False`` where it is needed, since it cannot be undone."""
        with contextlib.suppress(ConditionFailedError), FileLock(directory, name, editing=True) as lock:
            file = self._open_to_edit(directory, name, name, lock)
            if file is None and lock.status is not None:
                return False
            if file is None:
                RecordFile(directory, name, durable=self._durable).remove()
                return True
            with file:
                file.mend()
            return True
        return False  # another program has just replaced the file

    @contextmanager
    def directory(self, prefix: str, *, create: bool = False) -> Generator[int, None, None]:
        directory = self._base.open(prefix, create=create)
        try:
            yield directory
        finally:
            close_file(directory)

    def is_locked_here(self, key: str) -> bool:
        """Return whether this thread is within :meth:`lock` of a key."""
        return (threading.get_ident(), self._base.path, key) in _held

    def set(self, key: str, data: BytesLike, condition: Condition | None) -> Version:
        """Put a file of these bytes in the place of the value of a key."""
        held = _held.get((threading.get_ident(), self._base.path, key))
        for _ in range(RACES):
            try:
                return self._set(key, data, condition, held)
            except FileNotFoundError:  # the directory was erased while we wrote into it: again
                held = None
            except StoreError as error:
                if not made_room(error):
                    raise
        raise StoreError(f"cannot write key {key!r} of {self}: its directory goes away as often as it is made")

    def _set(
        self, key: str, data: BytesLike, condition: Condition | None, held: tuple[int, FileLock] | None
    ) -> Version:
        prefix, _, name = key.rpartition("/")
        try:
            if held is not None:
                directory, lock = held
                lock.status = lock.look()
                return self._put(directory, name, key, (data,), condition, lock)
            directory = self._base.open(prefix, create=True)
            try:
                return self._put(directory, name, key, (data,), condition)
            finally:
                close_file(directory)
        except FileNotFoundError:
            raise
        except OSError as error:
            self.remove_empty(prefix)  # if we made it
            self.fail("write", key, error)

    def _put(
        self,
        directory: int,
        name: str,
        key: str,
        pieces: Sequence[BytesLike | FilePart],
        condition: Condition | None,
        held: FileLock | None = None,
    ) -> Version:
        """Write a temporary file of ``pieces`` and rename it, under the lock that is ``held`` or a new one."""
        temporary = temporary_name()
        file = open_descriptor(temporary, NEW, 0o666, dir_fd=directory)
        try:
            self._fill(file, pieces)
            status = self._rename_under_lock(directory, temporary, file, name, key, condition, held)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary, dir_fd=directory)
            raise
        finally:
            close_file(file)
        self._sync_name(directory)
        return version_of(status)

    def _sync_name(self, directory: int) -> None:
        """Sync the name that a value in an open directory has just got, if that is promised."""
        if self._durable:
            try:
                sync_names(directory)
            except OSError as error:
                error.add_note("the change takes effect nevertheless, but a loss of power may undo it")
                raise

    def _rename_under_lock(
        self,
        directory: int,
        temporary: str,
        file: int,
        name: str,
        key: str,
        condition: Condition | None,
        held: FileLock | None,
    ) -> os.stat_result:
        """Rename the finished temporary file, under the lock that is ``held`` or a new one."""
        status = None
        while status is None:
            if held is not None:
                status = self._rename(directory, temporary, file, name, key, condition, held, stays=True)
                if status is None:
                    held.status = held.look()
                continue
            with FileLock(directory, name) as lock:
                status = self._rename(directory, temporary, file, name, key, condition, lock)
        return status

    def _fill(self, file: int, pieces: Sequence[BytesLike | FilePart]) -> None:
        for data in joined(pieces):
            if isinstance(data, FilePart):
                copy_part(data, file)
                continue
            done = os.write(file, data) if len(data) <= _MOST else 0
            if done < len(data):
                view = memoryview(data)
                while done < len(data):
                    done += os.write(file, view[done : done + _MOST])
        self._finish(file)

    def _finish(self, file: int) -> None:
        """Have the file system accept all bytes of an open file, and put them on the disk if that is promised."""
        flush_file(file)
        stamp(file)  # after that: bytes that are accepted later change the times
        if self._durable:
            os.fsync(file)

    def _rename(
        self,
        directory: int,
        temporary: str,
        file: int,
        name: str,
        key: str,
        condition: Condition | None,
        lock: FileLock,
        *,
        stays: bool = False,
    ) -> os.stat_result | None:
        """Rename the finished temporary file, which is locked with what it replaces, if ``condition`` holds.

        ``None`` if something was in the way that is gone now: then the caller tries again.
        """
        old = lock.status
        if old is not None and stat.S_ISDIR(old.st_mode):
            if file_tree.remove_empty(directory, name):  # of a prefix that has no keys
                return None
            raise prefix_of_keys()
        if old is not None and not stat.S_ISREG(old.st_mode):  # reads as missing, so conditions could never hold
            raise OSError(errno.EINVAL, "what lies there is neither a file nor a directory: remove it first")
        lock.moves_to(file, stays=stays)
        if old is not None:
            mode = stat.S_IMODE(old.st_mode)
            if mode != stat.S_IMODE(os.fstat(file).st_mode):
                with contextlib.suppress(OSError):
                    os.fchmod(file, mode)
        if old is not None and condition is not None and condition.version is not None and lock.refusal:
            self._put_up_with_races(key, condition, lock.refusal, old.st_dev)
        self.check_last(lock, key, condition)
        if old is None:
            if self._link(directory, temporary, name, file):
                with contextlib.suppress(OSError):
                    os.unlink(temporary, dir_fd=directory)
                return self._look_at_named(file)
            if lock.look() is not None:
                return None
        rename_file(temporary, name, file, directory)
        forget_edit(directory, name, durable=self._durable)
        return self._look_at_named(file)

    def _look_at_named(self, file: int) -> os.stat_result:
        """Return what the system says of a file that has just got its name."""
        try:
            return os.fstat(file)
        except OSError as error:
            error.add_note("the change takes effect nevertheless")
            raise

    def _put_up_with_races(self, key: str, condition: Condition, refusal: int, device: int) -> None:
        """Warn once where no lock excludes other processes; refuse what would undo their changes unasked."""
        reason = without_locks(self._base.path, refusal)
        if condition.strict:
            raise UnsupportedError(
                f"{reason}, so that changing a part of key {key!r} could undo what another process or machine writes "
                f"to it at the same time; nothing was written. Either {MOUNT}; or write whole shards or chunks; or, if "
                "no other process writes to them meanwhile: zardine.config.set({'allow_lost_updates': True})"
            )
        if device not in _warned and not is_on("allow_lost_updates"):
            _warned.add(device)
            warnings.warn(
                f"{reason}: updates may be lost where several processes or machines write to the same chunk, shard or "
                f"metadata document; the threads of this process exclude each other. Let one process write, or {MOUNT}",
                stacklevel=3,
            )

    def check_last(self, lock: FileLock, key: str, condition: Condition | None) -> None:
        """Look whether a condition holds: the last call before the one that gives or takes the name."""
        if condition is not None:
            now = lock.look()
            if (None if now is None else version_of(now)) != condition.version:
                self.lost(key)

    def _link(self, directory: int, temporary: str, name: str, file: int) -> bool:
        """Whether the new name could be made; not if it exists, or where files cannot have two names."""
        try:
            link_file(temporary, name, file, directory)
        except FileExistsError:
            return False
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            return False
        return True

    def remove_empty(self, prefix: str) -> None:
        """Remove a directory if it is empty, and then those above it; writers that need one make it again.

        One that somebody writes into stays, so that he can be waited for.
        """
        while prefix:
            prefix, _, name = prefix.rpartition("/")
            try:
                with self.directory(prefix) as directory:
                    if not remove_unused(directory, name):
                        return
                    if self._durable:
                        os.fsync(directory)
            except OSError:
                return

    def lost(self, key: str) -> NoReturn:
        raise ConditionFailedError(f"key {key!r} of {self} changed since it was read; nothing was written")

    def fail(self, what: str, key: str, error: OSError) -> NoReturn:
        if isinstance(error, StoreError):
            raise error
        if error.errno in (errno.ENAMETOOLONG, errno.EILSEQ):
            raise InvalidKeyError(f"invalid key {key!r}: {self} cannot have files of that name") from error
        reason = error.strerror
        if error.errno == errno.ENOTDIR:
            reason = "a part of it is a key itself (a file), so nothing can lie below it"
        failure = StoreError(f"cannot {what} key {key!r} of {self}: {reason}")
        for note in getattr(error, "__notes__", ()):
            failure.add_note(note)
        failure.errno = error.errno
        failure.filename = self._base.path_of(key)
        raise failure from error


def _open(path: str, key: str) -> tuple[int, bool]:
    """Open the file of a key, and say whether it surely lies in the base: only links lead out, and of those none is."""
    if NO_LINK and "/" not in key:
        try:
            return open_descriptor(path, _READ | NO_LINK), True
        except OSError as error:
            if error.errno not in (errno.ELOOP, errno.EMLINK):  # as systems say that it is a link
                raise
    return open_descriptor(path, _READ), False


def prefix_of_keys() -> IsADirectoryError:
    return IsADirectoryError(errno.EISDIR, "it is a prefix of other keys (a directory)")


__all__ = ["NO_LINK", "LocalFiles", "last_change", "prefix_of_keys"]
