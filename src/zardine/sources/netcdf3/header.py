"""The header of a NetCDF 3 file: dimensions, attributes, variables ("The NetCDF Classic Format Specification")."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from zardine.errors import CorruptionError
from zardine.sources.stored_file import StoredFile

SIGNATURES = (b"CDF\x01", b"CDF\x02", b"CDF\x05")
"""The first bytes of a file: with 32-bit offsets, with 64-bit offsets, with 64-bit numbers everywhere."""

TYPES = {1: "i1", 2: "S1", 3: ">i2", 4: ">i4", 5: ">f4", 6: ">f8", 7: "u1", 8: ">u2", 9: ">u4", 10: ">i8", 11: ">u8"}
"""NumPy's names of the types by their numbers; from 7 on in files of 64-bit data only."""

_CHAR = 2
_DIMENSIONS, _VARIABLES, _ATTRIBUTES = 10, 11, 12
_MOST = 2**16
"""Dimensions, attributes or variables in one list."""
_MOST_DIMENSIONS = 1024
_STREAMING = 0xFFFFFFFF


@dataclass(frozen=True, slots=True, eq=False)
class Dimension:
    """A name and a length; of the unlimited one the number of records."""

    name: str
    length: int
    unlimited: bool


@dataclass(frozen=True, slots=True, eq=False)
class Variable:
    """An array of the file."""

    name: str
    dimensions: tuple[Dimension, ...]
    attributes: dict[str, Any]
    dtype: np.dtype[Any]
    begin: int
    """Where its first element is."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of the dimensions."""
        return tuple(each.length for each in self.dimensions)

    @property
    def in_records(self) -> bool:
        """Whether each index of the first axis lies in a record of its own."""
        return bool(self.dimensions) and self.dimensions[0].unlimited

    @property
    def slab(self) -> int:
        """Bytes of the elements of a record, or of all."""
        return prod(self.shape[1 if self.in_records else 0 :]) * self.dtype.itemsize


@dataclass(frozen=True, slots=True, eq=False)
class Header:
    """All that a file says of its variables."""

    dimensions: tuple[Dimension, ...]
    attributes: dict[str, Any]
    variables: tuple[Variable, ...]
    record: int
    """Bytes from one record to the next."""


def read_header(file: StoredFile) -> Header:
    """Return the header of a file. Raises :class:`~zardine.errors.CorruptionError` where it is none."""
    return _Parser(file).parse()


