"""What every tool is given: an opened node, or what names one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from zardine.hierarchy.place import find_place
from zardine.stores.base import Store
from zardine.stores.resolve import StoreLike

if TYPE_CHECKING:
    from zardine.nodes.array import Array
    from zardine.nodes.group import Group


def place_of(
    node: StoreLike | Array | Group,
    path: str | None,
    *,
    writing: bool = False,
    storage_options: Mapping[str, Any] | None = None,
) -> tuple[Store, str]:
    """Return the store of a node and the path in it. Raises :class:`~zardine.errors.ReadOnlyError` if ``writing``.

    (That is where the store, or the opened node, is read-only.)
    """
    from zardine.nodes.array import Array
    from zardine.nodes.group import Group

    place = node.store_path if isinstance(node, (Array, Group)) else node
    opened = isinstance(node, (Array, Group, Store))
    why = "this changes what is stored" + (": open it with mode='r+', or give its path" if opened else "")
    return find_place(place, path, mode="r+" if writing else None, storage_options=storage_options, why=why)


__all__ = ["place_of"]
