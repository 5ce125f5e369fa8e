"""GeoJSON, GeoPackage, Shapefile and Parquet as parts of so many features, through geopandas.

What becomes of a file has to be seen as a whole: whether it holds points or lines, and whether a column of integers
lacks values, so that it is one of float64 or of text. A :class:`Scheme` says that. Of a file of several parts it is
made by going through all of them, once.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from zardine.errors import DataError, PlanError
from zardine.stores.resolve import StoreLike
from zardine.vectors.exchange.features import (
    EXACT,
    MEASURES,
    NOTHING,
    are_times,
    column_of_series,
    is_large,
    store_features,
)
from zardine.vectors.exchange.file_parts import LENGTHS, Piece, Step, Whole
from zardine.vectors.exchange.losses import metadata_in, reading, tell_of_metadata, tell_of_missing, tell_of_times
from zardine.vectors.exchange.targets import files_of_target
from zardine.vectors.exchange.whole_files import is_cut_off
from zardine.vectors.outside import needing, warn, warn_names

_VERTEX: Final = 24
"""Bytes of a vertex in a file, about."""
_COPIES: Final = 20
"""Bytes of objects and arrays for each byte of a file, about."""
_FIXED: Final = 64 * 2**20
"""Bytes that the libraries take, about."""
_SLICED: Final = (".gpkg", ".shp")
"""Files of which features can be read that are not the first ones, without reading all that are before them."""
_TEXT, _TIMES, _LARGE, _BIG, _NONE, _EMPTY = "text", "times", "large", "big", "none", "empty"
_INTEGERS, _FLAGS = "integers", "flags"
_FORMS: Final = (_TEXT, _TIMES, _LARGE, _BIG, _NONE, _EMPTY, _INTEGERS, _FLAGS)
_GEOMETRY: Final = "geometry"
_DATE: Final = "DBF_DATE_LAST_UPDATE"
_FID: Final = "fid"
"""The attribute that the ids of features become."""
_KINDS: Final = ("Point", "LineString", "LinearRing", "Polygon")


@dataclass(frozen=True)
class Scheme:
    """What features become."""

    kinds: frozenset[str]
    """Of the points, lines and polygons that geometries are made of."""
    depths: frozenset[bool]
    """Whether positions have three coordinates: of each that occurs."""
    measured: bool
    several: bool
    """Whether a feature has several of them, or of rings."""
    missing: int
    """Features without a geometry."""
    columns: Mapping[str, str]
    """For each column the type of numbers; or ``text``; ``times``, as text; ``big``, integers of 64 bits of which some
    are above 2**53; ``large``, those as text, since others are missing; ``integers`` and ``flags``, those as float64
    since others are missing; ``empty``, nothing but missing objects; ``none``, left out."""

    @classmethod
    def of(cls, table: Any, exact: Mapping[str, list[int | None]], declared: Mapping[str, str]) -> Scheme:
        """Return the scheme of some features; ``declared`` are the columns of integers, and of truth values."""
        parts = [list(_parts(shape)) for shape in table.geometry]
        flat = [each for some in parts for each in some]
        return cls(
            frozenset(each.geom_type for each in flat),
            frozenset(bool(each.has_z) for each in flat),
            any(each.has_m for each in flat),
            any(sum(1 for each in some for _ in _rings(each)) > 1 for some in parts),
            sum(1 for some in parts if not some),
            {
                name: _form(table[name], exact.get(name), declared.get(name))
                for name in table.columns
                if name != table.geometry.name
            },
        )

    def joined(self, other: Scheme) -> Scheme:
        """Return the scheme of these features and others of the same file."""
        return Scheme(
            self.kinds | other.kinds,
            self.depths | other.depths,
            self.measured or other.measured,
            self.several or other.several,
            self.missing + other.missing,
            {name: _joined(form, other.columns.get(name, _NONE)) for name, form in self.columns.items()},
        )

    def check(self, source: Path) -> None:
        """Raise :class:`~zardine.errors.DataError` for what no store can hold."""
        if not self.kinds:
            raise DataError(f"{source} holds no positions: there is no feature with a geometry, {NOTHING}")
        if "Point" in self.kinds and len(self.kinds) > 1:
            kinds = ", ".join(sorted(self.kinds))
            raise DataError(f"{source} holds {kinds}: a store holds points, or lines and outlines")
        if len(self.depths) > 1:
            raise DataError(f"{source} holds positions of two and of three coordinates: a store holds one of them")

    def tell(self, source: Path) -> None:
        """Warn of what is changed or left out."""
        if self.missing:
            warn(source, f"{self.missing} features without a geometry are left out")
        if "Polygon" in self.kinds:
            warn(source, "polygons are stored as their outlines, which are closed lines")
        tell_of_missing(source, *([name for name, each in self.columns.items() if each == form] for form in _AS_FLOATS))
        tell_of_times(source, [name for name, form in self.columns.items() if form == _TIMES])
        for name, form in self.columns.items():
            if form == _LARGE:
                warn(source, f"the attribute {name!r} is stored as text: values are missing, or no 64 bits hold them")
            elif form == _NONE:
                warn(source, f"the attribute {name!r} is left out: its values are neither numbers, text nor dates")

    def piece(self, table: Any, exact: Mapping[str, list[int | None]], before: int) -> Piece:
        """Return features, before which there are so many others."""
        shapes = [
            (row, ring) for row, shape in enumerate(table.geometry) for part in _parts(shape) for ring in _rings(part)
        ]
        rows = np.array([row for row, _ in shapes], np.int64)
        columns = {
            name: _values(table[name], exact.get(name), form)[rows]
            for name, form in self.columns.items()
            if form != _NONE
        }
        if self.several and "feature" not in columns:
            columns["feature"] = rows + before
        about = {"crs": None if table.crs is None else {"wkt": table.crs.to_wkt()}}
        rings = np.array([each for _, each in shapes], object)
        positions, measures = coordinates(rings, has_z=True in self.depths, has_m=self.measured, names=columns)
        if self.kinds <= {"Point"}:
            return Piece(positions, {**columns, **measures}, about=about)
        lengths = np.asarray(import_module("shapely").get_num_coordinates(rings), np.int64)
        return Piece(positions, measures, {LENGTHS: lengths, **columns}, about=about)

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON."""
        found = {"kinds": sorted(self.kinds), "depths": sorted(self.depths), "columns": dict(self.columns)}
        return {**found, "measured": self.measured, "several": self.several, "missing": self.missing}

    @classmethod
    def from_json(cls, found: Any) -> Scheme:
        """Return what :meth:`to_json` gave. Raises ``ValueError``, ``TypeError`` or ``KeyError`` for anything else."""
        columns = dict(found["columns"])
        for form in columns.values():
            if form not in _FORMS and np.dtype(str(form)).kind not in "biuf":
                raise ValueError(f"there are no columns of {form!r}")
        flags = [*found["depths"], found["measured"], found["several"]]
        if not all(isinstance(each, bool) for each in flags) or not set(found["kinds"]) <= set(_KINDS):
            raise ValueError("geometries are of other kinds")
        kinds, depths = frozenset(found["kinds"]), frozenset(found["depths"])
        return cls(kinds, depths, found["measured"], found["several"], int(found["missing"]), columns)


