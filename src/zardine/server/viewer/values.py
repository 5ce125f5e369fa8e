"""Values for a page: as numbers that it can draw, and as exact text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from zardine.json_document import JSON
from zardine.metadata.documents import ArrayMetadata

PARTS: Final = ("abs", "real", "imag", "phase")
"""What of complex numbers is drawn."""

_MARKS: Final = ("_FillValue", "missing_value")


def kind_of(dtype: np.dtype[Any]) -> str:
    """Return what a page does with elements: ``number``, ``complex``, ``time``, ``struct``, or ``text``, the rest."""
    if dtype.names is not None:
        return "struct"
    if dtype.kind in "biuf":
        return "number"
    if dtype.kind == "c":
        return "complex"
    if dtype.kind in "Mm":
        return "time"
    return "number" if dtype.kind == "V" and dtype.isbuiltin == 2 else "text"  # the latter are of ml_dtypes


def drawn_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the type of the numbers that are drawn: at most 32 bits where that loses nothing, else ``float64``."""
    if dtype.kind == "b":
        return np.dtype(np.uint8)
    if dtype.kind in "iu":
        return dtype.newbyteorder("=") if dtype.itemsize <= 4 else np.dtype(np.float64)
    if dtype.kind in "fc":
        wide = dtype.itemsize > (4 if dtype.kind == "f" else 8)
        return np.dtype(np.float64 if wide else np.float32)
    return np.dtype(np.float32 if dtype.kind == "V" else np.float64)


def numbers(values: npt.NDArray[Any], part: str = "abs") -> npt.NDArray[Any]:
    """Return values as numbers to draw; of times the counts of their unit, NaT as NaN."""
    dtype = drawn_dtype(values.dtype)
    if values.dtype.kind == "c":
        parts: dict[str, Any] = {"real": np.real, "imag": np.imag, "phase": np.angle}
        values = parts.get(part, np.abs)(values)
    elif values.dtype.kind in "Mm":
        return np.where(np.isnat(values), np.nan, values.astype(np.int64).astype(np.float64))
    return values.astype(dtype, copy=False)


class Marks:
    """Which values of an array mark what is absent: those of CF's attributes, and a fill value that is not zero."""

    def __init__(self, metadata: ArrayMetadata) -> None:
        self._dtype = metadata.dtype
        self._marks: list[Any] = []
        if metadata.dtype.kind not in "iuf":
            return
        if metadata.fill_is_defined:
            self._add(metadata.fill[()] if metadata.fill[()] != 0 else None)
        for name in _MARKS:
            found = metadata.attributes.get(name)
            for each in found if isinstance(found, list) else [found]:
                self._add(each)

    def __bool__(self) -> bool:
        return bool(self._marks)

    def _add(self, value: JSON | np.generic) -> None:
        if value is None or isinstance(value, (str, bool, Mapping, list)):
            return
        try:
            with np.errstate(all="ignore"):
                mark = np.asarray(value).astype(self._dtype)[()]
        except (OverflowError, ValueError):
            return
        if mark == mark and mark not in self._marks:
            self._marks.append(mark)

    def absent(self, values: npt.NDArray[Any]) -> npt.NDArray[np.bool_] | None:
        """Return which values are marks; ``None`` where there are no marks."""
        found = None
        for mark in self._marks:
            equal = values == mark
            found = equal if found is None else found | equal
        return found


def exact(value: Any) -> JSON:
    """Return one element as text that says all of it; a struct as an object of such texts."""
    if isinstance(value, np.void) and value.dtype.names is not None:
        return {name: exact(value[name]) for name in value.dtype.names}
    if isinstance(value, np.ndarray):
        return [exact(each) for each in value] if value.ndim else exact(value[()])
    if isinstance(value, bytes):
        return value.decode("ascii", "backslashreplace")
    if isinstance(value, np.void):
        return value.tobytes().hex(" ")
    return str(value)


__all__ = ["PARTS", "Marks", "drawn_dtype", "exact", "kind_of", "numbers"]
