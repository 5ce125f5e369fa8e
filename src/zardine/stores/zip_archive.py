"""A zip archive in a local file, shared by all stores of this process that name the same file."""

from __future__ import annotations

import atexit
import contextlib
import os
import threading
import warnings
import zipfile
from collections.abc import Iterable
from typing import IO, Any
from weakref import WeakValueDictionary

from zardine.buffers import BytesLike
from zardine.errors import StoreError
from zardine.stores.base import WHOLE
from zardine.stores.zip_directory import ZipDirectory
from zardine.stores.zip_file import FileBytes

try:
    import fcntl
except ImportError:  # there two processes can spoil an archive; the documentation says that one may write
    fcntl = None  # type: ignore[assignment]

_NOTHING = b"PK\x05\x06" + bytes(18)
"""The directory of an archive without entries: a new one begins with it, so that it is one at once."""

_OLDEST = (1980, 1, 1, 0, 0, 0)


class ZipArchive:
    """The entries of the file, and the writing of new ones, which are only ever added at its end.

    The directory is written by :meth:`flush` and :meth:`close`. Until then the one written last stays where it is, so
    that a writer that is killed leaves what it had flushed.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.lock = threading.RLock()
        self.directory: ZipDirectory | None = None
        self._data: FileBytes | None = None
        self._names: list[str] | None = None
        self._writer: zipfile.ZipFile | None = None
        self._file: IO[bytes] | None = None
        self._owner = 0
        self._identity: tuple[int, ...] | None = None
        self.load()

    @property
    def entries(self) -> dict[str, zipfile.ZipInfo]:
        """What is in the archive now, by keys."""
        return {} if self.directory is None else self.directory.entries

    @property
    def closed(self) -> bool:
        """Whether the file was let go of, so that :meth:`load` must come before the next use."""
        return self._identity is None

    def load(self) -> None:
        """Read the directory, unless it is the one that is known, or this process writes it."""
        with self.lock:
            if self._writer is not None:
                return
            try:
                identity = _identity(os.stat(self.path))
            except FileNotFoundError:
                identity = ()
            if identity != self._identity:
                self._release()
                self.directory = self._names = None
                if identity:
                    self._data = FileBytes(self.path)
                    self.directory = ZipDirectory(self._data, str(self))
                self._identity = identity

    def names(self) -> list[str]:
        """All keys, sorted."""
        with self.lock:
            if self._names is None:
                self._names = sorted(self.entries)
            return self._names

    def add(self, key: str, data: BytesLike) -> zipfile.ZipInfo:
        """Write an entry at the end; one of the same name is no longer there."""
        with self.lock:
            writer, directory, held = self._opened_writer()
            info = zipfile.ZipInfo(key, _OLDEST)
            info.external_attr = 0o644 << 16
            writer.NameToInfo.pop(key, None)
            try:
                writer.writestr(info, data if isinstance(data, bytes) else bytes(data), zipfile.ZIP_STORED)
                assert self._file is not None
                self._file.flush()
            except OSError as error:
                raise StoreError(f"cannot write key {key!r} of {self}: {error.strerror}") from error
            info.flag_bits |= 0 if key.isascii() else 0x800  # as it was written: the name is UTF-8
            held.size = writer.start_dir
            if key not in directory.entries:
                self._names = None
            directory.entries[key] = info
            return info

    def remove(self, keys: Iterable[str]) -> None:
        """Leave entries out of the directory from now on."""
        with self.lock:
            there = [key for key in keys if key in self.entries]
            if there:
                writer, directory, _ = self._opened_writer()
                writer._didModify = True  # type: ignore[attr-defined]
                for key in there:
                    directory.entries.pop(key, None)
                    writer.NameToInfo.pop(key, None)
                self._names = None

    def flush(self) -> None:
        """Write the directory, so that other programs see all entries; more may be added after."""
        with self.lock:
            if self._writer is None or self._file is None or self._owner != os.getpid():
                return
            writer, file, self._writer, self._file = self._writer, self._file, None, None
            writer.filelist = list(writer.NameToInfo.values())
            try:
                writer.close()
                file.flush()
                os.fsync(file.fileno())
                self._identity = _identity(os.fstat(file.fileno()))
                if self._data is not None:
                    self._data.size = self._identity[2]
            except OSError as error:
                raise StoreError(f"cannot write the directory of {self}: {error.strerror}") from error
            finally:
                file.close()

    def close(self) -> None:
        """Write what is to be written, and let go of the file."""
        with self.lock:
            self.flush()
            self._release()
            self._identity = None

    def compact(self) -> int:
        """Rewrite the archive without what was replaced or removed; gives the bytes that it became shorter."""
        with self.lock:
            self.flush()
            self.load()
            if self.directory is None:
                return 0
            before = os.path.getsize(self.path)
            temporary = f"{self.path}.{os.getpid()}.compact"
            new = ZipArchive(temporary)
            try:
                for key in self.names():
                    new.add(key, self.directory.read(key, self.entries[key], (WHOLE,)).parts[0])
                new._opened_writer()
                new.close()
                os.replace(temporary, self.path)
            except BaseException:
                new._release()
                with contextlib.suppress(OSError):
                    os.unlink(temporary)
                raise
            self.load()
            return before - os.path.getsize(self.path)

    def _opened_writer(self) -> tuple[zipfile.ZipFile, ZipDirectory, FileBytes]:
        if self._writer is None:
            self._start_writing()
        elif self._owner != os.getpid():
            raise StoreError(f"{self} is being written by the process that this one was forked from")
        assert self._writer is not None
        assert self.directory is not None
        assert self._data is not None
        return self._writer, self.directory, self._data

    def _start_writing(self) -> None:
        try:
            os.makedirs(os.path.dirname(self.path), exist_ok=True)
            descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o666)
        except OSError as error:
            raise StoreError(f"cannot write to {self}: {error.strerror}") from error
        file: Any = os.fdopen(descriptor, "r+b")
        try:
            if fcntl is not None:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not os.fstat(descriptor).st_size:
                file.write(_NOTHING)
                file.flush()
            self.load()  # what another process wrote before we had the lock
            assert self.directory is not None
            writer = zipfile.ZipFile(file, "a")
            if not self.directory.complete:
                writer.NameToInfo.update(self.directory.entries)
            writer.start_dir = os.fstat(descriptor).st_size  # after the directory that is there
        except BlockingIOError:
            file.close()
            raise StoreError(f"another process writes to {self}, and one at a time can") from None
        except BaseException:
            file.close()
            raise
        self._writer, self._file, self._owner = writer, file, os.getpid()

    def _release(self) -> None:
        """Let go of the file; what was not flushed is lost."""
        writer, self._writer = self._writer, None
        if writer is not None:
            writer._didModify = False  # type: ignore[attr-defined]
            writer.close()
        for each in (self._file, self._data):
            if each is not None:
                each.close()
        self._file = self._data = None

    def __str__(self) -> str:
        return f"zip://{self.path}"

    def __del__(self) -> None:
        with contextlib.suppress(Exception):
            self.flush()
            self._release()


def shared_archive(path: str) -> ZipArchive:
    """The archive in a file, one object for all that name the same file in this process."""
    real = os.path.realpath(path)
    with _guard:
        archive = _archives.get(real)
        if archive is None:
            archive = _archives[real] = ZipArchive(real)
            return archive
    archive.load()
    return archive


def _identity(status: os.stat_result) -> tuple[int, ...]:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


_archives: WeakValueDictionary[str, ZipArchive] = WeakValueDictionary()
_guard = threading.Lock()


@atexit.register
def _close_all() -> None:
    for archive in list(_archives.values()):
        try:
            archive.close()
        except Exception as error:
            warnings.warn(str(error), stacklevel=1)


__all__ = ["ZipArchive", "shared_archive"]
