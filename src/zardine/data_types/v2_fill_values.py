"""The member ``fill_value`` of Zarr v2 documents ("Fill value encoding"). Some writers were looser than the text."""

from __future__ import annotations

import base64
import binascii
import re
from math import isfinite
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from zardine.data_types.v2_names import has_name
from zardine.json_document import JSON, Problems, name_non_number, show

if TYPE_CHECKING:
    from zardine.data_types.base import DataType

_NUMBER: Final = re.compile(r"-?\d{1,40}(\.\d{1,40})?([eE][-+]?\d{1,3})?", re.ASCII)
_DATE: Final = re.compile(r"-?\d{4,12}(-\d\d){0,2}(T\d\d(:\d\d){0,2}(\.\d{1,18})?)?")


def parse_fill(
    value: JSON, data_type: DataType, stored: np.dtype[Any], place: str, problems: Problems
) -> npt.NDArray[Any] | None:
    """Return the fill value of a document; ``null``, which leaves it undefined, gives the default of the data type."""
    if value is None:
        return data_type.default_fill()
    if stored.kind in "biufc" and isinstance(value, str) and _NUMBER.fullmatch(value):  # n5-zarr
        problems.note(place, f"{show(value)} is a text: store the number")
        value = int(value) if value.lstrip("-").isdigit() else float(value)
    if data_type.of_v2_only and stored.kind == "O":
        return data_type.cast_fill(value)
    kind = stored.kind
    if not has_name(stored) and not (isinstance(value, str) and value.endswith("=")):  # base64, of float4_e2m1fn
        return data_type.parse_fill(_number(value), place, problems)
    if kind == "V" or not has_name(stored):
        return _parse_void(value, data_type, stored, place, problems)
    if kind in "SUO" and value == 0 and not isinstance(value, str):
        return data_type.default_fill()  # zarr-python's default for numbers, which it writes for text as well
    if kind == "f" and data_type.of_v2_only:
        return _parse_long(value, data_type, place, problems)
    if kind == "f":
        value = _number(value)
    elif kind == "c":
        parts = value if isinstance(value, (list, tuple)) and len(value) == 2 else (value, 0)
        value = [_number(part) for part in parts]
    elif (kind in "iu" and isinstance(value, float) and value.is_integer()) or (
        kind in "iu" and isinstance(value, bool)
    ):
        value = int(value)
    elif kind == "b" and not isinstance(value, bool) and value in (0, 1):
        value = bool(value)
    if kind == "M" and isinstance(value, str) and _DATE.fullmatch(value):  # zarr-python 3.0.7 to 3.0.10
        try:
            return data_type.cast_fill(value)
        except (ValueError, OverflowError):
            problems.expected(place, f"a time that {data_type.name} holds without loss", value)
            return None
    if kind == "S" and (not isinstance(value, str) or len(value) % 4):
        problems.expected(place, "base64 text", value)
        return None
    if kind == "U" and isinstance(value, str):
        value = value[: stored.itemsize // 4]  # longer ones occur, and zarr-python cuts them
    return data_type.parse_fill(value, place, problems)


def fill_to_json(fill: npt.NDArray[Any], data_type: DataType, stored: np.dtype[Any]) -> JSON:
    """Return the member ``fill_value`` for a fill value in memory."""
    kind = stored.kind
    if kind == "O" or not has_name(stored):
        return data_type.fill_to_json(fill)
    if kind == "V":
        return base64.standard_b64encode(fill.astype(stored).tobytes()).decode("ascii")
    if kind == "S":
        return base64.standard_b64encode(bytes(fill[()])).decode("ascii")
    if kind == "f":
        return _float_to_json(float(fill[()]))
    if kind == "c":
        return [_float_to_json(float(fill.real[()])), _float_to_json(float(fill.imag[()]))]
    if kind in "mM":
        return int(fill.view(np.int64)[()])
    value: JSON = fill.item()
    return value


def _number(value: JSON) -> JSON:
    """Return a float of a document in the form that v3 documents have: there are no bare NaN and infinities."""
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, float) and not isfinite(value):
        return _float_to_json(value)
    return value


def _float_to_json(value: float) -> JSON:
    if isfinite(value):
        return value
    return name_non_number(value)


def _parse_long(value: JSON, data_type: DataType, place: str, problems: Problems) -> npt.NDArray[Any] | None:
    known = {"NaN": np.nan, "Infinity": np.inf, "-Infinity": -np.inf}
    number = known.get(value, value) if isinstance(value, str) else value
    if isinstance(number, (str, bool)) or not isinstance(number, (int, float)):
        problems.expected(place, "a number", value)
        return None
    return np.array(number, data_type.dtype)


def _parse_void(
    value: JSON, data_type: DataType, stored: np.dtype[Any], place: str, problems: Problems
) -> npt.NDArray[Any] | None:
    if value == 0 and not isinstance(value, str):
        return data_type.default_fill()
    try:
        data = base64.b64decode(value, validate=True) if isinstance(value, str) else None
    except (binascii.Error, ValueError):
        data = None
    if data == b"" and stored.names is None:
        return data_type.default_fill()  # some programs write an empty text for zeros
    if data is None or len(data) != stored.itemsize:
        problems.expected(place, f"base64 text of {stored.itemsize} bytes", value)
        return None
    return np.frombuffer(data, stored).reshape(()).astype(data_type.dtype)
