"""From whatever names a store to the store and a path in it."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, MutableMapping
from inspect import iscoroutinefunction
from typing import Any, Final, Literal, TypeAlias

from zardine.errors import StoreError
from zardine.stores.base import Store
from zardine.stores.file_uri import is_file_uri, path_of_uri
from zardine.stores.local.store import LocalStore
from zardine.stores.memory import ManagedMemoryStore, MemoryStore
from zardine.stores.path import StorePath, normalize_path

StoreLike: TypeAlias = Store | StorePath | str | os.PathLike[str] | MutableMapping[str, Any] | None
"""What may stand for a store; see :func:`resolve_store`. So may obstore's stores, fsspec's mappers and filesystems."""

Mode: TypeAlias = Literal["r", "r+", "a", "w", "w-"]


def resolve_store(
    store_like: StoreLike = None,
    *,
    path: str = "",
    mode: Mode | None = None,
    read_only: bool | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> tuple[Store, str]:
    """The store that ``store_like`` names, and the path in it (without slashes at its ends).

    - a :class:`Store`, or a :class:`StorePath`: itself;
    - a path, a ``file:`` URI or a ``pathlib.Path``: a :class:`LocalStore`, or a
      :class:`ZipStore` if it ends in ``.zip`` and is no directory;
    - ``zip://path``: a :class:`ZipStore`; ``s3://``, ``gs://``, ``az://``, ``abfs://``: an :class:`ObjectStore`;
      ``http://``, ``https://``: an :class:`HTTPStore`; one of these that
      ends in ``.zip``: the archive there, read-only;
    - any other URL that fsspec knows, a chain of them (``simplecache::s3://bucket/key``), or a mapper of fsspec: an
      :class:`FsspecStore`;
    - a filesystem of fsspec: an :class:`FsspecStore` whose root ``path`` is; without one :class:`StoreError` unless it
      shall only be read;
    - a store of the package obstore: an :class:`ObjectStore`, :class:`HTTPStore` or :class:`LocalStore`;
    - any of these texts, ``::`` and a path: the node of that path in that store;
    - ``memory://``: a new store in memory; ``memory://name/path``: the one of that name in this process;
    - a mapping: a :class:`MemoryStore` over it;
    - ``None``: a new :class:`MemoryStore`.

    ``path`` leads further down. ``read_only``, or ``mode="r"``, gives a store that refuses writes; ``False`` does not
    open one that the caller made read-only. Nothing is created. ``storage_options`` are for stores behind URLs of other
    machines; ``TypeError`` where the store has no use for them. :class:`UnsupportedError` for unknown URL schemes, and
    for packages that are not installed.
    """
    if mode not in (None, "r", "r+", "a", "w", "w-"):
        raise ValueError(f"mode must be one of 'r', 'r+', 'a', 'w' and 'w-', not {mode!r}")
    if storage_options is not None and not isinstance(storage_options, Mapping):
        raise TypeError(f"storage_options is a mapping of names to values, not {type(storage_options).__name__}")
    if read_only is None:
        read_only = mode == "r"
    inner = ""
    if isinstance(store_like, Store):
        store = store_like
    elif isinstance(store_like, StorePath):
        store, inner = store_like.store, store_like.path
    elif store_like is None:
        store = MemoryStore()
    elif isinstance(store_like, str):
        store, inner = _store_of_text(store_like, storage_options, mode)
        storage_options = None
    elif isinstance(store_like, os.PathLike):
        store = _directory(os.fspath(store_like), mode)
    elif iscoroutinefunction(getattr(store_like, "get", None)):
        kind = type(store_like)
        raise TypeError(
            f"{kind.__module__}.{kind.__qualname__} is a store with asynchronous methods: use the one of "
            "zardine.storage for the same place, or its path or URL"
        )
    elif is_foreign(store_like):
        from zardine.stores.resolve_object import store_of_object

        store, path = store_of_object(store_like, path, read_only=read_only)
    elif isinstance(store_like, MutableMapping):
        store = MemoryStore(store_like)
    else:
        raise TypeError(
            f"a store is a Store, a StorePath, a path, a URL, a mapping, a store of obstore, a mapper or filesystem of "
            f"fsspec, or None, not {type(store_like).__name__}"
        )
    if storage_options:
        _refuse_options(storage_options, store)
    if read_only and not store.read_only:
        store = store.with_read_only(True)
    return store, normalize_path(f"{inner}/{path}")


def _store_of_text(text: str, storage_options: Mapping[str, Any] | None, mode: Mode | None) -> tuple[Store, str]:
    inner = ""
    if "::" in text:
        from zardine.stores.resolve_url import chain_and_node, chain_store

        chain = chain_and_node(text)
        if chain is not None:
            return chain_store(chain[0], storage_options), chain[1]
        text, _, inner = text.partition("::")
    scheme = "file" if is_file_uri(text) else _scheme_of(text)
    if scheme not in (None, "file", "memory", "zip"):
        from zardine.stores.resolve_url import store_of_url

        return store_of_url(text, storage_options), inner
    path = inner
    if scheme == "memory":
        name, _, above = text.partition("://")[2].partition("/")
        store: Store = ManagedMemoryStore(name) if name else MemoryStore()
        path = f"{above}/{inner}"
    elif scheme == "zip":
        store = _zip(text.partition("://")[2], mode)
    else:
        store = _directory(path_of_uri(text) if scheme else text, mode)
    if storage_options:
        _refuse_options(storage_options, store)
    return store, path


def _scheme_of(text: str) -> str | None:
    if "://" not in text:
        return None
    from zardine.stores.resolve_url import scheme_of

    return scheme_of(text)


def _directory(path: str, mode: Mode | None) -> Store:
    if path.lower().endswith(".zip") and not os.path.isdir(path):
        return _zip(path, mode)
    if os.path.isfile(path):
        raise StoreError(f"{path!r} is a file: a store is a directory")
    return LocalStore(path)


def _zip(path: str, mode: Mode | None) -> Store:
    from zardine.stores.zip.store import ZipStore

    if mode in ("r", "r+"):
        return ZipStore(path)
    return ZipStore.to_write(path, anew=mode == "w")


def is_foreign(thing: object) -> bool:
    """Whether something is a store of obstore, or a mapper or filesystem of fsspec."""
    return any(
        isinstance(thing, getattr(module, name))
        for where, name in _FOREIGN
        if (module := sys.modules.get(where)) is not None and hasattr(module, name)
    )


_FOREIGN: Final = (
    ("fsspec.spec", "AbstractFileSystem"),
    ("fsspec.mapping", "FSMap"),
    ("obstore.store", "ObjectStoreMethods"),
)
"""Classes of other packages by their modules, which whoever has such an object has imported."""


def _refuse_options(storage_options: Mapping[str, Any], store: Store) -> None:
    names = ", ".join(map(repr, storage_options))
    raise TypeError(f"storage_options ({names}) have no meaning for {store}: they are for stores behind other URLs")


__all__ = ["Mode", "StoreLike", "is_foreign", "resolve_store"]
