"""Which blocks an array is copied in, by its layouts and the memory there is. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod
from typing import Final

from zardine.chunk_grids.axis import Axis
from zardine.engine.layout import ArrayLayout
from zardine.stores.base import Store
from zardine.tools.rechunking.blocks import Blocks, choose_blocks, smaller_blocks, volume

_COPIES: Final = 2
"""A block is in memory that often at most: as elements, and encoded."""
_COPIES_FAR: Final = 3
"""The same where stores are no local files, so that what is fetched or sent is there as well."""
_VARIABLE: Final = 16
"""Bytes that an element of varying length is taken for."""

Shape = tuple[int, ...]


def cell_of(layout: ArrayLayout, *, encoded: bool) -> Shape:
    """Return the elements, along each axis, of what is moved as one: a chunk where chunks are moved ``encoded``."""
    if not encoded:
        return (1,) * layout.metadata.ndim
    if layout.sharding is not None:
        return layout.sharding.chunk_shape
    return tuple(axis.runs[0][0] for axis in layout.grids.storage)


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


def share_of(stores: Iterable[Store]) -> int:
    """Return which part of the memory a block may take: one in so many."""
    return _COPIES if all(store.gives_files for store in stores) else _COPIES_FAR + 1


def blocks_for(
    old: ArrayLayout, new: ArrayLayout, memory: int, share: int, *, appends: bool, encoded: bool = False
) -> Blocks:
    """Return the blocks to copy ``old`` in, for which a job may use ``memory``, of which each takes one ``share``.

    ``appends``: whether whole chunks of the target can be appended to its shards. Raises ``ValueError`` where a chunk
    of the source or an object of the target does not fit.
    """
    target, cell = new.object_shape, cell_of(old, encoded=encoded)
    assert target is not None
    item_size = item_size_of(old) * prod(cell)
    most = max(1, memory // share // item_size)
    axes = in_cells(old.grids.storage, cell)
    if volume(_largest(axes), cells_of(old.metadata.shape, cell)) > most and old.sharding is not None:
        axes = in_cells(old.grids.chunks, cell)
    inner = new.sharding.chunk_shape if appends and not encoded and new.sharding is not None else None
    what, nbytes, shape = max(_least(old, new, cell, appends=inner is not None), key=lambda each: each[1])
    if nbytes > most * item_size:
        raise ValueError(
            f"{what} of shape {shape} takes {nbytes:,} bytes, more than a block, which is 1/{share} of max_memory: "
            f"give a max_memory of {nbytes * share:,} bytes or more"
        )
    return choose_blocks(axes, _largest(axes), cells_of(target, cell), most, item_size, inner=inner)


def least_memory(old: ArrayLayout, new: ArrayLayout, share: int, *, appends: bool, encoded: bool) -> int:
    """Return the least memory for which there are blocks."""
    cell = cell_of(old, encoded=encoded)
    appends = appends and not encoded and new.sharding is not None
    return share * max(nbytes for _, nbytes, _ in _least(old, new, cell, appends=appends))


def _least(old: ArrayLayout, new: ArrayLayout, cell: Shape, *, appends: bool) -> list[tuple[str, int, Shape]]:
    """Return what has to fit into a block, in words, its bytes, and its shape."""
    axes = old.grids.storage if old.sharding is None else old.grids.chunks
    target = new.sharding.chunk_shape if appends and new.sharding is not None else new.object_shape
    assert target is not None
    shape = old.metadata.shape
    parts = (
        ("a chunk of the source", _largest(axes)),
        ("an inner chunk of the target" if appends else "an object of the target", target),
    )
    sizes = [tuple(n * k for n, k in zip(cells_of(each, cell), cell, strict=True)) for _, each in parts]
    return [(what, volume(size, shape) * item_size_of(old), size) for (what, _), size in zip(parts, sizes, strict=True)]


def with_more_jobs(old: ArrayLayout, new: ArrayLayout, blocks: Blocks, wanted: int, *, encoded: bool) -> Blocks:
    """Return the blocks in parts of about ``wanted`` bytes, where source objects are read no more often for that."""
    cell = cell_of(old, encoded=encoded)
    assert new.object_shape is not None
    axes, target = in_cells(old.grids.storage, cell), cells_of(new.object_shape, cell)
    return smaller_blocks(axes, target, blocks, max(1, wanted // (item_size_of(old) * prod(cell))))


def _largest(axes: Sequence[Axis]) -> Shape:
    return tuple(max((size for size, _ in axis.runs), default=1) for axis in axes)


__all__ = [
    "blocks_for",
    "cell_of",
    "cells_of",
    "in_cells",
    "item_size_of",
    "least_memory",
    "share_of",
    "with_more_jobs",
]
