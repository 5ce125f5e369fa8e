"""Where an index lies: values of the coordinates of an axis, as text with units, times as dates (CF, 4.4)."""

from __future__ import annotations

from zardine.errors import ZardineError
from zardine.metadata.axis_names import dimension_names
from zardine.metadata.cf_time import as_date
from zardine.server.served import Served
from zardine.server.viewer.axes import Coordinate, coordinate
from zardine.server.viewer.snapshot import Snapshot
from zardine.server.viewer.values import exact


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


__all__ = ["labels"]
