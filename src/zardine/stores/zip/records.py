"""The records of a zip archive that tell of its entries, read and written (APPNOTE.TXT 6.3, 4.3.12 to 4.3.16).

A directory counts only if its record ends where the archive does. The module ``zipfile`` takes any record in the last
64 KiB for that, and so for an archive that was cut short the directory before the last one, as if nothing were missing.
"""

from __future__ import annotations

import struct
import zipfile
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Final

from zardine.errors import InvalidKeyError
from zardine.stores.zip.file import ArchiveBytes

END: Final = struct.Struct("<4s4H2IH")
END64: Final = struct.Struct("<4sQ2H2I4Q")
LOCATOR: Final = struct.Struct("<4sIQI")
END_MARK: Final = b"PK\x05\x06"
END64_MARK: Final = b"PK\x06\x06"
LOCATOR_MARK: Final = b"PK\x06\x07"
_LONGEST_COMMENT: Final = 0xFFFF
_STEP: Final = 2**22


@dataclass(frozen=True, slots=True)
class DirectoryEnd:
    """The record that ends a directory."""

    record: int
    """Where it begins."""
    stop: int
    """Where it, with the comment, ends: the archive that it is the end of is so long."""
    start: int
    """Where the directory begins."""
    before: int
    """Bytes that somebody has put before the archive: its own offsets do not count them."""
    count: int
    """Entries, as the record has it."""


def end_of_archive(data: ArchiveBytes) -> DirectoryEnd | None:
    """The record at the very end; ``None`` for an archive that does not end with one."""
    last = max(0, data.size - END.size)
    for start, stop in ((last, last + 1), (max(0, last - _LONGEST_COMMENT), last)):  # seldom there is a comment
        for at, record in _records(data, start, stop):
            found = _parse(data, at, record)
            if found is not None and _is_the_end(found, data):
                return found
    return None


def earlier_ends(data: ArchiveBytes) -> Iterator[DirectoryEnd]:
    """Records that are followed by something, the last one first: what an archive was before it was written to.

    A record whose offsets do not begin at the first byte is not one of them: it is of an archive that lies, as a value,
    in this one. Nor is the one of an archive that had no entries yet, to which nothing of what follows was added.
    """
    for at, record in _records(data, data.size - data.look_back, data.size):
        found = _parse(data, at, record)
        if found is not None and found.stop < data.size and not found.before and found.record > 0:
            yield found


def _is_the_end(found: DirectoryEnd, data: ArchiveBytes) -> bool:
    """If it counts other bytes as its first, and there an archive begins, it is of one that is a value in this one."""
    return found.stop == data.size and (not found.before or bytes(data.read(0, 4)) != b"PK\x03\x04")


def _records(data: ArchiveBytes, start: int, stop: int) -> Iterator[tuple[int, bytes]]:
    """What looks like a record and begins in a range of the bytes, the last one first."""
    while stop > start:
        begin = max(start, stop - _STEP)
        part = bytes(data.read(begin, min(stop + END.size - 1, data.size) - begin))
        at = part.rfind(END_MARK, 0, stop - begin + len(END_MARK) - 1)
        while at >= 0:
            if len(part) - at >= END.size:
                yield begin + at, part[at : at + END.size]
            at = part.rfind(END_MARK, 0, at + len(END_MARK) - 1)
        stop = begin


def _parse(data: ArchiveBytes, at: int, record: bytes) -> DirectoryEnd | None:
    """``None`` if it cannot be a record: it would end behind the last byte, or its directory begin before the first."""
    _, disk, first_disk, _, count, size, offset, comment = END.unpack(record)
    end = at
    room = LOCATOR.size + END64.size
    if at >= room:
        extended = bytes(data.read(at - room, room))
        if extended[: len(END64_MARK)] == END64_MARK and extended[END64.size :][:4] == LOCATOR_MARK:
            _, _, _, _, disk, first_disk, _, count, size, offset = END64.unpack_from(extended)
            end = at - room
    stop, start = at + END.size + comment, end - size
    if stop > data.size or start < offset or disk or first_disk:
        return None
    return DirectoryEnd(at, stop, start, start - offset, count)


