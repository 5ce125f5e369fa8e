"""Values in the memory of this process."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator, MutableMapping, Sequence
from contextlib import AbstractContextManager
from typing import Any
from weakref import WeakValueDictionary

from zardine.buffers import BytesLike
from zardine.errors import ConditionFailedError, StoreError
from zardine.stores.base import (
    WHOLE,
    ByteRange,
    Condition,
    ReadCost,
    Reading,
    Store,
    Version,
    check_key,
    check_prefix,
    flat_bytes,
    is_key,
    resolve_range,
)
from zardine.stores.keyed_lock import KeyedLock
from zardine.stores.sorted_names import directly_below, names_below
from zardine.stores.writers import Writers

_COST = ReadCost(latency=2e-6, bandwidth=5e9, requests=1)

_counter = itertools.count(1)  # one for the process: no token ever comes back, not even for a copied store


class _Backing:
    """A mapping with what all the stores over it must share: the lock and the versions."""

    def __init__(self, values: MutableMapping[str, Any] | None) -> None:
        self.values: MutableMapping[str, Any] = {} if values is None else values
        self.foreign = values is not None
        self.lock = threading.RLock()
        self.sorted: list[str] | None = None
        self.writers = Writers()
        self._versions: dict[str, tuple[object, Version]] = {}

    def version(self, key: str, value: object) -> Version:
        """The token of the object that is the value now; holding the object keeps its identity from being reused."""
        known = self._versions.get(key)
        if known is not None and known[0] is value:
            return known[1]
        version = str(next(_counter))
        self._versions[key] = (value, version)
        return version

    def forget(self, key: str) -> None:
        self._versions.pop(key, None)

    def keys(self) -> list[str]:
        """All well formed keys, sorted. A mapping that others may change is looked through every time."""
        if self.foreign:
            return sorted(key for key in tuple(self.values) if is_key(key))
        if self.sorted is None:
            self.sorted = sorted(self.values)
        return self.sorted


_backings: WeakValueDictionary[int, _Backing] = WeakValueDictionary()
_named: WeakValueDictionary[str, _Backing] = WeakValueDictionary()
_kept: dict[str, _Backing] = {}
"""Those that somebody gave a name to, to the end of the process: the name finds what was stored under it."""
_registry_lock = threading.Lock()


def _backing_of(values: MutableMapping[str, Any] | None) -> _Backing:
    if values is None:
        return _Backing(None)
    with _registry_lock:
        backing = _backings.get(id(values))
        if backing is None:
            backing = _backings[id(values)] = _Backing(values)
        return backing


def _backing_named(name: str, *, keep: bool) -> _Backing:
    with _registry_lock:
        backing = _named.get(name)
        if backing is None:
            backing = _named[name] = _Backing(None)
        if keep:
            _kept[name] = backing
        return backing


class MemoryStore(Store):
    """Keys and values in a mapping, by default a new ``dict``.

    A mapping given by the caller is used live: what others put into it is seen, with a new version. Its values may be
    any object with a buffer, or zarr-python's buffers. Stores over the same mapping share their lock and versions;
    changing such a value's bytes in place from outside goes unnoticed. Pickling copies the mapping.
    """

    def __init__(self, store_dict: MutableMapping[str, Any] | None = None, *, read_only: bool = False) -> None:
        super().__init__(read_only=read_only)
        self._backing = _backing_of(store_dict)

    def read(self, key: str, ranges: Sequence[ByteRange] = (WHOLE,)) -> Reading | None:
        check_key(key)
        backing = self._backing
        with backing.lock:
            value = backing.values.get(key)
            if value is None:
                return None
            version = backing.version(key, value)
        if type(value) is bytes:
            data: BytesLike = value
        else:
            data = self._foreign_bytes(key, value)
        size = len(data)
        parts: list[BytesLike] = []
        for byte_range in ranges:
            start, stop = resolve_range(byte_range, size)
            parts.append(data if stop - start == size else memoryview(data)[start:stop])
        return Reading(tuple(parts), version, size)

    def set(self, key: str, value: BytesLike, *, condition: Condition | None = None) -> Version | None:
        check_key(key)
        self._check_writable()
        data = bytes(flat_bytes(value))
        backing = self._backing
        with backing.lock:
            old = backing.values.get(key)
            if condition is not None:
                version = None if old is None else backing.version(key, old)
                if version != condition.version:
                    raise ConditionFailedError(f"key {key!r} of {self} changed since it was read; nothing was written")
            if old is None:
                backing.sorted = None
            backing.forget(key)  # the same object set again is still a new version
            backing.values[key] = data
            return backing.version(key, data)

    def erase(self, key: str) -> None:
        check_key(key)
        self._check_writable("erase from")
        self._remove((key,))

    def erase_prefix(self, prefix: str) -> None:
        check_prefix(prefix)
        self._check_writable("erase from")
        with self._backing.lock:
            self._remove(tuple(names_below(self._backing.keys(), prefix)))

    def list_dir(self, prefix: str) -> tuple[list[str], list[str]]:
        check_prefix(prefix)
        with self._backing.lock:
            return directly_below(self._backing.keys(), prefix)

    def list_prefix(self, prefix: str) -> Iterator[str]:
        check_prefix(prefix)
        with self._backing.lock:
            return iter(tuple(names_below(self._backing.keys(), prefix)))

    def is_unchanged(self, key: str, version: Version | None) -> bool:
        backing = self._backing
        with backing.lock:
            value = backing.values.get(key)
            return value is not None and backing.version(key, value) == version

    @property
    def has_cheap_looks(self) -> bool:
        return True

    @property
    def lock_is_exclusive(self) -> bool:
        return True

    def writer(self, prefix: str) -> AbstractContextManager[bool]:
        return self._backing.writers.enter(check_prefix(prefix))

    def wait_for_writers(self, prefix: str) -> bool:
        return self._backing.writers.wait(check_prefix(prefix))

    @property
    def cost(self) -> ReadCost:
        return _COST

    def lock(self, key: str) -> AbstractContextManager[object]:
        """Excludes threads that lock the same key of any store over this mapping."""
        return KeyedLock((id(self._backing), check_key(key)))

    def _remove(self, keys: Sequence[str]) -> None:
        backing = self._backing
        with backing.lock:
            for key in keys:
                if backing.values.pop(key, None) is not None:
                    backing.sorted = None
                backing.forget(key)

    def _foreign_bytes(self, key: str, value: object) -> BytesLike:
        """The bytes of a value put in from outside: a view if nobody can write to it, else a copy made now."""
        try:
            data = flat_bytes(value)
        except TypeError:
            raise StoreError(f"the value of key {key!r} in {self} is a {type(value).__name__}, not bytes") from None
        return data if isinstance(data, memoryview) and data.readonly else bytes(data)

    def __str__(self) -> str:
        return f"memory://{id(self._backing.values)}"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, MemoryStore)
            and self._backing.values is other._backing.values
            and self.read_only == other.read_only
        )

    def __hash__(self) -> int:
        return hash((id(self._backing.values), self.read_only))

    def __getstate__(self) -> dict[str, Any]:
        with self._backing.lock:
            copied = {key: bytes(flat_bytes(value)) for key, value in tuple(self._backing.values.items())}
        return {"values": copied, "read_only": self._read_only}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._read_only = state["read_only"]
        self._backing = _Backing(None)
        self._backing.values = state["values"]


class ManagedMemoryStore(MemoryStore):
    """A memory store that other parts of this process find by its name, ``memory://name``.

    Its values live as long as the process, unless they are erased. Without a ``name`` one is made up, and they live as
    long as the store.
    """

    def __init__(self, name: str | None = None, *, read_only: bool = False) -> None:
        Store.__init__(self, read_only=read_only)
        keep = name is not None
        if name is None:
            name = f"unnamed-{next(_counter)}"
        if not name or "/" in name:
            raise ValueError(f"the name of a memory store must be non-empty and without '/', not {name!r}")
        self._name = name
        self._backing = _backing_named(name, keep=keep)

    @property
    def name(self) -> str:
        """What follows ``memory://``."""
        return self._name

    def __str__(self) -> str:
        return f"memory://{self._name}"

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "name": self._name}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._name = state["name"]
        super().__setstate__(state)


__all__ = ["ManagedMemoryStore", "MemoryStore"]
