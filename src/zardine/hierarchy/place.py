"""Where a node is or shall be: from the arguments ``store``, ``path``, ``mode`` and ``storage_options``."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

from zardine.errors import ContainsArrayError, MetadataError, ReadOnlyError
from zardine.hierarchy.find import describe, find_node, implied_group, location
from zardine.metadata.documents import ArrayMetadata
from zardine.metadata.formats import format_of_new
from zardine.metadata.node_names import join_path, normalize_path
from zardine.stores.base import Store
from zardine.stores.resolve import Mode, StoreLike, is_foreign, resolve_store


def find_place(
    store: StoreLike,
    path: object = None,
    *,
    mode: Mode | None = None,
    storage_options: Mapping[str, Any] | None = None,
    why: str | None = None,
    zarr_format: int | None = None,
) -> tuple[Store, str]:
    """Return the store and the path in it that a user means.

    What a backslash in the path stands for depends on the version of Zarr: of the node that is wanted if
    ``zarr_format`` tells, else of what is stored there.

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
    if "\\" in inner:
        inner = _settle(found, inner, zarr_format)
    if mode in ("r+", "w", "w-") and found.read_only:
        why = f"mode {mode!r} writes: use mode='r'" if why is None else why
        raise ReadOnlyError(f"{describe(found, inner)} is read-only, and {why}")
    return found, inner


def check_new_place(store: Store, path: str, zarr_format: int) -> None:
    """Check that a node of this version of Zarr may be made at ``path``, be it free or not.

    Raises ``ValueError`` for a name that no such node may have, and :class:`~zardine.errors.ContainsArrayError` below
    an array.
    """
    normalize_path(path, zarr_format)
    parts = path.split("/")[:-1]
    for depth in range(len(parts) + 1 if path else 0):
        ancestor = "/".join(parts[:depth])
        if isinstance(find_node(store, ancestor), ArrayMetadata):
            raise ContainsArrayError(
                f"cannot make an array or group at {describe(store, path)}: {describe(store, ancestor)} is an array"
            )


def _settle(store: Store, path: str, zarr_format: int | None) -> str:
    """Return the path of a node, in which each backslash that stands for ``/`` has become one.

    It does not in the names of nodes of v3 that are stored, and in those of new ones.
    """
    settled = ""
    parts = path.split("/")
    for number, part in enumerate(parts):
        last = number == len(parts) - 1
        if "\\" in part and zarr_format != 3:
            older = normalize_path(part, 2) if zarr_format is not None else _older_path(part)
            as_it_is = (zarr_format is None or not last) and _is_there(store, join_path(settled, part), (3,))
            if not as_it_is and zarr_format is None and format_of_new(None) == 3:
                as_it_is = not _is_there(store, join_path(settled, older), (2, 1))
            part = part if as_it_is else older
        settled = join_path(settled, part)
    return settled


def _older_path(name: str) -> str:
    """Return the path that a name with backslashes is in Zarr v2; the name itself where that is no path there."""
    try:
        return normalize_path(name, 2)
    except ValueError:
        return name


def _is_there(store: Store, path: str, versions: tuple[int, ...]) -> bool:
    for version in versions:
        try:
            if find_node(store, path, version) is not None or implied_group(store, path, version) is not None:
                return True
        except MetadataError:
            return True
    return False


def _text(path: str | bytes | PurePath | None) -> str:
    return "" if path is None else os.fsdecode(path)


def is_within(path: str, parent: str) -> bool:
    """Return whether the node at ``path`` is the one at ``parent`` or lies below it."""
    return not parent or path == parent or path.startswith(f"{parent}/")


def overlap(a: Store, path_a: str, b: Store, path_b: str) -> bool:
    """Return whether two nodes are one, or one lies inside of the other, also by other paths or URLs of one place."""
    return is_inside(a, path_a, b, path_b) or is_inside(b, path_b, a, path_a)


def is_inside(a: Store, path_a: str, b: Store, path_b: str) -> bool:
    """Return whether a place is a node at ``path_b`` of ``b`` or lies in it, also by other paths or URLs."""
    (store_a, place_a), (store_b, place_b) = a.beneath(path_a), b.beneath(path_b)
    if not same_place(store_a, store_b):
        if _are_apart(store_a.origin, store_b.origin):
            return False
        place_a, place_b = location(store_a, place_a).rstrip("/"), location(store_b, place_b).rstrip("/")
    return is_within(place_a, place_b)


def _are_apart(a: tuple[str, ...] | None, b: tuple[str, ...] | None) -> bool:
    """Return whether two stores are known to be at different services, or in different accounts of one."""
    return a is not None and b is not None and a != b


def same_place(a: Store, b: Store) -> bool:
    """Return whether two stores hold the same values; one of them may refuse writes."""
    return a == b or (type(a) is type(b) and a.with_read_only(True) == b.with_read_only(True))
