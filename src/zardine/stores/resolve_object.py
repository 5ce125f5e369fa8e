"""The store of an object of another library: a store of obstore, a mapper or a filesystem of fsspec."""

from __future__ import annotations

import sys
from typing import Any

from zardine.errors import StoreError
from zardine.stores.base import Store
from zardine.stores.local.store import LocalStore


def store_of_object(thing: Any, path: str = "", *, read_only: bool = False) -> tuple[Store, str]:
    """The store that ``thing`` is, and what is left of ``path``, which leads further down.

    A filesystem, of fsspec or of obstore, stands for all that it reaches: there ``path`` is the root of the store, as
    that filesystem reads it. Without one :class:`StoreError` is raised, but where the store shall only be read.
    """
    mapping = sys.modules.get("fsspec.mapping")
    if mapping is not None and isinstance(thing, mapping.FSMap):
        return _of_filesystem(thing.fs, str(thing.root), read_only), path
    filesystems = sys.modules.get("fsspec.spec")
    if filesystems is not None and isinstance(thing, filesystems.AbstractFileSystem):
        from zardine.stores.fsspec.filesystems import is_rooted, unwrapped

        inner, root = unwrapped(thing, "")
        if root or is_rooted(inner):
            return _of_filesystem(inner, root, read_only), path
        return _of_filesystem(inner, path, read_only), ""
    return _of_obstore(thing, path, read_only)


def _of_filesystem(fs: Any, path: str, read_only: bool) -> Store:
    from zardine.stores.fsspec.filesystems import names_of
    from zardine.stores.fsspec.store import FsspecStore

    store = FsspecStore(fs, path, read_only=read_only)
    if "file" not in names_of(store.fs):
        return store
    return LocalStore(store.path or "/", read_only=store.read_only)


def _of_obstore(thing: Any, path: str, read_only: bool) -> tuple[Store, str]:
    from zardine.stores.object.kinds import kind_of

    kind = kind_of(thing)
    if kind == "LocalStore":
        if thing.prefix is not None:
            return LocalStore(str(thing.prefix)), path
        if not path and not read_only:
            raise StoreError(
                "obstore's LocalStore() stands for all files of this machine: name a directory, as in "
                "open('/data/a.zarr')"
            )
        return LocalStore(f"/{path.strip('/')}", read_only=read_only), ""
    if kind == "HTTPStore":
        from zardine.stores.http.store import HTTPStore

        return HTTPStore.of(thing), path
    from zardine.stores.object.store import ObjectStore

    return ObjectStore(thing), path


__all__ = ["store_of_object"]
