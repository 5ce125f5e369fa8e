"""Shard indexes seen lately, so that a second read of a shard costs one request.

An entry is used only together with the version of the object it came from: a read of chunks that finds another version
throws the entry away and starts anew. Stores without versions are not cached.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from zardine.cache import Cache
from zardine.settings import config
from zardine.sharding.index import ShardIndex
from zardine.stores.base import Version

_OVERHEAD = 512
"""Bytes counted for an entry beside its arrays."""


@dataclass(frozen=True, slots=True, eq=False)
class KnownIndex:
    """The index of one version of a shard, which was checked: offsets and lengths in bytes."""

    offsets: npt.NDArray[np.int64]
    lengths: npt.NDArray[np.int64]
    version: Version | None
    checksum: int | None = None
    """Of its stored bytes, as :mod:`zardine.stores.local.edit_record` has it; who has edited the shard knows it."""

    @classmethod
    def of(cls, index: ShardIndex, version: Version | None, checksum: int | None = None) -> KnownIndex:
        """Return an index as it is remembered."""
        return cls(index.offsets, index.lengths, version, checksum)

    @property
    def index(self) -> ShardIndex:
        """The index alone."""
        return ShardIndex(self.offsets, self.lengths)

    @property
    def nbytes(self) -> int:
        """Memory taken."""
        return self.offsets.nbytes + self.lengths.nbytes + _OVERHEAD


class IndexCache:
    """Entries of at most ``cache.shard_index_bytes``, by space and key."""

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
            self._kept.limit = int(config["cache.shard_index_bytes"] or 0)
            self._kept.put((space, key), entry, entry.nbytes)

    def drop(self, space: int, key: str) -> None:
        """Forget the entry of ``key``."""
        self._kept.drop((space, key))


INDEXES = IndexCache()
