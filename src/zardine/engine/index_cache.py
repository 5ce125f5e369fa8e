"""Indexes of shards that were read or written lately, with the versions of the shards that they belong to."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from zardine.cache import Cache
from zardine.engine.handle import ArrayHandle
from zardine.indexing.plan import ObjectPart
from zardine.settings import config
from zardine.sharding.index import ShardIndex
from zardine.stores.base import Version

_OVERHEAD = 512
"""Bytes counted for an entry beside its arrays."""


@dataclass(frozen=True, slots=True, eq=False)
class KnownIndex:
    """The ``index`` of one version of a shard, which was checked."""

    index: ShardIndex
    version: Version | None
    checksum: int | None = None
    """Of its stored bytes, as :mod:`zardine.stores.local.beside` has it, for who edits the shard in its file."""


class IndexCache:
    """Indexes of shards seen lately, of ``cache.shard_index_bytes`` at most, by space and key.

    An entry is used only together with the version of the object that it came from: a read of chunks that finds another
    version throws the entry away and starts anew. Shards of stores without versions are not remembered.
    """

    def __init__(self) -> None:
        self._kept: Cache[tuple[int, str], KnownIndex] = Cache(0)

    @property
    def nbytes(self) -> int:
        """Return the bytes of the entries kept now."""
        return self._kept.nbytes

    def clear(self) -> None:
        """Forget everything."""
        self._kept.clear()

    def get(self, space: int, key: str) -> KnownIndex | None:
        """Return the entry of ``key``, or ``None``."""
        return self._kept.get((space, key))

    def put(self, space: int, key: str, entry: KnownIndex) -> None:
        """Remember an entry, if it has a version and fits."""
        if entry.version is not None:
            self._kept.limit = int(config.snapshot["cache.shard_index_bytes"] or 0)
            self._kept.put((space, key), entry, entry.index.offsets.nbytes + entry.index.lengths.nbytes + _OVERHEAD)

    def drop(self, space: int, key: str) -> None:
        """Forget the entry of ``key``."""
        self._kept.drop((space, key))


INDEXES = IndexCache()


def is_known(handle: ArrayHandle, parts: Iterable[ObjectPart], keys: Iterable[str]) -> bool:
    """Tell whether the indexes of all these objects are remembered, so that reading may find them unchanged."""
    return all(
        handle.layout.shard(part.object) is not None and INDEXES.get(handle.cache_space, key) is not None
        for part, key in zip(parts, keys, strict=True)
    )


__all__ = ["INDEXES", "IndexCache", "KnownIndex", "is_known"]
