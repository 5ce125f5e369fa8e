"""The bytes of a zip archive: a local file, or a value of another store that is read by ranges."""

from __future__ import annotations

import io
import os
import stat
import sys
from collections.abc import Callable
from threading import Lock
from typing import IO, Final, Protocol

from zardine.buffers import BytesLike
from zardine.errors import StoreError
from zardine.stores.base import Store, Version
from zardine.stores.file_calls import close_file, open_descriptor, read_part

_TAIL: Final = 2**16 + 2**7
"""Bytes at the end of a value that are read at once: the directory of most archives is in them, the longest comment
fits."""

_LOOK_BACK: Final = 2**28
"""Bytes at the end of a value among which a directory is looked for, if it is not at the very end."""

_READ: Final = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0)  # a FIFO must not hang us


class ArchiveBytes(Protocol):
    """Bytes that stay as they are, but for more being added at the end."""

    size: int

    @property
    def look_back(self) -> int:
        """How many bytes at the end may be read to find the directory of an archive that was cut short."""

    def read(self, start: int, length: int) -> BytesLike:
        """``length`` bytes from ``start`` on, which lie within the archive."""

    def is_at_hand(self, start: int) -> bool:
        """Whether to read there takes no request."""

    def is_untouched(self) -> bool:
        """Whether nobody wrote to it since it was opened."""


class FileBytes:
    """A local file, of one identity however its name is used again.

    It is closed with the last reference to it and not before: whoever reads holds one, so that a descriptor can never
    come to mean another file while it is read from. ``FileNotFoundError`` if there is no such file.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._fd = -1
        try:
            self._fd = open_descriptor(path, _READ)
            status = os.fstat(self._fd)
        except FileNotFoundError:
            raise
        except OSError as error:
            raise StoreError(f"cannot read the zip archive {path!r}: {error.strerror}") from error
        if not stat.S_ISREG(status.st_mode):
            raise StoreError(f"{path!r} is not a zip archive: it is no regular file")
        self.size = status.st_size
        self.identity = identity_of(status)

    @property
    def look_back(self) -> int:
        return self.size

    @property
    def fd(self) -> int:
        """The descriptor, valid as long as this object is referred to."""
        return self._fd

    def read(self, start: int, length: int) -> BytesLike:
        try:
            whole = read_part(self._fd, start, length)
        except OSError as error:
            raise StoreError(f"cannot read the zip archive {self._path!r}: {error.strerror}") from error
        if len(whole) < length:
            raise StoreError(f"the zip archive {self._path!r} was cut short by another program")
        return whole

    def is_at_hand(self, start: int) -> bool:
        return True

    def is_untouched(self) -> bool:
        return identity_of(os.fstat(self._fd)) == self.identity

    def __del__(self, _close: Callable[[int], None] = close_file) -> None:
        fd = getattr(self, "_fd", -1)  # there is none where it could not be opened
        if fd >= 0:
            self._fd = -1
            _close(fd)


class ValueBytes:
    """A value of another store, always of the same version. ``FileNotFoundError`` if the key is missing."""

    def __init__(self, store: Store, key: str) -> None:
        self._store, self._key = store, key
        reading = store.read(key, ((-_TAIL, None),))
        if reading is None:
            raise FileNotFoundError(key)
        self._version: Version | None = reading.version
        self.size = reading.size
        self._tail = reading.parts[0]

    @property
    def look_back(self) -> int:
        return min(self.size, _LOOK_BACK)

    def read(self, start: int, length: int) -> BytesLike:
        from_tail = start - (self.size - len(self._tail))
        if from_tail >= 0:
            return memoryview(self._tail)[from_tail : from_tail + length]
        reading = self._store.read(self._key, ((start, length),))
        if reading is None or (reading.version, reading.size) != (self._version, self.size):
            raise StoreError(
                f"the zip archive {self._key!r} of {self._store} was replaced while it was open: open it again"
            )
        return reading.parts[0]

    def is_at_hand(self, start: int) -> bool:
        return start >= self.size - len(self._tail)

    def is_untouched(self) -> bool:
        return True


class ObjectBytes:
    """A file that is open for reading, wherever it lies: anything that can ``seek`` and ``read`` bytes.

    It is read by one thread at a time, and stays open as long as who opened it wishes. A forked process shares the
    place at which it is read with the one that opened it, so it is read by that one only.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self._lock, self._process = file, Lock(), os.getpid()
        try:
            file.seek(0, os.SEEK_END)
            self.size = file.tell()
        except (AttributeError, OSError, ValueError) as error:
            raise StoreError(f"cannot read a zip archive from {file!r}: {error}") from error
        self._is_near = _is_near(file)

    @property
    def look_back(self) -> int:
        return min(self.size, _LOOK_BACK)

    def read(self, start: int, length: int) -> BytesLike:
        if os.getpid() != self._process:
            raise StoreError(
                f"{self._file!r} was opened by another process, from which this one was forked: both would read at one "
                "place; open it, and the store, in this one"
            )
        parts, missing = [], length
        try:
            with self._lock:
                self._file.seek(start)
                while missing and (part := self._file.read(missing)):
                    if isinstance(part, str):
                        raise TypeError(f"{self._file!r} gives text; open it in binary mode ('rb')")
                    parts.append(bytes(part))
                    missing -= len(part)
        except (OSError, ValueError) as error:  # ValueError: it was closed
            raise StoreError(f"cannot read the zip archive in {self._file!r}: {error}") from error
        if missing:
            raise StoreError(f"the zip archive in {self._file!r} was cut short while it was open")
        return b"".join(parts)

    def is_at_hand(self, start: int) -> bool:
        return self._is_near

    def is_untouched(self) -> bool:
        return True


