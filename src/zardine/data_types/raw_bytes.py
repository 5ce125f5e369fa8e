"""Elements of a fixed number of bytes: ``r*``, ``raw_bytes``, ``null_terminated_bytes``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from zardine.data_types.base import DataType
from zardine.data_types.base64_text import MAX_ITEM_SIZE, parse_bytes, parse_exact_bytes, to_base64
from zardine.data_types.scalars import refusal, unwrap
from zardine.json_document import JSON, MISSING, Problems, check_members, parse_integer, show


class RawBytes(DataType):
    """``length`` bytes without meaning; in memory ``V``.

    The core name is ``r8``, ``r16``, ... with a fill value as an array of integers; zarr-python and tensorstore write
    ``raw_bytes`` with base64 text. Both forms of fill value are read under both names.
    """

    def __init__(self, length: int, *, core_name: bool) -> None:
        self.length = length
        self.name = f"r{8 * length}" if core_name else "raw_bytes"
        self.dtype = np.dtype(f"V{length}")
        self.words = ((1, length),)
        self._core_name = core_name

    def _to_json(self) -> JSON:
        if self._core_name:
            return self.name
        return {"name": self.name, "configuration": {"length_bytes": self.length}}

    def parse_fill(self, value: JSON, place: str, problems: Problems) -> npt.NDArray[Any] | None:
        data = parse_exact_bytes(value, self.length, place, problems)
        return None if data is None else self._hold(data)

    def fill_to_json(self, fill: npt.NDArray[Any]) -> JSON:
        data = fill.tobytes()
        return list(data) if self._core_name else to_base64(data)

    def cast_fill(self, value: Any) -> npt.NDArray[Any]:
        value = unwrap(value)
        if isinstance(value, np.void):
            value = value.tobytes()
        if not isinstance(value, (bytes, bytearray, memoryview)):
            raise TypeError(refusal(value, self.name, f"expected {self.length} bytes"))
        data = bytes(value)
        if len(data) > self.length:
            raise ValueError(refusal(data, self.name, f"expected {self.length} bytes, found {len(data)}"))
        return self._hold(data.ljust(self.length, b"\0"))

    def _hold(self, data: bytes) -> npt.NDArray[Any]:
        return np.frombuffer(data, self.dtype).reshape(()).copy()


class NullTerminatedBytes(DataType):
    """Up to ``length`` bytes, filled up with zeros, which do not count; in memory ``S``. zarr-python writes it."""

    name = "null_terminated_bytes"

    def __init__(self, length: int) -> None:
        self.length = length
        self.dtype = np.dtype(f"S{length}")
        self.words = ((1, length),)

    def _to_json(self) -> JSON:
        return {"name": self.name, "configuration": {"length_bytes": self.length}}

    def parse_fill(self, value: JSON, place: str, problems: Problems) -> npt.NDArray[Any] | None:
        data = parse_bytes(value, place, problems)
        if data is None:
            return None
        if len(data) > self.length:
            problems.add(place, f"expected at most {self.length} bytes, found {len(data)}: {show(value)}")
            return None
        return np.array(data, self.dtype)

    def fill_to_json(self, fill: npt.NDArray[Any]) -> JSON:
        return to_base64(bytes(fill[()]))

    def cast_fill(self, value: Any) -> npt.NDArray[Any]:
        value = unwrap(value)
        if isinstance(value, str) and value.isascii():
            value = value.encode("ascii")
        if not isinstance(value, (bytes, bytearray, memoryview)):
            raise TypeError(refusal(value, self.name, "expected bytes"))
        data = bytes(value)
        if len(data.rstrip(b"\0")) > self.length:
            raise ValueError(refusal(data, self.name, f"it holds at most {self.length} bytes"))
        return np.array(data, self.dtype)


def parse_length(configuration: Mapping[str, JSON] | None, place: str, problems: Problems) -> int | None:
    """The member ``length_bytes``, the only one of a fixed-length type's configuration."""
    place = f"{place}.configuration"
    members = check_members(configuration, ("length_bytes",), place, problems)
    return parse_integer(
        members.get("length_bytes", MISSING), f"{place}.length_bytes", problems, low=1, high=MAX_ITEM_SIZE
    )


def parse_raw_bytes(configuration: Mapping[str, JSON] | None, place: str, problems: Problems) -> DataType | None:
    """``raw_bytes`` with its length."""
    length = parse_length(configuration, place, problems)
    return None if length is None else RawBytes(length, core_name=False)


def parse_null_terminated_bytes(
    configuration: Mapping[str, JSON] | None, place: str, problems: Problems
) -> DataType | None:
    """``null_terminated_bytes`` with its length."""
    length = parse_length(configuration, place, problems)
    return None if length is None else NullTerminatedBytes(length)


def parse_raw_bits(name: str, place: str, problems: Problems) -> DataType | None:
    """``r*``, where ``*`` is a number of bits; ``name`` is an "r" and digits."""
    bits = int(name[1:]) if len(name) < 16 else 0
    if bits < 8 or bits % 8 or name[1] == "0" or bits // 8 > MAX_ITEM_SIZE:
        limit = 8 * MAX_ITEM_SIZE
        problems.expected(place, f'"r" and a number of bits, a multiple of 8 from 8 to {limit}', name)
        return None
    return RawBytes(bits // 8, core_name=True)
