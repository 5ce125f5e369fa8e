"""Changing some inner chunks of a stored shard; the others are carried over as the encoded bytes they are.

``ArrayConfig.write_strategy`` chooses one of three ways (sharding codec 1.0, "Binary shard format"):

- *rewrite*, the default: a new object replaces the old one atomically. Possible everywhere. Also done where the index
  has no checksum, and where more than ``most_unused`` of the file would be unused.
- *append*: the new chunks and a new index go behind what is there; nothing old is overwritten. A reader that comes in
  between waits; after a crash a record says that the index before counts (see below). Where
  the index is at the start, it is written there after its copy at the end.
- *in_place*: as *append*, but a chunk that is not longer than its old one takes its place. What has to go behind the
  file is there before a chunk is written over, so that a full disk costs nothing. After an error the old chunks are put
  back. A crash in between leaves a torn chunk, which its checksum detects.

Within a file the shard is changed so that readers can tell at any moment what is whole. Before anything changes, a
record says beside the file which index it has, and which it is to get (see :mod:`zardine.stores.local.beside`).
Nothing but what ``in_place`` writes over is changed before the new index is whole: the one at the end follows the one
before, the one at the start is written to the end first. So a shard is as it was before or after, whenever its writer
is killed. Where power loss counts, bytes reach the disk in any order: then each step is synced before the next. An
index that is superseded and still in the file gets a wrong checksum, last of all.
"""

from __future__ import annotations

import errno
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from zardine.buffers import BytesLike, Ints
from zardine.codecs.chain import CodecChain
from zardine.engine.change import Change, OldChunks, PendingChange, SeenVersion, StoredRows
from zardine.engine.file_index import NOTHING_WRITTEN, index_to_edit, not_written, recorded_index_of
from zardine.engine.freshness import check_before_put
from zardine.engine.index_cache import INDEXES, KnownIndex
from zardine.engine.new_shard import new_shard
from zardine.engine.read import row_batches
from zardine.engine.whole_shard import WholeShard, check_carried, most_of_shard, read_whole_shard
from zardine.engine.workers import for_each
from zardine.errors import ConditionFailedError, CorruptionError, DataError
from zardine.settings import is_on
from zardine.sharding.containers import HEAD, is_container, may_be_container
from zardine.sharding.index import MISSING, ShardIndex
from zardine.sharding.layout import ShardLayout
from zardine.sharding.order import chunk_ranks
from zardine.stores.base import Condition, EditableFile, FilePart, Reading, Store, Version
from zardine.stores.file_seam import files_to_edit
from zardine.stores.local.beside import EditRecord, Table, checksum

AnyChange = Change | PendingChange
Chunks = dict[int, BytesLike | None]
"""New encoded inner chunks by their row in the index; ``None`` for those that become empty."""


def update_shard(change: AnyChange, layout: ShardLayout, rows: Ints, *, keeps_others: bool) -> None:
    """Write the chunks of ``change``, which are the ``rows`` of the index, and keep all others.

    ``keeps_others``: whether chunks within the array are copied from the old shard, so that a change that another
    writer makes to them meanwhile could be lost.
    """
    store, key = change.handle.store, change.key
    files = files_to_edit(store)
    if files is not None:
        with files.edit(key) as file:
            if file is not None:
                _update_file(change, layout, rows, file)
                return
    INDEXES.drop(change.handle.cache_space, key)  # of what is replaced
    with store.lock(key):
        _update_value(change, layout, rows, keeps_others=keeps_others)


def _update_value(change: AnyChange, layout: ShardLayout, rows: Ints, *, keeps_others: bool) -> None:
    store, key = change.handle.store, change.key
    chain = change.handle.layout.chain_of(change.part.object)
    reading = _whole(store, key, layout, chain)
    if change.seen is not None:
        change = _if_still_seen(change, None if reading is None else reading.version)
    condition = condition_of(store, key, reading, keeps_others=keeps_others)
    if reading is None:
        _put_first(change, layout, rows, condition)
        return
    old = OldChunks(reading.index, None, reading.data)
    check_carried(old.index, layout, chain, but=rows, message=NOTHING_WRITTEN)
    new = new_chunks(change, chain, rows, old)
    check_before_put(change.handle)
    if _is_empty(old.index, new) and store.lock_is_exclusive:
        store.erase_version(key, reading.version)
        return  # elsewhere to erase cannot be made conditional: another writer's chunks could go with it
    shard = layout.merged(old.index, new, _order(change, layout, old.index))
    version = store.set(key, shard.joined(old.shard), condition=condition)
    INDEXES.put(change.handle.cache_space, key, KnownIndex(shard.index, version))


