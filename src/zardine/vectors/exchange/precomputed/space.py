"""Units of axes: the names that stores have for them, and the numbers and units of neuroglancer. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

_METRES: Final = {
    "kilometer": 1e3,
    "meter": 1.0,
    "centimeter": 1e-2,
    "millimeter": 1e-3,
    "micrometer": 1e-6,
    "nanometer": 1e-9,
    "angstrom": 1e-10,
    "picometer": 1e-12,
}
_SHORT: Final = {
    "km": "kilometer",
    "m": "meter",
    "cm": "centimeter",
    "mm": "millimeter",
    "um": "micrometer",
    "µm": "micrometer",
    "μm": "micrometer",
    "micron": "micrometer",
    "nm": "nanometer",
    "Å": "angstrom",
    "pm": "picometer",
}
_SECONDS: Final = {"second": 1.0, "millisecond": 1e-3, "microsecond": 1e-6, "nanosecond": 1e-9}


def scale_of(axis: Mapping[str, Any]) -> tuple[float, str]:
    """Return how long a unit of an axis is, such as ``(1e-9, "m")``; ``(1.0, "")`` where the store does not say."""
    unit = axis.get("unit")
    name = _SHORT.get(unit, unit) if isinstance(unit, str) else ""
    if name in _METRES:
        return _METRES[name], "m"
    return (_SECONDS[name], "s") if name in _SECONDS else (1.0, "")


def unit_of(scale: float, unit: str) -> str | None:
    """Return the name of the unit that is ``scale`` times ``unit`` long; ``None`` where there is none."""
    table = {"m": _METRES, "s": _SECONDS}.get(unit, {})
    return next((name for name, length in table.items() if abs(scale - length) <= 1e-9 * length), None)


__all__ = ["scale_of", "unit_of"]
