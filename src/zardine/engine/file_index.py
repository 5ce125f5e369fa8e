"""The index of a shard that is an open file, also of one whose last write was cut off."""

from __future__ import annotations

import warnings

import numpy as np

from zardine.engine.index_cache import INDEXES, KnownIndex
from zardine.engine.source import ArraySource
from zardine.errors import CorruptionError, DataError, ShardIndexError, TornShardWarning
from zardine.sharding.index import ShardIndex, decode_index
from zardine.sharding.layout import ShardLayout
from zardine.sharding.recovery import last_index
from zardine.sharding.torn_writes import is_torn_write
from zardine.stores.base import WHOLE, EditableFile, OpenFile


def known_index(source: ArraySource, layout: ShardLayout, key: str, file: OpenFile, *, settled: bool) -> KnownIndex:
    """The index of the shard that is open as ``file``, for a reader.

    Raises :class:`~zardine.errors.CorruptionError` for an index that is damaged or points outside the shard. If the
    file is ``settled`` (no one edits it meanwhile) that is no write under way, and an index before counts, if there is
    one; a warning says so.
    """
    known = INDEXES.get(source.cache_space, key)
    if known is not None and known.version == file.version:
        return known
    try:
        index = _index_at_its_place(layout, file)
    except CorruptionError as error:
        found = _index_before(layout, file) if settled else None
        if found is None:
            raise
        index = found
        layout.check(index, file.size)
        warnings.warn(
            f"the last write of shard {key!r} was cut off ({error.reason}): it is read as it was before; the next "
            "write to it, or zardine.repair, puts it in order",
            TornShardWarning,
            stacklevel=2,
        )
    # EMPTY becomes MISSING
    known = KnownIndex(index.offsets.astype(np.int64), index.lengths.astype(np.int64), file.version)
    INDEXES.put(source.cache_space, key, known)
    return known


def index_to_edit(layout: ShardLayout, file: EditableFile) -> tuple[ShardIndex, bool]:
    """The index of a shard that is to be changed, all of whose entries can be carried over, and whether it is whole.

    It is not if the last write was cut off, so that the index before counts. Raises
    :class:`~zardine.errors.CorruptionError` where there is none.
    """
    try:
        return _index_at_its_place(layout, file), True
    except CorruptionError as error:
        found = _index_before(layout, file)
        if found is None:
            reason = f"the stored shard is damaged, so nothing was written: {error.reason}"
            raise type(error)(reason, codec=error.codec, byte_range=error.byte_range) from None
        layout.check(found, file.size)
        return found, False


def _index_before(layout: ShardLayout, file: OpenFile) -> ShardIndex | None:
    """The index that counts where the last write was cut off; ``None`` if that is not what happened."""
    shard = file.read(WHOLE)
    found = last_index(shard, layout)
    return found.index if found is not None and is_torn_write(shard, found, layout) else None


def _index_at_its_place(layout: ShardLayout, file: OpenFile) -> ShardIndex:
    if file.size < layout.index_size:
        raise ShardIndexError(layout.too_short(file.size))
    try:
        index = decode_index(file.read(layout.index_range), layout.index_chain)
    except DataError as error:
        raise error.at(byte_range=layout.index_bytes(file.size)) from None
    layout.check(index, file.size)
    return index
