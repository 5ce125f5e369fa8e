"""What is known of whole segments: ``neuroglancer_segment_properties``, ids and columns in one document. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from zardine.errors import DataError
from zardine.vectors.content.arguments import shown
from zardine.vectors.exchange.precomputed.numbers import finite_numbers
from zardine.vectors.exchange.precomputed.skeletons import narrowest

TYPE: Final = "neuroglancer_segment_properties"
_NUMBERS: Final = ("float32", "int8", "uint8", "int16", "uint16", "int32", "uint32")
_TEXTS: Final = ("label", "description", "string")


def document(ids: npt.NDArray[np.uint64], columns: Mapping[str, npt.NDArray[Any]]) -> dict[str, Any]:
    """Return the document for segments and columns of one value each: numbers as :func:`narrowest` says, or text."""
    properties = []
    for name, values in columns.items():
        kind = narrowest(values, _NUMBERS)
        about: dict[str, Any] = {"id": name}
        if kind is None:
            about["type"] = name if name in _TEXTS else "string"
            about["values"] = ["" if each is None else str(each) for each in values.tolist()]
        else:
            about |= {"type": "number", "data_type": kind, "values": values.astype(kind).tolist()}
        properties.append(about)
    return {"@type": TYPE, "inline": {"ids": [str(each) for each in ids.tolist()], "properties": properties}}


def parse(found: Any, where: str) -> tuple[npt.NDArray[np.uint64], dict[str, npt.NDArray[Any]]]:
    """Return ids and columns; of tags text with all of them. Raises :class:`DataError` for what is no such document."""
    inline = found.get("inline") if isinstance(found, Mapping) and found.get("@type") == TYPE else None
    listed = inline.get("ids") if isinstance(inline, Mapping) else None
    if not isinstance(inline, Mapping) or not isinstance(listed, list) or not all(map(_is_id, listed)):
        raise DataError(f"{where} is no document of {TYPE} with a list of ids")
    ids = np.array([int(each) for each in listed], np.uint64)
    columns: dict[str, npt.NDArray[Any]] = {}
    properties = inline.get("properties") or []
    if not isinstance(properties, list):
        raise DataError(f"{where}: properties are a list of tables, not {shown(properties)}")
    for table in properties:
        kind = table.get("type") if isinstance(table, Mapping) else None
        values = table.get("values") if isinstance(table, Mapping) else None
        if not isinstance(values, list) or len(values) != len(ids) or not isinstance(kind, str):
            raise DataError(f"{where}: a property has a type, and a value for each of the {len(ids)} segments")
        name = str(table.get("id") or kind)
        while name in columns:
            name += "_"
        if kind == "number":
            given = table.get("data_type")
            if given not in _NUMBERS or not all(isinstance(each, int | float) for each in values):
                raise DataError(
                    f"{where}: values of {name!r} are numbers of {shown(given)}, which is {', '.join(_NUMBERS)}"
                )
            columns[name] = _as_numbers(values, str(given), f"{where}: {name!r}")
        elif kind == "tags":
            columns[name] = np.array([_tags(each, table.get("tags"), f"{where}: {name!r}") for each in values], object)
        elif all(isinstance(each, str) for each in values):
            columns[name] = np.array(values, object)
        else:
            raise DataError(f"{where}: values of {name!r} are text")
    return ids, columns


def _as_numbers(values: list[Any], kind: str, what: str) -> npt.NDArray[Any]:
    if kind == "float32":
        found = finite_numbers(values)
        if found is None:
            raise DataError(f"{what}: some values are no finite numbers")
        with np.errstate(over="ignore"):
            return np.array(found, np.float64).astype(np.float32)
    limits = np.iinfo(kind)
    if not all(each == each and limits.min <= each <= limits.max and each == int(each) for each in values):
        raise DataError(f"{what}: some values are no {kind}")
    return np.array([int(each) for each in values], kind)


def _tags(numbers: Any, tags: Any, what: str) -> str:
    usable = isinstance(tags, list) and isinstance(numbers, list)
    if not usable or not all(isinstance(each, int) and 0 <= each < len(tags) for each in numbers):
        raise DataError(f"{what}: tags are numbers of a list of tags, not {shown(numbers)}")
    return ", ".join(str(tags[each]) for each in numbers)


def _is_id(text: Any) -> bool:
    return isinstance(text, str) and text.isascii() and text.isdecimal() and len(text) <= 20 and int(text) < 2**64


__all__ = ["TYPE", "document", "parse"]
