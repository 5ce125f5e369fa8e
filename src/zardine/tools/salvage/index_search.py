"""Finding the index of a shard that may be damaged. Pure.

In the order in which they are trusted: the index that is there; the one that the record of a write that was cut off
names; the one that is there with one damaged byte put right; one put together from what is left of it (two ways: in a
shard that was written whole, and in one that was appended to); the last valid one before it.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

import google_crc32c

from zardine.buffers import BytesLike
from zardine.codecs.chain import CodecChain
from zardine.codecs.crc32c import Crc32cCodec
from zardine.codecs.sharding_indexed import PreparedSharding
from zardine.errors import DataError
from zardine.sharding.index import ShardIndex
from zardine.sharding.layout import ShardLayout
from zardine.tools.checking.chunk import check_chunk, is_checked
from zardine.tools.salvage.index_correction import corrected_index
from zardine.tools.salvage.index_rebuild import NOWHERE, Cut, Pieces, merged_index, rebuilt_index
from zardine.tools.salvage.older_index import FoundIndex, last_index, was_cut_off

_BEYOND: Final = "entries of the index that point outside of the shard"
_CORRECTED: Final = "one damaged byte of the index was put right by its checksum"
_REBUILT: Final = "the index was put together from what is left of it, and from where chunks begin and end"
_MERGED: Final = "the index was put together from what is left of it, and from the one before the last write"
_RECORDED: Final = "the last write was cut off: its record says which index counts"
_COPIED: Final = "the last write was cut off before the index at the start was whole: its copy at the end counts"
_IN_PART: Final = (
    "the index is damaged; of its entries those are left that the one before the last write has, too: where other "
    "chunks are is not known"
)


_MOST_CUT: Final = 2**20
"""Bytes that are cut into chunks by their checksums: a second or so."""

_SIMILAR: Final = 0.5
"""Share of entries that say the same as those before in an index that was damaged; one that was cut off has fewer."""


@dataclass(frozen=True, slots=True)
class Search:
    """The index that was found."""

    index: ShardIndex
    how: str | None = None
    """How it was found, if it was not simply there."""
    is_sound: bool = False
    """Whether it is the one that was there, so that it is the data that does not fit where they do not fit."""
    is_older: bool = False
    """Whether it is an earlier one, or the copy of one, that was searched for."""
    is_partial: bool = False
    """Whether entries are not known."""


def find_index(shard: BytesLike, sharding: PreparedSharding, recorded: ShardIndex | None = None) -> Search | None:
    """Return the index of a shard, if anything says what is where. ``recorded``: the one that a record names."""
    layout, chain = sharding.layout, sharding.chain
    if recorded is not None:
        return Search(recorded, _RECORDED)
    try:
        index = layout.index_of(shard)
    except DataError:
        pass
    else:
        if index.beyond(*layout.data_bounds(len(shard))).any():
            # without a checksum it is damaged itself, or bytes are missing: nobody can tell
            return Search(index, _BEYOND, is_sound=True) if layout.has_checksum else None
        with suppress(DataError):  # it may be that of a shard in this one
            layout.checked_index_of(shard)
            return Search(index, is_sound=True)
    before = last_index(shard, layout)
    corrected = corrected_index(shard, layout)
    copy = _copy_behind(shard, layout)
    end = len(shard) - layout.index_size
    if copy is not None and (corrected is None or not corrected.beyond(layout.index_size, end).any()):
        return Search(copy, _COPIED, is_older=True)
    if corrected is not None:
        return Search(corrected, _CORRECTED)
    is_chunk = sound_at(shard, sharding)
    rebuilt = rebuilt_index(shard, layout, is_chunk, _cutter(shard, chain)) if is_checked(chain) else None
    if rebuilt is not None:
        return Search(rebuilt, _REBUILT)
    if before is None:
        return None
    start, _ = layout.index_bytes(len(shard))
    if layout.index_at_start or before.end <= start:
        merged, is_whole = merged_index(shard, layout, before, is_chunk, chain.encoded_size)
        if is_whole:
            return Search(merged, _MERGED)
        if before.end == start and (merged.offsets != NOWHERE)[before.index.stored()].mean() >= _SIMILAR:
            return Search(merged, _IN_PART, is_partial=True)
        if not was_cut_off(shard, before, layout):
            return Search(merged, _IN_PART, is_partial=True)
    return _older(before)


def _older(before: FoundIndex) -> Search:
    how = f"an earlier index, which ends at byte {before.end}, is all that was found: what was written later is lost"
    return Search(before.index, how, is_older=True)


def _copy_behind(shard: BytesLike, layout: ShardLayout) -> ShardIndex | None:
    """Return the copy at the end of the index at the start, if an edit was cut off while it wrote that one."""
    start = len(shard) - layout.index_size
    if not layout.index_at_start or not layout.has_checksum or start < layout.index_size:
        return None
    try:
        index = layout.decode_index(memoryview(shard)[start:])
    except DataError:
        return None
    return None if index.beyond(layout.index_size, start).any() else index


def _cutter(shard: BytesLike, chain: CodecChain) -> Cut:
    """Return a function that cuts a range of the shard into chunks, if their ends can be told."""

    ends_with_checksum = bool(chain.compressors) and isinstance(chain.compressors[-1], Crc32cCodec)

    def cut(start: int, end: int) -> Pieces | None:
        size = chain.encoded_size
        if size:
            return None if (end - start) % size else [(place, size) for place in range(start, end, size)]
        return _cut_by_checksums(shard, start, end) if ends_with_checksum else None

    return cut


def _cut_by_checksums(shard: BytesLike, start: int, end: int) -> Pieces | None:
    """Return the chunks that fill the bytes from ``start`` to ``end``, each with its CRC32C behind it, if any do."""
    if end - start > _MOST_CUT:
        return None
    data = bytes(memoryview(shard)[start:end])
    found = []
    first, checksum = 0, 0
    for place in range(len(data) - 4):
        checksum = google_crc32c.extend(checksum, data[place : place + 1])
        if checksum.to_bytes(4, "little") == data[place + 1 : place + 5] and place >= first:
            found.append((start + first, place + 5 - first))
            first, checksum = place + 5, 0
        elif place < first:
            checksum = 0  # these bytes are a checksum themselves
    return found if first == len(data) else None


def sound_at(shard: BytesLike, sharding: PreparedSharding) -> Callable[[int, int], bool]:
    """Return a function that says of an offset and a length whether a chunk is there."""
    view = memoryview(shard)

    def is_sound(offset: int, length: int) -> bool:
        found = check_chunk(sharding.chain, view[offset : offset + length], deep=True)
        return all(each.severity != "error" for each in found)

    return is_sound


__all__ = ["Search", "find_index", "sound_at"]
