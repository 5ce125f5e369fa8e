"""The inner chunks of a stored shard, of which some are about to be changed."""

from __future__ import annotations

import os
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from zardine.buffers import BytesLike
from zardine.errors import CorruptionError
from zardine.sharding.index import ShardIndex, empty_index
from zardine.sharding.layout import ShardLayout
from zardine.stores.base import EditableFile

MISSING = -1
"""Length of a chunk that is not stored, or not needed."""


@dataclass(frozen=True, slots=True, eq=False)
class StoredRows:
    """Where chunks are in ``source``, an open file or bytes. ``table`` holds rows of 0, offset and length in bytes."""

    source: int | BytesLike
    table: npt.NDArray[np.int64]

    def chunk(self, i: int) -> BytesLike | None:
        """The stored bytes of chunk ``i``; ``None`` if there are none."""
        _, offset, length = self.table[i].tolist()
        if length == MISSING:
            return None
        if isinstance(self.source, int):
            return os.pread(self.source, length, offset)
        return memoryview(self.source)[offset : offset + length]


@dataclass(frozen=True, slots=True, eq=False)
class OldChunks:
    """All inner chunks of a shard, whose ``index`` was checked against it."""

    index: ShardIndex
    file: EditableFile | None
    shard: BytesLike
    """All bytes of the shard, where it is no file."""

    def chunk(self, row: int) -> BytesLike | None:
        """The bytes of one inner chunk; ``None`` if it is not stored."""
        return self.rows(np.array([row]), np.ones(1, np.bool_)).chunk(0)

    def rows(self, rows: npt.NDArray[np.int64], needed: npt.NDArray[np.bool_]) -> StoredRows:
        """Where the chunks of some ``rows`` of the index are, as far as they are ``needed``."""
        picked = self.index.take(rows)
        table = np.zeros((len(rows), 3), np.int64)
        table[:, 1] = picked.offsets.astype(np.int64)
        table[:, 2] = np.where(needed & picked.stored(), picked.lengths.astype(np.int64), MISSING)
        return StoredRows(self.shard if self.file is None else self.file.fd, table)


def whole_chunk(data: BytesLike) -> StoredRows:
    """A stored object that is one chunk."""
    return StoredRows(data, np.array([[0, 0, len(data)]], np.int64))


def chunks_of_shard(layout: ShardLayout, shard: BytesLike | None) -> OldChunks:
    """The inner chunks of a shard that was read whole (``None``: there is none), all of which can be carried over."""
    if shard is None:
        return OldChunks(empty_index(layout.count), None, b"")
    try:
        index = layout.checked_index_of(shard)
    except CorruptionError as error:
        reason = f"the stored shard is damaged, so nothing was written: {error.reason}"
        raise type(error)(reason, codec=error.codec, byte_range=error.byte_range) from None
    return OldChunks(index, None, shard)
