"""Decoded chunks kept in memory, for arrays opened with ``config={"cache": "256 MiB"}``.

An entry belongs to one version of the stored object, so that what others write is seen at the next read. Each read
still asks the store for the version of the object, which costs less than the data.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from zardine.cache import Cache
from zardine.stores.base import Version

Name: TypeAlias = tuple[str, int, Version]
"""Key of the object, number of the chunk in it, version of the object."""


class ChunkCache:
    """At most ``limit`` bytes of decoded chunks, for one opened array."""

    def __init__(self, limit: int) -> None:
        self._chunks: Cache[Name, npt.NDArray[Any]] = Cache(limit)

    @property
    def limit(self) -> int:
        """Return the bytes that are kept at most."""
        return self._chunks.limit

    @property
    def nbytes(self) -> int:
        """Return the bytes of the chunks kept now."""
        return self._chunks.nbytes

    def get(self, name: Name) -> npt.NDArray[Any] | None:
        """Return a chunk, read-only, or ``None``."""
        return self._chunks.get(name)

    def put(self, name: Name, chunk: npt.NDArray[Any]) -> None:
        """Keep a chunk, if it fits at all."""
        if not chunk.flags.owndata:
            chunk = np.array(chunk)  # a view would keep the whole object in memory
        if chunk.nbytes <= self.limit:
            chunk.flags.writeable = False
            self._chunks.put(name, chunk, chunk.nbytes)
