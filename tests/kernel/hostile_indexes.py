"""Hostile bytes for the shard index: what is accepted has to lie in the shard, entry by entry."""

from __future__ import annotations

import google_crc32c
import numpy as np

from zardine.codecs import BytesCodec, Crc32cCodec, ShardingCodec
from zardine.codecs.base import ChunkSpec
from zardine.codecs.sharding_indexed import prepare_sharding
from zardine.data_types import data_type_for
from zardine.errors import CorruptionError
from zardine.json_document import Problems
from zardine.sharding.layout import ShardLayout, reader

EMPTY = 2**64 - 1
_INTERESTING = (0, 1, 15, 16, 100, 2**31, 2**32, 2**62, 2**63 - 1, 2**63, EMPTY - 16, EMPTY - 1, EMPTY)


class HostileIndex:
    """One way to lay out a shard's index, and shards of it that are damaged."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        self.count = int(rng.choice([1, 2, 7, 64, 500]))
        self.endian = "little" if rng.random() < 0.5 else "big"
        self.summed = bool(rng.random() < 0.5)
        location = "start" if rng.random() < 0.5 else "end"
        index_codecs = (BytesCodec(endian=self.endian), *([Crc32cCodec()] if self.summed else []))
        codec = ShardingCodec(
            chunk_shape=(1,), codecs=(BytesCodec(endian=None),), index_codecs=index_codecs, index_location=location
        )
        spec = ChunkSpec((self.count,), data_type_for("uint8"), np.zeros((), np.uint8))
        prepared = prepare_sharding(codec, spec, Problems())
        assert prepared is not None
        self.layout: ShardLayout = prepared.layout

    def shard(self) -> bytes:
        """A shard with an index that is right, hostile or damaged."""
        rng = self.rng
        body = int(rng.integers(0, 2000))
        start = self.layout.index_size if self.layout.index_at_start else 0
        offsets = start + rng.integers(0, body + 1, self.count).astype(np.uint64)
        lengths = rng.integers(0, 1 + (start + body - offsets.astype(np.int64))).astype(np.uint64)
        table = np.column_stack((offsets, lengths))
        table[rng.random(self.count) < 0.2] = EMPTY
        if rng.random() < 0.5:
            hostile = rng.random(table.shape) < 1 / (1 + self.count)
            size = start + body
            table[hostile] = rng.choice(np.array([*_INTERESTING, size, size + 1], np.uint64), hostile.sum())
        index = table.astype("<u8" if self.endian == "little" else ">u8").tobytes()
        if self.summed:
            index += google_crc32c.value(index).to_bytes(4, "little")
        if rng.random() < 0.3:
            damaged = bytearray(index)
            damaged[int(rng.integers(len(index)))] ^= 1 << int(rng.integers(8))
            index = bytes(damaged)
        shard = index + bytes(body) if self.layout.index_at_start else bytes(body) + index
        return shard if rng.random() < 0.9 else shard[: int(rng.integers(len(shard)))]

    def is_accepted(self, shard: bytes) -> bool:
        """Whether the index of ``shard`` passes; fails if that is wrong."""
        try:
            index = self.layout.index_of(shard)
            self.layout.check(index, len(shard), reader(shard))
        except CorruptionError:
            assert not self.is_right(shard), f"refused: {shard.hex()}"
            return False
        assert self.is_right(shard), f"accepted: {shard.hex()}"
        assert np.column_stack((index.offsets, index.lengths)).view(np.uint64).tolist() == self.table(shard)
        return True

    def is_right(self, shard: bytes) -> bool:
        """The same, told with other means."""
        size = 16 * self.count + 4 * self.summed
        if len(shard) < size:
            return False
        low, high = (size, len(shard)) if self.layout.index_at_start else (0, len(shard) - size)
        stored = shard[:size] if self.layout.index_at_start else shard[-size:]
        if self.summed and google_crc32c.value(stored[:-4]) != int.from_bytes(stored[-4:], "little"):
            return False
        return all(
            (offset, length) == (EMPTY, EMPTY) or (low <= offset and offset + length <= high)
            for offset, length in self.table(shard)
        )

    def table(self, shard: bytes) -> list[list[int]]:
        """Offset and length of each inner chunk."""
        size = 16 * self.count + 4 * self.summed
        start = 0 if self.layout.index_at_start else len(shard) - size
        words = np.frombuffer(shard, "<u8" if self.endian == "little" else ">u8", 2 * self.count, start)
        return words.reshape(-1, 2).tolist()
