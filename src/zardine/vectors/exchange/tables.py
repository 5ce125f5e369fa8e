"""Tables of points: files of columns, of which some are coordinates, read some rows at a time."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from zardine.errors import DataError, PlanError
from zardine.stores.resolve import StoreLike
from zardine.vectors.exchange.export_folder import PARTS_DOCUMENT, check_complete
from zardine.vectors.exchange.file_lists import FileList
from zardine.vectors.exchange.file_parts import FileParts, Piece, Step, Whole
from zardine.vectors.exchange.format_features import fates
from zardine.vectors.exchange.losses import bounds_of_nothing, storable, tell_of_metadata
from zardine.vectors.exchange.table_columns import (
    EMPTY,
    NONE,
    ROLES,
    TIMES,
    Facts,
    coordinate_columns,
    tell_of_columns,
)
from zardine.vectors.outside import tell_of_comments, warn
from zardine.vectors.points import write_spooled_points

_TABLE: Final = {
    "two_axes": "kept/kept",
    "four_axes": "kept/kept: an import names them all",
    "axis_names": "kept/kept: as names of columns",
    "units": "-/told",
    "precision": "kept/kept",
    "integers": "kept/kept",
    "floats": "kept/kept",
    "booleans": "kept/kept",
    "missing_integers": "told/-: as float64 and NaN; as text where one is above 2^53",
    "missing_booleans": "told/-: as 1.0, 0.0 and NaN",
    "vertex_attributes": "kept/kept",
    "object_attributes": "-/told",
    "ids": "-/kept: as the column 'object_id'",
    "groups": "-/told",
    "colours": "kept/kept: as any column",
    "crs": "-/told",
    "bounds": "-/told",
}
"""What comes of features in any table."""
CSV = fates(
    **_TABLE,
    text="kept/kept: an export tells where all of it looks like numbers, which it comes back as",
    times="kept/-: as text; coordinates as seconds since 1970-01-01, which is told",
    several_values="-/told: as columns name_0, name_1",
    missing_text="kept/kept: empty text is in quotes",
    metadata="-/told",
    comments="told/-: lines in front that begin with #",
)
ARROW = fates(
    **_TABLE,
    text="kept/kept",
    times="told/-: as text (ISO 8601); coordinates as seconds since 1970-01-01",
    several_values="told/told: as columns name_0, name_1; lists are left out",
    missing_text="kept/kept",
    metadata="told/told: of the file and of columns",
)

_SECONDS: Final = {"type": "time", "unit": "second"}
"""Of an axis of times."""
TABLE_OPTIONS: Final = (*ROLES, "delimiter")
"""The options of tables, which the writer of points does not have."""
_FIXED: Final = 64 * 2**20
"""Bytes that libraries take beside a block, about."""


class Table(Protocol):
    """A file of columns, cut into blocks of rows."""

    names: list[str]
    """Of the columns, as the file has them: some may be the same."""
    count: int
    """How many blocks there are, one at least."""
    memory: int
    """Bytes that it takes to read one, about."""
    comments: list[str]
    """Lines that are none of rows."""
    metadata: list[str]
    """Facts in the file that are not in a column."""

    @property
    def places(self) -> Any:
        """JSON that tells where blocks are, where the file does not say so."""
        ...

    def facts(self, block: int, column: int) -> Facts:
        """Return what is known of the values of a column in a block."""
        ...

    def values(self, block: int, column: int, facts: Facts) -> npt.NDArray[Any]:
        """Return the values of a column in a block; ``facts`` are of the whole column."""
        ...

    def numbers(self, block: int, column: int) -> npt.NDArray[Any]:
        """Return coordinates as floats, NaN where one is missing, or as ``datetime64`` in UTC.

        Raises :class:`~zardine.errors.DataError`, with the place, for what is neither a number nor a date.
        """
        ...

    def place(self, block: int, row: int) -> str:
        """Return what errors call a row."""
        ...


MakeTable: TypeAlias = Callable[[Path, Mapping[str, Any], int, Any], Table]
"""Is given a file, options, vertices of a block, and the places of blocks, where they are known."""


@dataclass(frozen=True)
class TableScheme:
    """What the rows of a table, or of several, become."""

    names: tuple[str, ...]
    coordinates: tuple[int, ...]
    columns: tuple[Facts, ...]
    dtype: str
    """Of positions."""
    rows: int
    left_out: int
    """Rows that lack a coordinate."""
    first: str
    """Where the first of these is."""

    def joined(self, other: TableScheme) -> TableScheme:
        """Return the scheme of these rows and those of another block."""
        columns = tuple(one.joined(two) for one, two in zip(self.columns, other.columns, strict=True))
        dtype = np.result_type(self.dtype, other.dtype).str
        rows, left_out = self.rows + other.rows, self.left_out + other.left_out
        return TableScheme(self.names, self.coordinates, columns, dtype, rows, left_out, self.first or other.first)

    @cached_property
    def attributes(self) -> dict[str, int]:
        """Which columns are attributes, by names of which none is there twice."""
        found: dict[str, int] = {}
        for at, name in enumerate(self.names):
            if at not in self.coordinates:
                while name in found:
                    name += "_"
                found[name] = at
        return found

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON."""
        columns = [each.to_json() for each in self.columns]
        places = {"names": list(self.names), "coordinates": list(self.coordinates), "columns": columns}
        return {**places, "dtype": self.dtype, "rows": self.rows, "left_out": self.left_out, "first": self.first}

    @classmethod
    def from_json(cls, found: Any) -> TableScheme:
        """Return what :meth:`to_json` gave. Raises ``ValueError``, ``TypeError`` or ``KeyError`` for anything else."""
        names, coordinates = tuple(map(str, found["names"])), tuple(map(int, found["coordinates"]))
        columns = tuple(map(Facts.from_json, found["columns"]))
        if (
            len(names) != len(columns)
            or not set(coordinates) <= set(range(len(names)))
            or found["dtype"] not in _FLOATS
        ):
            raise ValueError("its columns do not fit together")
        return cls(
            names, coordinates, columns, found["dtype"], int(found["rows"]), int(found["left_out"]), str(found["first"])
        )


