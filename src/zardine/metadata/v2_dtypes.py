"""The member ``dtype`` of Zarr v2 and v1 documents ("Data type encoding") to and from NumPy dtypes."""

from __future__ import annotations

import re
from contextlib import suppress
from math import prod
from typing import Any

import numpy as np

from zardine.data_types import DataType, data_type_for, numpy_dtype
from zardine.data_types.base64_text import MAX_ITEM_SIZE
from zardine.data_types.ml_types import FLOAT_BITS, INTEGER_BITS, MissingPackageError, ml_data_type
from zardine.data_types.numpy_types import NumpyType
from zardine.data_types.v2_names import OBJECT
from zardine.json_document import JSON, Problems, parse_integers, show

_SIMPLE = re.compile(r"([<>|])(?:([biufcSUV])([0-9]{1,9})|([mM])8(\[[0-9]{0,9}[A-Za-zμ]{1,7}\])?)")


def parse_dtype(value: JSON, place: str, problems: Problems) -> np.dtype[Any] | None:
    """Return the NumPy dtype of stored elements, with their byte order; ``object`` for ``"|O"``."""
    if isinstance(value, str):
        return _parse_simple(value, place, problems)
    if not isinstance(value, (list, tuple)) or not value:
        problems.expected(place, 'a type such as "<f8" or a list of fields', value)
        return None
    fields = [_parse_field(field, f"{place}[{i}]", problems) for i, field in enumerate(value)]
    known = [field for field in fields if field is not None]
    if len(known) < len(fields):
        return None
    names = [name for name, *_ in known if name]
    if len(set(names)) < len(names):
        problems.add(place, "two fields have the same name")
        return None
    if sum(dtype.itemsize * prod(shape) for _, dtype, shape in known) > MAX_ITEM_SIZE:
        problems.add(place, f"an element takes more than {MAX_ITEM_SIZE} bytes")
        return None
    return np.dtype([(name, dtype, shape) if shape else (name, dtype) for name, dtype, shape in known])


def data_type_of(dtype: np.dtype[Any]) -> DataType:
    """Return the data type in memory of elements stored as ``dtype``, which is not ``object``.

    Raises ``TypeError`` for elements without length.
    """
    if dtype.itemsize == 0:
        raise TypeError(f"elements of {dtype.str!r} have no length")
    try:
        return data_type_for(dtype)
    except TypeError:
        return NumpyType(dtype.newbyteorder("="))


def dtype_in_memory(dtype_like: object) -> np.dtype[Any]:
    """Return the NumPy dtype in memory of what users pass as ``dtype``, also of records that v3 lacks and v2 has.

    Raises as :func:`zardine.data_types.data_type_for` for what no version of Zarr has.
    """
    try:
        return data_type_for(dtype_like).dtype
    except TypeError:
        stored = None
        with suppress(TypeError):
            stored = numpy_dtype(dtype_like)
        if stored is None or stored.itemsize == 0 or stored.kind == "O":
            raise
        return data_type_of(stored).dtype


def byte_orders(dtype: np.dtype[Any]) -> set[str]:
    """Return the byte orders (``"little"``, ``"big"``) that occur in a stored element; empty for single bytes."""
    if dtype.subdtype is not None:
        return byte_orders(dtype.subdtype[0])
    if dtype.fields is not None and dtype.names is not None:
        return {order for name in dtype.names for order in byte_orders(dtype.fields[name][0])}
    order = dtype.str[0]
    return {"<": {"little"}, ">": {"big"}}.get(order, set())


def with_byte_order(dtype: np.dtype[Any], byte_order: str | None) -> np.dtype[Any]:
    """Return ``dtype`` as it is stored in that byte order."""
    return dtype if byte_order is None else dtype.newbyteorder("<" if byte_order == "little" else ">")


def _parse_simple(value: str, place: str, problems: Problems) -> np.dtype[Any] | None:
    if value == OBJECT:
        return np.dtype(object)
    if value in FLOAT_BITS or value in INTEGER_BITS:  # tensorstore
        try:
            return ml_data_type(value).dtype
        except MissingPackageError as error:
            problems.unknown(place, str(error))
            return None
    match = _SIMPLE.fullmatch(value)
    problem = None
    dtype = None
    if match is not None:
        order, kind, size, _, unit = match.groups()
        try:
            dtype = np.dtype(value)
        except (TypeError, ValueError):
            problem = "NumPy has no such type" if unit is None else f"{unit} is no unit of time"
        if dtype is not None and (dtype.itemsize > MAX_ITEM_SIZE or (kind == "U" and int(size) * 4 > MAX_ITEM_SIZE)):
            problem = f"elements take more than {MAX_ITEM_SIZE} bytes"
        elif dtype is not None and dtype.itemsize == 0:
            problem = "elements have no length"
        elif unit is not None and re.match(r"\[0+[A-Za-zμ]", unit):
            problem = "its unit is counted 0 times"
        elif dtype is not None and order == "|" and byte_orders(dtype):
            problem = 'its byte order is missing: "<" or ">"'
    if dtype is not None and dtype.kind in "mM" and unit is None:
        problems.note(place, f"{show(value)} has no unit of time; it is required")
    if match is None or problem is not None or dtype is None:
        reason = f" ({problem})" if problem else ""
        problems.expected(place, f'a type such as "<f8", "|S10", "<M8[ns]" or "|O"{reason}', value)
        return None
    return dtype


def _parse_field(value: JSON, place: str, problems: Problems) -> tuple[str, np.dtype[Any], tuple[int, ...]] | None:
    if not isinstance(value, (list, tuple)) or len(value) not in (2, 3):
        problems.expected(place, "a field: its name, its type and, if it has one, its shape", value)
        return None
    name = value[0]
    if not isinstance(name, str):
        problems.expected(f"{place}[0]", "a field name", name)  # empty for padding, of which NumPy makes a field
        name = None
    dtype = parse_dtype(value[1], f"{place}[1]", problems)
    if dtype is not None and dtype.kind == "O":
        problems.add(f"{place}[1]", "a field cannot hold objects")
        dtype = None
    shape: tuple[int, ...] | None = ()
    if len(value) == 3:
        given = [value[2]] if isinstance(value[2], int) else value[2]
        shape = parse_integers(given, f"{place}[2]", problems, low=1)
        if shape is not None and (len(shape) > 32 or prod(shape) > MAX_ITEM_SIZE):
            problems.add(f"{place}[2]", "the field is too large")
            shape = None
    return None if name is None or dtype is None or shape is None else (name, dtype, shape)
