"""Where this process has erased nodes, so that an array which comes there later is told from the one that was there.

What is erased leaves nothing in a store, and an array may be made there again of the same layout. Who makes it in the
process that erased the old one gives it an id of its own (:mod:`zardine.engine.freshness`), which handles in all
processes see; formats whose documents have no room for one are told by handles of this process alone.
"""

from __future__ import annotations

from collections.abc import Collection
from threading import Lock
from typing import Final

from zardine.metadata.node_names import join_path
from zardine.stores.base import Store

_MOST: Final = 10_000
"""Places that are remembered, at about 300 bytes each; those that were erased first are forgotten first."""

_MOST_IN_TREE: Final = 1000
"""Nodes of one tree that are remembered one by one; of more, all of the tree counts as erased."""

_erased: dict[tuple[str, bool], int] = {}
"""Nodes, and with ``True`` whole trees, each with the number of the change that erased it."""

_guard = Lock()


def note_erased(store: Store, prefix: str, places: Collection[str], change: int) -> None:
    """Remember that the nodes at ``places``, all at or below ``prefix``, are erased by the change of that number."""
    is_tree = len(places) > _MOST_IN_TREE
    top = _name(store, prefix.rstrip("/"))  # where that is costs much to find out, so once
    names = [join_path(top, each[len(prefix) :].rstrip("/")) for each in ([prefix] if is_tree else places)]
    with _guard:
        for name in names:
            _erased.pop((name, is_tree), None)  # so that it goes to the end
            _erased[name, is_tree] = change
        while len(_erased) > _MOST:
            del _erased[next(iter(_erased))]


def when_erased(store: Store, path: str) -> int:
    """Return the number of the last change by which this process erased what was at ``path``; 0 where none did."""
    if not _erased:
        return 0
    name = _name(store, path)
    found = _erased.get((name, False), 0)
    while name:
        found = max(found, _erased.get((name, True), 0))
        name = name.rpartition("/")[0]
    return found


def _name(store: Store, path: str) -> str:
    inner, place = store.beneath(path)
    return join_path(inner.unique_name.rstrip("/"), place)


__all__ = ["note_erased", "when_erased"]
