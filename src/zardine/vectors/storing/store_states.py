"""Telling whether somebody has changed a store while it was looked at, conversions of its arrays included."""

from __future__ import annotations

from collections.abc import Iterator

from zardine.errors import ZardineError
from zardine.hierarchy.find import document_key
from zardine.stores.base import Store
from zardine.stores.resolve import StoreLike
from zardine.vectors.storing.cells import child
from zardine.vectors.storing.level_nodes import nodes_below
from zardine.vectors.storing.store import VectorStore

State = list[tuple[str, object]]


def state_of(path: StoreLike) -> State:
    """The documents of the store at ``path`` with their versions, to be compared; of damaged parts what can be had."""
    try:
        owner = VectorStore.open(path)
        return [(name, _version(owner.store, child(owner.path, name))) for name in ("", *_nodes(owner))]
    except (ZardineError, *NOT_ON_PURPOSE):
        return []


def _nodes(owner: VectorStore) -> Iterator[str]:
    for number in owner.level_numbers():
        yield str(number)
        try:
            below = nodes_below(owner.level(number))
        except (ZardineError, *NOT_ON_PURPOSE):
            continue
        yield from (f"{number}/{name}" for name in below)


def _version(store: Store, path: str) -> object:
    """The version of a node's document; where the store counts none, the document."""
    key = document_key(path)
    version = store.version(key)
    return store.get(key) if version is None else version


NOT_ON_PURPOSE = (ValueError, TypeError, LookupError, ArithmeticError, AttributeError, AssertionError, MemoryError)
"""What code that meets values it was not made for may raise, beside the errors of zardine."""
