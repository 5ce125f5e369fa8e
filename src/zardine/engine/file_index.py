"""Read the index of a shard that is an open local file, which writers may edit, and check it against the shard.

Whether the last write of a shard was cut off is known from the record that its writer left (:func:`recorded_index`),
never from what bytes look like. :mod:`zardine.engine.read_index` does this by requests to a store.
"""

from __future__ import annotations

import warnings

from zardine.buffers import BytesLike
from zardine.engine.handle import ArrayHandle
from zardine.engine.index_cache import INDEXES, KnownIndex
from zardine.errors import CorruptionError, DataError, TornShardWarning
from zardine.sharding.index import ShardIndex
from zardine.sharding.layout import ShardLayout
from zardine.stores.base import EditableFile, OpenFile, Store, Version
from zardine.stores.file_seam import files_to_edit
from zardine.stores.local.beside import checksum


def known_index(handle: ArrayHandle, layout: ShardLayout, key: str, file: OpenFile, *, unlocked: bool) -> KnownIndex:
    """Return the index of the shard that is open as ``file``, for a reader.

    Raises :class:`~zardine.errors.CorruptionError` for an index that is damaged or points outside the shard. If the
    file is ``unlocked`` (no one edits it meanwhile) the record of a write that was cut off says which index counts, if
    there is one; a warning says so.
    """
    known = INDEXES.get(handle.cache_space, key)
    if known is not None and known.version == file.version:
        return known
    try:
        index, encoded = index_in_file(layout, file)
        known = KnownIndex(index, file.version, checksum(encoded))
    except CorruptionError as error:
        found = recorded_index(layout, file) if unlocked else None
        if found is None:
            raise
        warn_of_torn(key, error, file)
        known = KnownIndex(found, file.version)
        if not file.keeps_writers_out:
            return known  # which may count for this file alone, before its writer goes on
    INDEXES.put(handle.cache_space, key, known)
    return known


def with_writer(error: CorruptionError, file: OpenFile | None) -> CorruptionError:
    """Return ``error``, which says too that a writer has the file locked, if it was waited for in vain."""
    if file is None or not file.is_stalled:
        return error
    reason = (
        f"{error.reason}; {file.lock_holder()} has locked {file.path!r} and may be stopped while it writes this: let "
        "it go on, or end it, and read again"
    )
    return type(error)(
        reason,
        array=error.array,
        key=error.key,
        chunk=error.chunk,
        codec=error.codec,
        byte_range=error.byte_range,
    )


def index_in_file(layout: ShardLayout, file: OpenFile) -> tuple[ShardIndex, BytesLike]:
    """Return the index that stands at its place in an open shard, checked against the shard; and its bytes."""
    layout.check_too_short(file.size)
    layout.check_memory()
    encoded = file.read(layout.index_range)
    index = layout.decode_index(encoded, file.size)
    layout.check(index, file.size, file.read)
    return index, encoded


def index_to_edit(handle: ArrayHandle, layout: ShardLayout, key: str, file: EditableFile) -> tuple[ShardIndex, int]:
    """Return the index of a shard that is to be changed, all of whose entries can be carried over; and its checksum.

    A write that was cut off before is undone, or finished. Raises :class:`~zardine.errors.CorruptionError` for an index
    that is damaged otherwise.
    """
    known = INDEXES.get(handle.cache_space, key)
    if known is not None and known.checksum is not None and known.version == file.version:
        return known.index, known.checksum
    try:
        index, encoded = index_in_file(layout, file)
        return index, checksum(encoded)
    except CorruptionError as error:
        if file.mend():
            return index_to_edit(handle, layout, key, file)
        raise not_written(error) from None


def recorded_index(layout: ShardLayout, file: OpenFile) -> ShardIndex | None:
    """Return the index that counts in a shard whose last write is not finished, by the record that its writer left.

    For a reader that has waited for writers. ``None``: no write is unfinished.
    """
    table = file.cut_off()
    if table is None:
        return None
    try:
        index = layout.decode_index(file.read((table.at, layout.index_size)))
        layout.check(index, table.size, file.read)
    except DataError:
        return None  # a shard of another form
    return index


def recorded_index_of(store: Store, layout: ShardLayout, key: str, version: Version | None) -> ShardIndex | None:
    """Return the same for a shard that was read as bytes, in that ``version``."""
    files = files_to_edit(store)
    file = None if files is None else files.open(key)
    if file is None:
        return None
    with file:
        file.wait()
        return recorded_index(layout, file) if file.version == version else None


def warn_of_torn(key: str, error: CorruptionError, file: OpenFile) -> None:
    """Warn that a shard is read as it was before its last write, which is not finished."""
    if file.is_stalled:
        reason = (
            f"the last write of shard {key!r} is not finished ({error.reason}), and {file.lock_holder()} still has "
            f"{file.path!r} locked, perhaps stopped: the shard is read as it was before"
        )
    else:
        reason = (
            f"the last write of shard {key!r} was cut off ({error.reason}): it is read as it was before; the next "
            "write to it, or zardine.repair, puts it in order"
        )
    warnings.warn(reason, TornShardWarning, stacklevel=3)


NOTHING_WRITTEN = "the stored shard is damaged, so nothing was written: "


def not_written(error: CorruptionError) -> CorruptionError:
    """Return ``error``, which says too that it kept something from being written."""
    reason = f"{NOTHING_WRITTEN}{error.reason}"
    return type(error)(reason, codec=error.codec, byte_range=error.byte_range)


__all__ = [
    "NOTHING_WRITTEN",
    "index_in_file",
    "index_to_edit",
    "known_index",
    "not_written",
    "recorded_index",
    "recorded_index_of",
    "warn_of_torn",
    "with_writer",
]
