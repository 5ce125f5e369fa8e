"""Encode the values of variables as the conventions of CF ask for, and refuse those that would come back as others."""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping
from functools import partial
from inspect import signature
from typing import Any, Final

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
from xarray import SerializationWarning, Variable
from xarray.backends.zarr import encode_zarr_variable
from xarray.core import duck_array_ops

from zardine.metadata.cf_time import UNITS_OF_TIME
from zardine.user_warnings import warn_user
from zardine.xarray.round_trip import DECODED, MARKS, RoundTrip, has_times, is_of_times, signed_as, with_long_unit

_HAS_FORMAT: Final = "zarr_format" in signature(encode_zarr_variable).parameters


def encode_new(variable: Variable, name: Hashable, zarr_format: int, *, is_chosen: bool) -> Variable:
    """Return a variable as a new array stores it, with the attributes that say how to decode it.

    ``is_chosen``: the caller chose its encoding for this write, so that floats may be rounded to integers.
    Raises ``ValueError`` for values that would come back as others; for Dask arrays when they are computed.
    """
    variable = _with_mark_for_text(_without_nan_marks(_known(variable, name)))
    made = _encode(variable, name, zarr_format)
    if made.dtype == "S1" and variable.dtype.kind in "SO" and "_Encoding" not in variable.attrs:
        made = made.astype("S2", keep_attrs=True)  # xarray takes the last axis of S1 for the characters of a text
    decoding = {each: made.attrs[each] for each in DECODED if each in made.attrs and each not in variable.attrs}
    return _checked(
        variable, made, RoundTrip(name, decoding, made.dtype, is_new=True, is_chosen=is_chosen), zarr_format
    )


def encode_for(
    variable: Variable, name: Hashable, zarr_format: int, decoding: Mapping[str, Any], dtype: np.dtype[Any]
) -> Variable:
    """Return a variable as an array of ``dtype`` stores it, of which readers decode the elements by ``decoding``.

    Raises as :func:`encode_new`.
    """
    variable = _known(variable, name)
    made = _encode(variable, name, zarr_format)
    return _checked(variable, made, RoundTrip(name, decoding, dtype, is_new=False, is_chosen=False), zarr_format)


def _checked(variable: Variable, made: Variable, check: RoundTrip, zarr_format: int) -> Variable:
    if check.is_exact_for(variable.dtype):
        return made
    if made.chunks is None:
        check(made, variable.data)
        return made
    encoding = dict(variable.encoding)
    if made.dtype.kind not in "OT" and ("dtype" in encoding or not has_times(variable.dtype)):
        encoding.setdefault("dtype", made.dtype)  # xarray knows missing text only where none is named
    for each in ("units", "calendar"):
        if each in made.attrs and each not in variable.attrs:
            encoding[each], encoding["dtype"] = made.attrs[each], encoding.get("dtype", made.dtype)
    task = partial(_encode_block, variable.dims, dict(variable.attrs), encoding, check, zarr_format)
    meta = np.empty((0,) * made.ndim, made.dtype)
    return made.copy(deep=False, data=variable.data.map_blocks(task, dtype=made.dtype, meta=meta))


def _encode_block(
    dims: tuple[Hashable, ...],
    attributes: dict[Any, Any],
    encoding: dict[Any, Any],
    check: RoundTrip,
    zarr_format: int,
    block: Any,
) -> Any:
    """Return the encoded values of a chunk of a Dask array. A task."""
    return check(_encode(Variable(dims, block, attributes, encoding), check.name, zarr_format), block)


def _shown(variable: Variable) -> str:
    """Return in words how the values of a variable are encoded, without how they are laid out in a store."""
    told = {name: variable.encoding[name] for name in _OF_VALUES if variable.encoding.get(name) is not None}
    return ", ".join(f"{name}={each!s}" for name, each in told.items()) or "its encoding"


_OF_VALUES: Final = ("dtype", "_Unsigned", "scale_factor", "add_offset", *MARKS, "units", "calendar", "char_dim_name")


def _far_dates_as_numbers(variable: Variable) -> Variable:
    """Return dates as numbers since 1970, in the longest unit in which all are whole.

    For dates that are too far apart for xarray, which subtracts them.
    """
    dates = np.asarray(variable.data)
    missing = np.isnat(dates)
    units = zip(UNITS_OF_TIME, ("D", "h", "m", "s", "ms", "us", "ns"), strict=True)
    name, unit = next((name, unit) for name, unit in units if ((dates.astype(f"M8[{unit}]") == dates) | missing).all())
    encoding = {key: value for key, value in variable.encoding.items() if key not in ("units", "calendar")}
    if missing.any():
        encoding.setdefault("_FillValue", np.iinfo(np.int64).min)
    numbers = dates.astype(f"M8[{unit}]").astype(np.int64)
    numbers[missing] = encoding.get("_FillValue", 0)
    told = {**variable.attrs, "units": f"{name} since 1970-01-01", "calendar": "proleptic_gregorian"}
    return Variable(variable.dims, numbers, told, encoding)


