"""Metadata documents in a store: finding, creating and changing nodes (core 3.1, "Storage").

Every change of a document is a conditional write, so that two processes changing one document both succeed.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, TypeAlias, TypeVar

from zardine.buffers import BytesLike
from zardine.errors import (
    ArrayNotFoundError,
    ConditionFailedError,
    ContainsArrayError,
    ContainsGroupError,
    GroupNotFoundError,
    MetadataError,
    NodeNotFoundError,
    UnsupportedError,
)
from zardine.metadata.documents import ArrayMetadata, GroupMetadata
from zardine.metadata.node_names import join_path, normalize_path
from zardine.metadata.v3 import DOCUMENT_NAME, parse_node, serialize
from zardine.stores.base import Condition, Store

NodeMetadata: TypeAlias = ArrayMetadata | GroupMetadata
M = TypeVar("M", ArrayMetadata, GroupMetadata)

_OLD_DOCUMENTS = (".zarray", ".zgroup")
_ATTEMPTS = 1000


def document_key(path: str) -> str:
    """The key of a node's metadata document."""
    return join_path(path, DOCUMENT_NAME)


def describe(store: Store, path: str) -> str:
    """A node's place for an error text."""
    return f"{str(store).rstrip('/')}/{path}" if path else str(store)


def find_node(store: Store, path: str) -> NodeMetadata | None:
    """The metadata of the node at ``path``; ``None`` where there is none.

    Raises :class:`~zardine.errors.MetadataError` for a document that breaks the specification.
    """
    data = store.get(document_key(path))
    return None if data is None else _parse(data, store, path)


def _parse(data: BytesLike, store: Store, path: str) -> NodeMetadata:
    try:
        return parse_node(data)
    except MetadataError as error:
        raise type(error)(f"the document of {describe(store, path)} is invalid", error.problems) from None


def load_node(store: Store, path: str) -> NodeMetadata:
    """The metadata of the node at ``path``, which must be there."""
    node = find_node(store, path)
    if node is None:
        raise _not_found(store, path, NodeNotFoundError, "array or group")
    return node


def load_array(store: Store, path: str) -> ArrayMetadata:
    """The metadata of the array at ``path``, which must be one."""
    node = find_node(store, path)
    if isinstance(node, ArrayMetadata):
        return node
    if node is not None:
        raise ContainsGroupError(f"a group, not an array, is stored at {describe(store, path)}: see open_group")
    raise _not_found(store, path, ArrayNotFoundError, "array")


def load_group(store: Store, path: str) -> GroupMetadata:
    """The metadata of the group at ``path``; a path above stored nodes is an (implied) group without a document."""
    node = find_node(store, path)
    if isinstance(node, GroupMetadata):
        return node
    if node is not None:
        raise ContainsArrayError(f"an array, not a group, is stored at {describe(store, path)}: see open_array")
    if is_implied_group(store, path):
        return GroupMetadata()
    raise _not_found(store, path, GroupNotFoundError, "group")


def is_implied_group(store: Store, path: str) -> bool:
    """Whether nodes are stored below ``path`` (core 3.1, "Discover children of a group")."""
    try:
        keys = store.list_prefix(f"{path}/" if path else "")
        return any(key.endswith("/" + DOCUMENT_NAME) for key in keys)
    except UnsupportedError:
        return False


def create_node(store: Store, path: str, metadata: NodeMetadata, *, overwrite: bool) -> None:
    """Store the document of a new node, and documents of groups above it that have none.

    Raises :class:`~zardine.errors.ContainsArrayError` or :class:`~zardine.errors.ContainsGroupError` where the place is
    taken and ``overwrite`` is false; with ``overwrite`` everything stored at and below ``path`` is erased first.
    """
    normalize_path(path)
    document = serialize(metadata)
    create_ancestors(store, path)
    if overwrite:
        store.erase_prefix(f"{path}/" if path else "")
        store.set(document_key(path), document)
        return
    for name in _OLD_DOCUMENTS:
        if store.exists(join_path(path, name)):
            kind = ContainsArrayError if name == ".zarray" else ContainsGroupError
            raise kind(
                f"a Zarr v2 node is stored at {describe(store, path)} ({name}); overwrite=True erases it and all below"
            )
    try:
        store.set(document_key(path), document, condition=Condition(None))
    except ConditionFailedError:
        raise taken(store, path, find_node(store, path)) from None


