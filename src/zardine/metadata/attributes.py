"""User attributes: from Python values to JSON that every program can read."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite

import numpy as np

from zardine.json_document import JSON

FOR_XARRAY = "xarray.backends.zarr.FillValueCoder.encode"
"""The function that gives the form of ``_FillValue`` that xarray reads in Zarr v3."""


def attributes_to_json(attributes: Mapping[str, object]) -> dict[str, JSON]:
    """Return ``attributes`` as plain JSON values; NumPy scalars and arrays become numbers and lists.

    Raises ``TypeError`` for names that are not strings and values that JSON has no form for, ``ValueError`` for NaN and
    infinities, which would make the document unreadable for strict JSON parsers; both name the place.
    """
    if not isinstance(attributes, Mapping):
        raise TypeError(f"attributes must be a mapping of names to values, not {type(attributes).__name__}")
    converted: dict[str, JSON] = _convert(attributes, "attributes")
    return converted


def _convert(value: object, place: str) -> JSON:
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, np.generic):
        return _convert(value.item(), place)
    if isinstance(value, np.ndarray):
        return _convert(value.tolist(), place)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        if not isfinite(value):
            raise ValueError(
                f'{place}: JSON has no {value}; store the string "NaN" or "Infinity" instead, or as _FillValue for '
                f"xarray what {FOR_XARRAY}({value}, dtype) gives"
            )
        return float(value)
    if isinstance(value, Mapping):
        for name in value:
            if not isinstance(name, str):
                raise TypeError(f"{place}: attribute names must be strings, not {name!r}")
        return {name: _convert(each, f"{place}.{name}") for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        if set(map(type, value)) <= {str, int, bool}:
            return list(value)
        return [_convert(each, f"{place}[{i}]") for i, each in enumerate(value)]
    raise TypeError(f"{place}: {type(value).__name__} has no JSON form; give numbers, strings, lists or objects")
