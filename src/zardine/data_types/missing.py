"""Missing values: ``None``, NaN, NaT, ``pandas.NA``, the missing object of ``StringDType`` and masked elements.

Floats hold them as NaN and times as NaT. Text, bytes, integers and booleans have no value that means "missing": NumPy
would store the words ``None`` and ``nan``, or arbitrary numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt

_PANDAS_MISSING = ("NAType", "NaTType")


def is_missing(value: object) -> bool:
    """Return whether one Python object means "missing"."""
    if value is None or value is np.ma.masked:
        return True
    if isinstance(value, (float, complex, np.inexact)):
        return bool(value != value)
    if isinstance(value, (np.datetime64, np.timedelta64)):
        return bool(np.isnat(value))
    if isinstance(value, Decimal):
        return value.is_nan()
    kind = type(value)
    package = kind.__module__.partition(".")[0]
    return (package == "pandas" and kind.__name__ in _PANDAS_MISSING) or (
        package == "pyarrow" and getattr(value, "is_valid", True) is False
    )


def as_array(value: object) -> npt.NDArray[Any]:
    """Return ``value`` as ``numpy.asanyarray`` does, but lists of text with missing elements as arrays of objects.

    NumPy makes the words ``nan`` and ``NaT`` of those.
    """
    array = np.asanyarray(value)
    if array.dtype.kind in "US" and isinstance(value, (list, tuple)):
        objects = np.asarray(value, dtype=object)
        if missing_mask(objects) is not None:
            return objects
    return array


def missing_mask(values: npt.NDArray[Any]) -> npt.NDArray[np.bool_] | None:
    """Return a boolean array that is true where an element of ``values`` is missing; ``None`` if nothing is missing."""
    masked = None
    if isinstance(values, np.ma.MaskedArray):
        masked = _mask_of(values)
        values = values.data
    found = _missing_elements(values)
    if masked is not None:
        found = masked if found is None else found | masked
    return found if found is not None and found.any() else None


def with_missing_as(values: npt.NDArray[Any], dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """Return ``values`` ready for a cast to ``dtype``: missing elements are what this dtype holds for them.

    Raises ``ValueError`` with the index and the value of the first missing element if ``dtype`` cannot hold it.
    """
    is_masked = isinstance(values, np.ma.MaskedArray)
    source, target = values.dtype.kind, dtype.kind
    if dtype.names is not None and values.dtype.names is not None:
        _check_fields(values, dtype)
    elif not is_masked and ((source not in "OTfcmM" and not _is_ml_float(values.dtype)) or _is_kept(source, target)):
        return values  # nothing can be missing, or NumPy keeps it
    mask = missing_mask(values)
    plain: npt.NDArray[Any] = np.asarray(values)
    if mask is None:
        return plain
    if not _holds_missing(dtype) or (
        source in "mM" and target not in "mM"
    ):  # NaT would become the number it is stored as
        raise ValueError(_refusal(values, mask, dtype))
    filled = plain.astype(object if source in "OT" else dtype)
    filled[mask] = dtype.type("NaT") if target in "mM" else np.nan
    return filled


def _is_kept(source: str, target: str) -> bool:
    """Return whether NumPy casts missing elements of one kind of dtype to missing elements of the other."""
    return any(source in kinds and target in kinds for kinds in ("fc", "mM"))


def _holds_missing(dtype: np.dtype[Any]) -> bool:
    if _is_ml_float(dtype):
        return bool(np.isnan(np.array(np.nan).astype(dtype)))
    return dtype.kind in "fcmM"


def _is_ml_float(dtype: np.dtype[Any]) -> bool:
    """Return whether ``dtype`` is one of the floats of the package ml_dtypes, as ``bfloat16``."""
    return dtype.kind == "V" and dtype.names is None and "float" in dtype.name


def _mask_of(values: np.ma.MaskedArray[Any, Any]) -> npt.NDArray[np.bool_]:
    mask = np.ma.getmaskarray(values)
    return _any_field(mask) if mask.dtype.names is not None else mask


def _any_field(mask: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    found = np.zeros(mask.shape, bool)
    for name in mask.dtype.names or ():
        field = mask[name]
        if field.dtype.names is not None:
            field = _any_field(field)
        found |= field.reshape(*mask.shape, -1).any(axis=-1)
    return found


def _missing_elements(values: npt.NDArray[Any]) -> npt.NDArray[np.bool_] | None:
    kind = values.dtype.kind
    if kind in "fc" or _is_ml_float(values.dtype):
        return np.asarray(np.isnan(values))
    if kind in "mM":
        return np.asarray(np.isnat(values))
    if kind == "O" or (kind == "T" and hasattr(values.dtype, "na_object")):
        objects = values.astype(object)
        return np.fromiter(map(is_missing, objects.flat), bool, objects.size).reshape(objects.shape)
    return None


def _check_fields(values: npt.NDArray[Any], dtype: np.dtype[Any]) -> None:
    """Check that each field of ``dtype`` holds what is missing in the field of ``values`` at the same position."""
    assert values.dtype.names is not None
    assert dtype.names is not None
    for source, target in zip(values.dtype.names, dtype.names, strict=False):
        field = values[source]
        try:
            with_missing_as(np.asarray(field), dtype[target].base)
        except ValueError as error:
            raise ValueError(f"field {target!r}: {error}") from None


def first_missing(values: npt.NDArray[Any]) -> str | None:
    """Return in words where the first missing element of ``values`` is, and what it is; ``None`` without one."""
    mask = missing_mask(values)
    return None if mask is None else _describe_first(values, mask)


def element_at(place: Sequence[Any]) -> str:
    """Return in words which element of an array an error is about; without a place, that it is the only one."""
    return f"element {[int(i) for i in place]}" if len(place) else "the value"


def _describe_first(values: npt.NDArray[Any], mask: npt.NDArray[np.bool_]) -> str:
    place = tuple(map(int, np.argwhere(mask)[0])) if mask.ndim else ()
    item = values[place]
    shown = "masked" if item is np.ma.masked else repr(item.item() if isinstance(item, np.inexact) else item)
    return f"{element_at(place)} is missing ({shown})"


def _refusal(values: npt.NDArray[Any], mask: npt.NDArray[np.bool_], dtype: np.dtype[Any]) -> str:
    kind = {"T": "text", "U": "text", "S": "bytes", "b": "booleans"}.get(dtype.kind, f"dtype {dtype}")
    return (
        f"{_describe_first(values, mask)}, and {kind} cannot hold missing values: replace them first, "
        "or store a second array that says where they are"
    )


__all__ = ["as_array", "first_missing", "is_missing", "missing_mask", "with_missing_as"]
