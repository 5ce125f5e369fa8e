"""A batch of zarr-python, read or written by the engine: straight between stored objects and zarr-python's arrays."""

from __future__ import annotations

from collections.abc import Sequence
from operator import add
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from zardine.engine.freshness import has_shape, is_same_generation
from zardine.engine.handle import ArrayHandle
from zardine.engine.read import read_plan
from zardine.engine.read_block import read_block
from zardine.engine.write import write_plan
from zardine.errors import ArrayChangedError, ReadOnlyError
from zardine.hierarchy.find import describe, load_array
from zardine.indexing.block import Block, BlockPlan
from zardine.indexing.plan import make_plan
from zardine.indexing.selection import AxisSlice, GridSelection, PointSelection, Selection
from zardine.nodes.assign import broadcast_values, cast_values, check_output
from zardine.zarr_python.selections import Coordinates, Item, block_of, reach, selection_of, selection_of_one

AT_ONCE: Final = 2**20
"""Bytes of a decoded chunk up to which a block of it is read where it is asked for, and not in another thread."""


def read_at_once(handle: ArrayHandle, items: Sequence[Item], coordinates: Coordinates, out: npt.NDArray[Any]) -> bool:
    """Fill ``out``, if that takes as little as handing it to a thread does; whether it was done.

    So it is with a block whose chunks have at most :data:`AT_ONCE` bytes, on local files or in memory. Nothing of it
    waits for a lock: what is being edited, or damaged, is not done.
    """
    layout = handle.layout
    if layout.blocks is None or not handle.store.has_cheap_looks or layout.chunk_nbytes > AT_ONCE or len(items) > 1:
        return False
    block = block_of(items, coordinates, layout.grids.storage, out.shape)
    if block is None:
        return False
    ends = tuple(map(add, block.starts, block.counts))
    if any(end > length for end, length in zip(ends, layout.metadata.shape, strict=True)):
        return False
    nbytes = layout.chunk_nbytes
    for start, end, size in zip(block.starts, ends, layout.blocks.shape, strict=True):
        nbytes *= (end - 1) // size - start // size + 1
    if nbytes > AT_ONCE:
        return False
    found = read_block(handle, block)
    if found is None:
        return False
    out[...] = found
    return True


def read_items(
    handle: ArrayHandle,
    items: Sequence[Item],
    coordinates: Coordinates,
    out: npt.NDArray[Any],
    drop_axes: tuple[int, ...],
) -> None:
    """Fill ``out`` with what the ``items`` of one batch ask for; ``coordinates`` are those of their objects."""
    handle = _with_chunks(handle, coordinates)
    axes = handle.layout.grids.storage
    selection = selection_of(items, coordinates, axes, drop_axes)
    if selection is not None and selection.shape == out.shape:
        _read(_with_room(handle, selection), selection, out)
        return
    for item, each in zip(items, coordinates, strict=True):
        one = selection_of([(*item[:3], _all_of(item[2]), item[4])], [each], axes, drop_axes)
        if one is None:
            one = selection_of_one(item[2], each, axes)
        part = np.empty(one.shape, out.dtype)
        _read(_with_room(handle, one), one, part)
        if isinstance(one, PointSelection) and drop_axes:
            part = part.squeeze(axis=drop_axes)
        out[item[3]] = part


def write_items(
    handle: ArrayHandle,
    items: Sequence[Item],
    coordinates: Coordinates,
    value: npt.NDArray[Any],
    drop_axes: tuple[int, ...],
) -> None:
    """Store ``value``, or the one element that it is, where the ``items`` of one batch say."""
    if handle.store.read_only:
        raise ReadOnlyError(f"cannot write to {describe(handle.store, handle.path)}: it was opened read-only")
    handle = _with_chunks(handle, coordinates)
    axes = handle.layout.grids.storage
    selection = selection_of(items, coordinates, axes, drop_axes)
    if selection is not None and value.shape in ((), selection.shape):
        _write(_with_room(handle, selection), selection, value)
        return
    for item, each in zip(items, coordinates, strict=True):
        one = selection_of_one(item[2], each, axes)
        part = value if value.shape == () else value[item[3]]
        if drop_axes and part.shape != ():
            part = part[tuple(None if axis in drop_axes else slice(None) for axis in range(len(axes)))]
        _write(_with_room(handle, one), one, part)