class _Parser:
    def __init__(self, file: StoredFile) -> None:
        self._file = file
        self._at = 4
        self._version = file.read_near(0, 4)[3]

    def parse(self) -> Header:
        records = self._number()
        streaming = records == (_STREAMING if self._version != 5 else 2**64 - 1)
        lengths = self._list(_DIMENSIONS, "dimensions", self._dimension)
        endless = [name for name, length in lengths if length == 0]
        if len(endless) > 1:
            raise self._wrong(f"{len(endless)} dimensions are unlimited, {endless[0]!r} and {endless[1]!r} among them")
        attributes = dict(self._list(_ATTRIBUTES, "attributes", self._attribute))
        found = self._list(_VARIABLES, "variables", self._variable)
        unlimited = next((i for i, (_, length) in enumerate(lengths) if length == 0), None)
        sizes = []
        for name, ids, _, kind, _ in found:
            if any(i >= len(lengths) for i in ids):
                raise self._wrong(f"its variable {name!r} has dimension {max(ids)}, and there are {len(lengths)}")
            if unlimited is not None and unlimited in ids[1:]:
                raise self._wrong(f"the unlimited dimension is not the first of its variable {name!r}")
            if unlimited is not None and ids[:1] == (unlimited,):
                sizes.append(prod(lengths[i][1] for i in ids[1:]) * kind.itemsize)
        record = sizes[0] if len(sizes) == 1 else sum(-(-size // 4) * 4 for size in sizes)
        if streaming:
            first = min((each[4] for each in found if each[1][:1] == (unlimited,)), default=0)
            records = (self._file.size - first) // record if record else 0
        dimensions = tuple(
            Dimension(name, records if i == unlimited else length, i == unlimited)
            for i, (name, length) in enumerate(lengths)
        )
        variables = tuple(
            Variable(name, tuple(dimensions[i] for i in ids), values, kind, begin)
            for name, ids, values, kind, begin in found
        )
        twice = [name for name, count in Counter(each.name for each in variables).items() if count > 1]
        if twice:
            raise self._wrong(f"two variables are called {twice[0]!r}")
        header = Header(dimensions, attributes, variables, record)
        self._check_places(header)
        return header

    def _check_places(self, header: Header) -> None:
        """Raise where elements lie outside of the file, in its header, or where others lie.

        The last record may lack its padding.
        """
        stored = [each for each in header.variables if 0 not in each.shape]
        for each in stored:
            count = each.shape[0] if each.in_records else 1
            end = each.begin + (count - 1) * (header.record if each.in_records else 0) + each.slab
            if end > self._file.size:
                raise CorruptionError(
                    f"{self._file} has {self._file.size} bytes, and its variable {each.name!r} ends at {end}: the file "
                    "is cut off, or damaged"
                )
        parts = [(each.begin, each.begin + each.slab, f"variable {each.name!r}") for each in stored]
        records = sorted(part for part, each in zip(parts, stored, strict=True) if each.in_records)
        others = [part for part, each in zip(parts, stored, strict=True) if not each.in_records]
        if records:
            start, count = records[0][0], next(each.shape[0] for each in stored if each.in_records)
            self._check_order([*records, (start + header.record, 0, "next record")])
            others.append((start, start + count * header.record, "first record"))
        self._check_order([(0, self._at, "header"), *sorted(others)])

    def _check_order(self, parts: Sequence[tuple[int, int, str]]) -> None:
        """Raise where one of the parts (begin, end, name) begins before that ahead of it ends."""
        for (_, end, name), (begin, _, other) in pairwise(parts):
            if begin < end:
                raise self._wrong(f"its {other} begins at {begin}, and its {name} ends at {end}")

    def _list(self, tag: int, what: str, parse: Any) -> list[Any]:
        found = self._integer(4)
        count = self._number()
        if found == 0 and count == 0:
            return []
        if found != tag:
            raise self._wrong(f"where its {what} are told there is {found}, not {tag}")
        if count > _MOST:
            raise self._wrong(f"it says that it has {count:,} {what}")
        return [parse() for _ in range(count)]

    def _dimension(self) -> tuple[str, int]:
        return self._name(), self._number()

    def _attribute(self) -> tuple[str, Any]:
        name, number = self._name(), self._integer(4)
        kind, count = self._type(number), self._number()
        data = self._bytes(count * kind.itemsize)
        if number == _CHAR:
            return name, data.rstrip(b"\0")
        values: npt.NDArray[Any] = np.frombuffer(data, kind)
        return name, values.astype(kind.newbyteorder("="))

    def _variable(self) -> tuple[str, tuple[int, ...], dict[str, Any], np.dtype[Any], int]:
        name, count = self._name(), self._number()
        if count > _MOST_DIMENSIONS:
            raise self._wrong(f"its variable {name!r} has {count:,} dimensions")
        ids = tuple(self._number() for _ in range(count))
        attributes = dict(self._list(_ATTRIBUTES, "attributes", self._attribute))
        kind = self._type(self._integer(4))
        self._number()  # the size, which may be too large to be told, and follows from the rest
        return name, ids, attributes, kind, self._integer(4 if self._version == 1 else 8)

    def _type(self, number: int) -> np.dtype[Any]:
        if number not in TYPES or (number > 6 and self._version != 5):
            raise self._wrong(f"there is no type {number}")
        return np.dtype(TYPES[number])

    def _name(self) -> str:
        data = self._bytes(self._number())
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError:
            raise self._wrong(f"the name {data!r} is not UTF-8") from None

    def _number(self) -> int:
        return self._integer(8 if self._version == 5 else 4)

    def _integer(self, size: int) -> int:
        return int.from_bytes(self._take(size), "big")

    def _bytes(self, count: int) -> bytes:
        """Return so many bytes, and pass over those that fill the last four."""
        if self._at + count > self._file.size:
            raise self._wrong(f"it says that {count:,} bytes follow")
        data = self._take(count)
        self._at += -count % 4
        return data

    def _take(self, count: int) -> bytes:
        data = self._file.read_near(self._at, count)
        if len(data) < count:
            raise self._wrong("the file ends in it")
        self._at += count
        return data

    def _wrong(self, why: str) -> CorruptionError:
        return CorruptionError(f"{self._file}: the header of NetCDF is wrong before byte {self._at}: {why}")


__all__ = ["SIGNATURES", "Dimension", "Header", "Variable", "read_header"]
