"""Where values are kept: stores, paths in them, and the interface to write one's own."""

from zardine.stores.base import ByteRange, Condition, Reading, Store, Version
from zardine.stores.counting import CountingStore, Counts
from zardine.stores.local import LocalStore
from zardine.stores.memory import ManagedMemoryStore, MemoryStore
from zardine.stores.path import StorePath
from zardine.stores.prefix import PrefixStore
from zardine.stores.resolve import StoreLike
from zardine.stores.wrapper import WrapperStore

__all__ = [
    "ByteRange",
    "Condition",
    "CountingStore",
    "Counts",
    "LocalStore",
    "ManagedMemoryStore",
    "MemoryStore",
    "PrefixStore",
    "Reading",
    "Store",
    "StoreLike",
    "StorePath",
    "Version",
    "WrapperStore",
]
