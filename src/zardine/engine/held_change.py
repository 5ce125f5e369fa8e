"""Chunks that waited in a buffer, as the change of one stored object."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from zardine.buffers import BytesLike
from zardine.engine.chunk_stack import Encoded, Encoding, encode_stack
from zardine.engine.source import ArraySource
from zardine.engine.write_buffer import HeldChunk
from zardine.errors import DataError
from zardine.sharding.layout import ShardLayout


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
    fields: None = None

    def covered(self) -> npt.NDArray[np.bool_]:
        """Which chunks need nothing of what is stored."""
        return np.array([chunk.mask is None for chunk in self.part.chunks], np.bool_)

    def encode(self, i: int, old: BytesLike | None, covered: bool) -> BytesLike | None:
        """Chunk ``i`` with the new values in it, encoded; ``None`` if it is to be left out as empty."""
        held = self.part.chunks[i]
        chain = self.source.layout.chain(held.values.shape)
        chunk = held.values
        try:
            if old is not None and held.mask is not None:
                chunk = np.where(held.mask, held.values, chain.decode(old))
            if not self.source.keeps_empty_chunks and chain.is_fill(chunk):
                return None
            return chain.encode(chunk)
        except DataError as error:
            raise error.at(array=self.source.path, key=self.key, chunk=held.chunk) from None

    def encode_fresh(self, which: npt.NDArray[np.int64], head: int, tail: int) -> Encoded | None:
        """The chunks numbered ``which``, in this order, of which nothing stored is needed, in one call of the kernel.

        ``None`` where the kernel cannot.
        """
        layout = self.source.layout
        arrays = [self.part.chunks[i].values for i in which.tolist()]
        if layout.pipeline is None or len({array.shape for array in arrays}) != 1:
            return None
        how = Encoding(self.source.keeps_empty_chunks, self.threads, head, tail)
        encoded = encode_stack(layout, np.concatenate(arrays), arrays[0].shape, how)
        encoded.raise_if_failed(lambda job: self.part.chunk(int(which[job])))
        return encoded

    def put(self, chunk: npt.NDArray[Any], i: int) -> None:
        """Put the new values of chunk ``i`` into its old ones."""
        held = self.part.chunks[i]
        np.copyto(chunk, held.values, where=True if held.mask is None else held.mask)
