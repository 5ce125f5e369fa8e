"""What LAS and LAZ files claim of themselves, compared with their sizes before libraries take memory for it.

laspy reads as many records as a header tells of, also behind the end of a file; what unpacks LAZ takes memory for as
many chunks, and for chunks as long, as their table tells of, and ends the process where there is none.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from struct import Struct
from typing import Any, BinaryIO, Final

from zardine.errors import DataError

_HEADER: Final = Struct("<4s20x2B68xHII")
"""Signature, version, bytes of the header, where points begin, and how many records (VLRs) are in front of them."""
_EXTENDED: Final = Struct("<QI")
"""Where records (EVLRs) behind the points begin, and how many."""
_EXTENDED_AT: Final = 235
_RECORD: Final = 54
_EXTENDED_RECORD: Final = Struct("<20xQ32x")
"""How many bytes follow this head of a record."""
_PLACE: Final = Struct("<q")
_TABLE: Final = Struct("<II")
"""The version of a table of chunks, and how many there are."""


def check_records(source: Path) -> None:
    """Raise :class:`DataError` for a file whose header tells of records that it has no room for."""
    size = source.stat().st_size
    with source.open("rb") as file:
        data = file.read(_HEADER.size)
        if len(data) < _HEADER.size or data[:4] != b"LASF":
            return  # which laspy says
        _, major, minor, length, points_at, count = _HEADER.unpack(data)
        if points_at > size:
            raise _cut(source, f"points begin at byte {points_at} by its header; it has {size} bytes")
        if count * _RECORD > max(0, points_at - length):
            raise _cut(source, f"its header tells of {count} records in front of byte {points_at}")
        if (major, minor) >= (1, 4):
            file.seek(_EXTENDED_AT)
            data = file.read(_EXTENDED.size)
            if len(data) == _EXTENDED.size:
                at, count = _EXTENDED.unpack(data)
                _check_extended(file, at, count, size, source)


def _check_extended(file: BinaryIO, at: int, count: int, size: int, source: Path) -> None:
    if count * _EXTENDED_RECORD.size > max(0, size - at):
        raise _cut(source, f"its header tells of {count} records from byte {at} on; it has {size} bytes")
    for number in range(count):
        file.seek(at)
        data = file.read(_EXTENDED_RECORD.size)
        at += _EXTENDED_RECORD.size + (_EXTENDED_RECORD.unpack(data)[0] if len(data) == _EXTENDED_RECORD.size else size)
        if at > size:
            raise _cut(source, f"record {number} behind the points ends at byte {at}; it has {size} bytes")


def check_points(header: Any, source: Path) -> None:
    """Raise :class:`DataError` for a file without room for as many points as its header (of laspy) tells of."""
    if not header.are_points_compressed:
        room = max(0, source.stat().st_size - header.offset_to_point_data) // header.point_format.size
        check_count(header.point_count, min(room, header.point_count), source)
    elif header.point_count:
        _check_chunks(header, source)


def check_count(told: int, there: int, source: Path) -> None:
    """Raise :class:`DataError` unless there are as many points as the header tells of."""
    if told != there:
        raise DataError(
            f"{source} is cut short: its header tells of {told} points, and {there} are there; get the whole file"
        )


def _check_chunks(header: Any, source: Path) -> None:
    """Raise :class:`DataError` for a table of chunks that are not all there."""
    try:
        lazrs: Any = import_module("lazrs")
    except ModuleNotFoundError:  # another package reads LAZ
        return
    packing = lazrs.LazVlr(bytes(header.vlrs[header.vlrs.index("LasZipVlr")].record_data))
    row, begin, size = int(header.point_format.size), int(header.offset_to_point_data), source.stat().st_size
    if packing.item_size() != row:
        raise DataError(
            f"{source} is damaged: points have {row} bytes, and {packing.item_size()} where they are packed"
        )
    with source.open("rb") as file:
        file.seek(begin)
        at = _read(file, _PLACE, source)[0]
        if at <= begin:  # written without knowing it beforehand
            file.seek(max(0, size - _PLACE.size))
            at = _read(file, _PLACE, source)[0]
        room = at - begin - _PLACE.size
        if room < 0 or at > size - _TABLE.size:
            raise _cut(source, f"a table of its points begins at byte {at}; it has {size} bytes")
        file.seek(at)
        _, count = _read(file, _TABLE, source)
        most = header.point_count if packing.uses_variable_size_chunks() else header.point_count // packing.chunk_size()
        if count > most + 1 or count * row > room:  # the first point of each is not packed
            raise _cut(source, f"its points are in {count} chunks, by its table of these, which it has no room for")
        file.seek(begin)
        chunks = lazrs.read_chunk_table(file, packing)
    packed, points = sum(each[1] for each in chunks), sum(each[0] for each in chunks)
    if packed > room:
        raise _cut(source, f"its chunks of points have {packed} bytes, by its table of these; it has {room} for them")
    if points < header.point_count:
        raise _cut(source, f"its header tells of {header.point_count} points, and its chunks have {points}")


def _read(file: BinaryIO, form: Struct, source: Path) -> tuple[int, ...]:
    data = file.read(form.size)
    if len(data) != form.size:
        raise _cut(source, "it ends where a table of its points should be")
    return form.unpack(data)


def _cut(source: Path, why: str) -> DataError:
    return DataError(f"{source} is cut short, or damaged: {why}; get the whole file")


__all__ = ["check_count", "check_points", "check_records"]
