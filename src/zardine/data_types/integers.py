"""Integers of 2 to 64 bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from zardine.data_types.base import DataType
from zardine.data_types.scalars import real_number, refusal, unwrap
from zardine.data_types.sub_byte import keep_low_bits
from zardine.json_document import JSON, Problems, is_integer


class Integer(DataType):
    """Whole numbers from ``low`` to ``high``, both inclusive. Specification: core 3.1; registry: ``int4``, etc."""

    def __init__(self, name: str, dtype: np.dtype[Any], bits: int, *, signed: bool) -> None:
        self.name = name
        self.dtype = dtype
        self.words = ((dtype.itemsize, 1),)
        self.bits: int = bits
        self.low = -(1 << (bits - 1)) if signed else 0
        self.high = (1 << (bits - signed)) - 1
        self._narrow = bits < 8
        self._extends_sign = self._narrow and signed and int(np.array(-1).astype(dtype).view(np.uint8)) == 255

    def parse_fill(self, value: JSON, place: str, problems: Problems) -> npt.NDArray[Any] | None:
        if not is_integer(value) or not self.low <= value <= self.high:
            problems.expected(place, f"an integer from {self.low} to {self.high} for {self.name}", value)
            return None
        return np.array(value, self.dtype)

    def fill_to_json(self, fill: npt.NDArray[Any]) -> JSON:
        return int(fill[()])

    def cast_fill(self, value: Any) -> npt.NDArray[Any]:
        value = unwrap(value)
        number = real_number(value)
        if number is None:
            kind = ValueError if isinstance(value, str) else TypeError  # as for int(value)
            raise kind(refusal(value, self.name, "expected a whole number"))
        if isinstance(number, float):
            if not number.is_integer():
                raise ValueError(refusal(value, self.name, "expected a whole number"))
            number = int(number)
        if not self.low <= number <= self.high:
            raise ValueError(refusal(value, self.name, f"the range is {self.low} to {self.high}"))
        return np.array(number, self.dtype)

    def repair_bits(self, array: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return keep_low_bits(array, self.bits, extend_sign=self._extends_sign) if self._narrow else array


def core_integers() -> list[DataType]:
    """``int8`` to ``uint64``."""
    return [
        Integer(f"{prefix}int{bits}", np.dtype(f"{prefix}int{bits}"), bits, signed=not prefix)
        for prefix in ("", "u")
        for bits in (8, 16, 32, 64)
    ]
