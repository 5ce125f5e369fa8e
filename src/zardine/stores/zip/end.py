"""Where the directories of a zip archive lie, by the records that end them (APPNOTE.TXT 6.3, 4.3.14 to 4.3.16).

A directory counts only if its record ends where the archive does. The module ``zipfile`` takes any record in the last
64 KiB for that, and so for an archive that was cut short the directory before the last one, as if nothing were missing.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

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


__all__ = [
    "END",
    "END64",
    "END64_MARK",
    "END_MARK",
    "LOCATOR",
    "LOCATOR_MARK",
    "DirectoryEnd",
    "earlier_ends",
    "end_of_archive",
]
