"""Where an index lies: values of the coordinates of an axis, as text with units, times as dates (CF, 4.4)."""

from __future__ import annotations

from typing import Final

import numpy as np

from zardine.errors import ZardineError
from zardine.metadata.axis_names import dimension_names
from zardine.metadata.cf_time import date_of, date_ticks
from zardine.server.served import Served
from zardine.server.viewer.axes import Coordinate, axis_kind, coordinate
from zardine.server.viewer.snapshot import Snapshot
from zardine.server.viewer.values import exact

_SIDES: Final = {"latitude": "NS", "longitude": "EW"}


def labels(served: Served, snapshot: Snapshot, path: str, at: tuple[int, ...]) -> list[str | None]:
    """Return for each axis the coordinate at the index of ``at``; ``None`` where there is none.

    Coordinates are read once for a snapshot, whole; where they are very many, one by one.
    """
    array = snapshot.array
    found: list[str | None] = []
    for name, length, index in zip(dimension_names(array.metadata), array.shape, at, strict=True):
        try:
            axis = coordinate(served, snapshot, path, name, length)
            found.append(None if axis is None else _label(axis, index))
        except ZardineError as error:
            found.append(f"({type(error).__name__})")
    return found


def labels_along(served: Served, snapshot: Snapshot, path: str, axis: int, start: int, stop: int) -> list[str] | None:
    """Return the coordinates from one index of an axis to another (exclusive), as text; ``None`` if it has none."""
    try:
        known = _coordinate(served, snapshot, path, axis)
        if known is None:
            return None
        part = Coordinate(known.array, known.values[start:stop])
        return [_label(part, index) for index in range(len(part.values))]
    except ZardineError:
        return None


def dates_along(
    served: Served, snapshot: Snapshot, path: str, axis: int, ends: tuple[int, int], count: int
) -> list[tuple[float, str]]:
    """Return round dates between two indices of an axis, each with the index, which need not be whole.

    There are none where the coordinates are no times, or neither rise nor fall throughout.
    """
    try:
        known = _coordinate(served, snapshot, path, axis)
    except ZardineError:
        return []
    units = None if known is None else known.array.attrs.get("units")
    if known is None or not isinstance(units, str) or not isinstance(known.values, np.ndarray):
        return []
    if known.values.dtype.kind not in "iuf":
        return []
    numbers, indices = known.values[ends[0] : ends[1] + 1].astype("f8"), np.arange(ends[0], ends[1] + 1)
    if len(numbers) and numbers[0] > numbers[-1]:
        numbers, indices = numbers[::-1], indices[::-1]
    if len(numbers) < 2 or not (np.isfinite(numbers).all() and (np.diff(numbers) > 0).all()):
        return []
    calendar = str(known.array.attrs.get("calendar", "standard"))
    found = date_ticks(float(numbers[0]), float(numbers[-1]), count, units, calendar)
    return [(float(np.interp(number, numbers, indices)), text) for number, text in found]


def _coordinate(served: Served, snapshot: Snapshot, path: str, axis: int) -> Coordinate | None:
    name = dimension_names(snapshot.array.metadata)[axis]
    return coordinate(served, snapshot, path, name, snapshot.array.shape[axis])


def _label(axis: Coordinate, index: int) -> str:
    value, attributes = axis.values[index], axis.array.attrs.asdict()
    units = attributes.get("units")
    kind = axis_kind(attributes, "")
    if kind in _SIDES and axis.array.dtype.kind in "iuf":
        side = _SIDES[kind][int(value < 0)] if value else ""
        return f"{abs(float(value)):.7g}°{side}"
    if not isinstance(units, str) or axis.array.dtype.kind not in "iuf":
        return str(exact(value))
    return date_of(value, attributes) or f"{exact(value)} {units}"


__all__ = ["dates_along", "labels", "labels_along"]