_FLOATS: Final = (np.dtype("f4").str, np.dtype("f8").str)


class TableParts:
    """Tables of the same columns as :class:`~zardine.vectors.exchange.file_parts.FileParts`: each part is a block.

    A column that has no values, or integers in some blocks and floats in others, is seen as a whole, so that all of the
    tables is gone through first. Rows without a coordinate are left out, which is told.
    """

    def __init__(
        self, make: MakeTable, found: FileList, options: Mapping[str, Any], at_once: int, outline: Any = None
    ) -> None:
        files = found.files
        self._source, self._list = files[0], found
        try:
            places = [None] * len(files) if outline is None else outline["places"]
            self._tables = [make(file, options, at_once, own) for file, own in zip(files, places, strict=True)]
            self._scheme = self._look(options) if outline is None else TableScheme.from_json(outline["scheme"])
        except (ValueError, TypeError, KeyError) as error:
            if outline is None:
                raise
            raise PlanError(f"the plan does not fit {self._source} ({error}): plan the import anew") from None
        self._blocks = [(table, number) for table in self._tables for number in range(table.count)]
        self.count = len(self._blocks)

    def _look(self, options: Mapping[str, Any]) -> TableScheme:
        first = self._tables[0]
        found: TableScheme | None = None
        for file, table in zip(self._list.files, self._tables, strict=True):
            if list(table.names) != list(first.names):
                raise DataError(f"{file} has other columns than {self._source}: import such files by themselves")
            coordinates = coordinate_columns(table.names, options, file)
            for number in range(table.count):
                own = self._scheme_of(table, number, coordinates)
                found = own if found is None else found.joined(own)
        assert found is not None
        for at in found.coordinates:
            if found.columns[at].kind == NONE:
                raise DataError(f"{self._source}, column {found.names[at]!r}: some are numbers, and others dates")
        if found.rows == found.left_out > 0:
            raise DataError(f"{self._source} holds no positions: all {found.rows} rows lack a coordinate")
        return found

    @staticmethod
    def _scheme_of(table: Table, number: int, coordinates: Sequence[int]) -> TableScheme:
        positions, there, kinds = _positions(table, number, coordinates)
        columns = tuple(Facts(kinds[at]) if at in kinds else table.facts(number, at) for at in range(len(table.names)))
        left_out = int(np.count_nonzero(~there))
        first = table.place(number, int(np.argmin(there))) if left_out else ""
        return TableScheme(
            tuple(table.names), tuple(coordinates), columns, positions.dtype.str, len(there), left_out, first
        )

    @property
    def rows(self) -> int:
        """How many rows there are, those without coordinates among them."""
        return self._scheme.rows

    @property
    def vertices(self) -> int:
        """How many points there are."""
        return self._scheme.rows - self._scheme.left_out

    @property
    def memory(self) -> int:
        """Bytes that it takes to read a block, about."""
        return max(each.memory for each in self._tables) + _FIXED

    @property
    def outline(self) -> Any:
        """Where blocks are, and what the columns of all of them become."""
        return {"places": [each.places for each in self._tables], "scheme": self._scheme.to_json()}

    def read(self, number: int) -> Piece:
        """Return the points of a block."""
        table, block = self._blocks[number]
        scheme = self._scheme
        positions, there, _ = _positions(table, block, scheme.coordinates)
        values = {
            name: table.values(block, at, scheme.columns[at])[there]
            for name, at in scheme.attributes.items()
            if scheme.columns[at].form != NONE
        }
        return Piece(positions[there].astype(scheme.dtype), values)

    def store(self, path: StoreLike, whole: Whole, options: Mapping[str, Any], step: Step, origin: str | None) -> None:
        """Write all points, and warn of what is changed or left out."""
        scheme = self._scheme
        self._list.warn_of_others(self._source.parent, (PARTS_DOCUMENT,))
        if scheme.left_out:
            what = "rows without a coordinate are left out, the first:"
            warn(self._source, f"{scheme.left_out} {what} {scheme.first}")
        again = [name for name, at in scheme.attributes.items() if scheme.names[at] != name]
        for name in again:
            warn(self._source, f"a second column {scheme.names[scheme.attributes[name]]!r} is the attribute {name!r}")
        tell_of_columns(self._source, {name: scheme.columns[at].form for name, at in scheme.attributes.items()})
        tell_of_comments(self._source, [text for each in self._tables for text in each.comments])
        tell_of_metadata(self._source, list(dict.fromkeys(told for each in self._tables for told in each.metadata)))
        whole.rename(storable({name: name for name in whole.columns}, self._source))
        times = [at for at in scheme.coordinates if scheme.columns[at].kind == TIMES]
        for at in times:
            told = "seconds since 1970-01-01T00:00:00Z, in float64, which are exact to a microsecond"
            warn(self._source, f"times of the column {scheme.names[at]!r} are stored as {told}")
        axes = [{"name": scheme.names[at], **(_SECONDS if at in times else {})} for at in scheme.coordinates]
        given = {"axes": axes}
        stored = {name: each for name, each in options.items() if name not in TABLE_OPTIONS}
        more = {} if whole.count else bounds_of_nothing(self._source, options, len(scheme.coordinates))
        write_spooled_points(path, whole, {**given, **stored, **more}, step, origin)

    def close(self) -> None:
        """Nothing is kept open."""


