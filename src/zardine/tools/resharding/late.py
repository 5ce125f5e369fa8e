"""Old objects that somebody wrote when the array had new ones already, told from those that were copied."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from zardine.engine.handle import ArrayHandle
from zardine.indexing.boxes import box_of
from zardine.tools.copying.compare import holds
from zardine.tools.copying.move import read_elements
from zardine.tools.seen import Buckets, stored_versions


def late_objects(old: ArrayHandle, new: ArrayHandle, known: Buckets) -> Iterator[str]:
    """Yield the keys of ``old`` objects that are not what went into the ``new`` ones.

    ``known`` counts the versions of what did. Where that is not what is stored, those that may be meant are read: an
    object that says what the array says now holds nothing that would be lost.
    """
    now = Buckets()
    now.add_stored(old)
    changed = {i for i, (before, after) in enumerate(zip(known.sums, now.sums, strict=True)) if before != after}
    if not changed:
        return
    for key, _ in stored_versions(old):
        if Buckets.place(key) in changed and not _is_same(old, new, key):
            yield key


def _is_same(old: ArrayHandle, new: ArrayHandle, key: str) -> bool:
    """Whether the array has, where an old object lies, the elements that this holds."""
    ndim = len(old.layout.metadata.shape)
    place = old.layout.keys.decode(key[len(old.path) + 1 if old.path else 0 :], ndim)
    grids = old.layout.grids.storage
    if place is None or any(i >= axis.count for i, axis in zip(place, grids, strict=True)):
        return False
    lengths = new.layout.metadata.shape
    ranges = [
        (axis.start(i), min(axis.start(i) + axis.extent(i), axis.length, length))
        for i, axis, length in zip(place, grids, lengths, strict=True)
    ]
    if any(start >= stop for start, stop in ranges):
        return False
    return holds(new, box_of(ranges), partial(read_elements, old))


__all__ = ["late_objects"]
