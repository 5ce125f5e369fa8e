"""A level that is exported part by part, and gone through more than once: to see what a format holds, and to write."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from zardine.errors import ArrayChangedError
from zardine.stores.resolve import StoreLike
from zardine.vectors.content.parts import AT_ONCE
from zardine.vectors.selecting import Selection
from zardine.vectors.storing.store import VectorStore


@dataclass(frozen=True)
class LevelParts:
    """Points or lines of a level, some at a time; those that fit into one part are read once."""

    path: StoreLike
    level: int
    kind: str
    at_once: int = AT_ONCE
    """Vertices of a part, about."""

    @cached_property
    def count(self) -> int:
        """How many vertices there are."""
        return VectorStore.open(self.path).level(self.level).document.vertex_count

    @cached_property
    def _whole(self) -> Any:
        return Selection(self.path, self.kind, level=self.level).read()

    def __iter__(self) -> Iterator[Any]:
        """Give the parts, of one state of the level.

        Raises :class:`~zardine.errors.ArrayChangedError` where it has another number of vertices by now.
        """
        if self.count <= self.at_once:
            yield self._whole
            return
        done = 0
        for part in Selection(self.path, self.kind, level=self.level).batches(self.at_once):
            done += len(part.positions)
            yield part
        if done != self.count:
            raise ArrayChangedError(f"{self.path} was changed while it was exported: export it again")


__all__ = ["LevelParts"]
