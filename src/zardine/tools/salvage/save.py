"""Getting out of a damaged object what is readable in it. Pure.

An inner chunk counts as readable where the index, and what is left of the shard, say that it is, and where it decodes.
Where bytes of the shard are missing, :mod:`zardine.tools.salvage.chunk_places` says what that means.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from zardine.buffers import BytesLike
from zardine.codecs.chain import CodecChain
from zardine.codecs.sharding_indexed import PreparedSharding
from zardine.sharding.index import ShardIndex
from zardine.sharding.layout import ShardLayout
from zardine.tools.checking.chunk import check_chunk, is_checked, nested_sharding
from zardine.tools.salvage.chunk_places import UNCLEAR, Places, find_places, missing_bytes
from zardine.tools.salvage.index_search import find_index, sound_at

_UNCHECKED = "bytes of the shard are missing, and without checksums nobody can tell of which inner chunks"


@dataclass(slots=True)
class SavedChunk:
    """One chunk: its bytes as they are to be, or why there are none that can be read."""

    data: BytesLike
    reason: str | None = None
    """Why it cannot be read; then ``data`` is what there is of it."""
    changes: list[str] = field(default_factory=list)
    """What was done to a chunk that is a shard itself."""


@dataclass(slots=True)
class SavedShard:
    """What is in a shard."""

    layout: ShardLayout
    chunks: dict[int, SavedChunk]
    """Stored inner chunks by row of the index."""
    how: str | None
    """What is not as it should be, apart from single chunks."""
    unplaced: bool = False
    """Whether there may be sound chunks in it of which nobody knows which they are."""

    @property
    def unreadable(self) -> dict[int, str]:
        """Rows of the inner chunks that cannot be read, and why."""
        return {row: chunk.reason for row, chunk in self.chunks.items() if chunk.reason is not None}

    def must_be_written(self, *, drop: bool) -> bool:
        """Whether the shard is other than it should be; ``drop``: unreadable inner chunks are to be empty."""
        changed = any(chunk.changes for chunk in self.chunks.values())
        return self.how is not None or changed or (drop and bool(self.unreadable))

    def assemble(self, *, drop: bool) -> bytes | None:
        """Return the shard as it should be; inner chunks that cannot be read stay so, or with ``drop`` become empty.

        ``None`` if all inner chunks are empty.
        """
        chunks: list[BytesLike | None] = [None] * self.layout.count
        for row, chunk in self.chunks.items():
            chunks[row] = None if drop and chunk.reason is not None else chunk.data
        return self.layout.assemble(chunks) if any(chunk is not None for chunk in chunks) else None


def save_shard(
    shard: BytesLike, sharding: PreparedSharding, recorded: ShardIndex | None = None, *, drop: bool = False
) -> SavedShard | None:
    """Return what is in a shard; ``None`` if its index is lost, or cannot be trusted, so nobody knows what is where.

    ``recorded`` is the index that counts by the record of a write that was cut off.
    ``drop``: in chunks that are shards themselves, unreadable inner chunks become empty.
    """
    layout, view = sharding.layout, memoryview(shard)
    found = find_index(shard, sharding, recorded)
    if found is None:
        return None
    index = found.index
    rows = np.flatnonzero(index.stored()).tolist()
    checked = is_checked(sharding.chain)
    if found.is_sound and not checked and missing_bytes(index, layout, len(shard)) > 0:
        return SavedShard(layout, {row: SavedChunk(b"", _UNCHECKED) for row in rows}, None)
    places = Places({row: int(index.offsets[row]) for row in rows}, {}, 0)
    if found.is_sound and checked:
        places = find_places(index, layout, len(shard), sound_at(shard, sharding))
    chunks = {row: _saved(view, index, row, places, sharding, drop=drop) for row in rows}
    readable = any(chunk.reason is None for chunk in chunks.values())
    if found.is_older and not readable:
        return None  # bytes that happen to look like an index
    how = found.how
    if places.shift:
        where = "at the end of the shard" if places.at_end else "before the index"
        how = f"{abs(places.shift)} bytes {where} were {'lost' if places.shift > 0 else 'put in'}"
    unplaced = UNCLEAR in places.reasons.values() or found.is_partial
    return SavedShard(layout, chunks, how if readable or not rows else None, unplaced)


def _saved(
    view: memoryview, index: ShardIndex, row: int, places: Places, sharding: PreparedSharding, *, drop: bool
) -> SavedChunk:
    low, high = sharding.layout.data_bounds(len(view))
    length = int(index.lengths[row])
    reason = places.reasons.get(row)
    if reason is None:
        offset = places.found[row]
        if low <= offset and offset + length <= high:
            return save_chunk(view[offset : offset + length], sharding.chain, drop=drop)
        reason = "the index does not say where it is"
    start = min(int(index.offsets[row]), high)
    rest = view[max(low, start) : min(start + length, high)]
    if reason == UNCLEAR or save_chunk(rest, sharding.chain).reason is None:
        rest = memoryview(b"")  # of another chunk, perhaps
    return SavedChunk(rest, reason)


def save_chunk(data: BytesLike, chain: CodecChain, *, drop: bool = False) -> SavedChunk:
    """Return a chunk that is readable, or is a shard that can be made so."""
    wrong = next((found for found in check_chunk(chain, data, deep=True) if found.severity == "error"), None)
    if wrong is None:
        return SavedChunk(data)
    sharding = nested_sharding(chain)
    saved = None if sharding is None else save_shard(data, sharding, drop=drop)
    if saved is None or not saved.must_be_written(drop=drop) or (saved.unreadable and not drop):
        return SavedChunk(data, wrong.message)
    whole = saved.assemble(drop=drop)
    if whole is None:
        return SavedChunk(data, wrong.message)
    changes = [] if saved.how is None else [saved.how]
    changes += [change for chunk in saved.chunks.values() for change in chunk.changes]
    changes += [f"row {row} of the index in it dropped: {reason}" for row, reason in saved.unreadable.items()]
    return SavedChunk(whole, None, changes)
