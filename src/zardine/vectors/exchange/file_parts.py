"""A file that is read part by part, in any order, and what was read of it: in a temporary file, or in a store."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any, Final, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from zardine.codecs.crc32c import crc32c
from zardine.errors import CorruptionError, DataError
from zardine.json_document import parse_json
from zardine.stores.base import Store
from zardine.stores.resolve import StoreLike
from zardine.tools.progress import Progress, Shares
from zardine.vectors.changing.creating import check_room
from zardine.vectors.content.arguments import checked_positions
from zardine.vectors.content.columns import Column, columns_of
from zardine.vectors.content.content import Columns
from zardine.vectors.content.parts import AT_ONCE, Values, Vertices
from zardine.vectors.format.ragged import bounds_of
from zardine.vectors.storing.vertex_spool import VertexSpool

Step: TypeAlias = Callable[[float], object]
"""Called with the share of a work that is done."""

_HEAD = struct.Struct("<IIQ")
"""Before a part: the checksum of what follows, its version, and how long its table is."""
_FORM = 1

LENGTHS: Final = ""
"""The name of the table that says how many vertices each line has: no attribute of a file is called so."""


@dataclass(frozen=True, slots=True, eq=False)
class Piece:
    """What was read of a file, under the names that the file has."""

    positions: npt.NDArray[Any]
    values: Values
    """Attributes of the vertices."""
    of_lines: Values = field(default_factory=dict)
    """Tables with a row for each line, which lie wholly in one piece."""


class Gathered(Vertices, Protocol):
    """All vertices of a file, in its order."""

    def rename(self, names: Mapping[str, str]) -> None:
        """Let attributes have other names: ``names`` gives for each new one, in order, the old one."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Whole:
    """All parts of a file."""

    vertices: Gathered
    of_lines: Values
    """Tables with a row for each line."""


class FileParts(Protocol):
    """A file, cut into parts of about so many vertices, each of which can be read by itself, in any process."""

    @property
    def count(self) -> int:
        """How many parts there are, one at least."""
        ...

    @property
    def vertices(self) -> int:
        """How many vertices there are."""
        ...

    @property
    def memory(self) -> int:
        """Bytes that it takes to read one, about."""
        ...

    @property
    def is_sequential(self) -> bool:
        """Whether another process would have to go through all of the file to read one."""
        ...

    @property
    def outline(self) -> Any:
        """JSON that spares other processes to go through the file, where that was needed to cut it; else ``None``."""
        ...

    def read(self, number: int) -> Piece:
        """Return a part.

        Raises :class:`~zardine.errors.DataError` where the file does not hold what it tells of.
        """
        ...

    def store(self, path: StoreLike, whole: Whole, options: Mapping[str, Any], step: Step, origin: str | None) -> None:
        """Write all parts, which were gathered, to a new store, and warn of what it cannot hold.

        ``origin`` is what the store is to say of where it comes from.
        """
        ...

    def close(self) -> None:
        """Let go what is kept open."""
        ...


def import_parts(parts: FileParts, path: StoreLike, options: Mapping[str, Any], progress: Progress | None) -> None:
    """Read a file part by part, and write it to a new store: what is read waits in a temporary file."""
    try:
        check_room(path, options.get("overwrite", False))
        steps = Shares(progress, 2)
        step, spool, of_lines = steps.part(), None, list[Values]()
        for number in range(parts.count):
            piece = parts.read(number)
            spool = VertexSpool(piece.positions.shape[1], options.get("dtype")) if spool is None else spool
            spool.add(piece.positions, as_columns(piece.values, len(piece.positions)))
            of_lines.append(piece.of_lines)
            step((number + 1) / parts.count)
        assert spool is not None
        parts.store(path, Whole(spool, _joined(of_lines)), options, steps.part(), None)
    finally:
        parts.close()


def _joined(tables: Sequence[Values]) -> Values:
    """Tables one behind the other. Raises :class:`~zardine.errors.DataError` where they are not alike."""
    likes = {tuple((name, each.dtype.kind, each.shape[1:]) for name, each in table.items()) for table in tables}
    if len(likes) > 1:
        raise DataError("pieces of one file have different attributes of lines")
    return {name: np.concatenate([table[name] for table in tables]) for name in tables[0]}


