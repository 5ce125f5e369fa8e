"""Where a work reads and writes: a store and a path in it, with a text for files of plans."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from zardine.errors import PlanError
from zardine.hierarchy.find import describe
from zardine.hierarchy.place import find_place
from zardine.shown_text import has_masks, without_secrets
from zardine.stores.base import Store
from zardine.stores.file_seam import local_folder
from zardine.stores.local.store import LocalStore
from zardine.stores.resolve import chain_and_node
from zardine.stores.zip.store import ZipStore


@dataclass(frozen=True)
class Place:
    """The node at ``path`` of ``store``.

    ``url`` names the store in another process, with its secrets masked; ``None`` if nothing names it there.
    """

    store: Store
    path: str
    url: str | None = None

    def __post_init__(self) -> None:
        if self.url is not None and "://" in self.url:
            object.__setattr__(self, "url", without_secrets(self.url))

    @classmethod
    def of(cls, store: Store, path: str, given: object = None) -> Place:
        """Return the place of a node in an opened store; ``given`` is what the user named the store by."""
        url = None
        folder = local_folder(store)
        if folder is not None:
            url = os.path.abspath(folder)
        elif type(store) is ZipStore and store.path:
            url = os.path.abspath(store.path)
        elif isinstance(given, str) and "://" in given and not given.startswith("memory:"):
            url = _store_url(given)
        return cls(store, path, url)

    def __str__(self) -> str:
        return describe(self.store, self.path)

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON. Settings and secrets of stores are left out, but for the promise of durability."""
        document = {"store": str(self.store) if self.url is None else self.url, "path": self.path}
        return {**document, "durable": True} if isinstance(self.store, LocalStore) and self.store.durable else document

    @classmethod
    def from_json(
        cls, document: Any, *, mode: Any, storage_options: Mapping[str, Any] | None, urls: Collection[str] = ()
    ) -> Place:
        """Return the place that :meth:`to_json` wrote, opened; ``urls`` are those of stores that have secrets."""
        url = whole_url(document, urls)
        store, path = find_place(url, document["path"], mode=mode, storage_options=storage_options)
        if document.get("durable") is True and type(store) is LocalStore:
            store = LocalStore(store.root, read_only=store.read_only, durable=True)
        return cls(store, path, url)


def _store_url(given: str) -> str:
    """Return the part of a URL that names the store; the path of a node may follow after ``::``."""
    chain = chain_and_node(given)
    return given.partition("::")[0] if chain is None else chain[0]


def whole_url(document: Any, urls: Collection[str]) -> str:
    """Return the URL of a place in the file of a plan, with the secrets that it has in ``urls``.

    Raises :class:`~zardine.errors.PlanError` if ``document`` is no place, or none of ``urls`` has its secrets.
    """
    if not isinstance(document, dict) or not all(isinstance(document.get(each), str) for each in ("store", "path")):
        raise PlanError(f"a place is an object with the texts store and path, not {document!r}")
    url: str = document["store"]
    if not has_masks(url):
        return url
    for each in urls:
        if without_secrets(_store_url(each)).rstrip("/") == url.rstrip("/"):
            return _store_url(each)
    raise PlanError(
        f"the file of a plan holds no secrets, and {url!r} needs some: give the whole URL again, by urls=[...] of "
        "Plan.load, or on the command line by the environment variable ZARDINE_URLS or by --url"
    )


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
    urls: Collection[str] = ()
    """URLs with the secrets that the file lacks."""

    def source(self, name: str = "source", *, mode: Any = "r") -> Place:
        """Open the place that is read."""
        return Place.from_json(self.named[name], mode=mode, storage_options=self.storage_options, urls=self.urls)

    def target(self, name: str = "target") -> Place:
        """Open the place that is written."""
        return Place.from_json(self.named[name], mode="a", storage_options=self.target_options, urls=self.urls)


__all__ = ["Place", "Places", "whole_url"]
