"""Shard indexes seen lately, so that a second read of a shard costs one request.

An entry is used only together with the version of the object it came from: a read of chunks that finds another version
throws the entry away and starts anew. Stores without versions are not cached.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from dataclasses import dataclass
from threading import Lock

import numpy as np
import numpy.typing as npt

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
    """Least recently used entries go first when ``cache.shard_index_bytes`` is reached."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Forget everything."""
        self._lock = Lock()
        self._entries: OrderedDict[tuple[int, str], KnownIndex] = OrderedDict()
        self._nbytes = 0

    def get(self, space: int, key: str) -> KnownIndex | None:
        """The entry of ``key``, or ``None``."""
        with self._lock:
            entry = self._entries.get((space, key))
            if entry is not None:
                self._entries.move_to_end((space, key))
            return entry

    def put(self, space: int, key: str, entry: KnownIndex) -> None:
        """Remember an entry, if it has a version and fits."""
        cost = entry.nbytes
        limit = int(config["cache.shard_index_bytes"] or 0)
        if entry.version is None or cost > limit:
            return
        with self._lock:
            self._remove(space, key)
            self._entries[(space, key)] = entry
            self._nbytes += cost
            while self._nbytes > limit:
                self._remove(*next(iter(self._entries)))

    def drop(self, space: int, key: str) -> None:
        """Forget the entry of ``key``."""
        with self._lock:
            self._remove(space, key)

    def _remove(self, space: int, key: str) -> None:
        entry = self._entries.pop((space, key), None)
        if entry is not None:
            self._nbytes -= entry.nbytes


INDEXES = IndexCache()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=INDEXES.clear)
