"""Getting out of a damaged object what is readable in it. Pure.

Nothing is guessed: an inner chunk counts as readable where a valid index says that it is, and where it decodes.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from zardine.buffers import BytesLike
from zardine.codecs.base import BytesBytesCodec
from zardine.codecs.chain import CodecChain
from zardine.codecs.gzip import GzipCodec
from zardine.codecs.sharding_indexed import PreparedSharding
from zardine.codecs.zstd import ZstdCodec
from zardine.errors import DataError
from zardine.sharding.index import ShardIndex
from zardine.sharding.layout import ShardLayout
from zardine.sharding.recovery import has_checksum, last_index
from zardine.tools.chunk_check import check_chunk, is_checksum, nested_sharding
from zardine.tools.index_correction import corrected_index
from zardine.tools.index_rebuild import rebuilt_index

_OLDER = "the index is damaged"


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
    """How the index was found, where it was not simply there."""

    @property
    def unreadable(self) -> dict[int, str]:
        """Rows of the inner chunks that cannot be read, and why."""
        return {row: chunk.reason for row, chunk in self.chunks.items() if chunk.reason is not None}

    def must_be_written(self, *, drop: bool) -> bool:
        """Whether the shard is other than it should be; ``drop``: unreadable inner chunks are to be empty."""
        changed = any(chunk.changes for chunk in self.chunks.values())
        return self.how is not None or changed or (drop and bool(self.unreadable))

    def assemble(self, *, drop: bool) -> bytes | None:
        """The shard as it should be; inner chunks that cannot be read stay so, or with ``drop`` become empty.

        ``None`` if all inner chunks are empty.
        """
        chunks: list[BytesLike | None] = [None] * self.layout.count
        for row, chunk in self.chunks.items():
            chunks[row] = None if drop and chunk.reason is not None else chunk.data
        return self.layout.assemble(chunks) if any(chunk is not None for chunk in chunks) else None


def save_shard(shard: BytesLike, sharding: PreparedSharding, *, drop: bool = False) -> SavedShard | None:
    """What is in a shard; ``None`` if its index is lost, or cannot be trusted, so nobody knows what is where.

    ``drop``: in chunks that are shards themselves, unreadable inner chunks become empty.
    """
    layout = sharding.layout
    found = _find_index(shard, sharding)
    if found is None:
        return None
    index, how, shift = found
    is_older = how is not None and how.startswith(_OLDER)
    checked = is_checked(sharding.chain)
    if shift > 0 and not checked:
        reason = "bytes of the shard are missing, and without checksums nobody can tell of which inner chunks"
        return SavedShard(
            layout, {row: SavedChunk(b"", reason) for row in np.flatnonzero(index.stored()).tolist()}, None
        )
    shift = shift if checked else 0
    chunks: dict[int, SavedChunk] = {}
    moved = False
    view = memoryview(shard)
    for row in np.flatnonzero(index.stored()).tolist():
        best = SavedChunk(b"", "the index does not say where it is")
        for offset in _places(index, layout, len(shard), row, shift):
            tried = save_chunk(view[offset : offset + int(index.lengths[row])], sharding.chain, drop=drop)
            if tried.reason is None:
                moved |= offset != int(index.offsets[row])
                best = tried
                break
            if not best.data:
                best = tried
        chunks[row] = best
    if is_older and all(chunk.reason is not None for chunk in chunks.values()):
        return None  # bytes that happen to look like an index
    if moved:
        how = f"{abs(shift)} bytes before the index were {'lost' if shift > 0 else 'put in'}"
    return SavedShard(layout, chunks, how)


def save_chunk(data: BytesLike, chain: CodecChain, *, drop: bool = False) -> SavedChunk:
    """A chunk that is readable, or is a shard that can be made so."""
    wrong = next((found for found in check_chunk(chain, data, deep=True) if not found.is_note), None)
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


def _find_index(shard: BytesLike, sharding: PreparedSharding) -> tuple[ShardIndex, str | None, int] | None:
    """The index, how it was found if it was not simply there, and how many bytes seem to be missing before it."""
    layout, chain = sharding.layout, sharding.chain
    try:
        index = layout.index_of(shard)
    except DataError:
        pass
    else:
        low, high = layout.data_bounds(len(shard))
        wrong = index.beyond(low, high).any()
        if wrong and not has_checksum(layout):
            return None  # damaged itself, or bytes are missing: nobody can tell
        stored = index.stored()
        lost = 0
        if stored.any():
            offsets, lengths = index.offsets[stored], index.lengths[stored]
            if (offsets < 2**62).all() and (lengths < 2**62).all():
                lost = int((offsets + lengths).max()) - high
        return index, ("entries of the index that point outside of the shard" if wrong else None), lost
    corrected = corrected_index(shard, layout)
    if corrected is not None:
        return corrected, "one damaged byte of the index was put right by its checksum", 0
    view = memoryview(shard)

    def is_sound(offset: int, length: int) -> bool:
        return not any(True for _ in check_chunk(chain, view[offset : offset + length], deep=True))

    rebuilt = rebuilt_index(shard, layout, is_sound, chain.encoded_size) if is_checked(chain) else None
    if rebuilt is not None:
        return rebuilt, "the index was put together from what is left of it, and from where chunks begin and end", 0
    found = last_index(shard, layout)
    if found is None:
        return None
    return (
        found.index,
        f"{_OLDER}: the last valid one before it ends at byte {found.end}, and what came after is lost",
        0,
    )


def _places(index: ShardIndex, layout: ShardLayout, size: int, row: int, shift: int) -> list[int]:
    """Where an inner chunk may begin: where the index says, or ``shift`` bytes before.

    If bytes are missing, not where another chunk of that length would then be: a checksum does not say whose it is.
    """
    low, high = layout.data_bounds(size)
    offset, length = int(index.offsets[row]), int(index.lengths[row])
    ambiguous = bool(shift) and bool(
        ((index.lengths == length) & (np.abs(index.offsets.astype(np.float64) - offset) == abs(shift))).any()
    )
    places = [offset] if shift <= 0 or not ambiguous else []
    if shift and not ambiguous:
        places.append(offset - shift)
    return [place for place in places if low <= place and place + length <= high]


def is_checked(chain: CodecChain) -> bool:
    """Whether damage of a chunk's bytes is noticed."""
    sharding = nested_sharding(chain)
    own = any(_is_checked(codec) for codec in chain.compressors)
    return own or (sharding is not None and is_checked(sharding.chain))


def _is_checked(codec: BytesBytesCodec) -> bool:
    return is_checksum(codec) or isinstance(codec, GzipCodec) or (isinstance(codec, ZstdCodec) and codec.checksum)
