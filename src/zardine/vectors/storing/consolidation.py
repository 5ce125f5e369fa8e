"""Consolidated metadata of a store: a copy of its documents, which other programs believe and every change makes false.

Readers of zardine ask it only for names, where nothing can be listed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from zardine.hierarchy.find import find_node, load_group
from zardine.hierarchy.update import update_node
from zardine.metadata.documents import GroupMetadata
from zardine.vectors.storing.cells import child
from zardine.vectors.storing.level_nodes import nodes_below
from zardine.vectors.storing.store import VectorStore

_MEMBER = "consolidated_metadata"


def forget_consolidated(owner: VectorStore) -> None:
    """Remove the copy, before the documents that it repeats are changed."""
    if owner.consolidated is None:
        return

    def change(old: GroupMetadata) -> GroupMetadata:
        return old.with_consolidated(None)

    update_node(owner.store, owner.path, load_group(owner.store, owner.path, 3), change)


def differing_documents(owner: VectorStore) -> Iterator[str]:
    """The paths of nodes of which the copy says something else than their documents, or nothing."""
    copies = owner.consolidated
    if copies is None:
        return
    for path, copy in copies.items():
        node = find_node(owner.store, child(owner.path, path), 3)
        if node is None or _own(node.to_dict()) != _own(copy):
            yield path
    for number in owner.finished_levels():
        yield from (f"{number}/{name}" for name in nodes_below(owner.level(number)) if f"{number}/{name}" not in copies)


def _own(document: Any) -> Any:
    """A document without the copies of others."""
    return {name: value for name, value in document.items() if name != _MEMBER} if isinstance(document, dict) else None
