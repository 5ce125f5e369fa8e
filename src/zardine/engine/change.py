"""What is to be written to one stored object, and the encoded chunks that come of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from zardine.buffers import BytesLike
from zardine.engine.chunk_stack import decode_stack, encode_stack
from zardine.engine.read import decode_chunk
from zardine.engine.source import ArraySource
from zardine.errors import DataError, EncodeError
from zardine.indexing.plan import ChunkPlan, GridPlan, ObjectPart
from zardine.sharding.index import EMPTY
from zardine.sharding.layout import ShardLayout


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

    def covered(self) -> npt.NDArray[np.bool_]:
        """Which chunks need nothing of what is stored."""
        covered = self.part.covered()
        return covered if self.fields is None else np.zeros_like(covered)

    def encode(self, i: int, old: BytesLike | None, covered: bool) -> BytesLike | None:
        """Chunk ``i`` with the new values in it, encoded; ``None`` if it is to be left out as empty."""
        source, part = self.source, self.part
        chain = source.layout.chain(part.chunk_shape(i))
        new = self.values[part.outer(i)]
        if covered and new.shape == chain.spec.shape and all(isinstance(each, slice) for each in part.inner(i)):
            chunk = new  # the whole chunk, in order: no copy is needed
        elif old is None or covered:
            chunk = np.empty(chain.spec.shape, chain.spec.dtype)
            chunk[...] = chain.spec.fill
            self._put(chunk, i, new)
        else:
            chunk = decode_chunk(source, part, i, old, self.key)
            if not chunk.flags.writeable or not chunk.flags.owndata:
                chunk = chunk.copy()
            self._put(chunk, i, new)
        if not source.keeps_empty_chunks and chain.is_fill(chunk):
            return None
        try:
            return chain.encode(chunk)
        except DataError as error:
            raise error.at(array=source.path, key=self.key, chunk=part.chunk(i)) from None

    def encode_fresh(self, which: npt.NDArray[np.int64], head: int, tail: int) -> Encoded | None:
        """The chunks numbered ``which``, in this order, of which nothing stored is needed, in one call of the kernel.

        ``None`` where the kernel cannot.
        """
        pipeline = self.source.layout.pipeline
        if pipeline is None or self.fields is not None or not isinstance(self.plan, GridPlan):
            return None
        data, offsets, lengths, failed = pipeline.encode(
            self.values.view(f"V{self.values.dtype.itemsize}"),
            np.ascontiguousarray(self.part.rows()[which]),
            self.plan.kernel_axes(),
            keep_fill=self.source.keeps_empty_chunks,
            head=head,
            tail=tail,
            threads=self.threads,
        )
        if failed:
            job, reason = failed[0]
            raise EncodeError(reason, chunk=self.part.chunk(int(which[job])))
        return Encoded(data, np.frombuffer(offsets, np.uint64), np.frombuffer(lengths, np.uint64))

    def encode_merged(self, which: npt.NDArray[np.int64], old: Sequence[BytesLike]) -> Encoded | None:
        """The chunks numbered ``which`` of a shard, of which ``old`` is what is stored, with the new values in them.

        ``None`` where the kernel cannot, or finds one of them damaged.
        """
        layout = self.source.layout
        if layout.pipeline is None or layout.sharding is None:
            return None
        shape = layout.sharding.chunk_shape
        stack = decode_stack(layout, old, shape)
        if stack is None:
            return None
        for place, i in enumerate(which.tolist()):
            self._put(stack[place * shape[0] : (place + 1) * shape[0]], i, self.values[self.part.outer(i)])
        encoded = encode_stack(
            layout, stack, shape, keep_fill=self.source.keeps_empty_chunks, head=0, tail=0, threads=self.threads
        )
        return None if encoded.failed else Encoded(encoded.data, encoded.offsets, encoded.lengths)

    def _put(self, chunk: npt.NDArray[Any], i: int, new: npt.NDArray[Any]) -> None:
        target: npt.NDArray[Any] = chunk if self.fields is None else chunk[self.fields]
        target[self.part.inner(i)] = new


@dataclass(frozen=True, slots=True, eq=False)
class Encoded:
    """Encoded chunks one after the other in ``data``; offset and length are :data:`EMPTY` for those left out."""

    data: bytearray
    offsets: npt.NDArray[np.uint64]
    lengths: npt.NDArray[np.uint64]

    def chunks(self) -> Iterator[BytesLike | None]:
        """The bytes of each chunk."""
        view = memoryview(self.data)
        for offset, length in zip(self.offsets.tolist(), self.lengths.tolist(), strict=True):
            yield None if length == EMPTY else view[offset : offset + length]
