"""Where a node is or shall be: from the arguments ``store``, ``path``, ``mode`` and ``storage_options``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

from zardine.errors import ReadOnlyError
from zardine.metadata.node_names import join_path, normalize_path
from zardine.nodes import describe
from zardine.stores.base import Store
from zardine.stores.resolve import Mode, StoreLike, resolve_store


def find_place(
    store: StoreLike,
    path: object = None,
    *,
    mode: Mode | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> tuple[Store, str]:
    """The store and the path in it that a user means.

    Raises :class:`~zardine.errors.ReadOnlyError` where ``mode`` is ``"r+"``, ``"w"`` or ``"w-"`` and the store refuses
    writes, and ``TypeError`` for ``storage_options`` that the store has no use for.
    """
    found, inner = resolve_store(store, mode=mode)
    if storage_options:
        names = ", ".join(map(repr, storage_options))
        raise TypeError(f"storage_options ({names}) have no meaning for {found}: they are for stores behind other URLs")
    if path is not None and not isinstance(path, (str, bytes, PurePath)):
        raise TypeError(f"the path of a node is a string, not {path!r} ({type(path).__name__})")
    inner = join_path(inner, normalize_path(path))
    if mode in ("r+", "w", "w-") and found.read_only:
        raise ReadOnlyError(f"{describe(found, inner)} is read-only, and mode {mode!r} writes: use mode='r'")
    return found, inner


def is_within(path: str, parent: str) -> bool:
    """Whether the node at ``path`` is the one at ``parent`` or lies below it."""
    return not parent or path == parent or path.startswith(f"{parent}/")


def same_place(a: Store, b: Store) -> bool:
    """Whether two stores hold the same values; one of them may refuse writes."""
    return a == b or (type(a) is type(b) and a.with_read_only(True) == b.with_read_only(True))
