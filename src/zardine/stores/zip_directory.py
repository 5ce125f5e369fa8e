"""The directory of a zip archive, read by the module ``zipfile`` and not trusted."""

from __future__ import annotations

import struct
import zipfile
import zlib
from collections.abc import Sequence
from typing import Final

from zardine.buffers import BytesLike
from zardine.errors import StoreError
from zardine.stores.base import ByteRange, Reading, is_key, resolve_range
from zardine.stores.zip_file import ArchiveBytes, AsFile

_LOCAL: Final = struct.Struct("<4s5H3I2H")
_END: Final = b"PK\x05\x06"
_END_SIZE: Final = 22
_RATIO: Final = 1100
"""Deflate makes bytes at most 1032 times fewer."""

MOST_INFLATED: Final = 2**30
"""Bytes that a compressed entry may have when it is read."""


class ZipDirectory:
    """The entries of an archive, and their values.

    Names that are no keys (absolute ones, such with ``..``, directories) are as if they were not there. Of several
    entries of one name the last one counts. :class:`StoreError` for archives that are damaged or made to deceive.
    """

    def __init__(self, data: ArchiveBytes, name: str) -> None:
        self._data, self._name = data, name
        self.complete = True
        """Whether the archive ends with a directory; not if its last writer was killed."""
        self.entries: dict[str, zipfile.ZipInfo] = {}
        self._starts: dict[int, int] = {}
        with self._opened() as archive:
            self._check(archive.filelist, archive.start_dir)
            self.entries.update((info.filename, info) for info in archive.filelist if is_key(info.filename))

    def _opened(self) -> zipfile.ZipFile:
        try:
            return zipfile.ZipFile(AsFile(self._data, self._data.size))
        except (zipfile.BadZipFile, NotImplementedError, ValueError, struct.error, OverflowError) as error:
            reason = error
        size = self._last_end()
        if size is not None:
            try:
                self.complete = False
                return zipfile.ZipFile(AsFile(self._data, size))
            except (zipfile.BadZipFile, NotImplementedError, ValueError, struct.error, OverflowError) as error:
                reason = error
        raise StoreError(f"{self._name} is not a zip archive, or is damaged: {reason}")

    def _last_end(self) -> int | None:
        """How long the archive was when a directory was written last: an unfinished write may have come after."""
        step = 2**20
        stop = self._data.size
        while stop > 0:
            start = max(0, stop - step)
            part = bytes(self._data.read(start, min(stop + _END_SIZE, self._data.size) - start))
            at = part.rfind(_END)
            while at >= 0:
                if len(part) - at >= _END_SIZE:
                    return start + at + _END_SIZE + int.from_bytes(part[at + 20 : at + 22], "little")
                at = part.rfind(_END, 0, at)
            stop = start
        return None

    def _check(self, infos: Sequence[zipfile.ZipInfo], end: int) -> None:
        """That each entry has bytes of its own before the directory: else a small archive could hold a huge one."""
        stop = 0
        for info in sorted(infos, key=lambda info: info.header_offset):
            if info.header_offset < stop:
                raise StoreError(
                    f"{self._name}: entries overlap ({info.filename!r}); it is made to deceive, or damaged"
                )
            stop = info.header_offset + _LOCAL.size + info.compress_size
        if stop > end:
            raise StoreError(f"{self._name}: an entry reaches beyond the entries; it is damaged")

    def version(self, info: zipfile.ZipInfo) -> str:
        """Of an entry: where it lies, and what is in it."""
        return f"{info.header_offset:x}-{info.CRC:x}-{info.file_size:x}"

    def read(self, key: str, info: zipfile.ZipInfo, ranges: Sequence[ByteRange]) -> Reading:
        """Ranges of an entry. What is read whole is checked against its checksum."""
        size = info.file_size
        spans = [resolve_range(each, size) for each in ranges]
        whole = any((start, stop) == (0, size) for start, stop in spans)
        parts: list[BytesLike]
        if info.compress_type == zipfile.ZIP_STORED and not whole:
            parts = [self._stored(key, info, start, stop) if stop > start else b"" for start, stop in spans]
        else:
            data = memoryview(self._whole(key, info))
            parts = [data[start:stop] for start, stop in spans]
        return Reading(tuple(parts), self.version(info), size)

    def _whole(self, key: str, info: zipfile.ZipInfo) -> BytesLike:
        if info.compress_type == zipfile.ZIP_STORED:
            data = self._stored(key, info, 0, info.file_size)
        else:
            data = self._inflated(key, info)
        if zlib.crc32(data) != info.CRC:
            raise self._damaged(key, "its checksum does not match")
        return data

    def _inflated(self, key: str, info: zipfile.ZipInfo) -> bytes:
        if info.file_size > min(MOST_INFLATED, info.compress_size * _RATIO + 64):
            raise self._damaged(key, f"it says that {info.compress_size} bytes inflate to {info.file_size}")
        if info.compress_type != zipfile.ZIP_DEFLATED:
            raise StoreError(
                f"key {key!r} of {self._name} is compressed in a way (method {info.compress_type}) that is not "
                "supported: entries should be stored"
            )
        start = self._start(key, info)
        decoder = zlib.decompressobj(-15)
        try:
            data = decoder.decompress(self._data.read(start, info.compress_size), info.file_size + 1)
        except zlib.error as error:
            raise self._damaged(key, str(error)) from None
        if len(data) != info.file_size:
            raise self._damaged(key, "it inflates to another length than it says")
        return data

    def _stored(self, key: str, info: zipfile.ZipInfo, start: int, stop: int) -> BytesLike:
        if info.compress_size != info.file_size:
            raise self._damaged(key, "its sizes differ, though it is not compressed")
        return self._data.read(self._start(key, info) + start, stop - start)

    def _start(self, key: str, info: zipfile.ZipInfo) -> int:
        """Where the bytes of an entry begin: after its own header, which must say the same as the directory."""
        known = self._starts.get(info.header_offset)
        if known is not None:
            return known
        if info.flag_bits & 1:
            raise StoreError(f"key {key!r} of {self._name} is encrypted, which is not supported")
        room = min(_LOCAL.size + 2**10, self._data.size - info.header_offset)
        head = bytes(self._data.read(info.header_offset, room))
        if len(head) < _LOCAL.size:
            raise self._damaged(key, "its header is cut short")
        fields = _LOCAL.unpack_from(head)
        start: int = info.header_offset + _LOCAL.size + fields[9] + fields[10]
        name = info.orig_filename.encode("utf-8" if info.flag_bits & 0x800 else "cp437", "replace")
        if (
            fields[0] != b"PK\x03\x04"
            or fields[3] != info.compress_type
            or (fields[9] <= room - _LOCAL.size and head[_LOCAL.size : _LOCAL.size + fields[9]] != name)
        ):
            raise self._damaged(key, "its header is not the one that the directory tells of")
        if start + info.compress_size > self._data.size:
            raise self._damaged(key, "it reaches beyond the archive")
        self._starts[info.header_offset] = start
        return start

    def _damaged(self, key: str, reason: str) -> StoreError:
        return StoreError(f"key {key!r} of {self._name} is damaged: {reason}")


__all__ = ["ZipDirectory"]
