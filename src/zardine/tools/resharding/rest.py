"""What an array has gained or lost at its ends since its resharding was planned: made by the process that finishes.

Jobs cut new objects at the ends of the array that was planned. Where its ends are elsewhere by now, those objects are
made here as they have to be, and again where a job has stored one anew since: it has cut it once more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from math import prod

import numpy as np

from zardine.engine.handle import ArrayHandle
from zardine.engine.read_ahead import window_bytes
from zardine.engine.workers import for_each
from zardine.indexing.boxes import boxes_beyond
from zardine.indexing.selection import AxisSlice
from zardine.limits import within_memory
from zardine.settings import thread_count
from zardine.tools.resharding.move import Box, block_shape, move, object_bytes, sources_of
from zardine.tools.seen import digest


class Rest:
    """The new objects that hold elements beyond the shape that was planned, or are cut where it was not."""

    def __init__(self, planned: tuple[int, ...]) -> None:
        self.planned = self.shape = planned
        self.moved = [False] * len(planned)
        """Axes whose end was elsewhere than planned when new objects were made here: also if it is there again."""
        self.made = 0
        """New objects that were made, again and again where others wrote."""
        self._noted: dict[tuple[int, ...], tuple[str, str]] = {}
        """By the first new object of a block what old objects were before it was made, and what was made then."""

    def look(self, shape: tuple[int, ...], moved: Sequence[bool] | None) -> None:
        """Note of which axes the end is elsewhere than planned; ``moved`` are those where another process met that."""
        met = moved if moved is not None and len(moved) == len(shape) else self.moved
        axes = zip(self.moved, met, self.planned, shape, strict=True)
        self.moved = [was or other or a != b for was, other, a, b in axes]

    def make(self, source: ArrayHandle, target: ArrayHandle, *, encoded: bool) -> bool:
        """Make those of which the source has changed since, or the target; all at first. Whether there were any."""
        if source.layout.metadata.shape != self.shape:
            self.shape = source.layout.metadata.shape
            self._noted.clear()
        before = self.made
        shape = block_shape(source, target, window_bytes() // (2 * thread_count()))
        nbytes = prod(shape) * object_bytes(target)
        at_once = max(1, min(thread_count(), window_bytes() // (2 * nbytes)))

        def make(box: Box) -> None:
            place = tuple(each[0] for each in box)
            seen = _seen(source, sources_of(source, target, box))
            names = [target.layout.keys.encode(each) for each in product(*box)]
            if self._noted.get(place) == (seen, _seen(target, names)):
                return
            with within_memory("new objects", nbytes, array=target.path, key=target.key(place)):
                move(source, target, box, encoded=encoded)
            self._noted[place] = seen, _seen(target, names)
            self.made += prod(map(len, box))

        blocks = self._blocks(target, shape)
        for_each(make, blocks, 2**16 if at_once > 1 else 1, at_once)
        return self.made > before

    def _blocks(self, target: ArrayHandle, shape: tuple[int, ...]) -> Iterator[Box]:
        axes = target.layout.grids.storage
        cuts = []
        for axis, planned, length, moved in zip(axes, self.planned, self.shape, self.moved, strict=True):
            least = min(planned, length)
            which = int(axis.locate(np.array([least], np.int64))[0][0]) if moved and least else 0
            cuts.append(min(axis.start(which), length) if moved else length)
        for slab in boxes_beyond((0,) * len(axes), cuts, self.shape):
            ranges = []
            for axis, part, size in zip(axes, slab.axes, shape, strict=True):
                assert isinstance(part, AxisSlice)
                ends = np.array([part.start, part.start + part.count - 1], np.int64)
                first, last = axis.locate(ends)[0].tolist()
                ranges.append([range(i, min(i + size, last + 1)) for i in range(first, last + 1, size)])
            yield from product(*ranges)


def _seen(handle: ArrayHandle, names: Iterable[str]) -> str:
    """Return what changes if one of these objects of an array does."""
    prefix = f"{handle.path}/" if handle.path else ""
    keys = (f"{prefix}{name}" for name in names)
    return digest((key, handle.store.version(key)) for key in keys)


__all__ = ["Rest"]
