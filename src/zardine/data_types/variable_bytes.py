"""``bytes``: byte strings of any length."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from zardine.data_types.base import DataType
from zardine.data_types.base64_text import parse_bytes, to_base64
from zardine.data_types.scalars import refusal, unwrap
from zardine.json_document import JSON, Problems


class VariableBytes(DataType):
    """Byte strings of any length; in memory ``object``. Registry: ``bytes``; zarr-python: ``variable_length_bytes``."""

    dtype = np.dtype(object)
    object_codec = "vlen-bytes"

    def __init__(self, name: str = "bytes") -> None:
        self.name = name

    def parse_fill(self, value: JSON, place: str, problems: Problems) -> npt.NDArray[Any] | None:
        data = parse_bytes(value, place, problems)
        return None if data is None else self._hold(data)

    def fill_to_json(self, fill: npt.NDArray[Any]) -> JSON:
        return to_base64(fill.item())

    def default_fill(self) -> npt.NDArray[Any]:
        return self._hold(b"")

    def cast_fill(self, value: Any) -> npt.NDArray[Any]:
        value = unwrap(value)
        if not isinstance(value, (bytes, bytearray, memoryview)):
            raise TypeError(refusal(value, self.name, "expected bytes"))
        return self._hold(bytes(value))

    def _hold(self, data: bytes) -> npt.NDArray[Any]:
        holder = np.empty((), object)
        holder[()] = data
        return holder
