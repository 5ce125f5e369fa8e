"""Check that the values of a variable come back from what is stored for them.

An encoding of CF turns values into others: times into numbers of a unit, floats into packed integers, missing values
into a fill value, text into text of a fixed width. xarray stores whatever its casts give. Here the encoded values are
decoded again, as a reader does, and compared with those that the caller gave.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from inspect import signature
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd  # type: ignore[import-untyped]
from xarray import Variable, conventions
from xarray.coding.times import CFDatetimeCoder
from xarray.core.common import _contains_datetime_like_objects

from zardine.metadata.cf_time import UNITS_OF_TIME

MARKS: Final = ("_FillValue", "missing_value")
"""The attributes that say which value stands for a missing one."""
DECODED: Final = (
    *MARKS,
    "scale_factor",
    "add_offset",
    "_Unsigned",
    "units",
    "calendar",
    "dtype",
    "_Encoding",
)
"""The attributes that change what a reader makes of stored values."""

_ABBREVIATIONS: Final = {
    short: word
    for word, abbreviations in zip(
        UNITS_OF_TIME,
        ("d", "h hr hrs", "min mins", "s sec secs", "ms msec msecs millisec millisecs", "us microsec microsecs", "ns"),
        strict=True,
    )
    for short in abbreviations.split()
}
_TEXT: Final = "USTO"
_BLOCK: Final = 2**16
"""Elements that are decoded and compared at a time."""
_HAS_UNIT: Final = "time_unit" in signature(CFDatetimeCoder).parameters


def has_times(dtype: np.dtype[Any]) -> bool:
    """Return whether elements of ``dtype`` are NumPy's dates or durations."""
    return dtype.kind in "mM"


def is_of_times(variable: Variable) -> bool:
    """Return whether a decoded variable has dates or durations, of NumPy or of cftime."""
    return has_times(variable.dtype) or _contains_datetime_like_objects(variable)


def _is_exact(given: np.dtype[Any], made: np.dtype[Any], decoding: Mapping[str, Any]) -> bool:
    """Return whether every value of ``given`` comes back, so that none needs to be looked at."""
    changing = {name: value for name, value in decoding.items() if name not in ("calendar", "dtype")}
    if given.kind in "biufc":
        if changing.pop("_FillValue", np.nan) is not None and not _is_nan(decoding.get("_FillValue", np.nan)):
            return False
        if _is_nan(changing.get("missing_value")):
            del changing["missing_value"]
        digits = np.finfo(made).nmant + 1 if made.kind in "fc" else 64
        return not changing and np.can_cast(given, made, "safe") and (given.kind not in "iu" or _bits(given) <= digits)
    if given.kind in "US":
        is_marked = any(decoding.get(each) is not None for each in MARKS)
        fits = made.kind in "TO" or (given.kind == made.kind and given <= made)
        return fits and not is_marked and "_Encoding" not in decoding
    return given.kind == "V"


def _is_nan(value: Any) -> bool:
    return isinstance(value, (float, np.floating)) and bool(np.isnan(value))


def _bits(dtype: np.dtype[Any]) -> int:
    return 8 * dtype.itemsize - (dtype.kind == "i")


def signed_as(stored: np.dtype[Any], unsigned: Any) -> np.dtype[Any]:
    """Return the dtype of the integers that stored ones stand for, by the attribute ``_Unsigned``."""
    kind = {"true": "u", "false": "i"}.get(str(unsigned), stored.kind)
    return np.dtype(f"{kind}{stored.itemsize}").newbyteorder(stored.byteorder)


def check_decodes(name: Hashable, made: Variable) -> None:
    """Raise ``ValueError`` if xarray could not open an encoded variable, because of attributes that the caller gave.

    Opening decodes the first and the last element. Of Dask arrays, whose values are not known yet, it is a one.
    """
    said = {each: made.attrs[each] for each in DECODED if made.attrs.get(each) is not None}
    if not said or ({*said} == {"units"} and "since" not in str(said["units"])):
        return
    flat = np.ones(1, made.dtype) if made.chunks is not None else np.asarray(made.data).reshape(-1)
    ends = flat[[0, -1]] if flat.size else flat
    attributes = {each: value if each == "_FillValue" else _plain(value) for each, value in said.items()}
    try:
        conventions.decode_cf_variable(str(name), Variable("x", ends, attributes), stack_char_dim=False).load()
    except Exception as error:
        told = ", ".join(f"{each}={_shown(value)}" for each, value in said.items())
        raise ValueError(
            f"variable {name!r} of dtype {made.dtype} has attributes with which no reader could decode it ({told}): "
            f"{_first_line(error)}. Change the attributes, or call them by names that CF does not define"
        ) from error


def _first_line(error: Exception) -> str:
    return (str(error).partition("\n")[0] or type(error).__name__).removesuffix(".")


