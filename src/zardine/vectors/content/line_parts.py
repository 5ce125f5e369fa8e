"""What is stored of lines beside their vertices: fragments and links, by one call of the kernel. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from zardine.buffers import Ints
from zardine.kernel import KERNEL
from zardine.vectors.content.columns import Column
from zardine.vectors.content.link_placement import PlacedLinks, placed_by_kernel
from zardine.vectors.format.manifests import framed_manifests
from zardine.vectors.format.pieces import Pieces

_MANY = 256
"""Runs that are worth it."""


@dataclass(frozen=True, slots=True, eq=False)
class LineParts:
    """What is stored of lines."""

    ids: Ints
    attributes: Mapping[str, Column]
    starts: Ints
    """Where the fragments of each line start in all, and how many there are."""
    manifests: Pieces
    placed: Sequence[PlacedLinks]
    """The links from each fragment of a line to its next one."""


@dataclass(frozen=True, slots=True, eq=False)
class LineRuns:
    """Lines as runs of vertices, in the order of these."""

    first: Ints
    """Where each run begins."""
    cells: Ints
    """The number of the chunk that it is in, among ``keys``."""
    keys: Ints
    edges: Ints
    """Where each line begins, and how many vertices there are."""
    ids: Ints
    attributes: Mapping[str, Column]

    def parts(self) -> LineParts | None:
        """Return what is stored of them; ``None`` where the kernel does not make it, or they are too few to ask it."""
        if KERNEL is None or len(self.first) < _MANY:
            return None
        numbers = (np.ascontiguousarray(each, np.int64) for each in (self.first, self.cells, self.edges, self.keys))
        found = KERNEL.line_parts(*numbers)
        if found is None:
            return None
        starts = np.frombuffer(found[0], np.int64)
        manifests = framed_manifests(found[1], starts, self.keys.shape[1])
        placed = list(placed_by_kernel(self.keys, 2, found[2], canonical=True))
        return LineParts(self.ids, self.attributes, starts, manifests, placed)


__all__ = ["LineParts", "LineRuns"]
