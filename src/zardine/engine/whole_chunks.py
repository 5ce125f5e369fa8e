"""Writing many whole chunks into files of their own: encoded, written and named by the kernel, many in one call.

The kernel does the usual case only (``rust/src/new_file.rs``): a name that is free, or a file that nobody has locked.
What it leaves is written as any other chunk is.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import islice
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from zardine.engine.change import Settled
from zardine.engine.handle import ArrayHandle
from zardine.indexing.plan import ChunkPlan, GridPart, GridPlan, ObjectPart
from zardine.settings import thread_count

_MOST: Final = 64
"""Chunks that one call of the kernel writes, and so directories that are open for it, at most."""

_DONE: Final = 1
"""What the kernel says of a chunk that was put into its file."""


def put_whole_chunks(
    handle: ArrayHandle,
    plan: ChunkPlan,
    values: npt.NDArray[Any],
    settled: dict[str, Settled],
) -> Iterator[ObjectPart]:
    """Write what of ``plan`` is whole chunks of which nothing stored is kept, and give the other parts of it.

    ``settled`` are the versions that some objects must have still, by their keys.
    """
    layout = handle.layout
    if (
        layout.sharding is not None
        or layout.pipeline is None
        or not layout.fits_memory
        or not isinstance(plan, GridPlan)
    ):
        return plan.parts()
    return _others(handle, plan, values.view(f"V{values.dtype.itemsize}"), settled)


def _others(
    handle: ArrayHandle,
    plan: GridPlan,
    values: npt.NDArray[Any],
    settled: dict[str, Settled],
) -> Iterator[ObjectPart]:
    axes = plan.kernel_axes()
    parts = plan.parts()
    all_whole = all(axis.whole.all() for axis in plan.axes)
    while batch := list(islice(parts, _MOST)):
        wanted: list[tuple[GridPart, str, bool]] = []
        for part in batch:
            key = handle.key(part.object)
            there = settled.get(key)
            is_new = there is not None and there.version is None
            if is_new or (there is None and (all_whole or (part.whole() if handle.watched else part.covered())[0])):
                wanted.append((part, key, is_new))
            else:
                yield part
        yield from _put(handle, axes, wanted, values)


def _put(
    handle: ArrayHandle, axes: list[Any], wanted: list[tuple[GridPart, str, bool]], values: npt.NDArray[Any]
) -> Collection[ObjectPart]:
    """Write these chunks, and return those of which that is still to be done."""
    parts = [part for part, _, _ in wanted]
    if not wanted:
        return ()
    with handle.store.new_files([key for _, key, _ in wanted]) as files:
        if files is None:
            return parts
        puts, _ = handle.layout.pipeline.encode_to_files(
            values,
            np.array([part.low for part in parts], np.int64),
            axes,
            write_empty=handle.write_empty_chunks,
            threads=thread_count(),
            files=[(*file, is_new) for file, (_, _, is_new) in zip(files, wanted, strict=True)],
        )
    return [part for part, put in zip(parts, puts, strict=True) if put != _DONE]


__all__ = ["put_whole_chunks"]