@dataclass(frozen=True)
class RoundTrip:
    """Compare encoded values with those that they stand for. Runs in tasks of Dask, too."""

    name: Hashable
    """Of the variable."""
    decoding: Mapping[str, Any]
    """The attributes by which a reader decodes."""
    dtype: np.dtype[Any]
    """Of the array that stores the values."""
    is_new: bool
    """Whether the array is made; else it is in the store."""
    is_chosen: bool
    """Whether the caller chose the encoding for this write; else it is that of the source, or of the stored array."""

    def is_exact_for(self, dtype: np.dtype[Any]) -> bool:
        """Return whether every value of ``dtype`` comes back, so that none needs to be looked at."""
        return _is_exact(dtype, self.dtype, self.decoding)

    def __call__(self, made: Variable, given: Any) -> npt.NDArray[Any]:
        """Return the values of ``made`` as they are stored, if a reader decodes them to those that were ``given``.

        Accepts rounding to half a step of packed numbers and to half a digit of shorter floats, and of floats to
        integers if the caller chose these. Raises ``ValueError`` that names the variable and the first value that would
        come back as another one.
        """
        stored, wanted = np.asarray(made.data), np.asarray(given)
        if self.dtype.kind not in "TO":
            with np.errstate(all="ignore"):
                stored = stored.astype(self.dtype, copy=False)
        if not wanted.size:
            return stored
        units = made.attrs.get("units")
        self._check_units(units)
        if wanted.dtype.kind == "m" and not self.is_new:
            self._check_whole(stored, wanted)
        ours, theirs = stored.reshape(-1), wanted.reshape(-1)
        for start in range(0, theirs.size, _BLOCK):  # so that what it takes in between stays in the processor's cache
            part = theirs[start : start + _BLOCK]
            try:
                found = self._decoded(ours[start : start + _BLOCK], part, units)
                wrong = self._differ(part, found, ours[start : start + _BLOCK])
            except Exception as error:  # xarray has many ways to fail
                advice = self._advice(part[0])
                raise ValueError(f"{self._what(part[0])} cannot be read back: {error}{advice}") from error
            if wrong.any():
                at = int(np.argmax(wrong))
                back = "a missing value" if pd.isnull(found[at]) else f"{_shown(found[at])}"
                raise ValueError(f"{self._what(part[at])} would come back as {back}{self._advice(part[at])}")
        return stored

    def _check_units(self, units: str | None) -> None:
        """Raise ``ValueError`` if xarray took another unit of time, since integers of this one cannot say the times."""
        stored = self.decoding.get("units")
        if stored is not None and units is not None and _unit(stored) != _unit(units):
            raise ValueError(
                f"variable {self.name!r} is stored as {self.dtype} in {stored!r}, which cannot say its new values "
                f"exactly: they need {units!r}. Write the store anew with such an encoding "
                f"(encoding={{{self.name!r}: {{'units': ..., 'dtype': ...}}}}), or round the values"
            )

    def _check_whole(self, stored: npt.NDArray[Any], wanted: npt.NDArray[Any]) -> None:
        """Raise ``ValueError`` if parts of a unit would join durations in short floats: those before would be rounded.

        xarray multiplies all of them, as floats of the same length, until none has a fraction.
        """
        broken = stored % 1 > 0 if stored.dtype.kind == "f" and stored.dtype.itemsize < 8 else np.zeros(1, bool)
        if broken.any():
            raise ValueError(
                f"variable {self.name!r} is stored as {self.dtype} in {self.decoding.get('units')!r}: beside "
                f"{_shown(wanted[broken][0])}, its other durations would come back rounded{self._advice()}"
            )

    def _what(self, value: Any) -> str:
        how = ", ".join(f"{name}={_shown(each)}" for name, each in self.decoding.items() if name != "dtype")
        what = f"{self.dtype} with {how}" if how else str(self.dtype)
        if self.is_new:
            return f"variable {self.name!r} is to be stored as {what}, in which {_shown(value)}"
        mismatch = "Mismatched dtypes for " if self.dtype.kind in "US" else ""
        return f"{mismatch}variable {self.name!r}: it is stored as {what}, in which {_shown(value)}"

    def _advice(self, value: Any = None) -> str:
        if self.dtype.kind in _TEXT and not isinstance(value, (str, bytes)):
            how = f"encoding={{{self.name!r}: {{'missing_value': 'NA'}}}}"
            return f": choose a text that stands for missing text, as {how}{'' if self.is_new else ', in a new store'}"
        if self.is_new:
            return (
                ": choose another encoding (ds.drop_encoding() forgets that of the file it was read from), or change "
                "the value"
            )
        return ": change the value, or write the store anew with another encoding"

    def _decoded(self, stored: npt.NDArray[Any], wanted: npt.NDArray[Any], units: Any) -> npt.NDArray[Any]:
        if has_times(self.dtype):
            return stored
        axes = [f"axis {number}" for number in range(stored.ndim)]
        use_cftime = True if wanted.dtype.kind == "O" else None
        options: dict[str, Any] = {"use_cftime": use_cftime}
        if _HAS_UNIT:
            unit: Any = np.datetime_data(wanted.dtype)[0] if has_times(wanted.dtype) else "ns"
            options = {"decode_times": CFDatetimeCoder(use_cftime, unit if unit in ("s", "ms", "us", "ns") else "s")}
        if wanted.dtype.kind in "mMO" and stored.dtype.kind == "f":
            stored = stored.copy()  # xarray decodes such times in place
        attributes = {name: each if name == "_FillValue" else _plain(each) for name, each in self.decoding.items()}
        if "since" not in str(units):  # of time, these decide how xarray marks missing integers
            attributes.setdefault("units", units)
        variable = Variable(axes, stored, attributes)
        options["decode_timedelta"] = True if wanted.dtype.kind == "m" else None
        if wanted.dtype.kind == "f":  # numbers with a unit of time, which the caller opened so
            options = {"decode_times": False, "decode_timedelta": False}
        found = conventions.decode_cf_variable(str(self.name), variable, stack_char_dim=False, **options)
        return np.asarray(found.values)

    def _differ(self, wanted: npt.NDArray[Any], found: npt.NDArray[Any], stored: npt.NDArray[Any]) -> Any:
        kinds = wanted.dtype.kind, found.dtype.kind
        if kinds[0] in "mM" and kinds[0] == kinds[1]:  # both ways: one that does not fit into the other unit wraps
            same = (wanted.astype(found.dtype) == found) & (found.astype(wanted.dtype) == wanted)
            return ~same & ~(np.isnat(wanted) & np.isnat(found))
        if kinds[0] in _TEXT:
            missing = pd.isnull(wanted)
            lost = pd.isnull(found)
            return (missing != lost) | (~missing & ~lost & (wanted.astype(object) != found.astype(object)))
        if not {*kinds} <= {*"biufc"}:
            return np.ones(wanted.shape, bool)
        missing = np.isnan(found)
        with np.errstate(all="ignore"):
            return (np.isnan(wanted) != missing) | (~missing & self._differ_as_numbers(wanted, found, stored))

    def _differ_as_numbers(self, wanted: npt.NDArray[Any], found: npt.NDArray[Any], stored: npt.NDArray[Any]) -> Any:
        is_packed = "scale_factor" in self.decoding or "add_offset" in self.decoding
        whole = stored.dtype.kind in "biu"
        if not is_packed and wanted.dtype.kind in "biu":
            if whole:
                if found.dtype.kind in "biu":
                    return wanted != found
                return wanted != stored.view(signed_as(stored.dtype, self.decoding.get("_Unsigned")))
            return (found != wanted) | (found.astype(wanted.dtype) != wanted)
        if not is_packed and not whole:
            return (found != wanted.astype(stored.dtype)) | (np.isinf(found) & ~np.isinf(wanted))
        if not is_packed and not self.is_chosen:
            return found != wanted
        step = abs(float(_plain(self.decoding.get("scale_factor", 1))))
        far = np.abs(found.astype(float, copy=False) - wanted)
        if whole and (far <= step / 2).all():
            return np.zeros(wanted.shape, bool)
        steps = 0.5 if whole else np.spacing(np.abs(stored)).astype(float)
        digits = np.finfo(wanted.dtype if wanted.dtype.kind == "f" else float).eps
        if found.dtype.kind == "f":
            digits = max(digits, np.finfo(found.dtype).eps)
        offset = abs(float(_plain(self.decoding.get("add_offset", 0))))
        nearly = 4 * digits * (np.abs(wanted.astype(float)) + offset)
        return (found != wanted) & (np.isinf(wanted) | ~(far <= step * steps + nearly))


def _plain(value: Any) -> Any:
    """Return the value of an attribute as a reader finds it: JSON has no types of NumPy."""
    value = value.tolist() if isinstance(value, (np.generic, np.ndarray)) else value
    return value[0] if isinstance(value, list) and len(value) == 1 else value


def is_encoded_in(units: object) -> bool:
    """Return whether xarray encodes times in these units."""
    return f"{_unit(str(units))}s" in UNITS_OF_TIME


def with_long_unit(units: str) -> str:
    """Return units of time with the unit as the word that xarray encodes: ``hours since 2000-01-01`` of ``h since``.

    xarray's readers know the abbreviations of CF, which its writer does not.
    """
    unit, since, date = str(units).partition(" since ")
    unit = unit.strip()
    return f"{_ABBREVIATIONS.get(unit.lower(), unit)}{since}{date}"


def _unit(units: str) -> str:
    """Return the unit of time, which may be followed by ``since`` and a date, in one spelling."""
    return with_long_unit(units).partition(" since ")[0].strip().lower().removesuffix("s")


def _shown(value: Any) -> str:
    if not isinstance(value, (str, bytes)):
        return str(value)
    return repr(value.item() if isinstance(value, np.generic) else value)