def _all_of(taken: Any) -> Any:
    """Where the elements of one item go, when they have an output to themselves."""
    if not isinstance(taken, tuple):
        return ()
    return tuple(slice(0, None) for each in taken if isinstance(each, (slice, np.ndarray)))


def _with_chunks(handle: ArrayHandle, coordinates: Coordinates) -> ArrayHandle:
    """Return the handle with the grid that the array has now, where zarr-python has added chunks of other lengths."""
    for number, axis in enumerate(handle.layout.grids.storage):
        if axis.runs[-1][1] is not None and max(int(each[number]) for each in coordinates) >= axis.count:
            return _present(handle)
    return handle


def _present(handle: ArrayHandle) -> ArrayHandle:
    """Return the handle with the shape that the array has now. Raises where it is another array."""
    has_shape(handle)
    metadata = load_array(handle.store, handle.path, handle.layout.metadata.zarr_format)
    return handle.with_shape(metadata) if is_same_generation(handle.layout, metadata) else handle


def _with_room(handle: ArrayHandle, selection: Selection) -> ArrayHandle:
    """Return the handle with the shape that the array has now, where zarr-python has made it larger."""
    ends, shape = reach(selection), handle.layout.metadata.shape
    if all(end <= length for end, length in zip(ends, shape, strict=True)):
        return handle
    handle = _present(handle)
    shape = handle.layout.metadata.shape
    if all(end <= length for end, length in zip(ends, shape, strict=True)):
        return handle
    raise ArrayChangedError(
        f"array {handle.path!r} of {handle.store} has shape {shape} by now, and what was asked for reaches to "
        f"{tuple(ends)}: open it again"
    )


def _read(handle: ArrayHandle, selection: Selection, out: npt.NDArray[Any]) -> None:
    check_output(out, selection.shape)
    if out.dtype != handle.layout.metadata.dtype:
        whole = np.empty(selection.shape, handle.layout.metadata.dtype)
        _read(handle, selection, whole)
        out[...] = whole
        return
    if isinstance(selection, PointSelection):
        flat = out.reshape(-1)
        read_plan(handle, make_plan(selection, handle.layout.grids), flat)
        if not np.shares_memory(flat, out) and flat.size:
            out[...] = flat.reshape(out.shape)
        return
    block = _block(selection)
    if block is not None:
        found = read_block(handle, block)
        if found is not None:
            out[...] = found
            return
    read_plan(handle, _plan(handle, selection, block), selection.full_view(out))


def _write(handle: ArrayHandle, selection: Selection, value: npt.NDArray[Any]) -> None:
    values = broadcast_values(cast_values(value, handle.layout.metadata.dtype), selection.shape)
    if isinstance(selection, PointSelection):
        write_plan(handle, make_plan(selection, handle.layout.grids), values.reshape(-1))
    else:
        write_plan(handle, _plan(handle, selection, _block(selection)), selection.full_view(values))


def _plan(handle: ArrayHandle, selection: GridSelection, block: Block | None) -> Any:
    chunks = handle.layout.blocks
    plan: BlockPlan | None = None
    if chunks is not None and block is not None:
        plan = chunks.plan(block, handle.layout.metadata.shape)
    return make_plan(selection, handle.layout.grids) if plan is None else plan


def _block(selection: GridSelection) -> Block | None:
    """The block of elements that a selection is, if it is one."""
    starts, counts = [], []
    for axis in selection.axes:
        if not isinstance(axis, AxisSlice) or axis.step != 1 or axis.count == 0:
            return None
        starts.append(axis.start)
        counts.append(axis.count)
    dropped = tuple(0 if drop else slice(None) for drop in selection.drop) if True in selection.drop else None
    return Block(tuple(starts), tuple(counts), dropped)


__all__ = ["AT_ONCE", "read_at_once", "read_items", "write_items"]
