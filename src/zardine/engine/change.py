"""What is to be written to one stored object, what is stored of it, and the encoded chunks that come of both.

The values are those of one call (:class:`Change`), or those that a buffer collected (:class:`HeldChange`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from zardine.buffers import BytesLike
from zardine.engine.border import Settled
from zardine.engine.chunk_stack import Encoded, Encoding, StoredRows, decode_stack, encode, encode_stack
from zardine.engine.layout import ArrayLayout
from zardine.engine.read import decode_chunk
from zardine.engine.source import ArraySource
from zardine.engine.write_buffer import HeldChunk
from zardine.errors import CorruptionError, DataError
from zardine.indexing.plan import ChunkPlan, ObjectPart, PointPlan
from zardine.sharding.index import MISSING, ShardIndex
from zardine.sharding.layout import ShardLayout
from zardine.stores.base import EditableFile

# what is stored


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


# what one call writes


@dataclass(frozen=True, slots=True, eq=False)
class Change:
    """The values of a plan that belong to one object."""

    source: ArraySource
    plan: ChunkPlan
    part: ObjectPart
    key: str
    layout: ShardLayout | None
    values: npt.NDArray[Any]
    fields: str | list[str] | None
    threads: int
    settled: Settled | None = None
    """Where what the object holds beyond the array is to give way to the fill value."""

    def covered(self) -> npt.NDArray[np.bool_]:
        """Which chunks need nothing of what is stored.

        Not those that reach beyond the array, unless that is settled: another writer may have made it longer, and have
        stored values there.
        """
        keeps = self.source.watched and self.settled is None
        whole = self.part.whole() if keeps else self.part.covered()
        return whole if self.fields is None else np.zeros_like(whole)

    def heals(self) -> npt.NDArray[np.bool_]:
        """Which chunks may be damaged, since all of their elements that lie in the array get new values."""
        covered = self.part.covered()
        return covered if self.fields is None else np.zeros_like(covered)

    def encode(self, i: int, old: BytesLike | None, covered: bool) -> BytesLike | None:
        """Chunk ``i`` with the new values in it, encoded; ``None`` if it is to be left out as empty."""
        source, part = self.source, self.part
        chain = source.layout.chain(part.chunk_shape(i))
        chain.check_memory()
        new = self.values[part.outer(i)]
        if covered and new.shape == chain.spec.shape and all(isinstance(each, slice) for each in part.inner(i)):
            chunk = new  # the whole chunk, in order: no copy is needed
        elif old is None or covered:
            chunk = np.empty(chain.spec.shape, chain.spec.dtype)
            chunk[...] = chain.spec.fill
            self._put(chunk, i, new)
        else:
            chunk = self._decoded(i, old)
            if not chunk.flags.writeable or not chunk.flags.owndata:
                chunk = chunk.copy()
            self._put(chunk, i, new)
        if not source.keeps_empty_chunks and chain.is_fill(chunk):
            return None
        try:
            return chain.encode(chunk, keep_empty=source.keeps_empty_chunks)
        except DataError as error:
            raise error.at(array=source.path, key=self.key, chunk=part.chunk(i)) from None

    def _decoded(self, i: int, old: BytesLike) -> npt.NDArray[Any]:
        try:
            return decode_chunk(self.source, self.part, i, old, self.key)
        except CorruptionError:
            if not self.heals()[i]:
                raise
        spec = self.source.layout.chain(self.part.chunk_shape(i)).spec
        return np.full(spec.shape, spec.fill, spec.dtype)

    def encode_many(
        self, which: npt.NDArray[np.int64], old: StoredRows | None = None, *, head: int = 0, tail: int = 0
    ) -> Encoded | None:
        """The chunks numbered ``which``, in this order, with the new values in what ``old`` says is stored of them.

        All in one call of the kernel. ``None`` where it cannot, or finds one that is stored to be damaged.
        """
        pipeline = self.source.layout.pipeline
        if pipeline is None or self.fields is not None or isinstance(self.plan, PointPlan):
            return None
        if not self.source.layout.fits_memory:
            return None
        how = Encoding(self.source.keeps_empty_chunks, self.threads, head, tail)
        encoded = encode(pipeline, self.values, self.part.rows()[which], self.plan.kernel_axes(), how, old)
        if old is not None and encoded.failed:
            return None
        encoded.raise_if_failed(lambda job: self.part.chunk(int(which[job])))
        return encoded

    def _put(self, chunk: npt.NDArray[Any], i: int, new: npt.NDArray[Any]) -> None:
        target: npt.NDArray[Any] = chunk if self.fields is None else chunk[self.fields]
        target[self.part.inner(i)] = new


# what a buffer collected


_MOST_DECODED = 512
"""Chunks that are decoded together to be changed in part; more of them would take too much memory at once."""


@dataclass(frozen=True, slots=True, eq=False)
class HeldPart:
    """Chunks of the object at the grid coordinates ``object``, with their rows in its index."""

    object: tuple[int, ...]
    rows: tuple[int, ...]
    chunks: tuple[HeldChunk, ...]

    @property
    def count(self) -> int:
        """How many chunks."""
        return len(self.chunks)

    def positions(self, strides: tuple[int, ...]) -> npt.NDArray[np.int64]:
        """The place of each chunk in the object's index."""
        return np.array(self.rows, np.int64)

    def chunk(self, i: int) -> tuple[int, ...]:
        """Grid coordinates of chunk ``i``."""
        return self.chunks[i].chunk


