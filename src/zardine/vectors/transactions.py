"""Replacing several arrays of a level at one moment.

New forms are stored beside the old ones (:mod:`zardine.vectors.rebuilding`). Then one write of the level's document
agrees on the change: it holds the documents of all that is new, under ``zardine_pending``, and readers take these. Then
the documents themselves are written, old objects erased, and the entry removed; who finds it later does that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from zardine.errors import StoreError
from zardine.metadata.documents import ArrayMetadata, GroupMetadata
from zardine.metadata.formats import node_to_json, parse_node_json
from zardine.nodes import erase_node, find_node, load_group, update_node
from zardine.vectors.cell_arrays import child
from zardine.vectors.level_access import PENDING, Level
from zardine.vectors.level_plan import Node
from zardine.vectors.node_writing import write_document
from zardine.vectors.rebuilding import prepare, settle


def replace_nodes(level: Level, nodes: Sequence[Node], removed: Sequence[str], attributes: Mapping[str, Any]) -> None:
    """Store ``nodes`` in the place of those of the same paths, remove others, and change the level's attributes.

    All at one moment for readers of zardine. Other readers may see some of the nodes changed and others not yet, for
    the time that it takes to write the documents. Before the change is agreed on, nothing of it can be seen; an error
    leaves the level as it was. Raises :class:`~zardine.errors.StoreError` if somebody else changes the level meanwhile.
    """
    store = level.owner.store
    pending: dict[str, Any] = dict.fromkeys(removed)
    for node in nodes:
        path = child(level.path, node.path)
        new = node.metadata
        if isinstance(new, ArrayMetadata):
            old = find_node(store, path, 3)
            new = prepare(store, path, old if isinstance(old, ArrayMetadata) else None, node)
        pending[node.path] = node_to_json(new)

    def change(old: GroupMetadata) -> GroupMetadata:
        if dict(old.attributes) != dict(level.document.attributes):
            raise StoreError(f"somebody else has changed level {level.document.level} meanwhile: try again")
        return old.with_attributes({**attributes, PENDING: pending})

    update_node(store, level.path, load_group(store, level.path, 3), change)
    finish(level.owner.level(level.document.level))


def finish(level: Level) -> None:
    """Carry out what was agreed on, and bring every array to the usual form."""
    if not level.pending:
        return
    store = level.owner.store
    arrays = []
    for relative, document in level.pending.items():
        path = child(level.path, relative)
        if document is None:
            erase_node(store, path)
            continue
        metadata = parse_node_json(document, f"the pending document of {path}")
        write_document(store, path, metadata)
        if isinstance(metadata, ArrayMetadata):
            arrays.append((path, metadata))
    update_node(store, level.path, load_group(store, level.path, 3), _without_pending)
    for path, metadata in arrays:
        settle(store, path, metadata)


def _without_pending(old: GroupMetadata) -> GroupMetadata:
    return old.with_attributes({name: value for name, value in old.attributes.items() if name != PENDING})
