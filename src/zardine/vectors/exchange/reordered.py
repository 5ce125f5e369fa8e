"""Vertices in another order than that in which they came, by way of a temporary file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from zardine.buffers import Ints
from zardine.vectors.content.content import Columns
from zardine.vectors.content.parts import AT_ONCE, Values, Vertices, as_records, from_records, record_type
from zardine.vectors.format.ragged import starts_of
from zardine.vectors.storing.spools import Buckets


class Reordered:
    """Other :class:`~zardine.vectors.content.parts.Vertices` by their ranks; those of one rank as they came."""

    def __init__(self, vertices: Vertices, ranks: Callable[[int, Values], Ints], counts: Ints) -> None:
        """``ranks`` gives those of a part, of its first row and its values; ``counts``: vertices of each rank, about.

        Some ranks are in memory at a time, of about half a million vertices.
        """
        self._vertices = vertices
        block = starts_of(counts)[:-1] // AT_ONCE
        _, self._firsts = np.unique(block, return_index=True)
        """The first rank of each block."""
        self._dtype = record_type(vertices, ("rank", "<i8"))
        self._buckets, row = Buckets(self._dtype, len(self._firsts)), 0
        for positions, values in vertices.parts():
            records = as_records(self._dtype, positions, values)
            records["rank"] = own = ranks(row, values)
            self._buckets.add(records, np.searchsorted(self._firsts, own, "right") - 1)
            row += len(positions)

    @property
    def count(self) -> int:
        """How many there are."""
        return self._vertices.count

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of positions."""
        return self._vertices.dtype

    @property
    def rank(self) -> int:
        """How many coordinates a position has."""
        return self._vertices.rank

    @property
    def columns(self) -> Columns:
        """The attributes."""
        return self._vertices.columns

    def corners(self) -> npt.NDArray[Any]:
        """The lowest and the highest corner."""
        return self._vertices.corners()

    def blocks(self) -> Iterator[tuple[npt.NDArray[Any], Columns, Ints]]:
        """Give positions, attributes and ranks, which ascend, some at a time: all of each rank."""
        for number in range(len(self._firsts)):
            records = self._buckets.rows(number)
            records = records[np.argsort(records["rank"], kind="stable")]
            yield *from_records(records, self.columns), records["rank"]

    def parts(self) -> Iterator[tuple[npt.NDArray[Any], Values]]:
        """Give positions and values, some at a time."""
        for positions, columns, _ in self.blocks():
            yield positions, {name: each.values for name, each in columns.items()}


__all__ = ["Reordered"]
