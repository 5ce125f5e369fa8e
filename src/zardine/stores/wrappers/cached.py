"""Keeping what was read from another store, in memory or in a directory."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable, Sequence

from zardine.buffers import BytesLike
from zardine.contexts import sure_context
from zardine.public_names import public
from zardine.stores.base import (
    WHOLE,
    ByteRange,
    Condition,
    EditableFile,
    Reading,
    Store,
    Version,
    resolve_range,
)
from zardine.stores.wrappers.cache_entries import CacheEntries, DirectoryEntries, MemoryEntries
from zardine.stores.wrappers.wrapper import WrappedFiles, WrapperStore

_DEFAULT = 256 * 2**20


class _CachedFiles(WrappedFiles):
    """Files that are edited; what is read from an open file does not pass through the cache, so that none is."""

    __slots__ = ()

    _store: CachedStore
    can_read = False

    @sure_context
    def edit(self, key: str) -> Generator[EditableFile | None, None, None]:
        self._store._entries.drop(key)
        try:
            with super().edit(key) as file:
                yield file
        finally:
            self._store._entries.drop(key)


@public("zardine.storage")
class CachedStore(WrapperStore):
    """Another store, with what was read from it kept: in memory, or in files below ``directory``.

    A value that is kept is used only after the store was asked for the version of the key, and if it is the same:
    nothing stale is ever given, at the price of one small request instead of a large one. With ``immutable`` the store
    is not even asked: for data that nobody changes. Values without a version are kept only with ``immutable``.

    ``limit``: bytes kept at most; what was used longest ago goes first. Several stores and processes may use one
    directory; each has files and a limit of its own, and what processes that ended left is removed by the next.
    """

    files_class = _CachedFiles

    def __init__(
        self,
        store: Store,
        directory: str | os.PathLike[str] | None = None,
        *,
        limit: int = _DEFAULT,
        immutable: bool = False,
        read_only: bool = False,
    ) -> None:
        super().__init__(store, read_only=read_only)
        if limit < 0:
            raise ValueError(f"limit is a number of bytes, not {limit}")
        self._directory = None if directory is None else os.path.abspath(os.fspath(directory))
        self._limit = limit
        self._immutable = immutable
        self._entries: CacheEntries = (
            MemoryEntries(limit) if self._directory is None else DirectoryEntries(self._directory, limit, str(store))
        )

    @property
    def limit(self) -> int:
        """Bytes kept at most."""
        return self._limit

    @property
    def cached_bytes(self) -> int:
        """Bytes that this store keeps now."""
        return self._entries.nbytes

    @property
    def cached_keys(self) -> int:
        """Keys of which this store keeps anything now."""
        return len(self._entries)

    def clear(self) -> None:
        """Forget everything."""
        self._entries.clear()

    def read(self, key: str, ranges: Sequence[ByteRange] = (WHOLE,)) -> Reading | None:
        self._key(key)
        if all(each == (0, 0) for each in ranges):
            return super().read(key, ranges)
        known = self._known(key, ranges)
        if known is not None:
            return known
        reading = super().read(key, ranges)
        if reading is None:
            self._entries.drop(key)
        elif reading.version is not None or self._immutable:
            spans = [resolve_range(each, reading.size) for each in ranges]
            self._entries.put(key, reading.version or "", reading.size, dict(zip(spans, reading.parts, strict=True)))
        return reading

    def read_up_to(self, key: str, most: int) -> Reading | None:
        self._key(key)
        known = self._known(key, (WHOLE,))
        if known is not None and known.size <= most:
            return known
        reading = self._store.read_up_to(self._key(key), most)
        if reading is None:
            self._entries.drop(key)
        elif reading.parts and (reading.version is not None or self._immutable):
            self._entries.put(key, reading.version or "", reading.size, {(0, reading.size): reading.parts[0]})
        return reading

    def _known(self, key: str, ranges: Sequence[ByteRange]) -> Reading | None:
        entry = self._entries.get(key)
        if entry is None:
            return None
        version, size = entry
        parts = []
        for each in ranges:
            part = self._entries.part(key, version, size, resolve_range(each, size))
            if part is None:
                return None
            parts.append(part)
        if not self._immutable and super().version(key) != version:
            self._entries.drop(key)
            return None
        return Reading(tuple(parts), version or None, size)

    def get_partial_values(self, key_ranges: Iterable[tuple[str, ByteRange]]) -> list[BytesLike | None]:
        return Store.get_partial_values(self, key_ranges)

    def set(self, key: str, value: BytesLike, *, condition: Condition | None = None) -> Version | None:
        self._entries.drop(key)
        try:
            return super().set(key, value, condition=condition)
        finally:
            self._entries.drop(key)

    def set_partial_values(self, key_start_values: Iterable[tuple[str, int, BytesLike]]) -> None:
        triples = list(key_start_values)
        try:
            super().set_partial_values(triples)
        finally:
            for key, _, _ in triples:
                self._entries.drop(key)

    def erase(self, key: str) -> None:
        super().erase(key)
        self._entries.drop(key)

    def erase_version(self, key: str, version: Version | None) -> None:
        try:
            super().erase_version(key, version)
        finally:
            self._entries.drop(key)

    def erase_values(self, keys: Iterable[str]) -> None:
        names = list(keys)
        super().erase_values(names)
        for key in names:
            self._entries.drop(key)

    def erase_prefix(self, prefix: str) -> None:
        super().erase_prefix(prefix)
        self._entries.clear()

    def _parts(self) -> tuple[object, ...]:
        return *super()._parts(), self._directory, self._limit, self._immutable

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), self._store, *self._parts()[1:])


def _rebuild(
    kind: type[CachedStore], store: Store, read_only: bool, directory: str | None, limit: int, immutable: bool
) -> CachedStore:
    return kind(store, directory, limit=limit, immutable=immutable, read_only=read_only)


__all__ = ["CachedStore"]
