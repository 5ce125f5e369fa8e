"""Attribute columns: a value, or a row of values, for each vertex, fragment, link, object or group.

Text is stored as codes of a list of categories. In memory it is an array of NumPy's variable-width strings
(``StringDType``), or, where some values are missing (``None``), of objects.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from zardine.buffers import Ints
from zardine.data_types.missing import is_missing
from zardine.errors import CorruptionError, DataError
from zardine.vectors.content.arguments import is_masked, plain_array, shown
from zardine.vectors.format.ragged import rows_at

TEXT = np.dtypes.StringDType()

_RESERVED = (".", "..", "c", "zarr.json", ".zarray", ".zattrs", ".zgroup", ".zmetadata")
"""Names that cannot be those of attributes, which are folders in the store."""


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """A column as it is stored: numbers, or codes of ``categories``."""

    values: npt.NDArray[Any]
    """``(rows,)`` or ``(rows, channels)``, little endian or of single bytes."""
    categories: tuple[str, ...] | None = None
    missing: int | None = None
    """The code of values that are missing."""
    details: Mapping[str, Any] = field(default_factory=dict)
    """What else the document says: ``ordered``, ``channel_names``, ``unit``, …"""

    @property
    def row_shape(self) -> tuple[int, ...]:
        """``()`` or ``(channels,)``."""
        return self.values.shape[1:]

    def take(self, rows: Ints | slice | npt.NDArray[np.bool_]) -> Column:
        """Some rows."""
        if isinstance(rows, np.ndarray) and rows.dtype.kind == "i":
            return replace(self, values=rows_at(self.values, rows.astype(np.int64, copy=False)))
        return replace(self, values=self.values[rows])

    def decoded(self) -> npt.NDArray[Any]:
        """The values as users see them; see the module's text. Raises :class:`~zardine.errors.CorruptionError`."""
        if self.categories is None:
            return self.values.astype(native(self.values.dtype), copy=False)
        codes, absent = self._codes(self.categories)
        if not absent.any():
            return np.array(self.categories or ("",), TEXT)[codes] if len(codes) else np.zeros(codes.shape, TEXT)
        table = np.array([*self.categories, None], object)
        return table[np.where(absent, len(self.categories), codes)]

    def _codes(self, categories: tuple[str, ...]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
        """The codes, and which of them stand for nothing."""
        codes = self.values.astype(np.int64)
        absent = codes == self.missing if self.missing is not None else np.zeros(codes.shape, np.bool_)
        if ((codes < 0) | (codes >= len(categories)))[~absent].any():
            raise CorruptionError(f"codes outside the {len(categories)} categories of the attribute")
        return codes, absent


def native(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The same type of numbers in the byte order of this machine."""
    return np.dtype(f"{dtype.kind}{dtype.itemsize}")


def absent_value(dtype: np.dtype[Any]) -> Any:
    """What stands for an object that has no value: NaN, the lowest or, without a sign, the highest integer, ``""``.

    ``None`` for booleans, which have nothing to spare.
    """
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        return int(limits.min if dtype.kind == "i" else limits.max)
    return float("nan") if dtype.kind == "f" else "" if dtype.kind == "T" else None


def column_of(name: str, values: Any, rows: int, what: str) -> Column:
    """The column for a user's ``values``, which has a row for each of ``rows`` (``what`` they are, for the error).

    Raises :class:`~zardine.errors.DataError` for another number of rows, more than two dimensions, or values that are
    neither numbers nor text, or no numbers of one type.
    """
    check_name(name)
    array = array_of(name, values)
    if array.ndim == 0:
        raise DataError(
            f"attribute {name!r} is a single {array.dtype} value: it needs one for each of the {what}, "
            "as np.full(len(v), value) makes them of one"
        )
    if array.ndim not in (1, 2) or len(array) != rows:
        raise DataError(
            f"attribute {name!r} has shape {array.shape}: it needs one row for each of the {rows} {what}, "
            "and one or two dimensions"
        )
    if array.ndim == 2 and array.shape[1] == 0:
        raise DataError(f"attribute {name!r} has shape {array.shape}: rows without a value cannot be stored")
    if array.dtype.kind in "UTSO":
        return _text_column(name, array)
    if array.dtype.kind not in "iufb" or array.dtype.itemsize > 8:
        raise DataError(
            f"attribute {name!r} is of dtype {array.dtype}: numbers of up to 64 bits, booleans and text can be stored"
        )
    return Column(np.ascontiguousarray(array, array.dtype.newbyteorder("<")))


def array_of(name: str, values: Any) -> npt.NDArray[Any]:
    """A user's ``values`` as an array; lists of integers as integers, also where NumPy would take float64 for them.

    Masked text becomes missing text (``None``). Raises :class:`~zardine.errors.DataError` for rows of different
    lengths, masked numbers, and lists with integers that no type holds that holds the others.
    """
    if is_masked(values):
        values = _without_mask(name, values)
    array = plain_array(values, f"attribute {name!r}")
    if not hasattr(values, "dtype") and array.dtype.kind in "US":
        return np.asarray(values, object)  # in a list beside text, NumPy makes text of numbers and NaN
    if array.dtype != np.float64 or array is values or not (np.abs(array) >= 2.0**53).any():
        return array
    if str(getattr(values, "dtype", getattr(values, "type", ""))).lower().startswith(("int", "uint")):
        row = int(np.flatnonzero(np.isnan(array.reshape(len(array), -1)).any(axis=1))[0])  # why these are floats
        raise DataError(
            f"attribute {name!r} lacks values among its integers: row {row} has none; only floats can be missing, as "
            "NaN, and float64 does not hold integers above 2**53: fill it"
        )
    if hasattr(values, "dtype"):
        return array
    given = np.asarray(values, object)
    whole = [each for each in given.reshape(-1).tolist() if isinstance(each, int | np.integer)]
    if len(whole) == given.size and min(whole) >= 0 and max(whole) < 2**64:
        return given.astype(np.uint64)
    wrong = next((each for each in whole if int(float(each)) != each), None)
    if wrong is not None:
        raise DataError(f"attribute {name!r}: no type of numbers holds {wrong} exactly, and the other values too")
    return array


def _without_mask(name: str, values: Any) -> npt.NDArray[Any]:
    """Return masked text as objects, ``None`` where it is masked.

    Raises :class:`~zardine.errors.DataError` for masked numbers: the mask would be lost.
    """
    mask, data = np.ma.getmaskarray(values), np.asarray(values.data)
    if data.dtype.kind not in "UTSO" or all(_is_number(each) for each in data[~mask].tolist()):
        row = int(np.flatnonzero(mask.reshape(len(mask), -1).any(axis=1))[0])
        raise DataError(
            f"attribute {name!r}: values are masked, the first in row {row}; leave these rows out, or fill them "
            "(floats with NaN)"
        )
    found: npt.NDArray[Any] = data.astype(object)
    found[mask] = None
    return found


def _is_number(value: Any) -> bool:
    return isinstance(value, bool | int | float | complex | np.generic) and not isinstance(value, np.str_ | np.bytes_)


def joined_arrays(name: str, parts: Sequence[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    """Arrays one behind the other; those without rows do not say what the type is.

    Raises :class:`~zardine.errors.DataError` for rows of different shapes, and for numbers that no type holds together.
    """
    full = [part for part in parts if len(part)]
    if not full:
        return max(parts, key=np.ndim, default=np.zeros(0))
    shapes = {part.shape[1:] for part in full}
    if len(shapes) > 1:
        raise DataError(f"attribute {name!r} has rows of different shapes: {', '.join(map(str, sorted(shapes)))}")
    kinds = {part.dtype.kind for part in full}
    if kinds & set("UTSO"):
        return np.concatenate([part.astype(object) for part in full])
    try:
        joined = np.concatenate(full)
    except TypeError:
        raise DataError(f"attribute {name!r} has values of types that do not go together") from None
    if kinds <= set("iub") and joined.dtype.kind == "f" and not any((part < 0).any() for part in full):
        return np.concatenate([part.astype(np.uint64) for part in full])
    ends = np.cumsum([len(part) for part in full])
    for end, part in zip(ends.tolist(), full, strict=True):
        if part.dtype.kind in "iu" and not is_exact(joined[end - len(part) : end], part):
            raise DataError(f"attribute {name!r}: {joined.dtype} would round integers: give numbers of one type")
    return joined


def is_exact(stored: npt.NDArray[Any], given: npt.NDArray[Any]) -> bool:
    """Whether ``stored``, of another type of numbers, is what was ``given``."""
    if not np.array_equal(stored, given, equal_nan=given.dtype.kind == stored.dtype.kind == "f"):
        return False
    if {stored.dtype.kind, given.dtype.kind} not in ({"f", "i"}, {"f", "u"}):
        return True
    floats, whole = (stored, given) if stored.dtype.kind == "f" else (given, stored)
    floats = floats.astype(np.float64)
    limits = np.iinfo(whole.dtype)
    within = (floats >= float(limits.min)) & (floats < float(limits.max // 2 + 1) * 2)
    return bool(within.all()) and np.array_equal(floats.astype(whole.dtype), whole)


def join_columns(
    name: str, old: Column, new: npt.NDArray[Any] | None, rows: int, *, of_objects: bool = False
) -> Column:
    """``old`` with ``rows`` rows behind it: ``new`` (values as users give them), or where that is ``None`` fill values.

    Fill values are NaN, zero, and missing text; ``of_objects``: what :func:`absent_value` gives. Raises
    :class:`~zardine.errors.DataError` for values of another kind or row shape, for integers that the stored type does
    not hold exactly, and for others that it does not hold at all.
    """
    if new is not None and new.shape != (rows, *old.row_shape):
        raise DataError(f"attribute {name!r} has rows of shape {old.row_shape}, the new values {new.shape[1:]}")
    if old.categories is not None or (new is not None and new.dtype.kind in "UTSO"):
        if old.categories is None:
            raise DataError(f"attribute {name!r} holds numbers; text cannot be added")
        added = np.full((rows, *old.row_shape), None, object) if new is None else np.asarray(new, object)
        return _join_text(name, old, old.categories, added)
    if new is None:
        fill = absent_value(old.values.dtype) if of_objects or old.values.dtype.kind == "f" else None
        fill = 0 if fill is None else fill
        added = np.full((rows, *old.row_shape), fill, old.values.dtype)
    else:
        added = new
        with np.errstate(over="ignore", invalid="ignore"):
            cast = added.astype(old.values.dtype)
        rounded = old.values.dtype.kind == "f" and added.dtype.kind == "f"
        if not is_exact(cast, added) and (not rounded or (np.isinf(cast) & ~np.isinf(added)).any()):
            raise DataError(f"attribute {name!r} is stored as {old.values.dtype}, which cannot hold the new values")
        added = cast
    return replace(old, values=np.concatenate([old.values, added]))


def check_name(name: str) -> str:
    """``name`` if an attribute can be called so. Raises :class:`~zardine.errors.DataError`."""
    if not isinstance(name, str) or not name or "/" in name or "\0" in name or name.startswith("__"):
        raise DataError(f"{name!r} is no name for an attribute: give text without '/' that does not begin with '__'")
    if name in _RESERVED or not is_unicode(name):
        raise DataError(f"{name!r} is no name for an attribute: files of Zarr, or none, are called so; give another")
    return name


def meant_name(name: str, there: Collection[str]) -> str | None:
    """The one of the names that are there that a user has misspelled as ``name``; ``None``: it is a name of its own.

    Other case, ``_`` and ``-``, one letter more or less, or two that changed places. Other digits make another name,
    and so do names of less than four letters: ``w1``, ``w2``, ``band_1``.
    """
    if name in there:
        return None
    return next((each for each in there if _is_misspelled(_plain(name), _plain(each))), None)


def _plain(name: str) -> str:
    return "".join(each for each in name.casefold() if each not in "_- .")


def _is_misspelled(name: str, known: str) -> bool:
    if name == known:
        return True
    digits = [[each for each in text if each.isdigit()] for text in (name, known)]
    if min(len(name), len(known)) < 4 or digits[0] != digits[1]:
        return False
    short, long = sorted((name, known), key=len)
    if len(long) == len(short) + 1:
        return any(long[:at] + long[at + 1 :] == short for at in range(len(long)))
    if len(long) != len(short):
        return False
    at = next(place for place, pair in enumerate(zip(name, known, strict=True)) if pair[0] != pair[1])
    return name[at + 1 : at + 2] + name[at] + name[at + 2 :] == known[at:]


def is_unicode(text: str) -> bool:
    """Whether text has a form in UTF-8: half of a surrogate pair has none."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def columns_of(given: Mapping[str, Any] | None, rows: int, what: str) -> dict[str, Column]:
    """A column for each of a user's attributes. Raises as :func:`column_of`."""
    return {name: column_of(name, values, rows, what) for name, values in (checked_mapping(given) or {}).items()}


def checked_mapping(given: Any) -> Mapping[str, Any] | None:
    """A user's attributes, if that can be any. Raises :class:`~zardine.errors.DataError`."""
    if given is not None and not isinstance(given, Mapping):
        raise DataError(f"attributes are a mapping of names to values, not {type(given).__name__}")
    return given


def _join_text(name: str, old: Column, categories: tuple[str, ...], added: npt.NDArray[Any]) -> Column:
    """``old`` with text behind it. Categories that are new follow those that are there, so that codes stay."""
    new = _text_column(name, added)
    fresh = [each for each in new.categories or () if each not in set(categories)]
    whole = (*categories, *fresh)
    code = {text: number for number, text in enumerate(whole)}
    codes, absent = old._codes(categories)
    missing = old.missing
    if missing is None or 0 <= missing < len(whole):
        missing = -1 if new.missing is not None or absent.any() else None
    table = np.array([*(code[text] for text in new.categories or ()), 0 if missing is None else missing], np.int64)
    joined = np.concatenate([np.where(absent, 0 if missing is None else missing, codes), table[new.values]])
    dtype, limits = old.values.dtype, np.iinfo(old.values.dtype)
    if len(whole) - 1 > limits.max or (missing is not None and not limits.min <= missing <= limits.max):
        dtype = np.min_scalar_type(len(whole) - 1 if missing is None else -max(1, len(whole))).newbyteorder("<")
    return Column(joined.astype(dtype), whole, missing, {"ordered": False, **old.details})


def _text_column(name: str, array: npt.NDArray[Any]) -> Column:
    flat: Sequence[Any] = array.reshape(-1).tolist()
    try:
        plain = [each.decode() if isinstance(each, bytes) else each for each in flat]
    except UnicodeDecodeError as error:
        raise DataError(f"attribute {name!r} holds bytes that are no UTF-8 text: {error}") from None
    if any(each is not None and not isinstance(each, str) for each in plain):
        given, plain = plain, [None if is_missing(each) else each for each in plain]
        if any(each is not None and not isinstance(each, str) for each in plain):
            raise DataError(f"attribute {name!r} {_what_is_mixed(given, array.size // max(1, len(array)))}")
    categories = sorted({each for each in plain if each is not None})
    wrong = next((text for text in categories if not is_unicode(text)), None)
    if wrong is not None:
        raise DataError(f"attribute {name!r} holds {wrong!r}, which is no text: half of a surrogate pair")
    codes = {text: code for code, text in enumerate(categories)}
    absent = any(each is None for each in plain)
    numbers = np.array([-1 if each is None else codes[each] for each in plain], np.int64).reshape(array.shape)
    return Column(
        numbers.astype(_code_type(len(categories), absent)),
        tuple(categories),
        -1 if absent else None,
        {"ordered": False},
    )


def _code_type(count: int, absent: bool) -> np.dtype[Any]:
    """The type of codes of so many categories; ``absent``: and of one for what is missing."""
    return np.min_scalar_type(-max(1, count) if absent else max(0, count - 1)).newbyteorder("<")


def recoded(column: Column, categories: Sequence[str], absent: bool) -> Column:
    """Return a column of text with the codes that it has among ``categories``, which are all of its own and more.

    ``absent``: whether there is to be a code for what is missing. Raises :class:`~zardine.errors.CorruptionError`.
    """
    own = column.categories or ()
    codes, missing = column._codes(own)
    number = {text: code for code, text in enumerate(categories)}
    table = np.array([*(number[text] for text in own), -1], np.int64)
    values = table[np.where(missing, len(own), codes)].astype(_code_type(len(categories), absent))
    return Column(values, tuple(categories), -1 if absent else None, {"ordered": False})


def _what_is_mixed(values: Sequence[Any], channels: int) -> str:
    """What is wrong with values that are not all text, ``channels`` a row: why these are objects."""

    def first(found: Callable[[Any], bool]) -> str | None:
        at = next((at for at, each in enumerate(values) if found(each)), None)
        return None if at is None else f"row {at // channels} has {shown(values[at])}"

    if any(isinstance(each, str) for each in values):
        return f"mixes text with other values: {first(lambda each: not is_missing(each) and not isinstance(each, str))}"
    missing = first(is_missing)
    other = first(lambda each: not is_missing(each) and not isinstance(each, int | float | np.number))
    if other is not None:
        return f"holds what is neither a number, a truth value nor text: {other}"
    if missing is not None:
        return (
            f"lacks values among its numbers: {missing}; only floats can be missing, as NaN: give an array of floats "
            "with NaN in that place"
        )
    large = first(lambda each: isinstance(each, int) and not -(2**63) <= each < 2**64)
    if large is not None:
        return f"holds an integer that does not fit in 64 bits: {large}"
    return "is an array of objects: give it the dtype of its numbers, as in array.astype(float)"
