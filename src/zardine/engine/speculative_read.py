"""How many bytes to read along with the index of a shard, in the hope that they hold the wanted chunks."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

from zardine.engine.freshness import is_far
from zardine.engine.handle import ArrayHandle
from zardine.engine.read_ahead import window_bytes
from zardine.indexing.plan import ObjectPart
from zardine.limits import CHUNK, limit_of
from zardine.settings import is_on
from zardine.sharding.layout import ShardLayout

_OF_MEMORY = 4
"""A call reads at most its memory divided by this along with indexes, for all its objects together."""


@contextmanager
def speculative_bytes(handle: ArrayHandle, part: ObjectPart, layout: ShardLayout, together: int) -> Iterator[int]:
    """Say how many bytes to read along with the index of a shard: as many as its chunks take as a rule, or none.

    Far away that saves a request, if what is not wanted of these bytes flows in a quarter of its time, and in its time
    what the other objects, with which this is read ``together``, and other calls read so. What was measured there says
    how much that is. Until this context ends, the bytes count as under way.
    """
    size = _usual_size(handle, part) if together and is_far(handle.store) and is_on("speculative_read") else None
    if size is None:
        yield 0
        return
    cost = handle.store.cost
    one, most = cost.spare
    inside = handle.layout.chunks_in_array(part.object)
    nbytes, unasked = inside * size, max(0, inside - _read_anyway(part, layout, size, cost.gap)) * size
    little = unasked <= one and unasked * together <= min(most, window_bytes() // _OF_MEMORY)
    if not (little and nbytes <= limit_of(CHUNK) and _UNDER_WAY.add(unasked, most)):
        yield 0
        return
    try:
        yield nbytes
    finally:
        _UNDER_WAY.remove(unasked)


def _usual_size(handle: ArrayHandle, part: ObjectPart) -> int | None:
    """Return how many bytes a chunk takes at most, as a rule; ``None`` where its elements vary in length.

    Then who has opened the array may know it.

    Few writers store what does not become smaller in much more bytes than it has: those of a header and a checksum, or
    of the index of a shard in the shard, for which a 64th is enough.
    """
    chain = handle.layout.chain_of(part.object)
    if chain.encoded_size is not None or chain.encoded_limit is None:
        return handle.usual_nbytes if chain.encoded_size is None else chain.encoded_size
    nbytes = handle.layout.chunk_nbytes
    return min(chain.encoded_limit, nbytes + nbytes // 64 + 64)


def _read_anyway(part: ObjectPart, layout: ShardLayout, size: int, gap: int) -> int:
    """Return how many chunks of a shard are read for ``part``: what lies between near ones is."""
    rows = part.positions(layout.strides)
    span = int(rows.max()) - int(rows.min()) + 1
    return span if (span - part.count) * size <= gap else part.count


class _UnderWay:
    """Bytes that all calls of this process read unasked just now."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Begin at nothing: in a forked process nobody waits for them."""
        self._lock, self._nbytes = Lock(), 0

    def add(self, nbytes: int, most: int) -> bool:
        """Count so many, unless that makes more than ``most``."""
        with self._lock:
            fits = self._nbytes + nbytes <= most
            self._nbytes += nbytes if fits else 0
            return fits

    def remove(self, nbytes: int) -> None:
        """Count them no more."""
        with self._lock:
            self._nbytes = max(0, self._nbytes - nbytes)


_UNDER_WAY = _UnderWay()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_UNDER_WAY.forget)

__all__ = ["speculative_bytes"]
