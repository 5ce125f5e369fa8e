"""A level of lines that is exported part by part: gone through to see what a format holds, and again to write."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from zardine.errors import ArrayChangedError
from zardine.stores.resolve import StoreLike
from zardine.vectors.content.parts import AT_ONCE
from zardine.vectors.polylines import read_polylines
from zardine.vectors.reading.batches import in_batches
from zardine.vectors.reading.batches_of_lines import batches_of_lines
from zardine.vectors.reading.query import Query
from zardine.vectors.results import Polylines
from zardine.vectors.storing.store import VectorStore


@dataclass(frozen=True)
class LevelParts:
    """The lines of a level, some at a time; those that fit into one part are read once."""

    path: StoreLike
    level: int
    at_once: int = AT_ONCE
    """Vertices of a part, about."""

    @cached_property
    def count(self) -> int:
        """How many vertices there are."""
        return VectorStore.open(self.path).level(self.level).document.vertex_count

    @cached_property
    def _whole(self) -> Polylines:
        return read_polylines(self.path, level=self.level)

    def __iter__(self) -> Iterator[Polylines]:
        """Give the parts, of one state of the level.

        Raises :class:`~zardine.errors.ArrayChangedError` where it has another number of vertices by now.
        """
        if self.count <= self.at_once:
            yield self._whole
            return
        done, query = 0, Query(level=self.level).checked()
        for part in in_batches(self.path, self.level, lambda level: batches_of_lines(level, query, self.at_once)):
            done += len(part.positions)
            yield part
        if done != self.count:
            raise ArrayChangedError(f"{self.path} was changed while it was exported: export it again")


__all__ = ["LevelParts"]
