"""A Zarr Vectors level as neuroglancer sees it: documents, and tables of values by id, made when they are asked for."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from zardine.buffers import BytesLike, Ints
from zardine.vectors.exchange.precomputed.annotations import Index
from zardine.vectors.exchange.precomputed.numbers import is_number

Ids: TypeAlias = npt.NDArray[np.uint64]
Tell: TypeAlias = Callable[[str], None]
"""Called with each thing that the format cannot hold."""


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """Values of ids, in one folder."""

    index: Index
    ids: Ids
    """Ascending."""
    values: Callable[[Ints], Iterator[BytesLike]]
    """Gives the values of some rows of ``ids``, in their order."""
    nbytes: int
    """Of all values, about."""
    ending: str = ""
    """What follows the id in the names of files."""
    cells: Ints | None = None
    """``(N, axes)``: the cells that the ids are codes of, and files are named after."""

    def name(self, row: int) -> str:
        """Return the name of a value that is a file."""
        if self.cells is not None:
            return "_".join(map(str, self.cells[row].tolist()))
        return f"{int(self.ids[row])}{self.ending}"

    def row(self, name: str) -> int | None:
        """Return the row of the value that is called ``name``, or ``None``."""
        text = name.removesuffix(self.ending)
        if not name.endswith(self.ending) or not all(map(is_number, text.split("_"))):
            return None
        numbers = [int(each) for each in text.split("_")]
        if self.cells is not None:
            if len(numbers) != self.cells.shape[1]:
                return None
            same = np.flatnonzero((self.cells == np.array(numbers)).all(axis=1))
            return int(same[0]) if len(same) else None
        if len(numbers) != 1:
            return None
        row = int(np.searchsorted(self.ids, np.uint64(numbers[0])))
        return row if row < len(self.ids) and int(self.ids[row]) == numbers[0] else None

    def value(self, row: int) -> BytesLike:
        """Return one value."""
        return next(self.values(np.array([row])))


@dataclass(frozen=True, slots=True, eq=False)
class Contents:
    """All that is to be in a folder."""

    info: Callable[[Sequence[Table]], Mapping[str, Any]]
    """Gives the document for the tables, as they are stored."""
    tables: tuple[Table, ...]
    others: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Further documents, by their names."""

    def get(self, name: str) -> BytesLike | None:
        """Return the value that is called ``name``, of a folder without shards; ``None`` for none."""
        if name == "info":
            return as_bytes(self.info(self.tables))
        if name in self.others:
            return as_bytes(self.others[name])
        folder, _, last = name.rpartition("/")
        for table in self.tables:
            if table.index.key == (folder or "."):
                row = table.row(last)
                if row is not None:
                    return table.value(row)
        return None


def as_bytes(document: Mapping[str, Any]) -> bytes:
    """Return a document as JSON."""
    return json.dumps(document, allow_nan=False).encode()


def silent(text: str) -> None:
    """Tell nobody."""


__all__ = ["Contents", "Ids", "Table", "Tell", "as_bytes", "silent"]
