"""A file that is read part by part, in any order, and what was read of it: in a temporary file, or in a store."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
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
from zardine.vectors.content.columns import Column, columns_of, recoded
from zardine.vectors.content.content import Columns
from zardine.vectors.content.parts import AT_ONCE, ENDS, Values
from zardine.vectors.format.ragged import bounds_of
from zardine.vectors.storing.spools import Spool, SpooledBlobs

Step: TypeAlias = Callable[[float], object]
"""Called with the share of a work that is done."""

_HEAD = struct.Struct("<IIQ")
"""Before a part: the checksum of what follows, its version, and how long its table is."""
FORM: Final = 2
"""The version of parts."""

LENGTHS: Final = ""
"""The name of the table that says how many vertices each line has: no attribute of a file is called so."""
_VERTICES, _LINES, _POSITIONS, _LINKS = range(4)


@dataclass(frozen=True, slots=True, eq=False)
class Piece:
    """What was read of a file, under the names that the file has."""

    positions: npt.NDArray[Any]
    values: Values
    """Attributes of the vertices."""
    of_lines: Values = field(default_factory=dict)
    """Tables with a row for each line, or other object, which lie wholly in one piece."""
    links: Values = field(default_factory=dict)
    """Tables with a row for each edge or face; :data:`ENDS` are rows of the vertices of the piece."""
    about: Mapping[str, Any] = field(default_factory=dict)
    """What is known of the whole, of a file that is one piece: JSON."""


class PartDamagedError(CorruptionError):
    """A part that was read and kept is gone or damaged: it can be read again."""


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


class FolderParts(FileParts, Protocol):
    """A folder of values, in any store."""

    @property
    def nbytes(self) -> int:
        """Bytes of all values, about."""
        ...

    @property
    def seen(self) -> str:
        """A digest of what was seen of it: documents, names and versions of values where they can be listed."""
        ...


def import_parts(
    parts: FileParts, name: str, path: StoreLike, options: Mapping[str, Any], progress: Progress | None
) -> None:
    """Read the file ``name`` part by part, and write it to a new store: what is read waits in a temporary file."""
    try:
        check_room(path, options.get("overwrite", False))
        steps = Shares(progress, 2)
        step, spooled = steps.part(), SpooledBlobs(Spool())
        whole = Whole(lambda number: Part.from_bytes(spooled[number], f"part {number}"))
        for number in range(parts.count):
            part = Part.of(parts.read(number), options.get("dtype"), f"{name}, part {number}")
            spooled.extend([part.to_bytes()])
            whole.add(part)
            step((number + 1) / parts.count)
        parts.store(path, whole, {name: each for name, each in options.items() if name != "dtype"}, steps.part(), None)
    finally:
        parts.close()


def as_columns(values: Values, count: int) -> Columns:
    """Attributes of a file as they are stored, under the names that the file has, whatever these are."""
    found = columns_of({f"{number}": each for number, each in enumerate(values.values())}, count, "vertices")
    return dict(zip(values, found.values(), strict=True))


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """A piece of a file: positions and attributes as they are stored."""

    positions: npt.NDArray[Any]
    columns: Columns
    of_lines: Columns
    links: Columns
    told: tuple[str, ...] = ()
    """Warnings about the file."""
    about: Mapping[str, Any] = field(default_factory=dict)
    """What is known of the whole."""

    @classmethod
    def of(cls, piece: Piece, dtype: Any, place: str, told: Sequence[str] = ()) -> Part:
        """Check what was read at a ``place``, which errors name. ``dtype``: of positions, as a user says it."""
        of_lines, links = (as_columns(table, _rows(table)) for table in (piece.of_lines, piece.links))
        columns = as_columns(piece.values, len(piece.positions))
        return cls(
            checked_positions(piece.positions, dtype, f"{place}: positions"),
            columns,
            of_lines,
            links,
            tuple(told),
            piece.about,
        )

    def to_bytes(self) -> bytes:
        """Return it for :meth:`from_bytes`, with a checksum."""
        found = [("", _POSITIONS, Column(self.positions))]
        for kind, columns in ((_VERTICES, self.columns), (_LINES, self.of_lines), (_LINKS, self.links)):
            found += [(name, kind, column) for name, column in columns.items()]
        arrays = [
            [name, kind, each.values.dtype.str, list(each.values.shape), each.categories, each.missing]
            for name, kind, each in found
        ]
        table = json.dumps({"arrays": arrays, "told": self.told, "about": self.about}).encode()
        body = [np.ascontiguousarray(each.values).data.cast("B") if each.values.size else b"" for _, _, each in found]
        data = b"".join([_HEAD.pack(0, FORM, len(table)), table, *body])
        return crc32c(memoryview(data)[4:]).to_bytes(4, "little") + data[4:]

    @classmethod
    def from_bytes(cls, data: bytes, place: str) -> Part:
        """Return what :meth:`to_bytes` gave. Raises :class:`PartDamagedError` for anything else."""
        try:
            checksum, form, length = _HEAD.unpack_from(data)
            if form != FORM or crc32c(memoryview(data)[4:]) != checksum:
                raise ValueError("its checksum is another")
            end = _HEAD.size + length
            found: tuple[dict[str, Column], ...] = {}, {}, {}, {}
            table: Any = parse_json(data[_HEAD.size : end])
            for name, kind, text, shape, categories, missing in table["arrays"]:
                dtype, count = np.dtype(text), prod(shape)
                values = np.frombuffer(data, dtype, count, end).reshape(shape)
                found[kind][name] = Column(values, None if categories is None else tuple(categories), missing)
                end += count * dtype.itemsize
            positions = found[_POSITIONS][""].values
            ends = found[_LINKS][ENDS].values if found[_LINKS] else np.zeros((0, 2), np.int64)
            lengths = {kind: {len(each.values) for each in found[kind].values()} for kind in (_LINES, _LINKS)}
            if (
                end != len(data)
                or any(len(each.values) != len(positions) for each in found[_VERTICES].values())
                or any(len(each) > 1 for each in lengths.values())
                or (len(ends) and not 0 <= int(ends.min()) <= int(ends.max()) < len(positions))
            ):
                raise ValueError("its arrays do not fit together")
            told, about = tuple(map(str, table["told"])), dict(table["about"])
            return cls(positions, found[_VERTICES], found[_LINES], found[_LINKS], told, about)
        except (KeyError, ValueError, TypeError, IndexError, struct.error, RecursionError) as error:
            raise PartDamagedError(f"{place} is no part of an import: {error}") from None


def _rows(table: Values) -> int:
    return len(next(iter(table.values()))) if table else 0


class Whole:
    """All parts of a file: its vertices, to be gone through in its order, and what is known of lines and links.

    ``take`` gives a part by its number. Each has to be added once before. Raises
    :class:`~zardine.errors.DataError` for parts that are not alike.
    """

    def __init__(self, take: Callable[[int], Part]) -> None:
        self._take = take
        self._first: Part | None = None
        self._texts: dict[tuple[int, str], tuple[set[str], bool]] = {}
        """Of each column of text: all texts, and whether some are missing."""
        self._of_lines: list[Columns] = []
        self._names: Mapping[str, str] | None = None
        self._link_names: Mapping[str, str] = {}
        self._before = [0]
        """Vertices before each part, and in all."""
        self._corners = np.zeros((0, 0))
        self.link_count = 0
        self.told: dict[str, None] = {}
        """Distinct warnings about the file."""
        self.about: Mapping[str, Any] = {}
        """What the first part knows of the whole."""

    @classmethod
    def stored(cls, store: Store, keys: Sequence[str]) -> Whole:
        """Return the parts that jobs have read, and that lie in a store.

        Raises :class:`PartDamagedError` for one that is gone or damaged, also while they are used.
        """

        def take(number: int) -> Part:
            data, place = store.get(keys[number]), f"{keys[number]} of {store}"
            if data is None:
                raise PartDamagedError(f"{place} is gone")
            return Part.from_bytes(bytes(data), place)

        found = cls(take)
        for number in range(len(keys)):
            found.add(take(number))
        return found

    def add(self, part: Part) -> None:
        """Note what the next part is like."""
        if self._first is None:
            none = slice(0, 0)
            taken = [
                {name: each.take(none) for name, each in columns.items()} for columns in (part.columns, part.links)
            ]
            self._first = Part(part.positions[:0].copy(), taken[0], {}, taken[1])
            self._corners, self.about = np.zeros((0, self.rank)), part.about
        first = self._first
        if part.positions.dtype != first.positions.dtype or part.positions.shape[1:] != first.positions.shape[1:]:
            raise DataError("pieces of one file have positions of different kinds")
        if _types(part.columns) != _types(first.columns) or _types(part.links) != _types(first.links):
            raise DataError("pieces of one file have different attributes")
        if self._of_lines and _types(part.of_lines) != _types(self._of_lines[0]):
            raise DataError("pieces of one file have different attributes of lines")
        for kind, columns in ((_VERTICES, part.columns), (_LINKS, part.links)):
            for name, column in columns.items():
                if column.categories is not None:
                    texts, misses = self._texts.get((kind, name), (set(), False))
                    texts.update(column.categories)
                    self._texts[kind, name] = texts, misses or column.missing is not None
        self._of_lines.append(_owned(part.of_lines))
        if len(part.positions):
            both = np.concatenate([self._corners, np.stack(bounds_of(part.positions))])
            self._corners = np.stack(bounds_of(both))
        self._before.append(self._before[-1] + len(part.positions))
        self.link_count += len(part.links[ENDS].values) if part.links else 0
        self.told |= dict.fromkeys(part.told)

    @property
    def _like(self) -> Part:
        if self._first is None:
            raise DataError("there are no parts")
        return self._first

    @property
    def count(self) -> int:
        """How many vertices there are."""
        return self._before[-1]

    @property
    def rank(self) -> int:
        """How many coordinates a position has."""
        return int(self._like.positions.shape[1])

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of positions."""
        return self._like.positions.dtype

    @property
    def columns(self) -> Columns:
        """The attributes, without values."""
        found = {name: self._as_stored(_VERTICES, name, each) for name, each in self._like.columns.items()}
        return found if self._names is None else {name: found[old] for name, old in self._names.items()}

    def rename(self, names: Mapping[str, str]) -> None:
        """Let attributes have other names: ``names`` gives for each new one, in order, the old one."""
        self._names = names

    def corners(self) -> npt.NDArray[Any]:
        """The lowest and the highest corner."""
        return self._corners

    def parts(self) -> Iterator[tuple[npt.NDArray[Any], Values]]:
        """Give positions and values, piece by piece."""
        for number in range(len(self._before) - 1):
            part = self._take(number)
            stored = {name: self._as_stored(_VERTICES, name, each).values for name, each in part.columns.items()}
            named = stored if self._names is None else {name: stored[old] for name, old in self._names.items()}
            for start in range(0, len(part.positions), AT_ONCE):
                some = slice(start, start + AT_ONCE)
                yield part.positions[some], {name: values[some] for name, values in named.items()}

    @property
    def of_lines(self) -> Values:
        """The tables with a row for each line."""
        names = self._of_lines[0] if self._of_lines else {}
        return {name: _joined([table[name].decoded() for table in self._of_lines]) for name in names}

    def rename_links(self, names: Mapping[str, str]) -> None:
        """Let attributes of links have other names: ``names`` gives for each new one, in order, the old one."""
        self._link_names = names

    @property
    def link_columns(self) -> Columns:
        """The tables with a row for each link, without values."""
        return self._links_of(self._like.links)

    def links(self) -> Iterator[Columns]:
        """Give the tables with a row for each link, piece by piece; :data:`ENDS` are rows of all vertices."""
        for number in range(len(self._before) - 1):
            links = self._take(number).links
            if links and len(links[ENDS].values):
                yield self._links_of({**links, ENDS: Column(links[ENDS].values + self._before[number])})

    def _links_of(self, links: Columns) -> Columns:
        chosen = self._link_names or {name: name for name in links if name != ENDS}
        ends = {ENDS: links[ENDS]} if links else {}
        return {**ends, **{name: self._as_stored(_LINKS, old, links[old]) for name, old in chosen.items()}}

    def _as_stored(self, kind: int, name: str, column: Column) -> Column:
        """A column of a part with the codes that text has in all of them."""
        if column.categories is None:
            return column
        texts, misses = self._texts[kind, name]
        return recoded(column, sorted(texts), misses)


def _types(columns: Columns) -> list[Any]:
    return [
        (name, "text" if each.categories is not None else each.values.dtype, each.row_shape)
        for name, each in columns.items()
    ]


def _owned(columns: Columns) -> Columns:
    """Columns that do not keep what they were read from in memory."""
    return {name: replace(each, values=each.values.copy()) for name, each in columns.items()}


def _joined(arrays: Sequence[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    if any(each.dtype.kind == "O" for each in arrays):  # of text, some of which is missing
        return np.concatenate([each.astype(object) for each in arrays])
    return np.concatenate(arrays)


__all__ = [
    "FORM",
    "LENGTHS",
    "FileParts",
    "FolderParts",
    "Part",
    "Piece",
    "Step",
    "Whole",
    "as_columns",
    "import_parts",
]
