"""Vertices that are gone through part by part: in memory, or anywhere else. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from zardine.buffers import Ints
from zardine.vectors.content.content import Columns
from zardine.vectors.format.grids import distinct_chunks_of
from zardine.vectors.format.ragged import bounds_of, find_rows, starts_of, unique_rows

AT_ONCE = 2**19
"""Vertices of a part, or of a block of cells."""

WHOLE = 2**22
"""Vertices that are planned all at once, if there are no more: that takes about 60 bytes for each, and less time."""

Values = Mapping[str, npt.NDArray[Any]]
"""Of attributes, by name."""

ABOVE = ""
"""The name of a column that says of each vertex of a skeleton how many before it its parent is; 0: it has none."""

OWNER = ""
"""The name of a column that says of each vertex of a graph or mesh the id of its object."""

ENDS = ""
"""The name of a column that says which vertices a link is between."""


class Vertices(Protocol):
    """Vertices with attributes, which can be gone through more than once."""

    @property
    def count(self) -> int:
        """How many there are."""
        ...

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of positions."""
        ...

    @property
    def rank(self) -> int:
        """How many coordinates a position has."""
        ...

    @property
    def columns(self) -> Columns:
        """The attributes, without values or with all of them: what they are like."""
        ...

    def corners(self) -> npt.NDArray[Any]:
        """The lowest and the highest corner, ``(2, D)``; ``(0, D)`` where there are no vertices."""
        ...

    def parts(self) -> Iterator[tuple[npt.NDArray[Any], Values]]:
        """Give positions, and values of attributes, in order, a limited number at a time."""
        ...


class LinksInParts(Protocol):
    """Edges or faces, which can be gone through more than once."""

    @property
    def link_columns(self) -> Columns:
        """What their columns are like; one of them is :data:`ENDS`."""
        ...

    def links(self) -> Iterator[Columns]:
        """Give all columns, in order, a limited number of rows at a time."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class VerticesInMemory:
    """Arrays as :class:`Vertices`."""

    positions: npt.NDArray[Any]
    columns: Columns
    known: tuple[npt.NDArray[Any], npt.NDArray[Any]] | None = None
    """The lowest and the highest corner, where they are known."""

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self.positions)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of positions."""
        return self.positions.dtype

    @property
    def rank(self) -> int:
        """How many coordinates a position has."""
        return int(self.positions.shape[1])

    def corners(self) -> npt.NDArray[Any]:
        """The lowest and the highest corner."""
        if not len(self.positions):
            return self.positions
        return np.stack(bounds_of(self.positions) if self.known is None else self.known)

    def parts(self) -> Iterator[tuple[npt.NDArray[Any], Values]]:
        """Give positions and values, some at a time."""
        for start in range(0, len(self.positions), AT_ONCE):
            some = slice(start, start + AT_ONCE)
            yield self.positions[some], {name: column.values[some] for name, column in self.columns.items()}


@dataclass(frozen=True, slots=True, eq=False)
class Inside:
    """Those of other :class:`Vertices` that are in a closed box."""

    vertices: Vertices
    box: tuple[tuple[float, ...], tuple[float, ...]]

    @property
    def count(self) -> int:
        """How many there are at most."""
        return self.vertices.count

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of positions."""
        return self.vertices.dtype

    @property
    def rank(self) -> int:
        """How many coordinates a position has."""
        return self.vertices.rank

    @property
    def columns(self) -> Columns:
        """The attributes."""
        return self.vertices.columns

    def corners(self) -> npt.NDArray[Any]:
        """The corners of the box."""
        return np.asarray(self.box)

    def parts(self) -> Iterator[tuple[npt.NDArray[Any], Values]]:
        """Give positions and values, some at a time."""
        for positions, values in self.vertices.parts():
            kept = ((positions >= self.box[0]) & (positions <= self.box[1])).all(axis=1)
            yield positions[kept], {name: each[kept] for name, each in values.items()}


@dataclass(frozen=True, slots=True, eq=False)
class Without:
    """Other :class:`Vertices` without one of their columns."""

    vertices: Vertices
    name: str

    @property
    def count(self) -> int:
        """How many there are."""
        return self.vertices.count

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of positions."""
        return self.vertices.dtype

    @property
    def rank(self) -> int:
        """How many coordinates a position has."""
        return self.vertices.rank

    @property
    def columns(self) -> Columns:
        """The other attributes."""
        return {name: each for name, each in self.vertices.columns.items() if name != self.name}

    def corners(self) -> npt.NDArray[Any]:
        """The lowest and the highest corner."""
        return self.vertices.corners()

    def parts(self) -> Iterator[tuple[npt.NDArray[Any], Values]]:
        """Give positions and values, some at a time."""
        for positions, values in self.vertices.parts():
            yield positions, {name: each for name, each in values.items() if name != self.name}


