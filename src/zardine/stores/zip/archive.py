"""A zip archive in a local file, for all stores of this process that name the same file: what it holds, and writes."""

from __future__ import annotations

import atexit
import contextlib
import os
import stat
import threading
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, NoReturn, TypeAlias
from weakref import WeakSet

from zardine.buffers import BytesLike
from zardine.errors import ConditionFailedError, StoreError, TornShardWarning, UnsupportedError
from zardine.stores.attempts import RACES
from zardine.stores.base import WHOLE, Condition, Version
from zardine.stores.file_calls import rename_file
from zardine.stores.locks import MOUNT, without_locks
from zardine.stores.zip.directory import ZipDirectory
from zardine.stores.zip.file import ArchiveBytes, FileBytes, identity_of
from zardine.stores.zip.lock import HeldError, NoLocksError, new_file, no_writer, remove_leftovers
from zardine.stores.zip.writer import ZipWriter


@dataclass(frozen=True, slots=True)
class ZipState:
    """A file as it was found."""

    identity: tuple[int, ...]
    """Tells whether it is still so. Empty if there was no file."""
    directory: ZipDirectory | None
    """``None`` if there is no file, or if a process writes to it that has never finished anything yet."""
    is_unedited: bool = True
    """Whether the archive is whole, or nobody was writing to it."""

    @property
    def torn(self) -> str:
        """What is wrong with the end of an archive that nobody writes to; empty if nothing is."""
        directory = self.directory
        return "" if directory is None or directory.is_whole or not self.is_unedited else directory.torn


def state_of(path: str, name: str, known: ZipState | None = None, *, locked: bool = False) -> ZipState:
    """The archive at ``path`` now; ``known`` if that is still true. ``locked``: this process has the writer's lock.

    An archive that does not end with a directory is read as it was when one was written last. If nobody writes to it,
    so that this is what a killed writer or a cut has left, a warning says so. :class:`StoreError` if there is no
    directory at all, or a damaged one.
    """
    for left in range(RACES, -1, -1):
        try:
            if known is not None and known.is_unedited and identity_of(os.stat(path)) == known.identity:
                return known
            data = FileBytes(path)
        except FileNotFoundError:
            return ZipState((), None)
        except StoreError:
            raise
        except OSError as error:
            raise StoreError(f"cannot read {name}: {error.strerror}") from error
        if locked and not data.size:
            return ZipState(data.identity, ZipDirectory(data, name, None))  # new
        directory = ZipDirectory.of(data, name)
        if directory is not None and directory.is_whole:
            break
        if locked:
            directory = as_left(directory, data, name)
            break
        with no_writer(data.fd) as is_unedited:
            if not is_unedited:
                return ZipState(data.identity, directory, is_unedited=False)
            if not left or _is_now(path, data):
                directory = as_left(directory, data, name)
                break
    return ZipState(data.identity, directory)


def as_left(directory: ZipDirectory | None, data: ArchiveBytes, name: str) -> ZipDirectory:
    """The directory of an archive to which nobody writes: a warning or an error if it is not whole."""
    if directory is None:
        where = f"its {data.size} bytes"
        if data.look_back < data.size:
            where = f"the last {data.look_back} of {where}"
        found = f"there is no directory of entries in {where}" if data.size else "it is empty"
        raise StoreError(
            f"{name} is not a zip archive, or not a whole one: {found}. If the program that began it was killed before "
            "it finished, or it was cut short when it was copied, nothing in it can be read: put a whole copy in its "
            "place, or remove it"
        )
    if not directory.is_whole:
        warnings.warn(
            f"{directory.torn}. It is read as it was before: what was written since, or lost by the cut, is missing. "
            "The next write to it, compact() or zardine.repair puts it in order",
            TornShardWarning,
            stacklevel=2,
        )
    return directory


def _is_now(path: str, data: FileBytes) -> bool:
    try:
        return identity_of(os.stat(path)) == data.identity
    except OSError:
        return False


def _believed(state: ZipState) -> None:
    """That an archive can be written to: :class:`StoreError` where too many entries have two names."""
    if state.directory is not None:
        state.directory.misnamed()


_ABANDONED = 60.0
"""Seconds after which an unfinished file that nobody has locked is removed."""


