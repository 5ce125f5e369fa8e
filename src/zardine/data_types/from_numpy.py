"""From what users pass as ``dtype`` to a data type."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from zardine.data_types.base import DataType
from zardine.data_types.base64_text import MAX_ITEM_SIZE
from zardine.data_types.ml_types import NAMES as ML_NAMES
from zardine.data_types.ml_types import ml_data_type
from zardine.data_types.raw_bytes import NullTerminatedBytes, RawBytes
from zardine.data_types.registry import READY, is_known, parse_data_type
from zardine.data_types.strings import FixedLengthUtf32
from zardine.data_types.structs import Struct
from zardine.data_types.times import Time
from zardine.json_document import Problems

_NUMBERS = {
    (ready.dtype.kind, ready.dtype.itemsize): ready
    for name, ready in READY.items()
    if ready.dtype.kind in "biufc" and not name.startswith("complex_")
}
_SCALARS: dict[Any, str] = {str: "string", np.str_: "string", bytes: "bytes", np.bytes_: "bytes", "str": "string"}


def data_type_for(dtype_like: object) -> DataType:
    """The data type for a :class:`DataType`, a Zarr name or JSON object, a NumPy dtype, or what NumPy takes for one.

    ``str`` means ``string`` and ``bytes`` means variable-length ``bytes``. Byte order and padding are dropped: they are
    no part of a Zarr data type. Raises ``TypeError`` where Zarr has no such type, ``MetadataError`` (a ``ValueError``)
    for a name or object that breaks the specification.
    """
    if isinstance(dtype_like, DataType):
        return dtype_like
    if isinstance(dtype_like, np.dtype):
        return _from_dtype(dtype_like, repr(dtype_like))
    if hasattr(dtype_like, "to_native_dtype") and not isinstance(dtype_like, type):  # a data type of zarr-python
        return _from_json(dtype_like.to_json(zarr_format=3))  # type: ignore[attr-defined]
    if isinstance(dtype_like, Mapping):
        return _from_json(dtype_like)
    if isinstance(dtype_like, (str, type)) and dtype_like in _SCALARS:
        return READY[_SCALARS[dtype_like]]
    if isinstance(dtype_like, str) and is_known(dtype_like):
        return _from_json(dtype_like)
    if dtype_like is None:
        raise TypeError("None is not a data type; name one, such as 'float64'")
    try:
        dtype = numpy_dtype(dtype_like)
    except TypeError:
        if isinstance(dtype_like, str):
            return _from_json(dtype_like)
        raise
    return _from_dtype(dtype, repr(dtype_like))


def _from_json(value: object) -> DataType:
    problems = Problems()
    data_type = parse_data_type(value, "data_type", problems)
    problems.raise_if_any(f"{value!r} is not a data type")
    assert data_type is not None
    return data_type


def _from_dtype(dtype: np.dtype[Any], shown: str) -> DataType:
    if type(dtype).__module__.partition(".")[0] != "numpy" or dtype.name in ML_NAMES:
        if dtype.name in ML_NAMES:
            return ml_data_type(dtype.name)
        raise TypeError(f"{shown} has no Zarr data type")
    kind, size = dtype.kind, dtype.itemsize
    number = _NUMBERS.get((kind, size))
    if number is not None:
        return number
    if kind == "T":
        return READY["string"]
    if kind == "O":
        raise TypeError(f'{shown} has no Zarr data type: use dtype="string" for text or dtype="bytes" for bytes')
    if kind in "mM":
        unit, scale_factor = np.datetime_data(dtype)
        return Time("datetime64" if kind == "M" else "timedelta64", unit, scale_factor)
    if dtype.names is not None:
        return _from_fields(dtype, shown)
    if dtype.subdtype is not None:
        raise TypeError(f"{shown} has no Zarr data type: make the inner shape part of the shape of the array")
    if kind in "SUV":
        return _from_length(kind, size, shown)
    raise TypeError(f"{shown} has no Zarr data type")


def _from_length(kind: str, size: int, shown: str) -> DataType:
    if not size:
        other = {"U": '"string"', "S": '"bytes"', "V": '"V<length>"'}[kind]
        raise TypeError(f'{shown} has no length: use {other} or a length, such as "{kind}10"')
    if kind == "U":
        return FixedLengthUtf32(size // 4)
    # No released zarr-python reads r*, and tensorstore refuses its fill value; all of them read raw_bytes.
    return NullTerminatedBytes(size) if kind == "S" else RawBytes(size, core_name=False)


def _from_fields(dtype: np.dtype[Any], shown: str) -> Struct:
    assert dtype.names is not None
    assert dtype.fields is not None
    if not dtype.names:
        raise TypeError(f"{shown} has no fields")
    fields = []
    for name in dtype.names:
        data_type = _from_dtype(dtype.fields[name][0], f"field {name!r} of {shown}")
        if data_type.item_size is None:
            raise TypeError(f"field {name!r} of {shown} varies in length; the fields of a struct have fixed sizes")
        fields.append((name, data_type))
    if sum(data_type.dtype.itemsize for _, data_type in fields) > MAX_ITEM_SIZE:
        raise TypeError(f"{shown} is too large: more than {MAX_ITEM_SIZE} bytes")
    return Struct(tuple(fields))


def numpy_dtype(dtype_like: Any) -> np.dtype[Any]:
    """Return ``numpy.dtype(dtype_like)``; take fields also as lists in lists, as documents of Zarr v2 have them.

    Raises ``TypeError`` for everything that NumPy refuses.
    """
    try:
        return np.dtype(_pairs(dtype_like) if isinstance(dtype_like, list) else dtype_like)
    except (TypeError, ValueError, SyntaxError) as error:
        raise TypeError(f"{dtype_like!r} is not a data type: {error}") from None


def _pairs(fields: list[Any]) -> list[Any]:
    """Return fields with the tuples that NumPy wants in place of lists."""
    return [
        tuple(_pairs(part) if isinstance(part, list) and i == 1 else part for i, part in enumerate(field))
        if isinstance(field, (list, tuple))
        else field
        for field in fields
    ]
