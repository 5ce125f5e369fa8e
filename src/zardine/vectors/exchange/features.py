"""GeoJSON, GeoPackage, Shapefile and Parquet: points and lines with attributes, through geopandas."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from zardine.errors import DataError
from zardine.stores.resolve import StoreLike
from zardine.vectors.exchange.file_parts import LENGTHS, Piece, Step, Whole
from zardine.vectors.exchange.losses import reading, storable
from zardine.vectors.outside import needing, warn
from zardine.vectors.points import write_spooled_points
from zardine.vectors.polylines import write_spooled_lines

_VERTEX = 24
"""Bytes of a vertex in a file, about."""
_COPIES = 20
"""Bytes of objects and arrays for each byte of a file, about."""
_FIXED = 64 * 2**20
"""Bytes that the libraries take, about."""
NOTHING = "so that nothing tells whether it is of points or of lines; vectors.create makes an empty store"
EXACT = 2**53
"""Up to here, float64 holds all integers."""


class FeatureParts:
    """A file of features as :class:`~zardine.vectors.exchange.file_parts.FileParts`: a single part.

    Points, or lines; polygons become their outlines, closed lines: the outer one first, then those of holes. Each part
    of a feature gets all of its attributes; where features have several, ``feature`` says which one. Columns of the
    index of a Parquet file become attributes if they have names. Integers beside missing values are text where float64
    does not hold them.
    """

    count, outline = 1, None

    def __init__(self, source: Path, options: Mapping[str, Any], at_once: int, outline: None = None) -> None:
        self._source = source
        self._size = source.stat().st_size

    @property
    def vertices(self) -> int:
        """How many there are, about."""
        return self._size // _VERTEX

    @property
    def memory(self) -> int:
        """Bytes that it takes to read the file, about: as objects of geopandas, and as arrays."""
        return _COPIES * self._size + _FIXED

    def read(self, number: int) -> Piece:
        """Return all of it."""
        return _whole(self._source)

    def store(self, path: StoreLike, whole: Whole, options: Mapping[str, Any], step: Step, origin: str | None) -> None:
        """Write all features."""
        store_features(path, self._source, whole, {**whole.about, **options}, step, origin)

    def close(self) -> None:
        """Nothing is kept open."""


def store_features(
    path: StoreLike, source: Path, whole: Whole, options: Mapping[str, Any], step: Step, origin: str | None
) -> None:
    """Write lines, if there is a table of their lengths, or else points."""
    of_lines = whole.of_lines
    if LENGTHS not in of_lines:
        whole.rename(storable({name: name for name in whole.columns}, source))
        write_spooled_points(path, whole, options, step, origin)
        return
    columns = storable({name: each for name, each in of_lines.items() if name != LENGTHS}, source)
    given = {"geometry_type": "polyline", "object_attributes": columns, **options}
    write_spooled_lines(path, whole, of_lines[LENGTHS], given, step, origin)


def _whole(source: Path) -> Piece:
    table = _table(source)
    parts = [(row, part) for row, shape in enumerate(table.geometry) for part in _parts(shape)]
    missing = len(table) - len({row for row, _ in parts})
    if missing:
        warn(source, f"{missing} features without a geometry are left out")
    if not parts:
        raise DataError(f"{source} holds no positions: there is no feature with a geometry, {NOTHING}")
    kinds = {part.geom_type for _, part in parts}
    if "Point" in kinds and len(kinds) > 1:
        raise DataError(f"{source} holds {', '.join(sorted(kinds))}: a store holds points, or lines and outlines")
    if len({bool(part.has_z) for _, part in parts}) > 1:
        raise DataError(f"{source} holds positions of two and of three coordinates: a store holds one of them")
    if "Polygon" in kinds:
        warn(source, "polygons are stored as their outlines, which are closed lines")
    if any(getattr(part, "has_m", False) for _, part in parts):
        warn(source, "measures (M) of positions are left out")
    shapes = [(row, ring) for row, part in parts for ring in _rings(part)]
    rows = np.array([row for row, _ in shapes], np.int64)
    columns = {}
    exact = _rounded(table, source)
    for name in table.columns:
        if name == table.geometry.name:
            continue
        values = _large(exact.get(name, table[name]))
        if values is not None:
            warn(source, f"the attribute {name!r} is stored as text: values are missing, and some are above 2**53")
        else:
            values = column_of_series(table[name])
        if values is not None:
            columns[name] = values[rows]
        else:
            warn(source, f"the attribute {name!r} is left out: its values are neither numbers, text nor dates")
    if len(np.unique(rows)) != len(rows) and "feature" not in columns:
        columns["feature"] = rows
    about = {"crs": None if table.crs is None else {"wkt": table.crs.to_wkt()}}
    width = 3 if any(part.has_z for _, part in parts) else 2
    lines = [np.array(each.coords, np.float64)[:, :width] for _, each in shapes]
    positions = np.concatenate(lines) if lines else np.zeros((0, width))
    if kinds <= {"Point"}:
        return Piece(positions, columns, about=about)
    lengths = np.array([len(each) for each in lines], np.int64)
    return Piece(positions, {}, {LENGTHS: lengths, **columns}, about=about)


def _table(source: Path) -> Any:
    """The features of a file, with the named columns of its index as columns."""
    with needing(source):
        import geopandas
    with reading(source):
        table = geopandas.read_parquet(source) if source.suffix.lower() == ".parquet" else geopandas.read_file(source)
    if not isinstance(table, geopandas.GeoDataFrame) or table.active_geometry_name is None:
        raise DataError(f"{source} holds no geometries")
    names = [name for name in table.index.names if name is not None]
    clash = [name for name in names if name in table.columns]
    if clash:
        warn(source, f"columns of the index are left out, as attributes are called so too: {clash}")
    return table.reset_index([name for name in names if name not in clash]) if len(names) > len(clash) else table


def _rounded(table: Any, source: Path) -> dict[Any, list[int | None]]:
    """What is in integer columns that the library has made float64 of, since values are missing, and rounded."""
    there = [name for name in table.columns if name != table.geometry.name]
    names = [name for name in there if str(table[name].dtype) == "float64" and _is_large(table[name].dropna())]
    if not names:
        return {}
    try:
        with reading(source):
            found = _integers(source, names)
    except (ImportError, DataError, OSError) as error:
        warn(source, f"whole numbers above 2**53 may be rounded in {names}: {error}")
        return {}
    return {name: values for name, values in found.items() if len(values) == len(table)}


def _is_large(values: Any) -> bool:
    return any(abs(each) >= EXACT for each in values)


def _integers(source: Path, names: list[Any]) -> dict[Any, list[int | None]]:
    """Those of the columns that are integers in the file, as it has them."""
    pyarrow = import_module("pyarrow")
    if source.suffix.lower() == ".parquet":
        parquet = import_module("pyarrow.parquet")
        there = set(parquet.read_schema(source).names)
        table = parquet.read_table(source, columns=[name for name in names if name in there])
    else:
        table = import_module("pyogrio").read_arrow(source, columns=names, read_geometry=False)[1]
    chosen = [name for name in names if name in table.column_names]
    return {name: table[name].to_pylist() for name in chosen if pyarrow.types.is_integer(table.schema.field(name).type)}


def _large(values: Any) -> Any:
    """Integers beside missing values as text, if some are above 2**53; otherwise ``None``."""
    if isinstance(values, list):
        absent = [each is None for each in values]
    elif getattr(values.dtype, "kind", "O") in "iu" and values.isna().any():
        absent = values.isna().tolist()
    else:
        return None
    whole = [None if no else int(each) for each, no in zip(values, absent, strict=True)]
    if not _is_large(each for each in whole if each is not None):
        return None
    return np.array([None if each is None else str(each) for each in whole], object)


def _parts(shape: Any) -> Iterator[Any]:
    """The points, lines and polygons that a geometry is made of."""
    if shape is None or shape.is_empty:
        return
    if hasattr(shape, "geoms"):
        for each in shape.geoms:
            yield from _parts(each)
    else:
        yield shape


def _rings(shape: Any) -> Iterator[Any]:
    if shape.geom_type == "Polygon":
        yield shape.exterior
        yield from shape.interiors
    else:
        yield shape


def column_of_series(series: Any) -> Any:
    """Values as numbers or text, missing ones as NaN or ``None``; ``None`` for what is neither."""
    absent = series.isna().to_numpy()
    kind = getattr(series.dtype, "kind", "O")
    if kind == "M":
        return np.array([None if no else each.isoformat() for each, no in zip(series, absent, strict=True)], object)
    if kind in "iuf" or (kind == "b" and not absent.any()):
        plain = series.to_numpy(np.float64, na_value=np.nan) if absent.any() and kind != "f" else series.to_numpy()
        return np.asarray(plain)
    if kind == "b":
        return series.to_numpy(np.float64, na_value=np.nan)
    values = [None if no else each for each, no in zip(series, absent, strict=True)]
    there = [each for each in values if each is not None]
    if all(isinstance(each, str) for each in there):
        return np.array(values, object)
    if all(isinstance(each, (bool, np.bool_)) for each in there):
        return np.array([np.nan if each is None else float(each) for each in values])
    if all(hasattr(each, "isoformat") for each in there):
        return np.array([None if each is None else each.isoformat() for each in values], object)
    return None
