"""Reading many chunks that are files of their own: opened, read and decoded by the kernel, many in one call.

The kernel does the usual case only (``rust/src/files/stored_files.rs``): a regular file below the base of the store, or
none. What it leaves, and what is wrong, is read as any other chunk is, which says why.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from zardine.engine.freshness import check_fresh
from zardine.engine.handle import ArrayHandle
from zardine.indexing.plan import ChunkPlan, GridPlan, ObjectPart, PointPlan
from zardine.kernel import KERNEL
from zardine.settings import thread_count

_MOST: Final = 4096
"""Files that one call of the kernel opens, a few at a time."""


def read_whole_files(handle: ArrayHandle, plan: ChunkPlan, out: npt.NDArray[Any]) -> Iterator[ObjectPart]:
    """Read what of ``plan`` lies in files that are one chunk each, and return the parts that are still to be read.

    ``out`` is the output as the kernel takes it. Raises as :func:`~zardine.engine.freshness.check_fresh`.
    """
    layout = handle.layout
    if KERNEL is None or layout.sharding is not None or layout.blocks is None:
        return plan.parts()
    if not isinstance(plan, GridPlan | PointPlan):
        return plan.parts()
    most = layout.blocks.chain.most_for_kernel()
    if most < 0 or plan.object_count < 2:
        return plan.parts()
    keys = map(handle.key, plan.object_coordinates())
    axes = plan.kernel_axes() if isinstance(plan, GridPlan) else []
    files_of = handle.store.files
    if files_of is None:
        return plan.parts()
    left: set[int] = set()
    for start in range(0, plan.object_count, _MOST):
        named = files_of.paths(list(islice(keys, _MOST)))
        if named is None:
            return plan.parts()
        files = KERNEL.StoredFiles(*named, missing=handle.config.read_missing_chunks)
        rows = plan.rows_of_objects(start, len(named.paths))
        jobs = np.zeros((len(rows), 3 + rows.shape[1]), np.int64)
        jobs[:, 0] = np.arange(len(rows))
        jobs[:, 2] = most
        jobs[:, 3:] = rows
        if isinstance(plan, GridPlan):
            failed = layout.pipeline.decode(files, jobs, axes, out, thread_count())
        else:
            failed = layout.pipeline.decode_points(
                files, jobs, plan.extents, plan.point_bounds, plan.points, plan.places, out, thread_count()
            )
        check_fresh(handle)  # after all of them were opened: they belong to the document that is there now
        left.update(start + job for job, _ in failed)
    return _parts(plan, left) if left else iter(())


def _parts(plan: GridPlan | PointPlan, numbers: set[int]) -> Iterator[ObjectPart]:
    """Return the parts with these numbers."""
    parts: Iterator[ObjectPart] = plan.parts()
    return (part for number, part in enumerate(parts) if number in numbers)


__all__ = ["read_whole_files"]
