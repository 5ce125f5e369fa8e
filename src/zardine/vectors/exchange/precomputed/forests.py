"""Edges in any order and direction as trees. Pure."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from zardine.buffers import Ints


def parents_of_edges(edges: Ints, count: int) -> Ints | None:
    """Return the parent of each of ``count`` vertices, -1 for roots; ``None`` where ``edges`` ``(E, 2)`` have a circle.

    Edges that all go from child to parent, or all the other way, are taken at their word. Otherwise the root of a tree
    is its vertex of the lowest number.
    """
    for child, parent in ((0, 1), (1, 0)):
        if len(np.unique(edges[:, child])) == len(edges):
            above = np.full(count, -1, np.int64)
            above[edges[:, child]] = edges[:, parent]
            if _ends(above):
                return above
    return _rooted(edges, count)


def _ends(above: Ints) -> bool:
    """Whether the way from each vertex to its parent and on comes to an end."""
    step = np.where(above >= 0, above, np.arange(len(above)))
    roots = above < 0
    for _ in range(len(above).bit_length() + 1):
        step = step[step]
    return bool(roots[step].all())


def _rooted(edges: Ints, count: int) -> Ints | None:
    both = np.concatenate((edges, edges[:, ::-1]))
    order = np.argsort(both[:, 0], kind="stable")
    neighbours = both[order, 1].tolist()
    starts = np.searchsorted(both[order, 0], np.arange(count + 1)).tolist()
    above: npt.NDArray[np.int64] = np.full(count, -1, np.int64)
    seen = bytearray(count)
    used = 0
    for root in range(count):
        if seen[root]:
            continue
        seen[root] = 1
        waiting = [root]
        while waiting:
            vertex = waiting.pop()
            for other in neighbours[starts[vertex] : starts[vertex + 1]]:
                if not seen[other]:
                    seen[other] = 1
                    above[other] = vertex
                    used += 1
                    waiting.append(other)
    return above if used == len(edges) else None


__all__ = ["parents_of_edges"]
