"""The directory of a zip archive as bytes (APPNOTE.TXT 6.3, 4.3.12 to 4.3.16)."""

from __future__ import annotations

import struct
import zipfile
from collections.abc import Collection
from typing import Final

from zardine.errors import InvalidKeyError
from zardine.stores.zip.end import END, END64, END64_MARK, END_MARK, LOCATOR, LOCATOR_MARK

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


__all__ = ["directory_bytes", "entry"]
