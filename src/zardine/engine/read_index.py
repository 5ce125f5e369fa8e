"""Read the index of a shard by requests to a store, and check it against the shard.

:func:`fetch_index` remembers it as well (:data:`~zardine.engine.index_cache.INDEXES`), and :func:`fetch_index_once`
lets threads that want the same index wait for one request. :mod:`zardine.engine.file_index` does this for open files.
"""

from __future__ import annotations

import os
from concurrent.futures import Future
from dataclasses import dataclass

from zardine.buffers import BytesLike
from zardine.engine.handle import ArrayHandle
from zardine.engine.index_cache import INDEXES, KnownIndex
from zardine.errors import StoreError
from zardine.limits import CHUNK, limit_of
from zardine.sharding.index import ShardIndex
from zardine.sharding.layout import ShardLayout
from zardine.stores.attempts import attempts
from zardine.stores.base import Store, Version
from zardine.stores.file_seam import files_to_edit
from zardine.stores.local.beside import checksum


@dataclass(frozen=True, slots=True, eq=False)
class StoredIndex:
    """The index of a shard of ``size`` bytes, in one ``version`` of it."""

    index: ShardIndex
    size: int
    version: Version | None
    held: HeldBytes
    """The bytes of the shard that were read, of which the index is a part."""
    encoded: BytesLike
    """The index as it is stored."""


@dataclass(frozen=True, slots=True, eq=False)
class HeldBytes:
    """A part of a stored object: its bytes from ``start`` on."""

    data: BytesLike
    start: int

    def has(self, start: int, stop: int) -> bool:
        """Whether these bytes of the object are in it."""
        return self.start <= start and stop <= self.start + len(self.data)


def read_index(
    store: Store, key: str, layout: ShardLayout, *, check: bool = True, along: int = 0
) -> StoredIndex | None:
    """Return the index of a shard, checked against the shard; ``None`` if that is not stored.

    So many bytes are read ``along`` with it, of those next to it. Without ``check``, entries may point anywhere. Raises
    :class:`~zardine.errors.CorruptionError` for a damaged one, :class:`~zardine.errors.ChunkTooLargeError` where the
    settings forbid to read one of that size, and :class:`~zardine.errors.StoreError` where others replace the shard as
    often as it is read.
    """
    for last in attempts():
        if layout.index_memory > limit_of(CHUNK):
            size = store.size(key)
            if size is None:
                return None
            layout.check_too_short(size)
            layout.check_memory()
        start, length = layout.index_range
        reading = store.read(key, ((start, length + along) if length is not None else (start - along, None),))
        if reading is None:
            return None
        data = memoryview(reading.parts[0])
        held = HeldBytes(data, 0 if layout.index_at_start else reading.size - len(data))
        encoded = data[: layout.index_size] if layout.index_at_start else data[-layout.index_size :]
        index = layout.decode_index(encoded, reading.size)
        if not check:
            return StoredIndex(index, reading.size, reading.version, held, encoded)
        try:
            layout.check(index, reading.size, _Parts(store, key, reading.version, held).read)
            return StoredIndex(index, reading.size, reading.version, held, encoded)
        except _ReplacedError:
            if last:
                break
    raise StoreError(f"key {key!r} of {store} is replaced as often as it is read")


class _ReplacedError(Exception):
    """The object was replaced while its index was looked at."""


@dataclass(frozen=True, slots=True)
class _Parts:
    """Reads parts of one version of an object, some of which are ``held``."""

    store: Store
    key: str
    version: Version | None
    held: HeldBytes

    def read(self, part: tuple[int, int]) -> BytesLike:
        """Return one part. Raises :class:`_ReplacedError` where that version is not there any more."""
        start, length = part
        if self.held.has(start, start + length):
            return memoryview(self.held.data)[start - self.held.start :][:length]
        reading = self.store.read(self.key, (part,))
        if reading is None or reading.version != self.version:
            raise _ReplacedError
        return reading.parts[0]


def fetch_index(
    handle: ArrayHandle, layout: ShardLayout, key: str, along: int = 0
) -> tuple[KnownIndex | None, HeldBytes | None]:
    """Read an index by requests and remember it; return it, and what was read ``along`` with it."""
    stored = read_index(handle.store, key, layout, along=along)
    if stored is None:
        return None, None
    known = KnownIndex(stored.index, stored.version, checksum(stored.encoded) if files_to_edit(handle.store) else None)
    INDEXES.put(handle.cache_space, key, known)
    return known, stored.held


_reading: dict[tuple[int, int, str], Future[KnownIndex | None]] = {}
"""Indexes that are asked for just now, by process (a fork has copies that never come), space and key."""


def fetch_index_once(
    handle: ArrayHandle, layout: ShardLayout, key: str, along: int
) -> tuple[KnownIndex | None, bool, HeldBytes | None]:
    """Read an index, say whether that was now, and what was read ``along``; or wait for who is reading it already.

    What that has found may be older than this call: it counts as what is remembered does. That nothing is stored is not
    remembered, nor is an error.
    """
    place, mine = (os.getpid(), handle.cache_space, key), Future[KnownIndex | None]()
    other = _reading.setdefault(place, mine)
    if other is not mine:
        known = None if other.exception() else other.result()
        if known is not None:
            return known, False, None
        known, held = fetch_index(handle, layout, key, along)
        return known, True, held
    held = None
    try:
        known = INDEXES.get(handle.cache_space, key)  # by one who was done before this was noted
        fresh = known is None
        if known is None:
            known, held = fetch_index(handle, layout, key, along)
        mine.set_result(known)
    except BaseException as error:
        mine.set_exception(error)
        raise
    finally:
        del _reading[place]
    return known, fresh, held


__all__ = ["HeldBytes", "StoredIndex", "fetch_index", "fetch_index_once", "read_index"]
