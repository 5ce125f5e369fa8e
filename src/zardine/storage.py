"""Where values are kept: stores, paths in them, and the interface to write one's own."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from zardine.stores.base import ByteRange, Condition, Reading, Store, Version
from zardine.stores.local.store import LocalStore
from zardine.stores.memory import ManagedMemoryStore, MemoryStore
from zardine.stores.path import StorePath
from zardine.stores.resolve import StoreLike
from zardine.stores.wrappers.counting import CountingStore, Counts
from zardine.stores.wrappers.prefix import PrefixStore
from zardine.stores.wrappers.wrapper import WrapperStore

if TYPE_CHECKING:
    from zardine.stores.fsspec.store import FsspecStore
    from zardine.stores.http.store import HTTPStore
    from zardine.stores.object.store import ObjectStore
    from zardine.stores.wrappers.cached import CachedStore
    from zardine.stores.zip.store import ZipStore

__all__ = [
    "ByteRange",
    "CachedStore",
    "Condition",
    "CountingStore",
    "Counts",
    "FsspecStore",
    "HTTPStore",
    "LocalStore",
    "ManagedMemoryStore",
    "MemoryStore",
    "ObjectStore",
    "PrefixStore",
    "Reading",
    "Store",
    "StoreLike",
    "StorePath",
    "Version",
    "WrapperStore",
    "ZipStore",
]

_LATE = {
    "CachedStore": "wrappers.cached",
    "FsspecStore": "fsspec.store",
    "HTTPStore": "http.store",
    "ObjectStore": "object.store",
    "ZipStore": "zip.store",
}
"""Names that are imported when they are used, and the modules they are in."""


def __getattr__(name: str) -> Any:
    module = _LATE.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"zardine.stores.{module}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