def _encode(variable: Variable, name: Hashable, zarr_format: int) -> Variable:
    """Return a variable with encoded values and the attributes that say how to decode them; nothing is checked."""
    dtype = variable.encoding.get("dtype")
    if dtype is not None and dtype is not str and has_times(np.dtype(dtype)):
        return _as_times_of_numpy(variable, np.dtype(dtype), name)
    options: dict[str, Any] = {"zarr_format": zarr_format} if _HAS_FORMAT else {}
    try:
        ready, stored = _prepared(variable)
    except (ValueError, OverflowError) as error:
        raise ValueError(f"variable {name!r} cannot be encoded with {_shown(variable)}: {error}") from error
    try:
        with np.errstate(invalid="ignore"):  # values that do not fit are found when they are decoded again
            made: Variable = encode_zarr_variable(ready, name=name, **options)
    except Exception as error:
        if not isinstance(variable.dtype, np.dtype):
            raise TypeError(
                f"variable {name!r} has the dtype {variable.dtype} of pandas, which cannot be stored as it is: convert "
                "it to one of NumPy with .astype(...)"
            ) from error
        units = ready.encoding.get("units")
        # what comes of a subtraction beyond the range: OverflowError of newer NumPy, wrong differences of older
        is_far_apart = isinstance(error, (KeyError, OverflowError))
        if is_far_apart and units is None and ready.dtype.kind == "M":
            return _encode(_far_dates_as_numbers(variable), name, zarr_format)
        if isinstance(error, KeyError) and units is not None:
            raise ValueError(
                f"variable {name!r} of dtype {variable.dtype} cannot be encoded in {units!r}: the units of times are "
                f"{', '.join(UNITS_OF_TIME)}, followed by `since` and a date for dates alone"
            ) from error
        if isinstance(error, (ValueError, OverflowError, AttributeError)):
            raise ValueError(f"variable {name!r} cannot be encoded: {error}") from error
        if isinstance(error, TypeError):
            raise TypeError(
                f"variable {name!r} of dtype {variable.dtype} cannot be encoded with {_shown(variable)}: {error}"
            ) from error
        error.add_note(f"while encoding variable {name!r} of dtype {variable.dtype}")
        raise
    if "calendar" in ready.encoding and "calendar" in made.attrs:
        made.attrs["calendar"] = variable.encoding["calendar"]
    mark = next((made.attrs[each] for each in MARKS if each in made.attrs), None)
    if mark is not None and made.dtype.kind in "iu" and made.dtype.itemsize == 8 and ready.dtype.kind == "f":
        missing = ready.isnull().data  # floats are no such integers as the largest
        data = duck_array_ops.where(missing, made.dtype.type(mark), made.data)  # type: ignore[no-untyped-call]
        made = made.copy(deep=False, data=data)
    if stored is None:
        return made
    made = made.copy(deep=False, data=made.data.view(stored))
    made.attrs["_Unsigned"] = variable.encoding["_Unsigned"]
    for each in MARKS:
        is_marked = each in made.attrs and each not in variable.attrs
        if is_marked and (stored.kind == "i" or zarr_format == 2):  # else xarray reads the signed integer alone
            made.attrs[each] = np.asarray(made.attrs[each]).view(stored)[()]
    return made


def _without_nan_marks(variable: Variable) -> Variable:
    """Return a variable without a ``missing_value`` that is NaN.

    Readers take NaN for missing without it, and JSON has no form for it.
    """
    found = variable.copy(deep=False)
    for holder in (found.encoding, found.attrs):
        value = np.asarray(holder.get("missing_value", 0))
        if value.dtype.kind in "US" and value.size == 1:  # as a word, which stands for the number
            number = value.astype(str).reshape(-1)[0]
            is_nan = found.dtype.kind in "biufc" and str(number).lower() == "nan"
        else:
            is_nan = value.dtype.kind == "f" and value.size > 0 and bool(np.isnan(value).all())
        if is_nan:
            del holder["missing_value"]
    return found


def _known(variable: Variable, name: Hashable) -> Variable:
    """Return a variable whose text is known: missing text is an object, and objects of Dask, but dates, are loaded."""
    is_text = variable.dtype.kind == "T" and hasattr(variable.dtype, "na_object")
    if variable.dtype.kind == "O" and variable.chunks is not None and not is_of_times(variable):
        warn_user(
            f"variable {name!r} is a dask array with dtype=object, and is loaded into memory to see what it holds: to "
            "avoid that, convert it first, as with .astype(np.dtypes.StringDType())",
            SerializationWarning,
        )
        variable = variable.compute()
    return variable.astype(object, keep_attrs=True) if is_text and variable.chunks is None else variable


