"""Changing a shard within its file, so that readers can tell at any moment what is whole.

The file is never without a valid index that says what was stored before or after; only what ``in_place`` writes over is
neither for a while. Where power loss counts, bytes reach the disk in any order: then what an index names is synced
before the index is written, and a mark (:data:`~zardine.sharding.torn_writes.UNFINISHED`) tells that it may be torn.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from zardine.buffers import BytesLike
from zardine.errors import ConditionFailedError
from zardine.sharding.index import EMPTY, ShardIndex, encode_index
from zardine.sharding.layout import ShardLayout
from zardine.sharding.torn_writes import UNFINISHED
from zardine.stores.base import EditableFile

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


def plan_edit(index: ShardIndex, new: Chunks, size: int, *, in_place: bool, is_whole: bool) -> Edit:
    """How to put ``new`` chunks into a file of ``size`` bytes; ``is_whole``: the index stands at its place."""
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
    return Edit(after, placed, appended, moved or not is_whole)


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


def wastes(edit: Edit, layout: ShardLayout, file: EditableFile, most: float) -> bool:
    """Whether more than the share ``most`` of the file would be unused."""
    size = file.size + sum(map(len, edit.appended)) + (0 if layout.index_at_start else layout.index_size)
    stored = edit.index.stored()
    used = int(edit.index.lengths[stored].sum()) + layout.index_size
    return bool(edit.appended or edit.moved) and size - used > most * size


def edit_file(layout: ShardLayout, edit: Edit, file: EditableFile) -> None:
    """Do it. After an error the file is as it was, if that is possible, or as after the edit."""
    if not file.is_settled():
        raise ConditionFailedError("another program changed the shard since it was read; nothing was written")
    size = file.size
    encoded = encode_index(edit.index, layout.index_chain) if edit.moved else b""
    replaceable = True
    try:
        for offset, chunk in edit.placed:
            file.write_at(offset, [chunk])
        if edit.moved and file.durable and not layout.index_at_start:
            _append_marked(file, edit.appended, encoded)
        else:
            file.write_at(size, [*edit.appended, encoded])
            file.order()
        if edit.moved and layout.index_at_start:
            replaceable = False  # from here on the copy at the end may be all there is
            file.write_at(0, [encoded])
            file.order()
            file.truncate(file.size - layout.index_size)
    except OSError:
        with suppress(OSError):
            if replaceable:
                file.truncate(size)
                file.order()  # the next edit writes there
            file.settle()
        raise
    file.settle()


def _append_marked(file: EditableFile, chunks: list[BytesLike], index: BytesLike) -> None:
    """Chunks and then the index go to the end; the mark between them stays until all of it is on the disk."""
    file.write_at(file.size, [*chunks, UNFINISHED])
    file.order()
    file.write_at(file.size, [index])
    file.order()
    file.write_at(file.size - len(index) - len(UNFINISHED), [bytes(len(UNFINISHED))])
