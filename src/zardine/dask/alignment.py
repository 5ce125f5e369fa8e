"""Which Dask chunks to write by one task, so that each shard is written by as few tasks as possible. Integers only."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from zardine.buffers import Ints
from zardine.chunk_grids import Axis

Lengths = tuple[tuple[int, ...], ...]
"""The lengths of chunks, for each axis."""


def merged_chunks(
    chunks: Lengths, objects: Sequence[Axis], region: Sequence[slice], item_size: int, most: int
) -> Lengths:
    """Return ``chunks`` joined, on each axis, up to the next end of one that is also the end of a stored object.

    The source of these chunks is written to ``region`` (a start, stop and step for each axis) of an array whose stored
    objects are ``objects``. What is joined into one has ``most`` bytes at most; where that is not enough, the axes on
    which most chunks would be joined stay as they are, so that several tasks write one object. Nothing is ever cut.
    """
    joined = [_joined(axis, grid, where) for axis, grid, where in zip(chunks, objects, region, strict=True)]
    result = list(joined)
    while prod(max(axis, default=0) for axis in result) * item_size > most:
        factors = [max(new, default=0) / max(1, *old) for new, old in zip(result, chunks, strict=True)]
        axis = int(np.argmax(factors)) if factors else 0
        if not factors or result[axis] == chunks[axis]:
            break
        result[axis] = chunks[axis]
    return tuple(result)


def _joined(lengths: tuple[int, ...], objects: Axis, region: slice) -> tuple[int, ...]:
    if len(lengths) < 2 or region.step != 1:
        return lengths
    ends = np.unique(np.cumsum(np.array(lengths, np.int64)))
    last = int(ends[-1])
    if last == 0:
        return lengths
    inner = ends[:-1]
    kept: Ints = inner[objects.locate(inner + region.start)[1] == 0]
    found = np.diff(np.concatenate([[0], kept, [last]]))
    return tuple(found.tolist()) if len(found) < len(lengths) else lengths


__all__ = ["Lengths", "merged_chunks"]
