"""Attributes of NetCDF and HDF5 as JSON, so that programs which know the CF conventions read the same."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from math import isfinite
from typing import Any

import numpy as np
import numpy.typing as npt

from zardine.creation.attribute_conventions import (
    MISSING,
    OTHER_MISSING,
    encode_missing,
    mark_missing,
    strict_attributes,
)
from zardine.data_types import DataType
from zardine.json_document import JSON

_SCALING = ("scale_factor", "add_offset")


def attributes_to_json(values: Mapping[str, Any], data_type: DataType | None) -> tuple[dict[str, JSON], list[str]]:
    """Return the attributes of a node as JSON, and a remark for each that does not say all that it said.

    ``values`` are numbers, text, bytes, arrays of those, or what has no form; ``data_type`` is that of the array, and
    ``None`` for a group. As in NetCDF an array of one element is that element. ``_FillValue`` gets the form that xarray
    reads in Zarr v3, or is said by another attribute.
    """
    found: dict[str, JSON] = {}
    remarks: list[str] = []
    scaling: set[np.dtype[Any]] = set()
    marked = None
    for name, value in values.items():
        value = _single(value)
        if name == MISSING and data_type is not None:
            marked = _missing(value, data_type)
            if marked is not None:
                continue
            remarks.append(f"attribute {name}: {value!r} is no element of this array, which has {data_type.dtype}")
        elif name == OTHER_MISSING and _is_nan(value) and data_type is not None and data_type.dtype.kind == "f":
            remarks.append(f"attribute {name}: NaN has no form in JSON and marks what it would; it is left out")
            continue
        if name in _SCALING and isinstance(value, (np.generic, np.ndarray)) and value.dtype.kind in "iuf":
            scaling.add(value.dtype)
        try:
            found[name] = _to_json(value, f"attribute {name}", remarks)
        except TypeError as error:
            remarks.append(f"attribute {name}: {error}; it is left out")
    if marked is not None:
        remarks += mark_missing(found, marked)
    narrow = sorted({str(each) for each in scaling if each not in (np.float64, np.int64)})
    if narrow:
        remarks.append(
            f"attributes {', '.join(name for name in _SCALING if name in values)}: they are of {', '.join(narrow)}, "
            "and JSON has no such numbers: what programs compute with them is of float64 or int64, and may differ by "
            "rounding"
        )
    strict, changed = strict_attributes(found)
    return strict, [*remarks, *changed]


def text_of(data: bytes, place: str, remarks: list[str]) -> str:
    """Return bytes that are to be text: of UTF-8, or of Latin-1 where they are not."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        remarks.append(f"{place}: its text is not UTF-8; it was read as Latin-1")
        return data.decode("latin-1")


def _single(value: Any) -> Any:
    if (isinstance(value, np.ndarray) and value.shape == (1,)) or (isinstance(value, list) and len(value) == 1):
        value = value[0]
    if isinstance(value, np.ndarray) and value.ndim == 0 and value.dtype.kind != "O":
        value = value[()]
    return value


def _is_nan(value: Any) -> bool:
    return isinstance(value, (float, np.floating)) and bool(np.isnan(value))


def unsaid_mark(values: Mapping[str, Any], data_type: DataType) -> str | None:
    """Return an attribute ``_FillValue`` that is text or bytes, which no attribute of that name can say in Zarr v3."""
    element = _missing(_single(values[MISSING]), data_type) if MISSING in values else None
    return None if element is None or encode_missing(element) is not None else text_of(_bytes(element), "", [])


def _bytes(element: npt.NDArray[Any]) -> bytes:
    return bytes(element[()]) if element.dtype.kind == "S" else str(element[()]).encode()


def _missing(value: Any, data_type: DataType) -> npt.NDArray[Any] | None:
    """Return an attribute ``_FillValue`` as an element, if it is one."""
    kind = data_type.dtype.kind
    try:
        if kind == "S" and isinstance(value, str):
            value = value.encode()
        if kind == "b" or (kind in "iufc" and not isinstance(value, (np.number, int, float))):
            return None
        element = np.array(value, data_type.dtype)
        if element.ndim or (kind in "iu" and int(element) != int(value)):
            return None
        return element
    except (TypeError, ValueError, OverflowError):
        return None


def _to_json(value: Any, place: str, remarks: list[str]) -> JSON:
    if isinstance(value, str):  # h5py marks bytes that are not UTF-8
        return text_of(value.encode("utf-8", "surrogateescape"), place, remarks)
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, float):
        return float(value)
    if isinstance(value, (bytes, np.bytes_)):
        return text_of(bytes(value), place, remarks)
    if isinstance(value, (complex, np.complexfloating)):
        _note(remarks, f"{place}: a complex number became a list of two numbers")
        return [float(value.real), float(value.imag)]
    if isinstance(value, np.longdouble):
        if isfinite(value) and np.longdouble(float(value)) != value:
            _note(remarks, f"{place}: a number of more digits than a double has was rounded")
        return float(value)
    if isinstance(value, np.void):
        if value.dtype.names is None:
            _note(remarks, f"{place}: {len(value.tobytes())} bytes became base64 text")
            return base64.standard_b64encode(value.tobytes()).decode("ascii")
        return {name: _to_json(value[name], f"{place}.{name}", remarks) for name in value.dtype.names}
    if isinstance(value, (np.datetime64, np.timedelta64)):
        _note(remarks, f"{place}: a time became text")
        return str(value)
    if isinstance(value, np.generic):
        return _to_json(value.item(), place, remarks)
    if isinstance(value, np.ndarray) and value.ndim == 0:
        return _to_json(value[()], place, remarks)
    if isinstance(value, Mapping):
        return {str(name): _to_json(each, f"{place}.{name}", remarks) for name, each in value.items()}
    if isinstance(value, (np.ndarray, list, tuple)):
        return [_to_json(each, place, remarks) for each in value]
    raise TypeError(f"JSON has no form for {type(value).__name__}")


def _note(remarks: list[str], text: str) -> None:
    if text not in remarks:
        remarks.append(text)


def unique(remarks: Iterable[str]) -> tuple[str, ...]:
    """Return remarks without repetitions."""
    return tuple(dict.fromkeys(remarks))


__all__ = ["attributes_to_json", "text_of", "unique", "unsaid_mark"]
