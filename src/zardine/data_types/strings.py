"""Text: ``string`` of any length, ``fixed_length_utf32``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from zardine.data_types.base import DataType
from zardine.data_types.raw_bytes import parse_length
from zardine.data_types.scalars import refusal, unwrap
from zardine.json_document import JSON, Problems, show


class String(DataType):
    """Unicode text of any length; in memory ``StringDType``. Registry: ``string``."""

    dtype = np.dtypes.StringDType()
    object_codec = "vlen-utf8"

    def __init__(self, name: str = "string") -> None:
        self.name = name

    def parse_fill(self, value: JSON, place: str, problems: Problems) -> npt.NDArray[Any] | None:
        if not isinstance(value, str):
            problems.expected(place, "a string", value)
            return None
        try:
            return np.array(value, self.dtype)
        except UnicodeEncodeError:
            problems.expected(place, "a string without lone surrogates", value)
            return None

    def fill_to_json(self, fill: npt.NDArray[Any]) -> JSON:
        return str(fill[()])

    def default_fill(self) -> npt.NDArray[Any]:
        return np.array("", self.dtype)

    def cast_fill(self, value: Any) -> npt.NDArray[Any]:
        value = unwrap(value)
        if not isinstance(value, str):
            raise TypeError(refusal(value, self.name, "expected a string"))
        try:
            return np.array(str(value), self.dtype)
        except UnicodeEncodeError:
            raise ValueError(refusal(value, self.name, "lone surrogates are not text")) from None


class FixedLengthUtf32(DataType):
    """Up to ``length`` code points of 4 bytes, filled up with U+0000; in memory ``U``.

    Registry: ``fixed_length_utf32``.
    """

    name = "fixed_length_utf32"

    def __init__(self, length: int) -> None:
        self.length = length
        self.dtype = np.dtype(f"U{length}")
        self.words = ((4, length),)

    def _to_json(self) -> JSON:
        return {"name": self.name, "configuration": {"length_bytes": 4 * self.length}}

    def parse_fill(self, value: JSON, place: str, problems: Problems) -> npt.NDArray[Any] | None:
        if not isinstance(value, str):
            problems.expected(place, "a string", value)
            return None
        if len(value) > self.length:
            problems.add(place, f"expected at most {self.length} code points, found {len(value)}: {show(value)}")
            return None
        return np.array(value, self.dtype)

    def fill_to_json(self, fill: npt.NDArray[Any]) -> JSON:
        return str(fill[()])

    def cast_fill(self, value: Any) -> npt.NDArray[Any]:
        value = unwrap(value)
        if not isinstance(value, str):
            raise TypeError(refusal(value, self.name, "expected a string"))
        if len(value.rstrip("\0")) > self.length:
            raise ValueError(refusal(value, self.name, f"it holds at most {self.length} code points"))
        return np.array(str(value), self.dtype)


def parse_fixed_length_utf32(
    configuration: Mapping[str, JSON] | None, place: str, problems: Problems
) -> DataType | None:
    """``fixed_length_utf32``, whose length in bytes is a multiple of 4."""
    length = parse_length(configuration, place, problems)
    if length is None:
        return None
    if length % 4:
        problems.expected(f"{place}.configuration.length_bytes", "a multiple of 4", length)
        return None
    return FixedLengthUtf32(length // 4)
