"""What is served: nodes by their names, and which keys of their stores belong to them."""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast
from urllib.parse import unquote

import zardine
from zardine.cache import Cache
from zardine.engine.freshness import LEASE
from zardine.hierarchy.find import find_node
from zardine.hierarchy.place import find_place
from zardine.metadata.documents import ArrayMetadata, GroupMetadata
from zardine.metadata.formats import ALL_NAMES
from zardine.metadata.node_names import join_path
from zardine.nodes.array import Array
from zardine.nodes.group import Group
from zardine.sources.opening import foreign_store, is_foreign_file
from zardine.stores.base import Store, is_key
from zardine.stores.path import StorePath
from zardine.stores.resolve import StoreLike

NodeLike: TypeAlias = Array | Group | StoreLike
"""An opened array or group, or what :func:`zardine.open` takes."""

_CHUNK = re.compile(r"c|(c\.)?[0-9]+([.][0-9]+)*")
"""The last part of the key of a chunk."""

_MOST_NODES = 2**24
"""Bytes of nodes that are remembered, about."""
_OF_A_NODE = 2**12
_MOST_MADE = 2**22
"""Bytes of what is made of nodes, about."""


@dataclass(frozen=True, slots=True, eq=False)
class Served:
    """One node that is served, with all below it, under a ``name``."""

    name: str
    store: Store
    path: str
    """Of the node within the store."""
    made: Cache[Any, Any] = field(default_factory=lambda: Cache(_MOST_MADE))
    """What was made of its nodes, for those who make it."""
    _seen: Cache[str, tuple[float, Array | GroupMetadata | None]] = field(default_factory=lambda: Cache(_MOST_NODES))

    def node(self, path: str) -> Array | GroupMetadata | None:
        """Return the array, or the metadata of the group, at ``path`` below the node; ``None`` where there is none.

        What was found counts for a lease; arrays notice by themselves that they were changed. Raises as opening does.
        """
        known = self._seen.get(path)
        now = time.monotonic()
        if known is not None and now - known[0] < LEASE:
            return known[1]
        inner = join_path(self.path, path)
        metadata = find_node(self.store, inner)
        found: Array | GroupMetadata | None
        if isinstance(metadata, ArrayMetadata):
            old = None if known is None else known[1]
            if isinstance(old, Array) and old.metadata.document == metadata.document:
                found = old
            else:
                found = Array(self.store, inner, metadata)
        else:
            found = metadata
        self._seen.put(path, (now, found), _OF_A_NODE)
        return found

    def forget_all(self) -> None:
        """Find all nodes anew when they are needed again."""
        self._seen.clear()

    def array_above(self, parts: list[str]) -> tuple[Array, str] | None:
        """Return the array that lies nearest above a key given as its ``parts``, and the rest of the key."""
        for length in range(len(parts) - 1, -1, -1):
            found = self.node("/".join(parts[:length]))
            if isinstance(found, Array):
                return found, "/".join(parts[length:])
        return None

    def is_ours(self, key: str) -> bool:
        """Return whether ``key``, relative to the node, is a document, or the key of a chunk of an array below it."""
        if not is_key(key):
            return False
        parts = key.split("/")
        if any(part.startswith("__zardine") for part in parts):
            return False
        if parts[-1] in ALL_NAMES:
            return self.node("/".join(parts[:-1])) is not None
        found = self.array_above(parts)
        if found is None:
            return False
        array, rest = found
        return array._handle.layout.keys.decode(rest, array.ndim) is not None

    def is_misnamed(self, key: str) -> bool:
        """Return whether ``key`` looks like the key of a chunk, and is not below an array that is stored.

        Programs that do not encode names with ``?``, ``#``, ``%`` or line breaks ask for such keys, and would take "not
        found" for a chunk of fill values.
        """
        parts = key.split("/")
        if not is_key(key) or not _CHUNK.fullmatch(parts[-1]) or any(part.startswith("__zardine") for part in parts):
            return False
        return self.array_above(parts) is None

    def key(self, key: str) -> str:
        """Return the key in the store for one relative to the node."""
        return join_path(self.path, key)

    def listed(self, prefix: str) -> Iterator[str]:
        """Yield the names of keys, and of prefixes with a slash, directly below ``prefix`` that belong to nodes."""
        start = self.key(prefix.rstrip("/"))
        keys, prefixes = self.store.list_dir(f"{start}/" if start else "")
        for name in sorted([*keys, *prefixes]):
            last = name.rstrip("/").rpartition("/")[2]
            if name.endswith("/") or self.is_ours(f"{prefix}{last}"):
                yield last + ("/" if name.endswith("/") else "")


def find_served(nodes: Iterable[tuple[str | None, NodeLike]], storage_options: Any = None) -> dict[str, Served]:
    """Return what to serve by name: the name given, or the last part of the path; ``name-2`` where that is taken.

    Raises :class:`~zardine.errors.NodeNotFoundError` where there is no node.
    """
    found: dict[str, Served] = {}
    for name, node in nodes:
        store, path = _place(node, storage_options)
        if not isinstance(node, Array | Group):
            zardine.open(store, path=path, mode="r")
        plain = name or path.rpartition("/")[2] or _name_of(store) or "data"
        plain, count = plain.replace("/", "-"), 1
        unique = plain
        while unique in found:
            count += 1
            unique = f"{plain}-{count}"
        found[unique] = Served(unique, store.with_read_only(True), path)
    return found


def _place(node: NodeLike, storage_options: Any) -> tuple[Store, str]:
    if isinstance(node, Array | Group):
        return node.store, node.path
    if isinstance(node, StorePath):
        return node.store, node.path
    if is_foreign_file(node):
        return find_place(foreign_store(cast(str, node), storage_options=storage_options or None), mode="r")
    return find_place(node, mode="r", storage_options=storage_options or None)


def _name_of(store: Store) -> str:
    """Return the last part of a store's own address, as people write it."""
    address = str(store)
    name = address.rstrip("/").rpartition("/")[2].partition("?")[0]
    return unquote(name) if address.startswith(("file:", "http:", "https:")) else name


def entity_tag(version: str) -> str:
    """Return a strong entity tag (RFC 9110, 8.8.3) of a value with this version; inodes and times are not told."""
    return f'"{hashlib.sha256(version.encode()).hexdigest()[:32]}"'


__all__ = ["NodeLike", "Served", "entity_tag", "find_served"]
