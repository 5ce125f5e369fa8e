"""The inner chunks of a stored shard, of which some are about to be changed."""

from __future__ import annotations

import os
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from zardine.buffers import BytesLike
from zardine.sharding.index import MISSING, ShardIndex
from zardine.stores.base import EditableFile


@dataclass(frozen=True, slots=True, eq=False)
class StoredRows:
    """Where chunks are in ``source``, an open file or bytes. ``table`` holds rows of 0, offset and length in bytes.

    The length is :data:`~zardine.sharding.index.MISSING` of chunks that are not stored, or not needed.
    """

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
        table[:, 1] = picked.offsets
        table[:, 2] = np.where(needed & picked.stored(), picked.lengths, MISSING)
        return StoredRows(self.shard if self.file is None else self.file.fd, table)


def whole_chunk(data: BytesLike) -> StoredRows:
    """A stored object that is one chunk."""
    return StoredRows(data, np.array([[0, 0, len(data)]], np.int64))
