"""Feather (a file of Arrow) and Parquet without geometries: tables of columns, through pyarrow."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from zardine.errors import DataError
from zardine.vectors.exchange.features import EXACT
from zardine.vectors.exchange.losses import metadata_in, reading
from zardine.vectors.exchange.table_columns import EMPTY, NONE, Facts, facts_of, plain, values_of
from zardine.vectors.outside import needing, warn

_COPIES: Final = 6
"""Bytes of arrays for each byte of a block, about."""
_HIDDEN: Final = "__index_level_"
"""How the column of an index of pandas without a name is called."""


class ArrowTable(ABC):
    """A file of columns of Arrow as :class:`~zardine.vectors.exchange.tables.Table`."""

    places: None = None
    memory: int
    count: int

    def __init__(self, source: Path, options: Mapping[str, Any], at_once: int, places: None = None) -> None:
        self._source, self.comments = source, list[str]()
        with needing(source):
            self._arrow: Any = import_module("pyarrow")
        with self._reading():
            schema, starts = self._look(at_once)
        names, self.metadata = list(schema.names), metadata_in(schema)
        self._starts = np.cumsum([0, *starts])
        self.count = len(starts)
        self._chosen = [at for at, name in enumerate(names) if not name.startswith(_HIDDEN)]
        self.names = [names[at] for at in self._chosen]
        self._kept: tuple[int, Any] | None = None

    @abstractmethod
    def _look(self, at_once: int) -> tuple[Any, list[int]]:
        """Return the schema, and the number of rows of each block. There is at least one block."""

    @abstractmethod
    def _read(self, block: int) -> Any:
        """Return the columns of a block as a table of Arrow."""

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Let what the library says become a :class:`~zardine.errors.DataError`: also of sizes beyond all memory."""
        try:
            with reading(self._source):
                yield
        except self._arrow.ArrowMemoryError as error:
            raise DataError(f"{self._source} is damaged, or too large for this machine: {error}") from None

    def place(self, block: int, row: int) -> str:
        """Return the file and the number of a row, from 0 on."""
        return f"{self._source}, row {int(self._starts[block]) + row}"

    def _column(self, block: int, column: int) -> Any:
        if self._kept is None or self._kept[0] != block:
            self._kept = None
            with self._reading():
                table = self._read(block)
                table.validate(full=True)
                self._kept = block, table
        table = self._kept[1]
        rows = int(self._starts[block + 1] - self._starts[block])
        if table.num_rows != rows or table.num_columns <= self._chosen[column]:
            raise DataError(f"{self._source} tells of {rows} rows, and holds {table.num_rows}: it is damaged")
        with reading(self._source):
            return plain(table.column(self._chosen[column]))

    def facts(self, block: int, column: int) -> Facts:
        """Return what is known of the values of a column in a block."""
        return facts_of(self._column(block, column))

    def values(self, block: int, column: int, facts: Facts) -> npt.NDArray[Any]:
        """Return the values of a column in a block."""
        return values_of(self._column(block, column), facts.form)

    def numbers(self, block: int, column: int) -> npt.NDArray[Any]:
        """Return coordinates: floats, or times."""
        values = self._column(block, column)
        facts = facts_of(values)
        name = self.names[column]
        if facts.kind == EMPTY:
            return np.full(len(values), np.nan)
        if self._arrow.types.is_timestamp(values.type) or self._arrow.types.is_date(values.type):
            return np.asarray(values.to_numpy(zero_copy_only=False))
        if facts.kind == NONE or np.dtype(facts.kind if facts.kind[0] in "<>|" else "O").kind not in "iuf":
            raise DataError(
                f"{self._source}, column {name!r}: coordinates are numbers or dates, and these are {values.type}"
            )
        if facts.large:
            warn(self._source, f"coordinates of the column {name!r} are rounded to float64: some are above {EXACT}")
        wanted = self._arrow.float32() if facts.kind == "<f4" else self._arrow.float64()
        return np.asarray(values.cast(wanted, safe=False).to_numpy(zero_copy_only=False))


class FeatherTable(ArrowTable):
    """A Feather file: each block is some of its batches."""

    def _look(self, at_once: int) -> tuple[Any, list[int]]:
        with self._arrow.memory_map(str(self._source)) as file:
            opened = self._arrow.ipc.open_file(file)
            sizes = [opened.get_batch(at).num_rows for at in range(opened.num_record_batches)]
            schema = opened.schema
        self._cuts, waiting = [0], 0
        for at, size in enumerate(sizes):
            if waiting and waiting + size > at_once:
                self._cuts.append(at)
                waiting = 0
            waiting += size
        self._cuts.append(len(sizes))
        rows = [sum(sizes[a:b]) for a, b in zip(self._cuts, self._cuts[1:], strict=False)]
        self.memory = _COPIES * self._source.stat().st_size * max(rows) // max(1, sum(rows))
        return schema, rows

    def _read(self, block: int) -> Any:
        with self._arrow.memory_map(str(self._source)) as file:
            opened = self._arrow.ipc.open_file(file)
            batches = [opened.get_batch(at) for at in range(*self._cuts[block : block + 2])]
            return self._arrow.Table.from_batches(batches, opened.schema)


class ParquetTable(ArrowTable):
    """A Parquet file: each block is a row group."""

    def _look(self, at_once: int) -> tuple[Any, list[int]]:
        with import_module("pyarrow.parquet").ParquetFile(self._source) as file:
            groups = [file.metadata.row_group(at) for at in range(file.metadata.num_row_groups)]
            schema = file.schema_arrow
        self.memory = _COPIES * max((int(each.total_byte_size) for each in groups), default=0)
        self._groups = len(groups)
        return schema, [int(each.num_rows) for each in groups] or [0]

    def _read(self, block: int) -> Any:
        with import_module("pyarrow.parquet").ParquetFile(self._source) as file:
            return file.read_row_group(block) if self._groups else file.schema_arrow.empty_table()


def is_plain_parquet(source: Path, endings: Collection[str] = (".parquet",)) -> bool:
    """Return whether a file, or the first of a folder, is Parquet without geometries of GeoParquet."""
    found = source
    if source.is_dir():
        there = sorted(each for each in source.iterdir() if each.suffix.lower() in endings)
        if not there:
            return False
        found = there[0]
    with needing(source), reading(source):
        metadata = import_module("pyarrow.parquet").read_schema(found).metadata
    return b"geo" not in (metadata or {})


__all__ = ["FeatherTable", "ParquetTable", "is_plain_parquet"]