def taken(store: Store, path: str, node: NodeMetadata | None) -> ContainsArrayError | ContainsGroupError:
    """The error for a place that holds ``node`` already."""
    place = describe(store, path)
    if isinstance(node, ArrayMetadata):
        return ContainsArrayError(f"an array is already stored at {place}; overwrite=True or mode='w' replaces it")
    return ContainsGroupError(
        f"a group is already stored at {place}; overwrite=True or mode='w' erases it and all below it"
    )


def update_node(store: Store, path: str, metadata: M, change: Callable[[M], M]) -> M:
    """Change the document of a node; ``change`` gets what is stored now, which may be newer than ``metadata``."""
    key = document_key(path)
    for attempt in range(_ATTEMPTS):
        with store.lock(key):
            reading = store.read(key)
            current: Any = metadata
            condition = Condition(None)
            if reading is not None:
                current = _parse(reading.parts[0], store, path)
                condition = Condition(reading.version)
                if type(current) is not type(metadata):
                    raise taken(store, path, current)
            elif isinstance(metadata, ArrayMetadata):
                raise _not_found(store, path, ArrayNotFoundError, "array")
            changed = change(current)
            try:
                versioned = reading is None or reading.version is not None
                store.set(key, serialize(changed), condition=condition if versioned else None)
            except ConditionFailedError:
                if attempt + 1 == _ATTEMPTS:
                    raise
            else:
                return changed
        time.sleep(random.uniform(0, min(0.05, 0.0005 * 2 ** min(attempt, 10))))
    raise AssertionError("unreachable")


def erase_node(store: Store, path: str) -> None:
    """Remove a node and everything below it; its document goes first, so that no half-erased node is found."""
    store.erase(document_key(path))
    store.erase_prefix(f"{path}/" if path else "")


def child_names(store: Store, path: str) -> Iterator[str]:
    """Names of what may be nodes directly below ``path``, sorted."""
    prefix = f"{path}/" if path else ""
    _, prefixes = store.list_dir(prefix)
    for each in prefixes:
        name = each[len(prefix) : -1]
        if not name.startswith("__"):
            yield name


def create_ancestors(store: Store, path: str) -> None:
    """Store documents of the groups above ``path`` that have none.

    Raises :class:`~zardine.errors.ContainsArrayError` where one of them is an array.
    """
    parts = path.split("/")[:-1] if path else []
    missing = []
    for depth in range(len(parts), -1, -1):
        if depth == 0 and not path:
            break
        ancestor = "/".join(parts[:depth])
        node = find_node(store, ancestor)
        if isinstance(node, ArrayMetadata):
            raise ContainsArrayError(
                f"cannot create a node below {describe(store, ancestor)}: an array is stored there, not a group"
            )
        if node is not None:
            break  # what is above an existing group exists too
        missing.append(ancestor)
    for ancestor in reversed(missing):
        with suppress(ConditionFailedError):  # another process has just created it
            store.set(document_key(ancestor), serialize(GroupMetadata()), condition=Condition(None))


def _not_found(store: Store, path: str, kind: type[NodeNotFoundError], what: str) -> Exception:
    for name in _OLD_DOCUMENTS:
        if store.exists(join_path(path, name)):
            return UnsupportedError(
                f"{describe(store, path)} is stored in Zarr v2 ({name}), which this version of zardine cannot open yet"
            )
    return kind(f"no {what} is stored at {describe(store, path)}: looked for {document_key(path)!r}")