@dataclass(frozen=True, slots=True, eq=False)
class HeldChange:
    """What a buffer holds for one object."""

    source: ArraySource
    part: HeldPart
    key: str
    layout: ShardLayout | None
    threads: int
    settled: Settled | None = None
    fields: None = None

    def covered(self) -> npt.NDArray[np.bool_]:
        """Which chunks need nothing of what is stored. As for :class:`~zardine.engine.change.Change`."""
        if self.settled is not None:
            return self.heals()
        return np.array([chunk.covers() for chunk in self.part.chunks], np.bool_)

    def heals(self) -> npt.NDArray[np.bool_]:
        """Which chunks may be damaged, since all of their elements that lie in the array get new values."""
        chunks = self.source.layout.grids.chunks
        return np.array([held.covers(held.inside(chunks)) for held in self.part.chunks], np.bool_)

    def encode(self, i: int, old: BytesLike | None, covered: bool) -> BytesLike | None:
        """Chunk ``i`` with the new values in it, encoded; ``None`` if it is to be left out as empty."""
        held = self.part.chunks[i]
        chain = self.source.layout.chain(held.values.shape)
        chunk = held.values
        try:
            if old is not None and held.mask is not None:
                chunk = self._merged(held, chain.decode, old)
            if not self.source.keeps_empty_chunks and chain.is_fill(chunk):
                return None
            return chain.encode(chunk, keep_empty=self.source.keeps_empty_chunks)
        except DataError as error:
            raise error.at(array=self.source.path, key=self.key, chunk=held.chunk) from None

    def encode_many(
        self, which: npt.NDArray[np.int64], old: StoredRows | None = None, *, head: int = 0, tail: int = 0
    ) -> Encoded | None:
        """The chunks numbered ``which``, in this order, with the new values in what ``old`` says is stored of them.

        All in one call of the kernel. ``None`` where it cannot, or finds one that is stored to be damaged.
        """
        layout = self.source.layout
        held = [self.part.chunks[i] for i in which.tolist()]
        shape = held[0].values.shape
        if layout.pipeline is None or any(chunk.values.shape != shape for chunk in held):
            return None
        stack = np.concatenate([chunk.values for chunk in held])
        if old is not None and not _fill_gaps(layout, stack, held, old):
            return None
        encoded = encode_stack(layout, stack, shape, Encoding(self.source.keeps_empty_chunks, self.threads, head, tail))
        if old is not None and encoded.failed:
            return None
        encoded.raise_if_failed(lambda job: self.part.chunk(int(which[job])))
        return encoded

    def _merged(
        self, held: HeldChunk, decode: Callable[[BytesLike], npt.NDArray[Any]], old: BytesLike
    ) -> npt.NDArray[Any]:
        """The new values in the ``old`` ones; these may be damaged where all that is in the array is new."""
        assert held.mask is not None
        try:
            return np.where(held.mask, held.values, decode(old))
        except CorruptionError:
            if held.covers(held.inside(self.source.layout.grids.chunks)):
                return held.values
            raise


def _fill_gaps(layout: ArrayLayout, stack: npt.NDArray[Any], held: list[HeldChunk], old: StoredRows) -> bool:
    """Put what is stored of chunks changed in part into ``stack``, where they have gaps; ``False`` if that fails."""
    partial = np.flatnonzero(old.table[:, 2] != MISSING).tolist()
    if len(partial) > _MOST_DECODED:
        return False
    if partial:
        shape = held[0].values.shape
        stored = [chunk for chunk in map(old.chunk, partial) if chunk is not None]
        decoded = decode_stack(layout, stored, shape)
        if decoded is None:
            return False
        tiles, new = decoded.reshape(-1, *shape), stack.reshape(-1, *shape)
        for tile, i in zip(tiles, partial, strict=True):
            mask = held[i].mask
            if mask is not None:
                np.copyto(new[i], tile, where=~mask)
    return True
