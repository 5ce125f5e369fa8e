"""``bool``: one byte, 0 or 1."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from zardine.data_types.base import DataType
from zardine.data_types.scalars import real_number, refusal, unwrap
from zardine.json_document import JSON, Problems


class Bool(DataType):
    """True or false. Specification: core 3.1, "Data types"."""

    name = "bool"
    dtype = np.dtype(np.bool_)
    words = ((1, 1),)
    bits = 1

    def parse_fill(self, value: JSON, place: str, problems: Problems) -> npt.NDArray[Any] | None:
        if not isinstance(value, bool):
            problems.expected(place, "true or false", value)
            return None
        return np.array(value)

    def fill_to_json(self, fill: npt.NDArray[Any]) -> JSON:
        return bool(fill[()])

    def cast_fill(self, value: Any) -> npt.NDArray[Any]:
        value = unwrap(value)
        number = real_number(value)
        if number is None:
            raise TypeError(refusal(value, self.name, "expected True or False"))
        if isinstance(number, float) or number not in (0, 1):
            raise ValueError(refusal(value, self.name, "expected True or False"))
        return np.array(bool(number))

    def repair_bits(self, array: npt.NDArray[Any]) -> npt.NDArray[Any]:
        stored = array.view(np.uint8)
        return array if stored.max(initial=0) <= 1 else np.asarray(stored != 0)
