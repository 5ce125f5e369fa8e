"""Exact conversion of real numbers between formats: every rounding mode, every way out of range.

Specification: zarr-extensions "codecs/cast_value", sections "Procedure", "rounding", "out_of_range". All formats but
``int64`` and ``uint64`` fit in ``float64`` without loss, so that floats are rounded from there.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import numpy as np
import numpy.typing as npt

from zardine.codecs.cast.float_grid import float_grid
from zardine.codecs.wide_integers import round_to_double, sticky_double
from zardine.data_types.base import DataType
from zardine.data_types.floats import Float
from zardine.data_types.integers import Integer


class Rounding(StrEnum):
    """Which neighbour stands for a value between two."""

    nearest_even = "nearest-even"
    towards_zero = "towards-zero"
    towards_positive = "towards-positive"
    towards_negative = "towards-negative"
    nearest_away = "nearest-away"


class OutOfRange(StrEnum):
    """What becomes of a value beyond the target's range."""

    clamp = "clamp"
    wrap = "wrap"


class CastError(ValueError):
    """A value has no counterpart in the target format."""


def is_real(data_type: DataType) -> bool:
    """Whether the elements are integers or floats, which can be cast."""
    return isinstance(data_type, (Integer, Float))


def cast_numbers(
    array: npt.NDArray[Any], source: DataType, target: DataType, rounding: str, out_of_range: str | None
) -> npt.NDArray[Any]:
    """``array`` of ``source`` numbers as numbers of ``target``; raises :class:`CastError`. Keeps the shape."""
    flat = plain_numbers(array.reshape(-1), source)
    if isinstance(target, Integer):
        if flat.dtype.kind == "f":
            result = _float_to_integer(flat, target, rounding, out_of_range)
        else:
            result = _integer_to_integer(flat, target, out_of_range)
        return result.astype(target.dtype, copy=False).reshape(array.shape)
    assert isinstance(target, Float)
    return _to_float(flat, target, rounding, out_of_range).reshape(array.shape)


def plain_numbers(flat: npt.NDArray[Any], data_type: DataType) -> npt.NDArray[Any]:
    """The same values in a NumPy format: ``float64`` for every float, (u)int8 for integers below a byte."""
    if isinstance(data_type, Float):
        with np.errstate(invalid="ignore"):  # signalling NaNs
            return flat.astype(np.float64, copy=False)
    if isinstance(data_type, Integer) and data_type.bits < 8:
        return flat.astype(np.int8 if data_type.low < 0 else np.uint8)
    return flat


def _container(target: Integer) -> np.dtype[Any]:
    """The NumPy integer type that holds the values of ``target``."""
    return np.dtype(f"{'i' if target.low < 0 else 'u'}{max(1, target.bits // 8)}")


def _integer_to_integer(flat: npt.NDArray[Any], target: Integer, out_of_range: str | None) -> npt.NDArray[Any]:
    below, above = flat < target.low, flat > target.high
    if not (below.any() or above.any()):
        return flat.astype(_container(target), copy=False)
    if out_of_range is None:
        raise _beyond(flat, below | above, target)
    if out_of_range == OutOfRange.wrap:
        return _wrap(flat.astype(np.uint64), target)
    return _clamp(np.where(below | above, 0, flat).astype(_container(target)), below, above, target)


def _float_to_integer(
    flat: npt.NDArray[Any], target: Integer, rounding: str, out_of_range: str | None
) -> npt.NDArray[Any]:
    if not (finite := np.isfinite(flat)).all():
        raise CastError(f"{flat[~finite][0]} has no counterpart in {target.name}")
    whole = _round_to_whole(flat, rounding)
    below, above = whole < float(target.low), whole >= float(target.high + 1)  # both bounds are powers of 2, or 0
    outside = below | above
    if not outside.any():
        return whole.astype(_container(target))
    if out_of_range is None:
        raise _beyond(flat, outside, target)
    if out_of_range == OutOfRange.wrap:
        rest = np.fmod(whole, 2.0**64)
        magnitude = np.abs(rest).astype(np.uint64)
        return _wrap(np.where(rest < 0, np.uint64(0) - magnitude, magnitude), target)
    return _clamp(np.where(outside, 0.0, whole).astype(_container(target)), below, above, target)


