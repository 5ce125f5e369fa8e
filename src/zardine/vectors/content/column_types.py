"""Types of attributes, agreed on before there are values: as a user says them, as JSON, and as columns. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from zardine.errors import DataError
from zardine.vectors.content.columns import TEXT, Column, check_name, checked_mapping, column_of, join_columns

ColumnTypeLike: TypeAlias = npt.DTypeLike | tuple[npt.DTypeLike, int] | Sequence[str]
"""A type of numbers, such as ``"float32"``; that and how many values a row has; or a list of all texts there may be."""
ColumnTypesLike: TypeAlias = Mapping[str, ColumnTypeLike] | None
"""Types by name."""

_TEXT = {"text": True}
_MOST_CHANNELS = 2**16


def column_types(given: Any, *, any_text: bool) -> dict[str, Any]:
    """Return the types that a user gives, as JSON; ``any_text``: whether ``"text"`` or ``str`` is a type, too.

    Raises :class:`~zardine.errors.DataError`.
    """
    return {check_name(name): _type_of(name, each, any_text) for name, each in (checked_mapping(given) or {}).items()}


def _type_of(name: str, given: Any, any_text: bool) -> dict[str, Any]:
    if any_text and given in ("text", str):
        return _TEXT
    if isinstance(given, list):
        if not given or not all(isinstance(each, str) for each in given) or len(set(given)) != len(given):
            raise DataError(f"attribute {name!r}: a list for a type has all texts that there may be, each once")
        column_of(name, given, len(given), "texts")  # refuses what is no text
        return {"categories": list(given)}
    channels = None
    if isinstance(given, tuple):
        given, channels = given if len(given) == 2 else (None, None)
        if type(channels) is not int or not 1 <= channels <= _MOST_CHANNELS:
            raise DataError(f"attribute {name!r}: of several values a type is a pair such as ('float32', 3)")
    try:
        dtype = None if given is None else np.dtype(given)
    except (TypeError, ValueError):
        dtype = None
    if dtype is None or dtype.kind not in "iufb" or dtype.itemsize > 8:
        words = ", 'text'" if any_text else ""
        raise DataError(
            f"attribute {name!r} cannot be of the type {given!r}: give one of numbers of up to 64 bits{words}, or a "
            "list of all texts that there may be"
        )
    return {"dtype": dtype.name, **({} if channels is None else {"channels": channels})}


def types_from_json(document: Any, *, any_text: bool) -> dict[str, Any]:
    """Return types that :func:`column_types` gave. Raises :class:`~zardine.errors.DataError` for anything else."""
    if not isinstance(document, Mapping) or not all(isinstance(each, Mapping) for each in document.values()):
        raise DataError(f"types of attributes are tables by name, not {document!r}")
    given: dict[str, Any] = {}
    for name, each in document.items():
        dtype = each.get("dtype")
        plain = (dtype, each["channels"]) if "channels" in each else dtype
        given[name] = "text" if each.get("text") is True else each.get("categories", plain)
    return column_types(given, any_text=any_text)


def empty_columns(types: Mapping[str, Any]) -> dict[str, Column]:
    """Return columns of these types, without rows."""
    return {name: _empty(name, each) for name, each in types.items()}


def _empty(name: str, spec: Mapping[str, Any]) -> Column:
    if "text" in spec:
        return column_of(name, np.zeros(0, TEXT), 0, "objects")
    if "categories" in spec:
        categories = tuple(spec["categories"])
        codes = np.min_scalar_type(-max(1, len(categories))).newbyteorder("<")
        return Column(np.zeros(0, codes), categories, -1, {"ordered": False})
    shape = (0, spec["channels"]) if "channels" in spec else (0,)
    return Column(np.zeros(shape, np.dtype(spec["dtype"]).newbyteorder("<")))


def typed_columns(given: Any, types: Mapping[str, Any], rows: int, what: str) -> dict[str, Column]:
    """Return a user's attributes as columns of ``types``, for ``rows`` rows (``what`` they are); others are missing.

    Raises :class:`~zardine.errors.DataError` for names and texts that were not agreed on, and as ``join_columns``.
    """
    values = checked_mapping(given) or {}
    unknown = next((name for name in values if name not in types), None)
    if unknown is not None:
        raise DataError(f"attribute {unknown!r} was not named when this was planned; there are {', '.join(types)}")
    found = {}
    for name, empty in empty_columns(types).items():
        own = column_of(name, values[name], rows, what).decoded() if name in values else None
        joined = join_columns(name, empty, own, rows, of_objects=what == "objects")
        if "categories" in types[name] and joined.categories != empty.categories:
            new = next(each for each in joined.categories or () if each not in types[name]["categories"])
            raise DataError(f"attribute {name!r} has the text {new!r}, which was not named when this was planned")
        found[name] = joined
    return found


__all__ = ["ColumnTypeLike", "ColumnTypesLike", "column_types", "empty_columns", "typed_columns", "types_from_json"]
