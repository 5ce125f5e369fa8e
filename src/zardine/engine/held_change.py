"""Chunks that waited in a buffer, as the change of one stored object."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from zardine.buffers import BytesLike
from zardine.engine.border import Settled
from zardine.engine.chunk_stack import Encoded, Encoding, decode_stack, encode_stack
from zardine.engine.layout import ArrayLayout
from zardine.engine.old_chunks import StoredRows
from zardine.engine.source import ArraySource
from zardine.engine.write_buffer import HeldChunk
from zardine.errors import CorruptionError, DataError
from zardine.sharding.index import MISSING
from zardine.sharding.layout import ShardLayout

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
