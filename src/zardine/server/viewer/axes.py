"""Describe the axes of an array for its picture by CF attributes: titles, units, directions and coordinate values."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from zardine.errors import ZardineError
from zardine.metadata.axis_names import dimension_names
from zardine.metadata.node_names import join_path
from zardine.nodes.array import Array
from zardine.server.served import Served
from zardine.server.viewer.pyramid import pixel_sizes
from zardine.server.viewer.snapshot import Snapshot

MOST_READ: Final = 2**23
"""Bytes of the coordinates of an axis that are read as a whole."""
_MOST_OBJECTS: Final = 2**13
"""Stored objects that they may lie in, to be read as a whole."""
_MOST_ASKED: Final = 2**9
"""The same where each is a request."""
_MOST_KNOTS: Final = 513
"""Values that stand for the coordinates of an axis that are not evenly spaced; the page interpolates between them."""
_EVEN: Final = 0.01
"""Deviation from even spacing that is ignored, as a share of the spacing."""
_NORTH: Final = re.compile(r"degrees?_?(north|n)", re.ASCII | re.IGNORECASE)
_EAST: Final = re.compile(r"degrees?_?(east|e)", re.ASCII | re.IGNORECASE)
_PRESSURE: Final = re.compile(
    r"(h|k|m)?pa|pascals?|bar|millibars?|mbar|mb|decibars?|dbar|atm", re.ASCII | re.IGNORECASE
)
_SINCE: Final = re.compile(r"\s*\w+\s+since\s", re.ASCII)
_BY_STANDARD_NAME: Final = {
    "latitude": "latitude", "longitude": "longitude", "grid_latitude": "grid_latitude",
    "grid_longitude": "grid_longitude", "projection_x_coordinate": "x", "projection_y_coordinate": "y", "time": "time",
}  # fmt: skip
_BY_AXIS: Final = {"X": "x", "Y": "y", "Z": "vertical", "T": "time"}
_BY_NAME: Final = {"lat": "latitude", "latitude": "latitude", "lon": "longitude", "longitude": "longitude"}
_MOST_NAMED: Final = 16
"""Names in the attribute ``coordinates`` that are looked up."""


@dataclass(frozen=True, slots=True, eq=False)
class Coordinate:
    """The array that holds the coordinates of an axis. ``values`` is the array itself if it is too much to read."""

    array: Array
    values: Any


def coordinate_path(served: Served, path: str, name: str | None, length: int) -> str | None:
    """Return the path of the coordinates of an axis (CF, 2.4: a one-dimensional array named like the dimension)."""
    if not name or "/" in name:
        return None
    inner = join_path(path.rpartition("/")[0], name)
    node = _array(served, inner)
    return inner if node is not None and node.shape == (length,) and inner != path else None


def coordinate(served: Served, snapshot: Snapshot, path: str, name: str | None, length: int) -> Coordinate | None:
    """Return the coordinates of an axis, read once for a snapshot; ``None`` if the axis has none."""
    return snapshot.once(f"coordinate of {name}", partial(_read, served, path, name, length))


def _read(served: Served, path: str, name: str | None, length: int) -> Coordinate | None:
    inner = coordinate_path(served, path, name, length)
    node = None if inner is None else _array(served, inner)
    if node is None:
        return None
    most = _MOST_OBJECTS if node.store.has_cheap_looks else _MOST_ASKED
    is_small = node.nbytes <= MOST_READ and node._handle.layout.grids.storage[0].count <= most
    return Coordinate(node, node[:] if is_small else node)


def axes_facts(served: Served, snapshot: Snapshot, path: str) -> list[dict[str, Any]]:
    """Return for each axis its ``title``, ``units``, ``kind``, whether it points ``upwards``, and its values.

    ``first`` and ``step`` describe evenly spaced values, ``knots`` (index, value) others. Values that neither rise nor
    fall throughout are left out, as are coordinates that cannot be read.
    """
    sizes = pixel_sizes(served, path)
    found = []
    for number, (name, length) in enumerate(
        zip(dimension_names(snapshot.array.metadata), snapshot.array.shape, strict=True)
    ):
        try:
            known = coordinate(served, snapshot, path, name, length)
        except ZardineError:
            known = None
        facts: dict[str, Any] = {"title": name or f"axis {number}", "units": None, "kind": None, "upwards": False}
        if known is not None:
            facts.update(_described(known, name or ""))
        elif len(sizes) == snapshot.array.ndim and (pixel := sizes[number]) is not None:
            size, unit = pixel
            facts.update({"units": unit, "first": size / 2, "step": size})
        found.append(facts)
    return found


def _described(known: Coordinate, name: str) -> dict[str, Any]:
    attributes = known.array.attrs.asdict()
    kind = axis_kind(attributes, name)
    title, units = title_of(attributes, name)
    return {
        "title": title,
        "units": units,
        "kind": kind,
        "upwards": points_upwards(attributes, kind),
        **_values(known.values, known.array.dtype, kind),
    }


def title_of(attributes: Mapping[str, Any], name: str) -> tuple[str, str | None]:
    """Return the title (CF ``long_name``, else ``standard_name``, else the name) and the units of a variable."""
    texts = {key: value for key, value in attributes.items() if isinstance(value, str) and value.strip()}
    title = texts.get("long_name") or texts.get("standard_name", "").replace("_", " ") or name
    units = texts.get("units")
    return title, None if units in ("1", None) else units


def axis_kind(attributes: Mapping[str, Any], name: str) -> str | None:
    """Return what an axis measures (CF, 4): latitude, longitude, the same of a rotated grid, x, y, vertical, time."""
    text = {key: value for key, value in attributes.items() if isinstance(value, str)}
    if known := _BY_STANDARD_NAME.get(text.get("standard_name", "")):
        return known
    units = text.get("units", "").strip()
    if _NORTH.fullmatch(units):
        return "latitude"
    if _EAST.fullmatch(units):
        return "longitude"
    if _SINCE.match(units):
        return "time"
    if text.get("positive", "").lower() in ("up", "down") or _PRESSURE.fullmatch(units):
        return "vertical"
    return _BY_AXIS.get(text.get("axis", "").upper()) or _BY_NAME.get(name.lower())


def points_upwards(attributes: Mapping[str, Any], kind: str | None) -> bool:
    """Return whether larger values belong above smaller ones: north and height do, depth and pressure do not."""
    if kind != "vertical":
        return kind in ("latitude", "grid_latitude", "y")
    positive = str(attributes.get("positive", "")).lower()
    if positive in ("up", "down"):
        return positive == "up"
    if _PRESSURE.fullmatch(str(attributes.get("units", "")).strip()):
        return False
    return "depth" not in str(attributes.get("standard_name", ""))


def _values(values: Any, dtype: np.dtype[Any], kind: str | None) -> dict[str, Any]:
    length = values.shape[0]
    if dtype.kind not in "iuf" or length < 2 or not isinstance(values, np.ndarray):
        return {}
    numbers: npt.NDArray[np.float64] = values.astype("f8")
    if not np.isfinite(numbers).all():
        return {}
    if kind == "longitude":
        numbers = np.unwrap(numbers, period=360.0)  # 350, 0, 10 goes on eastwards
    steps = np.diff(numbers)
    if not ((steps > 0).all() or (steps < 0).all()):
        return {}
    step = float(numbers[-1] - numbers[0]) / (length - 1)
    if np.abs(steps - step).max() <= _EVEN * abs(step):
        return {"first": float(numbers[0]), "step": step}
    indices = np.unique(np.linspace(0, length - 1, min(length, _MOST_KNOTS)).round().astype(np.int64))
    return {"knots": [indices.tolist(), numbers[indices].tolist()]}


def curvilinear(served: Served, array: Array, path: str) -> list[str]:
    """Return the names of the coordinates with two dimensions that the attribute ``coordinates`` lists (CF, 5.2)."""
    listed = array.metadata.attributes.get("coordinates")
    if not isinstance(listed, str):
        return []
    dimensions = set(dimension_names(array.metadata)) - {None}
    found = []
    for name in listed.split()[:_MOST_NAMED]:
        node = None if "/" in name else _array(served, join_path(path.rpartition("/")[0], name))
        if node is not None and node.ndim == 2 and dimensions.issuperset(dimension_names(node.metadata)):
            found.append(name)
    return found


def _array(served: Served, path: str) -> Array | None:
    try:
        node = served.node(path)
    except ZardineError:
        return None
    return node if isinstance(node, Array) else None


__all__ = [
    "MOST_READ",
    "Coordinate",
    "axes_facts",
    "axis_kind",
    "coordinate",
    "coordinate_path",
    "curvilinear",
    "points_upwards",
    "title_of",
]