def _positions(
    table: Table, number: int, coordinates: Sequence[int]
) -> tuple[npt.NDArray[np.floating[Any]], npt.NDArray[np.bool_], dict[int, str]]:
    """The positions of a block, for which of its rows they are there, and what the columns of coordinates hold."""
    given = {each: table.numbers(number, each) for each in coordinates}
    columns = [_seconds(values) if values.dtype.kind == "M" else values for values in given.values()]
    kinds = {
        at: EMPTY if np.isnan(values).all() else TIMES if values.dtype.kind == "M" else values.dtype.str
        for at, values in given.items()
    }
    positions = np.stack(columns, axis=1)
    there = ~np.isnan(positions).any(axis=1)
    for column, values in zip(coordinates, columns, strict=True):
        endless = np.isinf(values)
        if endless.any():
            row = table.place(number, int(np.argmax(endless)))
            raise DataError(f"{row}, column {table.names[column]!r}: a coordinate is infinite")
    return positions, there, kinds


def _seconds(times: npt.NDArray[np.datetime64]) -> npt.NDArray[np.float64]:
    """Seconds since 1970, NaN for none."""
    whole = times.astype("M8[s]")
    rest = (times - whole).astype("m8[ns]").astype(np.float64) / 1e9
    return np.where(np.isnat(times), np.nan, whole.astype(np.int64) + rest)


def table_parts(endings: Collection[str], make: MakeTable) -> Callable[..., FileParts]:
    """Return what opens a table, or a folder of such as one, its files one behind the other."""

    def opened(source: Path, options: Mapping[str, Any], at_once: int, outline: Any = None) -> FileParts:
        if source.is_dir():
            check_complete(source)
        return TableParts(make, FileList.of(source, endings, 1), options, at_once, outline)

    return opened


__all__ = ["TABLE_OPTIONS", "Table", "TableParts", "TableScheme", "table_parts"]
