"""What has to happen to stored objects when an array changes shape (core 3.1, "Resizing")."""

from __future__ import annotations

import numpy as np

from zardine.chunk_grids.axis import Axis
from zardine.engine.source import ArraySource
from zardine.engine.stored import stored_objects
from zardine.engine.write import write_plan
from zardine.indexing.plan import plan_grid
from zardine.indexing.selection import AxisSlice, GridSelection


def grown_for_append(shape: tuple[int, ...], data: tuple[int, ...], axis: int) -> tuple[int, ...]:
    """The shape after appending data of shape ``data`` along ``axis``. Raises ``ValueError`` where they do not fit."""
    if not -len(shape) <= axis < len(shape):
        raise ValueError(f"axis {axis} is out of bounds for array of dimension {len(shape)}")
    axis %= len(shape)
    others = shape[:axis] + shape[axis + 1 :]
    if len(data) != len(shape) or data[:axis] + data[axis + 1 :] != others:
        raise ValueError(
            f"data of shape {data} cannot be appended to an array of shape {shape} along axis {axis}: "
            "all other axes must agree"
        )
    return (*shape[:axis], shape[axis] + data[axis], *shape[axis + 1 :])


def clear_beyond(before: ArraySource, shape: tuple[int, ...]) -> None:
    """Put the fill value where chunks that ``shape`` cuts hold elements beyond it. ``before`` is the array uncut."""
    metadata = before.layout.metadata
    if 0 in shape:
        return  # nothing is cut: every stored object lies beyond
    kept = [min(old, new) for old, new in zip(metadata.shape, shape, strict=True)]
    ends = [_end_of_cut(objects, length) for objects, length in zip(before.layout.grids.objects, kept, strict=True)]
    for axis in range(len(shape)):
        # a slab for each axis; slabs do not overlap, and together they hold the corners that several axes cut
        axes = tuple(
            AxisSlice(kept[i], 1, ends[i] - kept[i]) if i == axis else AxisSlice(0, 1, kept[i] if i < axis else ends[i])
            for i in range(len(shape))
        )
        rest = GridSelection(axes, (False,) * len(axes), (False,) * len(axes))
        if rest.size:
            values = np.broadcast_to(metadata.fill, rest.shape)
            write_plan(before, plan_grid(rest, before.layout.grids), values)


def _end_of_cut(objects: Axis, length: int) -> int:
    """Where the stored object that holds element ``length - 1`` ends, within the array."""
    if length in (0, objects.length):
        return length
    last = int(objects.locate(np.array([length - 1], np.int64))[0][0])
    return min(objects.start(last) + objects.extent(last), objects.length)


def erase_beyond(after: ArraySource, before: ArraySource) -> None:
    """Erase stored objects of the array ``before`` that hold no element of the array ``after``."""
    if all(new >= old for new, old in zip(after.layout.metadata.shape, before.layout.metadata.shape, strict=True)):
        return
    counts = [axis.count for axis in after.layout.grids.objects]
    gone = [
        key
        for key, coordinates in stored_objects(before)
        if any(i >= count for i, count in zip(coordinates, counts, strict=True))
    ]
    after.store.erase_values(gone)