@dataclass(frozen=True, slots=True, eq=False)
class Blocks:
    """The chunks that vertices are in, cut into blocks of about as many vertices as a part has."""

    chunk_shape: tuple[float, ...]
    keys: Ints
    """Ascending: ``(C, K)``."""
    counts: Ints
    """Vertices in each chunk."""
    number: Ints
    """The block of each chunk, ascending from 0."""

    @property
    def count(self) -> int:
        """How many blocks there are."""
        return int(self.number[-1]) + 1 if len(self.number) else 0

    def cells_of(self, positions: npt.NDArray[Any]) -> Ints:
        """For each position the number of its chunk."""
        keys, number = distinct_chunks_of(positions, self.chunk_shape)
        return find_rows(self.keys, keys)[number]

    def of_block(self, block: int) -> slice:
        """The chunks of a block."""
        first, last = np.searchsorted(self.number, [block, block + 1]).tolist()
        return slice(first, last)


def blocks_of(vertices: Vertices, chunk_shape: tuple[float, ...]) -> Blocks:
    """Go through all vertices and find the chunks that they are in."""
    keys, counts = np.zeros((0, vertices.rank), np.int64), np.zeros(0, np.int64)
    waiting: list[tuple[Ints, Ints]] = []

    def joined() -> tuple[Ints, Ints]:
        found, number = unique_rows(np.concatenate([keys, *(each for each, _ in waiting)]))
        totals = np.concatenate([counts, *(each for _, each in waiting)])
        sums = np.zeros(len(found), np.int64)
        np.add.at(sums, number, totals)
        return found, sums

    for positions, _ in vertices.parts():
        found, number = distinct_chunks_of(positions, chunk_shape)
        waiting.append((found, np.bincount(number, minlength=len(found))))
        if sum(len(each) for each, _ in waiting) > max(AT_ONCE, len(keys)):
            keys, counts = joined()
            waiting.clear()
    keys, counts = joined()
    before = starts_of(counts)[:-1]
    number = unique_rows((before // AT_ONCE).reshape(-1, 1))[1]
    return Blocks(chunk_shape, keys, counts, number)


def loaded(vertices: Vertices) -> tuple[npt.NDArray[Any], Columns]:
    """Return all vertices at once: positions, and attributes."""
    if isinstance(vertices, VerticesInMemory):
        return vertices.positions, vertices.columns
    parts = list(vertices.parts())
    if not parts:
        none = {name: column.take(slice(0, 0)) for name, column in vertices.columns.items()}
        return np.zeros((0, vertices.rank), vertices.dtype), none
    positions = [each for each, _ in parts]
    columns = {
        name: replace(column, values=_joined([values[name] for _, values in parts]))
        for name, column in vertices.columns.items()
    }
    return _joined(positions), columns


def loaded_links(links: LinksInParts) -> tuple[Ints, Columns]:
    """Return all links at once: the vertices that they are between, ``(M, width)``, and their other columns."""
    like, parts = links.link_columns, list(links.links())
    found = {
        name: replace(each, values=_joined([part[name].values for part in parts])) if parts else each
        for name, each in like.items()
    }
    return found[ENDS].values.astype(np.int64, copy=False), {n: each for n, each in found.items() if n != ENDS}


def _joined(parts: Sequence[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def record_type(vertices: Vertices, *more: tuple[str, str]) -> np.dtype[Any]:
    """The type of a vertex with all its values: ``positions``, then the attributes by number, and ``more`` fields."""
    fields: list[Any] = [("positions", vertices.dtype.newbyteorder("="), (vertices.rank,))]
    for number, column in enumerate(vertices.columns.values()):
        fields.append((f"value {number}", column.values.dtype, column.row_shape))
    return np.dtype([*fields, *more])


def as_records(dtype: np.dtype[Any], positions: npt.NDArray[Any], values: Values) -> npt.NDArray[Any]:
    """Vertices as records; fields beyond positions and values stay to be filled."""
    records = np.empty(len(positions), dtype)
    records["positions"] = positions
    for number, each in enumerate(values.values()):
        records[f"value {number}"] = each
    return records


def from_records(records: npt.NDArray[Any], columns: Columns) -> tuple[npt.NDArray[Any], Columns]:
    """Positions and attributes of records; ``columns``: what these are like."""
    found = {
        name: replace(column, values=np.ascontiguousarray(records[f"value {number}"]))
        for number, (name, column) in enumerate(columns.items())
    }
    return np.ascontiguousarray(records["positions"]), found


__all__ = ["ABOVE", "AT_ONCE", "ENDS", "OWNER", "WHOLE", "Blocks", "Inside", "LinksInParts", "Values", "Vertices"]
__all__ += [
    "VerticesInMemory",
    "Without",
    "as_records",
    "blocks_of",
    "from_records",
    "loaded",
    "loaded_links",
    "record_type",
]
