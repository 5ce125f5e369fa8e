"""A zip archive in a local file, for all stores of this process that name the same file."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Sequence
from typing import Final, Literal, NoReturn, TypeAlias

from zardine.buffers import BytesLike
from zardine.errors import ConditionFailedError, StoreError
from zardine.stores.base import Condition, Version
from zardine.stores.zip.compact import compacted
from zardine.stores.zip.directory import ZipDirectory
from zardine.stores.zip.file import FileBytes
from zardine.stores.zip.lock import HeldError
from zardine.stores.zip.state import ZipState, state_of
from zardine.stores.zip.writer import ZipWriter

_ATTEMPTS: Final = 100

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
        """How many stores there are; see ``zip_sharing``."""
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
                there = directory.entries.get(key)
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
                self._loaded()
                return
            writer = self._locked_writer()
            try:
                state_of(self.path, str(self), locked=True)
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

        A failure changes nothing: it can be tried again. It is :class:`StoreError` if the file is no longer the one
        that was written to; then what was written to it is lost.
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
        for _ in range(_ATTEMPTS):
            writer = self._locked_writer()
            try:
                # what another process wrote before we had the lock
                state = state_of(self.path, str(self), self._state, locked=True)
            except BaseException:
                writer.close()
                raise
            if state.identity[:2] == writer.inode:
                self._state, self._writer = state, writer
                return writer, state
            writer.close()
        raise StoreError(f"cannot write to {self}: it is removed or replaced as often as it is opened")

    def _locked_writer(self) -> ZipWriter:
        try:
            return ZipWriter(self.path)
        except HeldError:
            raise StoreError(f"another process writes to {self}, and one at a time can") from None
        except OSError as error:
            self._fail("write to", error)

    def _write_directory(self, writer: ZipWriter, directory: ZipDirectory) -> None:
        try:
            writer.write_directory(directory)
        except OSError as error:
            self._fail("write the directory of", error)
        self._state = ZipState(writer.identity, directory)
        directory.data.size = writer.end
        if isinstance(directory.data, FileBytes):
            directory.data.identity = self._state.identity

    def _stop_writing(self) -> None:
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.close()

    def _stop_writing_if_unchanged(self) -> None:
        if self._writer is not None and not self._writer.changed:
            self._stop_writing()

    def _fail(self, what: str, error: OSError) -> NoReturn:
        failure = StoreError(f"cannot {what} {self}: {error.strerror}")
        failure.errno = error.errno
        failure.filename = self.path
        raise failure from error

    def __str__(self) -> str:
        return f"zip://{self.path}"


__all__ = ["Replaced", "ZipArchive"]
