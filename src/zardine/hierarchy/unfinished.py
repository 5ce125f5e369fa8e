"""Groups that are written as a whole: a member of the document says so from the first request of it to the last.

Between the two, or after a writer that was killed, nobody opens the group, so that what is there in part is not taken
for all there is. Programs that do not know the member pass over it.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import UTC, datetime

from zardine.engine.freshness import note_change
from zardine.errors import UnfinishedError
from zardine.hierarchy.consolidated import Consolidated
from zardine.hierarchy.create import create_ancestors, create_node, erase_node
from zardine.hierarchy.find import UNFINISHED_GROUP, describe, find_node, names_of
from zardine.hierarchy.update import update_node
from zardine.json_document import JSON
from zardine.metadata.documents import GroupMetadata
from zardine.metadata.formats import to_documents
from zardine.metadata.node_names import join_path, normalize_path
from zardine.metadata.v3 import DOCUMENT_NAME
from zardine.stores.base import Store


def begin_group(
    store: Store, path: str, metadata: GroupMetadata, *, by: str, overwrite: bool = True, kept: Collection[str] = ()
) -> str:
    """Store an unfinished group at ``path``, with ``overwrite`` in the place of whatever is there. Gives its id.

    The mark comes first, so that nobody opens what is erased in part. Members named in ``kept`` are left for ``by``,
    the function that writes the group, to replace. Groups above are created where they are missing.

    Raises :class:`~zardine.errors.ContainsGroupError` or :class:`~zardine.errors.ContainsArrayError` for a place that
    is taken, without ``overwrite``.
    """
    normalize_path(path, metadata.zarr_format)
    identity = secrets.token_hex(16)
    marked = _marked(metadata, by, identity)
    if not overwrite:
        create_node(store, path, marked, overwrite=False)
        return identity
    create_ancestors(store, path, metadata.zarr_format)
    newer = join_path(path, DOCUMENT_NAME)
    hidden = metadata.zarr_format != 3 and store.exists(newer)  # a document of v3 counts as long as it is there
    cover = _marked(GroupMetadata(), by, identity) if hidden else marked
    _store(store, path, cover)
    prefix = f"{path}/" if path else ""
    keys, prefixes = store.list_dir(prefix)
    covering = {prefix + name for name in names_of(cover)}
    store.erase_values([key for key in keys if key not in covering])
    for each in prefixes:
        if each[len(prefix) : -1] not in kept:
            erase_node(store, each[:-1])
    if hidden:
        _store(store, path, marked)
        store.erase(newer)
    note_change()
    _tell_above(store, path, emptied=True)
    return identity


def mark_group(store: Store, path: str, identity: str, zarr_format: int = 3, *, by: str) -> None:
    """Mark a group that is there as unfinished, since much of it is about to be written; again does no harm."""
    update_node(store, path, GroupMetadata(zarr_format=zarr_format), lambda old: _marked(old, by, identity))
    _tell_above(store, path)


def finish_group(store: Store, path: str, identity: str, zarr_format: int = 3) -> None:
    """Remove the mark with that ``identity``, after all else is written.

    Raises :class:`~zardine.errors.UnfinishedError` where another writer has begun the group anew meanwhile.
    """

    def unmarked(old: GroupMetadata) -> GroupMetadata:
        mark = old.unknown.get(UNFINISHED_GROUP)
        if not isinstance(mark, Mapping) or mark.get("id") != identity:
            raise UnfinishedError(
                f"another writer has begun the group at {describe(store, path)} anew meanwhile: what is there now may "
                "be of both; write it again, by one writer"
            )
        return replace(old, unknown={name: each for name, each in old.unknown.items() if name != UNFINISHED_GROUP})

    update_node(store, path, GroupMetadata(zarr_format=zarr_format), unmarked)
    _tell_above(store, path)


def _marked(metadata: GroupMetadata, by: str, identity: str) -> GroupMetadata:
    since = datetime.now(UTC).isoformat(timespec="seconds")
    mark: JSON = {"must_understand": False, "by": by, "since": since, "id": identity}
    return replace(metadata, unknown={**metadata.unknown, UNFINISHED_GROUP: mark})


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
    for depth in range(len(parts)):
        above, relative = "/".join(parts[:depth]), "/".join(parts[depth:])
        group = find_node(store, above)
        if isinstance(group, GroupMetadata) and group.consolidated_metadata is not None:
            nodes = Consolidated(store, above, group.zarr_format, group.consolidated_metadata)
            nodes.keep_true([relative], emptied=[relative] if emptied else ())
