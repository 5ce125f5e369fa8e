"""Where values are kept: stores, paths in them, and the interface to write one's own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zardine.public_names import Exports

if TYPE_CHECKING:
    from zardine.stores.base import ByteRange as ByteRange
    from zardine.stores.base import Condition as Condition
    from zardine.stores.base import Reading as Reading
    from zardine.stores.base import Store as Store
    from zardine.stores.base import Version as Version
    from zardine.stores.fsspec.store import FsspecStore as FsspecStore
    from zardine.stores.http.store import HTTPStore as HTTPStore
    from zardine.stores.local.store import LocalStore as LocalStore
    from zardine.stores.memory import ManagedMemoryStore as ManagedMemoryStore
    from zardine.stores.memory import MemoryStore as MemoryStore
    from zardine.stores.object.store import ObjectStore as ObjectStore
    from zardine.stores.path import StorePath as StorePath
    from zardine.stores.resolve import StoreLike as StoreLike
    from zardine.stores.wrappers.cached import CachedStore as CachedStore
    from zardine.stores.wrappers.counting import CountingStore as CountingStore
    from zardine.stores.wrappers.counting import Counts as Counts
    from zardine.stores.wrappers.prefix import PrefixStore as PrefixStore
    from zardine.stores.wrappers.wrapper import WrapperStore as WrapperStore
    from zardine.stores.zip.store import ZipStore as ZipStore

_exports = Exports(
    __name__,
    {
        "base": ("ByteRange", "Condition", "Reading", "Store", "Version"),
        "fsspec.store": ("FsspecStore",),
        "http.store": ("HTTPStore",),
        "local.store": ("LocalStore",),
        "memory": ("ManagedMemoryStore", "MemoryStore"),
        "object.store": ("ObjectStore",),
        "path": ("StorePath",),
        "resolve": ("StoreLike",),
        "wrappers.cached": ("CachedStore",),
        "wrappers.counting": ("CountingStore", "Counts"),
        "wrappers.prefix": ("PrefixStore",),
        "wrappers.wrapper": ("WrapperStore",),
        "zip.store": ("ZipStore",),
    },
    package="zardine.stores",
)

__all__ = _exports.names
__dir__ = _exports.listed
__getattr__ = _exports.load
