"""Pieces of bytes of one buffer, cut only where somebody asks for them: the cells of an array, as they are made."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import overload

import numpy as np
import numpy.typing as npt

from zardine.buffers import BytesLike, Ints
from zardine.vectors.format.ragged import runs_at, starts_of


@dataclass(frozen=True, slots=True, eq=False)
class Pieces(Sequence[bytes]):
    """Pieces that begin at ``starts`` of ``data`` and have ``lengths`` bytes."""

    data: BytesLike
    starts: Ints
    lengths: Ints
    framed: bool = False
    """Whether each piece lies behind its length, as ``<u4``, and nothing else is in ``data``."""

    @classmethod
    def of(cls, pieces: Sequence[BytesLike]) -> Pieces:
        """Return the same pieces, of one buffer."""
        if isinstance(pieces, Pieces):
            return pieces
        if isinstance(pieces, RunPieces):
            return pieces.joined()
        lengths = np.fromiter(map(len, pieces), np.int64, len(pieces))
        return cls(b"".join(pieces), starts_of(lengths)[:-1], lengths)

    @classmethod
    def between(cls, data: BytesLike, edges: Ints) -> Pieces:
        """Return the pieces of ``data`` from each of ``edges`` to the next."""
        return cls(data, edges[:-1], np.diff(edges))

    @property
    def parts(self) -> tuple[BytesLike, Ints, Ints]:
        """Data, starts and lengths, for the kernel."""
        return self.data, self.starts, self.lengths

    @property
    def filled(self) -> npt.NDArray[np.bool_]:
        """Which pieces are not empty."""
        return self.lengths > 0

    def framed_part(self, start: int, stop: int) -> BytesLike | None:
        """Return some pieces that are there, each behind its length, if they lie so."""
        if not self.framed or stop <= start:
            return None
        end = int(self.starts[stop - 1] + self.lengths[stop - 1])
        return memoryview(self.data)[int(self.starts[start]) - 4 : end]

    def take(self, rows: npt.NDArray[np.integer] | npt.NDArray[np.bool_]) -> Pieces:
        """Some of them."""
        return Pieces(self.data, self.starts[rows], self.lengths[rows])

    def __len__(self) -> int:
        return len(self.starts)

    @overload
    def __getitem__(self, index: int) -> bytes: ...
    @overload
    def __getitem__(self, index: slice) -> list[bytes]: ...
    def __getitem__(self, index: int | slice) -> bytes | list[bytes]:
        if isinstance(index, slice):
            return list(Pieces(self.data, self.starts[index], self.lengths[index]))
        start = int(self.starts[index])
        return bytes(memoryview(self.data)[start : start + int(self.lengths[index])])

    def __iter__(self) -> Iterator[bytes]:
        view = memoryview(self.data)
        for start, length in zip(self.starts.tolist(), self.lengths.tolist(), strict=True):
            yield bytes(view[start : start + length])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]


@dataclass(frozen=True, slots=True, eq=False)
class RunPieces(Sequence[bytes]):
    """Pieces of several runs of one buffer each, which nobody has put together yet."""

    data: BytesLike
    starts: Ints
    """Where each run begins."""
    lengths: Ints
    """Bytes of each run."""
    bounds: Ints
    """At which run each piece begins, and how many runs there are; no piece is without any."""
    _known: Pieces | None = field(init=False, default=None)

    @property
    def parts(self) -> tuple[BytesLike, Ints, Ints, Ints]:
        """Data, starts, lengths and bounds, for the kernel."""
        return self.data, self.starts, self.lengths, self.bounds

    def joined(self) -> Pieces:
        """Return the same pieces, each in one run; they are put together once."""
        found = self._known
        if found is None:
            runs = np.frombuffer(self.data, np.uint8) if len(self) else np.zeros(0, np.uint8)
            data = runs_at(runs, self.starts, self.lengths)
            found = Pieces.between(data.data, starts_of(self.lengths)[self.bounds])
            object.__setattr__(self, "_known", found)
        return found

    def __len__(self) -> int:
        return len(self.bounds) - 1

    @overload
    def __getitem__(self, index: int) -> bytes: ...
    @overload
    def __getitem__(self, index: slice) -> list[bytes]: ...
    def __getitem__(self, index: int | slice) -> bytes | list[bytes]:
        return self.joined()[index]

    def __iter__(self) -> Iterator[bytes]:
        return iter(self.joined())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]


__all__ = ["Pieces", "RunPieces"]
