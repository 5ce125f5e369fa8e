"""One axis of a chunk grid: which chunk an index lies in. Integers only, vectorised, no object per chunk.

An axis is a sequence of *runs* of equally long chunks, so that a regular axis is one run without end and a rectilinear
axis costs memory by its runs, not by its chunks.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from zardine.buffers import Ints


@dataclass(frozen=True)
class Axis:
    """``length`` elements cut into chunks of the lengths that ``runs`` tells as ``(chunk length, number of chunks)``.

    The last run has number ``None`` where the grid goes on without end. Chunks may reach beyond ``length``.
    """

    length: int
    runs: tuple[tuple[int, int | None], ...]

    @classmethod
    def regular(cls, length: int, chunk: int) -> Axis:
        """An axis of chunks that are all ``chunk`` long."""
        return cls(length, ((chunk, None),))

    @property
    def is_regular(self) -> bool:
        """Whether all chunks have the same length."""
        return len(self.runs) == 1

    @cached_property
    def _table(self) -> tuple[Ints, Ints, Ints]:
        """Chunk length, first element, first chunk of each run."""
        sizes, starts, firsts = [], [], []
        start = first = 0
        for size, number in self.runs:
            sizes.append(size)
            starts.append(start)
            firsts.append(first)
            if number is None:
                break
            start += size * number
            first += number
        return np.array(sizes, np.int64), np.array(starts, np.int64), np.array(firsts, np.int64)

    @cached_property
    def count(self) -> int:
        """How many chunks hold at least one element."""
        if self.length == 0:
            return 0
        if len(self.runs) == 1:
            return -(-self.length // self.runs[0][0])
        chunks, _ = self.locate(np.array([self.length - 1], np.int64))
        return int(chunks[0]) + 1

    def locate(self, elements: Ints) -> tuple[Ints, Ints]:
        """For element indices, the chunk of each and its index within that chunk."""
        sizes, starts, firsts = self._table
        if len(sizes) == 1:
            size = int(sizes[0])
            chunks = elements // size
            return chunks, elements - chunks * size
        run = np.searchsorted(starts, elements, side="right") - 1
        within = elements - starts[run]
        chunks = within // sizes[run]
        return chunks + firsts[run], within - chunks * sizes[run]

    def starts(self, chunks: Ints) -> Ints:
        """The first element of each of ``chunks``."""
        sizes, starts, firsts = self._table
        if len(sizes) == 1:
            return chunks * int(sizes[0])
        run = np.searchsorted(firsts, chunks, side="right") - 1
        return starts[run] + (chunks - firsts[run]) * sizes[run]

    def extents(self, chunks: Ints) -> Ints:
        """The length of each of ``chunks``, of which the part beyond the array counts too."""
        sizes, _, firsts = self._table
        if len(sizes) == 1:
            return np.full(chunks.shape, int(sizes[0]), np.int64)
        return sizes[np.searchsorted(firsts, chunks, side="right") - 1]

    def start(self, chunk: int) -> int:
        """The first element of one chunk."""
        if len(self.runs) == 1:
            return chunk * self.runs[0][0]
        return int(self.starts(np.array([chunk], np.int64))[0])

    def extent(self, chunk: int) -> int:
        """The length of one chunk."""
        if len(self.runs) == 1:
            return self.runs[0][0]
        return int(self.extents(np.array([chunk], np.int64))[0])

    def find(self, element: int) -> int:
        """The chunk that one element lies in."""
        if len(self.runs) == 1:
            return element // self.runs[0][0]
        return int(self.locate(np.array([element], np.int64))[0][0])

    @property
    def longest(self) -> int:
        """The most elements that a chunk has, those beyond the end included; 1 where there are no chunks."""
        return self.runs[0][0] if len(self.runs) == 1 else max((size for size, _ in self.runs), default=1)

    def together(self, number: int) -> Axis:
        """The axis in which ``number`` chunks at a time are one; the last may be fewer."""
        if number == 1:
            return self
        if len(self.runs) == 1:
            return Axis.regular(self.length, self.runs[0][0] * number)
        starts = self.starts(np.arange(0, self.count, number, dtype=np.int64))
        return Axis.cut(self.length, starts)

    @classmethod
    def cut(cls, length: int, starts: Ints) -> Axis:
        """An axis of chunks that begin at ``starts``, which ascend from 0, and end at ``length``."""
        lengths = np.diff(np.append(starts, max(length, int(starts[-1]) + 1 if len(starts) else 1)))
        firsts = np.flatnonzero(np.append(True, np.diff(lengths) != 0)) if len(lengths) else np.zeros(0, np.int64)
        numbers = np.diff(np.append(firsts, len(lengths)))
        runs = zip(lengths[firsts].tolist(), numbers.tolist(), strict=True)
        return cls(length, tuple((int(size), int(number)) for size, number in runs) or ((1, None),))

    def is_cut(self, chunk: int) -> bool:
        """Whether one chunk reaches beyond the end."""
        return self.start(chunk) + self.extent(chunk) > self.length

    def lengths(self) -> tuple[int, ...]:
        """The lengths of all chunks that hold an element, cut at the end of the array. One object per chunk."""
        chunks = np.arange(self.count, dtype=np.int64)
        starts = self.starts(chunks)
        return tuple(np.minimum(self.extents(chunks), self.length - starts).tolist())
