"""Levels of which all documents are read before they are looked at, where the store is far away."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from zardine.engine.freshness import is_far
from zardine.vectors.reading.kept import KeptLevel
from zardine.vectors.storing.level_nodes import Survey
from zardine.vectors.storing.store import Level


def looked_below(
    level: Level, *, names: Iterable[str] = (), nodes: Iterable[str] = (), left_out: Collection[str] = ()
) -> Level:
    """Return a level; where it is far away, one that has the names and documents of all that is below it.

    They were asked for at the same time, as far as was possible; what was damaged is asked for again. ``names``,
    ``nodes`` and ``left_out`` as for :class:`~zardine.vectors.storing.level_nodes.Survey`.
    """
    if not is_far(level.owner.store):
        return level
    kept = KeptLevel.of(level)
    Survey(kept, names=names, nodes=nodes, left_out=left_out)
    return kept


__all__ = ["looked_below"]
