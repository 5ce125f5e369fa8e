"""Points and lines as files of features: Arrow tables, some rows at a time, through pyarrow and pyogrio."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from io import BytesIO
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from zardine.buffers import Ints
from zardine.stores.resolve import StoreLike
from zardine.vectors.exchange.features import NOTHING
from zardine.vectors.exchange.level_parts import LevelParts, SeenColumns, columns_with_ids
from zardine.vectors.exchange.losses import LINES, check_rank, check_store, warn_kind
from zardine.vectors.exchange.part_files import FileWriter
from zardine.vectors.exchange.targets import files_of_target
from zardine.vectors.exchange.whole_files import is_cut_off
from zardine.vectors.format.ragged import bounds_of, row_numbers, starts_of
from zardine.vectors.outside import column_names, keeping, known_crs, needing, tell_of_channels, warn
from zardine.vectors.results import Points, Polylines
from zardine.vectors.storing.store import VectorStore

_LARGEST: Final = {".geojson": 2**63 - 2, ".gpkg": 2**63 - 1, ".shp": 10**17 - 1}
"""Up to here, with either sign, integers of a format come back equal."""
_GEOMETRY: Final = "geometry"
_SHAPES: Final = 2**15
"""Features that are made objects of at a time."""
_LONGEST_TEXT: Final = 254
"""Bytes of a text in a Shapefile."""
_LONGEST_NAME: Final = 10
"""Letters of a name in a Shapefile."""


@dataclass(frozen=True, slots=True, eq=False)
class _Features:
    """Some features: points, or lines of two vertices and more."""

    corners: npt.NDArray[np.float64]
    lengths: Ints | None
    """How many corners each has; ``None``: they are points."""
    columns: Mapping[str, npt.NDArray[Any]]
    left_out: int = 0

    def __len__(self) -> int:
        return len(self.corners if self.lengths is None else self.lengths)

    def encoded(self) -> Iterator[npt.NDArray[Any]]:
        """Give the shapes as WKB, some at a time: as objects they are many times as large."""
        geopandas, shapely = import_module("geopandas"), import_module("shapely")
        starts = None if self.lengths is None else starts_of(self.lengths)
        for start in range(0, len(self), _SHAPES):
            end = min(len(self), start + _SHAPES)
            if self.lengths is None or starts is None:
                shapes = np.asarray(geopandas.points_from_xy(*self.corners[start:end].T))
            else:
                some = self.corners[starts[start] : starts[end]]
                shapes = shapely.linestrings(some, indices=row_numbers(self.lengths[start:end]))
            yield shapely.to_wkb(shapes, flavor="iso")


class _Look:
    """What is known of the values of a column: how large they are, and whether any is there."""

    def __init__(self, name: str, like: npt.NDArray[Any]) -> None:
        self.like = like
        self.low, self.high = 0, 0
        self.is_there = like.dtype.kind in "iufb"
        self.is_changed = False
        """Whether a Shapefile does not hold all of them."""
        self.is_empty = False
        """Whether some text is empty, or ends with a space."""
        self.longest = 0
        """Bytes of the longest text."""
        self.is_cut = False
        """Whether there is a NUL in a text, which ends it for GDAL."""

    def look(self, values: npt.NDArray[Any]) -> None:
        """Look at some more."""
        if values.dtype.kind in "iu":
            self.low, self.high = min(self.low, int(values.min(initial=0))), max(self.high, int(values.max(initial=0)))
        elif values.dtype.kind == "f":
            size = np.abs(values[np.isfinite(values) & (values != 0)])
            self.is_changed = self.is_changed or bool(((size < 1e-9) | (size >= 1e22)).any())
        elif values.dtype.kind != "b":
            texts = values.reshape(-1).tolist()
            self.is_there = self.is_there or any(each is not None for each in texts)
            there = [each for each in texts if isinstance(each, str)]
            self.is_cut = self.is_cut or any("\0" in each for each in there)
            self.is_empty = self.is_empty or any(each[-1:] in ("", " ") for each in there)
            self.longest = max(self.longest, max((len(each.encode()) for each in there), default=0))


@dataclass(frozen=True, slots=True)
class _Column:
    """A column of a file: an attribute, or one of several values of it."""

    attribute: str
    channel: int | None
    as_text: bool
    sample: Any
    """A value of the type that all are stored as: JSON."""

    def values(self, columns: Mapping[str, npt.NDArray[Any]]) -> Any:
        """Return its values for some rows."""
        values = columns[self.attribute]
        values = values if self.channel is None else values[:, self.channel]
        if self.as_text:
            return [str(each) for each in values.tolist()]
        return values if values.dtype.kind in "iufb" else values.tolist()


def _look(path: StoreLike, target: Path, level: int, parts: LevelParts[Any]) -> dict[str, Any]:
    """See which columns a file has: a feature is a point or a line, with the attributes of points or of whole lines."""
    with needing(target):
        for name in ("geopandas", "pyarrow.parquet", "pyogrio"):
            import_module(name)

    points_here = _are_points(path)
    kept = ("vertex_attributes",) if points_here else ("object_attributes",)
    kind = check_store(path, target, level, ("point_cloud", *LINES), kept, crs=True)
    if not points_here:
        warn_kind(kind, "polyline", target)
    crs = known_crs(VectorStore.open(path).root.block.get("crs"), target)
    if crs is None and target.suffix.lower() == ".geojson":
        warn(
            target, "it will be read as longitudes and latitudes of WGS 84: the format means these unless it says else"
        )
    check_rank(parts.rank, target, (2, 3))
    seen, extent = SeenColumns(_Look, in_order=parts.in_order), _Extent()
    for part in parts:
        seen.look(part.attributes if points_here else part.object_attributes, part.object_ids)
        extent.look(_features_of(part))
    looks = seen.found(target)
    if extent.left_out:
        warn(target, f"{extent.left_out} lines of less than two vertices are left out")
    if not extent.count:
        warn(target, f"it will hold nothing, and cannot be imported: the format does not say of what, {NOTHING}")
    columns = _columns(looks, target)
    told = {name: [each.attribute, each.channel, each.as_text, each.sample] for name, each in columns.items()}
    return {"columns": told, "count": extent.count, "box": extent.box}


def _write(path: StoreLike, place: Path, parts: LevelParts[Any], layout: Mapping[str, Any]) -> None:
    columns = {name: _Column(*told) for name, told in layout["columns"].items()}
    with keeping():  # it was told before
        crs = known_crs(VectorStore.open(path).root.block.get("crs"), place)
    count, box = layout["count"], layout["box"]
    if not parts.is_whole:
        extent = _Extent()
        for part in parts.through(None):
            extent.look(_features_of(part))
        count, box = extent.count, extent.box
    shape = ("Point" if _are_points(path) else "LineString") + (" Z" if parts.rank > 2 else "")
    geometry = shape if layout["count"] else ""
    tables = _Tables(_schema(columns, geometry, crs, box, count), columns, parts)
    if place.suffix.lower() == ".parquet":
        tables.to_parquet(place)
    else:
        tables.to_file(place, geometry or "Unknown", crs)


features_out = FileWriter(_look, _write)
"""Points or lines as GeoJSON, GeoPackage, Shapefile or Parquet."""


def _are_points(path: StoreLike) -> bool:
    return VectorStore.open(path).root.geometry_types[:1] == ("point_cloud",)


class _Extent:
    """How many features there are, and in which box."""

    def __init__(self) -> None:
        self.count = self.left_out = 0
        self.box: list[float] | None = None
        """The lowest and the highest x and y; ``None``: there are no features."""

    def look(self, features: _Features) -> None:
        """Look at some more."""
        self.count, self.left_out = self.count + len(features), self.left_out + features.left_out
        if len(features):
            low, high = bounds_of(features.corners[:, :2])
            if self.box is not None:
                low, high = np.minimum(low, self.box[:2]), np.maximum(high, self.box[2:])
            self.box = [*low.tolist(), *high.tolist()]


def _features_of(part: Points | Polylines) -> _Features:
    return _of_points(part) if isinstance(part, Points) else _of_lines(part)


def _of_points(part: Points) -> _Features:
    return _Features(part.positions.astype(np.float64), None, columns_with_ids(part.attributes, part.object_ids))


def _of_lines(part: Polylines) -> _Features:
    lengths = np.diff(part.starts)
    there = lengths > 1
    corners = part.positions[np.repeat(there, lengths)].astype(np.float64)
    columns = columns_with_ids(part.object_attributes, part.object_ids)
    taken = {name: values[there] for name, values in columns.items()}
    return _Features(corners, lengths[there], taken, int(np.count_nonzero(~there)))


@dataclass(frozen=True, slots=True, eq=False)
class _Tables:
    """The features of a level as tables of Arrow, one for each part."""

    schema: Any
    columns: Mapping[str, _Column]
    parts: LevelParts[Any]

    def __iter__(self) -> Iterator[Any]:
        arrow: Any = import_module("pyarrow")
        for part in self.parts:
            features = _features_of(part)
            arrays = [
                arrow.array(each.values(features.columns), self.schema.field(name).type, from_pandas=True)
                for name, each in self.columns.items()
            ]
            shapes = [arrow.array(each, arrow.binary()) for each in features.encoded()]
            arrays.append(arrow.chunked_array(shapes, arrow.binary()))
            yield arrow.Table.from_arrays(arrays, schema=self.schema)

    def to_parquet(self, place: Path) -> None:
        """Write a row group for each part."""
        parquet: Any = import_module("pyarrow.parquet")
        with parquet.ParquetWriter(place, self.schema, compression="snappy") as file:
            for table in self:
                file.write_table(table)

    def to_file(self, place: Path, geometry: str, crs: Any) -> None:
        """Write a file of GDAL. Raises what reading the level raises, which does not come through that library."""
        arrow, pyogrio = import_module("pyarrow"), import_module("pyogrio")
        fields = [each.with_type(arrow.string()) if arrow.types.is_null(each.type) else each for each in self.schema]
        schema = arrow.schema([each.remove_metadata() for each in fields])
        failed: list[BaseException] = []

        def batches() -> Iterator[Any]:
            try:
                for table in self:
                    yield from table.cast(schema).to_batches()
            except BaseException as error:
                failed.append(error)
                raise

        known = None if crs is None else crs.to_epsg()
        told = None if crs is None else f"EPSG:{known}" if known else crs.to_wkt("WKT1_GDAL")
        stream = arrow.RecordBatchReader.from_batches(schema, batches())
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "'crs' was not provided", UserWarning)
            try:
                # GeoJSON has 15 decimals else, which do not hold all of float64
                exact = {"SIGNIFICANT_FIGURES": "17"} if place.suffix.lower() == ".geojson" else {}
                pyogrio.write_arrow(
                    stream, str(place), geometry_name=_GEOMETRY, geometry_type=geometry, crs=told, **exact
                )
            except Exception:
                if failed:
                    raise failed[0] from None
                raise
        _check_complete(place)


def _check_complete(place: Path) -> None:
    """Raise ``RuntimeError`` if a file is cut off: GDAL does not say so where the disk is full when it closes one."""
    for each in files_of_target(place):
        if each.is_file() and is_cut_off(each, is_ours=True):
            raise RuntimeError(f"not all of {each.name} was stored, probably because the disk is full")


def _schema(columns: Mapping[str, _Column], geometry: str, crs: Any, box: list[float] | None, count: int) -> Any:
    """The schema of a file of Parquet with such columns, as geopandas has it; ``geometry``: what it is if any is."""
    geopandas, parquet = import_module("geopandas"), import_module("pyarrow.parquet")
    shapely: Any = import_module("shapely")
    corners = np.zeros((2, 3 if geometry.endswith("Z") else 2))
    shape = shapely.LineString(corners) if geometry.startswith("Line") else shapely.Point(corners[0])
    sample = {name: [each.sample] if geometry else [] for name, each in columns.items()}
    file = BytesIO()
    geopandas.GeoDataFrame(sample, geometry=[shape] if geometry else [], crs=crs).to_parquet(file)
    schema = parquet.read_schema(file)
    if not geometry:
        return schema
    metadata = dict(schema.metadata)
    about, frame = json.loads(metadata[b"geo"]), json.loads(metadata[b"pandas"])
    if box is not None:
        about["columns"][_GEOMETRY]["bbox"] = box
    frame["index_columns"][0]["stop"] = count
    return schema.with_metadata({**metadata, b"pandas": json.dumps(frame).encode(), b"geo": json.dumps(about).encode()})


def _columns(looks: Mapping[str, _Look], target: Path) -> dict[str, _Column]:
    """The columns of a file, and what each is; warns of what is changed."""
    suffix = target.suffix.lower()
    most, found = _LARGEST.get(suffix), {}
    for name, (attribute, channel) in _single(looks, target).items():
        look = looks[attribute]
        kind = look.like.dtype.kind
        as_text = most is not None and kind in "iu" and (look.high > most or look.low < -most)
        if suffix == ".shp" and look.is_changed:
            warn(target, f"values of the attribute {name!r} are changed: the format has 24 characters, 15 decimals")
        if suffix == ".shp" and look.is_empty:
            warn(
                target,
                f"empty text of the attribute {name!r} comes back as missing: the format does not tell them apart",
            )
        if suffix == ".shp" and look.longest > _LONGEST_TEXT:
            warn(target, f"texts of the attribute {name!r} are cut to {_LONGEST_TEXT} bytes")
        if look.is_cut and most is not None:
            warn(target, f"texts of the attribute {name!r} are cut at the first NUL in each, which ends a text there")
        if as_text:
            warn(
                target, f"the attribute {name!r} is written as text: some of its integers are too large for the format"
            )
        sample: Any = "x" if as_text or look.is_there else None
        if not as_text and kind in "iufb":
            sample = 0.5 if kind == "f" else True if kind == "b" else max(0, look.high)
        found[name] = _Column(attribute, channel, as_text, sample)
    long = [name for name in found if suffix == ".shp" and len(name) > _LONGEST_NAME]
    if long:
        warn(target, f"names of attributes are cut to {_LONGEST_NAME} letters: {', '.join(long)}")
    return found


def _single(looks: Mapping[str, _Look], target: Path) -> dict[str, tuple[str, int | None]]:
    """Which attribute each column of the file is, or which of its values; warns of several, and of changed names."""
    geopackage = target.suffix.lower() == ".gpkg"
    widths = {name: None if look.like.ndim == 1 else int(look.like.shape[1]) for name, look in looks.items()}
    tell_of_channels(widths, target)
    taken = ("geometry", "fid", "geom") if geopackage else ("geometry",)
    return column_names(
        widths, taken, target, key=str.lower if geopackage else str
    )  # SQL: letters are not told by case


__all__ = ["features_out"]
