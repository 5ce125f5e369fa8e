"""User attributes: from Python values to JSON that every program can read."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import cast

import numpy as np

from zardine.json_document import DEEPEST, JSON

FOR_XARRAY = "xarray.backends.zarr.FillValueCoder.encode"
"""The function that gives the form of ``_FillValue`` that xarray reads in Zarr v3."""

DEEPEST_ATTRIBUTES = DEEPEST - 10
"""How deep attributes may be nested: documents are, with room for what is around them in consolidated metadata."""

_WITHOUT_FORM = "mM"
"""Kinds of NumPy types of which JSON has no form; those of times are numbers, dates or themselves, by their unit."""


def attributes_to_json(attributes: Mapping[str, object]) -> dict[str, JSON]:
    """Return ``attributes`` as plain JSON values; NumPy scalars and arrays become numbers and lists.

    Raises ``TypeError`` for names that are not strings and values that JSON has no form for, ``ValueError`` for NaN and
    infinities, which would make the document unreadable for strict JSON parsers, and for what is nested deeper than
    documents are read; all name the place.
    """
    if not isinstance(attributes, Mapping):
        raise TypeError(f"attributes must be a mapping of names to values, not {type(attributes).__name__}")
    converted: dict[str, JSON] = _convert(attributes, "attributes", 0)
    return converted


_PLAIN = frozenset({str, int, bool, type(None)})
"""Types of which JSON has every value, as it is."""


def _convert(value: object, place: str, depth: int) -> JSON:
    if type(value) in _PLAIN:
        return cast("JSON", value)
    if isinstance(value, str):
        return str.__str__(value)  # nothing of NumPy's, nor of an enumeration
    if isinstance(value, (np.floating, np.complexfloating)):  # ``item()`` of a long double is itself
        value = float(value) if isinstance(value, np.floating) else complex(value)
    if isinstance(value, np.generic) and value.dtype.kind not in _WITHOUT_FORM:
        return _convert(value.item(), place, depth)
    if isinstance(value, np.ndarray) and value.dtype.kind not in _WITHOUT_FORM:
        return _convert(value.tolist(), place, depth)
    if isinstance(value, int):
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
        return {str.__str__(name): _convert(each, f"{place}.{name}", depth + 1) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        if _PLAIN.issuperset(map(type, value)):
            return list(value)
        return [_convert(each, f"{place}[{i}]", depth + 1) for i, each in enumerate(value)]
    if isinstance(value, np.ndarray):
        raise TypeError(f"{place}: {value.dtype} has no JSON form; give numbers or strings")
    raise TypeError(f"{place}: {type(value).__name__} has no JSON form; give numbers, strings, lists or objects")
