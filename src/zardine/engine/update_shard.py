"""Changing some inner chunks of a stored shard; the others are carried over as the encoded bytes they are.

Three ways, chosen at run time (sharding codec 1.0, "Binary shard format"):

- *rewrite*: a new object replaces the old one atomically. Possible everywhere.
- *append*: the new chunks and a new index go behind what is there, in one write; nothing old is overwritten. A reader
  that comes in between, or a crash, finds an end that is no index: then the index before counts, see
  :mod:`zardine.sharding.recovery`. Where the index is at the start, it is written there after its copy at the end.
- *in_place*: as *append*, but a chunk that is not longer than its old one takes its place. A crash meanwhile leaves a
  chunk that its checksum tells to be torn.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from zardine.buffers import BytesLike
from zardine.engine.change import Change
from zardine.engine.chunk_stack import Encoded, Encoding, decode_stack, encode_stack
from zardine.engine.file_index import index_to_edit
from zardine.engine.held_change import HeldChange
from zardine.engine.index_cache import INDEXES, KnownIndex
from zardine.engine.read import row_batches
from zardine.engine.workers import for_each
from zardine.errors import CorruptionError
from zardine.sharding.index import EMPTY, ShardIndex, empty_index, encode_index
from zardine.sharding.layout import ShardLayout
from zardine.sharding.order import chunk_ranks
from zardine.sharding.recovery import has_checksum
from zardine.stores.base import Condition, EditableFile, FilePart, Reading

_MOST_MERGED = 512
"""Chunks that are decoded together to be changed in part; more of them would take too much memory at once."""

Ints = npt.NDArray[np.int64]
AnyChange = Change | HeldChange
Chunks = dict[int, BytesLike | None]
"""New encoded inner chunks by their row in the index; ``None`` for those that become empty."""


def update_shard(change: AnyChange, layout: ShardLayout, rows: Ints) -> None:
    """Write the chunks of ``change``, which are the ``rows`` of the index, and keep all others."""
    store, key = change.source.store, change.key
    if store.edits_files:
        with store.edit_file(key) as file:
            if file is not None:
                _update_file(change, layout, rows, file)
                return
    old = store.read(key)
    shard = memoryview(b"" if old is None else old.parts[0])
    index = empty_index(layout.count) if old is None else _old_index(layout, shard)
    stored = index.stored()

    def old_chunk(row: int) -> BytesLike | None:
        offset = int(index.offsets[row])
        return shard[offset : offset + int(index.lengths[row])] if stored[row] else None

    new = new_chunks(change, rows, stored, old_chunk)
    merged: list[BytesLike | None] = [new[row] if row in new else old_chunk(row) for row in range(layout.count)]
    order = _order(change, layout, index)
    if any(chunk is not None for chunk in merged):
        store.set(key, layout.assemble(merged, order), condition=condition_of(old))
    elif old is not None and store.lock_is_exclusive:
        store.erase(key)
    elif old is not None:  # to erase cannot be made conditional: another writer's chunks could go with it
        store.set(key, layout.assemble(merged), condition=condition_of(old))
    INDEXES.drop(change.source.cache_space, key)


def new_chunks(
    change: AnyChange, rows: Ints, stored: npt.NDArray[np.bool_], old_chunk: Callable[[int], BytesLike | None]
) -> Chunks:
    """The chunks of ``change``, encoded. ``old_chunk`` gives what is stored of a row, for chunks changed in part."""
    covered = change.covered()
    independent = (covered | ~stored[rows]) if change.fields is None else np.zeros_like(covered)
    fresh = change.encode_fresh(np.flatnonzero(independent), 0, 0) if independent.any() else None
    chunks: Chunks = {}
    left = np.arange(len(rows))
    if fresh is not None:
        chunks.update(zip(rows[independent].tolist(), fresh.chunks(), strict=True))
        left = np.flatnonzero(~independent)
    old = [old_chunk(row) for row in rows[left].tolist()] if 0 < len(left) <= _MOST_MERGED else []
    there = [chunk for chunk in old if chunk is not None]
    if there and len(there) == len(left):
        merged = _merge(change, left, there)
        if merged is not None:
            chunks.update(zip(rows[left].tolist(), merged.chunks(), strict=True))
            return chunks

    def work(batch: range) -> None:
        for i in left[batch.start : batch.stop].tolist():
            row = int(rows[i])
            chunks[row] = change.encode(i, None if covered[i] else old_chunk(row), bool(covered[i]))

    batches = row_batches(change.source, len(left))
    for_each(work, batches, len(batches))
    return chunks


def _merge(change: AnyChange, which: Ints, old: Sequence[BytesLike]) -> Encoded | None:
    """The chunks numbered ``which``, of which ``old`` is what is stored, with the new values in them.

    ``None`` where the kernel cannot, or finds one of them damaged.
    """
    layout = change.source.layout
    if layout.pipeline is None or layout.sharding is None:
        return None
    shape = layout.sharding.chunk_shape
    stack = decode_stack(layout, old, shape)
    if stack is None:
        return None
    for place, i in enumerate(which.tolist()):
        change.put(stack[place * shape[0] : (place + 1) * shape[0]], i)
    encoded = encode_stack(layout, stack, shape, Encoding(change.source.keeps_empty_chunks, change.threads))
    return None if encoded.failed else encoded


@dataclass(frozen=True, slots=True, eq=False)
class _Edit:
    """Where the chunks of an edit go in the file, and the index afterwards."""

    index: ShardIndex
    placed: list[tuple[int, BytesLike]]
    """Offset and bytes of what is written over old chunks."""
    appended: list[BytesLike]
    """What goes to the end of the file, one after the other."""
    moved: bool
    """Whether the index has to be written."""


def _update_file(change: AnyChange, layout: ShardLayout, rows: Ints, file: EditableFile) -> None:
    source, key = change.source, change.key
    index, is_whole = index_to_edit(layout, file)
    stored = index.stored()

    def old_chunk(row: int) -> BytesLike | None:
        return file.read((int(index.offsets[row]), int(index.lengths[row]))) if stored[row] else None

    new = new_chunks(change, rows, stored, old_chunk)
    strategy = source.config.write_strategy
    edit = _plan_edit(index, new, file.size, in_place=strategy == "in_place", is_whole=is_whole)
    if not edit.index.stored().any():
        source.store.erase(key)
        INDEXES.drop(source.cache_space, key)
    elif strategy == "rewrite" or not has_checksum(layout) or _wastes(edit, layout, file, source.config.most_unused):
        _rewrite_file(change, layout, index, new, file)
        INDEXES.drop(source.cache_space, key)
    else:
        _edit_file(layout, edit, file)
        # EMPTY becomes MISSING
        known = KnownIndex(edit.index.offsets.astype(np.int64), edit.index.lengths.astype(np.int64), file.version)
        INDEXES.put(source.cache_space, key, known)


def _plan_edit(index: ShardIndex, new: Chunks, size: int, *, in_place: bool, is_whole: bool) -> _Edit:
    after = ShardIndex(index.offsets.copy(), index.lengths.copy())
    room = _room(index) if in_place else None
    placed: list[tuple[int, BytesLike]] = []
    appended: list[BytesLike] = []
    for row, chunk in new.items():
        if chunk is None:
            after.offsets[row] = after.lengths[row] = EMPTY
        elif room is not None and len(chunk) <= room[row]:
            placed.append((int(index.offsets[row]), chunk))
            after.lengths[row] = len(chunk)
        else:
            after.offsets[row], after.lengths[row] = size, len(chunk)
            appended.append(chunk)
            size += len(chunk)
    moved = bool((after.offsets != index.offsets).any() or (after.lengths != index.lengths).any())
    return _Edit(after, placed, appended, moved or not is_whole)


def _room(index: ShardIndex) -> Ints:
    """For each row, the bytes that only its chunk takes; -1 where it has none, or shares them."""
    room = np.full(len(index), -1, np.int64)
    rows = np.flatnonzero(index.stored())
    order = rows[np.lexsort((index.lengths[rows], index.offsets[rows]))]
    offsets, lengths = index.offsets[order].astype(np.int64), index.lengths[order].astype(np.int64)
    ends = np.maximum.accumulate(offsets + lengths) if len(order) else offsets
    alone = np.ones(len(order), np.bool_)
    shared = ends[:-1] > offsets[1:]
    alone[:-1] &= ~shared
    alone[1:] &= ~shared
    room[order[alone]] = lengths[alone]
    return room


def _wastes(edit: _Edit, layout: ShardLayout, file: EditableFile, most: float) -> bool:
    """Whether more than the share ``most`` of the file would be unused."""
    size = file.size + sum(map(len, edit.appended)) + (0 if layout.index_at_start else layout.index_size)
    stored = edit.index.stored()
    used = int(edit.index.lengths[stored].sum()) + layout.index_size
    return bool(edit.appended or edit.moved) and size - used > most * size


def _edit_file(layout: ShardLayout, edit: _Edit, file: EditableFile) -> None:
    size = file.size
    replaceable = True
    try:
        for offset, chunk in edit.placed:
            file.write_at(offset, [chunk])
        if edit.moved:
            encoded = encode_index(edit.index, layout.index_chain)
            file.write_at(size, [*edit.appended, encoded])
            if layout.index_at_start:
                replaceable = False  # from here on the copy at the end may be all there is
                file.write_at(0, [encoded])
                file.truncate(file.size - layout.index_size)
    except OSError:
        with suppress(OSError):
            if replaceable:
                file.truncate(size)
            file.settle()
        raise
    file.settle()


def _rewrite_file(change: AnyChange, layout: ShardLayout, index: ShardIndex, new: Chunks, file: EditableFile) -> None:
    """Put a new file together from the old one's chunks and the new ones."""
    stored = index.stored()
    order = _order(change, layout, index)
    after = empty_index(layout.count)
    position = layout.index_size if layout.index_at_start else 0
    pieces: list[BytesLike | FilePart] = []
    for row in order.tolist():
        chunk = new.get(row)
        if row in new:
            length = -1 if chunk is None else len(chunk)
        else:
            length = int(index.lengths[row]) if stored[row] else -1
        if length < 0:
            continue
        if chunk is not None:
            pieces.append(chunk)
        else:
            _add_part(pieces, file, int(index.offsets[row]), length)
        after.offsets[row], after.lengths[row] = position, length
        position += length
    encoded = encode_index(after, layout.index_chain)
    whole = [encoded, *pieces] if layout.index_at_start else [*pieces, encoded]
    change.source.store.set_pieces(change.key, whole, condition=Condition(file.version))


