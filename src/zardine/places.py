"""Where a node is or shall be: from the arguments ``store``, ``path``, ``mode`` and ``storage_options``."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

from zardine.errors import ReadOnlyError
from zardine.metadata.node_names import join_path, normalize_path
from zardine.nodes import describe
from zardine.stores.base import Store
from zardine.stores.local import LocalStore
from zardine.stores.prefix import PrefixStore
from zardine.stores.resolve import Mode, StoreLike, is_foreign, resolve_store
from zardine.stores.wrapper import WrapperStore


def find_place(
    store: StoreLike,
    path: object = None,
    *,
    mode: Mode | None = None,
    storage_options: Mapping[str, Any] | None = None,
    why: str | None = None,
) -> tuple[Store, str]:
    """The store and the path in it that a user means.

    Raises :class:`~zardine.errors.ReadOnlyError` where ``mode`` is ``"r+"``, ``"w"`` or ``"w-"`` and the store refuses
    writes (``why`` they are needed, for its text, if not for the user's ``mode``), and ``TypeError`` for
    ``storage_options`` that are unknown, or that the store has no use for.
    """
    if path is not None and not isinstance(path, (str, bytes, PurePath)):
        raise TypeError(f"the path of a node is a string, not {path!r} ({type(path).__name__})")
    if is_foreign(store):  # of a filesystem the path says what the store is
        found, path = resolve_store(store, path=_text(path), mode=mode, storage_options=storage_options)
        inner = normalize_path(path)
    else:
        found, inner = resolve_store(store, mode=mode, storage_options=storage_options)
        inner = join_path(inner, normalize_path(path))
    if mode in ("r+", "w", "w-") and found.read_only:
        why = f"mode {mode!r} writes: use mode='r'" if why is None else why
        raise ReadOnlyError(f"{describe(found, inner)} is read-only, and {why}")
    return found, inner


def _text(path: str | bytes | PurePath | None) -> str:
    return "" if path is None else os.fsdecode(path)


def is_within(path: str, parent: str) -> bool:
    """Whether the node at ``path`` is the one at ``parent`` or lies below it."""
    return not parent or path == parent or path.startswith(f"{parent}/")


def overlap(a: Store, path_a: str, b: Store, path_b: str) -> bool:
    """Whether two nodes are one, or one lies inside of the other, also by other paths or URLs of the same place."""
    (store_a, place_a), (store_b, place_b) = _base(a, path_a), _base(b, path_b)
    if not same_place(store_a, store_b):
        if _are_apart(getattr(store_a, "origin", None), getattr(store_b, "origin", None)):
            return False
        place_a, place_b = describe(store_a, place_a).rstrip("/"), describe(store_b, place_b).rstrip("/")
    return is_within(place_a, place_b) or is_within(place_b, place_a)


def _are_apart(a: object, b: object) -> bool:
    """Whether two stores are known to be at different services, or in different accounts of one."""
    return a is not None and b is not None and a != b


def _base(store: Store, path: str) -> tuple[Store, str]:
    """The store beneath all wrappers, and the path in it; of local files the root of the file system."""
    from zardine.stores.zip_store import ZipStore

    while isinstance(store, WrapperStore):
        if isinstance(store, PrefixStore):
            path = join_path(store.prefix.rstrip("/"), path)
        store = store.store
    local = store.root if isinstance(store, LocalStore) else store.path if isinstance(store, ZipStore) else ""
    if not local:
        return store, path
    place = os.path.join(os.path.realpath(local), path)
    return LocalStore(os.path.abspath(os.sep)), os.path.realpath(place).replace(os.sep, "/").strip("/")


def same_place(a: Store, b: Store) -> bool:
    """Whether two stores hold the same values; one of them may refuse writes."""
    return a == b or (type(a) is type(b) and a.with_read_only(True) == b.with_read_only(True))
