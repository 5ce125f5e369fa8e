"""GeoJSON, GeoPackage, Shapefile and Parquet: points and lines with attributes, through geopandas."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from zardine.errors import DataError
from zardine.stores.resolve import StoreLike
from zardine.vectors.exchange.losses import LINES, check_space, check_store, reading, storable, warn, with_ids
from zardine.vectors.points import read_points, write_points
from zardine.vectors.polylines import read_polylines, write_polylines
from zardine.vectors.storing.level_access import VectorStore


def features_in(source: Path, path: StoreLike, options: Mapping[str, Any]) -> None:
    """Points, or lines; polygons become their outlines, closed lines: the outer one first, then those of holes.

    Each part of a feature gets all of its attributes; where features have several, ``feature`` says which one.
    """
    import geopandas

    with reading(source):
        table = geopandas.read_parquet(source) if source.suffix.lower() == ".parquet" else geopandas.read_file(source)
    parts = [(row, part) for row, shape in enumerate(table.geometry) for part in _parts(shape)]
    missing = len(table) - len({row for row, _ in parts})
    if missing:
        warn(source, f"{missing} features without a geometry are left out")
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
    for name in table.columns:
        values = None if name == table.geometry.name else _column(table[name])
        if values is not None:
            columns[name] = values[rows]
        elif name != table.geometry.name:
            warn(source, f"the attribute {name!r} is left out: its values are neither numbers, text nor dates")
    if len(np.unique(rows)) != len(rows) and "feature" not in columns:
        columns["feature"] = rows
    known = storable(columns, source)
    given = {"crs": None if table.crs is None else {"wkt": table.crs.to_wkt()}, **options}
    width = 3 if any(part.has_z for _, part in parts) else 2
    lines = [np.array(each.coords, np.float64)[:, :width] for _, each in shapes]
    if kinds <= {"Point"}:
        points = np.concatenate(lines) if lines else np.zeros((0, 2))
        write_points(path, points, **{"vertex_attributes": known, **given})
    else:
        write_polylines(path, lines, **{"geometry_type": "polyline", "object_attributes": known, **given})


def features_out(path: StoreLike, target: Path, level: int) -> None:
    """A feature for each point or line, with the attributes of points or of whole lines."""
    import geopandas
    from shapely.geometry import LineString

    root = VectorStore.open(path).root
    points_here = root.geometry_types[:1] == ("point_cloud",)
    kept = ("vertex_attributes",) if points_here else ("object_attributes",)
    check_store(path, target, level, ("point_cloud", *LINES), kept)
    crs = (root.block.get("crs") or {}).get("wkt")
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
    flat = {name: values.tolist() for name, values in _single(columns).items()}
    table = geopandas.GeoDataFrame(flat, geometry=shapes, crs=crs)
    if target.suffix.lower() == ".parquet":
        table.to_parquet(target)
    else:
        table.to_file(target)


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


def _column(series: Any) -> Any:
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


def _single(columns: Mapping[str, Any]) -> dict[str, Any]:
    """Columns of several values as one for each: ``name_0``, ``name_1``."""
    found: dict[str, Any] = {}
    for name, values in columns.items():
        if values.ndim == 1:
            found[name] = values
        else:
            found |= {f"{name}_{number}": values[:, number] for number in range(values.shape[1])}
    return found