_AROUND: Final = (
    ("io", "BufferedReader", "raw"),
    ("io", "BufferedRandom", "raw"),
    ("tempfile", "_TemporaryFileWrapper", "file"),
    ("fsspec.implementations.local", "LocalFileOpener", "f"),
)
"""Classes of files around other files, by module and name, and where these have the other file."""
_NEAR: Final = (
    ("io", "BytesIO"),
    ("io", "FileIO"),
    ("mmap", "mmap"),
    ("tempfile", "SpooledTemporaryFile"),
)
"""Classes of files that lie in memory, or are of the system."""


def _is_near(file: object) -> bool:
    """Whether to read a file takes no request, as its class tells.

    It is not asked for its descriptor: some write their bytes to a disk for that, or give that of what they inflate.
    """
    for module, name, inner in _AROUND:
        if _is_of(file, module, name):
            return _is_near(getattr(file, inner, None))
    return any(_is_of(file, module, name) for module, name in _NEAR)


def _is_of(value: object, module: str, name: str) -> bool:
    """Whether it is of a class of a module that need not be there: who has such a value has loaded it."""
    kind = getattr(sys.modules.get(module), name, None)
    return isinstance(kind, type) and isinstance(value, kind)


class AsFile(io.RawIOBase):
    """The first ``size`` bytes of an archive as a file, for the module ``zipfile``."""

    def __init__(self, data: ArchiveBytes, size: int) -> None:
        super().__init__()
        self._data, self._size, self._at = data, size, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = 0) -> int:
        self._at = max(0, offset + (0, self._at, self._size)[whence])
        return self._at

    def read(self, size: int | None = -1) -> bytes:
        left = max(0, self._size - self._at)
        length = left if size is None or size < 0 else min(size, left)
        part = bytes(self._data.read(self._at, length)) if length else b""
        self._at += len(part)
        return part


def identity_of(status: os.stat_result) -> tuple[int, ...]:
    """What tells a file, and what was written to it, from others and from what it was before."""
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


__all__ = ["ArchiveBytes", "AsFile", "FileBytes", "ObjectBytes", "ValueBytes", "identity_of"]
