"""Values as files below a base directory ("File system store", version 1.0)."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, ClassVar, Final, Self, TypeVar

from zardine.buffers import BytesLike
from zardine.errors import InvalidKeyError, StoreError, UnsupportedError
from zardine.kernel import KERNEL
from zardine.public_names import public
from zardine.settings import is_on
from zardine.stores.base import (
    NEAR,
    WHOLE,
    ByteRange,
    Condition,
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
    move_directory,
    read_part,
)
from zardine.stores.local import file_tree
from zardine.stores.local.base_directory import BaseDirectory, check_file_key
from zardine.stores.local.beside import forget_edit
from zardine.stores.local.directory_sync import forget_directories, sync_names
from zardine.stores.local.file_times import is_settled
from zardine.stores.local.files import NO_LINK, LocalFiles, last_change, prefix_of_keys
from zardine.stores.locks import (
    DirectoryWriter,
    FileLock,
    NoDirectoryWriter,
    has_locks,
    is_locked,
    wait_for_writers,
)
from zardine.stores.open_files import (
    let_go_below,
    version_from,
    version_of,
)
from zardine.stores.url_text import is_file_uri, path_of_uri, uri_of_path

if TYPE_CHECKING:
    from pathlib import Path


_Found = TypeVar("_Found")

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

    has_cheap_looks = True

    files_class: ClassVar[type[LocalFiles]] = LocalFiles
    """What :attr:`files` is, for subclasses that want to see what is opened or edited."""

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
        self._files = self._make_files()
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

    @property
    def files(self) -> LocalFiles:
        return self._files

    def _make_files(self) -> LocalFiles:
        return self.files_class(self._base, _overridden(type(self)), read_only=self._read_only, durable=self._durable)

    def with_read_only(self, read_only: bool = False) -> Self:
        twin = super().with_read_only(read_only)
        twin._files = twin._make_files()
        return twin

    # readable

    def read(self, key: str, ranges: Sequence[ByteRange] = (WHOLE,)) -> Reading | None:
        file = self._files.open(key)
        return None if file is None else self._read_file(file, key, ranges)

    def read_up_to(self, key: str, most: int) -> Reading | None:
        if type(self).read is not LocalStore.read:  # a subclass wants to see what is read
            return super().read_up_to(key, most)
        found = self._read_at_once(key, most, ())
        if found is not None:
            return found[0]
        file = self._files.open(key)
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
            before = last_change[0]
            values = self._read_named(some, most)
            when = time.monotonic()
            used = 0
            for value in values:
                yield value
                used += 1
                if last_change[0] is not before or time.monotonic() - when > _A_MOMENT:
                    break
            at_once = min(at_once * 2, _AT_ONCE) if used == len(some) else 1
            del rest[:used]

    def _read_named(self, keys: Sequence[str], most: int) -> Sequence[bytes | None]:
        try:
            named = self._files.paths(keys)
        except InvalidKeyError:  # which is raised when its turn comes
            named = None
        if KERNEL is None or named is None:
            return [None] * len(keys)
        found: list[bytes | None] = KERNEL.read_named_files(named.below, named.paths, most)
        return found

    def _read_at_once(self, key: str, most: int, others: Sequence[str]) -> tuple[Reading | None, bool] | None:
        """As :meth:`read_and_look`, by one call of the kernel; ``None`` where that leaves it to others."""
        if KERNEL is None or type(self._files).open is not LocalFiles.open:
            return None
        base = self._base
        check_file_key(key)
        below = None if NO_LINK and "/" not in key else base.below()
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
            self._files.fail("read", key, error)
        finally:
            file.close()

    @property
    def cost(self) -> ReadCost:
        return NEAR

    def seems_missing(self, *keys: str) -> bool:
        if type(self._files).open is not LocalFiles.open:
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

    def set(self, key: str, value: BytesLike, *, condition: Condition | None = None) -> Version | None:
        check_file_key(key)
        self._check_writable()
        self._files.note_change(key)
        data = flat_bytes(value)
        if condition is not None and not self._files.is_locked_here(key) and not self._fits(key, condition):
            self._files.lost(key)
        return self._files.set(key, data, condition)

    def new_value(self, key: str) -> AbstractContextManager[NewValue]:
        check_file_key(key)
        self._check_writable()
        if type(self).set is not LocalStore.set:  # a subclass wants to see what is set
            return super().new_value(key)
        return self._files.new_value(key)

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
        self._files.note_change(key)
        prefix, _, name = key.rpartition("/")
        try:
            with self._files.directory(prefix) as directory, FileLock(directory, name) as lock:
                if lock.status is not None and stat.S_ISDIR(lock.status.st_mode):
                    if next(self.list_prefix(f"{key}/"), None) is None:
                        return
                    raise prefix_of_keys()
                self._files.check_last(lock, key, condition)
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
            self._files.fail("erase", key, error)
        self._files.remove_empty(prefix)

    def erase_prefix(self, prefix: str) -> None:
        """Remove every key that starts with ``prefix``; for other than the whole store, all in one instant.

        Links to directories are removed, not followed.
        """
        check_prefix(prefix)
        self._check_writable("erase from")
        name = prefix[:-1]
        if name:
            check_file_key(name)
        last_change[0] = object()
        let_go_below(self._base.path_of(name))
        try:
            if not name:
                with self._files.directory("") as directory:
                    file_tree.clear(directory)
                    if self._durable:
                        os.fsync(directory)
                return
            above, _, last = name.rpartition("/")
            with self._files.directory(above) as directory:
                file_tree.remove(directory, last)
                if self._durable:
                    os.fsync(directory)
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as error:
            self._files.fail("erase", prefix, error)
        self._files.remove_empty(above)

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
        last_change[0] = object()
        let_go_below(self._base.path_of(old))
        try:
            with self._files.directory(old_above) as here, self._files.directory(new_above, create=True) as there:
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
            self._files.fail("move", source, error)
        self._files.remove_empty(old_above)
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
            with self._files.directory(name) as directory:
                return look(self._base, directory, prefix, *more)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            self._files.fail("list", prefix, error)

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
        return self._files.lock(key)

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
        return file_tree.remove_leftovers(self._base.path, older_than, self._files.finish_edit)

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

    def _read_part(self, file: int, key: str, start: int, length: int) -> BytesLike:
        part = read_part(file, start, length)
        if len(part) < length:
            raise StoreError(f"key {key!r} of {self} was cut short by another program while it was read")
        return part


def check_path(path: str) -> None:
    """Raise :class:`~zardine.errors.StoreError` if nothing can have that path."""
    try:
        if path and "\0" not in path and os.fsencode(path):
            return
    except UnicodeEncodeError:
        pass
    meant = "" if path else ": '.' is the current one, and None stands for a new store in memory"
    raise StoreError(f"{path!r} is not the path of a directory{meant}")


def _overridden(kind: type[LocalStore]) -> frozenset[str]:
    """Return which of the methods that work on files can pass by a subclass has replaced."""
    if kind is LocalStore:
        return frozenset()
    names = ("read", "set", "lock", "writer", "is_unchanged")
    return frozenset(name for name in names if getattr(kind, name) is not getattr(LocalStore, name))


def _rebuild(kind: type[LocalStore], path: str, read_only: bool, durable: bool) -> LocalStore:
    return kind(path, read_only=read_only, durable=durable)


__all__ = ["LocalStore", "check_path"]
