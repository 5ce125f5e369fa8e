"""What is to be written to one stored object, what is stored of it, and the encoded chunks that come of both.

The values are those of one call (:class:`Change`), or those that a buffer collected (:class:`PendingChange`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from zardine.buffers import BytesLike
from zardine.codecs.chain import CodecChain
from zardine.engine.chunk_stack import decode_stack, stack_axes
from zardine.engine.handle import ArrayHandle
from zardine.engine.layout import ArrayLayout
from zardine.engine.read import decode_chunk
from zardine.engine.write_buffer import PendingChunk
from zardine.errors import CorruptionError, DataError, EncodeError
from zardine.indexing.plan import ChunkPlan, ObjectPart, PointPlan
from zardine.sharding.index import MISSING, ShardIndex
from zardine.sharding.layout import ShardLayout
from zardine.stores.base import EditableFile, Version
from zardine.stores.file_calls import read_part

# what is stored


@dataclass(frozen=True, slots=True, eq=False)
class StoredRows:
    """Where chunks are in ``buffer``, an open file or bytes. ``table`` holds rows of 0, offset and length in bytes.

    The length is :data:`~zardine.sharding.index.MISSING` of chunks that are not stored, or not needed.
    """

    buffer: int | BytesLike
    table: npt.NDArray[np.int64]

    def chunk(self, i: int) -> BytesLike | None:
        """The stored bytes of chunk ``i``; ``None`` if there are none."""
        _, offset, length = self.table[i].tolist()
        if length == MISSING:
            return None
        if isinstance(self.buffer, int):
            return read_part(self.buffer, offset, length)
        return memoryview(self.buffer)[offset : offset + length]


@dataclass(frozen=True, slots=True, eq=False)
class OldChunks:
    """All inner chunks of a shard, whose ``index`` was checked against it."""

    index: ShardIndex
    file: EditableFile | None
    shard: BytesLike
    """All bytes of the shard, where it is no file."""

    def rows(self, rows: npt.NDArray[np.int64], needed: npt.NDArray[np.bool_]) -> StoredRows:
        """Where the chunks of some ``rows`` of the index are, as far as they are ``needed``."""
        picked = self.index.take(rows)
        table = np.zeros((len(rows), 3), np.int64)
        table[:, 1] = picked.offsets
        table[:, 2] = np.where(needed & picked.stored(), picked.lengths, MISSING)
        return StoredRows(self.shard if self.file is None else self.file.fd_to_read(), table)


def whole_chunk(data: BytesLike) -> StoredRows:
    """A stored object that is one chunk."""
    return StoredRows(data, np.array([[0, 0, len(data)]], np.int64))


# what the kernel encodes


@dataclass(frozen=True, slots=True, eq=False)
class Encoding:
    """How the kernel is to encode chunks."""

    write_empty: bool
    threads: int
    head: int = 0
    tail: int = 0
    """Bytes to leave in front of the chunks and behind them."""


@dataclass(frozen=True, slots=True, eq=False)
class Encoded:
    """Encoded chunks one after the other in ``data``; offset and length are :data:`MISSING` for those left out."""

    data: bytearray
    offsets: npt.NDArray[np.int64]
    lengths: npt.NDArray[np.int64]
    failed: list[tuple[int, str]]
    """Numbers of the chunks that could not be encoded, each with the reason."""

    def chunks(self) -> list[BytesLike | None]:
        """Return the bytes of each chunk."""
        view = memoryview(self.data)
        found: list[BytesLike | None] = []
        for offset, length in zip(self.offsets.tolist(), self.lengths.tolist(), strict=True):
            found.append(None if length == MISSING else view[offset : offset + length])
        return found

    def raise_first(self, name: Callable[[int], tuple[int, ...]]) -> NoReturn:
        """Raise :class:`~zardine.errors.EncodeError` for the first that failed; ``name`` gives its grid coordinates."""
        job, reason = self.failed[0]
        raise EncodeError(reason, chunk=name(job))


def encode(
    pipeline: Any,
    values: npt.NDArray[Any],
    jobs: npt.NDArray[np.int64],
    axes: list[tuple[object, ...]],
    how: Encoding,
    old: StoredRows | None = None,
) -> Encoded:
    """What the kernel makes of the chunks that ``jobs`` name, by their rows in ``axes``, of ``values``.

    Where these leave gaps, the chunk has what is stored of it by ``old``, or the fill value.
    """
    data, offsets, lengths, failed = pipeline.encode(
        values.view(f"V{values.dtype.itemsize}"),
        np.ascontiguousarray(jobs) if old is None else np.concatenate((old.table, jobs), axis=1),
        axes,
        write_empty=how.write_empty,
        head=how.head,
        tail=how.tail,
        threads=how.threads,
        sources=None if old is None else [old.buffer],
    )
    return Encoded(data, np.frombuffer(offsets, np.int64), np.frombuffer(lengths, np.int64), failed)


def encode_stack(layout: ArrayLayout, stack: npt.NDArray[Any], shape: tuple[int, ...], how: Encoding) -> Encoded:
    """Encode the chunks of ``stack``."""
    count = len(stack) // shape[0]
    jobs = np.zeros((count, len(shape)), np.int64)
    jobs[:, 0] = np.arange(count)
    return encode(layout.pipeline, stack, jobs, stack_axes(count, shape), how)


# what one call writes


@dataclass(frozen=True, slots=True)
class SeenVersion:
    """The ``version`` of an object of which nothing beyond the array counts; ``None``: it is not stored."""

    version: Version | None


@dataclass(frozen=True, slots=True, eq=False)
class Change:
    """The values of a plan that belong to one object."""

    handle: ArrayHandle
    plan: ChunkPlan
    part: ObjectPart
    key: str
    layout: ShardLayout | None
    values: npt.NDArray[Any]
    fields: str | list[str] | None
    threads: int
    seen: SeenVersion | None = None
    """Where what the object holds beyond the array is to give way to the fill value."""

    def needs_no_read(self) -> npt.NDArray[np.bool_]:
        """Which chunks need nothing of what is stored.

        Not those that reach beyond the array, unless ``seen`` is there: another writer may have made it longer, and
        have stored values there.
        """
        keeps = self.handle.is_shared and self.seen is None
        whole = self.part.whole() if keeps else self.part.covered()
        return whole if self.fields is None else np.zeros_like(whole)

    def replaces_all_valid(self) -> npt.NDArray[np.bool_]:
        """Which chunks may be damaged, since all of their elements that lie in the array get new values."""
        covered = self.part.covered()
        return covered if self.fields is None else np.zeros_like(covered)

    def covers_all(self) -> bool:
        """Whether :meth:`replaces_all_valid` tells it of every chunk."""
        return self.fields is None and self.part.is_covered()

    def encode(self, i: int, old: BytesLike | None, covered: bool) -> BytesLike | None:
        """Chunk ``i`` with the new values in it, encoded; ``None`` if it is to be left out as empty."""
        handle, part = self.handle, self.part
        chain = handle.layout.chain(part.chunk_shape(i))
        chain.check_memory()
        new = self.values[part.outer(i)]
        if covered and new.shape == chain.spec.shape and all(isinstance(each, slice) for each in part.inner(i)):
            chunk = new  # the whole chunk, in order: no copy is needed
        elif old is None or covered:
            chunk = np.empty(chain.spec.shape, chain.spec.dtype)
            chunk[...] = chain.spec.fill
            self._put(chunk, i, new)
        else:
            replaced = self._replaced(chain, i, old, new)
            if replaced is not None:
                return replaced
            chunk = self._decoded(i, old)
            if not chunk.flags.writeable or not chunk.flags.owndata:
                chunk = chunk.copy()
            self._put(chunk, i, new)
        if not handle.write_empty_chunks and chain.is_fill(chunk):
            return None
        try:
            return chain.encode(chunk, write_empty=handle.write_empty_chunks)
        except DataError as error:
            raise error.at(array=handle.path, key=self.key, chunk=part.chunk(i)) from None

    def _replaced(self, chain: CodecChain, i: int, old: BytesLike, new: npt.NDArray[Any]) -> BytesLike | None:
        """A chunk of one axis of which some elements that follow each other change, if others need no decoding."""
        inner = self.part.inner(i)
        if self.fields is not None or len(inner) != 1 or not isinstance(inner[0], slice):
            return None
        first, stop, step = inner[0].indices(chain.spec.size)
        if step != 1 or new.shape != (stop - first,) or (chain.is_fill(new) and not self.handle.write_empty_chunks):
            return None
        try:
            return chain.replaced(old, first, new)
        except DataError as error:
            raise error.at(array=self.handle.path, key=self.key, chunk=self.part.chunk(i)) from None

    def _decoded(self, i: int, old: BytesLike) -> npt.NDArray[Any]:
        try:
            return decode_chunk(self.handle, self.part, i, old, self.key)
        except CorruptionError:
            if not self.replaces_all_valid()[i]:
                raise
        spec = self.handle.layout.chain(self.part.chunk_shape(i)).spec
        return np.full(spec.shape, spec.fill, spec.dtype)

    def encodes_many(self) -> bool:
        """Whether :meth:`encode_many` can."""
        layout = self.handle.layout
        is_usual = layout.pipeline is not None and layout.fits_memory
        return is_usual and self.fields is None and not isinstance(self.plan, PointPlan)

    def encode_many(
        self, which: npt.NDArray[np.int64], old: StoredRows | None = None, *, head: int = 0, tail: int = 0
    ) -> Encoded | None:
        """The chunks numbered ``which``, in this order, with the new values in what ``old`` says is stored of them.

        All in one call of the kernel. ``None`` where it cannot, or finds one that is stored to be damaged.
        """
        if not self.encodes_many() or isinstance(self.plan, PointPlan):
            return None
        pipeline = self.handle.layout.pipeline
        how = Encoding(self.handle.write_empty_chunks, self.threads, head, tail)
        encoded = encode(pipeline, self.values, self.part.rows()[which], self.plan.kernel_axes(), how, old)
        if old is not None and encoded.failed:
            return None
        if encoded.failed:
            encoded.raise_first(lambda job: self.part.chunk(int(which[job])))
        return encoded

    def _put(self, chunk: npt.NDArray[Any], i: int, new: npt.NDArray[Any]) -> None:
        target: npt.NDArray[Any] = chunk if self.fields is None else chunk[self.fields]
        target[self.part.inner(i)] = new


# what a buffer collected


_MOST_DECODED = 512
"""Chunks that are decoded together to be changed in part; more of them would take too much memory at once."""


@dataclass(frozen=True, slots=True, eq=False)
class PendingPart:
    """Chunks of the object at the grid coordinates ``object``, with their rows in its index."""

    object: tuple[int, ...]
    rows: tuple[int, ...]
    chunks: tuple[PendingChunk, ...]

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
class PendingChange:
    """What a buffer holds for one object."""

    handle: ArrayHandle
    part: PendingPart
    key: str
    layout: ShardLayout | None
    threads: int
    seen: SeenVersion | None = None
    fields: None = None

    def needs_no_read(self) -> npt.NDArray[np.bool_]:
        """Which chunks need nothing of what is stored. As for :class:`~zardine.engine.change.Change`."""
        if self.seen is not None:
            return self.replaces_all_valid()
        return np.array([chunk.covers() for chunk in self.part.chunks], np.bool_)

    def replaces_all_valid(self) -> npt.NDArray[np.bool_]:
        """Which chunks may be damaged, since all of their elements that lie in the array get new values."""
        chunks = self.handle.layout.grids.chunks
        return np.array([held.covers(held.inside(chunks)) for held in self.part.chunks], np.bool_)

    def covers_all(self) -> bool:
        """Whether :meth:`replaces_all_valid` tells it of every chunk."""
        return bool(self.replaces_all_valid().all())

    def encode(self, i: int, old: BytesLike | None, covered: bool) -> BytesLike | None:
        """Chunk ``i`` with the new values in it, encoded; ``None`` if it is to be left out as empty."""
        held = self.part.chunks[i]
        chain = self.handle.layout.chain(held.values.shape)
        chunk = held.values
        try:
            if old is not None and held.mask is not None:
                chunk = self._merged(held, chain.decode, old)
            if not self.handle.write_empty_chunks and chain.is_fill(chunk):
                return None
            return chain.encode(chunk, write_empty=self.handle.write_empty_chunks)
        except DataError as error:
            raise error.at(array=self.handle.path, key=self.key, chunk=held.chunk) from None

    def encodes_many(self) -> bool:
        """Whether :meth:`encode_many` can, if the chunks have one shape."""
        return self.handle.layout.pipeline is not None

    def encode_many(
        self, which: npt.NDArray[np.int64], old: StoredRows | None = None, *, head: int = 0, tail: int = 0
    ) -> Encoded | None:
        """The chunks numbered ``which``, in this order, with the new values in what ``old`` says is stored of them.

        All in one call of the kernel. ``None`` where it cannot, or finds one that is stored to be damaged.
        """
        layout = self.handle.layout
        held = [self.part.chunks[i] for i in which.tolist()]
        shape = held[0].values.shape
        if layout.pipeline is None or any(chunk.values.shape != shape for chunk in held):
            return None
        stack = np.concatenate([chunk.values for chunk in held])
        if old is not None and not _fill_gaps(layout, stack, held, old):
            return None
        encoded = encode_stack(layout, stack, shape, Encoding(self.handle.write_empty_chunks, self.threads, head, tail))
        if old is not None and encoded.failed:
            return None
        if encoded.failed:
            encoded.raise_first(lambda job: self.part.chunk(int(which[job])))
        return encoded

    def _merged(
        self, held: PendingChunk, decode: Callable[[BytesLike], npt.NDArray[Any]], old: BytesLike
    ) -> npt.NDArray[Any]:
        """The new values in the ``old`` ones; these may be damaged where all that is in the array is new."""
        assert held.mask is not None
        try:
            return np.where(held.mask, held.values, decode(old))
        except CorruptionError:
            if held.covers(held.inside(self.handle.layout.grids.chunks)):
                return held.values
            raise


def _fill_gaps(layout: ArrayLayout, stack: npt.NDArray[Any], held: list[PendingChunk], old: StoredRows) -> bool:
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
