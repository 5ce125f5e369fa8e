"""Changing a shard within its file, so that readers can tell at any moment what is whole.

Before anything changes, a record says beside the file which index it has, and which it is to get (see
:mod:`zardine.stores.local.edit_record`). Nothing but what ``in_place`` writes over is changed before the new index is
whole: the one at the end follows the one before, the one at the start is written to the end first. So a shard is as it
was before or after, whenever its writer is killed. Where power loss counts, bytes reach the disk in any order: then
each step is synced before the next. An index that is superseded and still in the file gets a wrong checksum, last of
all.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from zardine.buffers import BytesLike
from zardine.errors import ConditionFailedError
from zardine.sharding.index import MISSING, ShardIndex
from zardine.sharding.layout import ShardLayout
from zardine.stores.base import EditableFile
from zardine.stores.local.edit_record import EditRecord, Table, checksum

Ints = npt.NDArray[np.int64]
Chunks = dict[int, BytesLike | None]
"""New encoded inner chunks by their row in the index; ``None`` for those that become empty."""


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


def edit_file(layout: ShardLayout, edit: Edit, file: EditableFile, before: int) -> int:
    """Do it, where ``before`` is the checksum of the index that stands in the file; gives that of the one afterwards.

    After an error the file is as it was, if that is possible, or as after the edit.
    """
    if not file.is_settled():
        raise ConditionFailedError("another program changed the shard since it was read; nothing was written")
    after = before
    if edit.moved:
        after = _replace_index(layout, edit, file, before)
    else:
        file.check_whole()
        _write_over(edit, file)
        file.order()
    file.settle()
    return after


def _write_over(edit: Edit, file: EditableFile) -> None:
    for offset, chunk in edit.placed:
        file.write_at(offset, [chunk])


def _replace_index(layout: ShardLayout, edit: Edit, file: EditableFile, before: int) -> int:
    size = file.size
    encoded = layout.encode_index(edit.index)
    record = _record(layout, edit, size, before, encoded)
    file.begin(record)
    replaceable = True
    try:
        _write_over(edit, file)
        if layout.index_at_start:
            file.write_at(size, [*edit.appended, encoded])
            file.order()
            replaceable = False  # from here on the copy at the end may be all there is
            file.write_at(0, [encoded])
            file.order()
            file.truncate(record.after.size)
        else:
            file.extend(record.after.size, size, [*edit.appended, encoded])
    except OSError:
        with suppress(OSError):
            if replaceable:
                file.truncate(size)
                file.order()  # before the record goes
                file.undone()
            file.settle()
        raise
    file.end(record)
    return record.after.checksum


def _record(layout: ShardLayout, edit: Edit, size: int, before: int, after: BytesLike) -> EditRecord:
    start, length = layout.index_bytes(size)
    old = Table(size, start, before)
    size += sum(map(len, edit.appended)) + (0 if layout.index_at_start else length)
    start = size if layout.index_at_start else size - length
    return EditRecord(length, old, Table(size, start, checksum(after)))
