"""Fit the encoding that a variable was read with to the values that it has now, and to a version of Zarr."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Any, Final

import numpy as np
from xarray import Variable

from zardine.xarray.round_trip import is_encoded_in, signed_as

_MARKS: Final = frozenset({"preferred_chunks", "original_shape", "source", "char_dim_name"})
"""Members that only a reader writes."""
_OF_FILES: Final = _MARKS | {
    *("zlib", "szip", "bzip2", "blosc", "zstd", "complevel", "compression", "compression_opts", "shuffle"),
    *("fletcher32", "contiguous", "chunksizes", "significant_digits", "least_significant_digit", "quantize_mode"),
    *("blosc_shuffle", "szip_coding", "szip_pixels_per_block", "endian", "unlimited_dims", "coordinates"),
}
"""Members that xarray's engines add when they read NetCDF, HDF5 or Zarr, and that say nothing of a new array."""
_OF_NUMBERS: Final = ("dtype", "_FillValue", "missing_value", "scale_factor", "add_offset", "_Unsigned")
_OF_TIMES: Final = ("units", "calendar")


def was_read(encoding: Mapping[str, Any]) -> bool:
    """Return whether a reader made an encoding, of which the caller may have changed some members."""
    return not _MARKS.isdisjoint(encoding)


def fit_encoding(variable: Variable, zarr_format: int) -> Variable:
    """Return a variable without those members of its encoding that do not fit its values or the version of Zarr.

    The caller must check the values later: those that are missing may need the fill value that is left out here.
    """
    found = variable.copy(deep=False)
    encoding = found.encoding
    is_zarr, is_characters = "preferred_chunks" in encoding, "char_dim_name" in encoding
    for each in _OF_FILES & encoding.keys():
        del encoding[each]
    if is_characters and variable.dtype.kind in "UTO":  # text has a type of its own in Zarr
        for each in ("dtype", "_Encoding", "_FillValue", "missing_value"):
            encoding.pop(each, None)
    if not _is_of(variable.dtype, encoding):
        for each in (*_OF_NUMBERS, *_OF_TIMES):
            encoding.pop(each, None)
    elif not _holds_text(variable, encoding.get("dtype")):
        del encoding["dtype"]
    if isinstance(encoding.get("units"), str) and variable.dtype.kind in "mMO" and not is_encoded_in(encoding["units"]):
        del encoding["units"]  # months, which xarray only decodes
    stored = _stored(variable, encoding)
    for each in ("_FillValue", "missing_value", "fill_value"):
        if isinstance(encoding.get(each), (list, tuple, np.ndarray)) and np.size(encoding[each]):
            encoding[each] = np.asarray(encoding[each]).reshape(-1)[0]  # of several, one is enough for missing values
        if encoding.get(each) is not None and not _fits(encoding[each], stored, encoding.get("_Unsigned")):
            del encoding[each]
    if not _are_same(encoding.get("_FillValue"), encoding.get("missing_value")):
        del encoding["missing_value"]  # xarray reads both as missing, and writes one
    if zarr_format == 2:
        encoding.pop("fill_value", None)  # which is _FillValue there
        encoding.pop("shards", None)
    for each in ("chunks", "shards"):
        lengths = encoding.get(each)
        if isinstance(lengths, (tuple, list)):
            is_uneven = any(isinstance(length, (tuple, list)) for length in lengths)
            if len(lengths) != variable.ndim or (is_zarr and (is_uneven or 0 in lengths)):
                encoding.pop("chunks", None)
                encoding.pop("shards", None)
    return found


def _is_of(dtype: Any, encoding: Mapping[str, Any]) -> bool:
    """Return whether values of a dtype and their encoding are both of text, or neither is."""
    if not isinstance(dtype, np.dtype) or dtype.kind == "O":
        return True
    is_text, stored = dtype.kind in "UST", encoding.get("dtype")
    if stored is None:
        return not (is_text and {"scale_factor", "add_offset", "_Unsigned"} & encoding.keys())
    return is_text == (stored is str or np.dtype(stored).kind in "USTO")


def _holds_text(variable: Variable, stored: Any) -> bool:
    """Return whether a stored dtype of text is wide enough for any text that a variable may hold now."""
    dtype = variable.dtype
    if stored is None or stored is str or stored == "S1" or dtype.kind not in "USTO":
        return True
    if np.dtype(stored).kind == "T":
        return bool(dtype.kind != "O")  # in which text may be missing
    return np.dtype(stored).kind not in "US" or bool(dtype.kind == np.dtype(stored).kind and dtype <= stored)


def _stored(variable: Variable, encoding: Mapping[str, Any]) -> Any:
    """Return the dtype of the stored values; integers of eight bytes for times of which the encoding says none."""
    dtype = variable.dtype if encoding.get("dtype") is None else encoding["dtype"]
    if dtype is str or not isinstance(dtype, (np.dtype, type, str)):
        return dtype
    dtype = np.dtype(dtype)
    return np.dtype("i8") if dtype.kind in "mM" and "dtype" not in encoding else dtype


def _are_same(one: Any, other: Any) -> bool:
    """Return whether two fill values are the same, or one of them is not said."""
    if one is None or other is None:
        return True
    return bool(np.all((np.asarray(one) == other) | ((one != one) & (other != other))))


def _fits(value: Any, stored: Any, unsigned: Any) -> bool:
    """Return whether a fill value may be one of an array of a dtype, signed or not."""
    if not isinstance(stored, np.dtype) or stored.kind in "OT":
        return isinstance(value, (str, bytes)) or not isinstance(stored, np.dtype)
    number = np.asarray(value)
    if stored.kind in "US":
        return number.dtype.kind == stored.kind
    if number.size != 1 or number.dtype.kind not in "biufc":
        return number.dtype.kind == stored.kind
    number = number.reshape(())[()]
    if stored.kind in "iu":
        ranges = np.iinfo(stored), np.iinfo(signed_as(stored, unsigned))
        return bool(
            number.dtype.kind in "biuf"
            and isfinite(number)
            and number == int(number)
            and any(each.min <= int(number) <= each.max for each in ranges)
        )
    if stored.kind == "b":
        return bool(number.dtype.kind == "b")
    with np.errstate(all="ignore"):
        return stored.kind == "c" or (
            stored.kind == "f" and bool(np.isfinite(stored.type(number)) or not np.isfinite(number))
        )
