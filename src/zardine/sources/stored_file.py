"""A file of another format as a value in a store: read by ranges, always in the version in which it was opened."""

from __future__ import annotations

import io
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from zardine.buffers import BytesLike
from zardine.cache import Cache
from zardine.errors import CorruptionError, StoreError
from zardine.shown_text import shown
from zardine.stores.base import Reading, Store

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_KEPT = 2**25
"""Bytes of blocks that are remembered."""
_BLOCK = (2**16, 2**20)
"""The least and the most bytes of a block."""


class StoredFile:
    """The value of ``key``, of which byte ranges are read. Any number of threads may read.

    Raises ``FileNotFoundError`` where the key is missing.
    """

    def __init__(self, store: Store, key: str) -> None:
        self.store, self.key = store, key
        least, most = _BLOCK
        self.block = 1 << (max(least, min(most, store.cost.gap)) - 1).bit_length()
        """Bytes that are read together where little is asked for: what costs no more than another request."""
        self._blocks: Cache[int, BytesLike] = Cache(_KEPT)
        first = store.read(key, ((0, self.block),))
        if first is None:
            raise FileNotFoundError(f"{self} does not exist")
        self.size, self.version = first.size, first.version
        self._blocks.put(0, first.parts[0], len(first.parts[0]))

    def __str__(self) -> str:
        return shown(f"{str(self.store).rstrip('/')}/{self.key}")

    def read(self, ranges: Sequence[tuple[int, int]]) -> list[BytesLike]:
        """Return the bytes of ranges ``(offset, length)``, read at once.

        Raises :class:`~zardine.errors.CorruptionError` where the file ends before, and
        :class:`~zardine.errors.StoreError` where it is not what it was when it was opened.
        """
        for offset, length in ranges:
            self.check(offset, length)
        wanted = [each for each in ranges if each[1]]
        if not wanted:
            return [b"" for _ in ranges]
        parts = iter(self._read(wanted).parts)
        found: list[BytesLike] = [next(parts) if length else b"" for _, length in ranges]
        for (offset, length), part in zip(ranges, found, strict=True):
            if len(part) != length:
                raise CorruptionError(f"{self}: {len(part)} bytes at {offset}, where {length} were asked for")
        return found

    def check(self, offset: int, length: int) -> None:
        """Raise :class:`~zardine.errors.CorruptionError` where a range is not within the file."""
        if offset < 0 or length < 0 or offset + length > self.size:
            raise CorruptionError(
                f"{self} has {self.size} bytes, and bytes {offset} to {offset + length} are asked for: it is cut off, "
                "or damaged"
            )

    def read_near(self, offset: int, length: int) -> bytes:
        """Return bytes of the file out of blocks, which are remembered; fewer where the file ends before."""
        stop = min(self.size, offset + length)
        if stop <= offset:
            return b""
        numbers = range(offset // self.block, -(-stop // self.block))
        found = {number: self._blocks.get(number) for number in numbers}
        missing = [number for number in numbers if found[number] is None]
        if missing:
            first, last = missing[0], missing[-1]
            start, end = first * self.block, min(self.size, (last + 1) * self.block)
            data = memoryview(self.read([(start, end - start)])[0])
            for number in range(first, last + 1):
                block = bytes(data[number * self.block - start : (number + 1) * self.block - start])
                found[number] = block
                self._blocks.put(number, block, len(block))
        whole = b"".join(bytes(found[number] or b"") for number in numbers)
        start = offset - numbers.start * self.block
        return whole[start : start + stop - offset]

    def _read(self, ranges: Sequence[tuple[int, int]]) -> Reading:
        reading = self.store.read(self.key, ranges)
        if reading is None:
            raise StoreError(f"{self} is gone since it was opened")
        if reading.version != self.version or reading.size != self.size:
            raise StoreError(f"{self} changed since it was opened: open it again")
        return reading


class ReadFailedError(Exception):
    """Reading a :class:`SeekableFile` failed. Libraries do not raise it for what is in a file: it gets through."""

    def __init__(self, reason: Exception) -> None:
        super().__init__(str(reason))
        self.reason = reason


class SeekableFile(io.RawIOBase):
    """The same file with a position, as libraries for its format want it. One thread at a time may use it."""

    def __init__(self, file: StoredFile) -> None:
        super().__init__()
        self._file = file
        self._position = 0

    def readable(self) -> bool:
        """Return ``True``."""
        return True

    def seekable(self) -> bool:
        """Return ``True``."""
        return True

    def tell(self) -> int:
        """Return the position in bytes."""
        return self._position

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Move to a position in bytes, and return it."""
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self._file.size}[whence]
        self._position = max(0, base + offset)
        return self._position

    def readinto(self, buffer: WriteableBuffer) -> int:
        """Fill ``buffer`` as far as the file goes, and return the number of bytes."""
        view = memoryview(buffer).cast("B")
        try:
            data = self._file.read_near(self._position, len(view))
        except Exception as error:
            raise ReadFailedError(error) from error
        view[: len(data)] = data
        self._position += len(data)
        return len(data)


__all__ = ["ReadFailedError", "SeekableFile", "StoredFile"]
