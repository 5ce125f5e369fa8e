"""Appending whole inner chunks to shards of local files, which other workers append theirs to."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from zardine.engine.handle import ArrayHandle
from zardine.engine.locate import find_chunks
from zardine.indexing.boxes import cut_box, ranges_of
from zardine.indexing.plan import plan_grid
from zardine.indexing.selection import GridSelection
from zardine.jobs.job import Job, NotWantedError, OvertakenError
from zardine.sharding.index import MISSING
from zardine.tools.copying.compare import holds
from zardine.tools.copying.move import write_elements


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
            elif not holds(target, box, partial(_within, values, region)):
                if not job.looks:
                    raise OvertakenError(f"other chunks of {target.path!r} were stored meanwhile")
                left.append(box)
        if len(left) == len(boxes):
            write_elements(target, region, values)
            return
        for box in left:
            write_elements(target, box, np.ascontiguousarray(_within(values, region, box)))


def _within(values: npt.NDArray[Any], region: GridSelection, box: GridSelection) -> npt.NDArray[Any]:
    """Return the values of a box; ``values`` are those of the region."""
    pairs = zip(ranges_of(box), ranges_of(region), strict=True)
    return values[tuple(slice(start - first, stop - first) for (start, stop), (first, _) in pairs)]


def _has_chunks(target: ArrayHandle, box: GridSelection) -> bool:
    """Whether any inner chunk of a box, which lies in one shard, is stored: only where a job runs again."""
    part = next(plan_grid(box, target.layout.grids).parts())
    found = find_chunks(target, part, target.key(part.object), files=True)
    try:
        return bool((found.lengths != MISSING).any())
    finally:
        found.close()


__all__ = ["append_block", "array_prefix"]