def _add_part(pieces: list[BytesLike | FilePart], file: EditableFile, offset: int, length: int) -> None:
    last = pieces[-1] if pieces else None
    if isinstance(last, FilePart) and last.offset + last.length == offset:
        last.length += length
    else:
        pieces.append(FilePart(file, offset, length))


def _order(change: AnyChange, layout: ShardLayout, index: ShardIndex) -> Ints:
    """All rows of the index in the order in which their chunks are to be written."""
    wanted = change.source.config.chunk_order
    if wanted != "as_written":
        return np.argsort(chunk_ranks(layout.grid, layout.strides, wanted))
    # chunks that were not stored have the largest offset there is, and come last
    return np.argsort(index.offsets, kind="stable")


def _old_index(layout: ShardLayout, shard: BytesLike) -> ShardIndex:
    """The index of the stored shard, all of whose entries can be carried over."""
    try:
        index = layout.index_of(shard)
        layout.check(index, len(shard))
    except CorruptionError as error:
        reason = f"the stored shard is damaged, so nothing was written: {error.reason}"
        raise type(error)(reason, codec=error.codec, byte_range=error.byte_range) from None
    return index


def condition_of(old: Reading | None) -> Condition | None:
    """That nobody has written since ``old`` was read; nothing where the store has no versions."""
    if old is None:
        return Condition(None)
    return None if old.version is None else Condition(old.version)
