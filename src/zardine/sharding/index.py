r"""The shard index: where each inner chunk lies in its shard (sharding codec 1.0, "Binary shard format").

The index is an array of ``uint64`` of shape ``(*chunks per shard, 2)``: offset and length in bytes of each inner chunk.
Here it is two flat arrays of ``int64``, one row for each inner chunk. The 2**64 - 1 that is stored twice for an inner
chunk that is not there is :data:`MISSING`; other numbers from 2**63 on are negative, and lie outside of every shard.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import google_crc32c
import numpy as np
import numpy.typing as npt

from zardine.buffers import BytesLike, Ints
from zardine.codecs.chain import CodecChain
from zardine.codecs.crc32c import crc32c
from zardine.errors import DataError, ShardIndexError
from zardine.limits import check_size

MISSING: Final = -1
"""Offset and length of a chunk that is not stored and reads as the fill value. The kernel has it too: ``MISSING``."""


@dataclass(frozen=True, slots=True, eq=False)
class ShardIndex:
    """``offsets`` and ``lengths`` in bytes; both :data:`MISSING` for inner chunks that are not stored."""

    offsets: Ints
    lengths: Ints

    def __len__(self) -> int:
        return len(self.offsets)

    @property
    def nbytes(self) -> int:
        """Memory taken."""
        return self.offsets.nbytes + self.lengths.nbytes

    def stored(self) -> npt.NDArray[np.bool_]:
        """Which inner chunks are stored."""
        either: npt.NDArray[np.bool_] = np.logical_or(self.offsets != MISSING, self.lengths != MISSING)
        return either

    def beyond(self, start: int, stop: int) -> npt.NDArray[np.bool_]:
        """Which stored inner chunks do not lie within the bytes ``start`` to ``stop`` (exclusive) of the shard."""
        stop = min(max(stop, 0), 2**63 - 1)
        outside = (self.offsets < start) | (self.offsets > stop) | (self.lengths < 0)
        outside |= self.lengths > stop - np.minimum(self.offsets, stop)
        return outside & self.stored()

    def used(self) -> int:
        """Bytes of all stored inner chunks, whose lengths are known to be possible ones."""
        return int(np.add.reduce(np.maximum(self.lengths, 0)))

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
    return ShardIndex(np.full(count, MISSING, np.int64), np.full(count, MISSING, np.int64))


def as_stored(number: int) -> int:
    """Return an offset or length as the unsigned number that is stored, for messages."""
    return int(number) % 2**64


def decode_index(data: BytesLike, chain: CodecChain) -> ShardIndex:
    """The index that the bytes hold, as its codec ``chain`` decodes them; entries are not yet checked.

    Raises :class:`~zardine.errors.ShardIndexError` or :class:`~zardine.errors.ChecksumError`.
    """
    size = chain.encoded_size
    if len(data) != size:
        raise ShardIndexError(f"the shard index takes {size} bytes, only {len(data)} are there")
    try:
        table = chain.decode(data).reshape(-1, 2).astype(np.uint64, copy=False).view(np.int64)
    except DataError as error:
        raise type(error)(f"the shard index is damaged: {error.reason}", codec=error.codec) from None
    return ShardIndex(table[:, 0].copy(), table[:, 1].copy())


def decode_words(data: BytesLike) -> ShardIndex | None:
    """Return the index that little-endian words hold, with their CRC32C behind them or nothing; ``None`` if it differs.

    The same as :func:`decode_index` makes of the usual codecs of an index, at a tenth of the cost.
    """
    count = len(data) // 16
    words = np.frombuffer(data, "<i8", 2 * count)
    if len(data) > 16 * count and crc32c(memoryview(data)[: 16 * count]) != int.from_bytes(
        data[16 * count :], "little"
    ):
        return None
    table = words.reshape(count, 2)
    return ShardIndex(table[:, 0].copy(), table[:, 1].copy())  # it is kept when what it was read with is not


def encode_words(index: ShardIndex, *, with_checksum: bool) -> bytes:
    """Return the bytes of the index as little-endian words, with their CRC32C behind them or without."""
    words = np.stack([index.offsets, index.lengths], axis=-1).astype("<i8", copy=False).tobytes()
    return words + int(google_crc32c.value(words)).to_bytes(4, "little") if with_checksum else words


def encode_index(index: ShardIndex, chain: CodecChain) -> BytesLike:
    """The bytes of the index."""
    table = np.empty((len(index), 2), np.int64)
    table[:, 0], table[:, 1] = index.offsets, index.lengths
    return chain.encode(table.view(np.uint64).reshape(chain.spec.shape))
