"""GeoJSON, GeoPackage, Shapefile and Parquet: points and lines with attributes, through geopandas."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from zardine.stores.resolve import StoreLike
from zardine.vectors.exchange.file_parts import LENGTHS, Step, Whole
from zardine.vectors.exchange.format_features import fates
from zardine.vectors.exchange.losses import storable
from zardine.vectors.points import write_spooled_points
from zardine.vectors.polylines import write_spooled_lines

NOTHING = "so that nothing tells whether it is of points or of lines; vectors.create makes an empty store"
MEASURES = "m"
"""What the attribute of vertices is called that has their measures (M)."""
EXACT = 2**53
"""Up to here, float64 holds all integers."""


GEOJSON = fates(
    two_axes="kept/kept",
    four_axes="-/refused",
    measures="told/told: coordinates beyond the third are left out",
    axis_names="-/told",
    units="-/told",
    precision="kept/kept",
    integers="kept/kept",
    floats="kept/kept",
    booleans="kept/kept",
    text="kept/kept",
    times="told/-: as text (ISO 8601)",
    several_values="-/told: as columns name_0, name_1",
    missing_integers="told/-: as float64 and NaN; as text where one is above 2^53",
    missing_booleans="told/-: as 1.0, 0.0 and NaN",
    missing_text="kept/kept",
    vertex_attributes="kept/kept: of points; those of lines are told",
    object_attributes="kept/kept: attributes of lines",
    ids="kept/kept: as the attribute 'fid', and as the column 'object_id'",
    groups="-/told",
    crs="kept/kept",
    bounds="-/told",
    metadata="told/told: members that are none of the format's",
    comments="told/-: the description",
)
GPKG = fates(
    two_axes="kept/kept",
    four_axes="-/refused",
    measures="kept/told: as the attribute 'm' of vertices; those of lines have no place in an export",
    axis_names="-/told",
    units="-/told",
    precision="kept/kept",
    integers="kept/kept",
    floats="kept/kept",
    booleans="kept/kept",
    text="kept/kept",
    times="told/-: as text (ISO 8601)",
    several_values="-/told: as columns name_0, name_1",
    missing_integers="told/-: as float64 and NaN; as text where one is above 2^53",
    missing_booleans="told/-: as 1.0, 0.0 and NaN",
    missing_text="kept/kept",
    vertex_attributes="kept/kept: of points; those of lines are told",
    object_attributes="kept/kept: attributes of lines",
    ids="kept/kept: as the attribute 'fid', and as the column 'object_id'",
    groups="-/told",
    crs="kept/kept",
    bounds="-/told",
    metadata="told/told: of several layers the first is read",
    comments="told/-: the description",
)
SHP = fates(
    two_axes="kept/kept",
    four_axes="-/refused",
    measures="kept/told: as the attribute 'm' of vertices; those of lines have no place in an export",
    axis_names="-/told",
    units="-/told",
    precision="kept/kept",
    integers="kept/kept",
    floats="kept/told: 24 characters, 15 decimals",
    booleans="kept/kept",
    text="kept/told: empty text is missing, and 254 bytes are kept, without spaces at the end",
    times="told/-: as text (ISO 8601)",
    several_values="-/told: as columns name_0, name_1",
    missing_integers="told/-: as float64 and NaN; as text where one is above 2^53",
    missing_booleans="told/-: as 1.0, 0.0 and NaN",
    missing_text="kept/kept",
    vertex_attributes="kept/kept: of points; those of lines are told",
    object_attributes="kept/kept: attributes of lines",
    ids="-/kept: as the column 'object_id'",
    groups="-/told",
    crs="kept/kept",
    bounds="-/told",
    metadata="-/told",
)
PARQUET = fates(
    two_axes="kept/kept",
    four_axes="-/refused",
    measures="kept/told: as the attribute 'm' of vertices; those of lines have no place in an export",
    axis_names="-/told",
    units="-/told",
    precision="kept/kept",
    integers="kept/kept",
    floats="kept/kept",
    booleans="kept/kept",
    text="kept/kept",
    times="told/-: as text (ISO 8601)",
    several_values="told/told: as columns name_0, name_1; lists are left out",
    missing_integers="told/-: as float64 and NaN; as text where one is above 2^53",
    missing_booleans="told/-: as 1.0, 0.0 and NaN",
    missing_text="kept/kept",
    vertex_attributes="kept/kept: of points; those of lines are told",
    object_attributes="kept/kept: attributes of lines",
    ids="kept/kept: columns of the index that have names, and the column 'object_id'",
    groups="-/told",
    crs="kept/kept",
    bounds="-/told",
    metadata="told/told: of the file and of columns",
)


def store_features(
    path: StoreLike, source: Path, whole: Whole, options: Mapping[str, Any], step: Step, origin: str | None
) -> None:
    """Write lines, if there is a table of their lengths, or else points."""
    of_lines = whole.of_lines
    whole.rename(storable({name: name for name in whole.columns}, source))
    if LENGTHS not in of_lines:
        write_spooled_points(path, whole, options, step, origin)
        return
    columns = storable({name: each for name, each in of_lines.items() if name != LENGTHS}, source)
    given = {"geometry_type": "polyline", "object_attributes": columns, **options}
    write_spooled_lines(path, whole, of_lines[LENGTHS], given, step, origin)


def is_large(values: Any) -> bool:
    """Return whether float64 does not hold some of the integers."""
    return any(abs(each) >= EXACT for each in values)


def are_times(series: Any) -> bool:
    """Return whether a column that is stored as text holds dates, times or durations."""
    there = series.dropna()
    return len(there) > 0 and not isinstance(there.iloc[0], str)


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
