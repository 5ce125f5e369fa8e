"""How one shard is laid out: its inner chunks, its index and where that lies. Values only; no I/O."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from zardine.buffers import BytesLike
from zardine.codecs.bytes_codec import BytesCodec
from zardine.codecs.chain import CodecChain
from zardine.codecs.crc32c import Crc32cCodec
from zardine.errors import DataError, ShardIndexError
from zardine.limits import check_size
from zardine.sharding.index import (
    MISSING,
    ShardIndex,
    as_stored,
    decode_index,
    decode_words,
    empty_index,
    encode_index,
    encode_words,
    index_memory,
)

Read: TypeAlias = Callable[[tuple[int, int]], BytesLike]
"""Gives bytes of a shard, by their offset and length."""

IsChunk: TypeAlias = Callable[[Read, int, int], bool]
"""Says of a shard, and an offset and a length in it, whether an inner chunk may be there."""

Span: TypeAlias = tuple[int, int]
"""Offset and length of bytes that are carried over from another shard."""


@dataclass(frozen=True, slots=True, eq=False)
class MergedShard:
    """A shard that is made of chunks of another one and of new ones."""

    index: ShardIndex
    encoded_index: BytesLike
    pieces: list[BytesLike | Span]
    """What it consists of, one after the other, its encoded index included."""

    def joined(self, old: BytesLike) -> bytes:
        """Its bytes; spans are those of ``old``."""
        view = memoryview(old)
        return b"".join(
            view[piece[0] : piece[0] + piece[1]] if isinstance(piece, tuple) else piece for piece in self.pieces
        )


@dataclass(frozen=True, slots=True, eq=False)
class ShardLayout:
    """A shard of ``grid`` inner chunks.

    ``strides`` tells how many rows of the index lie between inner chunks that are neighbours along each axis.
    """

    grid: tuple[int, ...]
    strides: tuple[int, ...]
    index_chain: CodecChain
    index_at_start: bool
    is_draft: bool = False
    """Whether the document has the form of the draft of March 2023, whose index has no checksum."""
    is_chunk: IsChunk | None = None
    """Set where bytes of inner chunks may look like an index: they may have one of the same size in them (shards in
    shards), or have its size. Then a shard of which bytes are missing can end in what is a valid index, but not its
    own. That index says nothing of the chunks of the shard: none of them is where it says.
    """

    count: int = field(init=False)
    """Number of inner chunks, stored or not."""
    index_size: int = field(init=False)
    """Bytes of the encoded index."""
    index_range: tuple[int, int | None] = field(init=False)
    """The byte range of the index, as stores take it: a prefix or a suffix of the shard."""
    index_memory: int = field(init=False)
    """Bytes of the index, encoded or decoded."""
    has_checksum: bool = field(init=False)
    """Whether damage of the index is noticed."""
    has_words: bool = field(init=False)
    """Whether the index is stored in the usual way: as little-endian words, with a CRC32C behind them or nothing."""

    def __post_init__(self) -> None:
        count, size = prod(self.grid), self.index_chain.encoded_size
        assert size is not None
        compressors, order = self.index_chain.compressors, self.index_chain.serializer
        has_checksum = any(isinstance(codec, Crc32cCodec) for codec in compressors)
        worked_out = {
            "count": count,
            "index_size": size,
            "index_range": (0, size) if self.index_at_start else (-size, None),
            "index_memory": max(size, index_memory(count)),
            "has_checksum": has_checksum,
            "has_words": isinstance(order, BytesCodec)
            and order.endian == "little"
            and not self.index_chain.filters
            and len(compressors) == has_checksum,
        }
        for name, value in worked_out.items():
            object.__setattr__(self, name, value)

    def check_memory(self) -> None:
        """Raise :class:`~zardine.errors.ChunkTooLargeError` where the index takes more memory than settings allow."""
        check_size(f"the index of a shard of {self.count} inner chunks", self.index_memory)

    def check_too_short(self, size: int) -> None:
        """Raise :class:`~zardine.errors.ShardIndexError` for a shard of ``size`` bytes that cannot hold its index."""
        if size < self.index_size:
            raise ShardIndexError(self.too_short(size))

    def position_of(self, row: int) -> tuple[int, ...]:
        """The place in the shard of the inner chunk in a row of the index."""
        return tuple(row // stride % count for stride, count in zip(self.strides, self.grid, strict=True))

    def index_bytes(self, size: int) -> tuple[int, int]:
        """Offset and length of the index in a shard of ``size`` bytes."""
        return (0 if self.index_at_start else size - self.index_size), self.index_size

    def data_bounds(self, size: int) -> tuple[int, int]:
        """First and last byte (exclusive) that inner chunks of a shard of ``size`` bytes may take."""
        return (self.index_size, size) if self.index_at_start else (0, size - self.index_size)

    def decode_index(self, data: BytesLike, size: int | None = None) -> ShardIndex:
        """Return the index of a shard of ``size`` bytes that ``data`` holds; its entries are not checked.

        Raises :class:`~zardine.errors.ShardIndexError` or :class:`~zardine.errors.ChecksumError`.
        """
        found = decode_words(data) if self.has_words and len(data) == self.index_size else None
        if found is not None:
            return found
        if size is not None:
            self.check_too_short(size)
        try:
            return decode_index(data, self.index_chain)
        except DataError as error:
            raise error if size is None else error.at(byte_range=self.index_bytes(size)) from None

    def encode_index(self, index: ShardIndex) -> BytesLike:
        """Return the bytes of the index."""
        if self.has_words:
            return encode_words(index, with_checksum=self.has_checksum)
        return encode_index(index, self.index_chain)

    def index_of(self, shard: BytesLike) -> ShardIndex:
        """The index of a whole shard; its entries are not yet checked."""
        start, length = self.index_bytes(len(shard))
        self.check_too_short(len(shard))
        return self.decode_index(memoryview(shard)[start : start + length], len(shard))

    def checked_index_of(self, shard: BytesLike) -> ShardIndex:
        """The index of a whole shard, checked against it."""
        index = self.index_of(shard)
        self.check(index, len(shard), reader(shard))
        return index

    def check(self, index: ShardIndex, size: int, read: Read) -> None:
        """Refuse an index that cannot be the one of a shard of ``size`` bytes, which ``read`` reads.

        It cannot if any entry points outside of the data. One such entry makes all others doubtful: bytes lost in
        front of a shard shift every inner chunk. Nor can it if :attr:`is_chunk` says so of all that it names. Raises
        :class:`~zardine.errors.ShardIndexError`.
        """
        outside = index.beyond(*self.data_bounds(size))
        if outside.any():
            row = int(np.flatnonzero(outside)[0])
            offset, length = as_stored(index.offsets[row]), as_stored(index.lengths[row])
            raise ShardIndexError(
                f"the shard index places inner chunk {self.position_of(row)} of the shard at offset {offset}, length "
                f"{length}: outside the data of a shard of {size} bytes{self.remark}"
            )

        if self.is_chunk is not None and not self._names_chunks(index, size, read, self.is_chunk):
            raise ShardIndexError(
                "what stands at the place of the shard index is not the index of this shard, but bytes of one of its "
                "chunks: a part of the shard is missing"
            )

    def too_short(self, size: int) -> str:
        """What is said of a shard of ``size`` bytes, which has no room for its index."""
        return f"the shard has {size} bytes, too few for its index of {self.index_size}{self.remark}"

    @property
    def remark(self) -> str:
        """What errors of the index end with: how it was read, where that may be the reason."""
        return _AS_DRAFT if self.is_draft else ""

    def _names_chunks(self, index: ShardIndex, size: int, read: Read, is_chunk: IsChunk) -> bool:
        """Whether one of the stored chunks is where the index says; of a shard without any, that nothing is in it."""
        rows = np.flatnonzero(index.stored())
        if not len(rows):
            return size == self.index_size
        places = zip(index.offsets[rows].tolist(), index.lengths[rows].tolist(), strict=True)
        return any(is_chunk(read, offset, length) for offset, length in places)

    def assemble(self, chunks: Sequence[BytesLike | None], order: npt.NDArray[np.int64] | None = None) -> bytes:
        """A shard that holds the encoded inner ``chunks``, given by the rows of the index.

        They lie one after the other in that order, or in ``order``, which lists all rows.
        """
        return self.merged(empty_index(self.count), dict(enumerate(chunks)), order).joined(b"")

    def merged(
        self, old: ShardIndex, new: Mapping[int, BytesLike | None], order: npt.NDArray[np.int64] | None = None
    ) -> MergedShard:
        """A shard with the ``new`` chunks, by their rows (``None``: not stored), and all others of the ``old`` one.

        They lie one after the other in the order of the index, or in ``order``, which lists all rows. Work in Python is
        for the new chunks and for what is not adjacent among the old ones.
        """
        changed = np.fromiter(new, np.int64, len(new))
        is_new = np.zeros(self.count, np.bool_)
        is_new[changed] = True
        lengths = np.where(old.stored(), old.lengths, MISSING)
        lengths[changed] = [MISSING if chunk is None else len(chunk) for chunk in new.values()]
        order = np.flatnonzero(lengths >= 0) if order is None else order[lengths[order] >= 0]
        sizes, is_new = lengths[order], is_new[order]
        ends = np.cumsum(sizes) + (self.index_size if self.index_at_start else 0)
        index = ShardIndex(np.full(self.count, MISSING), np.full(self.count, MISSING))
        index.offsets[order], index.lengths[order] = ends - sizes, sizes
        encoded = self.encode_index(index)
        pieces: list[BytesLike | Span] = [encoded] if self.index_at_start else []
        if len(order):
            starts = old.offsets[order]
            apart = is_new[1:] | is_new[:-1] | (starts[1:] != starts[:-1] + sizes[:-1])
            firsts = np.flatnonzero(np.concatenate(([True], apart)))
            rows, fresh = order[firsts].tolist(), is_new[firsts].tolist()
            spans = starts[firsts].tolist(), np.add.reduceat(sizes, firsts).tolist()
            for row, is_fresh, start, length in zip(rows, fresh, *spans, strict=True):
                chunk = new[row] if is_fresh else None
                pieces.append((start, length) if chunk is None else chunk)
        if not self.index_at_start:
            pieces.append(encoded)
        return MergedShard(index, encoded, pieces)


_AS_DRAFT = ' (read as the draft of March 2023 has it, since the document has no "index_codecs")'


def reader(shard: BytesLike) -> Read:
    """Reads a whole shard in memory."""
    view = memoryview(shard)
    return lambda part: view[part[0] : sum(part)]


def c_strides(grid: Sequence[int]) -> tuple[int, ...]:
    """Strides of an index laid out in C order."""
    strides = [1] * len(grid)
    for axis in range(len(grid) - 2, -1, -1):
        strides[axis] = strides[axis + 1] * grid[axis + 1]
    return tuple(strides)
