"""Attributes and names of dimensions on the way from one version of Zarr to another, with the conventions of xarray.

In Zarr v2 xarray keeps the names of an array's dimensions in the attribute ``_ARRAY_DIMENSIONS``, and takes the fill
value for what netCDF calls ``_FillValue``: it marks elements that are missing. In v3 the names are a member of the
document, and only an attribute ``_FillValue`` marks elements, with floats as base64 text of eight bytes. Of bytes and
text it reads none there: what it marks by ``missing_value`` it reads of text, in every version.
"""

from __future__ import annotations

import base64
import binascii
import struct
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from zardine.codecs.chain import equals_fill
from zardine.errors import ZarrUserWarning
from zardine.json_document import JSON, replace_non_numbers
from zardine.metadata.attributes import FOR_XARRAY
from zardine.metadata.documents import ArrayMetadata

DIMENSIONS = "_ARRAY_DIMENSIONS"
MISSING = "_FillValue"
OTHER_MISSING = "missing_value"

_MARKED = "biufcSUT"
"""The kinds of elements of which the conventions can mark some as missing."""


def strict_attributes(attributes: Mapping[str, JSON]) -> tuple[dict[str, JSON], list[str]]:
    """Return the attributes as JSON that every program reads, and a remark for each that had to change.

    Older documents may hold bare NaN and infinities, which JSON has not; they become the texts that Zarr has for them.
    """
    replaced: list[tuple[str, str]] = []
    strict = dict(replace_non_numbers(attributes, "attributes", replaced))
    return strict, [f'{place}: {text} is no JSON, and became the text "{text}"' for place, text in replaced]


def names_to_member(
    attributes: Mapping[str, JSON], source: ArrayMetadata
) -> tuple[dict[str, JSON], tuple[str | None, ...] | None, list[str]]:
    """Return attributes for v3, the dimension names, and remarks on what changed, out of attributes for v2."""
    kept = dict(attributes)
    names = kept.get(DIMENSIONS)
    if not isinstance(names, (list, tuple)) or len(names) != source.ndim:
        return kept, None, []
    if not all(isinstance(name, str) for name in names):
        return kept, None, []
    del kept[DIMENSIONS]
    value = _number(kept[MISSING], source.dtype) if MISSING in kept else source.fill if source.fill_is_defined else None
    remarks = mark_missing(kept, value) if value is not None and value.dtype.kind in _MARKED else []
    return kept, tuple(names), remarks


def names_to_attribute(source: ArrayMetadata) -> tuple[dict[str, JSON], list[str]]:
    """Return attributes for v2 out of those of a v3 array and its dimension names.

    The list says why that cannot be, if it cannot.
    """
    kept, names = dict(source.attributes), source.axis_names
    if names is None:
        return kept, []
    if any(name is None for name in names):
        return kept, [f"dimension names {list(names)}: v2 has an attribute for them, in which all have names"]
    if DIMENSIONS in kept and list(kept[DIMENSIONS] or ()) != list(names):
        return kept, [f"dimension names {list(names)}: the attribute for them in v2, {DIMENSIONS}, says something else"]
    kept[DIMENSIONS] = list(names)
    if MISSING in kept:
        marked = _decode_missing(kept[MISSING], source.dtype)
        if marked is not None and equals_fill(marked, source.fill):
            del kept[MISSING]  # in v2 the fill value says it
    return kept, []


def reads_fill_as_missing(source: ArrayMetadata) -> bool:
    """Return whether xarray takes no element of a v3 array for missing, but in v2 would take those that equal the fill.

    What is no number (NaN, NaT) counts as missing either way. A fill value that v2 leaves undefined (``null``) marks
    nothing.
    """
    if source.older is not None or source.axis_names is None or MISSING in source.attributes:
        return False
    return source.dtype.kind not in "fcmM" or not bool(np.isnan(source.fill).any())


def warn_of_missing_value(attributes: Mapping[str, JSON], dtype: np.dtype[Any], *, stacklevel: int) -> None:
    """Warn of an attribute ``_FillValue`` of a v3 array that is a plain number: xarray reads only its own form."""
    value = attributes.get(MISSING)
    numbers = value if isinstance(value, (list, tuple)) else [value]
    if dtype.kind in "fc" and any(isinstance(each, (int, float)) for each in numbers):
        warnings.warn(
            f"attributes.{MISSING}: xarray reads no plain {value!r} in Zarr v3, only the base64 text that "
            f"{FOR_XARRAY}({value!r}, numpy.dtype({dtype.name!r})) gives; it is stored as given",
            ZarrUserWarning,
            stacklevel=stacklevel + 1,
        )


def _number(value: JSON, dtype: np.dtype[Any]) -> npt.NDArray[Any] | None:
    """Return an attribute ``_FillValue`` as an element, if it is a plain number, which one of v3 would not be."""
    words = {"NaN": np.nan, "Infinity": np.inf, "-Infinity": -np.inf}
    number = words.get(value, value) if isinstance(value, str) else value
    if dtype.kind != "f" or isinstance(number, (str, bool)) or not isinstance(number, (int, float)):
        return None
    return np.array(number, dtype)


def mark_missing(attributes: dict[str, JSON], value: npt.NDArray[Any]) -> list[str]:
    """Let attributes for v3 say, in a form that xarray reads, that elements equal to ``value`` are missing.

    The list is empty, or says what became of it instead: the arrays beside one that xarray cannot read suffer, too.
    """
    encoded = encode_missing(value)
    if encoded is not None:
        attributes[MISSING] = encoded
        return []
    attributes.pop(MISSING, None)
    what = f"attribute {MISSING}: xarray reads none of {'text' if value.dtype.kind in 'UT' else 'bytes'} in Zarr v3"
    if value.dtype.kind in "UT" and attributes.get(OTHER_MISSING, str(value[()])) == str(value[()]):
        attributes[OTHER_MISSING] = str(value[()])
        return [f"{what}: {str(value[()])!r} became a {OTHER_MISSING}, which marks the same elements"]
    return [f"{what}: it is left out, and elements that equal {value.item()!r} no longer count as missing"]


def encode_missing(value: npt.NDArray[Any]) -> JSON:
    """Return an element as xarray reads it in the attribute; ``None`` for types that it reads none of."""
    kind = value.dtype.kind
    if kind == "b" or kind in "iu":
        return value.item()
    if kind == "f" and value.dtype.itemsize <= 8:
        return _float_text(float(value[()]))
    if kind == "c" and value.dtype.itemsize <= 16:
        return [_float_text(float(value.real[()])), _float_text(float(value.imag[()]))]
    return None


def _decode_missing(value: JSON, dtype: np.dtype[Any]) -> npt.NDArray[Any] | None:
    try:
        if dtype.kind == "f":
            return np.array(_float_of(value), dtype)
        if dtype.kind == "c" and isinstance(value, (list, tuple)) and len(value) == 2:
            return np.array(complex(_float_of(value[0]), _float_of(value[1])), dtype)
        if dtype.kind == "S" and isinstance(value, str):
            return np.array(base64.b64decode(value, validate=True), dtype)
        if dtype.kind in "iub" and isinstance(value, (int, bool)):
            return np.array(value, dtype)
        if dtype.kind in "UT" and isinstance(value, str):
            return np.array(value, dtype)
    except (TypeError, ValueError, OverflowError, binascii.Error, struct.error):
        pass
    return None


def _float_text(value: float) -> str:
    return base64.standard_b64encode(struct.pack("<d", value)).decode("ascii")


def _float_of(value: JSON) -> float:
    number: float = struct.unpack("<d", base64.b64decode(value, validate=True))[0]
    return number
