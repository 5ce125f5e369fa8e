"""What the paths name that users type: opening it, and saying in a word where nothing is there."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from zardine.cli.errors import arguments

if TYPE_CHECKING:
    from zardine.nodes.array import Array
    from zardine.nodes.group import Group
    from zardine.stores.resolve import Mode, StoreLike


def open_node(
    path: str,
    node: str | None = None,
    *,
    storage_options: Mapping[str, Any] | None = None,
    zarr_format: int | None = None,
    counted: bool = False,
) -> Array | Group:
    """Open the array or group at ``node`` in ``path``, read-only; with ``counted`` through a ``CountingStore``."""
    import zardine
    from zardine.hierarchy.place import find_place
    from zardine.sources.opening import foreign_store, is_foreign_file
    from zardine.storage import CountingStore

    with arguments(), missing(path):
        if is_foreign_file(path):
            store, inner = find_place(foreign_store(path, storage_options=storage_options or None), node, mode="r")
        else:
            store, inner = find_place(path, node, mode="r", storage_options=storage_options or None)
        if counted:
            store = CountingStore(store)
        return zardine.open(store, path=inner, mode="r", zarr_format=zarr_format)


def store_at(path: str, storage_options: Mapping[str, Any], mode: Mode = "r", *, node: str | None = None) -> StoreLike:
    """Return what stands for the store at ``path`` in calls of the library: ``path`` itself without options or node."""
    if not storage_options and node is None:
        return path
    from zardine.hierarchy.place import find_place
    from zardine.stores.path import StorePath

    return StorePath(*find_place(path, node, mode=mode, storage_options=storage_options or None))


@contextmanager
def missing(path: str) -> Iterator[None]:
    """Say that nothing at all is there, if so, where the block finds no node at ``path``, which is often mistyped."""
    from zardine.errors import NodeNotFoundError

    try:
        yield
    except NodeNotFoundError:
        if "://" not in path and not path.lower().startswith("file:/") and not os.path.exists(path):
            raise NodeNotFoundError(f"{path!r} does not exist") from None
        raise
