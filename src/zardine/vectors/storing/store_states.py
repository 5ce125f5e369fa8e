"""Telling whether somebody has changed a store while it was looked at, conversions of its arrays included."""

from __future__ import annotations

from functools import partial
from itertools import chain

from zardine.engine.side_by_side import begun
from zardine.errors import ZardineError
from zardine.hierarchy.find import Seen, document_key
from zardine.metadata.formats import NodeMetadata
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
        root = _version(owner.store, owner.path) if owner.version is None else owner.version
        levels = begun(owner.store, [partial(_state_of_level, owner, number) for number in owner.level_numbers()])
        return [("", root), *chain.from_iterable(level() for level in levels)]
    except (ZardineError, *NOT_ON_PURPOSE):
        return []


def _state_of_level(owner: VectorStore, number: int) -> State:
    try:
        level = owner.level(number)
    except (ZardineError, *NOT_ON_PURPOSE):
        return [(str(number), _version(owner.store, child(owner.path, str(number))))]
    own = _version(owner.store, level.path) if level.version is None else level.version
    versions: dict[str, object] = {}

    def look(relative: str) -> NodeMetadata | None:
        seen = Seen()
        node = level.node(relative, seen)
        noted = bytes(seen.document) if seen.version is None and seen.document is not None else seen.version
        versions[relative] = _version(owner.store, child(level.path, relative)) if noted is None else noted
        return node

    try:
        below = nodes_below(level, look)
    except (ZardineError, *NOT_ON_PURPOSE):
        below = []
    return [(str(number), own), *((f"{number}/{name}", versions[name]) for name in below)]


def _version(store: Store, path: str) -> object:
    """The version of a node's document; where the store counts none, the document."""
    key = document_key(path)
    version = store.version(key)
    return store.get(key) if version is None else version


NOT_ON_PURPOSE = (ValueError, TypeError, LookupError, ArithmeticError, AttributeError, AssertionError, MemoryError)
"""What code that meets values it was not made for may raise, beside the errors of zardine."""
