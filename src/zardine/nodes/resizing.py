"""What has to happen to stored objects when an array changes shape (core 3.1, "Resizing")."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext, suppress
from dataclasses import replace
from math import prod
from typing import Final

import numpy as np

from zardine.chunk_grids.base import ChunkGrid
from zardine.codecs.chain import equals_fill
from zardine.engine.handle import ArrayHandle
from zardine.engine.read import read_plan
from zardine.engine.stored import stored_objects
from zardine.engine.write import write_plan
from zardine.errors import CorruptionError, ZardineError
from zardine.indexing.block import Block
from zardine.indexing.boxes import box_of, boxes_beyond, cut_box, end_of_piece, ranges_of
from zardine.indexing.plan import ChunkPlan, plan_grid
from zardine.indexing.selection import GridSelection
from zardine.metadata.documents import ArrayMetadata


def grown_for_append(shape: tuple[int, ...], data: tuple[int, ...], axis: int) -> tuple[int, ...]:
    """Return the shape after appending data of shape ``data`` along ``axis``.

    Raises ``ValueError`` where they do not fit.
    """
    if not -len(shape) <= axis < len(shape):
        raise ValueError(f"axis {axis} is out of bounds for array of dimension {len(shape)}")
    axis %= len(shape)
    others = shape[:axis] + shape[axis + 1 :]
    if len(data) != len(shape) or data[:axis] + data[axis + 1 :] != others:
        raise ValueError(
            f"data of shape {data} cannot be appended to an array of shape {shape} along axis {axis}: "
            "all other axes must agree"
        )
    grown = shape[axis] + data[axis]
    if grown >= 2**63:
        raise ValueError(f"{data[axis]} more on axis {axis}: the length {grown} is not in 0 to 2^63 - 1")
    return (*shape[:axis], grown, *shape[axis + 1 :])


def grown_by(
    handle: ArrayHandle, metadata: ArrayMetadata, counts: tuple[int, ...], axis: int
) -> tuple[ArrayHandle, Block]:
    """Return a ``handle`` of its array of ``metadata`` after ``counts`` are appended on ``axis``, and where these lie.

    Raises as :func:`grown_for_append`.
    """
    shape = handle.layout.metadata.shape
    grown = with_shape(metadata, handle.layout.grid, grown_for_append(shape, counts, axis))
    starts = [length if i == axis % len(shape) else 0 for i, length in enumerate(shape)]
    return handle.with_shape(grown), Block(tuple(starts), counts, None)


def plan_block(handle: ArrayHandle, block: Block) -> ChunkPlan:
    """Return the plan of a block of elements in the array ``handle``."""
    layout = handle.layout
    plan = None
    if layout.blocks is not None and all(block.counts):
        plan = layout.blocks.plan(block, layout.metadata.shape)
    if plan is not None:
        return plan
    ends = [start + count for start, count in zip(block.starts, block.counts, strict=True)]
    return plan_grid(box_of(list(zip(block.starts, ends, strict=True))), layout.grids)


def with_shape(metadata: ArrayMetadata, grid: ChunkGrid, shape: tuple[int, ...]) -> ArrayMetadata:
    """Return the document of an array with chunk grid ``grid`` after a change of its shape."""
    resized = grid.resized(shape)
    if resized is grid:
        return metadata.with_shape(shape)
    chunk_grid = replace(metadata.chunk_grid, configuration=resized.configuration())
    return replace(metadata, shape=shape, chunk_grid=chunk_grid)


def clear_beyond(before: ArrayHandle, shape: tuple[int, ...], *, leaving: bool = False) -> None:
    """Put the fill value where stored objects that ``shape`` cuts hold elements beyond it. ``before`` is what was cut.

    With ``leaving`` objects that cannot be changed are left as they are, and all others are done.

    What other programs left beyond the end of ``before`` goes, too. Where no length changes, as when a resize is made
    again that failed half-way, it is looked for at the ends of all axes.
    """
    metadata = before.layout.metadata
    if 0 in shape:
        return  # nothing is cut: every stored object lies beyond
    grids = before.layout.grids
    same = shape == metadata.shape
    kept = [min(old, new) for old, new in zip(metadata.shape, shape, strict=True)]
    cut = [same or length < old for length, old in zip(kept, metadata.shape, strict=True)]
    chunks, ends = (
        [end_of_piece(axis, size - 1) if is_cut else size for axis, size, is_cut in zip(axes, kept, cut, strict=True)]
        for axes in (grids.chunks, grids.storage)
    )
    whole = tuple(max(old, end) for old, end in zip(metadata.shape, ends, strict=True))
    before = replace(before.with_shape(with_shape(metadata, before.layout.grid, whole)), is_shared=False)
    # first the chunks that lie wholly beyond, which may be torn, then those that are cut
    origin = [0] * len(shape)
    stored: list[tuple[int, ...]] | None = None
    for slab in (*boxes_beyond(origin, chunks, ends), *boxes_beyond(origin, kept, chunks)):
        touched = _objects_of(before, slab)
        boxes: Iterable[GridSelection]
        if prod(map(len, touched)) > _MOST_TRIED:
            if stored is None:
                stored = [coordinates for _, coordinates in stored_objects(before)]
            boxes = _boxes_of(before, slab, touched, stored)
        else:
            boxes = cut_box(slab, before.layout.grids.storage) if same or leaving else (slab,)
        for box in boxes:
            with suppress(ZardineError) if leaving else nullcontext():
                if not same or _has_values(before, box):
                    put_fill(before, box)


_MOST_TRIED: Final = 4096
"""Objects at the ends that are asked for one by one; of more, a list of what is stored says which are there."""


def _objects_of(handle: ArrayHandle, box: GridSelection) -> list[range]:
    """Return which objects along each axis a box touches, which has elements."""
    ranges = zip(handle.layout.grids.storage, ranges_of(box), strict=True)
    return [range(axis.find(start), axis.find(stop - 1) + 1) for axis, (start, stop) in ranges]


def _boxes_of(
    handle: ArrayHandle, box: GridSelection, touched: Sequence[range], stored: Iterable[tuple[int, ...]]
) -> Iterator[GridSelection]:
    """Yield the parts of a box in the objects that are stored."""
    for coordinates in stored:
        if all(i in each for i, each in zip(coordinates, touched, strict=True)):
            yield box_of(
                [
                    (max(start, axis.start(i)), min(stop, axis.start(i) + axis.extent(i)))
                    for axis, i, (start, stop) in zip(
                        handle.layout.grids.storage, coordinates, ranges_of(box), strict=True
                    )
                ]
            )


def put_fill(handle: ArrayHandle, box: GridSelection) -> None:
    """Write the fill value to a box."""
    values = np.broadcast_to(handle.layout.metadata.fill, box.full_shape)
    write_plan(handle, plan_grid(box, handle.layout.grids), values)


def _has_values(handle: ArrayHandle, box: GridSelection) -> bool:
    """Return whether there is something else than the fill value, or something that cannot be read."""
    fill = handle.layout.metadata.fill
    values = np.empty(box.shape, fill.dtype)
    try:
        read_plan(handle, plan_grid(box, handle.layout.grids), values)
    except CorruptionError:
        return True
    return not equals_fill(values, fill)


def erase_beyond(after: ArrayHandle, before: ArrayHandle) -> None:
    """Erase stored objects of the array ``before`` that hold no element of the array ``after``."""
    new, old = after.layout.metadata.shape, before.layout.metadata.shape
    if new != old and all(n >= o for n, o in zip(new, old, strict=True)):
        return
    counts = [axis.count for axis in after.layout.grids.storage]
    gone = [
        key
        for key, coordinates in stored_objects(before)
        if any(i >= count for i, count in zip(coordinates, counts, strict=True))
    ]
    after.store.erase_values(gone)


def take_back(grown: ArrayHandle, before: ArrayHandle) -> None:
    """Remove what was written beyond the shape of the array ``before``, which was to grow; as far as that is possible.

    What cannot be removed, since the store fails, ``zardine.verify`` finds and ``zardine.repair`` removes.
    """
    with suppress(ZardineError):
        erase_beyond(before, grown)  # first, since it makes room
        clear_beyond(replace(grown, buffer=None), before.layout.metadata.shape, leaving=True)