def _put_first(change: AnyChange, layout: ShardLayout, rows: Ints, condition: Condition | None) -> None:
    """Write a shard of which nothing is stored yet; without any chunks it is not."""
    handle, order = change.handle, change.handle.config.chunk_order
    ranks = np.arange(layout.count) if order == "as_written" else chunk_ranks(layout.grid, layout.strides, order)
    with new_shard(change, layout, rows, change.needs_no_read(), ranks) as shard:
        if shard is not None:
            check_before_put(handle)
            INDEXES.put(handle.cache_space, change.key, KnownIndex(shard.index, shard.put(condition)))


def _if_still_seen(change: AnyChange, version: Version | None) -> AnyChange:
    """What is beyond the array is kept if another version of the shard is stored than the one that was looked at."""
    return change if change.seen == SeenVersion(version) else replace(change, seen=None)


def _whole(store: Store, key: str, layout: ShardLayout, chain: CodecChain) -> WholeShard | None:
    try:
        return read_whole_shard(store, key, layout, chain)
    except CorruptionError as error:
        reading = store.read_up_to(key, most_of_shard(layout, chain))
        index = None if reading is None else recorded_index_of(store, layout, key, reading.version)
        if reading is not None and reading.parts and index is not None:
            return WholeShard(reading.parts[0], index, reading.version, reading.size)
        raise not_written(error) from None


def new_chunks(change: AnyChange, chain: CodecChain, rows: Ints, old: OldChunks) -> Chunks:
    """The chunks of ``change``, encoded; of those that it changes in part, the rest is that of ``old``."""
    covered = change.needs_no_read() if change.fields is None else np.zeros(len(rows), np.bool_)
    stored = None
    if not covered.all():
        stored = old.rows(rows, ~covered)
        _check_old(change, chain, stored)
    encoded = change.encode_many(np.arange(len(rows)), stored)
    if encoded is not None:
        return dict(zip(rows.tolist(), encoded.chunks(), strict=True))
    chunks: Chunks = {}

    def work(batch: range) -> None:
        for i in batch:
            chunks[int(rows[i])] = change.encode(i, None if stored is None else stored.chunk(i), bool(covered[i]))

    batches = row_batches(change.handle, len(rows))
    for_each(work, batches, len(batches))
    return chunks


def _check_old(change: AnyChange, chain: CodecChain, stored: StoredRows) -> None:
    """Refuse to decode chunks that are longer than any can be, unless nothing of what they hold is to stay."""
    too_long = stored.table[:, 2] > chain.most_stored()
    if not too_long.any():
        return
    for i in np.flatnonzero(too_long & ~change.replaces_all_valid()).tolist():
        _, offset, length = stored.table[i].tolist()
        try:
            chain.check_stored(length)
        except DataError as error:
            raise error.at(chunk=change.part.chunk(i), byte_range=(offset, length)) from None
    stored.table[too_long, 2] = 0  # nothing can be decoded of that


def _update_file(change: AnyChange, layout: ShardLayout, rows: Ints, file: EditableFile) -> None:
    """Change a shard in its file, which is locked: nobody else writes there, and nobody changes the layout."""
    handle, key = change.handle, change.key
    index, index_checksum = index_to_edit(handle, layout, key, file)
    chain = handle.layout.chain_of(change.part.object)
    check_carried(index, layout, chain, but=rows, message=NOTHING_WRITTEN)
    change_now = change if change.seen is None else _if_still_seen(change, file.version)
    new = new_chunks(change_now, chain, rows, OldChunks(index, file, b""))
    strategy = handle.config.write_strategy
    edit = None
    if strategy != "rewrite" and layout.has_checksum:
        edit = plan_edit(index, new, file.size, in_place=strategy == "in_place")
        if wastes(edit, layout, file, handle.config.most_unused) and not _is_container(index, layout, file):
            edit = None  # rewritten; but a container, a file that is of another format as well, keeps all of its bytes
    if None in new.values() and _is_empty(index, new):
        handle.store.erase_version(key, file.version)
        INDEXES.drop(handle.cache_space, key)
    elif edit is None:
        known = _rewrite_file(change, layout, index, new, file)
        INDEXES.put(handle.cache_space, key, known)
    else:
        after = edit_file(layout, edit, file, index_checksum)
        INDEXES.put(handle.cache_space, key, KnownIndex(edit.index, file.version, after))


