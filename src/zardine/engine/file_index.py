"""The index of a shard that is an open file, also of one whose last write was cut off."""

from __future__ import annotations

import warnings

import numpy as np

from zardine.buffers import BytesLike
from zardine.engine.index_cache import INDEXES, KnownIndex
from zardine.engine.source import ArraySource
from zardine.errors import CorruptionError, DataError, TornShardWarning
from zardine.sharding.index import ShardIndex, decode_index
from zardine.sharding.layout import ShardLayout
from zardine.stores.base import EditableFile, OpenFile, Store, Version


def known_index(source: ArraySource, layout: ShardLayout, key: str, file: OpenFile, *, settled: bool) -> KnownIndex:
    """The index of the shard that is open as ``file``, for a reader.

    Raises :class:`~zardine.errors.CorruptionError` for an index that is damaged or points outside the shard. If the
    file is ``settled`` (no one edits it meanwhile) the record of a write that was cut off says which index counts, if
    there is one; a warning says so.
    """
    known = INDEXES.get(source.cache_space, key)
    if known is not None and known.version == file.version:
        return known
    try:
        index, _ = _index_at_its_place(layout, file)
    except CorruptionError as error:
        found = recorded_index(layout, file) if settled else None
        if found is None:
            raise
        index = found
        warn_of_torn(key, error)
    # EMPTY becomes MISSING
    known = KnownIndex(index.offsets.astype(np.int64), index.lengths.astype(np.int64), file.version)
    INDEXES.put(source.cache_space, key, known)
    return known


def index_to_edit(layout: ShardLayout, file: EditableFile) -> tuple[ShardIndex, BytesLike]:
    """The index of a shard that is to be changed, all of whose entries can be carried over; and its bytes.

    A write that was cut off before is undone, or finished. Raises :class:`~zardine.errors.CorruptionError` for an index
    that is damaged otherwise.
    """
    try:
        return _index_at_its_place(layout, file)
    except CorruptionError as error:
        if file.mend():
            return index_to_edit(layout, file)
        reason = f"the stored shard is damaged, so nothing was written: {error.reason}"
        raise type(error)(reason, codec=error.codec, byte_range=error.byte_range) from None


def recorded_index(layout: ShardLayout, file: OpenFile) -> ShardIndex | None:
    """The index that counts in a shard whose last write was cut off, by the record that its writer left.

    For who keeps writers out. ``None``: no write was cut off.
    """
    table = file.cut_off()
    if table is None:
        return None
    try:
        index = decode_index(file.read((table.at, layout.index_size)), layout.index_chain)
        layout.check(index, table.size, file.read)
    except DataError:
        return None  # a shard of another form
    return index


def recorded_index_of(store: Store, layout: ShardLayout, key: str, version: Version | None) -> ShardIndex | None:
    """The same for a shard that was read as bytes, in that ``version``."""
    file = store.open_file(key) if store.edits_files else None
    if file is None:
        return None
    with file:
        file.wait()
        return recorded_index(layout, file) if file.version == version else None


def warn_of_torn(key: str, error: CorruptionError) -> None:
    """Say that a shard is read as it was before."""
    warnings.warn(
        f"the last write of shard {key!r} was cut off ({error.reason}): it is read as it was before; the next "
        "write to it, or zardine.repair, puts it in order",
        TornShardWarning,
        stacklevel=3,
    )


def _index_at_its_place(layout: ShardLayout, file: OpenFile) -> tuple[ShardIndex, BytesLike]:
    layout.check_too_short(file.size)
    layout.check_memory()
    encoded = file.read(layout.index_range)
    try:
        index = decode_index(encoded, layout.index_chain)
    except DataError as error:
        raise error.at(byte_range=layout.index_bytes(file.size)) from None
    layout.check(index, file.size, file.read)
    return index, encoded
