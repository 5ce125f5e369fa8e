"""Floating point numbers: IEEE 754 and the short formats of machine learning."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import numpy.typing as npt

from zardine.data_types.base import DataType
from zardine.data_types.scalars import real_number, refusal, unwrap
from zardine.data_types.sub_byte import keep_low_bits
from zardine.json_document import JSON, Problems, show

_HEXADECIMAL = re.compile(r"0x[0-9a-fA-F]+")


class Float(DataType):
    """One floating point format. Specification: core 3.1, "Permitted fill values"; registry: ``bfloat16`` and others.

    Numbers are rounded to the nearest representable value; what would round beyond the largest finite one is refused.
    A NaN other than the one called "NaN" is written in hexadecimal, so that its sign and payload survive.
    """

    def __init__(self, name: str, dtype: np.dtype[Any], bits: int) -> None:
        self.name = name
        self.dtype = dtype
        self.words = ((dtype.itemsize, 1),)
        self.bits = bits
        self._stored = np.dtype(f"u{dtype.itemsize}")
        self._narrow = bits if bits < 8 else None
        nan, beyond = self._convert(math.nan), float(self._convert(math.inf)[()])
        self._nan_bits = int(nan.view(self._stored)) if math.isnan(float(nan[()])) else None
        self._has_infinity = math.isinf(beyond)
        self._saturates_at = beyond if math.isfinite(beyond) else math.inf
        self._lowest = float(np.zeros((), dtype)[()])  # not 0 in a format without zero, where all bits 0 mean 2**-127

    def to_json(self) -> JSON:
        return self.name

    def parse_fill(self, value: JSON, place: str, problems: Problems) -> npt.NDArray[Any] | None:
        result, message = self._from_json(value)
        if result is None:
            problems.add(place, message)
        return result

    def fill_to_json(self, fill: npt.NDArray[Any]) -> JSON:
        number = float(fill[()])
        if math.isnan(number):
            stored = int(fill.view(self._stored)[()])
            return "NaN" if stored == self._nan_bits else f"0x{stored:0{2 * self.dtype.itemsize}x}"
        if math.isinf(number):
            return "Infinity" if number > 0 else "-Infinity"
        return number

    def default_fill(self) -> npt.NDArray[Any]:
        return np.zeros((), self.dtype)

    def cast_fill(self, value: Any) -> npt.NDArray[Any]:
        value = unwrap(value)
        if isinstance(value, np.generic) and value.dtype == self.dtype:
            return np.array(value, self.dtype)
        if isinstance(value, str):
            result, message = self._from_json(str(value))
            if result is None:
                raise ValueError(refusal(value, self.name, message))
            return result
        number = real_number(value)
        if number is None:
            raise TypeError(refusal(value, self.name, "expected a number"))
        if isinstance(number, float) and math.isnan(number):
            if self._nan_bits is None:
                raise ValueError(refusal(value, self.name, "this type has no NaN"))
            return self._convert(number)
        if isinstance(number, float) and math.isinf(number):
            if not self._has_infinity:
                raise ValueError(refusal(value, self.name, "this type has no infinity"))
            return self._convert(number)
        result = self._round(number)
        if result is None:
            raise ValueError(refusal(value, self.name, "out of range"))
        return result

    def repair_bits(self, array: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return keep_low_bits(array, self._narrow) if self._narrow else array

    def _from_json(self, value: JSON) -> tuple[npt.NDArray[Any] | None, str]:
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return self._round(value), f"expected a number within the range of {self.name}, found {show(value)}"
        if isinstance(value, str):
            if value == "NaN" and self._nan_bits is not None:
                return np.array(self._nan_bits, self._stored).view(self.dtype), ""
            if value in ("Infinity", "-Infinity") and self._has_infinity:
                return self._convert(math.inf if value == "Infinity" else -math.inf), ""
            if _HEXADECIMAL.fullmatch(value):
                digits = 2 * self.dtype.itemsize
                if len(value) - 2 == digits:
                    return self.repair_bits(np.array(int(value, 16), self._stored).view(self.dtype)), ""
                return None, f'expected "0x" and {digits} hexadecimal digits for {self.name}, found {show(value)}'
        return None, f"expected {self._permitted()} for {self.name}, found {show(value)}"

    def _permitted(self) -> str:
        words = ["a number"]
        if self._nan_bits is not None:
            words.append('"NaN"')
        if self._has_infinity:
            words.append('"Infinity", "-Infinity"')
        return ", ".join(words) + f' or "0x" and {2 * self.dtype.itemsize} hexadecimal digits'

    def _round(self, number: int | float) -> npt.NDArray[Any] | None:
        try:
            number = float(number)
        except OverflowError:
            return None
        if 0 <= number < self._lowest:
            return np.zeros((), self.dtype)
        result = self._convert(number)
        fits = math.isfinite(float(result[()])) and abs(number) <= self._saturates_at
        return result if fits else None

    def _convert(self, number: float) -> npt.NDArray[Any]:
        with np.errstate(all="ignore"):
            return np.asarray(np.float64(number)).astype(self.dtype)


def core_floats() -> list[Float]:
    """``float16``, ``float32`` and ``float64``."""
    return [Float(f"float{bits}", np.dtype(f"float{bits}"), bits) for bits in (16, 32, 64)]
