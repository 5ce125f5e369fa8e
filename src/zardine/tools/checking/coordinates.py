"""The elements that a fault touches, and their coordinates as CF has them: 1-D arrays that dimensions are named by.

Coordinates are read for faults alone, whole, and only if they are short; those that are not readable name nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from zardine.cache import Cache
from zardine.engine.layout import ArrayLayout
from zardine.errors import ZardineError
from zardine.hierarchy.find import find_node
from zardine.metadata.axis_names import dimension_names
from zardine.metadata.cf_time import date_of
from zardine.metadata.documents import ArrayMetadata
from zardine.metadata.node_names import join_path
from zardine.nodes.array import Array
from zardine.stores.base import Store
from zardine.tools.report import Fault

_LONGEST: Final = 10**6
"""Values of a coordinate that are read."""
_MOST_READ: Final = 2**26
"""Bytes of a coordinate, or of a stored object of it, that are read."""
_KEPT: Final = 2**26
"""Bytes of coordinates that are in memory for the next array."""
_MOST_ARRAYS: Final = 100
"""Arrays whose faults get coordinates; what is damaged in more of them is found by its indexes."""
_PACKED: Final = ("scale_factor", "add_offset")


@dataclass(frozen=True, slots=True, eq=False)
class _Coordinate:
    name: str
    values: npt.NDArray[Any]
    attributes: Mapping[str, Any]


def touched(layout: ArrayLayout, path: str, fault: Fault) -> list[slice] | None:
    """Return the elements of the array at ``path`` that a fault touches; ``None`` if it touches no chunk or shard."""
    place, grids = fault.chunk, layout.grids.chunks
    if place is None and fault.key is not None:
        name = fault.key.removeprefix(f"{path}/" if path else "")
        place, grids = layout.keys.decode(name, layout.metadata.ndim), layout.grids.storage
    if place is None or any(i >= axis.count for axis, i in zip(grids, place, strict=True)):
        return None
    starts = [axis.start(i) for axis, i in zip(grids, place, strict=True)]
    return [
        slice(start, min(start + axis.extent(i), axis.length))
        for start, axis, i in zip(starts, grids, place, strict=True)
    ]


def name_coordinates(
    store: Store, faults: Sequence[Fault], layout_of: Callable[[str], ArrayLayout | None]
) -> list[Fault]:
    """Return sorted faults with the coordinates of what they touch. ``layout_of`` gives that of the array at a path."""
    read: Cache[tuple[str, str | None, int], _Coordinate | None] = Cache(_KEPT)
    found: list[Fault] = []
    arrays = 0
    for place, group in groupby(faults, lambda each: each.place):
        path = place.strip("/")
        layout = layout_of(path)
        arrays += layout is not None
        if layout is None or arrays > _MOST_ARRAYS:
            found += group
            continue
        known = None
        for fault in group:
            block = touched(layout, path, fault)
            if block is not None and known is None:
                known = list(_coordinates(store, path, layout, read))
            found.append(fault if block is None else replace(fault, coordinates=", ".join(_named(known or (), block))))
    return found


def _coordinates(
    store: Store, path: str, layout: ArrayLayout, read: Cache[tuple[str, str | None, int], _Coordinate | None]
) -> Iterator[_Coordinate | None]:
    folder = path.rpartition("/")[0]
    for name, length in zip(dimension_names(layout.metadata), layout.metadata.shape, strict=True):
        place = folder, name, length
        found = read.get(place)
        if found is None:
            try:
                found = _read(store, *place)
            except (ZardineError, OSError, MemoryError, ValueError):
                found = None
            if found is not None:
                read.put(place, found, found.values.nbytes)
        yield found


def _read(store: Store, folder: str, name: str | None, length: int) -> _Coordinate | None:
    if not name or "/" in name or length > _LONGEST:
        return None
    path = join_path(folder, name)
    found = find_node(store, path)
    if not isinstance(found, ArrayMetadata) or found.shape != (length,) or found.dtype.kind not in "iufMmU":
        return None
    if any(each in found.attributes for each in _PACKED):
        return None
    array = Array(store, path, found)
    if max(array.nbytes, array._handle.layout.object_nbytes) > _MOST_READ:
        return None
    return _Coordinate(name, np.asarray(array[:]), found.attributes)


def _named(known: Iterable[_Coordinate | None], block: Iterable[slice]) -> Iterator[str]:
    for each, part in zip(known, block, strict=False):
        if each is None or part.start >= part.stop:
            continue
        first, last = (_text(each.values[i], each.attributes) for i in (part.start, part.stop - 1))
        if first and last:
            yield f"{each.name} {first}" if first == last else f"{each.name} {first} to {last}"


def _text(value: Any, attributes: Mapping[str, Any]) -> str | None:
    """Return a coordinate as text, a time as a date; ``None`` if it is missing."""
    kind = value.dtype.kind
    if kind == "M":
        return None if np.isnat(value) else str(np.datetime_as_string(value, unit="auto")).replace("T", " ")
    if kind in "mU":
        return str(value) or None
    if not np.isfinite(value):
        return None
    return date_of(value, attributes) or str(value).removesuffix(".0")


__all__ = ["name_coordinates", "touched"]