_AS_FLOATS: Final = (_INTEGERS, _FLAGS)


def coordinates(
    shapes: npt.NDArray[Any], *, has_z: bool, has_m: bool, names: Collection[str]
) -> tuple[npt.NDArray[np.float64], dict[str, npt.NDArray[np.float64]]]:
    """Return the positions of points or lines, and with ``has_m`` their measures as an attribute (NaN: none).

    The attribute is called ``m``, with as many ``_`` behind it as it takes to differ from ``names``.
    """
    shapely: Any = import_module("shapely")
    found = np.asarray(shapely.get_coordinates(shapes, include_z=has_z, include_m=has_m), np.float64)
    if not has_m:
        return found, {}
    name = MEASURES
    while name in names:
        name += "_"
    return np.ascontiguousarray(found[:, :-1]), {name: found[:, -1].copy()}


class FeatureParts:
    """A file of features as :class:`~zardine.vectors.exchange.file_parts.FileParts`.

    Points, or lines; polygons become their outlines, closed lines: the outer one first, then those of holes. Each part
    of a feature gets all of its attributes; where features have several, ``feature`` says which one. Measures (M) are
    the attribute ``m`` of vertices; ids of features, where they are more than numbers in their order, the attribute
    ``fid``. Columns of the index of a Parquet file become attributes if they have names. Integers beside missing values
    are text where float64 does not hold them. GeoPackage and Shapefile are read some features at a time, others as one
    part.
    """

    def __init__(self, source: Path, options: Mapping[str, Any], at_once: int, outline: Any = None) -> None:
        self._source = source
        files = [each for each in files_of_target(source) if each.exists()]
        for each in files:
            if each.is_file() and is_cut_off(each):  # GDAL gives features without a geometry, or without attributes
                raise DataError(f"{source} cannot be read: the end of {each.name} is missing")
        self._size = sum(each.stat().st_size for each in files)
        self._count, self.count = 0, 1
        wanted = -(-self._size // (at_once * _VERTEX))
        if source.suffix.lower() in _SLICED and wanted > 1:
            with needing(source):
                pyogrio = import_module("pyogrio")
            with reading(source):
                self._count = max(0, int(pyogrio.read_info(source)["features"]))
            self.count = max(1, min(wanted, self._count))
        self._rows = -(-self._count // self.count)
        self.count = max(1, -(-self._count // self._rows)) if self._rows else 1
        if outline is not None:
            try:
                self.__dict__["_scheme"] = Scheme.from_json(outline)
            except (ValueError, TypeError, KeyError) as error:
                raise PlanError(f"the plan does not fit {source} ({error}): plan the import anew") from None

    @property
    def vertices(self) -> int:
        """How many there are, about."""
        return self._size // _VERTEX

    @property
    def memory(self) -> int:
        """Bytes that it takes to read a part, about: as objects of geopandas, and as arrays."""
        return _COPIES * self._size // self.count + _FIXED

    @property
    def outline(self) -> Any:
        """What all features become, of a file of several parts; ``None`` for one that is one part."""
        return self._scheme.to_json() if self.count > 1 else None

    @cached_property
    def _scheme(self) -> Scheme:
        found: Scheme | None = None
        for number in range(self.count):
            table, exact = self._read(number)
            own = Scheme.of(table, exact, self._layer.declared)
            found = own if found is None else found.joined(own)
        assert found is not None
        found.check(self._source)
        return found

    @cached_property
    def _layer(self) -> Layer:
        return Layer.of(self._source)

    def _read(self, number: int) -> tuple[Any, dict[str, list[int | None]]]:
        """Some features, and what is exact of their integers."""
        rows = None if self.count == 1 else slice(number * self._rows, min(self._count, (number + 1) * self._rows))
        table = _table(self._source, rows, self._layer)
        if rows is not None and len(table) != rows.stop - rows.start:
            raise DataError(f"{self._source} tells of {self._count} features, and holds others: it is damaged")
        return table, _rounded(table, self._source, rows)

    def read(self, number: int) -> Piece:
        """Return some features."""
        table, exact = self._read(number)
        if self.count > 1:
            return self._scheme.piece(table, exact, number * self._rows)
        scheme = Scheme.of(table, exact, self._layer.declared)
        scheme.check(self._source)
        scheme.tell(self._source)
        self._layer.tell(self._source)
        return scheme.piece(table, exact, 0)

    def store(self, path: StoreLike, whole: Whole, options: Mapping[str, Any], step: Step, origin: str | None) -> None:
        """Write all features."""
        if self.count > 1:
            self._scheme.tell(self._source)
            self._layer.tell(self._source)
        store_features(path, self._source, whole, {**whole.about, **options}, step, origin)

    def close(self) -> None:
        """Nothing is kept open."""


@dataclass(frozen=True)
class Layer:
    """What a file says of its features as a whole."""

    declared: Mapping[str, str]
    """The columns of integers, and of truth values."""
    may_be_measured: bool
    """Whether geometries may have measures (M), which geopandas drops unless the file is one of Parquet."""
    fids: npt.NDArray[np.int64] | None
    """The ids of all features, where these are more than numbers in their order."""
    hidden: bool
    """Whether there is a column called as geopandas calls geometries."""
    others: tuple[str, ...]
    """The names of the layers that are not read, behind that of the one that is."""
    metadata: tuple[str, ...]
    """Facts in the file that are not features, or that features have beside their columns."""

    @classmethod
    def of(cls, source: Path) -> Layer:
        """Look at a file."""
        if source.suffix.lower() == ".parquet":
            with needing(source), reading(source):
                types: Any = import_module("pyarrow.types")
                fields = import_module("pyarrow.parquet").read_schema(source)
            integers = [each.name for each in fields if types.is_integer(each.type)]
            flags = [each.name for each in fields if types.is_boolean(each.type)]
            declared = dict.fromkeys(integers, _INTEGERS) | dict.fromkeys(flags, _FLAGS)
            return cls(declared, False, None, False, (), tuple(metadata_in(fields)))
        with needing(source):
            import_module("geopandas")
            pyogrio: Any = import_module("pyogrio")
        with reading(source), warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            info, layers = pyogrio.read_info(source), [str(name) for name, _ in pyogrio.list_layers(source)]
            fids = None
            if source.suffix.lower() != ".shp":  # they are numbers there
                found = np.asarray(pyogrio.raw.read(source, columns=[], read_geometry=False, return_fids=True)[1])
                is_count = len(found) and found[0] in (0, 1) and (np.diff(found) == 1).all()
                fids = None if not len(found) or is_count else found.astype(np.int64)
        kinds = dict(zip(info["fields"], info["dtypes"], strict=True))
        declared = {name: _INTEGERS if "int" in kind else _FLAGS for name, kind in kinds.items() if _is_whole(kind)}
        measured = info["geometry_type"] in (None, "Unknown") or any("Measured" in str(each.message) for each in said)
        others = tuple(layers) if len(layers) > 1 else ()
        said_of = {**(info["layer_metadata"] or {}), **(info["dataset_metadata"] or {})}
        metadata = [repr(name) for name, each in said_of.items() if each and name != _DATE]
        metadata += _foreign(source) if source.suffix.lower() == ".geojson" else []
        return cls(declared, measured, fids, "geometry" in kinds, others, tuple(dict.fromkeys(metadata)))

    def tell(self, source: Path) -> None:
        """Warn of what is left out."""
        warn_names(["geometry"] if self.hidden else [], source, "geometries are called so")
        if self.others:
            first, *others = self.others
            warn(source, f"of its layers {first!r} is read; left out: {', '.join(map(repr, others))}")
        tell_of_metadata(source, self.metadata)


_OF_GEOJSON: Final[Mapping[str, tuple[str, ...]]] = {
    "FeatureCollection": ("features", "name", "crs", "xy_coordinate_resolution", "xyz_coordinate_resolutions"),
    "Feature": ("id", "geometry", "properties"),
}
"""Members of objects of GeoJSON that are kept, or that GDAL writes of itself, beside ``type``, ``bbox``."""


def _foreign(source: Path) -> list[str]:
    """The members of objects in GeoJSON that GDAL passes over, and coordinates beyond the third."""
    document = _document(source)
    features = document.get("features")
    features = features if isinstance(features, list) else [document]
    found: dict[str, None] = {}
    for each in (document, *features, *(each.get("geometry") for each in features if isinstance(each, dict))):
        kind = each.get("type") if isinstance(each, dict) else None
        if not isinstance(kind, str):
            continue
        own = ("type", "bbox", *_OF_GEOJSON.get(kind, ("coordinates", "geometries")))
        found.update(dict.fromkeys(repr(name) for name in each if name not in own and name != "description"))
        if isinstance(each.get("id"), str) and "id" in (each.get("properties") or {}):
            found["ids of features that have a property 'id' too"] = None
        place = each.get("coordinates")
        while isinstance(place, list) and place and isinstance(place[0], list):
            place = place[0]
        if isinstance(place, list) and len(place) > 3:
            found["coordinates beyond the third"] = None
    return list(found)


def _document(source: Path) -> Mapping[str, Any]:
    """A file of GeoJSON; nothing for what GDAL reads and is none."""
    try:
        found = json.loads(source.read_bytes())
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _is_whole(kind: str) -> bool:
    return "int" in kind or "bool" in kind


def _table(source: Path, rows: slice | None, layer: Layer) -> Any:
    """Features of a file, with the named columns of its index as columns."""
    with needing(source):
        import geopandas
    with reading(source):
        if source.suffix.lower() == ".parquet":
            table = geopandas.read_parquet(source)
        else:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", "Measured|More than one layer", UserWarning)  # Layer.tell does
                table = geopandas.read_file(source) if rows is None else geopandas.read_file(source, rows=rows)
                if layer.may_be_measured and isinstance(table, geopandas.GeoDataFrame):
                    table = table.set_geometry(_geometries(source, rows, table.crs))
    if not isinstance(table, geopandas.GeoDataFrame) or table.active_geometry_name is None:
        raise DataError(f"{source} holds no geometries")
    twice = sorted(set(map(str, table.columns[table.columns.duplicated()])))
    if twice:
        raise DataError(f"{source} has several columns called {', '.join(map(repr, twice))}: give them other names")
    if layer.fids is not None:
        name = _FID
        while name in table.columns:
            name += "_"
        table[name] = layer.fids if rows is None else layer.fids[rows]
    names = [name for name in table.index.names if name is not None]
    clash = [name for name in names if name in table.columns]
    if clash:
        warn(source, f"columns of the index are left out, as attributes are called so too: {clash}")
    return table.reset_index([name for name in names if name not in clash]) if len(names) > len(clash) else table


def _slice(rows: slice | None) -> dict[str, int]:
    """Rows as options of pyogrio."""
    return {} if rows is None else {"skip_features": rows.start, "max_features": rows.stop - rows.start}


def _geometries(source: Path, rows: slice | None, crs: Any) -> Any:
    """Geometries of a file with their measures."""
    about, table = import_module("pyogrio").read_arrow(source, columns=[], **_slice(rows))
    column = table.column(about["geometry_name"] or "wkb_geometry")
    shapes = import_module("shapely").from_wkb(column.to_numpy())
    return import_module("geopandas").GeoSeries(shapes, crs=crs, name=_GEOMETRY)


def _rounded(table: Any, source: Path, rows: slice | None) -> dict[str, list[int | None]]:
    """What is in integer columns that the library has made float64 of, since values are missing, and rounded."""
    there = [name for name in table.columns if name != table.geometry.name]
    names = [name for name in there if str(table[name].dtype) == "float64" and is_large(table[name].dropna())]
    if not names:
        return {}
    try:
        with reading(source):
            found = _integers(source, names, rows)
    except (ImportError, DataError, OSError) as error:
        warn(source, f"whole numbers above 2**53 may be rounded in {names}: {error}")
        return {}
    if source.suffix.lower() == ".geojson":
        with reading(source):
            rounded = _rounded_in_json(source, [name for name in names if name not in found])
        if rounded:
            warn(source, f"whole numbers above 2**53 are rounded in {rounded}, which the library reads as float64")
    return {name: values for name, values in found.items() if len(values) == len(table)}


def _rounded_in_json(source: Path, names: list[Any]) -> list[Any]:
    """The columns with integers that float64 does not hold, which GDAL reads as such, below -10**18 for one."""
    features = _document(source).get("features") if names else None
    tables = [each.get("properties") or {} for each in features or () if isinstance(each, dict)]
    found = []
    for name in names:
        whole = (each[name] for each in tables if type(each.get(name)) is int)
        if any(abs(each) >= 2**1023 or (abs(each) >= EXACT and int(float(each)) != each) for each in whole):
            found.append(name)
    return found


def _integers(source: Path, names: list[Any], rows: slice | None) -> dict[Any, list[int | None]]:
    """Those of the columns that are integers in the file, as it has them."""
    pyarrow = import_module("pyarrow")
    if source.suffix.lower() == ".parquet":
        parquet = import_module("pyarrow.parquet")
        there = set(parquet.read_schema(source).names)
        table = parquet.read_table(source, columns=[name for name in names if name in there])
    elif source.suffix.lower() == ".shp":
        return _integers_in_dbf(source, names, rows)
    else:
        table = import_module("pyogrio").read_arrow(source, columns=names, read_geometry=False, **_slice(rows))[1]
    chosen = [name for name in names if name in table.column_names]
    return {name: table[name].to_pylist() for name in chosen if pyarrow.types.is_integer(table.schema.field(name).type)}


def _integers_in_dbf(source: Path, names: list[Any], rows: slice | None) -> dict[Any, list[int | None]]:
    """Columns of integers of a Shapefile that have so many digits that GDAL reads them as float64."""
    (place,) = [each for each in files_of_target(source) if each.suffix.lower() == ".dbf" and each.exists()]
    data = place.read_bytes()
    count, begin, size = (int.from_bytes(data[at : at + n], "little") for at, n in ((4, 4), (8, 2), (10, 2)))
    table = np.frombuffer(data, np.uint8, count * size, begin).reshape(count, size)
    table = table[table[:, 0] != ord("*")][slice(None) if rows is None else rows]  # rows that are removed
    order = list(import_module("pyogrio").read_info(source)["fields"])
    found, at = {}, 1
    for number, name in enumerate(order):
        kind, width, decimals = (data[32 * (number + 1) + byte] for byte in (11, 16, 17))
        if name in names and kind == ord("N") and decimals == 0:
            texts = np.ascontiguousarray(table[:, at : at + width]).view(f"S{width}").reshape(-1)
            found[name] = [int(each) if each.strip(b" *") else None for each in texts.tolist()]
        at += width
    return found


def _form(series: Any, exact: list[int | None] | None, declared: str | None) -> str:
    """What a column is, of the kind that the file declares; see :attr:`Scheme.columns`."""
    kind, missing = getattr(series.dtype, "kind", "O"), bool(series.isna().any())
    if exact is not None:
        kind, missing = "i", any(each is None for each in exact)
    if kind in "iu":
        if exact is None:
            there = series.dropna().to_numpy(np.uint64 if kind == "u" else np.int64)
            large = bool(((there >= EXACT) | (there <= -EXACT)).any())
        else:
            large = is_large(each for each in exact if each is not None)
        if large and (missing or (exact is not None and max(map(abs, filter(None, exact))) >= 2**63)):
            return _LARGE
        if large and (exact is not None or series.dtype == np.int64):
            return _BIG
    found = column_of_series(series)
    if found is None:
        return _NONE
    if found.dtype.kind == "O":
        empty = all(each is None for each in found)
        return declared or _EMPTY if empty else _TIMES if are_times(series) else _TEXT
    if missing and found.dtype.kind == "f" and (declared or kind != "f"):
        return declared or (_INTEGERS if kind in "iu" else _FLAGS)
    return str(found.dtype.str)


def _joined(one: str, other: str) -> str:
    """What a column is of which there are two parts."""
    forms = {one, other}
    if len(forms) == 1:
        return one
    if _NONE in forms:
        return _NONE
    if _EMPTY in forms:
        (rest,) = forms - {_EMPTY}
        return _FLAGS if rest == "|b1" else rest
    if _TEXT in forms or _TIMES in forms:
        return _NONE
    floats = any(each in _AS_FLOATS or (each not in _FORMS and np.dtype(each).kind == "f") for each in forms)
    if _LARGE in forms or (_BIG in forms and floats):
        return _LARGE
    if forms & {*_AS_FLOATS}:
        return _FLAGS if forms == {_FLAGS, "|b1"} else _INTEGERS
    return _BIG if _BIG in forms else str(np.result_type(*forms).str)


def _values(series: Any, exact: list[int | None] | None, form: str) -> npt.NDArray[Any]:
    """The values of a column of this form."""
    if form == _LARGE:
        given = series.tolist() if exact is None else exact
        absent = series.isna().tolist() if exact is None else [each is None for each in given]
        return np.array([None if no else str(int(each)) for each, no in zip(given, absent, strict=True)], object)
    found = column_of_series(series) if form != _BIG or exact is None else np.array(exact, np.int64)
    if form in (_TEXT, _TIMES, _EMPTY) or found is None:
        return np.asarray(found)
    return np.asarray(found).astype(np.int64 if form == _BIG else np.float64 if form in _AS_FLOATS else form)


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


__all__ = ["FeatureParts", "Scheme", "coordinates"]