_CENTRAL: Final = struct.Struct("<4s4B4H3I5H2I")
_MARK: Final = b"PK\x01\x02"
_FIELD: Final = struct.Struct("<2H")
_FIELD64: Final = 1
_VERSION64: Final = 45
_MOST: Final = 0xFFFFFFFF
"""What a field of four bytes says where its value is in a field of eight."""
_MOST_ENTRIES: Final = 0xFFFF
_UTF8: Final = 0x800
_OLDEST: Final = (1980, 1, 1, 0, 0, 0)


def entry(key: str, size: int, checksum: int, offset: int) -> zipfile.ZipInfo:
    """A new entry, stored; the same whenever it is written. :class:`InvalidKeyError` if the name is too long."""
    info = zipfile.ZipInfo(key, _OLDEST)
    info.external_attr = 0o644 << 16
    info.flag_bits = 0 if key.isascii() else _UTF8
    info.file_size = info.compress_size = size
    info.CRC, info.header_offset = checksum, offset
    if len(_name(info)) > 0xFFFF:
        raise InvalidKeyError(f"invalid key {key[:100]!r}…: names in zip archives have at most 65535 bytes")
    return info


def directory_bytes(infos: Collection[zipfile.ZipInfo], start: int, comment: bytes) -> bytes:
    """A directory that begins at ``start``, of entries that lie before it."""
    parts = [_central(info) for info in infos]
    size, count = sum(map(len, parts)), len(infos)
    if count >= _MOST_ENTRIES or size >= _MOST or start >= _MOST:
        stop = start + size
        parts += (
            END64.pack(END64_MARK, END64.size - 12, _VERSION64, _VERSION64, 0, 0, count, count, size, start),
            LOCATOR.pack(LOCATOR_MARK, 0, stop, 1),
        )
    count, size, start = min(count, _MOST_ENTRIES), min(size, _MOST), min(start, _MOST)
    parts.append(END.pack(END_MARK, 0, 0, count, count, size, start, len(comment)) + comment)
    return b"".join(parts)


def _central(info: zipfile.ZipInfo) -> bytes:
    large = [each for each in (info.file_size, info.compress_size, info.header_offset) if each >= _MOST]
    extra, version = _without_field64(info.extra), info.extract_version
    if large:
        extra = _FIELD.pack(_FIELD64, 8 * len(large)) + struct.pack(f"<{len(large)}Q", *large) + extra
        version = max(version, _VERSION64)
    year, month, day, hour, minute, second = info.date_time
    name = _name(info)
    fixed = _CENTRAL.pack(
        _MARK,
        info.create_version,
        info.create_system,
        version,
        info.reserved,
        info.flag_bits,
        info.compress_type,
        hour << 11 | minute << 5 | second // 2,
        (year - 1980) << 9 | month << 5 | day,
        info.CRC,
        min(info.compress_size, _MOST),
        min(info.file_size, _MOST),
        len(name),
        len(extra),
        len(info.comment),
        0,
        info.internal_attr,
        info.external_attr,
        min(info.header_offset, _MOST),
    )
    return fixed + name + extra + info.comment


def _name(info: zipfile.ZipInfo) -> bytes:
    """As it stands before the entry."""
    return info.orig_filename.encode("utf-8" if info.flag_bits & _UTF8 else "cp437")


def _without_field64(extra: bytes) -> bytes:
    """The extra fields of an entry that others wrote, but for the one with its sizes and offset."""
    kept, at = [], 0
    while at + _FIELD.size <= len(extra):
        kind, length = _FIELD.unpack_from(extra, at)
        stop = at + _FIELD.size + length
        if kind != _FIELD64:
            kept.append(extra[at:stop])
        at = stop
    return b"".join(kept)


__all__ = [
    "END",
    "END64",
    "END64_MARK",
    "END_MARK",
    "LOCATOR",
    "LOCATOR_MARK",
    "DirectoryEnd",
    "directory_bytes",
    "earlier_ends",
    "end_of_archive",
    "entry",
]
