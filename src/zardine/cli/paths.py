"""What the paths name that users type: opening it, and saying in a word where nothing is there."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from zardine.cli.errors import arguments, print_error

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
    """Say what is meant instead, where the block finds no node at ``path``, or one of the other kind.

    Paths are often mistyped, or name a chunk or a document, or a group where an array is needed.
    """
    from zardine.errors import ContainsArrayError, ContainsGroupError, NodeNotFoundError, StoreError

    try:
        yield
    except (ContainsGroupError, ContainsArrayError) as error:
        text = str(error).replace(": see open_array", "")
        raise type(error)(text.replace(": see open_group", f"; 'zardine tree {path}' shows its arrays")) from None
    except (NodeNotFoundError, StoreError) as error:
        if isinstance(error, NodeNotFoundError) and path.lower().startswith(("http://", "https://")):
            raise NodeNotFoundError(f"{error}; {_OF_WEB}") from None
        if "://" in path or path.lower().startswith("file:/"):
            raise
        there = os.path.exists(path)
        if not there and isinstance(error, NodeNotFoundError):
            raise NodeNotFoundError(f"{path!r} does not exist{_alike(path)}") from None
        hint = _around(path) if there and not _is_node(path) else ""
        if not hint:
            raise
        raise type(error)(f"{error}{hint}") from error


_OF_WEB: Final = (
    "a web server does not tell what it has: give the address of an array or group itself, without the name of its "
    "document"
)


def _alike(path: str) -> str:
    """Return which name beside a mistyped one may be meant; empty if none is like it."""
    from zardine.stores.local.alike import name_meant

    meant = name_meant(path)
    return f"; did you mean {meant!r}?" if meant else ""


def _around(path: str) -> str:
    """Return of a path that lies in a node, such as that of a chunk, in which one; empty if it lies in none."""
    above = os.path.dirname(path.rstrip("/"))
    while above and above != os.path.dirname(above):
        if _is_node(above):
            return f"; it is a part of what is stored at {above!r}"
        above = os.path.dirname(above)
    return ""


def hint_of_part(path: str) -> None:
    """Print that a path is no array or group but lies in one, if it does."""
    hint = _around(path)
    if hint:
        print_error(f"no array or group is stored at {path!r}{hint}")


def _is_node(folder: str) -> bool:
    from zardine.metadata.formats import main_names

    names = (name for version in (3, 2) for name in main_names(version))  # ``meta`` of v1 is a name of many files
    return any(os.path.isfile(os.path.join(folder, name)) for name in names)
