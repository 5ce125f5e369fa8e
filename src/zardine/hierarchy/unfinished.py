"""Groups that are written as a whole: a member of the document says so from the first request of it to the last.

Between the two, or after a writer that was killed, nobody opens the group, so that what is there in part is not taken
for all there is. Nodes that are made in it have the same member until they are complete, since a path leads to them
past the group. Programs that do not know the member pass over it.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from types import MappingProxyType
from typing import Any

from zardine.engine.freshness import note_change
from zardine.engine.side_by_side import begun
from zardine.engine.workers import for_each, most_requests
from zardine.errors import UnfinishedError
from zardine.hierarchy.consolidated import Consolidated
from zardine.hierarchy.create import create_ancestors, create_node, erase_nodes
from zardine.hierarchy.find import UNFINISHED_NODE, describe, find_node, names_of
from zardine.hierarchy.update import M, update_node
from zardine.json_document import JSON
from zardine.metadata.documents import GroupMetadata
from zardine.metadata.formats import NodeMetadata, to_documents
from zardine.metadata.node_names import join_path, normalize_path
from zardine.metadata.v3 import DOCUMENT_NAME
from zardine.stores.base import Store


def begin_group(
    store: Store,
    path: str,
    metadata: GroupMetadata,
    *,
    by: str,
    overwrite: bool = True,
    kept: Collection[str] = (),
    identity: str | None = None,
) -> str:
    """Store an unfinished group at ``path``, with ``overwrite`` in the place of whatever is there. Gives its id.

    The mark comes first, so that nobody opens what is erased in part. Members named in ``kept`` are left for ``by``,
    the function that writes the group, to replace. Groups above are created where they are missing. ``identity`` is
    that of a group above, with which this one is written.

    Raises :class:`~zardine.errors.ContainsGroupError` or :class:`~zardine.errors.ContainsArrayError` for a place that
    is taken, without ``overwrite``.
    """
    normalize_path(path, metadata.zarr_format)
    identity = identity or secrets.token_hex(16)
    new = marked(metadata, by, identity)
    if not overwrite:
        create_node(store, path, new, overwrite=False)
        return identity
    create_ancestors(store, path, metadata.zarr_format)
    newer = join_path(path, DOCUMENT_NAME)
    hidden = metadata.zarr_format != 3 and store.exists(newer)  # a document of v3 counts as long as it is there
    cover = marked(GroupMetadata(), by, identity) if hidden else new
    _store(store, path, cover)
    prefix = f"{path}/" if path else ""
    keys, prefixes = store.list_dir(prefix)
    covering = {prefix + name for name in names_of(cover)}
    store.erase_values([key for key in keys if key not in covering])
    erase_nodes(store, [each[:-1] for each in prefixes if each[len(prefix) : -1] not in kept])
    if hidden:
        _store(store, path, new)
        store.erase(newer)
    note_change()
    _tell_above(store, path, emptied=True)
    return identity


def mark_group(
    store: Store,
    path: str,
    identity: str,
    zarr_format: int = 3,
    *,
    by: str,
    below: Mapping[str, NodeMetadata] = MappingProxyType({}),
) -> None:
    """Mark a group that is there as unfinished, since much of it is about to be written; again does no harm.

    ``below`` are nodes in it, by path, that are marked, too.
    """
    update_node(store, path, GroupMetadata(zarr_format=zarr_format), lambda old: marked(old, by, identity))
    _tell_above(store, path)
    _update_all(store, below, lambda _, old: marked(old, by, identity))


def finish_below(store: Store, nodes: Mapping[str, NodeMetadata], identity: str) -> None:
    """Remove the mark of nodes, by path, that are complete, below a group that is not yet; raises as its end does."""
    _update_all(store, nodes, lambda path, old: _unmarked(old, store, path, identity))


def finish_group(store: Store, path: str, identity: str, zarr_format: int = 3) -> None:
    """Remove the mark with that ``identity``, after all else is written.

    Raises :class:`~zardine.errors.UnfinishedError` where another writer has begun the group anew meanwhile.
    """
    update_node(store, path, GroupMetadata(zarr_format=zarr_format), lambda old: _unmarked(old, store, path, identity))
    _tell_above(store, path)


def marked(metadata: M, by: str, identity: str) -> M:
    """Return the document of a group, or of a node in it, that is written as a whole ``by`` a function."""
    since = datetime.now(UTC).isoformat(timespec="seconds")
    mark: JSON = {"must_understand": False, "by": by, "since": since, "id": identity}
    return replace(metadata, unknown={**metadata.unknown, UNFINISHED_NODE: mark})


def _unmarked(old: M, store: Store, path: str, identity: str) -> M:
    mark = old.unknown.get(UNFINISHED_NODE)
    if not isinstance(mark, Mapping) or mark.get("id") != identity:
        raise UnfinishedError(
            f"another writer has begun the {old.node_type} at {describe(store, path)} anew meanwhile: what is there "
            "now may be of both; write it again, by one writer"
        )
    return replace(old, unknown={name: each for name, each in old.unknown.items() if name != UNFINISHED_NODE})


def _update_all(store: Store, nodes: Mapping[str, NodeMetadata], change: Callable[[str, Any], Any]) -> None:
    def update(path: str) -> None:
        node: Any = nodes[path]
        update_node(store, path, node, lambda old: change(path, old))

    for_each(update, list(nodes), len(nodes), most_requests(store, 1))


def _store(store: Store, path: str, metadata: GroupMetadata) -> None:
    """Store the documents of a group whatever is there, the one that makes it last."""
    documents = to_documents(metadata)
    for name in reversed(names_of(metadata)):
        document, key = documents[name], join_path(path, name)
        if document is None:
            store.erase(key)
        else:
            store.set(key, document)


def _tell_above(store: Store, path: str, *, emptied: bool = False) -> None:
    """Say in the consolidated metadata of groups above, where they have it, what the group is now.

    ``emptied``: what was below it is gone.
    """
    parts = path.split("/") if path else []
    groups = ["/".join(parts[:depth]) for depth in range(len(parts))]
    looks = begun(store, [partial(find_node, store, above) for above in groups])
    for depth, (above, look) in enumerate(zip(groups, looks, strict=True)):
        relative, group = "/".join(parts[depth:]), look()
        if isinstance(group, GroupMetadata) and group.consolidated_metadata is not None:
            nodes = Consolidated(store, above, group.zarr_format, group.consolidated_metadata)
            nodes.keep_true([relative], emptied=[relative] if emptied else ())
