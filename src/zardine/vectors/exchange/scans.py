"""LAS and LAZ, files of points, through laspy."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from zardine.stores.resolve import StoreLike
from zardine.vectors.exchange.losses import (
    check_space,
    check_store,
    numbers,
    reading,
    storable,
    warn,
    warn_names,
    with_ids,
)
from zardine.vectors.points import read_points, write_points


def scan_in(source: Path, path: StoreLike, options: Mapping[str, Any]) -> None:
    """Every dimension but the coordinates becomes an attribute."""
    import laspy

    with reading(source):
        scan = laspy.read(str(source))
    names = [name for name in scan.point_format.dimension_names if name not in ("X", "Y", "Z")]
    columns = storable({name: np.array(scan[name]) for name in names}, source)
    write_points(path, np.asarray(scan.xyz), **{"vertex_attributes": columns, **options})


def scan_out(path: StoreLike, target: Path, level: int) -> None:
    """Coordinates are stored as 32-bit integers, in steps of a power of ten that holds the extent: 1e-6 or more."""
    import laspy

    check_store(path, target, level, ("point_cloud",), ("vertex_attributes",))
    found = read_points(path, level=level)
    check_space(found.positions, target)
    header = laspy.LasHeader(point_format=3, version="1.2")
    points = found.positions.astype(np.float64)
    if len(points):
        header.offsets, header.scales = _steps(points.min(axis=0), points.max(axis=0))
    scan = laspy.LasData(header)
    scan.xyz = points
    known = set(header.point_format.dimension_names)
    for name, values in numbers(with_ids(found.attributes, found.object_ids, target), target, channels=False).items():
        kept = values.astype(np.uint8) if values.dtype.kind == "b" else values
        kept = kept.astype(np.float32) if kept.dtype == np.float16 else kept
        if name not in known:
            if len(name.encode()) > 32:
                warn_names([name], target, "names have up to 32 bytes")
                continue
            scan.add_extra_dim(laspy.ExtraBytesParams(name=name, type=kept.dtype))
        if not _set(scan, name, kept):
            warn(target, f"the attribute {name!r} cannot be kept: the field of this name does not hold its values")
    scan.write(str(target))


def _steps(low: npt.NDArray[np.float64], high: npt.NDArray[np.float64]) -> tuple[Any, Any]:
    middle = low / 2 + high / 2
    least = np.maximum((high / 2 - low / 2) / (2**31 - 4096), 1e-6)
    scales = 10.0 ** np.ceil(np.log10(least) - 1e-9)
    return np.round(middle / scales) * scales, scales


def _set(scan: Any, name: str, values: npt.NDArray[Any]) -> bool:
    """Give a field its values, unless it does not hold them."""
    before = np.array(scan[name])
    try:
        cast = values.astype(before.dtype)
        if np.array_equal(cast, values, equal_nan=values.dtype.kind == "f"):
            scan[name] = cast
            if np.array_equal(np.array(scan[name]), cast, equal_nan=values.dtype.kind == "f"):
                return True
    except (OverflowError, ValueError):
        pass
    scan[name] = before
    return False
