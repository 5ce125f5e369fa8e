"""What an array has gained or lost at its ends since its resharding was planned: made by the process that finishes.

Jobs cut new objects at the ends of the array that was planned. Where its ends are elsewhere by now, those objects are
made here as they have to be, and again where a job has stored one anew since: it has cut it once more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import prod

import numpy as np

from zardine.engine.handle import ArrayHandle
from zardine.engine.nested_objects import boxes_together, objects_together
from zardine.engine.read_ahead import window_bytes
from zardine.engine.workers import for_each
from zardine.indexing.boxes import boxes_beyond, ranges_of
from zardine.indexing.selection import GridSelection
from zardine.limits import within_memory
from zardine.settings import thread_count
from zardine.tools.copying.move import keys_of, move
from zardine.tools.seen import digest


class Rest:
    """The new objects that hold elements beyond the shape that was planned, or are cut where it was not."""

    def __init__(self, planned: tuple[int, ...]) -> None:
        self.planned = self.shape = planned
        self.moved = [False] * len(planned)
        """Axes whose end was elsewhere than planned when new objects were made here: also if it is there again."""
        self.made = 0
        """New objects that were made, again and again where others wrote."""
        self._noted: dict[tuple[tuple[int, int], ...], tuple[str, str]] = {}
        """By box what old objects were before it was made, and what was made then."""

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
        shape = objects_together(source.layout, target.layout, window_bytes() // (2 * thread_count()))
        nbytes = prod(shape) * max(1, target.layout.object_nbytes)
        at_once = max(1, min(thread_count(), window_bytes() // (2 * nbytes)))

        def make(box: GridSelection) -> None:
            place = tuple(ranges_of(box))
            seen, names = _seen(source, keys_of(source, box)), list(keys_of(target, box))
            if self._noted.get(place) == (seen, _seen(target, names)):
                return
            with within_memory("new objects", nbytes, array=target.path, key=names[0]):
                move(source, target, box, encoded=encoded)
            self._noted[place] = seen, _seen(target, names)
            self.made += len(names)

        for_each(make, self._boxes(target, shape), 2**16 if at_once > 1 else 1, at_once)
        return self.made > before

    def _boxes(self, target: ArrayHandle, shape: Sequence[int]) -> Iterator[GridSelection]:
        axes = target.layout.grids.storage
        cuts = []
        for axis, planned, length, moved in zip(axes, self.planned, self.shape, self.moved, strict=True):
            least = min(planned, length)
            which = int(axis.locate(np.array([least], np.int64))[0][0]) if moved and least else 0
            cuts.append(min(axis.start(which), length) if moved else length)
        for slab in boxes_beyond((0,) * len(axes), cuts, self.shape):
            yield from boxes_together(target.layout, shape, slab)


def _seen(handle: ArrayHandle, keys: Iterable[str]) -> str:
    """Return what changes if one of these objects of an array does."""
    return digest((key, handle.store.version(key)) for key in keys)


__all__ = ["Rest"]
