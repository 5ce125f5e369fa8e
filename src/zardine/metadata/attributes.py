"""User attributes: from Python values to JSON that every program can read."""

from __future__ import annotations

from collections.abc import Mapping, Set
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from math import isfinite
from typing import cast
from uuid import UUID

import numpy as np

from zardine.json_document import DEEPEST, JSON
from zardine.shown_text import printable

FOR_XARRAY = "xarray.backends.zarr.FillValueCoder.encode"
"""The function that gives the form of ``_FillValue`` that xarray reads in Zarr v3."""

DEEPEST_ATTRIBUTES = DEEPEST - 10
"""How deep attributes may be nested: documents are, with room for what is around them in consolidated metadata."""

_WITHOUT_FORM = "mMVSc"
"""Kinds of NumPy types of which JSON has no form: dates, durations, records, bytes, complex numbers."""

_INSTEAD = {
    "M": "its text, as str(value)",
    "m": "a number and the unit, as value / numpy.timedelta64(1, 's')",
    "V": "an object with a member for each field, or base64 text",
    "S": "text, as value.decode(), or base64 text",
    "c": "a list of two numbers, [value.real, value.imag]",
}
"""What can be stored in place of elements of a kind."""

_INSTEAD_OF: tuple[tuple[type | tuple[type, ...], str], ...] = (
    ((bytes, bytearray, memoryview), _INSTEAD["S"]),
    (complex, _INSTEAD["c"]),
    (timedelta, "a number and the unit, as value.total_seconds()"),
    ((date, time), "its text, as value.isoformat()"),
    ((Decimal, UUID), _INSTEAD["M"]),
    (Enum, "its value or its name"),
    (Set, "a list, as sorted(value)"),
)
"""What can be stored in place of Python's types."""

_MOST = 10**4000
"""What an integer must be smaller than: Python writes and reads no more than 4300 digits."""


def attributes_to_json(attributes: Mapping[str, object]) -> dict[str, JSON]:
    """Return ``attributes`` as plain JSON values; NumPy scalars and arrays become numbers and lists.

    Raises ``TypeError`` for names that are not strings and for values of types that JSON has no form for: dates,
    durations, bytes, complex numbers, sets and all others that would come back as something else. Raises ``ValueError``
    for NaN and infinities, which would make the document unreadable for strict JSON parsers, for masked elements, for
    numbers of more digits than readers keep, and for values that are nested deeper than documents are read. All errors
    name the place and say what can be stored instead.
    """
    if not isinstance(attributes, Mapping):
        raise TypeError(f"attributes must be a mapping of names to values, not {type(attributes).__name__}")
    converted: dict[str, JSON] = _convert(attributes, "attributes", 0)
    return converted


_PLAIN = frozenset({str, bool, type(None)})
"""Types of which JSON has every value, as it is."""
_PLAIN_OR_INT = _PLAIN | {int}


def _convert(value: object, place: str, depth: int) -> JSON:
    if type(value) in _PLAIN:
        return cast("JSON", value)
    if isinstance(value, str):
        return str.__str__(value)  # nothing of NumPy's, nor of an enumeration
    if isinstance(value, (np.generic, np.ndarray)):
        return _convert_numpy(value, place, depth)
    if isinstance(value, int):
        if not -_MOST < value < _MOST:
            raise ValueError(f"{place}: an integer of {value.bit_length()} bits is too long; give it as text")
        return int(value)
    if isinstance(value, float):
        if not isfinite(value):
            raise ValueError(
                f'{place}: JSON has no {value}; store the string "NaN" or "Infinity" instead, or as _FillValue for '
                f"xarray what {FOR_XARRAY}({value}, dtype) gives"
            )
        return float(value)
    if depth > DEEPEST_ATTRIBUTES:
        raise ValueError(
            f"{place[:60]}...: attributes are nested at most {DEEPEST_ATTRIBUTES} levels deep, "
            "and do not hold themselves"
        )
    if isinstance(value, Mapping):
        for name in value:
            if not isinstance(name, str):
                raise TypeError(f"{place}: attribute names must be strings, not {name!r}")
        return {
            str.__str__(name): _convert(each, f"{place}.{printable(name)}", depth + 1) for name, each in value.items()
        }
    if isinstance(value, (list, tuple)):
        if _PLAIN_OR_INT.issuperset(map(type, value)) and all(
            -_MOST < each < _MOST for each in value if type(each) is int
        ):
            return list(value)
        return [_convert(each, f"{place}[{i}]", depth + 1) for i, each in enumerate(value)]
    instead = next((text for types, text in _INSTEAD_OF if isinstance(value, types)), None)
    raise _no_form(place, type(value).__name__, instead or "numbers, strings, lists or objects")


def _convert_numpy(value: np.generic | np.ndarray, place: str, depth: int) -> JSON:
    kind = value.dtype.kind
    if kind in _WITHOUT_FORM:
        raise _no_form(place, str(value.dtype), _INSTEAD[kind])
    if np.ma.is_masked(value):
        raise ValueError(f"{place}: JSON has no masked elements; give values for them, as value.filled(...)")
    if kind == "f":
        short = value.astype(np.float64)  # ``tolist`` of long doubles leaves them as they are
        if value.dtype.itemsize > 8 and not ((short == value) | (value != value)).all():
            raise ValueError(f"{place}: JSON has no numbers of as many digits as {value.dtype} has; give text")
        value = short
    return _convert(value.tolist(), place, depth)


def _no_form(place: str, what: str, instead: str) -> TypeError:
    return TypeError(f"{place}: {what} has no JSON form; give {instead}")