def _with_mark_for_text(variable: Variable) -> Variable:
    """Return a variable of text that says what stands for missing text: if nothing is said, the empty text.

    xarray stores the empty text in any case, without saying so. None is chosen if there is empty text among the values,
    or if Dask computes them. Of text it is no ``_FillValue``, with which xarray opens no text of Zarr v3.
    """
    is_marked = any(holder.get(each) is not None for holder in (variable.encoding, variable.attrs) for each in MARKS)
    if variable.dtype.kind not in "OT" or is_marked or variable.chunks is not None:
        return variable
    values = variable.values.astype(object)
    missing = pd.isnull(values)
    kinds = set(map(type, values[~missing].flat))
    if not np.any(missing) or kinds not in ({str}, {bytes}):
        return variable
    empty = kinds.pop()()
    found = variable.copy(deep=False, data=values)
    if not (values == empty).any():
        found.encoding["_FillValue" if isinstance(empty, bytes) else "missing_value"] = empty
    return found


_ZONED: Final = re.compile(r" since +(\S+[ T]+\d\d?:\d\d(?::[\d.]+)? *[-+]\d\d?(?::?\d\d)?) *$")
"""A date from which times count that is not in UTC."""


def _prepared(variable: Variable) -> tuple[Variable, np.dtype[Any] | None]:
    """Return a variable that xarray encodes without loss, and the dtype as which its integers are stored, if another.

    xarray packs numbers in their own type, which fails for integers and rounds for short floats. It forgets
    ``_Unsigned`` where no fill value is given, and casts floats to signed integers where one is. It looks for dates
    before the Gregorian calendar, and fails where all are missing.
    """
    found, encoding = variable.copy(deep=False), variable.encoding
    is_of_dates = variable.dtype.kind == "M" and variable.chunks is None
    if is_of_dates and "calendar" in encoding and np.isnat(variable.values).all():
        found.encoding["calendar"] = "proleptic_gregorian"
    dtype = variable.dtype if encoding.get("dtype") is None else encoding["dtype"]
    if isinstance(encoding.get("units"), str) and variable.dtype.kind in "mMO":
        found.encoding["units"] = with_long_unit(encoding["units"])
    date = _ZONED.search(str(encoding.get("units"))) if variable.dtype.kind == "M" else None
    if date is not None and found.encoding["units"] == encoding["units"]:  # xarray reads no zone behind abbreviations
        # xarray would subtract the local time, for which another unit may be needed
        utc = pd.Timestamp(date[1]).tz_convert(None).isoformat(" ")
        found.encoding["units"] = found.encoding["units"].replace(date[1], utc)
    is_packed = bool({"scale_factor", "add_offset"} & encoding.keys())
    for each in {"scale_factor", "add_offset"} & encoding.keys():
        number = np.asarray(encoding[each])
        if number.dtype.kind in "biu" and number.size == 1:  # with which xarray computes in integers, and fails
            found.encoding[each] = float(number.item())
    is_short = variable.dtype.kind == "f" and variable.dtype.itemsize < 8 and "dtype" in encoding
    if is_packed and (is_short or variable.dtype.kind in "biu"):
        found.data = found.data.astype(np.float64)
    if "_Unsigned" not in encoding or dtype is str or np.dtype(dtype).kind not in "iu":
        found.encoding.pop("_Unsigned", None)  # of floats, xarray makes integers
        return found, None
    stored = np.dtype(dtype)
    meant = signed_as(stored, encoding["_Unsigned"])
    found.encoding["dtype"] = meant
    del found.encoding["_Unsigned"]
    for each in MARKS:
        if encoding.get(each) is not None:
            found.encoding[each] = _as_integer(encoding[each], each, stored, meant)
    return found, stored


def _as_integer(value: Any, mark: str, stored: np.dtype[Any], meant: np.dtype[Any]) -> Any:
    """Return a stored integer as the one that it stands for; one that only ``meant`` has is that already."""
    number = int(np.asarray(value).item())
    if np.iinfo(stored).min <= number <= np.iinfo(stored).max:
        return np.array(number, stored).view(meant)[()]
    warn_user(
        f"{mark} attribute can't be represented as {stored}: {number} is stored as the {stored} of the same bits",
        SerializationWarning,
    )
    return meant.type(number)


def _as_times_of_numpy(variable: Variable, dtype: np.dtype[Any], name: Hashable) -> Variable:
    """Return dates or durations for an array of NumPy's own."""
    if variable.dtype.kind != dtype.kind:
        raise ValueError(
            f"variable {name!r} is to be stored as {dtype}, and has {variable.dtype}: convert it first, as with "
            "xr.decode_cf, or ds.convert_calendar('proleptic_gregorian', use_cftime=False) for dates of cftime"
        )
    found = variable.copy(deep=False)
    for each in ("dtype", "units", "calendar"):
        found.encoding.pop(each, None)
    return found
