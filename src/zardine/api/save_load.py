"""Whole arrays in and out in one call: ``save``, ``save_array``, ``save_group``, ``load``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack

import numpy.typing as npt

from zardine.api.open import open
from zardine.hierarchy.place import find_place
from zardine.metadata.formats import check_format
from zardine.nodes.array import Array
from zardine.nodes.create_array import as_values, check_source_stays, create_array
from zardine.nodes.group import Group, create_group
from zardine.nodes.options import SaveOptions
from zardine.stores.resolve import StoreLike


def save_array(
    store: StoreLike,
    arr: npt.ArrayLike,
    *,
    zarr_format: int | None = None,
    path: str | None = None,
    storage_options: Mapping[str, Any] | None = None,
    **kwargs: Unpack[SaveOptions],
) -> None:
    """Store ``arr`` as an array; ``kwargs`` are those of :func:`zardine.create_array`.

    What is there is replaced with ``overwrite=True`` or ``mode="w"`` only, and with ``mode="w-"`` never.
    """
    if not hasattr(arr, "__array__"):
        if hasattr(store, "__array__"):
            raise TypeError("save_array takes the store before the array: save_array(store, array)")
        raise TypeError(f"save_array takes an array, not {type(arr).__name__}: make it one with numpy.asarray")
    options: dict[str, Any] = dict(kwargs)
    mode = options.pop("mode", None)
    if mode in ("w", "w-"):
        options["overwrite"] = mode == "w"
    create_array(store, name=path, data=arr, zarr_format=zarr_format, storage_options=storage_options, **options)


def save_group(
    store: StoreLike,
    *args: npt.ArrayLike,
    zarr_format: int | None = None,
    path: str | None = None,
    storage_options: Mapping[str, Any] | None = None,
    **kwargs: npt.ArrayLike,
) -> None:
    """Store several arrays in a group, replacing what is there.

    ``args`` are stored as ``arr_0``, ``arr_1``, ..., the others by their names.
    """
    named = {**{f"arr_{i}": value for i, value in enumerate(args)}, **kwargs}
    if not named:
        raise ValueError("at least one array must be given")
    for name, value in named.items():
        if not hasattr(value, "__array__"):
            raise TypeError(
                f"{name}: save_group takes arrays, not {type(value).__name__}: make it one with numpy.asarray"
            )
        as_values(value)
    found, inner = find_place(store, path, storage_options=storage_options)
    for value in named.values():
        check_source_stays(value, found, inner)
    group = create_group(found, path=inner, zarr_format=zarr_format, overwrite=True)
    for name, value in named.items():
        group[name] = value


def save(
    store: StoreLike,
    *args: npt.ArrayLike,
    zarr_format: int | None = None,
    path: str | None = None,
    storage_options: Mapping[str, Any] | None = None,
    **kwargs: npt.ArrayLike,
) -> None:
    """Store one array as an array, several as a group; see :func:`save_array` and :func:`save_group`."""
    if len(args) == 1 and not kwargs:
        save_array(store, args[0], zarr_format=zarr_format, path=path, storage_options=storage_options)
    else:
        save_group(store, *args, zarr_format=zarr_format, path=path, storage_options=storage_options, **kwargs)


def load(
    store: StoreLike,
    path: str | None = None,
    zarr_format: int | None = None,
    *,
    storage_options: Mapping[str, Any] | None = None,
) -> Any:
    """Return the values of a stored array; for a group, a dictionary of those of its arrays, groups within groups.

    An array without dimensions gives a scalar.
    """
    check_format(zarr_format)
    node = open(store, mode="r", path=path, zarr_format=zarr_format, storage_options=storage_options)
    return node[...] if isinstance(node, Array) else _load_group(node)


def _load_group(group: Group) -> dict[str, Any]:
    values: dict[str, Any] = {}
    waiting = [(group, values)]
    for each, held in waiting:
        for name, node in each.items():
            if isinstance(node, Array):
                held[name] = node[...]
            else:
                held[name] = {}
                waiting.append((node, held[name]))
    return values
