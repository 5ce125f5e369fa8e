"""GeoParquet by its row groups: files of points, or of lines, through pyarrow."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from zardine.errors import DataError, UnsupportedError
from zardine.json_document import parse_json
from zardine.stores.resolve import StoreLike
from zardine.vectors.exchange.feature_parts import FeatureParts, coordinates
from zardine.vectors.exchange.features import (
    EXACT,
    column_of_series,
    store_features,
)
from zardine.vectors.exchange.file_parts import LENGTHS, FileParts, Piece, Step, Whole
from zardine.vectors.exchange.losses import metadata_in, reading, tell_of_metadata, tell_of_missing, tell_of_times
from zardine.vectors.outside import needing, warn

_KINDS: Final = {"Point": 0, "LineString": 1}
"""Numbers of GEOS, by what the file calls its geometries."""
_INTEGERS, _FLAGS, _TIMES = "integers that may be missing", "truth values that may be missing", "times"
_UNNAMED: Final = "__index_level_"
"""How the column of an index without a name is called."""
_FIXED: Final = 64 * 2**20
"""Bytes that reading takes beside a row group, about."""
_OF_A_SHAPE: Final = 300
"""Bytes that a geometry takes while it is read, beside its coordinates, about."""


class ParquetParts:
    """A Parquet file as :class:`~zardine.vectors.exchange.file_parts.FileParts`: each part is a row group.

    Raises :class:`~zardine.errors.UnsupportedError` for a file that has to be seen as a whole before it can be told
    what it becomes: with geometries of several kinds, polygons, missing integers of which some are above 2**53, named
    indexes, or columns that are neither numbers, truth values, text nor dates.
    """

    outline: Any = None

    def __init__(self, source: Path, options: Mapping[str, Any], at_once: int, outline: None = None) -> None:
        self._source = source
        with needing(source):
            self._parquet: Any = import_module("pyarrow.parquet")
            self._types: Any = import_module("pyarrow.types")
            self._shapely: Any = import_module("shapely")
        with reading(source), self._parquet.ParquetFile(source) as file:
            self._groups = [file.metadata.row_group(number) for number in range(file.metadata.num_row_groups)]
            self._own = self.rows = int(file.metadata.num_rows)
            schema = file.schema_arrow
        self._metadata = metadata_in(schema)
        about = self._table(schema.metadata, b"geo")
        self._geometry = str(about.get("primary_column"))
        column = (about.get("columns") or {}).get(self._geometry)
        column = column if isinstance(column, Mapping) else {}
        types = column.get("geometry_types")
        if not isinstance(types, list) or len(types) != 1 or column.get("encoding") != "WKB":
            raise UnsupportedError(f"{source} has geometries of several kinds, or in another form than WKB")
        kind, _, more = str(types[0]).partition(" ")
        if kind not in _KINDS or more not in ("", "Z"):
            raise UnsupportedError(f"{source} has geometries of the kind {types[0]!r}")
        self._kind, self._has_z, self._crs = kind, more == "Z", column.get("crs", "OGC:CRS84")
        self._has_m = self._first_has_m()
        if kind == "Point" and "geometry_type" in options:
            raise TypeError("geometry_type is of lines: leave it out for points")
        self._columns = self._columns_in(schema)

    def _first_has_m(self) -> bool:
        """Whether the first geometry has a measure (M), of which the metadata do not tell."""
        with reading(self._source), self._parquet.ParquetFile(self._source) as file:
            for some in file.iter_batches(batch_size=1024, columns=[self._geometry]):
                there = some.column(0).drop_null()
                if len(there):
                    return bool(self._shapely.has_m(self._shapely.from_wkb(there[:1].to_pylist()))[0])
        return False

    def _table(self, metadata: Mapping[bytes, bytes] | None, name: bytes) -> Mapping[str, Any]:
        try:
            found = parse_json((metadata or {}).get(name, b"{}"))
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            raise UnsupportedError(f"the metadata {name.decode()!r} of {self._source} are no table")
        return found

    def _columns_in(self, schema: Any) -> dict[str, str]:
        """What each column but the geometry and unnamed indexes is: numbers, such that may be missing, text, times."""
        indexes = self._table(schema.metadata, b"pandas").get("index_columns") or []
        hidden = [each for each in indexes if isinstance(each, str) and each.startswith(_UNNAMED)]
        plain = [each for each in indexes if isinstance(each, dict) and each.get("name") is None]
        names = [each for each in schema.names if each != self._geometry and each not in hidden]
        if len(hidden) + len(plain) != len(indexes) or len(set(schema.names)) != len(schema.names):
            raise UnsupportedError(f"{self._source} has an index with a name, or two columns of one name")
        return {name: self._kind_of(name, schema.field(name).type) for name in names}

    def _kind_of(self, name: str, dtype: Any) -> str:
        types = self._types
        if types.is_float32(dtype) or types.is_float64(dtype):
            return "numbers"
        if types.is_integer(dtype) or types.is_boolean(dtype):
            found = [self._statistics(group, name) for group in self._groups]
            if all(each is not None and each.has_null_count and not each.null_count for each in found):
                return "numbers"
            if types.is_boolean(dtype) or all(each is not None and self._is_exact(each) for each in found):
                misses = any(map(self._misses, found))
                return "numbers" if not misses else _FLAGS if types.is_boolean(dtype) else _INTEGERS
            raise UnsupportedError(f"numbers are missing in the column {name!r} of {self._source}")
        plain = dtype.value_type if types.is_dictionary(dtype) else dtype
        if types.is_timestamp(plain) or types.is_date(plain):
            return _TIMES
        if types.is_string(plain) or types.is_large_string(plain):
            return "text"
        raise UnsupportedError(f"the column {name!r} of {self._source} holds neither numbers, text nor dates")

    @staticmethod
    def _statistics(group: Any, name: str) -> Any:
        columns = (group.column(number) for number in range(group.num_columns))
        return next((each.statistics for each in columns if each.path_in_schema == name), None)

    @staticmethod
    def _misses(found: Any) -> bool:
        return found is None or not found.has_null_count or bool(found.null_count)

    @staticmethod
    def _is_exact(found: Any) -> bool:
        """Whether float64 holds all integers of a column of a row group, as its statistics tell."""
        if found.has_null_count and found.num_values == 0:
            return True
        return bool(found.has_min_max) and max(abs(int(found.min)), abs(int(found.max))) < EXACT

    @property
    def count(self) -> int:
        """How many row groups there are."""
        return len(self._groups)

    @property
    def vertices(self) -> int:
        """How many there are at least: one for each row."""
        return self._own

    @property
    def memory(self) -> int:
        """Bytes that it takes to read a row group."""
        sizes = (6 * int(group.total_byte_size) + _OF_A_SHAPE * int(group.num_rows) for group in self._groups)
        return max(sizes, default=0) + _FIXED

    def read(self, number: int) -> Piece:
        """Return the features of a row group that have a geometry."""
        with reading(self._source), self._parquet.ParquetFile(self._source) as file:
            table = file.read_row_group(number, columns=[self._geometry, *self._columns])
            shapes = self._shapely.from_wkb(table.column(self._geometry).to_numpy())
        there = ~(self._shapely.is_missing(shapes) | self._shapely.is_empty(shapes))
        shapes = shapes[there]
        kinds, depths = self._shapely.get_type_id(shapes), self._shapely.has_z(shapes)
        same = (kinds == _KINDS[self._kind]) & (depths == self._has_z) & (self._shapely.has_m(shapes) == self._has_m)
        if not same.all():
            raise UnsupportedError(f"{self._source} has other geometries than its metadata tell of")
        with reading(self._source):
            values = {name: self._values(table.column(name), kind)[there] for name, kind in self._columns.items()}
        positions, measures = coordinates(shapes, has_z=self._has_z, has_m=self._has_m, names=values)
        if self._kind == "Point":
            return Piece(positions, {**values, **measures})
        lengths = np.asarray(self._shapely.get_num_points(shapes), np.int64)
        return Piece(positions, measures, {LENGTHS: lengths, **values})

    def _values(self, column: Any, kind: str) -> npt.NDArray[Any]:
        if kind in ("text", _TIMES):
            return np.asarray(column_of_series(column.to_pandas()))
        if kind == "numbers":
            return np.asarray(column.to_numpy())
        as_numbers = column.cast("int8") if kind == _FLAGS else column
        return np.asarray(as_numbers.cast("float64").to_numpy(), np.float64)

    def store(self, path: StoreLike, whole: Whole, options: Mapping[str, Any], step: Step, origin: str | None) -> None:
        """Write all features, and warn of those that have no geometry."""
        missing = self.rows - (whole.count if self._kind == "Point" else len(whole.of_lines[LENGTHS]))
        if missing:
            warn(self._source, f"{missing} features without a geometry are left out")
        if missing == self.rows:
            raise DataError(f"{self._source} holds no positions: there is no feature with a geometry")
        integers, flags, times = (
            [name for name, kind in self._columns.items() if kind == wanted] for wanted in (_INTEGERS, _FLAGS, _TIMES)
        )
        tell_of_missing(self._source, integers, flags)
        tell_of_times(self._source, times)
        tell_of_metadata(self._source, self._metadata)
        given: dict[str, Any] = {"crs": None}
        if self._crs is not None:
            with reading(self._source):
                given["crs"] = {"wkt": import_module("pyproj").CRS.from_user_input(self._crs).to_wkt()}
        store_features(path, self._source, whole, {**given, **options}, step, origin)

    def close(self) -> None:
        """Nothing is kept open."""


def parquet_parts(source: Path, options: Mapping[str, Any], at_once: int, outline: None = None) -> FileParts:
    """Return the row groups of a file, or all of it as one part where it has to be seen as a whole."""
    try:
        found = ParquetParts(source, options, at_once)
    except UnsupportedError:
        found = None
    return found if found is not None and found.rows else FeatureParts(source, options, at_once)


__all__ = ["ParquetParts", "parquet_parts"]
