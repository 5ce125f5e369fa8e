"""Cells in runs that fit in memory: a level, or a part of it, gone through in order."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from zardine.buffers import Ints
from zardine.vectors.storing.cell_costs import CellSizes
from zardine.vectors.storing.cells import CellArray

_LOOKED_AT = 4096
"""Cells whose sizes are looked up at once."""

_UNKNOWN = 64
"""Cells in a run where their sizes cannot be had without a request for each."""

_SMALLEST = 4
"""Bytes of rows that a stored byte is taken for, where cells are compressed, until one was read."""


class Portions:
    """Runs of cells, in the order of ``keys``, each of about ``rows`` rows at most, or of one cell that has more.

    How many rows a cell has at most is told by its stored size. What stored bytes are worth where they are compressed
    is learnt from the cells that were read: after each run :meth:`learn` is told how many rows that had.
    """

    def __init__(
        self, vertices: CellArray, keys: Ints, rows: int, row_bytes: int, sizes: CellSizes | None = None
    ) -> None:
        """``sizes``: those of ``vertices``, for who goes through them more than once."""
        self._vertices = vertices
        self._stored = CellSizes(vertices) if sizes is None else sizes
        self._keys = keys
        self._rows = rows
        self._compressed = any(codec.name != "crc32c" for codec in vertices.array.compressors)
        self._rows_per_byte = 1 / row_bytes
        self._first = _SMALLEST if self._compressed else 1
        self._run_bytes = 0

    def __iter__(self) -> Iterator[Ints]:
        for start in range(0, len(self._keys), _LOOKED_AT):
            keys = self._keys[start : start + _LOOKED_AT]
            sizes = self._sizes(keys)
            at = 0
            while at < len(keys):
                if sizes is None:
                    end = at + _UNKNOWN
                else:
                    held = np.cumsum(sizes[at:]) * self._rows_per_byte * self._first
                    end = at + max(1, int(np.searchsorted(held, self._rows, side="right")))
                    self._run_bytes = int(sizes[at:end].sum())
                yield keys[at:end]
                at = end

    def learn(self, rows: int) -> None:
        """Say how many rows the last run had."""
        if self._run_bytes and self._compressed:
            self._first = 1
            self._rows_per_byte = max(self._rows_per_byte, rows / self._run_bytes)

    def _sizes(self, keys: Ints) -> Ints | None:
        array = self._vertices.array
        if array.shards is None and not array.store.has_cheap_looks:
            return None
        return self._stored.of(keys)


__all__ = ["Portions"]
