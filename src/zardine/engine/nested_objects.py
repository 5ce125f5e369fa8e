"""Which objects of a new array are made together out of an old one: those of one old object. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import Final

from zardine.chunk_grids.axis import Axis
from zardine.engine.layout import ArrayLayout
from zardine.indexing.boxes import cut_box
from zardine.indexing.selection import GridSelection

_OF_AN_OBJECT: Final = 1024
"""Bytes that a new object takes beside its elements while it is made, about."""


def nested(outer: Sequence[Axis], inner: Sequence[Axis]) -> tuple[int, ...]:
    """Return how many inner objects along each axis lie in an outer one: 1 where their borders do not allow that."""
    return tuple(
        max(1, min(old.runs[0][0] // new.runs[0][0], new.count))
        if old.is_regular and new.is_regular and old.runs[0][0] % new.runs[0][0] == 0
        else 1
        for old, new in zip(outer, inner, strict=True)
    )


def objects_together(old: ArrayLayout, new: ArrayLayout, most: int) -> tuple[int, ...]:
    """Return how many new objects along each axis are made together: those of one old object, where borders allow.

    Fewer where the elements of so many would take more than ``most`` bytes, one at least; one where nobody knows what
    they take.
    """
    sizes = list(nested(old.grids.storage, new.grids.storage))
    known = new.metadata.data_type.item_size is not None
    room = max(1, most // (max(1, new.object_nbytes) + _OF_AN_OBJECT)) if known else 1
    for i, size in enumerate(sizes):  # the first axes first, so that what is read of a shard lies together
        fits = max(1, room // prod(sizes[i + 1 :]))
        sizes[i] = size if size <= fits else -(-size // -(-size // fits))
    return tuple(sizes)


def boxes_together(new: ArrayLayout, together: Sequence[int], box: GridSelection) -> Iterator[GridSelection]:
    """Yield a box of whole new objects in parts of so many along each axis."""
    pieces = [axis.together(number) for axis, number in zip(new.grids.storage, together, strict=True)]
    yield from cut_box(box, pieces)


__all__ = ["boxes_together", "nested", "objects_together"]
