"""Whole arrays in and out in one call: ``save``, ``save_array``, ``save_group``, ``load``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from zardine.array import Array
from zardine.create import create_array, create_group
from zardine.group import Group
from zardine.metadata.node_names import normalize_path
from zardine.new_array import check_format
from zardine.open import open
from zardine.stores.resolve import StoreLike


def save_array(
    store: StoreLike,
    arr: Any,
    *,
    zarr_format: int | None = None,
    path: str | None = None,
    storage_options: Mapping[str, Any] | None = None,
    **kwargs: Any,
) -> None:
    """Store ``arr`` as an array, replacing what is there; ``kwargs`` are those of :func:`zardine.create_array`."""
    if not hasattr(arr, "__array__"):
        raise TypeError(f"save_array takes an array, not {type(arr).__name__}")
    kwargs.pop("mode", None)
    create_array(store, name=path, data=arr, zarr_format=zarr_format, **{"overwrite": True, **kwargs})


def save_group(
    store: StoreLike,
    *args: Any,
    zarr_format: int | None = None,
    path: str | None = None,
    storage_options: Mapping[str, Any] | None = None,
    **kwargs: Any,
) -> None:
    """Store several arrays in a group, replacing what is there.

    ``args`` are stored as ``arr_0``, ``arr_1``, ..., the others by their names.
    """
    named = {**{f"arr_{i}": value for i, value in enumerate(args)}, **kwargs}
    if not named:
        raise ValueError("at least one array must be given")
    for name, value in named.items():
        if not hasattr(value, "__array__"):
            raise TypeError(f"{name}: save_group takes arrays, not {type(value).__name__}")
    group = create_group(store, path=normalize_path(path), zarr_format=zarr_format, overwrite=True)
    for name, value in named.items():
        group[name] = value


def save(
    store: StoreLike,
    *args: Any,
    zarr_format: int | None = None,
    path: str | None = None,
    storage_options: Mapping[str, Any] | None = None,
    **kwargs: Any,
) -> None:
    """Store one array as an array, several as a group; see :func:`save_array` and :func:`save_group`."""
    if len(args) == 1 and not kwargs:
        save_array(store, args[0], zarr_format=zarr_format, path=path)
    else:
        save_group(store, *args, zarr_format=zarr_format, path=path, **kwargs)


def load(store: StoreLike, path: str | None = None, zarr_format: int | None = None) -> Any:
    """The values of a stored array; for a group, a dictionary of those of its arrays, groups within groups."""
    check_format(zarr_format)
    node = open(store, mode="r", path=path)
    return np.asarray(node[...]) if isinstance(node, Array) else _load_group(node)


def _load_group(group: Group) -> dict[str, Any]:
    return {
        name: np.asarray(node[...]) if isinstance(node, Array) else _load_group(node) for name, node in group.items()
    }
