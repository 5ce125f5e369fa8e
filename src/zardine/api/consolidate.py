"""Consolidated metadata: all documents of a hierarchy in the document of its group, so that one request opens it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from zardine.errors import ReadOnlyError
from zardine.hierarchy.consolidated import as_entry
from zardine.hierarchy.find import describe, load_group
from zardine.hierarchy.place import find_place
from zardine.hierarchy.update import update_node
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
    kept true by the group that is opened from it, and by all arrays and groups that come out of that; what changes
    otherwise is read as it was until it is made again.
    """
    check_format(zarr_format)
    found, inner = find_place(store, path, storage_options=storage_options, zarr_format=zarr_format)
    if found.read_only:
        raise ReadOnlyError(f"cannot write to {describe(found, inner)}: it was opened read-only")
    metadata = load_group(found, inner, zarr_format, unfinished=True).with_consolidated(None)
    group = Group(found, inner, metadata)
    nodes = {}
    for relative, node in group._walk(None, False):
        nodes[relative] = as_entry(node.metadata)
    consolidated = update_node(found, inner, metadata, lambda old: old.with_consolidated(nodes))
    return Group(found, inner, consolidated)