def compacted(writer: ZipWriter, directory: ZipDirectory, name: str) -> ZipState:
    """Put an archive in its own place that has the same keys and nothing else; gives what is there then.

    ``writer`` keeps other processes from writing until it is closed. The new file is locked from the first, so that
    nobody writes to it before the old one is let go of. Raises ``OSError``, and :class:`StoreError` for damaged
    entries, those with two names among them; then all is as before.
    """
    for each in directory.misnamed():
        raise StoreError(
            f"{name} is not rewritten: the name of an entry is damaged, so that it would be lost: {each}. Write "
            "what it is of anew, or erase it"
        )
    remove_leftovers(writer.path, _ABANDONED)
    file, temporary = new_file(writer.path)
    new = ZipWriter(writer.path, file)
    try:
        data = FileBytes(temporary)
        packed = ZipDirectory(data, name, None)
        packed.comment = directory.comment
        for key in directory.names():
            packed.add(new.append(key, directory.read(key, directory.entries[key], (WHOLE,)).parts[0]))
        with contextlib.suppress(OSError):
            os.fchmod(file, stat.S_IMODE(os.fstat(writer.file).st_mode))
        new.write_directory(packed)
        if not writer.is_current():
            raise StoreError(f"{name} was removed or replaced by another program while it was rewritten")
        rename_file(temporary, writer.path, file)
        writer.sync_name()
        data.size, data.identity = new.end, new.identity
        return ZipState(data.identity, packed)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    finally:
        new.close()


Replaced: TypeAlias = Literal["nothing", "empty files", "all files"]


