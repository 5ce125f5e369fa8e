"""Old objects that somebody wrote when the array had new ones already, told from those that were copied."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from zardine.engine.handle import ArrayHandle
from zardine.engine.read import read_plan
from zardine.engine.read_ahead import window_bytes
from zardine.errors import DataError
from zardine.indexing.boxes import box_of
from zardine.indexing.plan import plan_grid
from zardine.tools.rechunking.sums import same_bits
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
    dtype = old.layout.metadata.dtype
    (first, last), others = (ranges[0], ranges[1:]) if ranges else ((0, 1), [])
    row = max(1, int(np.prod([stop - start for start, stop in others], dtype=object)) * dtype.itemsize)
    step = max(1, window_bytes() // (2 * row))
    for start in range(first, last, step):
        box = box_of([(start, min(start + step, last)), *others] if ranges else [])
        both = [np.empty(box.full_shape, dtype) for _ in (old, new)]
        try:
            for handle, values in zip((old, new), both, strict=True):
                read_plan(handle, plan_grid(box, handle.layout.grids), values)
        except DataError:
            return False
        if not same_bits(*both):
            return False
    return True


__all__ = ["late_objects"]
