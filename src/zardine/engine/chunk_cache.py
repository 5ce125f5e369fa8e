"""Decoded chunks kept in memory, for arrays opened with ``config={"cache": "256 MiB"}``.

An entry belongs to one version of the stored object, so that what others write is seen at the next read. Before an
entry is used the store is asked for the version of the object, which costs less than the data; nothing is asked where
nothing is kept.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from zardine.cache import Cache
from zardine.stores.base import Version


class KeptChunk(NamedTuple):
    """A decoded chunk, read-only, of one version of the stored object."""

    version: Version
    chunk: npt.NDArray[Any]


class ChunkCache:
    """At most ``limit`` bytes of decoded chunks of one opened array, by the key of the object and the number in it."""

    def __init__(self, limit: int) -> None:
        self._chunks: Cache[tuple[str, int], KeptChunk] = Cache(limit)

    @property
    def limit(self) -> int:
        """Return the bytes that are kept at most."""
        return self._chunks.limit

    @property
    def nbytes(self) -> int:
        """Return the bytes of the chunks kept now."""
        return self._chunks.nbytes

    def get(self, key: str, number: int) -> KeptChunk | None:
        """Return what is kept of a chunk, of whatever version, or ``None``."""
        return self._chunks.get((key, number))

    def put(self, key: str, number: int, version: Version, chunk: npt.NDArray[Any]) -> None:
        """Keep a chunk in the place of its other versions, if it fits at all."""
        if not chunk.flags.owndata:
            chunk = np.array(chunk)  # a view would keep the whole object in memory
        if chunk.nbytes <= self.limit:
            chunk.flags.writeable = False
            self._chunks.put((key, number), KeptChunk(version, chunk), chunk.nbytes)

    def drop(self, key: str, number: int) -> None:
        """Forget a chunk, of whatever version."""
        self._chunks.drop((key, number))