def _is_container(index: ShardIndex, layout: ShardLayout, file: EditableFile) -> bool:
    return may_be_container(index, layout) and is_container(file.read((0, HEAD)), index, layout)


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
    pieces: list[BytesLike | FilePart] = []
    for piece in shard.pieces:
        pieces.append(FilePart(file, *piece) if isinstance(piece, tuple) else piece)
    return KnownIndex(shard.index, file.replace(pieces), checksum(shard.encoded_index))


def _order(change: AnyChange, layout: ShardLayout, index: ShardIndex) -> Ints:
    """All rows of the index in the order in which their chunks are to be written."""
    wanted = change.handle.config.chunk_order
    if wanted != "as_written":
        return np.argsort(chunk_ranks(layout.grid, layout.strides, wanted))
    # chunks that were not stored have the largest offset there is, and come last
    return np.argsort(index.offsets.view(np.uint64), kind="stable")


def condition_of(store: Store, key: str, old: Reading | WholeShard | None, *, keeps_others: bool) -> Condition | None:
    """Return the condition that nobody has written ``key`` since ``old`` was read; ``None`` if nothing tells that.

    ``keeps_others``: parts of ``old`` are written again, which would undo what others changed in them meanwhile. A
    store without versions refuses that (:class:`~zardine.errors.UnsupportedError`).
    """
    return store.condition_on(key, old, strict=keeps_others and not is_on("allow_lost_updates"))


# edits of files


@dataclass(frozen=True, slots=True, eq=False)
class Edit:
    """Where the chunks of an edit go in the file, and the index afterwards."""

    index: ShardIndex
    placed: list[tuple[int, BytesLike]]
    """Offset and bytes of what is written over old chunks."""
    appended: list[BytesLike]
    """What goes to the end of the file, one after the other."""
    moved: bool
    """Whether the index has to be written."""


def plan_edit(index: ShardIndex, new: Chunks, size: int, *, in_place: bool) -> Edit:
    """How to put ``new`` chunks into a file of ``size`` bytes."""
    after = ShardIndex(index.offsets.copy(), index.lengths.copy())
    room = _room(index) if in_place else None
    placed: list[tuple[int, BytesLike]] = []
    appended: list[BytesLike] = []
    moved = False
    for row, chunk in new.items():
        if chunk is None:
            moved = moved or index.offsets[row] != MISSING or index.lengths[row] != MISSING
            after.offsets[row] = after.lengths[row] = MISSING
        elif room is not None and len(chunk) <= room[row]:
            moved = moved or index.lengths[row] != len(chunk)
            placed.append((int(index.offsets[row]), chunk))
            after.lengths[row] = len(chunk)
        else:
            moved = True
            after.offsets[row], after.lengths[row] = size, len(chunk)
            appended.append(chunk)
            size += len(chunk)
    return Edit(after, placed, appended, bool(moved))


def _room(index: ShardIndex) -> Ints:
    """For each row, the bytes that only its chunk takes; -1 where it has none, or shares them."""
    room = np.full(len(index), -1, np.int64)
    rows = np.flatnonzero(index.stored())
    order = rows[np.lexsort((index.lengths[rows], index.offsets[rows]))]
    offsets, lengths = index.offsets[order], index.lengths[order]
    ends = np.maximum.accumulate(offsets + lengths) if len(order) else offsets
    alone = np.ones(len(order), np.bool_)
    shared = ends[:-1] > offsets[1:]
    alone[:-1] &= ~shared
    alone[1:] &= ~shared
    room[order[alone]] = lengths[alone]
    return room


def wastes(edit: Edit, layout: ShardLayout, file: EditableFile, most: float) -> bool:
    """Whether more than the share ``most`` of the file would be unused."""
    size = file.size + sum(map(len, edit.appended)) + (0 if layout.index_at_start else layout.index_size)
    used = edit.index.used() + layout.index_size
    return bool(edit.appended or edit.moved) and size - used > most * size


