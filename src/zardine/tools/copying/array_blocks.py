"""Blocks of an array: chosen by its old layout, its new one, and the memory there is. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import prod
from typing import Final, Literal

from zardine.chunk_grids.axis import Axis
from zardine.engine.layout import ArrayLayout
from zardine.jobs.stages import BlockGrid
from zardine.stores.base import Store
from zardine.stores.file_seam import files_to_read
from zardine.tools.copying.blocks import Blocks, choose_blocks, reads_too_often, smaller_blocks, volume
from zardine.tools.copying.counted_blocks import counted_blocks, smaller_counted_blocks

_COPIES: Final = 2
"""A block is in memory that often at most: as elements, and encoded."""
_COPIES_FAR: Final = 3
"""The same where stores are no local files, so that what is fetched or sent is there as well."""
_WINDOW: Final = 16
"""One part in so many of the memory is for fetching ahead."""
OF_A_JOB: Final = 16 * 2**20
"""Bytes that a job takes beside its blocks, about."""
_VARIABLE: Final = 16
"""Bytes that an element of varying length is taken for."""

Shape = tuple[int, ...]


def cell_of(layout: ArrayLayout, *, encoded: bool) -> Shape:
    """Return the elements, along each axis, of what is moved as one: a chunk where chunks are moved ``encoded``."""
    if not encoded:
        return (1,) * layout.metadata.ndim
    if layout.sharding is not None:
        return layout.sharding.chunk_shape
    return tuple(axis.longest for axis in layout.grids.storage)


def cells_of(shape: Sequence[int], cell: Sequence[int]) -> Shape:
    """Return how many cells there are along each axis."""
    return tuple(-(-length // size) for length, size in zip(shape, cell, strict=True))


def in_cells(axes: Sequence[Axis], cell: Sequence[int]) -> list[Axis]:
    """Return axes of chunks, which are whole cells, of which the cells are the elements."""
    return [
        Axis(-(-axis.length // size), tuple((length // size, number) for length, number in axis.runs))
        for axis, size in zip(axes, cell, strict=True)
    ]


def item_size_of(layout: ArrayLayout) -> int:
    """Return bytes of an element in memory."""
    return layout.metadata.data_type.item_size or _VARIABLE


def copies_of(stores: Iterable[Store]) -> int:
    """Return how often a block is in memory at most, by the stores that it goes to and comes from."""
    return _COPIES if all(files_to_read(store) for store in stores) else _COPIES_FAR


def share_of(stores: Iterable[Store]) -> int:
    """Return which part of the memory a block may take: one in so many."""
    copies = copies_of(stores)
    return copies if copies == _COPIES else copies + 1


def fetched_ahead(memory: int) -> int:
    """Return bytes of the memory of a job that are for fetching ahead."""
    return max(2**20, memory // _WINDOW)


def blocks_for(
    old: ArrayLayout, new: ArrayLayout, memory: int, share: int, *, appends: bool, encoded: bool = False
) -> Blocks:
    """Return the blocks to copy ``old`` in, for which a job may use ``memory``, of which each takes one ``share``.

    ``appends``: whether whole chunks of the target can be appended to its shards. Raises ``ValueError`` where a chunk
    of the source or an object of the target does not fit.
    """
    cell = cell_of(old, encoded=encoded)
    item_size = item_size_of(old) * prod(cell)
    most = max(1, memory // share // item_size)
    axes, counted = source_axes(old, cell, most)
    appends = appends and not encoded and new.sharding is not None
    what, nbytes, shape = max(_least(old, new, cell, appends=appends), key=lambda each: each[1])
    if nbytes > most * item_size:
        raise ValueError(
            f"{what} of shape {shape} takes {nbytes:,} bytes, more than a block, which is 1/{share} of max_memory: "
            f"give a max_memory of {nbytes * share:,} bytes or more"
        )
    target = in_cells(new.grids.storage, cell)
    fits = volume(_largest(target), cells_of(new.metadata.shape, cell)) <= most
    if all(axis.is_regular for axis in target):
        inner = new.sharding.chunk_shape if appends and new.sharding is not None else None
        found = choose_blocks(axes, _largest(axes), _largest(target), most, item_size, inner=inner)
        if all(axis.is_regular for axis in axes) or not _reads_too_often(axes, found):
            return found
    made = counted_blocks(axes, target if fits else in_cells(new.grids.chunks, cell), most, counted)
    return made if fits else replace(made, appends=True)


def source_axes(old: ArrayLayout, cell: Sequence[int], most: int) -> tuple[list[Axis], Literal["objects", "chunks"]]:
    """Return what is read as one, in cells: objects, or the chunks in them, where objects have more cells than most."""
    axes = in_cells(old.grids.storage, cell)
    if old.sharding is None or volume(_largest(axes), cells_of(old.metadata.shape, cell)) <= most:
        return axes, "objects"
    return in_cells(old.grids.chunks, cell), "chunks"


def _reads_too_often(source: Sequence[Axis], blocks: Blocks) -> bool:
    first = blocks.between[0].block if blocks.between else blocks.write
    return reads_too_often(source, [Axis.regular(axis.length, n) for axis, n in zip(source, first, strict=True)])


def stage_grids(old: ArrayLayout, new: ArrayLayout, blocks: Blocks, cell: Sequence[int]) -> list[BlockGrid]:
    """Return the grids of cells whose blocks are copied at a time, one for each array that is written."""
    shape = cells_of(old.metadata.shape, cell)
    if not blocks.counted:
        return [BlockGrid.regular(shape, each) for each in (*(each.block for each in blocks.between), blocks.write)]
    read = in_cells(old.grids.storage if blocks.counted == "objects" else old.grids.chunks, cell)
    written = in_cells(new.grids.chunks if blocks.appends else new.grids.storage, cell)
    pairs = [*((read, each.block) for each in blocks.between), (written, blocks.write)]
    return [
        BlockGrid(tuple(axis.together(number) for axis, number in zip(axes, numbers, strict=True)))
        for axes, numbers in pairs
    ]


def least_memory(old: ArrayLayout, new: ArrayLayout, share: int, *, appends: bool, encoded: bool) -> int:
    """Return the least memory for which there are blocks."""
    cell = cell_of(old, encoded=encoded)
    appends = appends and not encoded and new.sharding is not None
    return share * max(nbytes for _, nbytes, _ in _least(old, new, cell, appends=appends))


def _least(old: ArrayLayout, new: ArrayLayout, cell: Shape, *, appends: bool) -> list[tuple[str, int, Shape]]:
    """Return what has to fit into a block, in words, its bytes, and its shape."""
    axes = old.grids.storage if old.sharding is None else old.grids.chunks
    target = _largest(new.grids.chunks if appends else new.grids.storage)
    shape, item_size = cells_of(old.metadata.shape, cell), item_size_of(old) * prod(cell)
    parts = (
        ("a chunk of the source", cells_of(_largest(axes), cell)),
        ("an inner chunk of the target" if appends else "an object of the target", cells_of(target, cell)),
    )
    return [
        (what, volume(cells, shape) * item_size, tuple(n * k for n, k in zip(cells, cell, strict=True)))
        for what, cells in parts
    ]


def with_more_jobs(old: ArrayLayout, new: ArrayLayout, blocks: Blocks, wanted: int, *, encoded: bool) -> Blocks:
    """Return the blocks in parts of about ``wanted`` bytes, where source objects are read no more often for that."""
    cell = cell_of(old, encoded=encoded)
    axes, target = in_cells(old.grids.storage, cell), in_cells(new.grids.storage, cell)
    most = max(1, wanted // (item_size_of(old) * prod(cell)))
    if not blocks.counted:
        return smaller_blocks(axes, _largest(target), blocks, most)
    return smaller_counted_blocks(axes, target, blocks, most)


def _largest(axes: Sequence[Axis]) -> Shape:
    return tuple(axis.longest for axis in axes)


__all__ = [
    "OF_A_JOB",
    "blocks_for",
    "cell_of",
    "cells_of",
    "copies_of",
    "fetched_ahead",
    "in_cells",
    "item_size_of",
    "least_memory",
    "share_of",
    "source_axes",
    "stage_grids",
    "with_more_jobs",
]
