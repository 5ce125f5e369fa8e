"""Writes collected in memory, so that each stored object is written once: what ``Array.buffered`` uses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from threading import RLock
from typing import Any

import numpy as np
import numpy.typing as npt

from zardine.indexing.plan import ChunkPlan, ObjectPart


@dataclass(slots=True, eq=False)
class HeldChunk:
    """New values of one chunk, decoded."""

    chunk: tuple[int, ...]
    """Grid coordinates."""
    values: npt.NDArray[Any]
    mask: npt.NDArray[np.bool_] | None
    """Which of ``values`` are new; ``None``: all, so that nothing stored is needed."""


@dataclass(slots=True, eq=False)
class WriteBuffer:
    """Chunks that wait to be written, by stored object and by row in its index (0 where an object is one chunk)."""

    limit: int
    nbytes: int = 0
    closed: bool = False
    """Nothing is collected any more; writes go to the store."""
    objects: dict[tuple[int, ...], dict[int, HeldChunk]] = field(default_factory=dict)
    lock: Any = field(default_factory=RLock)

    def add(
        self,
        plan: ChunkPlan,
        values: npt.NDArray[Any],
        rows_of: Callable[[ObjectPart], list[int]],
        fill: npt.NDArray[Any],
    ) -> None:
        """Collect ``values`` (of the selection's full shape; flat for points)."""
        for part in plan.parts():
            held = self.objects.setdefault(part.object, {})
            covered = part.covered()
            for i, row in enumerate(rows_of(part)):
                whole = bool(covered[i])
                chunk = held.get(row)
                if chunk is None:
                    chunk = held[row] = self._hold(part, i, fill, whole)
                elif whole and chunk.mask is not None:
                    self.nbytes -= chunk.mask.nbytes
                    chunk.mask = None
                inner = part.inner(i)
                chunk.values[inner] = values[part.outer(i)]
                if chunk.mask is not None:
                    chunk.mask[inner] = True

    def overlay(self, plan: ChunkPlan, rows_of: Callable[[ObjectPart], list[int]], out: npt.NDArray[Any]) -> None:
        """Put what waits over what was read."""
        if not self.objects:
            return
        for part in plan.parts():
            held = self.objects.get(part.object)
            if not held:
                continue
            for i, row in enumerate(rows_of(part)):
                chunk = held.get(row)
                if chunk is None:
                    continue
                inner, outer = part.inner(i), part.outer(i)
                if chunk.mask is None:
                    out[outer] = chunk.values[inner]
                else:
                    out[outer] = np.where(chunk.mask[inner], chunk.values[inner], out[outer])

    def forget(self, coordinates: tuple[int, ...]) -> None:
        """The chunks of an object do not wait any more."""
        del self.objects[coordinates]

    def recount(self) -> None:
        """Count the bytes that wait."""
        self.nbytes = sum(_size(chunk) for held in self.objects.values() for chunk in held.values())

    def discard(self) -> None:
        """Forget everything."""
        self.objects.clear()
        self.nbytes = 0

    def _hold(self, part: ObjectPart, i: int, fill: npt.NDArray[Any], whole: bool) -> HeldChunk:
        values = np.empty(part.chunk_shape(i), fill.dtype)
        values[...] = fill
        chunk = HeldChunk(part.chunk(i), values, None if whole else np.zeros(values.shape, np.bool_))
        self.nbytes += _size(chunk)
        return chunk


def _size(chunk: HeldChunk) -> int:
    return chunk.values.nbytes + (0 if chunk.mask is None else chunk.mask.nbytes)
