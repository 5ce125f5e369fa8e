"""Decoded chunks kept in memory, for arrays opened with ``config={"cache": "256 MiB"}``.

An entry belongs to one version of the stored object, so that what others write is seen at the next read. Each read
still asks the store for the version of the object, which costs less than the data.
"""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from zardine.stores.base import Version

Name: TypeAlias = tuple[str, int, Version]
"""Key of the object, number of the chunk in it, version of the object."""


class ChunkCache:
    """At most ``limit`` bytes of decoded chunks; the least recently used go first. For one opened array."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._lock = Lock()
        self._chunks: OrderedDict[Name, npt.NDArray[Any]] = OrderedDict()
        self._nbytes = 0

    @property
    def nbytes(self) -> int:
        """Bytes of the chunks kept now."""
        return self._nbytes

    def get(self, name: Name) -> npt.NDArray[Any] | None:
        """A chunk, read-only, or ``None``."""
        with self._lock:
            chunk = self._chunks.get(name)
            if chunk is not None:
                self._chunks.move_to_end(name)
            return chunk

    def put(self, name: Name, chunk: npt.NDArray[Any]) -> None:
        """Keep a chunk, if it fits at all."""
        if not chunk.flags.owndata:
            chunk = np.array(chunk)  # a view would keep the whole object in memory
        if chunk.nbytes > self.limit:
            return
        chunk.flags.writeable = False
        with self._lock:
            old = self._chunks.pop(name, None)
            self._nbytes += chunk.nbytes - (0 if old is None else old.nbytes)
            self._chunks[name] = chunk
            while self._nbytes > self.limit:
                self._nbytes -= self._chunks.popitem(last=False)[1].nbytes
