"""Facts of a store that were told lately: not told again while the documents that tell them are the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

from zardine.engine.side_by_side import begun
from zardine.engine.workers import for_each, most_requests
from zardine.hierarchy.find import document_key
from zardine.hierarchy.place import find_place
from zardine.stores.base import Store, Version
from zardine.stores.resolve import StoreLike
from zardine.vectors.storing.cells import child
from zardine.vectors.storing.store import VectorStore

_ALL: Final = ("", "0", "0/vertices")
"""The nodes whose documents tell of any change of what is asked: every change of level 0 changes its document, every
one of the levels that there are that of the root, and every one of shards that of the vertices."""


class KeptFacts:
    """What was told of a store."""

    def __init__(self) -> None:
        self._told: tuple[dict[str, Any], dict[str, Version]] | None = None
        """The facts, and the versions of the documents that tell them, from before they were told."""

    def get(
        self, path: StoreLike, documents: Sequence[str], tell: Callable[[StoreLike], dict[str, Any]]
    ) -> dict[str, Any]:
        """Return what ``tell`` gives of the store at ``path``, or gave; not to be changed.

        ``documents``: of the nodes that tell what is wanted of it. Where a store has no versions it is told each time.
        """
        store, inner = find_place(path)
        told = self._told  # another thread may put others in the place of both
        if told is not None and told[1] == _versions(store, inner, documents, told[1]):
            return told[0]
        before = _versions(store, inner, _ALL, {})
        facts = tell(path)
        now, there = begun(store, [partial(_versions, store, inner, _ALL, {}), partial(_numbers, path)])
        whole = len(before) == len(_ALL) and before == now()
        numbers = there() if whole else None
        older = [each["level"] for each in facts["levels"] if each["older"]]
        settled = (
            numbers == [each["level"] for each in facts["levels"]]
            and older in ([], numbers[1:])  # or the document of another level than 0 tells
        )
        self._told = (facts, before) if settled else None
        return facts


def _numbers(path: StoreLike) -> list[int]:
    return VectorStore.open(path).level_numbers()


def _versions(store: Store, path: str, documents: Sequence[str], known: dict[str, Version]) -> dict[str, Version]:
    """``known`` with the versions that these documents have now; those that have none are left out."""
    keys = [document_key(child(path, name) if name else path) for name in documents]
    found: dict[str, Version | None] = dict(known)

    def look(key: str) -> None:
        found[key] = store.version(key)

    for_each(look, keys, len(keys), 1 if store.has_cheap_looks else most_requests(store))
    return {key: version for key, version in found.items() if version is not None}


__all__ = ["KeptFacts"]
