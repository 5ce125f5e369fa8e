"""Finding an earlier index in a shard whose own is lost, for who wants it rather than nothing. Pure.

A write that appends puts its chunks and a whole new index behind what is there, so a shard whose end is no index may
still hold the one before; that one is void (:func:`zardine.stores.local.beside.void`) if the new one was whole
once. What is found says what was stored once, and nothing of what came later: readers and writers never look for it.
Only an index with a checksum can be told from other bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from zardine.buffers import BytesLike
from zardine.errors import DataError
from zardine.sharding.index import MISSING, ShardIndex
from zardine.sharding.layout import ShardLayout, reader
from zardine.stores.local.beside import VOID_BYTES, void

_PROBED = 4
"""Entries that are looked at before a checksum is computed."""

_BLOCK = 2**18
"""Places that are looked at together."""

_SIMILAR = 0.5
"""Share of the entries for stored chunks that agree with the index before, or follow it, in what was an index."""


@dataclass(frozen=True, slots=True)
class FoundIndex:
    """A valid index and the bytes of the shard that it ends at (exclusive)."""

    index: ShardIndex
    end: int


def last_index(shard: BytesLike, layout: ShardLayout) -> FoundIndex | None:
    """Return the last valid index that ends in ``shard`` (at any byte), all of whose entries lie in front of it.

    For shards with the index at the start, whose copy at the end a write leaves until the start is written. ``None``
    if there is none, or the index has no checksum to know it by.
    """
    size = layout.index_size
    if not layout.has_checksum or len(shard) < size:
        return None
    view = memoryview(shard).cast("B")
    for start in _candidates(view, layout):
        found = _valid(view, start, layout)
        if found is not None:
            return FoundIndex(found, start + size)
    return None


def _candidates(view: memoryview, layout: ShardLayout) -> Iterator[int]:
    """Yield where an index could begin, the last place first: the first entries are empty, or lie in front of it."""
    stop = len(view) - layout.index_size + 1
    while stop > 0:
        start = max(0, stop - _BLOCK)
        places = np.arange(stop - 1, start - 1, -1, dtype=np.int64)
        yield from (_plausible(view, places, layout) if _is_plain(layout) else places).tolist()
        stop = start


def _plausible(view: memoryview, places: npt.NDArray[np.int64], layout: ShardLayout) -> npt.NDArray[np.int64]:
    windows = np.lib.stride_tricks.sliding_window_view(np.frombuffer(view, np.uint8), 8)
    for entry in range(min(_PROBED, layout.count)):
        if not len(places):
            break
        offsets = np.ascontiguousarray(windows[places + 16 * entry]).view("<i8")[:, 0]
        lengths = np.ascontiguousarray(windows[places + 16 * entry + 8]).view("<i8")[:, 0]
        limit = np.full(len(places), len(view)) if layout.index_at_start else places
        inside = (offsets >= 0) & (offsets <= limit) & (lengths >= 0) & (lengths <= limit - offsets)
        places = places[inside | ((offsets == MISSING) & (lengths == MISSING))]
    return places


def _is_plain(layout: ShardLayout) -> bool:
    """Whether the encoded index begins with its entries as little-endian words."""
    codecs = layout.index_chain.codecs
    first = codecs[0]
    return first.name == "bytes" and first.configuration() == {"endian": "little"}


def _valid(view: memoryview, start: int, layout: ShardLayout) -> ShardIndex | None:
    size = layout.index_size
    try:
        index = _decoded(view[start : start + size], layout)
        if layout.index_at_start:
            end = len(view)  # the index itself is at the front of what it is about
        else:
            end = start + size
        layout.check(index, end, reader(view))
    except DataError:
        return None
    return index


def _decoded(data: memoryview, layout: ShardLayout) -> ShardIndex:
    try:
        return layout.decode_index(data)
    except DataError:
        return layout.decode_index(bytes(data[:-VOID_BYTES]) + void(data))


def was_cut_off(shard: BytesLike, found: FoundIndex, layout: ShardLayout) -> bool:
    """Whether what follows ``found``, the last valid index of the shard, looks like a write that was cut off.

    An index that was damaged later looks like the one before it, but for what was written.
    """
    start = 0 if layout.index_at_start else len(shard) - layout.index_size
    if found.end in (start, len(shard)) or not layout.has_words:
        return True
    end = np.frombuffer(shard, "<i8", 2 * layout.count, start).reshape(-1, 2)
    before = np.stack((found.index.offsets, found.index.lengths), axis=1)
    follows = (end[:, 0] >= found.end) & (end[:, 0] < len(shard))
    if layout.index_at_start:
        return not follows.any()  # only an index that was whole once names what was written behind its copy
    if start < found.end:
        return True
    agrees = (end == before).all(axis=1) | follows
    stored = (before != MISSING).any(axis=1) | follows
    return not stored.any() or float(agrees[stored].mean()) < _SIMILAR
