"""Appending whole inner chunks to shards of local files, which other workers append theirs to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from zardine.engine.handle import ArrayHandle
from zardine.engine.locate import find_chunks
from zardine.engine.read import read_plan
from zardine.engine.read_ahead import window_bytes
from zardine.engine.write import write_plan
from zardine.errors import DataError
from zardine.indexing.boxes import box_of, cut_box
from zardine.indexing.plan import plan_grid
from zardine.indexing.selection import AxisSlice, GridSelection
from zardine.jobs.job import Job, NotWantedError, OvertakenError
from zardine.sharding.index import MISSING
from zardine.tools.rechunking.sums import same_bits


def array_prefix(target: ArrayHandle) -> str:
    """Return what the keys of all shards begin with."""
    return f"{target.path}/" if target.path else ""


def append_block(job: Job, target: ArrayHandle, region: GridSelection, values: npt.NDArray[Any]) -> None:
    """Store ``values`` in a region of whole inner chunks. Those that are there already are not appended again.

    Other ones that are there are replaced only by a job that ``looks``: it has read the source since they were stored.
    """
    grids = target.layout.grids
    with target.store.writer(array_prefix(target)):
        if not job.is_wanted():
            raise NotWantedError("the plan was finished or cancelled meanwhile")
        boxes = list(cut_box(region, grids.storage))
        left = []
        for box in boxes:
            if not _has_chunks(target, box):
                left.append(box)
            elif not _is_there(target, box, _within(values, box, region)):
                if not job.looks:
                    raise OvertakenError(f"other chunks of {target.path!r} were stored meanwhile")
                left.append(box)
        if len(left) == len(boxes):
            write_plan(target, plan_grid(region, grids), values)
            return
        for box in left:
            write_plan(target, plan_grid(box, grids), np.ascontiguousarray(_within(values, box, region)))


def _within(values: npt.NDArray[Any], box: GridSelection, region: GridSelection) -> npt.NDArray[Any]:
    """Return the values of a box; ``values`` are those of the region."""
    pairs = zip(_ranges(box), _ranges(region), strict=True)
    return values[tuple(slice(start - first, stop - first) for (start, stop), (first, _) in pairs)]


def _ranges(box: GridSelection) -> Iterator[tuple[int, int]]:
    for axis in box.axes:
        assert isinstance(axis, AxisSlice)
        yield axis.start, axis.start + axis.count


def _has_chunks(target: ArrayHandle, box: GridSelection) -> bool:
    """Whether any inner chunk of a box, which lies in one shard, is stored: only where a job runs again."""
    part = next(plan_grid(box, target.layout.grids).parts())
    found = find_chunks(target, part, target.key(part.object), files=True)
    try:
        return bool((found.lengths != MISSING).any())
    finally:
        found.close()


def _is_there(target: ArrayHandle, box: GridSelection, values: npt.NDArray[Any]) -> bool:
    """Whether what is stored of a box are these values, bit for bit."""
    (first, last), *others = _ranges(box)
    assert target.layout.sharding is not None
    rows = target.layout.sharding.chunk_shape[0]
    step = max(1, window_bytes() // (2 * rows * max(1, values[:1].nbytes))) * rows
    for start in range(first, last, step):
        stop = min(start + step, last)
        slab = box_of([(start, stop), *others])
        stored = np.empty(slab.full_shape, values.dtype)
        try:
            read_plan(target, plan_grid(slab, target.layout.grids), stored)
        except DataError:
            return False
        if not same_bits(stored, values[start - first : stop - first]):
            return False
    return True


__all__ = ["append_block", "array_prefix"]
