"""Where an index lies: values of the coordinates of an axis, as text with units, times as dates (CF, 4.4)."""

from __future__ import annotations

import re
from typing import Any, Final

import numpy as np

from zardine.errors import ZardineError
from zardine.server.axis_names import dimension_names
from zardine.server.served import Served
from zardine.server.viewer.axes import Coordinate, coordinate
from zardine.server.viewer.snapshot import Snapshot
from zardine.server.viewer.values import exact

_SINCE: Final = re.compile(
    r"\s*(days?|hours?|h|minutes?|min|seconds?|s|milliseconds?|microseconds?)\s+since\s+"
    r"(\d{4}-\d{1,2}-\d{1,2})(?:[T ]\s*(\d{1,2}:\d{2}(?::\d{2}(?:\.\d+)?)?))?\s*(?:Z|UTC)?\s*",
    re.ASCII,
)
_MICROSECONDS: Final = {"d": 86_400_000_000, "h": 3_600_000_000, "m": 60_000_000, "s": 1_000_000}
_CALENDARS: Final = ("standard", "gregorian", "proleptic_gregorian")


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


def _label(axis: Coordinate, index: int) -> str:
    value, attributes = axis.values[index], axis.array.attrs.asdict()
    units = attributes.get("units")
    if not isinstance(units, str) or axis.array.dtype.kind not in "iuf":
        return str(exact(value))
    date = as_date(value, units, str(attributes.get("calendar", "standard")))
    return date or f"{exact(value)} {units}"


def as_date(value: Any, units: str, calendar: str) -> str | None:
    """Return a number of time units since a date as a date; ``None`` where it is none of the calendar in use."""
    found = _SINCE.fullmatch(units)
    if found is None or calendar.lower() not in _CALENDARS or not np.isfinite(value):
        return None
    unit, day, clock = found.groups()
    size = _MICROSECONDS[unit[0]]
    if unit.startswith(("milli", "micro")):
        size = 1000 if unit.startswith("milli") else 1
    year, month, date = day.split("-")
    hours = "00:00" if clock is None else clock.rjust(5, "0") if ":" not in clock[:2] else f"0{clock}"
    try:
        epoch = np.datetime64(f"{year}-{int(month):02}-{int(date):02}T{hours}", "us")
        moment = epoch + np.timedelta64(round(float(value) * size), "us")
    except (ValueError, OverflowError):
        return None
    text = str(moment.astype("datetime64[s]")).replace("T", " ")
    return text.removesuffix(" 00:00:00")


__all__ = ["as_date", "labels"]