def _round_to_whole(flat: npt.NDArray[Any], rounding: str) -> npt.NDArray[Any]:
    match rounding:
        case Rounding.nearest_even:
            whole = np.rint(flat)
        case Rounding.towards_zero:
            whole = np.trunc(flat)
        case Rounding.towards_positive:
            whole = np.ceil(flat)
        case Rounding.towards_negative:
            whole = np.floor(flat)
        case _:
            truncated = np.trunc(flat)
            whole = truncated + np.where(np.abs(flat - truncated) >= 0.5, np.copysign(1.0, flat), 0.0)
    return np.asarray(whole)


def _wrap(bits: npt.NDArray[Any], target: Integer) -> npt.NDArray[Any]:
    """The low bits of two's complement numbers, as a number of ``target``."""
    unused = np.uint64(64 - target.bits)
    moved = bits << unused
    wrapped = moved.view(np.int64) >> np.int64(unused) if target.low < 0 else moved >> unused
    return np.asarray(wrapped).astype(_container(target))


def _clamp(
    values: npt.NDArray[Any], below: npt.NDArray[Any], above: npt.NDArray[Any], target: Integer
) -> npt.NDArray[Any]:
    values[below] = target.low
    values[above] = target.high
    return values


def _to_float(flat: npt.NDArray[Any], target: Float, rounding: str, out_of_range: str | None) -> npt.NDArray[Any]:
    if target.name == "float64":
        return flat if flat.dtype.kind == "f" else round_to_double(flat, rounding)
    values = flat if flat.dtype.kind == "f" else sticky_double(flat)
    grid = float_grid(target)
    if grid.table is None and rounding == Rounding.nearest_even:
        with np.errstate(all="ignore"):
            near = values.astype(target.dtype)
        if np.array_equal(np.isinf(near), np.isinf(values)):
            return near
    nan, infinite = np.isnan(values), np.isinf(values)
    if not grid.has_nan and nan.any():
        raise CastError(f"NaN has no counterpart in {target.name}")
    if not grid.has_infinity and infinite.any():
        raise CastError(f"infinity has no counterpart in {target.name}")
    special = nan | infinite
    finite = np.where(special, grid.highest, values)
    low, high, low_is_even = grid.neighbours(finite)
    match rounding:
        case Rounding.towards_zero:
            up = finite < 0
        case Rounding.towards_positive:
            up = np.ones(finite.shape, bool)
        case Rounding.towards_negative:
            up = np.zeros(finite.shape, bool)
        case _:
            with np.errstate(invalid="ignore"):  # "low" is infinite below the range of a format without zero
                middle = low + (high - low) / 2
            tie_up = ~low_is_even if rounding == Rounding.nearest_even else finite > 0
            up = (finite > middle) | ((finite == middle) & tie_up)
    rounded = np.where(finite == low, low, np.where(up, high, low))
    rounded = np.where(rounded == 0, np.copysign(0.0, finite), rounded)
    below, above = rounded < grid.lowest, rounded > grid.highest
    if (below | above).any():
        if out_of_range is None:
            raise _beyond(flat, below | above, target)
        rounded[below] = -np.inf if grid.has_infinity else grid.lowest
        rounded[above] = np.inf if grid.has_infinity else grid.highest
    with np.errstate(all="ignore"):
        return np.where(special, values, rounded).astype(target.dtype)


def _beyond(flat: npt.NDArray[Any], outside: npt.NDArray[Any], target: DataType) -> CastError:
    return CastError(f"{flat[outside][0]} is out of the range of {target.name}")
