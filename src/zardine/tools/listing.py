"""What is stored of some arrays, as ranges of cells of their grids, gathered in memory that has a bound."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Final

from zardine.jobs.ranges import Ranges

_RANGES = 2**18
"""Ranges of all arrays together, where these are not thousands; twice as many while they are gathered."""
_LEAST = 2**10
"""Ranges of each array."""
_NAMES: Final = 2**19
"""Names that a store may hold while it lists."""
_NAME, _RANGE = 100, 180
"""Bytes that each of them takes, about; a range while it is gathered, written and read again."""


class GatheredCells:
    """Sets of cells by name, of few ranges: where there would be more, cells between are taken for stored, too.

    Whoever looks at those finds nothing there.
    """

    def __init__(self) -> None:
        self._parts: dict[Hashable, list[Ranges]] = {}
        self._count, self._limit = 0, 2 * _RANGES

    def add(self, name: Hashable, some: Ranges) -> None:
        """Put cells into one of the sets."""
        self._parts.setdefault(name, []).append(some)
        self._count += some.pieces
        if self._count > self._limit:
            self._join()
            self._limit = 2 * max(_RANGES, self._count)

    def forget(self, name: Hashable) -> None:
        """Begin one of the sets anew."""
        self._count -= sum(each.pieces for each in self._parts.pop(name, ()))

    def cells(self, name: Hashable) -> Ranges:
        """Return one of the sets, once all are gathered."""
        if self._count > _RANGES:
            self._join()
        return Ranges.union(self._parts.get(name, ()))

    def _join(self) -> None:
        self._parts = {name: [Ranges.union(parts)] for name, parts in self._parts.items()}
        if self._counted() > _RANGES:
            most = max(_LEAST, _RANGES // len(self._parts))
            self._parts = {name: [Ranges.union(parts, most=most)] for name, parts in self._parts.items()}
        self._count = self._counted()

    def _counted(self) -> int:
        return sum(each.pieces for (each,) in self._parts.values())


def listing_memory(objects: Iterable[int], cells: Iterable[int] | None = None) -> int:
    """Return bytes that listing takes at most, where each array may have so many stored objects.

    ``cells`` are those of the grids of which sets are gathered, if these are others.
    """
    stored = list(objects)
    counts = stored if cells is None else list(cells)
    ranges = min(max(_RANGES, _LEAST * len(counts)), sum(-(-each // 2) for each in counts))
    return min(_NAMES, max(stored, default=0)) * _NAME + ranges * _RANGE


__all__ = ["GatheredCells", "listing_memory"]
