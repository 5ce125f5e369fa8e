"""Keeping consolidated metadata of the groups above an array true."""

from __future__ import annotations

from functools import partial

from zardine.hierarchy.find import find_node, load_array
from zardine.hierarchy.update import update_node
from zardine.metadata.documents import ArrayMetadata, GroupMetadata
from zardine.metadata.node_names import join_path
from zardine.metadata.v3 import DOCUMENT_NAME
from zardine.stores.base import Store
from zardine.stores.local.store import LocalStore


def outermost(store: Store, path: str) -> tuple[Store, str]:
    """The same place, seen from the outermost group that a directory lies in, so that groups above are in the store."""
    if type(store) is not LocalStore:
        return store, path
    root = top = store.root
    while top.parent != top and (top.parent / DOCUMENT_NAME).is_file():
        top = top.parent
    if top == root:
        return store, path
    wider = LocalStore(top, read_only=store.read_only, durable=store.durable)
    return wider, join_path(root.relative_to(top).as_posix(), path)


def update_consolidated(store: Store, path: str) -> int:
    """Write the document of the array at ``path`` into the consolidated metadata of the groups above that have it.

    Gives how many groups were changed.
    """
    metadata = load_array(store, path)
    changed = 0
    parts = path.split("/") if path else []
    for depth in range(len(parts)):
        above, relative = "/".join(parts[:depth]), "/".join(parts[depth:])
        group = find_node(store, above, metadata.zarr_format)
        if isinstance(group, GroupMetadata) and relative in (group.consolidated_metadata or {}):
            update_node(store, above, group, partial(_with, relative=relative, metadata=metadata))
            changed += 1
    return changed


def _with(group: GroupMetadata, *, relative: str, metadata: ArrayMetadata) -> GroupMetadata:
    consolidated = dict(group.consolidated_metadata or {})
    if relative in consolidated:
        consolidated[relative] = metadata.to_dict()
    return group.with_consolidated(consolidated)
