"""Types that only Zarr v2 and v1 have: records with sub-array fields, long doubles, and Python objects.

No v3 document can name them.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from zardine.data_types.base import DataType
from zardine.data_types.scalars import refusal
from zardine.json_document import JSON, Problems


class NumpyType(DataType):
    """Any NumPy type of a fixed size, in native byte order and packed."""

    name = "numpy"
    of_v2_only = True

    def __init__(self, dtype: np.dtype[Any]) -> None:
        self.dtype = dtype
        self.words = _join(_words(dtype))

    def _to_json(self) -> JSON:
        return {"name": self.name, "configuration": {"dtype": _describe(self.dtype)}}

    def parse_fill(self, value: JSON, place: str, problems: Problems) -> npt.NDArray[Any] | None:
        problems.expected(place, "a fill value of a Zarr v2 document", value)
        return None

    def fill_to_json(self, fill: npt.NDArray[Any]) -> JSON:
        raise TypeError(f"Zarr v3 has no fill value of {self.dtype}")

    def cast_fill(self, value: Any) -> npt.NDArray[Any]:
        try:
            return np.array(value, self.dtype).reshape(())
        except (TypeError, ValueError) as error:
            raise type(error)(refusal(value, str(self.dtype), str(error))) from None


class AnyObject(DataType):
    """Python objects, as an object codec of Zarr v2 stores them; in memory ``object``."""

    name = "object"
    of_v2_only = True
    dtype = np.dtype(object)

    def parse_fill(self, value: JSON, place: str, problems: Problems) -> npt.NDArray[Any] | None:
        return self.cast_fill(value)

    def fill_to_json(self, fill: npt.NDArray[Any]) -> JSON:
        return fill.item()

    def default_fill(self) -> npt.NDArray[Any]:
        return self.cast_fill(None)

    def cast_fill(self, value: Any) -> npt.NDArray[Any]:
        holder = np.empty((), object)
        holder[()] = value
        return holder


def _words(dtype: np.dtype[Any]) -> list[tuple[int, int]]:
    if dtype.subdtype is not None:
        base, shape = dtype.subdtype
        return _words(base) * prod(shape)
    if dtype.fields is not None and dtype.names is not None:
        return [word for name in dtype.names for word in _words(dtype.fields[name][0])]
    size = dtype.itemsize
    if dtype.kind == "c":
        return [(size // 2, 2)]
    if dtype.kind == "U":
        return [(4, size // 4)]
    return [(1, size)] if dtype.kind in "SV" else [(size, 1)]


def _join(words: list[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    joined: list[tuple[int, int]] = []
    for size, count in words:
        if joined and joined[-1][0] == size:
            joined[-1] = (size, joined[-1][1] + count)
        else:
            joined.append((size, count))
    return tuple(joined)


def _describe(dtype: np.dtype[Any]) -> JSON:
    if dtype.subdtype is not None:
        base, shape = dtype.subdtype
        return [_describe(base), list(shape)]
    if dtype.fields is None or dtype.names is None:
        return dtype.str
    return [[name, _describe(dtype.fields[name][0])] for name in dtype.names]
