"""Changing some inner chunks of a stored shard; the others are carried over as the encoded bytes they are.

Three ways, chosen at run time (sharding codec 1.0, "Binary shard format"):

- *rewrite*: a new object replaces the old one atomically. Possible everywhere.
- *append*: the new chunks and a new index go behind what is there; nothing old is overwritten. A reader that comes in
  between waits; after a crash a record says that the index before counts, see :mod:`zardine.engine.file_edit`. Where
  the index is at the start, it is written there after its copy at the end.
- *in_place*: as *append*, but a chunk that is not longer than its old one takes its place. A crash meanwhile leaves a
  chunk that its checksum tells to be torn.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from zardine.codecs.chain import CodecChain
from zardine.engine.border import Settled
from zardine.engine.change import Change
from zardine.engine.file_edit import Chunks, edit_file, plan_edit, wastes
from zardine.engine.held_change import HeldChange
from zardine.engine.index_cache import INDEXES, KnownIndex
from zardine.engine.locate import (
    WholeShard,
    check_carried,
    index_to_edit,
    most_of_shard,
    not_written,
    read_whole_shard,
    recorded_index_of,
)
from zardine.engine.old_chunks import OldChunks, StoredRows
from zardine.engine.read import row_batches
from zardine.engine.workers import for_each
from zardine.errors import CorruptionError, DataError
from zardine.settings import config
from zardine.sharding.containers import HEAD, is_container
from zardine.sharding.index import ShardIndex, empty_index
from zardine.sharding.layout import ShardLayout
from zardine.sharding.order import chunk_ranks
from zardine.stores.base import Condition, EditableFile, FilePart, Reading, Store, Version
from zardine.stores.local.edit_record import checksum

Ints = npt.NDArray[np.int64]
AnyChange = Change | HeldChange


def update_shard(change: AnyChange, layout: ShardLayout, rows: Ints, *, merged: bool) -> None:
    """Write the chunks of ``change``, which are the ``rows`` of the index, and keep all others.

    ``merged``: what is kept may be what others are changing, and is not only what lies beyond the array.
    """
    store, key = change.source.store, change.key
    if store.edits_files:
        with store.edit_file(key) as file:
            if file is not None:
                _update_file(change, layout, rows, file)
                return
    with store.lock(key):
        _update_value(change, layout, rows, merged=merged)
    INDEXES.drop(change.source.cache_space, key)


def _update_value(change: AnyChange, layout: ShardLayout, rows: Ints, *, merged: bool) -> None:
    store, key = change.source.store, change.key
    chain = change.source.layout.chain_of(change.part.object)
    reading = _whole(store, key, layout, chain)
    index = empty_index(layout.count) if reading is None else reading.index
    old = OldChunks(index, None, b"" if reading is None else reading.data)
    _check_others(old.index, layout, chain, rows)
    change = _if_still_settled(change, None if reading is None else reading.version)
    new = new_chunks(change, rows, old)
    condition = condition_of(reading, merged=merged)
    if _is_empty(old.index, new) and reading is None:
        return
    if _is_empty(old.index, new) and reading is not None and store.lock_is_exclusive:
        store.erase_version(key, reading.version)
        return  # elsewhere to erase cannot be made conditional: another writer's chunks could go with it
    shard = layout.merged(old.index, new, _order(change, layout, old.index))
    store.set(key, shard.joined(old.shard), condition=condition)


def _if_still_settled(change: AnyChange, version: Version | None) -> AnyChange:
    """What is beyond the array is kept if another version of the shard is stored than the one that was looked at."""
    return change if change.settled in (None, Settled(version)) else replace(change, settled=None)


def _whole(store: Store, key: str, layout: ShardLayout, chain: CodecChain) -> WholeShard | None:
    try:
        return read_whole_shard(store, key, layout, chain)
    except CorruptionError as error:
        reading = store.read_up_to(key, most_of_shard(layout, chain))
        index = None if reading is None else recorded_index_of(store, layout, key, reading.version)
        if reading is not None and reading.parts and index is not None:
            return WholeShard(reading.parts[0], index, reading.version, reading.size)
        raise not_written(error) from None


def _check_others(index: ShardIndex, layout: ShardLayout, chain: CodecChain, rows: Ints) -> None:
    """Refuse to carry over inner chunks that are longer than any can be."""
    check_carried(index, layout, chain, but=rows, message="the stored shard is damaged, so nothing was written: ")


def new_chunks(change: AnyChange, rows: Ints, old: OldChunks) -> Chunks:
    """The chunks of ``change``, encoded; of those that it changes in part, the rest is that of ``old``."""
    covered = change.covered() if change.fields is None else np.zeros(len(rows), np.bool_)
    stored = None
    if not covered.all():
        stored = old.rows(rows, ~covered)
        _check_old(change, stored)
    encoded = change.encode_many(np.arange(len(rows)), stored)
    if encoded is not None:
        return dict(zip(rows.tolist(), encoded.chunks(), strict=True))
    chunks: Chunks = {}

    def work(batch: range) -> None:
        for i in batch:
            chunks[int(rows[i])] = change.encode(i, None if stored is None else stored.chunk(i), bool(covered[i]))

    batches = row_batches(change.source, len(rows))
    for_each(work, batches, len(batches))
    return chunks


def _check_old(change: AnyChange, stored: StoredRows) -> None:
    """Refuse to decode chunks that are longer than any can be, unless nothing of what they hold is to stay."""
    chain = change.source.layout.chain_of(change.part.object)
    too_long = stored.table[:, 2] > chain.most_stored()
    if not too_long.any():
        return
    for i in np.flatnonzero(too_long & ~change.heals()).tolist():
        _, offset, length = stored.table[i].tolist()
        try:
            chain.check_stored(length)
        except DataError as error:
            raise error.at(chunk=change.part.chunk(i), byte_range=(offset, length)) from None
    stored.table[too_long, 2] = 0  # nothing can be decoded of that


def _update_file(change: AnyChange, layout: ShardLayout, rows: Ints, file: EditableFile) -> None:
    source, key = change.source, change.key
    index, before = index_to_edit(source, layout, key, file)
    _check_others(index, layout, source.layout.chain_of(change.part.object), rows)
    new = new_chunks(_if_still_settled(change, file.version), rows, OldChunks(index, file, b""))
    strategy = source.config.write_strategy
    edit = None
    if strategy != "rewrite" and layout.has_checksum:
        edit = plan_edit(index, new, file.size, in_place=strategy == "in_place")
        if wastes(edit, layout, file, source.config.most_unused) and not _is_container(index, layout, file):
            edit = None
    if _is_empty(index, new):
        source.store.erase_version(key, file.version)
        INDEXES.drop(source.cache_space, key)
    elif edit is None:
        known = _rewrite_file(change, layout, index, new, file)
        INDEXES.put(source.cache_space, key, known)
    else:
        after = edit_file(layout, edit, file, before)
        INDEXES.put(source.cache_space, key, KnownIndex.of(edit.index, file.version, after))


def _is_container(index: ShardIndex, layout: ShardLayout, file: EditableFile) -> bool:
    return is_container(file.read((0, HEAD)), index, layout)


def _is_empty(index: ShardIndex, new: Chunks) -> bool:
    """Whether no chunk is stored any more once the ``new`` ones have taken the places of old ones."""
    for chunk in new.values():
        if chunk is not None:
            return False
    stored = index.stored()
    stored[list(new)] = False
    return not stored.any()


def _rewrite_file(
    change: AnyChange, layout: ShardLayout, index: ShardIndex, new: Chunks, file: EditableFile
) -> KnownIndex:
    """Put a new file together from the old one's chunks and the new ones; gives its index."""
    shard = layout.merged(index, new, _order(change, layout, index))
    pieces = [FilePart(file, *piece) if isinstance(piece, tuple) else piece for piece in shard.pieces]
    return KnownIndex.of(shard.index, file.replace(pieces), checksum(shard.encoded_index))


def _order(change: AnyChange, layout: ShardLayout, index: ShardIndex) -> Ints:
    """All rows of the index in the order in which their chunks are to be written."""
    wanted = change.source.config.chunk_order
    if wanted != "as_written":
        return np.argsort(chunk_ranks(layout.grid, layout.strides, wanted))
    # chunks that were not stored have the largest offset there is, and come last
    return np.argsort(index.offsets, kind="stable")


def condition_of(old: Reading | WholeShard | None, *, merged: bool) -> Condition | None:
    """That nobody has written since ``old`` was read; nothing where the store has no versions.

    ``merged``: parts of ``old`` are written again, which would undo what others changed in them meanwhile.
    """
    strict = merged and not config["allow_lost_updates"]
    if old is None:
        return Condition(None, strict)
    return None if old.version is None else Condition(old.version, strict)
