"""What is to be written to one stored object, and the encoded chunks that come of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from zardine.buffers import BytesLike
from zardine.engine.border import Settled
from zardine.engine.chunk_stack import Encoded, Encoding, encode
from zardine.engine.old_chunks import StoredRows
from zardine.engine.read import decode_chunk
from zardine.engine.source import ArraySource
from zardine.errors import CorruptionError, DataError
from zardine.indexing.plan import ChunkPlan, ObjectPart, PointPlan
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