def as_columns(values: Values, count: int) -> Columns:
    """Attributes of a file as they are stored, under the names that the file has, whatever these are."""
    found = columns_of({f"{number}": each for number, each in enumerate(values.values())}, count, "vertices")
    return dict(zip(values, found.values(), strict=True))


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """A piece of a file: positions and attributes as they are stored."""

    positions: npt.NDArray[Any]
    columns: Columns
    of_lines: Values

    @classmethod
    def of(cls, piece: Piece, dtype: Any) -> Part:
        """Check what was read. ``dtype``: of positions, as a user says it."""
        columns = as_columns(piece.values, len(piece.positions))
        return cls(checked_positions(piece.positions, dtype), columns, piece.of_lines)

    def to_bytes(self) -> bytes:
        """Return it for :meth:`from_bytes`, with a checksum."""
        arrays = [self.positions, *(column.values for column in self.columns.values()), *self.of_lines.values()]
        names = [["", 2], *([name, 0] for name in self.columns), *([name, 1] for name in self.of_lines)]
        named = zip(names, arrays, strict=True)
        table = json.dumps([[*name, each.dtype.str, list(each.shape)] for name, each in named]).encode()
        body = [np.ascontiguousarray(each).data.cast("B") if each.size else b"" for each in arrays]
        data = b"".join([_HEAD.pack(0, _FORM, len(table)), table, *body])
        return crc32c(memoryview(data)[4:]).to_bytes(4, "little") + data[4:]

    @classmethod
    def from_bytes(cls, data: bytes, place: str) -> Part:
        """Return what :meth:`to_bytes` gave. Raises :class:`~zardine.errors.CorruptionError` for anything else."""
        try:
            checksum, form, length = _HEAD.unpack_from(data)
            if form != _FORM or crc32c(memoryview(data)[4:]) != checksum:
                raise ValueError("its checksum is another")
            end = _HEAD.size + length
            found: tuple[dict[str, npt.NDArray[Any]], ...] = {}, {}, {}
            table: Any = parse_json(data[_HEAD.size : end])
            for name, kind, text, shape in table:
                dtype, count = np.dtype(text), prod(shape)
                found[kind][name] = np.frombuffer(data, dtype, count, end).reshape(shape)
                end += count * dtype.itemsize
            positions = found[2][""]
            if end != len(data) or any(len(each) != len(positions) for each in found[0].values()):
                raise ValueError("its arrays do not fit together")
            return cls(positions, {name: Column(each) for name, each in found[0].items()}, found[1])
        except (KeyError, ValueError, TypeError, IndexError, struct.error, RecursionError) as error:
            raise CorruptionError(f"{place} is no part of an import: {error}") from None


class StoredParts:
    """Parts of a file that were read by jobs and lie in a store, gone through as :class:`Gathered`.

    Raises :class:`~zardine.errors.CorruptionError` for a part that is gone or damaged, also while it is gone through.
    """

    def __init__(self, store: Store, keys: list[str]) -> None:
        self._store, self._keys = store, keys
        first = self._part(0)
        self.rank, self.dtype = int(first.positions.shape[1]), first.positions.dtype
        self._like: dict[str, Column] = {name: column.take(slice(0, 0)) for name, column in first.columns.items()}
        self._types = [(column.values.dtype, column.row_shape) for column in first.columns.values()]
        self.count, corners, of_lines = 0, np.zeros((0, self.rank)), list[Values]()
        for number in range(len(keys)):
            part = self._part(number)
            types = [(column.values.dtype, column.row_shape) for column in part.columns.values()]
            if part.positions.dtype != self.dtype or types != self._types:
                raise DataError("pieces of one file have different attributes, or positions of different kinds")
            self.count += len(part.positions)
            of_lines.append({name: each.copy() for name, each in part.of_lines.items()})
            if len(part.positions):
                corners = np.stack(bounds_of(np.concatenate([corners, np.stack(bounds_of(part.positions))])))
        self._corners, self.of_lines = corners, _joined(of_lines)

    @property
    def columns(self) -> Columns:
        """The attributes, without values."""
        return self._like

    def corners(self) -> npt.NDArray[Any]:
        """The lowest and the highest corner."""
        return self._corners

    def rename(self, names: Mapping[str, str]) -> None:
        """Let attributes have other names: ``names`` gives for each new one, in order, the old one."""
        self._like = {name: self._like[old] for name, old in names.items()}

    def parts(self) -> Iterator[tuple[npt.NDArray[Any], Values]]:
        """Give positions and values, piece by piece."""
        for number in range(len(self._keys)):
            part = self._part(number)
            for start in range(0, len(part.positions), AT_ONCE):
                some = slice(start, start + AT_ONCE)
                values = [column.values[some] for column in part.columns.values()]
                yield part.positions[some], dict(zip(self._like, values, strict=True))

    def _part(self, number: int) -> Part:
        data = self._store.get(self._keys[number])
        place = f"{self._keys[number]} of {self._store}"
        if data is None:
            raise CorruptionError(f"{place} is gone")
        return Part.from_bytes(bytes(data), place)


__all__ = ["LENGTHS", "FileParts", "Gathered", "Part", "Piece", "Step", "StoredParts", "Whole"]
__all__ += ["as_columns", "import_parts"]
