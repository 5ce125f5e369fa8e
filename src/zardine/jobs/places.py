"""Where a work reads and writes: a store and a path in it, with a text for files of plans."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from zardine.errors import PlanError
from zardine.hierarchy.find import describe
from zardine.hierarchy.place import find_place
from zardine.stores.base import Store
from zardine.stores.local.store import LocalStore
from zardine.stores.zip.store import ZipStore


@dataclass(frozen=True)
class Place:
    """The node at ``path`` of ``store``. ``url`` names the store in another process; ``None`` where nothing does."""

    store: Store
    path: str
    url: str | None = None

    @classmethod
    def of(cls, store: Store, path: str, given: object = None) -> Place:
        """Return the place of a node in an opened store; ``given`` is what the user named the store by."""
        url = None
        if type(store) is LocalStore:
            url = os.path.abspath(store.root)
        elif type(store) is ZipStore:
            url = os.path.abspath(store.path)
        elif isinstance(given, str) and "://" in given and not given.startswith("memory:"):
            url = given.partition("::")[0] if given.count("://") == 1 else given
        return cls(store, path, url)

    def __str__(self) -> str:
        return describe(self.store, self.path)

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON. Settings and secrets of stores are left out, but for the promise of durability."""
        document = {"store": str(self.store) if self.url is None else self.url, "path": self.path}
        return {**document, "durable": True} if isinstance(self.store, LocalStore) and self.store.durable else document

    @classmethod
    def from_json(cls, document: Any, *, mode: Any, storage_options: Mapping[str, Any] | None) -> Place:
        """Return the place that :meth:`to_json` wrote, opened."""
        if not isinstance(document, dict) or not all(isinstance(document.get(each), str) for each in ("store", "path")):
            raise PlanError(f"a place is an object with the texts store and path, not {document!r}")
        url = document["store"]
        store, path = find_place(url, document["path"], mode=mode, storage_options=storage_options)
        if document.get("durable") is True and type(store) is LocalStore:
            store = LocalStore(store.root, read_only=store.read_only, durable=True)
        return cls(store, path, url)


@dataclass(frozen=True)
class Places:
    """The places that the file of a plan names, and the settings of their stores, which it does not hold."""

    named: Mapping[str, Any]
    storage_options: Mapping[str, Any] | None = None
    """Of the store that is read."""
    target_options: Mapping[str, Any] | None = None
    """Of the one that is written."""
    functions: Collection[str] = ()
    """Names of functions that a plan may import, as its user says."""

    def source(self, name: str = "source", *, mode: Any = "r") -> Place:
        """Open the place that is read."""
        return Place.from_json(self.named[name], mode=mode, storage_options=self.storage_options)

    def target(self, name: str = "target") -> Place:
        """Open the place that is written."""
        return Place.from_json(self.named[name], mode="a", storage_options=self.target_options)


__all__ = ["Place", "Places"]
