"""Values in the memory of this process."""

from __future__ import annotations

import itertools
import os
import threading
from collections import UserDict
from collections.abc import Iterator, MutableMapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Self
from weakref import WeakSet, WeakValueDictionary

from zardine.buffers import BytesLike
from zardine.contexts import SureExit
from zardine.errors import ConditionFailedError, StoreError
from zardine.public_names import public
from zardine.shown_text import printable
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
from zardine.stores.locks import KeyedLock
from zardine.stores.sorted_names import directly_below, names_below
from zardine.stores.this_process import Ticket, check_own, process_name

_COST = ReadCost(latency=2e-6, bandwidth=5e9, requests=1)

_counter = itertools.count(1)  # one for the process: no token ever comes back, not even for a copied store


class _Writers:
    """Threads of this process that write below prefixes of one store."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        self._inside: dict[_Writer, None] = {}
        self._waiting = 0
        self._closed: dict[str, int] = {}
        """Prefixes into which none are let, and the threads that say so."""

    def enter(self, prefix: str) -> _Writer:
        """The context of one of them."""
        return _Writer(self, prefix)

    def wait(self, prefix: str) -> bool:
        """Wait for the other threads that are in the context now. False if this thread is in it, too."""
        here = threading.get_ident()
        with self._lock:
            self._waiting += 1  # first, so that everyone who leaves from now on says so
            try:
                inside = [each for each in tuple(self._inside) if each.prefix == prefix]
                others = [each for each in inside if each.thread != here]
                self._changed.wait_for(lambda: self._inside.keys().isdisjoint(others))
            finally:
                self._waiting -= 1
        return len(others) == len(inside)

    def _may_go_on(self, writer: _Writer) -> bool:
        """Wait until a prefix is open to one who has entered; false where he is to enter again."""
        here = threading.get_ident()
        with self._lock:
            if self._closed.get(writer.prefix, here) == here:
                return True
            self._inside.pop(writer, None)
            self._waiting += 1
            try:
                self._changed.notify_all()
                self._changed.wait_for(lambda: writer.prefix not in self._closed)
            finally:
                self._waiting -= 1
        return False

    def _close(self, prefix: str) -> bool:
        """Wait for those in a prefix, and let no others in; gives what :meth:`wait` does."""
        here = threading.get_ident()
        with self._lock:
            self._waiting += 1
            try:
                while True:
                    self._changed.wait_for(lambda: prefix not in self._closed)
                    self._closed[prefix] = here  # first, so that who enters now sees it
                    known = self._is_alone(prefix)
                    if known is not None:
                        return known
                    del self._closed[prefix]  # who is inside may have others do the work, who have to enter
                    self._changed.notify_all()
                    self._changed.wait_for(lambda: self._is_alone(prefix) is not None)
            except BaseException:
                self._open(prefix)
                raise
            finally:
                self._waiting -= 1

    def _is_alone(self, prefix: str) -> bool | None:
        """Whether nobody is in a prefix, or only this thread (false); ``None``: others are."""
        inside = [each.thread for each in tuple(self._inside) if each.prefix == prefix]
        others = [each for each in inside if each != threading.get_ident()]
        return None if others else not inside

    def _open(self, prefix: str) -> None:
        """Let writers into a prefix again."""
        with self._lock:
            if self._closed.get(prefix) == threading.get_ident():
                del self._closed[prefix]
            self._changed.notify_all()  # also where this was cut off before it was said


class _NoWriter(SureExit):
    __slots__ = ("_prefix", "_writers")

    def __init__(self, writers: _Writers, prefix: str) -> None:
        self._writers = writers
        self._prefix = prefix

    def __enter__(self) -> bool:
        try:
            return self._writers._close(self._prefix)
        except BaseException:
            self._exit(None)
            raise

    def _exit(self, error: BaseException | None) -> None:
        self._writers._open(self._prefix)


class _Writer(SureExit):
    __slots__ = ("_writers", "prefix", "thread")

    def __init__(self, writers: _Writers, prefix: str) -> None:
        self._writers = writers
        self.prefix = prefix
        self.thread = threading.get_ident()

    def __enter__(self) -> bool:
        writers = self._writers
        writers._inside[self] = None
        try:
            while writers._closed and not writers._may_go_on(self):
                writers._inside[self] = None
        except BaseException:
            self._exit(None)
            raise
        return True

    def _exit(self, error: BaseException | None) -> None:
        writers = self._writers
        writers._inside.pop(self, None)  # it is gone where a child was forked inside
        if writers._waiting:
            with writers._lock:
                writers._changed.notify_all()


class _Backing:
    """A mapping with what all the stores over it must share: the lock and the versions."""

    def __init__(self, values: MutableMapping[str, Any] | None) -> None:
        self.values: MutableMapping[str, Any] = {} if values is None else values
        self.foreign = values is not None
        # mappings of other kinds may share what they hold with other processes
        self.in_memory = isinstance(self.values, dict | UserDict)
        self.process = process_name()
        self.number = next(_counter)
        self.lock = threading.RLock()
        self.sorted: list[str] | None = None
        self.writers = _Writers()
        self._versions: dict[str, tuple[object, Version]] = {}
        _all.add(self)

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

    def copied(self) -> dict[str, bytes]:
        """All that is stored now."""
        with self.lock:
            return {key: bytes(flat_bytes(value)) for key, value in tuple(self.values.items())}


_all: WeakSet[_Backing] = WeakSet()
_backings: WeakValueDictionary[int, _Backing] = WeakValueDictionary()
_named: WeakValueDictionary[str, _Backing] = WeakValueDictionary()
_kept: dict[str, _Backing] = {}
"""Those that somebody gave a name to, to the end of the process: the name finds what was stored under it."""
_pickled: dict[int, _Backing] = {}
"""Those that were pickled, by their numbers, to the end of the process: the pickle may be all that refers to them."""
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


def _after_fork_in_child() -> None:
    """Another thread of the parent may have held any of the locks."""
    global _registry_lock
    _registry_lock = threading.Lock()
    _pickled.clear()
    for backing in _all:
        backing.lock = threading.RLock()
        backing.writers = _Writers()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)


@public("zardine.storage")
class MemoryStore(Store):
    """Keys and values in a mapping, by default a new ``dict``.

    A mapping given by the caller is used live: what others put into it is seen, with a new version. Its values may be
    any object with a buffer, or zarr-python's buffers. Stores over the same mapping share their lock and versions;
    changing such a value's bytes in place from outside goes unnoticed.

    A pickle of it stands for the same store in this process (whose values are then kept to its end) and is an error in
    others, where writes would be lost: :class:`~zardine.errors.StoreError`. A read-only one travels as a copy. A
    process forked from this one may read what was there, and writing is an error too. ``copy.deepcopy`` makes a store
    of its own.
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
        data = self._as_value(bytes(flat_bytes(value)))
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

    def erase_version(self, key: str, version: Version | None) -> None:
        with self._backing.lock:  # so that nobody stores anything between the look and the removal
            super().erase_version(key, version)

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

    def list_versions(self, prefix: str) -> Iterator[tuple[str, Version | None]]:
        check_prefix(prefix)
        backing = self._backing
        with backing.lock:
            keys = tuple(names_below(backing.keys(), prefix))
            return iter([(key, backing.version(key, backing.values[key])) for key in keys])

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

    def without_writers(self, prefix: str) -> AbstractContextManager[bool]:
        if type(self).wait_for_writers is not MemoryStore.wait_for_writers:  # a subclass knows of other writers
            return Store.without_writers(self, prefix)
        return _NoWriter(self._backing.writers, check_prefix(prefix))

    @property
    def cost(self) -> ReadCost:
        return _COST

    def lock(self, key: str) -> AbstractContextManager[object]:
        """Excludes threads that lock the same key of any store over this mapping."""
        return KeyedLock((id(self._backing), check_key(key)))

    def is_locked(self, key: str) -> bool:
        return KeyedLock((id(self._backing), check_key(key))).is_held_by_others()

    def _remove(self, keys: Sequence[str]) -> None:
        backing = self._backing
        with backing.lock:
            for key in keys:
                if backing.values.pop(key, None) is not None:
                    backing.sorted = None
                backing.forget(key)

    def _as_value(self, data: bytes) -> object:
        """What the mapping holds of these bytes: an object of its own for each call, or the bytes."""
        return data

    def _foreign_bytes(self, key: str, value: object) -> BytesLike:
        """The bytes of a value put in from outside: a view if nobody can write to it, else a copy made now."""
        try:
            data = flat_bytes(value)
        except TypeError:
            raise StoreError(f"the value of key {key!r} in {self} is a {type(value).__name__}, not bytes") from None
        return data if isinstance(data, memoryview) and data.readonly else bytes(data)

    @property
    def unique_name(self) -> str:
        return f"{self} ({self._backing.number})"  # another mapping may be where one was that is gone

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

    def _check_writable(self, what: str = "write to") -> None:
        super()._check_writable(what)
        if self._backing.in_memory:
            check_own(self._backing.process, self)

    def __copy__(self) -> Self:
        return self.with_read_only(self._read_only)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        twin: Self = _restored(type(self), self._attributes(), "", 0, self._backing.copied())
        return twin

    def __dask_tokenize__(self) -> tuple[object, ...]:
        return type(self).__qualname__, process_name(), self._backing.number, self.read_only

    def __reduce__(self) -> tuple[Any, ...]:
        backing = self._backing
        mine = backing.process == process_name()
        if mine:
            _pickled[backing.number] = backing
        elif not self._read_only:
            check_own(backing.process, self)
        given = backing.copied() if self._read_only else Ticket(f"what is stored at {self}")
        return _restored, (type(self), self._attributes(), backing.process, backing.number, given)

    def _attributes(self) -> dict[str, Any]:
        """All but the values."""
        return {name: value for name, value in self.__dict__.items() if name != "_backing"}


@public("zardine.storage")
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
        return printable(f"memory://{self._name}")


def _restored(
    kind: type[Any], attributes: dict[str, Any], process: str, number: int, given: dict[str, bytes] | None
) -> Any:
    """The store that a pickle made in ``process`` stands for; in another one, of a copy of the values."""
    if process == process_name():
        backing = _pickled[number]
    else:
        assert given is not None  # a ticket cannot be unpickled here
        backing = _Backing(None)
        backing.values = given
    store = object.__new__(kind)
    store.__dict__.update(attributes, _backing=backing)
    return store


__all__ = ["ManagedMemoryStore", "MemoryStore"]
