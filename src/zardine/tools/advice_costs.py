"""What reads of a layout cost, by the cost model that stores have (``ReadCost``). Pure; numbers are averages.

A read of ``w`` elements along an axis of chunks of ``c``, at any place, touches ``(w - 1) / c + 1`` chunks of it on
average. Chunks of a shard are taken to lie in C order, as they are written.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from math import ceil, prod

from zardine.settings import is_on
from zardine.stores.base import ReadCost

DECODING = 1.5e9
"""Bytes a second that one read decodes, about."""

INDEX_ENTRY = 16


@dataclass(frozen=True, slots=True)
class Access:
    """A kind of read: how many elements along each axis, and how much it counts."""

    name: str
    box: tuple[int, ...]
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class Layout:
    """Chunks, and shards of them or none, over an array of ``shape``."""

    shape: tuple[int, ...]
    item_size: int
    chunks: tuple[int, ...]
    shards: tuple[int, ...] | None
    ratio: float
    """Stored bytes of a chunk for each byte in memory."""

    @property
    def chunk_nbytes(self) -> int:
        """Bytes of a chunk in memory."""
        return prod(self.chunks) * self.item_size

    @property
    def object_nbytes(self) -> int:
        """Bytes of the elements of a stored object in memory."""
        return prod(self.shards or self.chunks) * self.item_size

    @property
    def objects(self) -> int:
        """How many objects a full array has."""
        return prod(ceil(n / size) for n, size in zip(self.shape, self.shards or self.chunks, strict=True))

    @property
    def per_shard(self) -> tuple[int, ...]:
        """Chunks of an object along each axis."""
        return tuple(s // c for s, c in zip(self.shards or self.chunks, self.chunks, strict=True))

    @property
    def index_nbytes(self) -> int:
        """Bytes of the index of a shard; 0 without shards."""
        return 0 if self.shards is None else INDEX_ENTRY * prod(self.per_shard) + 4


@dataclass(frozen=True, slots=True)
class Cost:
    """What one read costs, on average, if nothing is known yet of the shards it touches."""

    access: str
    weight: float
    objects: float
    chunks: float
    requests: float
    nbytes: float
    """Bytes that are read."""
    wanted: int
    """Bytes of the elements that were asked for, in memory."""
    seconds: float


def cost_of(layout: Layout, access: Access, store: ReadCost) -> Cost:
    """Return what a read costs."""
    touched = [_touched(n, w, c) for n, w, c in zip(layout.shape, access.box, layout.chunks, strict=True)]
    chunks = prod(touched)
    stored = layout.chunk_nbytes * layout.ratio
    if layout.shards is None:
        objects, requests, nbytes, rounds = chunks, chunks, chunks * stored, 1
    else:
        of_axis = [_touched(n, w, s) for n, w, s in zip(layout.shape, access.box, layout.shards, strict=True)]
        objects = prod(of_axis)
        inside = [n / m for n, m in zip(touched, of_axis, strict=True)]
        if all(a >= k * 0.999 for a, k in zip(inside, _filled(layout), strict=True)):
            runs, read, rounds, index = 0.0, prod(inside) * stored, 1, layout.index_nbytes  # whole, index and all
            requests = objects
        else:
            runs, read = _runs(inside, layout.per_shard, stored, store.gap)
            rounds, index = 2, layout.index_nbytes
            requests = objects * (1 + runs)
            rest = max(0.0, prod(_filled(layout)) * stored - read)
            if _comes_along(rest, objects, store):
                rounds, requests, read = 1, objects, read + rest
        nbytes = objects * (read + index)
    waiting = store.latency * max(rounds, requests / max(1, store.requests))
    seconds = waiting + nbytes / store.bandwidth + chunks * layout.chunk_nbytes / DECODING
    wanted = prod(access.box) * layout.item_size
    return Cost(access.name, access.weight, objects, chunks, requests, nbytes, wanted, seconds)


def _comes_along(rest: float, objects: float, store: ReadCost) -> bool:
    """Whether the chunks of so many shards come along with their indexes, ``rest`` bytes of each unasked."""
    one, most = store.spare
    return store.is_slow and rest <= one and rest * objects <= most and is_on("speculative_read")


def least_seconds(layout: Layout, access: Access, store: ReadCost) -> float:
    """Return what the read would cost if the elements lay together in one object."""
    wanted = prod(access.box) * layout.item_size
    return store.latency + wanted * layout.ratio / store.bandwidth + wanted / DECODING


def _touched(length: int, wanted: int, size: int) -> float:
    if wanted >= length:
        return float(ceil(length / size))
    return min((wanted - 1) / size + 1, float(ceil(length / size)))


def _filled(layout: Layout) -> list[float]:
    """Return chunks along each axis of a shard that hold elements of the array."""
    return [min(float(k), ceil(n / c)) for k, n, c in zip(layout.per_shard, layout.shape, layout.chunks, strict=True)]


def _runs(inside: list[float], per_shard: tuple[int, ...], stored: float, gap: int) -> tuple[float, float]:
    """Return the requests for the chunks wanted of one shard, and their bytes, with those read along; on average."""
    runs = read = 0.0
    for counts in product(*({int(each), ceil(each)} for each in inside)):
        share = prod(
            1.0 if each == int(each) else 1 - abs(each - count) for each, count in zip(inside, counts, strict=True)
        )
        found = _runs_of(counts, per_shard, stored, gap)
        runs, read = runs + share * found[0], read + share * found[1]
    return runs, read * stored


def _runs_of(counts: tuple[int, ...], per_shard: tuple[int, ...], stored: float, gap: int) -> tuple[int, int]:
    """Return the same, in chunks, of a block of so many chunks along each axis."""
    runs = span = read = stride = 1
    for wanted, count in zip(reversed(counts), reversed(per_shard), strict=True):
        if wanted > 1:
            if runs == 1 and (stride - span) * stored <= gap:
                span = read = (wanted - 1) * stride + span
            else:
                runs, read = runs * wanted, read * wanted
        stride *= count
    return runs, read
