"""Write the Python expression of what a page shows: by coordinates if xarray finds the same elements, else by index."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from itertools import islice
from keyword import iskeyword
from typing import Any, Final, TypeAlias

import numpy as np

from zardine.errors import ZardineError
from zardine.hierarchy.find import child_names
from zardine.metadata.axis_names import dimension_names
from zardine.metadata.cf_time import UNITS_OF_TIME, as_date, is_mixed, seconds_of
from zardine.metadata.documents import ArrayMetadata, GroupMetadata
from zardine.metadata.node_names import join_path
from zardine.nodes.array import Array
from zardine.server.served import Served
from zardine.server.viewer.axes import Coordinate, coordinate
from zardine.server.viewer.snapshot import Snapshot
from zardine.server.viewer.values import Marks, kind_of

Span: TypeAlias = int | tuple[int, int] | None
"""What is shown of an axis: one index, a range (the end is exclusive), or all of it."""

_MOST_MEMBERS: Final = 128
"""Arrays of a group that are looked at to tell whether xarray opens it."""
_DECODED: Final = ("scale_factor", "add_offset", "_Unsigned", "dtype")
"""Attributes by which xarray makes other values of those that are stored."""
_TAKEN: Final = ("self", "indexers", "method", "tolerance", "drop", "missing_dims")
"""Names of parameters of ``sel`` and ``isel``: a dimension of this name is written as a key."""
_YEARS: Final = (1678, 2261)
"""Years of which xarray makes ``datetime64[ns]``; beyond them it makes other objects."""


def expression(served: Served, snapshot: Snapshot, path: str, spans: list[Span], field: str | None) -> str:
    """Return Python text whose value is what ``spans`` and ``field`` choose of the array at ``path``."""
    array = snapshot.array
    if field is None and snapshot.once("dataset", lambda: _is_of_a_dataset(served, array, path)):
        return _by_coordinates(served, snapshot, path, spans)
    index = ", ".join(map(_index_text, spans)) or "..."
    chosen = "" if field is None else f"[{_quoted(field)}]"
    return f'zardine.open_array({_quoted(str(array.store))}, path={_quoted(array.path)}, mode="r")[{index}]{chosen}'


def _index_text(span: Span) -> str:
    return ":" if span is None else str(span) if isinstance(span, int) else f"{span[0]}:{span[1]}"


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False) if text.isprintable() else ascii(text)


def _by_coordinates(served: Served, snapshot: Snapshot, path: str, spans: list[Span]) -> str:
    array = snapshot.array
    group, _, name = array.path.rpartition("/")
    by_label, by_index, of_length_one = {}, {}, []
    for dimension, length, span in zip(dimension_names(array.metadata), array.shape, spans, strict=True):
        if dimension is None or span is None:
            continue
        try:
            known = coordinate(served, snapshot, path, dimension, length)
        except ZardineError:
            known = None
        is_index = known is not None and dimension_names(known.array.metadata) == [dimension]
        found = _labels_of(known, span) if known is not None and is_index else None
        if found is None:
            by_index[dimension] = str(span) if isinstance(span, int) else f"slice({span[0]}, {span[1]})"
            continue
        texts, is_date_object = found
        by_label[dimension] = texts[0] if isinstance(span, int) else f"slice({texts[0]}, {texts[1]})"
        if is_date_object and isinstance(span, int):
            of_length_one.append(dimension)
    inner = f", group={_quoted(group)}" if group else ""
    text = f'xr.open_dataset({_quoted(str(array.store))}, engine="zardine"{inner})[{_quoted(name)}]'
    text += _call("sel", by_label)
    if of_length_one:  # a text chooses a range of those
        text += f".squeeze({', '.join(map(_quoted, of_length_one)) if len(of_length_one) == 1 else of_length_one})"
    return text + _call("isel", by_index)


def _call(method: str, chosen: Mapping[str, str]) -> str:
    if not chosen:
        return ""
    if all(name.isidentifier() and name.isascii() and not iskeyword(name) and name not in _TAKEN for name in chosen):
        return f".{method}({', '.join(f'{name}={text}' for name, text in chosen.items())})"
    return f".{method}({{{', '.join(f'{_quoted(name)}: {text}' for name, text in chosen.items())}}})"


def _labels_of(known: Coordinate, span: int | tuple[int, int]) -> tuple[list[str], bool] | None:
    """Return the labels of an index, or of the first and the last one of a range, as Python text.

    The second value says whether xarray makes date objects of the coordinates (of cftime). ``None`` where a label could
    choose other elements.
    """
    values, metadata = known.values, known.array.metadata
    attributes = metadata.attributes
    if not isinstance(values, np.ndarray) or any(name in attributes for name in _DECODED):
        return None
    indices = [span] if isinstance(span, int) else [span[0], span[1] - 1]
    units = attributes.get("units")
    is_time = isinstance(units, str) and " since " in units
    if values.dtype.kind in "UT":
        texts = values.tolist()
        if not isinstance(span, int) or len(set(texts)) < len(texts) or isinstance(attributes.get("_FillValue"), str):
            return None
        return [_quoted(texts[span])], False
    if values.dtype.kind not in "iuf" or units in UNITS_OF_TIME or not _is_exact(values, metadata):
        return None
    if not (_is_sorted(values) or (isinstance(span, int) and len(np.unique(values)) == len(values))):
        return None
    if not is_time:
        return [repr(values[i].item()) for i in indices], False
    return _dates_of(values, str(units), str(attributes.get("calendar", "standard")), indices)


def _is_exact(values: Any, metadata: ArrayMetadata) -> bool:
    """Return whether xarray has these numbers as they are, and none of them as missing."""
    fill = metadata.attributes.get("_FillValue")
    absent = Marks(metadata).absent(values)
    if isinstance(fill, str) or not np.isfinite(values).all() or (absent is not None and absent.any()):
        return False
    if metadata.zarr_format < 3 and metadata.fill_is_defined and (values == metadata.fill[()]).any():
        return False
    return values.dtype.kind == "f" or bool((np.abs(values.astype(np.float64)) < 2**53).all())


def _is_sorted(values: Any) -> bool:
    return bool((values[1:] > values[:-1]).all() or (values[1:] < values[:-1]).all())


def _dates_of(values: Any, units: str, calendar: str, indices: list[int]) -> tuple[list[str], bool] | None:
    seconds = seconds_of(values, units, calendar)
    if seconds is None or not (seconds % 1 == 0).all() or not (np.abs(seconds) < 2**53).all():
        return None
    is_object = not is_mixed(calendar)
    if is_object and len(values) > 1 and not (values[1:] > values[:-1]).all():
        return None
    ends = [as_date(values[i], units, calendar) for i in (int(values.argmin()), int(values.argmax()))]
    low, high = (0 if each is None or each.startswith("-") else int(each.partition("-")[0]) for each in ends)
    if not (low >= 1 and high <= 9999) or (not is_object and not (_YEARS[0] <= low and high <= _YEARS[1])):
        return None
    has_clock = bool((seconds % 86400 != 0).any())
    found = []
    for i in indices:
        date, _, clock = str(as_date(values[i], units, calendar)).partition(" ")
        found.append(f'"{date}T{clock or "00:00:00"}"' if has_clock else f'"{date}"')
    return found, is_object


def _is_of_a_dataset(served: Served, array: Array, path: str) -> bool:
    """Return whether xarray opens the group of an array as a dataset, and has the values of the array as they are."""
    parent, _, name = path.rpartition("/")
    if not name or not _is_unchanged(array.metadata):
        return False
    try:
        group = served.node(parent)
        names = (
            []
            if not isinstance(group, GroupMetadata)
            else list(islice(_children(served, parent, group), _MOST_MEMBERS + 1))
        )
        members = [served.node(join_path(parent, each)) for each in names[: _MOST_MEMBERS + 1]]
    except ZardineError:
        return False
    lengths: dict[str, int] = {}
    for each, node in zip(names, members, strict=True):
        if not isinstance(node, Array):
            continue
        dimensions = dimension_names(node.metadata)
        if None in dimensions or len(set(dimensions)) < len(dimensions) or not _has_known_times(node.metadata):
            return False
        if (each in dimensions and len(dimensions) > 1) or node.metadata.attributes.get("bounds") == name:
            return False  # xarray refuses the first, and makes dates of the bounds of times
        for dimension, length in zip(dimensions, node.shape, strict=True):
            if lengths.setdefault(str(dimension), length) != length:
                return False
    return 0 < len(names) <= _MOST_MEMBERS


def _children(served: Served, path: str, group: GroupMetadata) -> Iterable[str]:
    if group.consolidated_metadata is None:
        return child_names(served.store, served.key(path), group.zarr_format)
    return (name for name in group.consolidated_metadata if "/" not in name)


def _is_unchanged(metadata: ArrayMetadata) -> bool:
    """Return whether xarray has the values as they are stored; those that are missing may be NaN."""
    attributes = metadata.attributes
    units = attributes.get("units")
    if any(name in attributes for name in _DECODED) or units in UNITS_OF_TIME:
        return False
    if isinstance(units, str) and " since " in units:
        return False
    if metadata.zarr_format < 3 and metadata.fill_is_defined and metadata.fill[()] == 0:
        return False  # xarray has zeros as missing
    return kind_of(metadata.dtype) in ("number", "complex")


def _has_known_times(metadata: ArrayMetadata) -> bool:
    units = metadata.attributes.get("units")
    if not isinstance(units, str) or " since " not in units:
        return True
    calendar = metadata.attributes.get("calendar", "standard")
    return isinstance(calendar, str) and seconds_of(np.zeros(1), units, calendar) is not None


__all__ = ["Span", "expression"]