class ZipArchive:
    """The entries of the file, and the writing of new ones, which are only ever added at its end.

    Readers need no lock: :meth:`now` gives a value that they read from, whatever others do meanwhile. The directory is
    written by :meth:`flush` and :meth:`close`; until then this process alone sees what was written, and keeps other
    processes from writing.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.lock = threading.RLock()
        self.users = 0
        """How many stores there are; see :class:`ArchiveUse`."""
        self.replaces: Replaced = "nothing"
        """Which files that are no archives count as none, since they are to be replaced."""
        self._state: ZipState | None = None
        self._writer: ZipWriter | None = None

    def now(self) -> ZipDirectory | None:
        """What is in the archive; ``None`` if there is none. It is looked at anew only if it was closed."""
        state = self._state
        return (self._loaded() if state is None else state).directory

    def load(self) -> None:
        """Look at the file, unless it is as it is known, or this process writes to it."""
        self._loaded()

    def names(self) -> list[str]:
        """All keys, sorted."""
        with self.lock:
            directory = self.now()
            return [] if directory is None else directory.names()

    def add(self, key: str, data: BytesLike, condition: Condition | None = None) -> Version:
        """Write an entry at the end; gives its version.

        A ``condition`` is compared with what is in the archive once no other process can write to it.
        """
        with self.lock:
            writer, directory = self._opened_writer()
            if condition is not None:
                try:
                    there = directory.find(key)
                except StoreError:
                    self._stop_writing_if_unchanged()
                    raise
                if (None if there is None else directory.version(there)) != condition.version:
                    self._stop_writing_if_unchanged()
                    raise ConditionFailedError(f"key {key!r} of {self} changed since it was read; nothing was written")
            try:
                info = writer.append(key, data)
            except OSError as error:
                self._stop_writing_if_unchanged()
                if isinstance(error, StoreError):
                    raise
                self._fail(f"write key {key!r} of", error)
            directory.data.size = writer.end
            directory.add(info)
            return directory.version(info)

    def remove(self, wanted: Callable[[ZipDirectory], Sequence[str]]) -> None:
        """Leave entries out of the directory from now on: the keys that ``wanted`` finds in it."""
        with self.lock:
            directory = self._loaded().directory
            if directory is None or not wanted(directory):
                return
            writer, directory = self._opened_writer()
            for key in wanted(directory):
                directory.remove(key)
                writer.changed = True
            self._stop_writing_if_unchanged()

    def discard(self) -> None:
        """Remove a file that is no archive, if it is one of those to be :attr:`replaced <replaces>`."""
        with self.lock:
            if self.replaces != "all files":
                return
            self.replaces = "empty files"
            with contextlib.suppress(StoreError):
                _believed(self._loaded())
                return
            writer = self._locked_writer()
            try:
                _believed(state_of(self.path, str(self), locked=True))
            except StoreError:
                try:
                    os.ftruncate(writer.file, 0)
                except OSError as error:
                    self._fail("replace", error)
            finally:
                writer.close()  # which removes it
            self._state = None

    def flush(self) -> None:
        """Write the directory, so that other programs see all entries, and let other processes write.

        Raises :class:`StoreError`. If the disk was full while the directory was written, it can be tried again. If the
        file system refuses bytes that it took before (the quota of a network file system), or the file is no longer the
        one that was written to, what was written since the last flush is lost.
        """
        with self.lock:
            writer = self._writer
            if writer is not None:
                if writer.changed:
                    self._write_directory(*self._opened_writer())
                self._stop_writing()

    def close(self) -> None:
        """Write what is to be written, and let go of the file once nobody reads from it any more."""
        with self.lock:
            self.flush()
            self._state = None

    def compact(self) -> int:
        """Rewrite the archive without what was replaced or removed; gives the bytes that it became shorter."""
        with self.lock:
            if not self._loaded().identity:
                return 0  # there is no file
            writer, directory = self._opened_writer()
            if writer.changed:
                self._write_directory(writer, directory)
            try:
                self._state = compacted(writer, directory, str(self))
            except StoreError:
                raise
            except OSError as error:
                self._fail("rewrite", error)
            finally:
                self._stop_writing()
            return writer.end - self._state.directory.stop if self._state.directory is not None else 0

    def torn(self) -> str:
        """What is wrong with the end of the archive; empty if nothing is, or somebody is writing to it."""
        with self.lock:
            state = self._loaded()
            return state.torn if self._writer is None else ""

    def mend(self) -> int:
        """Write the directory anew if the archive does not end with one; gives the number of directories written."""
        with self.lock:
            if not self.torn():
                return 0
            self._opened_writer()[0].changed = True
            self.flush()
            return 1

    def abandon(self) -> None:
        """Let go of the file, and of what could not be written to it."""
        with self.lock:
            self._stop_writing()
            self._state = None

    def is_left_behind(self) -> bool:
        """Whether the file that this process writes to was removed or replaced, so that what it wrote is lost."""
        writer = self._writer
        return writer is not None and writer.changed and not writer.is_current()

    def after_fork_in_child(self) -> None:
        """What the other process writes remains its own. What it had written until now can still be read here."""
        self.lock = threading.RLock()
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.forget()

    def _loaded(self) -> ZipState:
        with self.lock:
            if self._writer is None or self._state is None:
                try:
                    self._state = state_of(self.path, str(self), self._state)
                except StoreError:
                    if not self._is_to_be_replaced():
                        raise
                    self._state = ZipState((), None)
            return self._state

    def _is_to_be_replaced(self) -> bool:
        with contextlib.suppress(OSError):
            return self.replaces == "all files" or (self.replaces == "empty files" and not os.path.getsize(self.path))
        return False

    def _opened_writer(self) -> tuple[ZipWriter, ZipDirectory]:
        writer, state = self._writer, self._state
        if writer is not None and not writer.is_current():
            self._stop_writing()
            self._state = None
            if writer.changed:
                raise StoreError(
                    f"{self} was removed or replaced by another program while it was written to: what was written "
                    "since it was last flushed is lost"
                )
            writer = None
        if writer is None:
            writer, state = self._start_writing()
        assert state is not None
        assert state.directory is not None
        return writer, state.directory

    def _start_writing(self) -> tuple[ZipWriter, ZipState]:
        for _ in range(RACES):
            writer = self._locked_writer()
            try:
                # what another process wrote before we had the lock
                state = state_of(self.path, str(self), self._state, locked=True)
                is_ours = state.identity[:2] == writer.inode
                if is_ours and state.directory is not None:
                    state.directory.set_apart()
            except BaseException:
                writer.close()
                raise
            if is_ours:
                self._state, self._writer = state, writer
                return writer, state
            writer.close()
        raise StoreError(f"cannot write to {self}: it is removed or replaced as often as it is opened")

    def _locked_writer(self) -> ZipWriter:
        try:
            return ZipWriter(self.path)
        except HeldError:
            raise StoreError(f"another process writes to {self}, and one at a time can") from None
        except NoLocksError as error:
            raise UnsupportedError(
                f"{without_locks(self.path, error.args[0])}, so that another process or machine could damage {self} by "
                f"writing to it at the same time; nothing was written. Either {MOUNT}; or write a new archive; or, if "
                "no other process writes to this one meanwhile: zardine.config.set({'allow_lost_updates': True})"
            ) from None
        except OSError as error:
            self._fail("write to", error)

    def _write_directory(self, writer: ZipWriter, directory: ZipDirectory) -> None:
        try:
            writer.write_directory(directory)
            self._state = ZipState(writer.identity, directory)
        except OSError as error:
            if writer.has_lost:
                with contextlib.suppress(OSError):
                    os.ftruncate(writer.file, directory.stop)
                self.abandon()
                error.strerror = f"{error.strerror}; what was written since it was last flushed is lost"
            else:
                error.add_note("the change waits in this process: it takes effect when the store is flushed again")
            self._fail("write the directory of", error)
        directory.data.size = writer.end
        if isinstance(directory.data, FileBytes):
            directory.data.identity = self._state.identity

    def _stop_writing(self) -> None:
        writer, self._writer = self._writer, None
        if writer is not None:
            try:
                writer.close()
            except BaseException:  # Ctrl-C, which may come before it has begun
                writer.close()
                raise

    def _stop_writing_if_unchanged(self) -> None:
        if self._writer is not None and not self._writer.changed:
            self._stop_writing()

    def _fail(self, what: str, error: OSError) -> NoReturn:
        failure = StoreError(f"cannot {what} {self}: {error.strerror}")
        for note in getattr(error, "__notes__", ()):
            failure.add_note(note)
        failure.errno = error.errno
        failure.filename = self.path
        raise failure from error

    def __str__(self) -> str:
        return f"zip://{self.path}"


_archives: dict[str, ZipArchive] = {}
_all: WeakSet[ZipArchive] = WeakSet()
"""Also those whose file was replaced while they wrote to it."""
_guard = threading.RLock()
"""Reentrant: the last store of an archive may be collected at any time, also by a thread that has this lock."""


class ArchiveUse:
    """What a store, and its read-only twins, hold: as long as there is one, the archive is the one of its path.

    When the last is gone, what is not written yet is. Only then the archive is forgotten, so that nobody who opens the
    path meanwhile reads what it was before.
    """

    __slots__ = ("archive",)

    def __init__(self, path: str, replaces: Replaced = "nothing") -> None:
        """``path`` without symbolic links; ``replaces`` as in :class:`ZipArchive`."""
        with _guard:
            archive = _archives.get(path)
            if archive is None or archive.is_left_behind():
                archive = ZipArchive(path)
                _all.add(archive)
            archive.users += 1
            _archives[path] = archive
            self.archive = archive
            if replaces != "nothing":
                archive.replaces = replaces
        archive.load()

    def is_current(self) -> bool:
        """Whether the archive is still the one of its path, or has something to say about what became of it."""
        return _archives.get(self.archive.path) is self.archive or self.archive.is_left_behind()

    def __del__(self) -> None:
        with contextlib.suppress(Exception):  # at the end of the program there may be nothing left to call
            _leave(self.archive)


def _leave(archive: ZipArchive) -> None:
    with _guard:
        archive.users -= 1
        if archive.users:
            return
    _close(archive)
    with _guard:
        if not archive.users and _archives.get(archive.path) is archive:
            del _archives[archive.path]


def _close(archive: ZipArchive) -> None:
    try:
        archive.close()
    except Exception as error:
        archive.abandon()
        warnings.warn(f"what was written to {archive} is lost: {error}", RuntimeWarning, stacklevel=2)


@atexit.register
def _close_all() -> None:
    for archive in list(_all):
        _close(archive)


def _after_fork_in_child() -> None:
    global _guard
    _guard = threading.RLock()
    for archive in list(_all):
        archive.after_fork_in_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)


__all__ = ["ArchiveUse", "Replaced", "ZipArchive", "ZipState", "as_left", "compacted", "state_of"]
