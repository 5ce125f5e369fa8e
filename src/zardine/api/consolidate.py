"""Consolidated metadata: all documents of a hierarchy in the document of its group, so that one request opens it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from zardine.errors import ReadOnlyError
from zardine.hierarchy.consolidated import Consolidated, as_entry
from zardine.hierarchy.find import describe, load_group
from zardine.hierarchy.place import find_place
from zardine.hierarchy.update import update_node
from zardine.metadata.documents import GroupMetadata
from zardine.metadata.formats import check_format
from zardine.nodes.group import Group
from zardine.stores.resolve import StoreLike


def consolidate_metadata(
    store: StoreLike,
    path: str | None = None,
    zarr_format: int | None = None,
    *,
    storage_options: Mapping[str, Any] | None = None,
) -> Group:
    """Write the documents of all nodes below a group into the document of that group; gives the group.

    The form is that of zarr-python: the member ``consolidated_metadata``, which other programs may ignore. It is
    kept true by the group that is opened from it, and by all arrays and groups that come out of that, while it is made
    anew, too; what changes otherwise is read as it was until it is made again. Nodes that are erased meanwhile are not
    in it.
    """
    check_format(zarr_format)
    found, inner = find_place(store, path, storage_options=storage_options, zarr_format=zarr_format)
    if found.read_only:
        raise ReadOnlyError(f"cannot write to {describe(found, inner)}: it was opened read-only")
    loaded = load_group(found, inner, zarr_format, unfinished=True)
    before, metadata = loaded.consolidated_metadata or {}, loaded.with_consolidated(None)
    group = Group(found, inner, metadata)
    nodes = {relative: as_entry(node.metadata) for relative, node in group._walk(None, False)}

    def consolidated(old: GroupMetadata) -> GroupMetadata:
        now = old.consolidated_metadata or {}
        newer = {path: now[path] for path in now if now[path] != before.get(path)}
        kept = {path: node for path, node in nodes.items() if path in now or path not in before}
        return old.with_consolidated({**kept, **newer})

    stored = update_node(found, inner, metadata, consolidated)
    told = Consolidated(found, inner, stored.zarr_format, stored.consolidated_metadata or {})
    if told.forget_gone(sorted(told.nodes)):
        stored = stored.with_consolidated(told.nodes)
    return Group(found, inner, stored)
