"""How one shard is laid out: its inner chunks, its index and where that lies. Values only; no I/O."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import prod

import numpy as np
import numpy.typing as npt

from zardine.buffers import BytesLike
from zardine.codecs.chain import CodecChain
from zardine.errors import DataError, ShardIndexError
from zardine.sharding.index import ShardIndex, decode_index, empty_index, encode_index


@dataclass(frozen=True, slots=True, eq=False)
class ShardLayout:
    """A shard of ``grid`` inner chunks.

    ``strides`` tells how many rows of the index lie between inner chunks that are neighbours along each axis.
    """

    grid: tuple[int, ...]
    strides: tuple[int, ...]
    index_chain: CodecChain
    index_at_start: bool

    @property
    def count(self) -> int:
        """Number of inner chunks, stored or not."""
        return prod(self.grid)

    @property
    def index_size(self) -> int:
        """Bytes of the encoded index."""
        assert self.index_chain.encoded_size is not None
        return self.index_chain.encoded_size

    @property
    def index_range(self) -> tuple[int, int | None]:
        """The byte range of the index, as stores take it: a prefix or a suffix of the shard."""
        return (0, self.index_size) if self.index_at_start else (-self.index_size, None)

    def index_bytes(self, size: int) -> tuple[int, int]:
        """Offset and length of the index in a shard of ``size`` bytes."""
        return (0 if self.index_at_start else size - self.index_size), self.index_size

    def data_bounds(self, size: int) -> tuple[int, int]:
        """First and last byte (exclusive) that inner chunks of a shard of ``size`` bytes may take."""
        return (self.index_size, size) if self.index_at_start else (0, size - self.index_size)

    def index_of(self, shard: BytesLike) -> ShardIndex:
        """The index of a whole shard; its entries are not yet checked."""
        if len(shard) < self.index_size:
            raise ShardIndexError(f"the shard has {len(shard)} bytes, too few for its index of {self.index_size}")
        start, length = self.index_bytes(len(shard))
        try:
            return decode_index(memoryview(shard)[start : start + length], self.index_chain)
        except DataError as error:
            raise error.at(byte_range=(start, length)) from None

    def check(self, index: ShardIndex, size: int) -> None:
        """Refuse an index of which any entry points outside the data of a shard of ``size`` bytes.

        One such entry makes all others doubtful: bytes lost in front of a shard shift every inner chunk. Raises
        :class:`~zardine.errors.ShardIndexError`.
        """
        outside = index.beyond(*self.data_bounds(size))
        if outside.any():
            row = int(np.flatnonzero(outside)[0])
            position = tuple(row // stride % count for stride, count in zip(self.strides, self.grid, strict=True))
            raise ShardIndexError(
                f"the shard index places inner chunk {position} of the shard at offset {index.offsets[row]}, length "
                f"{index.lengths[row]}: outside the data of a shard of {size} bytes"
            )

    def assemble(self, chunks: Sequence[BytesLike | None], order: npt.NDArray[np.int64] | None = None) -> bytes:
        """A shard that holds the encoded inner ``chunks``, given by the rows of the index.

        They lie one after the other in that order, or in ``order``, which lists all rows.
        """
        first = self.index_size if self.index_at_start else 0
        index = empty_index(self.count)
        listed = range(self.count) if order is None else order.tolist()
        rows = [row for row in listed if chunks[row] is not None]
        stored = [chunk for chunk in map(chunks.__getitem__, rows) if chunk is not None]
        lengths = [len(chunk) for chunk in stored]
        index.lengths[rows] = np.array(lengths, np.uint64)
        index.offsets[rows] = np.array([*accumulate(lengths, initial=first)][:-1], np.uint64)
        encoded = encode_index(index, self.index_chain)
        return b"".join((encoded, *stored) if self.index_at_start else (*stored, encoded))


def c_strides(grid: Sequence[int]) -> tuple[int, ...]:
    """Strides of an index laid out in C order."""
    strides = [1] * len(grid)
    for axis in range(len(grid) - 2, -1, -1):
        strides[axis] = strides[axis + 1] * grid[axis + 1]
    return tuple(strides)
