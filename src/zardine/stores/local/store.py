"""Values as files below a base directory ("File system store", version 1.0)."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import sys
import threading
import time
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Final, NoReturn, TypeVar

from zardine.buffers import BytesLike
from zardine.contexts import sure_context
from zardine.errors import ConditionFailedError, InvalidKeyError, StoreError, UnsupportedError
from zardine.kernel import KERNEL
from zardine.public_names import public
from zardine.settings import is_on
from zardine.stores.attempts import RACES
from zardine.stores.base import (
    NEAR,
    WHOLE,
    ByteRange,
    Condition,
    FileForm,
    NamedFiles,
    NewValue,
    OpenFile,
    ReadCost,
    Reading,
    Store,
    Version,
    check_prefix,
    flat_bytes,
    resolve_range,
)
from zardine.stores.file_calls import (
    close_file,
    flush_file,
    link_file,
    move_directory,
    open_descriptor,
    read_part,
    rename_file,
)
from zardine.stores.late_closing import made_room
from zardine.stores.local import file_tree
from zardine.stores.local.base_directory import BaseDirectory, check_file_key
from zardine.stores.local.beside import RecordFile, edit_record_name, forget_edit, open_new_files, temporary_name
from zardine.stores.local.directory_sync import forget_directories, sync_names
from zardine.stores.local.file_times import is_settled
from zardine.stores.local.new_file import NEW, NewFile
from zardine.stores.locks import (
    MOUNT,
    DirectoryWriter,
    FileLock,
    HeldLock,
    NoDirectoryWriter,
    devices_with_writers,
    has_locks,
    is_locked,
    remove_unused,
    wait_for_writers,
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
    let_go_below,
    may_keep,
    stamp,
    version_from,
    version_of,
)
from zardine.stores.url_text import is_file_uri, path_of_uri, uri_of_path

if TYPE_CHECKING:
    from pathlib import Path

    from zardine._kernel import KnownFile, NewFiles

_Found = TypeVar("_Found")

_READ: Final = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0)  # a FIFO must not hang us
_NO_LINK: Final = getattr(os, "O_NOFOLLOW", 0)
_EDIT: Final = os.O_RDWR | getattr(os, "O_CLOEXEC", 0) | _NO_LINK
_MOST: Final = 0x7FFFF000  # bytes that Linux moves in one call
_LONGEST_NAME: Final = 255
"""Bytes of a file name; a file whose record would need a longer one is not edited."""
_SHORT_NAME: Final = 32
"""Characters of a name that leave enough room in any case."""
_NO_LINKS: Final = {errno.EPERM, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP, errno.EMLINK, errno.EXDEV}


_NOT_RENAMED: Final = {errno.ENOENT, errno.ENOTDIR, errno.ENOTEMPTY, errno.EEXIST, errno.EXDEV, errno.EINVAL}
"""Why a directory is not renamed: it is missing, something is at the new place, or that is another file system."""
_AT_ONCE: Final = 64
"""Small files that are read before it is their turn."""
_A_MOMENT: Final = 0.1
"""Seconds after which they are read again when it is."""
_STEP_OF_TIMES: Final = 50_000_000
"""Nanoseconds between two times of a file system, at most: it may say the same of what is changed within ..."""
_LONG_STEP_OF_TIMES: Final = 3 * 10**9
"""... and of one whose times are whole seconds."""
_last_change: list[object] = [object()]
"""Another one after each time that this process began to change files of a store."""

_warned: Final[set[int]] = set()
"""Devices without locks that this process has warned of."""

_held: dict[tuple[int, str, str], tuple[int, FileLock]] = {}
"""For threads that are within :meth:`LocalStore.lock`, the base and the key: the open directory, and the lock."""

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_held.clear)

_KNOWS_EFFECTIVE_IDS: Final = os.access in os.supports_effective_ids

_OPENS_BELOW: Final = any(function.__name__ == "open" for function in os.supports_dir_fd)
"""Whether files can be opened below an open directory; by name, since programs may put another ``os.open`` there."""


@public("zardine.storage")
class LocalStore(Store):
    """Keys as relative paths of files below ``root``, which need not exist yet.

    ``root`` is a path or a ``file:`` URI; ``~`` is not expanded. What is promised beyond :class:`Store`:

    - No key leads out of ``root``, be it through symbolic links (:class:`InvalidKeyError`). Links that stay inside are
      followed when reading; writing or erasing a key that is a link replaces or removes the link.
    - A value is written to a temporary file beside it and then put in place. A writer that fails or dies leaves the old
      value; what a killed one leaves is never a key, and :meth:`remove_leftovers` removes it.
    - Conditional writes hold between threads and processes of one machine; between machines that share a network
      file system only as far as its locks do. Where it has none, they hold between threads: changing a part
      of a shard or chunk is an error unless the setting ``allow_lost_updates`` allows it, and changing a metadata
      document warns. Programs that write by other means do not take part.
    - With ``durable``, a write has reached the disk when it returns: the file and its directory are synced, and once in
      a process the directories above, whoever made them.

    Directories that :meth:`erase` leaves empty are removed; a directory that is empty is a prefix without keys.
    """

    gives_files = has_cheap_looks = edits_files = True

    def __init__(self, root: str | os.PathLike[str], *, read_only: bool = False, durable: bool = False) -> None:
        super().__init__(read_only=read_only)
        if not _OPENS_BELOW:
            raise UnsupportedError(f"LocalStore does not work on {sys.platform} yet")
        path = os.fspath(root)
        if isinstance(path, bytes):
            path = os.fsdecode(path)
        if isinstance(root, str) and is_file_uri(root):
            path = path_of_uri(root)
        check_path(path)
        path = os.path.join(os.getcwd(), path) if not os.path.isabs(path) else path
        if ".." not in path.split(os.sep):  # dropping ".." would change what a link before it means
            path = os.path.normpath(path)
        if path.startswith("//"):
            path = path[1:]
        self._base = BaseDirectory(path)
        self._root: Path | None = None
        self._durable = durable
        self._form: tuple[str, str, FileForm] | None = None  # the last one: whose, and what it is
        self._has_locks: bool | None = None  # of its file system; None: not known yet

    @property
    def root(self) -> Path:
        """The base directory, absolute."""
        if self._root is None:
            from pathlib import Path

            self._root = Path(self._base.path)
        return self._root

    @property
    def durable(self) -> bool:
        """Whether a write has reached the disk when it returns."""
        return self._durable

    # readable

    def read(self, key: str, ranges: Sequence[ByteRange] = (WHOLE,)) -> Reading | None:
        file = self.open_file(key)
        return None if file is None else self._read_file(file, key, ranges)

    def read_up_to(self, key: str, most: int) -> Reading | None:
        if type(self).read is not LocalStore.read:  # a subclass wants to see what is read
            return super().read_up_to(key, most)
        found = self._read_at_once(key, most, ())
        if found is not None:
            return found[0]
        file = self.open_file(key)
        if file is None:
            return None
        if file.size <= most:
            return self._read_file(file, key, (WHOLE,))
        file.close()
        return Reading((), file.version, file.size)

    def read_and_look(self, key: str, most: int, *others: str) -> tuple[Reading | None, bool]:
        kind = type(self)
        own = (kind.read, kind.read_up_to, kind.seems_missing)
        found = None
        if own == (LocalStore.read, LocalStore.read_up_to, LocalStore.seems_missing):
            found = self._read_at_once(key, most, others)
        return super().read_and_look(key, most, *others) if found is None else found

    def read_small(self, keys: Iterable[str], most: int) -> Iterator[BytesLike | None]:
        kind = type(self)
        if KERNEL is None or (kind.read, kind.read_up_to) != (LocalStore.read, LocalStore.read_up_to):
            yield from super().read_small(keys, most)
            return
        rest, at_once = list(keys), 1
        while rest:
            some = rest[:at_once]
            last_change = _last_change[0]
            values = self._read_named(some, most)
            when = time.monotonic()
            used = 0
            for value in values:
                yield value
                used += 1
                if _last_change[0] is not last_change or time.monotonic() - when > _A_MOMENT:
                    break
            at_once = min(at_once * 2, _AT_ONCE) if used == len(some) else 1
            del rest[:used]

    def _read_named(self, keys: Sequence[str], most: int) -> Sequence[bytes | None]:
        try:
            named = self.named_files(keys)
        except InvalidKeyError:  # which is raised when its turn comes
            named = None
        if KERNEL is None or named is None:
            return [None] * len(keys)
        found: list[bytes | None] = KERNEL.read_named_files(named.below, named.paths, most)
        return found

    def _read_at_once(self, key: str, most: int, others: Sequence[str]) -> tuple[Reading | None, bool] | None:
        """As :meth:`read_and_look`, by one call of the kernel; ``None`` where that leaves it to others."""
        if KERNEL is None or type(self).open_file is not LocalStore.open_file:
            return None
        base = self._base
        check_file_key(key)
        below = None if _NO_LINK and "/" not in key else base.below()
        if below is None and "/" in key:
            return None
        beside = [base.path_of(check_file_key(other)) for other in others]
        try:
            found = KERNEL.read_file(base.path_of(key), None if below is None else os.fsencode(below), most, beside)
        except OSError:  # which others put into words
            return None
        if found is None:
            return None, False
        content, inode, size, modified, changed, is_alone = found
        parts = () if content is None else (content,)
        return Reading(parts, version_from(inode, size, modified, changed), size), is_alone

    def _read_file(self, file: OpenFile, key: str, ranges: Sequence[ByteRange]) -> Reading:
        """Ranges of a file, which is closed then."""
        try:
            parts = []
            for byte_range in ranges:
                start, stop = resolve_range(byte_range, file.size)
                parts.append(self._read_part(file.fd, key, start, stop - start) if stop > start else b"")
            return Reading(tuple(parts), file.version, file.size)
        except OSError as error:
            self._fail("read", key, error)
        finally:
            file.close()

    @property
    def cost(self) -> ReadCost:
        return NEAR

    def open_file(self, key: str) -> OpenFile | None:
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
            self._fail("read", key, error)
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
            self._fail("read", key, error)
        file.close()
        return None

    def kept_files(self, keys: Sequence[str], *, sparing: bool = False, look: bool = True) -> Sequence[KeptFile] | None:
        if type(self).open_file is not LocalStore.open_file:  # a subclass wants to see what is opened
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
                opened = self.open_file(key)
                if opened is None:
                    return None
                try:
                    file = KeptFile(opened)
                except OSError as error:
                    self._fail("read", key, error)
                kept_files.put((base, key), file, 1)
            files.append(file)
        return files

    def known_file(self, key: str, version: Version) -> KnownFile | None:
        if type(self).is_unchanged is not LocalStore.is_unchanged:
            return None
        path = f"{self._base.path}/{key}"
        try:
            status = os.stat(path)
        except OSError:
            return None
        return known_file(path, status) if version_of(status) == version else None

    def named_files(self, keys: Sequence[str]) -> NamedFiles | None:
        if type(self).open_file is not LocalStore.open_file:
            return None
        below = self._base.below()
        if below is None:
            return None
        base = self._base.path
        paths = [f"{base}/{check_file_key(key)}" for key in keys]
        encoded = os.fsencode("\0".join(paths)).split(b"\0") if paths else []  # all at once; no path has a NUL
        return NamedFiles(os.fsencode(below), encoded)

    def file_form(self, form: str) -> FileForm | None:
        if type(self).open_file is not LocalStore.open_file:
            return None
        below = self._base.below()
        known = self._form
        if known is None or known[:2] != (below, form):
            if below is None:
                return None
            path = f"{self._base.path.replace('%', '%%')}/{check_file_key(form)}"
            known = self._form = below, form, FileForm(os.fsencode(below), os.fsencode(path))
        return known[2]

    def seems_missing(self, *keys: str) -> bool:
        if type(self).open_file is not LocalStore.open_file:
            return False
        paths = [self._base.path_of(check_file_key(key)) for key in keys]
        if KERNEL is not None:
            return bool(KERNEL.none_is_there(paths))
        return not any(os.access(path, os.F_OK, effective_ids=_KNOWS_EFFECTIVE_IDS) for path in paths)

    def is_unchanged(self, key: str, version: Version | None) -> bool:
        if KERNEL is not None:
            return version is not None and bool(KERNEL.has_version(f"{self._base.path}/{key}", version))
        try:
            return version_of(os.stat(f"{self._base.path}/{key}")) == version
        except OSError:
            return False

    def version_of_names(self, prefix: str) -> Version | None:
        """As in :class:`Store`; ``""`` of a directory that was changed just now, and may be changed again unseen."""
        try:
            status = os.stat(f"{self._base.path}/{prefix}")
        except OSError:
            return "none"
        whole = status.st_mtime_ns % 10**9 == 0  # some file systems know no less
        return version_of(status) if is_settled(status, _LONG_STEP_OF_TIMES if whole else _STEP_OF_TIMES) else ""

    # writeable

    def _changes(self, key: str) -> None:
        """Forget what was read of a key, which is about to be changed."""
        _last_change[0] = object()
        kept_files.drop((self._base.path, key))

    def set(self, key: str, value: BytesLike, *, condition: Condition | None = None) -> Version | None:
        check_file_key(key)
        self._check_writable()
        self._changes(key)
        data = flat_bytes(value)
        held = _held.get((threading.get_ident(), self._base.path, key))
        if held is None and condition is not None and not self._fits(key, condition):
            self._lost(key)
        for _ in range(RACES):
            try:
                return self._set(key, data, condition, held)
            except FileNotFoundError:  # the directory was erased while we wrote into it: again
                held = None
            except StoreError as error:
                if not made_room(error):
                    raise
        raise StoreError(f"cannot write key {key!r} of {self}: its directory goes away as often as it is made")

    def new_value(self, key: str) -> AbstractContextManager[NewValue]:
        check_file_key(key)
        self._check_writable()
        if type(self).set is not LocalStore.set:  # a subclass wants to see what is set
            return super().new_value(key)
        return self._new_value(key)

    @sure_context
    def _new_value(self, key: str) -> Generator[NewFile, None, None]:
        prefix, _, name = key.rpartition("/")

        def put(new: NewFile, condition: Condition | None) -> Version:
            self._changes(key)
            directory, lock = _held.get((threading.get_ident(), self._base.path, key), (new.directory, None))
            if not os.path.samestat(os.fstat(directory), os.fstat(new.directory)):  # erased meanwhile, and made anew
                self._lost(key)
            try:
                if lock is not None:
                    lock.status = lock.look()
                status = self._name(new.directory, new.temporary, new.fd, name, key, condition, lock)
            except FileNotFoundError:  # the directory is gone, and the file with it
                self._lost(key)
            self._sync_name(new.directory)
            return version_of(status)

        new = NewFile(
            lambda: self._base.open(prefix, create=True),
            self._finish,
            put,
            lambda error: self._fail("write", key, error),
        )
        try:
            yield new
        finally:
            new.close()
            if not new.is_put:
                self._remove_empty(prefix)

    def _fits(self, key: str, condition: Condition) -> bool:
        """Whether a condition holds now; before what is surely looked at last, so that nothing is written in vain."""
        wanted = condition.version
        return (wanted is not None and self.is_unchanged(key, wanted)) or self.version(key) == wanted

    def erase(self, key: str) -> None:
        self._erase(key, None)

    def erase_version(self, key: str, version: Version | None) -> None:
        self._erase(key, None if version is None else Condition(version))

    def _erase(self, key: str, condition: Condition | None) -> None:
        check_file_key(key)
        self._check_writable("erase from")
        self._changes(key)
        prefix, _, name = key.rpartition("/")
        try:
            with self._directory(prefix) as directory, FileLock(directory, name) as lock:
                if lock.status is not None and stat.S_ISDIR(lock.status.st_mode):
                    if next(self.list_prefix(f"{key}/"), None) is None:
                        return
                    raise _prefix_of_keys()
                self._check_last(lock, key, condition)
                try:
                    os.unlink(name, dir_fd=directory)
                except FileNotFoundError:
                    if lock.status is None:
                        raise  # else it is gone now: see file_calls
                forget_edit(directory, name, durable=self._durable)
                if self._durable:
                    os.fsync(directory)
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as error:
            self._fail("erase", key, error)
        self._remove_empty(prefix)

    def erase_prefix(self, prefix: str) -> None:
        """Remove every key that starts with ``prefix``; for other than the whole store, all in one instant.

        Links to directories are removed, not followed.
        """
        check_prefix(prefix)
        self._check_writable("erase from")
        name = prefix[:-1]
        if name:
            check_file_key(name)
        _last_change[0] = object()
        let_go_below(self._base.path_of(name))
        try:
            if not name:
                with self._directory("") as directory:
                    file_tree.clear(directory)
                    if self._durable:
                        os.fsync(directory)
                return
            above, _, last = name.rpartition("/")
            with self._directory(above) as directory:
                file_tree.remove(directory, last)
                if self._durable:
                    os.fsync(directory)
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as error:
            self._fail("erase", prefix, error)
        self._remove_empty(above)

    def move_prefix(self, source: str, dest: str) -> bool:
        """As in :class:`Store`, by renaming a directory. Links in it stay the links that they are."""
        check_prefix(source)
        check_prefix(dest)
        self._check_writable()
        kind = type(self)
        if not (source and dest) or (kind.set, kind.erase_prefix) != (LocalStore.set, LocalStore.erase_prefix):
            return False  # a subclass wants to see what is set and erased
        old, new = check_file_key(source[:-1]), check_file_key(dest[:-1])
        (old_above, _, old_name), (new_above, _, new_name) = old.rpartition("/"), new.rpartition("/")
        _last_change[0] = object()
        let_go_below(self._base.path_of(old))
        try:
            with self._directory(old_above) as here, self._directory(new_above, create=True) as there:
                if not stat.S_ISDIR(os.stat(old_name, dir_fd=here, follow_symlinks=False).st_mode):
                    return False  # a link, below which other keys may lie
                move_directory(old_name, here, new_name, there)
                forget_directories()
                if self._durable:
                    sync_names(there)
                    os.fsync(here)
        except OSError as error:
            if error.errno in _NOT_RENAMED:
                return False
            self._fail("move", source, error)
        self._remove_empty(old_above)
        return True

    # listable

    def list_dir(self, prefix: str) -> tuple[list[str], list[str]]:
        """As in :class:`Store`; links that lead out of the base, nowhere, or back up the path are left out."""
        return self._in_directory(prefix, file_tree.list_directory) or ([], [])

    def list_prefix(self, prefix: str) -> Iterator[str]:
        """As in :class:`Store`; of a directory with millions of files only some names are in memory at a time."""
        within = [self._names_in(prefix)]
        while within:
            for name in within[-1]:
                if name[-1] == "/":
                    within.append(self._names_in(name))
                    break
                yield name
            else:
                within.pop()

    def _names_in(self, prefix: str) -> Iterator[str]:
        """Yield the keys and prefixes directly in a directory."""
        after, is_all = "", False
        while not is_all:
            some, is_all = self._in_directory(prefix, file_tree.list_some, after) or ([], True)
            yield from some
            after = some[-1] if some else after

    def _in_directory(self, prefix: str, look: Callable[..., _Found], *more: str) -> _Found | None:
        """Return what ``look`` finds in a directory; ``None`` where there is none."""
        check_prefix(prefix)
        name = prefix[:-1]
        if name:
            check_file_key(name)
        try:
            with self._directory(name) as directory:
                return look(self._base, directory, prefix, *more)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            self._fail("list", prefix, error)

    def list_versions(self, prefix: str) -> Iterator[tuple[str, Version | None]]:
        for key in self.list_prefix(prefix):
            with contextlib.suppress(OSError):  # erased just now
                yield key, version_of(os.stat(self._base.path_of(key)))

    def left_out(self, prefix: str = "") -> Iterator[tuple[str, str]]:
        """What listings leave out below ``prefix``: its name, and in words what it is; empty directories, too."""
        return file_tree.left_out(self._base, check_prefix(prefix))

    # the rest

    def lock(self, key: str) -> AbstractContextManager[object]:
        """Excludes threads and processes of this machine that lock, conditionally write or erase the same file.

        While the key is missing only threads are excluded; processes are from the first :meth:`set` in it on.
        """
        check_file_key(key)
        self._check_writable("lock a key of")
        return self._locked(key)

    def _held_lock(self, key: str) -> HeldLock:
        return _held[threading.get_ident(), self._base.path, key][1].held()

    @property
    def lock_is_exclusive(self) -> bool:
        """Whether the file system has locks, or the user says that no other process writes."""
        if self._has_locks is None and not self._read_only:
            self._has_locks = has_locks(self._base.path)
        return self._has_locks is not False or is_on("allow_lost_updates")

    def is_locked(self, key: str) -> bool:
        check_file_key(key)
        return is_locked(self._base.path_of(key))

    def writer(self, prefix: str) -> AbstractContextManager[bool]:
        """Holds between threads and processes of one machine, by a shared lock of the directory."""
        return DirectoryWriter(self._base.path_of(check_prefix(prefix)[:-1]))

    def wait_for_writers(self, prefix: str) -> bool:
        return wait_for_writers(self._base.path_of(check_prefix(prefix)[:-1]))

    def without_writers(self, prefix: str) -> AbstractContextManager[bool]:
        if type(self).wait_for_writers is not LocalStore.wait_for_writers:  # a subclass knows of other writers
            return Store.without_writers(self, prefix)
        return NoDirectoryWriter(self._base.path_of(check_prefix(prefix)[:-1]))

    def new_files(
        self,
        keys: Sequence[str],
        *,
        conditions: Sequence[Condition | None] = (),
        changing: bool = False,
        document: KnownFile | None = None,
    ) -> AbstractContextManager[NewFiles | None]:
        self._check_writable()
        files = None if changing and self._sees_changes() else self._new_files(keys, conditions, document)
        return nullcontext() if files is None else files

    def _new_files(
        self, keys: Sequence[str], conditions: Sequence[Condition | None], document: KnownFile | None
    ) -> NewFiles | None:
        """Where the files of ``keys`` go; ``None`` where to write one is more than that, or fails."""
        if not self._is_plain():
            return None
        for key in keys:
            self._changes(key)
        watched = None if document is None else (document, devices_with_writers())
        named = self._base.named()
        if named is not None:
            return open_new_files(named, keys, conditions, watched)
        try:
            base = self._base.open("")
        except (OSError, InvalidKeyError):  # which `set` puts into words, as all else that is wrong
            return None
        try:
            return open_new_files(base, keys, conditions, watched)
        finally:
            os.close(base)

    def _place_to_change(self, keys: Iterable[str]) -> tuple[bytes, bytes] | None:
        """Return where the files of ``keys`` are that the kernel is about to change: see its ``open_new_files``.

        ``None`` where to change one is more than that.
        """
        if not self._is_plain() or self._sees_changes():
            return None
        for key in keys:
            self._changes(key)
        return self._base.named()

    def _is_plain(self) -> bool:
        """Whether files are written by the kernel: nobody wants to see it, nor to wait for the disk."""
        return KERNEL is not None and not self._durable and type(self).set is LocalStore.set

    def _sees_changes(self) -> bool:
        """Whether a subclass wants to see what is read or locked, or who writes."""
        kind = type(self)
        return kind is not LocalStore and not (
            kind.read is LocalStore.read
            and kind.open_file is LocalStore.open_file
            and kind.edit_file is LocalStore.edit_file
            and kind.lock is LocalStore.lock
            and kind.writer is LocalStore.writer
        )

    @sure_context
    def edit_file(self, key: str) -> Generator[EditableFile | None, None, None]:
        check_file_key(key)
        self._check_writable()
        self._changes(key)
        prefix, _, name = key.rpartition("/")
        try:
            directory = self._base.open(prefix)
        except (FileNotFoundError, NotADirectoryError):
            yield None
            return
        except OSError as error:
            self._fail("edit", key, error)
        try:
            holds = False
            with FileLock(directory, name, editing=True) as lock:
                may_edit = not lock.refusal or is_on("allow_lost_updates")  # else `set` refuses, or replaces it
                file = self._open_to_edit(directory, name, key, lock) if may_edit else None
                holds = True
                try:
                    yield file
                except OSError as error:
                    self._fail("edit", key, error)
                finally:
                    if file is not None:
                        file.close()
        except OSError as error:
            if holds:
                raise
            self._fail("edit", key, error)
        finally:
            close_file(directory)

    def _open_to_edit(self, directory: int, name: str, key: str, lock: FileLock) -> EditableFile | None:
        status, fd = lock.status, lock.file
        if status is None or not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
            return None
        if len(name) > _SHORT_NAME and len(os.fsencode(edit_record_name(name))) > _LONGEST_NAME:
            return None

        def settle() -> Version:
            try:
                now = os.stat(name, dir_fd=directory)
            except FileNotFoundError:
                self._lost(key)
            except OSError:
                return ""  # no version: the edit is done, and the next reader looks again
            if not os.path.samestat(now, status):
                self._lost(key)
            return version_of(now)

        def put(pieces: Sequence[BytesLike | FilePart], version: Version) -> Version:
            try:
                return self._put(directory, name, key, pieces, Condition(version), lock)
            except FileNotFoundError:  # the directory is gone, and the file with it
                self._lost(key)

        record = RecordFile(directory, name, durable=self._durable)
        version, path, durable = version_of(status), self._base.path_of(key), self._durable
        lent = fd is not None
        file = EditableFile(
            -1 if fd is None else fd, status.st_size, version, path, settle, put, record, durable=durable, lent=lent
        )
        if lent:
            return file
        try:
            file.fd = open_descriptor(name, _EDIT, dir_fd=directory)
        except FileNotFoundError:
            self._lost(key)  # removed just now
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.EACCES, errno.EPERM, errno.ETXTBSY):
                return None  # a link, or a file that may be replaced but not changed
            self._fail("edit", key, error)
        if not os.path.samestat(os.fstat(file.fd), status):  # a program that takes no locks has replaced it just now
            file.close()
            self._lost(key)
        return file

    @property
    def unique_name(self) -> str:
        return str(self)

    def beneath(self, path: str) -> tuple[Store, str]:
        place = os.path.realpath(os.path.join(self.root, path))
        return LocalStore(os.path.abspath(os.sep)), place.replace(os.sep, "/").strip("/")

    def leftovers(self, older_than: float = 3600.0) -> Iterator[str]:
        """Paths of what writers that died left behind: unfinished files unchanged for ``older_than`` seconds.

        Also the records of edits: see :mod:`zardine.stores.local.beside`.
        """
        return file_tree.leftovers(self._base.path, older_than)

    def remove_leftovers(self, older_than: float = 3600.0) -> int:
        """Remove the :meth:`leftovers`; gives their number. An edit that was cut off is undone, or finished, before."""
        self._check_writable("clean up")
        return file_tree.remove_leftovers(self._base.path, older_than, self._finish_edit)

    def _finish_edit(self, directory: int, name: str) -> bool:
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

    def __str__(self) -> str:
        return uri_of_path(self._base.path)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._parts() == other._parts()

    def __hash__(self) -> int:
        return hash(self._parts())

    def _parts(self) -> tuple[str, bool, bool]:
        return self._base.path, self._read_only, self._durable

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), *self._parts())

    @contextmanager
    def _directory(self, prefix: str, *, create: bool = False) -> Generator[int, None, None]:
        directory = self._base.open(prefix, create=create)
        try:
            yield directory
        finally:
            close_file(directory)

    @sure_context
    def _locked(self, key: str) -> Generator[None, None, None]:
        prefix, _, name = key.rpartition("/")
        made = made_base = False
        try:
            try:
                directory = self._base.open(prefix)
            except FileNotFoundError:
                made, made_base = True, not os.path.isdir(self._base.path)
                directory = self._base.open(prefix, create=True)
        except OSError as error:
            self._fail("lock", key, error)
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
            self._fail("lock", key, error)
        finally:
            close_file(directory)
            if made:
                self._remove_empty(prefix)  # if nothing was put into it
            if made_base:
                with contextlib.suppress(OSError):
                    os.rmdir(self._base.path)

    def _read_part(self, file: int, key: str, start: int, length: int) -> BytesLike:
        part = read_part(file, start, length)
        if len(part) < length:
            raise StoreError(f"key {key!r} of {self} was cut short by another program while it was read")
        return part

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
            self._remove_empty(prefix)  # if we made it
            self._fail("write", key, error)

    def _put(
        self,
        directory: int,
        name: str,
        key: str,
        pieces: Sequence[BytesLike | FilePart],
        condition: Condition | None,
        held: FileLock | None = None,
    ) -> Version:
        """Write a file of ``pieces`` and give it its name, under the lock that is ``held`` or a new one."""
        temporary = temporary_name()
        file = open_descriptor(temporary, NEW, 0o666, dir_fd=directory)
        try:
            self._fill(file, pieces)
            status = self._name(directory, temporary, file, name, key, condition, held)
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

    def _name(
        self,
        directory: int,
        temporary: str,
        file: int,
        name: str,
        key: str,
        condition: Condition | None,
        held: FileLock | None,
    ) -> os.stat_result:
        """Give the finished temporary file its name, under the lock that is ``held`` or a new one."""
        status = None
        while status is None:
            if held is not None:
                status = self._place(directory, temporary, file, name, key, condition, held, stays=True)
                if status is None:
                    held.status = held.look()
                continue
            with FileLock(directory, name) as lock:
                status = self._place(directory, temporary, file, name, key, condition, lock)
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

    def _place(
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
        """Give the finished temporary file its name; ``None`` if something was in the way that is gone now: again."""
        old = lock.status
        if old is not None and stat.S_ISDIR(old.st_mode):
            if file_tree.remove_empty(directory, name):  # of a prefix that has no keys
                return None
            raise _prefix_of_keys()
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
        self._check_last(lock, key, condition)
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

    def _check_last(self, lock: FileLock, key: str, condition: Condition | None) -> None:
        """Look whether a condition holds: the last call before the one that gives or takes the name."""
        if condition is not None:
            now = lock.look()
            if (None if now is None else version_of(now)) != condition.version:
                self._lost(key)

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

    def _remove_empty(self, prefix: str) -> None:
        """Remove a directory if it is empty, and then those above it; writers that need one make it again.

        One that somebody writes into stays, so that he can be waited for.
        """
        while prefix:
            prefix, _, name = prefix.rpartition("/")
            try:
                with self._directory(prefix) as directory:
                    if not remove_unused(directory, name):
                        return
                    if self._durable:
                        os.fsync(directory)
            except OSError:
                return

    def _lost(self, key: str) -> NoReturn:
        raise ConditionFailedError(f"key {key!r} of {self} changed since it was read; nothing was written")

    def _fail(self, what: str, key: str, error: OSError) -> NoReturn:
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


def _prefix_of_keys() -> IsADirectoryError:
    return IsADirectoryError(errno.EISDIR, "it is a prefix of other keys (a directory)")


def check_path(path: str) -> None:
    """Raise :class:`~zardine.errors.StoreError` if nothing can have that path."""
    try:
        if path and "\0" not in path and os.fsencode(path):
            return
    except UnicodeEncodeError:
        pass
    meant = "" if path else ": '.' is the current one, and None stands for a new store in memory"
    raise StoreError(f"{path!r} is not the path of a directory{meant}")


def _open(path: str, key: str) -> tuple[int, bool]:
    """Open the file of a key, and say whether it surely lies in the base: only links lead out, and of those none is."""
    if _NO_LINK and "/" not in key:
        try:
            return open_descriptor(path, _READ | _NO_LINK), True
        except OSError as error:
            if error.errno not in (errno.ELOOP, errno.EMLINK):  # as systems say that it is a link
                raise
    return open_descriptor(path, _READ), False


def _rebuild(kind: type[LocalStore], path: str, read_only: bool, durable: bool) -> LocalStore:
    return kind(path, read_only=read_only, durable=durable)


__all__ = ["LocalStore", "check_path"]
