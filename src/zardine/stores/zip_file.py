"""The bytes of a zip archive: a local file, or a value of another store that is read by ranges."""

from __future__ import annotations

import io
import os
from typing import Protocol

from zardine.buffers import BytesLike
from zardine.errors import StoreError
from zardine.stores.base import Store, Version

_TAIL = 2**16
"""Bytes at the end of a value that are read at once: the directory of most archives is in them."""


class ArchiveBytes(Protocol):
    """Bytes that stay as they are, but for more being added at the end."""

    size: int

    def read(self, start: int, length: int) -> BytesLike:
        """``length`` bytes from ``start`` on, which lie within the archive."""

    def close(self) -> None:
        """Release what is held."""


class FileBytes:
    """A local file."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._fd = os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
        self.size = os.fstat(self._fd).st_size

    def read(self, start: int, length: int) -> BytesLike:
        whole = os.pread(self._fd, length, start)
        while len(whole) < length:
            more = os.pread(self._fd, length - len(whole), start + len(whole))
            if not more:
                raise StoreError(f"the zip archive {self._path!r} was cut short by another program")
            whole += more
        return whole

    def close(self) -> None:
        os.close(self._fd)


class ValueBytes:
    """A value of another store, always of the same version."""

    def __init__(self, store: Store, key: str) -> None:
        self._store, self._key = store, key
        reading = store.read(key, ((-_TAIL, None),))
        if reading is None:
            raise FileNotFoundError(key)
        self._version: Version | None = reading.version
        self.size = reading.size
        self._tail = reading.parts[0]

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

    def close(self) -> None:
        pass


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


__all__ = ["ArchiveBytes", "AsFile", "FileBytes", "ValueBytes"]
