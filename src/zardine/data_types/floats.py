"""Floating point numbers: IEEE 754 and the short formats of machine learning."""

from __future__ import annotations

import math
import re
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from zardine.data_types.base import DataType
from zardine.data_types.scalars import real_number, refusal, unwrap
from zardine.data_types.sub_byte import keep_low_bits
from zardine.json_document import JSON, Number, Problems, show

_HEXADECIMAL = re.compile(r"0x[0-9a-fA-F]+")


class Float(DataType):
    """One floating point format. Specification: core 3.1, "Permitted fill values"; registry: ``bfloat16`` and others.

    Numbers of documents are rounded to the nearest representable value, once, from their text; beyond the range that is
    infinity, where the format has one, and refused where it has none, or comes from a user.
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
            message = f"expected a number within the range of {self.name}, found {show(value)}"
            if isinstance(value, float) and not math.isfinite(value) and not isinstance(value, Number):
                return None, message  # a bare NaN or Infinity, which is no JSON
            return self._round(value, beyond=self._has_infinity), message
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

    def _round(self, exact: int | float, *, beyond: bool = False) -> npt.NDArray[Any] | None:
        """The nearest value; ``None`` for what is out of range, unless infinity stands for what is ``beyond`` it."""
        try:
            number = float(exact)
        except OverflowError:
            number = math.inf if exact > 0 else -math.inf
        if 0 <= number < self._lowest:
            return np.zeros((), self.dtype)
        result = self._convert(number)
        if isinstance(exact, (int, Number)) and self.name in _ROUNDED_TWICE and float(result[()]) != exact:
            result = self._nearest(result, Fraction(exact.text if isinstance(exact, Number) else exact))
        fits = beyond or (math.isfinite(float(result[()])) and abs(number) <= self._saturates_at)
        return result if fits else None

    def _nearest(self, rounded: npt.NDArray[Any], exact: Fraction) -> npt.NDArray[Any]:
        """The value next to ``exact``: ``rounded``, which by way of a double may have missed it, or a neighbour."""
        word = self._stored.type
        sign = word(1 << (8 * self.dtype.itemsize - 1))
        bits = np.asarray(rounded).view(self._stored)[()]
        size = bits & ~sign
        top = np.array(math.inf, self.dtype).view(self._stored)[()]
        largest, before = (_fraction(np.array(top - word(i), self._stored).view(self.dtype)) for i in (1, 2))
        near = (size, size - word(1) if size else size, size + word(1) if size < top else size)
        values = {
            each: 2 * largest - before if each == top else _fraction(np.array(each, self._stored).view(self.dtype))
            for each in near
        }
        best = min(near, key=lambda each: (abs(values[each] - abs(exact)), each & word(1)))
        return np.array(best | bits & sign, self._stored).view(self.dtype)

    def _convert(self, number: float) -> npt.NDArray[Any]:
        with np.errstate(all="ignore"):
            return np.asarray(np.float64(number)).astype(self.dtype)


_ROUNDED_TWICE = ("float16", "float32", "bfloat16")
"""Formats to which a double that was rounded from a text may round another way than the text."""


def _fraction(value: npt.NDArray[Any]) -> Fraction:
    return Fraction(float(value[()]))


def core_floats() -> list[Float]:
    """``float16``, ``float32`` and ``float64``."""
    return [Float(f"float{bits}", np.dtype(f"float{bits}"), bits) for bits in (16, 32, 64)]
