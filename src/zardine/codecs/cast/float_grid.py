"""The finite values of a float format narrower than ``float64``, and which two of them enclose a number."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from zardine.data_types.floats import Float


@dataclass(frozen=True, slots=True, eq=False)
class FloatGrid:
    """``highest`` and ``lowest`` are the finite limits; ``beyond`` is what would follow ``highest``.

    ``table`` and ``even`` list every finite value in order (zero once) and whether its last digit is even, with one
    step beyond the limits at either end; ``None`` where NumPy itself converts and steps (``float16``, ``float32``).
    """

    dtype: np.dtype[Any]
    has_nan: bool
    has_infinity: bool
    lowest: float
    highest: float
    beyond: float
    table: npt.NDArray[Any] | None
    even: npt.NDArray[Any] | None

    def neighbours(self, values: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[np.bool_]]:
        """The nearest value at or below, the next one above, and whether the first is even; for finite ``values``.

        Beyond the limits, the neighbours are the limit and ``beyond``, or ``beyond`` twice.
        """
        if self.table is not None and self.even is not None:
            index = np.clip(np.searchsorted(self.table, values, side="right") - 1, 0, len(self.table) - 2)
            low, high = self.table[index], self.table[index + 1]
            even = self.even[index]
        else:
            low, high, even = self._step(values)
        outside = np.abs(values) >= self.beyond
        end = np.copysign(self.beyond, values)
        if self.lowest > 0:
            outside |= values < self.lowest
            end = np.where(values < self.lowest, -np.inf, end)
        return np.where(outside, end, low), np.where(outside, end, high), even

    def _step(self, values: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[np.bool_]]:
        with np.errstate(all="ignore"):
            near = values.astype(self.dtype)
            below = np.where(near.astype(np.float64) > values, np.nextafter(near, self.dtype.type(-np.inf)), near)
            above = np.nextafter(below, self.dtype.type(np.inf))
        even = below.view(f"u{self.dtype.itemsize}") % 2 == 0
        low, high = below.astype(np.float64), above.astype(np.float64)
        return np.where(np.isinf(low), -self.beyond, low), np.where(np.isinf(high), self.beyond, high), even


@cache
def float_grid(target: Float) -> FloatGrid:
    """The grid of ``target``, any format but ``float64``."""
    size = target.dtype.itemsize
    if target.dtype.kind == "f" and target.name in ("float16", "float32"):
        limits = np.finfo(target.dtype)
        highest = float(limits.max)
        beyond = highest + (highest - float(np.nextafter(limits.max, target.dtype.type(0))))
        return FloatGrid(target.dtype, True, True, -highest, highest, beyond, None, None)
    width = target.bits if target.bits is not None and target.bits < 8 else 8 * size
    codes = np.arange(1 << width, dtype=f"u{size}")
    with np.errstate(invalid="ignore"):  # signalling NaNs
        values = codes.view(target.dtype).astype(np.float64)
    finite = np.isfinite(values) & ~((values == 0) & np.signbit(values))
    order = np.argsort(values[finite], kind="stable")
    table, even = values[finite][order], codes[finite][order] % 2 == 0
    highest, lowest = float(table[-1]), float(table[0])
    has_zero = lowest <= 0
    beyond = highest + (highest - float(table[-2])) if has_zero else 2 * highest  # without zero: powers of 2
    # a format without zero has nothing below its lowest value, so that all smaller numbers are out of range
    table = np.concatenate(([-beyond if has_zero else -np.inf], table, [beyond]))
    even = np.concatenate(([not even[0]], even, [not even[-1]]))
    return FloatGrid(
        target.dtype, bool(np.isnan(values).any()), bool(np.isinf(values).any()), lowest, highest, beyond, table, even
    )
