"""Stored arrays that a value reads only when it is computed: those that stand behind what xarray and Dask make lazily.

Looked for in what these two are known to keep; who hides an array in a function of his own is not found out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from zardine.hierarchy.find import describe, location
from zardine.hierarchy.place import is_inside, is_within
from zardine.nodes.array import Array
from zardine.stores.base import Store

_LAZY = ("xarray.", "zardine.xarray.")
"""How modules begin whose objects hold what they read in one of the members below."""
_MEMBERS = ("source", "array", "_array")
_OF_TASKS = ("task", "indices", "args", "kwargs", "value")
"""Members of Dask's layers and tasks in which a stored array may be."""


def behind_at(value: object, store: Store, path: str) -> str | None:
    """Return the place of an array that ``value`` reads lazily, if erasing what is at ``path`` would erase some of it.

    ``None`` without one.
    """
    for found in _arrays_behind(value):
        if isinstance(found, Array):
            if is_inside(found.store, found.path, store, path) or _holds_chunks(found, store, path):
                return describe(found.store, found.path)
        elif is_within(str(found.store_path).rstrip("/"), describe(store, path).rstrip("/")):
            return str(found.store_path)
    return None


def _holds_chunks(array: Array, store: Store, path: str) -> bool:
    """Return whether a place inside of an array's folder is one in which its chunks lie."""
    if not is_inside(store, path, array.store, array.path):
        return False
    own, other = location(*array.store.beneath(array.path)), location(*store.beneath(path))
    first = other[len(own) :].strip("/").partition("/")[0]
    chunk = array._handle.key((0,) * array.ndim)[len(array.path) :].strip("/").partition("/")[0]
    return first == chunk or (first.isdigit() and chunk.isdigit())


def _arrays_behind(value: object) -> Iterator[Any]:
    """Yield arrays of zardine, and of zarr-python."""
    waiting: list[Any] = [value]
    seen: set[int] = set()
    while waiting:
        each = waiting.pop()
        if id(each) in seen or isinstance(each, (str, bytes, int, float)):
            continue
        seen.add(id(each))
        module = f"{type(each).__module__}."
        if isinstance(each, Array) or (module.startswith("zarr.") and hasattr(each, "store_path")):
            yield each
        elif hasattr(each, "__dask_graph__"):
            graph = each.__dask_graph__()
            waiting += getattr(graph, "layers", {0: graph}).values()
        elif module.startswith(_LAZY):
            waiting += (getattr(each, name, None) for name in _MEMBERS)
        elif module.startswith("dask.") and not getattr(each, "is_materialized", lambda: False)():
            waiting += (getattr(each, name, None) for name in _OF_TASKS)
        elif isinstance(each, Mapping):
            waiting += each.values()
        elif isinstance(each, (tuple, list)):
            waiting += each


__all__ = ["behind_at"]
