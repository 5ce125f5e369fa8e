"""GeoJSON, GeoPackage, Shapefile and Parquet: points and lines with attributes, through geopandas."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from zardine.stores.resolve import StoreLike
from zardine.vectors.exchange.file_parts import LENGTHS, Step, Whole
from zardine.vectors.exchange.losses import LINES, check_space, check_store, storable, warn_kind, with_ids
from zardine.vectors.exchange.targets import writing
from zardine.vectors.outside import known_crs, needing, warn
from zardine.vectors.points import read_points, write_spooled_points
from zardine.vectors.polylines import read_polylines, write_spooled_lines
from zardine.vectors.storing.store import VectorStore

NOTHING = "so that nothing tells whether it is of points or of lines; vectors.create makes an empty store"
EXACT = 2**53
"""Up to here, float64 holds all integers."""
_LARGEST = {".geojson": 2**63 - 2, ".gpkg": 2**63 - 1, ".shp": 10**17 - 1}
"""Up to here, with either sign, integers of a format come back equal."""


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


def features_out(path: StoreLike, target: Path, level: int) -> None:
    """A feature for each point or line, with the attributes of points or of whole lines."""
    with needing(target):
        import geopandas
        from shapely.geometry import LineString

    root = VectorStore.open(path).root
    points_here = root.geometry_types[:1] == ("point_cloud",)
    kept = ("vertex_attributes",) if points_here else ("object_attributes",)
    kind = check_store(path, target, level, ("point_cloud", *LINES), kept)
    if not points_here:
        warn_kind(kind, "polyline", target)
    crs = known_crs(root.block.get("crs"), target)
    if points_here:
        points = read_points(path, level=level)
        check_space(points.positions, target, (2, 3))
        shapes: Any = geopandas.points_from_xy(*points.positions.T)
        columns = with_ids(points.attributes, points.object_ids, target)
    else:
        lines = read_polylines(path, level=level)
        check_space(lines.positions, target, (2, 3))
        chosen = np.flatnonzero(np.diff(lines.starts) > 1)
        if len(chosen) < len(lines):
            warn(target, f"{len(lines) - len(chosen)} lines of less than two vertices are left out")
        shapes = [LineString(lines[number]) for number in chosen.tolist()]
        columns = with_ids(lines.object_attributes, lines.object_ids, target)
        columns = {name: values[chosen] for name, values in columns.items()}
    if not len(shapes):
        warn(target, f"it will hold nothing, and cannot be imported: the format does not say of what, {NOTHING}")
    flat = {name: _listed(name, values, target) for name, values in _single(columns, target).items()}
    with writing(target) as place, warnings.catch_warnings():
        warnings.filterwarnings("ignore", "'crs' was not provided", UserWarning)
        table = geopandas.GeoDataFrame(flat, geometry=shapes, crs=crs)
        if target.suffix.lower() == ".parquet":
            table.to_parquet(place)
        else:
            table.to_file(place)


def is_large(values: Any) -> bool:
    """Return whether float64 does not hold some of the integers."""
    return any(abs(each) >= EXACT for each in values)


def _listed(name: str, values: Any, target: Path) -> list[Any]:
    """The values of a column, as text where they are integers that the format does not hold."""
    most = _LARGEST.get(target.suffix.lower())
    listed: list[Any] = values.tolist()
    if target.suffix.lower() == ".shp" and values.dtype.kind == "f":
        size = np.abs(values[np.isfinite(values) & (values != 0)])
        if ((size < 1e-9) | (size >= 1e22)).any():
            warn(target, f"values of the attribute {name!r} are changed: the format has 24 characters, 15 decimals")
    if most is None or values.dtype.kind not in "iu" or all(abs(each) <= most for each in listed):
        return listed
    warn(target, f"the attribute {name!r} is written as text: some of its integers are too large for the format")
    return [str(each) for each in listed]


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


def _single(columns: Mapping[str, Any], target: Path) -> dict[str, Any]:
    """Columns of several values as one for each, ``name_0``, ``name_1``; warns of names that are changed for others."""
    geopackage = target.suffix.lower() == ".gpkg"
    taken = {"geometry", "fid", "geom"} if geopackage else {"geometry"}
    plain = {_key(name, geopackage) for name, values in columns.items() if values.ndim == 1}
    found: dict[str, Any] = {}
    for name, values in columns.items():
        if values.ndim == 1:
            parts = {name: values}
        else:
            parts = {f"{name}_{number}": values[:, number] for number in range(values.shape[1])}
        for wanted, each in parts.items():
            told = _free(wanted, taken if values.ndim == 1 else taken | plain, geopackage)
            if told != wanted:
                warn(target, f"the attribute {wanted!r} is called {told!r} in the file, which has that name already")
            taken.add(_key(told, geopackage))
            found[told] = each
    return found


def _free(name: str, taken: Collection[str], geopackage: bool) -> str:
    """``name``, with as many ``_`` behind it as it takes to be none of those that are taken."""
    while _key(name, geopackage) in taken:
        name += "_"
    return name


def _key(name: str, geopackage: bool) -> str:
    return name.lower() if geopackage else name  # columns of SQL do not tell letters by case
