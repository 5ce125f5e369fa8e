"""The shard index: where each inner chunk lies in its shard (sharding codec 1.0, "Binary shard format").

The index is an array of ``uint64`` of shape ``(*chunks per shard, 2)``: offset and length in bytes of each inner chunk.
Here it is two flat arrays, one row for each inner chunk.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from zardine.buffers import BytesLike
from zardine.codecs.chain import CodecChain
from zardine.errors import DataError, ShardIndexError
from zardine.limits import check_size

UInts: TypeAlias = npt.NDArray[np.uint64]

EMPTY: Final = 2**64 - 1
"""Both offset and length of an inner chunk that is not stored: it is full of the fill value."""


@dataclass(frozen=True, slots=True, eq=False)
class ShardIndex:
    """``offsets`` and ``lengths`` in bytes; both :data:`EMPTY` for inner chunks that are not stored."""

    offsets: UInts
    lengths: UInts

    def __len__(self) -> int:
        return len(self.offsets)

    @property
    def nbytes(self) -> int:
        """Memory taken."""
        return self.offsets.nbytes + self.lengths.nbytes

    def stored(self) -> npt.NDArray[np.bool_]:
        """Which inner chunks are stored."""
        either: npt.NDArray[np.bool_] = np.logical_or(self.offsets != EMPTY, self.lengths != EMPTY)
        return either

    def beyond(self, start: int, stop: int) -> npt.NDArray[np.bool_]:
        """Which stored inner chunks do not lie within the bytes ``start`` to ``stop`` (exclusive) of the shard."""
        stop_ = np.uint64(max(stop, 0))
        outside = (self.offsets < np.uint64(start)) | (self.offsets > stop_)
        outside |= self.lengths > stop_ - np.minimum(self.offsets, stop_)
        return outside & self.stored()

    def take(self, rows: npt.NDArray[Any]) -> ShardIndex:
        """The index of some inner chunks only."""
        return ShardIndex(self.offsets[rows], self.lengths[rows])


def index_memory(count: int) -> int:
    """Bytes of the index of ``count`` inner chunks."""
    return 16 * count


def empty_index(count: int) -> ShardIndex:
    """The index of a shard of ``count`` inner chunks of which none is stored.

    Raises :class:`~zardine.errors.ChunkTooLargeError` where it takes more memory than the settings allow.
    """
    check_size(f"the index of a shard of {count} inner chunks", index_memory(count))
    return ShardIndex(np.full(count, EMPTY, np.uint64), np.full(count, EMPTY, np.uint64))


def decode_index(data: BytesLike, chain: CodecChain) -> ShardIndex:
    """The index that the bytes hold, as its codec ``chain`` decodes them; entries are not yet checked.

    Raises :class:`~zardine.errors.ShardIndexError` or :class:`~zardine.errors.ChecksumError`.
    """
    if len(data) != chain.encoded_size:
        raise ShardIndexError(f"the shard index takes {chain.encoded_size} bytes, only {len(data)} are there")
    try:
        table = chain.decode(data).reshape(-1, 2).astype(np.uint64, copy=False)
    except DataError as error:
        raise type(error)(f"the shard index is damaged: {error.reason}", codec=error.codec) from None
    return ShardIndex(np.ascontiguousarray(table[:, 0]), np.ascontiguousarray(table[:, 1]))


def encode_index(index: ShardIndex, chain: CodecChain) -> BytesLike:
    """The bytes of the index."""
    return chain.encode(np.stack([index.offsets, index.lengths], axis=-1).reshape(chain.spec.shape))