def edit_file(layout: ShardLayout, edit: Edit, file: EditableFile, index_checksum: int) -> int:
    """Carry out an edit; gets the checksum of the stored index, and returns that of the index afterwards.

    After an error the file is as it was. Where that is impossible, a note of the error says what is stored.
    """
    if not file.is_unedited():
        raise ConditionFailedError("another program changed the shard since it was read; nothing was written")
    after = index_checksum
    if edit.moved:
        after = _replace_index(layout, edit, file, index_checksum)
    else:
        file.check_whole()
        _replace_chunks(edit, file)
    file.finished()
    return after


def _replace_chunks(edit: Edit, file: EditableFile) -> None:
    """Write chunks over old ones of the same lengths."""
    old = _OldBytes(file)
    try:
        for offset, chunk in edit.placed:
            old.write(offset, chunk)
        file.order()
    except BaseException as error:
        with suppress(OSError):
            old.put_back(error)
            file.order()
            file.finished()
        raise


def _replace_index(layout: ShardLayout, edit: Edit, file: EditableFile, index_checksum: int) -> int:
    size = file.size
    encoded = layout.encode_index(edit.index)
    record = _record(layout, edit, size, index_checksum, encoded)
    chunks, index = _OldBytes(file), _OldBytes(file)
    file.begin(record)
    try:
        if not record.is_copied and (file.durable or edit.placed):
            file.truncate(record.after.size + 1)  # while the file has this byte too many, the old index counts
        file.write_at(size, [*edit.appended, encoded])
        file.order()
        for offset, chunk in edit.placed:
            chunks.write(offset, chunk)
        if record.is_copied:
            index.write(record.before.at, encoded)
            file.order()
        elif file.size > record.after.size:
            file.truncate(record.after.size)
            file.order()
    except BaseException as error:
        with suppress(OSError):
            if not _restore_index(record, index, file):
                error.add_note("the change takes effect nevertheless: all of it is stored")
            else:
                _restore_chunks(record, chunks, file, error)
        with suppress(OSError):
            file.finished()
        raise
    file.end(record)
    return record.after.checksum


def _restore_index(record: EditRecord, index: _OldBytes, file: EditableFile) -> bool:
    """Have the old index count; return whether it does."""
    try:
        if record.is_copied:
            index.put_back()
        elif file.size == record.after.size:
            file.truncate(record.before.size)
    except OSError:
        return False
    return True


def _restore_chunks(record: EditRecord, chunks: _OldBytes, file: EditableFile, error: BaseException) -> None:
    """Let the file be as it was, where the old index counts."""
    chunks.put_back(error)
    if file.durable:
        file.order()  # before the copy of the index behind the file goes
    file.truncate(record.before.size)
    file.order()  # before the record goes
    file.undone()


class _OldBytes:
    """What stood where an edit writes over a file."""

    def __init__(self, file: EditableFile) -> None:
        self._file = file
        self._old: list[tuple[int, BytesLike]] = []

    def write(self, offset: int, data: BytesLike) -> None:
        """Write ``data`` over what stands at ``offset``."""
        old = self._file.read((offset, len(data)))
        if len(old) < len(data):
            raise OSError(errno.EIO, "the file is shorter than it was")
        self._old.append((offset, old))
        self._file.write_at(offset, [data])

    def put_back(self, error: BaseException | None = None) -> None:
        """Write back what stood there. Go on after a failure, and add a note to ``error``; without it, raise."""
        for offset, data in self._old:
            try:
                self._file.write_at(offset, [data])
            except OSError:
                if self._stands(offset, data):
                    continue
                if error is None:
                    raise
                error.add_note(f"the chunk at byte {offset} is damaged: its old bytes could not be written back")

    def _stands(self, offset: int, data: BytesLike) -> bool:
        try:
            return bytes(self._file.read((offset, len(data)))) == bytes(data)
        except OSError:
            return False


def _record(layout: ShardLayout, edit: Edit, size: int, before: int, after: BytesLike) -> EditRecord:
    start, length = layout.index_bytes(size)
    old = Table(size, start, before)
    size += sum(map(len, edit.appended)) + (0 if layout.index_at_start else length)
    start = size if layout.index_at_start else size - length
    return EditRecord(length, old, Table(size, start, checksum(after)))
