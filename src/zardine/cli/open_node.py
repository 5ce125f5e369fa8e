"""Opening what a command's arguments name, for reading."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from zardine.cli.errors import arguments
from zardine.cli.missing_paths import missing

if TYPE_CHECKING:
    from zardine.nodes.array import Array
    from zardine.nodes.group import Group


def open_node(
    path: str,
    node: str | None = None,
    *,
    storage_options: Mapping[str, Any] | None = None,
    zarr_format: int | None = None,
    counted: bool = False,
) -> Array | Group:
    """The array or group at ``path``, and at ``node`` in it, read-only; ``counted``: through a ``CountingStore``."""
    import zardine
    from zardine.hierarchy.place import find_place
    from zardine.storage import CountingStore

    with arguments(), missing(path):
        store, inner = find_place(path, node, mode="r", storage_options=storage_options or None)
        if counted:
            store = CountingStore(store)
        return zardine.open(store, path=inner, mode="r", zarr_format=zarr_format)
