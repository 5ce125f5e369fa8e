"""From whatever names a store to the store and a path in it."""

from __future__ import annotations

import os
import re
from collections.abc import MutableMapping
from typing import Any, Final, Literal, TypeAlias

from zardine.errors import StoreError, UnsupportedError
from zardine.stores.base import Store
from zardine.stores.file_uri import is_file_uri, path_of_uri
from zardine.stores.local import LocalStore
from zardine.stores.memory import ManagedMemoryStore, MemoryStore
from zardine.stores.path import StorePath, normalize_path

StoreLike: TypeAlias = Store | StorePath | str | os.PathLike[str] | MutableMapping[str, Any] | None
"""What may stand for a store; see :func:`resolve_store`."""

Mode: TypeAlias = Literal["r", "r+", "a", "w", "w-"]

_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]+)://")  # two characters at least: c:// is a drive


def resolve_store(
    store_like: StoreLike = None, *, path: str = "", mode: Mode | None = None, read_only: bool | None = None
) -> tuple[Store, str]:
    """The store that ``store_like`` names, and the path in it (without slashes at its ends).

    - a :class:`Store`, or a :class:`StorePath`: itself;
    - a path, a ``file:`` URI or a ``pathlib.Path``: a :class:`LocalStore`;
    - ``memory://``: a new store in memory; ``memory://name/path``: the one of that name in this process;
    - a mapping: a :class:`MemoryStore` over it;
    - ``None``: a new :class:`MemoryStore`.

    ``path`` leads further down. ``read_only``, or ``mode="r"``, gives a store that refuses writes; ``False`` does not
    open one that the caller made read-only. Nothing is created. :class:`UnsupportedError` for other URL schemes and for
    ``::`` in a string, which is kept for chained URLs.
    """
    if mode not in (None, "r", "r+", "a", "w", "w-"):
        raise ValueError(f"mode must be one of 'r', 'r+', 'a', 'w' and 'w-', not {mode!r}")
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
        store, inner = _store_of_text(store_like)
    elif isinstance(store_like, os.PathLike):
        store = _directory(os.fspath(store_like))
    elif isinstance(store_like, MutableMapping):
        store = MemoryStore(store_like)
    else:
        raise TypeError(
            f"a store is a Store, a StorePath, a path, a URL, a mapping or None, not {type(store_like).__name__}"
        )
    if read_only and not store.read_only:
        store = store.with_read_only(True)
    return store, normalize_path(f"{inner}/{path}")


def _store_of_text(text: str) -> tuple[Store, str]:
    if "::" in text:
        raise UnsupportedError(f"{text!r}: chained URLs ('::') are not supported; a pathlib.Path may contain '::'")
    if is_file_uri(text):
        return _directory(path_of_uri(text)), ""
    scheme = _SCHEME.match(text)
    if scheme is None:
        return _directory(text), ""
    if scheme[1].lower() != "memory":
        raise UnsupportedError(f"{text!r}: there is no store for the URL scheme {scheme[1]!r} in this version")
    name, _, path = text[scheme.end() :].partition("/")
    return ManagedMemoryStore(name) if name else MemoryStore(), path


def _directory(path: str) -> Store:
    if os.path.isfile(path):
        if path.lower().endswith(".zip"):
            raise UnsupportedError(f"{path!r}: there is no store for zip files in this version")
        raise StoreError(f"{path!r} is a file: a store is a directory")
    return LocalStore(path)


__all__ = ["Mode", "StoreLike", "resolve_store"]
