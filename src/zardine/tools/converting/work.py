"""Which objects of a new array are to be written, in which portions, and by way of which arrays. No values here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import prod

import numpy as np

from zardine.chunk_grids.axis import Axis
from zardine.codecs.base import BytesBytesCodec
from zardine.engine.array_config import ArrayConfig
from zardine.engine.handle import ArrayHandle
from zardine.engine.layout import ArrayLayout, prepare_layout
from zardine.engine.nested_objects import nested
from zardine.engine.stored import stored_objects
from zardine.errors import UnsupportedError
from zardine.indexing.boxes import box_of, cut_box
from zardine.indexing.selection import GridSelection
from zardine.jobs.ranges import Ranges, batches
from zardine.jobs.stages import BlockGrid
from zardine.metadata.node_names import join_path
from zardine.stores.base import Store
from zardine.tools.copying.array_blocks import (
    Shape,
    blocks_for,
    copies_of,
    least_memory,
    share_of,
    source_axes,
    stage_grids,
)
from zardine.tools.copying.between import between_of, can_be_between
from zardine.tools.copying.blocks import (
    Blocks,
    pulled_blocks,
    reads_too_often,
    seldom_pulled_blocks,
    volume,
)
from zardine.tools.copying.counted_blocks import counted_blocks
from zardine.tools.copying.move import appended_codecs
from zardine.tools.listing import GatheredCells
from zardine.tools.seen import blocks_of_objects

_BLOCK_BYTES = 2**27
"""Bytes of the elements of a block, where objects of several of the source are made together."""
_MEMORY = 2**30
"""Bytes of memory of a worker, where the user says nothing else; more where one chunk or object takes more."""
COPIES = 4
"""Elements are in memory that often while they are converted: read, changed, encoded, and what the store holds."""


@dataclass(frozen=True, eq=False)
class ArrayWork:
    """The objects of ``target`` in which something lies that is stored in ``source``: those that have to be written.

    Objects are taken together in *blocks*: all that lie in one object of the source, where its borders allow that; else
    so many that no object of the source is read more than twice, where memory allows that.
    """

    source: ArrayHandle
    target: ArrayHandle
    as_text: bool
    cells: Ranges
    """Numbers of the blocks that are to be made."""
    grid: BlockGrid
    """The elements in blocks of whole objects of the target."""
    parts: tuple[Axis, ...]
    """Portions of whole objects in which a block is made, one at a time; each source chunk is decoded once."""
    behind: tuple[BytesBytesCodec, ...] | None = None
    """Codecs that make encoded chunks of the target out of those of the source; ``None``: elements are decoded."""
    copies: int = COPIES
    """How often the elements of a portion are in memory."""
    memory: int | None = None
    """Bytes that portions may take together, and a part of it what is fetched ahead; ``None``: as the settings say."""

    @property
    def count(self) -> int:
        """How many objects."""
        axes = self.target.layout.grids.storage
        if self.cells.count == self.grid.cells.count:
            return prod(axis.count for axis in axes)
        boxes = (zip(axes, self.grid.box(number), strict=True) for number in self.cells)
        return sum(prod(axis.find(stop - 1) - axis.find(start) + 1 for axis, (start, stop) in box) for box in boxes)

    @property
    def nbytes(self) -> int:
        """Bytes of the elements of all blocks that are to be made; elements of varying length count 16."""
        boxes = map(self.grid.box, self.cells)
        return sum(prod(stop - start for start, stop in box) for box in boxes) * self.item_size

    @property
    def portion_nbytes(self) -> int:
        """Bytes in memory of the elements of a portion, about."""
        portion = [min(block.longest, part.longest) for block, part in zip(self.grid.axes, self.parts, strict=True)]
        return volume(portion, self.target.layout.metadata.shape) * self.item_size

    @property
    def item_size(self) -> int:
        """Bytes of an element."""
        return self.target.layout.metadata.dtype.itemsize

    def portions(self) -> Iterator[GridSelection]:
        """Yield the boxes that are made at a time."""
        for number in self.cells:
            yield from cut_box(box_of(self.grid.box(number)), self.parts)

    def unplanned(self) -> Iterator[str]:
        """Yield keys of the target that are stored though nothing of the source lies there."""
        axes = self.target.layout.grids.storage
        for key, coordinates in stored_objects(self.target):
            starts = (axis.start(i) for axis, i in zip(axes, coordinates, strict=True))
            place = [axis.find(start) for axis, start in zip(self.grid.axes, starts, strict=True)]
            if self.grid.cells.number(place) not in self.cells:
                yield key


def blocks_of(source: ArrayHandle, target: ArrayHandle, memory: int | None = None) -> Blocks | None:
    """Return the blocks in which all of ``target`` is made of ``source``; ``None``: its own, object by object. No I/O.

    No object of the source is read more than twice, if need be by way of arrays between, and a worker takes about
    ``memory``. Raises ``ValueError`` where a chunk of the source or an object of the target does not fit.
    """
    old, new = source.layout, target.layout
    grids, wanted, shape = old.grids, new.grids.storage, old.metadata.shape
    per_block, portion = _own_blocks(old, new)
    often = any(
        reads_too_often(axes, [axis.together(number) for axis, number in zip(wanted, numbers, strict=True)])
        for axes, numbers in ((grids.storage, per_block), (grids.chunks, portion))
    )
    item_size = max(1, old.metadata.dtype.itemsize)
    largest = tuple(axis.longest for axis in wanted)
    portion_size = volume([size * number for size, number in zip(largest, portion, strict=True)], shape)
    room = (_MEMORY if memory is None else memory) // COPIES // item_size
    if not often and portion_size <= room:
        return None
    most = min(_BLOCK_BYTES // item_size, room)
    axes, counted = source_axes(old, (1,) * len(shape), most)
    differ = not all(axis.is_regular for axis in wanted)
    if differ and volume(largest, shape) <= most:
        pulled: Blocks | None = counted_blocks(axes, wanted, most, counted)
        if pulled is not None and pulled.between:
            pulled = None
    else:
        pulled = None if differ else pulled_blocks(axes, largest, most)
    if pulled is None and can_be_between(new.metadata):
        share = share_of((source.store, target.store))
        if memory is None:
            memory = max(_MEMORY, least_memory(old, new, share, appends=False, encoded=False))
        return blocks_for(old, new, memory, share, appends=False)
    if pulled is None and differ:
        most = max(most, volume(largest, shape))
        return counted_blocks(axes, wanted, most, counted, between=False)
    return pulled or seldom_pulled_blocks(axes, largest, most)


def steps_of(
    source: ArrayHandle,
    target: ArrayHandle,
    blocks: Blocks | None = None,
    between: tuple[Store, str] | None = None,
    memory: int | None = None,
    *,
    as_text: bool = False,
    everything: bool = False,
) -> tuple[ArrayWork, ...]:
    """Work out how all of ``target`` is made of ``source``: straight, or by way of arrays between. No I/O.

    Without ``blocks`` those objects of the target are made together that lie in one of the source. Arrays between are
    in the store, below the folder, that ``between`` names.
    """
    old, new = source.layout, target.layout
    if blocks is None:
        per_block, parts = (
            tuple(axis.together(number) for axis, number in zip(new.grids.storage, numbers, strict=True))
            for numbers in _own_blocks(old, new)
        )
        grids, all_parts = [BlockGrid(per_block)], [parts]
    else:
        grids = stage_grids(old, new, blocks, (1,) * len(new.metadata.shape))
        all_parts = [grid.axes for grid in grids]
    arrays, behind, copies = [source], None, COPIES
    if blocks is not None and blocks.between:
        assert between is not None
        for number, (each, cut) in enumerate(zip(blocks.between, pairwise(grids), strict=True)):
            layout = prepare_layout(between_of(new.metadata, each, cut, encoded=False))
            path = join_path(between[1], str(number))
            arrays.append(ArrayHandle(between[0], path, layout, ArrayConfig(), is_shared=False))
        copies = copies_of((source.store, target.store))
        memory = _MEMORY if memory is None else memory
    elif source.store.is_foreign and not as_text and not everything:
        behind = appended_codecs(old, new)
    arrays.append(replace(target, is_shared=False))  # nobody else knows of it
    return tuple(
        ArrayWork(
            *pair, as_text and pair[0] is source, Ranges([(0, grid.cells.count)]), grid, each, behind, copies, memory
        )
        for pair, grid, each in zip(pairwise(arrays), grids, all_parts, strict=True)
    )


def _own_blocks(old: ArrayLayout, new: ArrayLayout) -> tuple[Shape, Shape]:
    """Return how many objects of the target lie in one of the source along each axis, and how many in a chunk of it."""
    grids, wanted = old.grids, new.grids.storage
    portion = (
        max(1, min(chunks.runs[0][0], chunks.length) // other.runs[0][0]) if axis.is_regular and other.is_regular else 1
        for axis, chunks, other in zip(grids.storage, grids.chunks, wanted, strict=True)
    )
    return nested(grids.storage, wanted), tuple(portion)


def gather_stored(found: GatheredCells, array: int, source: ArrayHandle, works: Sequence[ArrayWork]) -> None:
    """Gather, of each of some works, the blocks in which elements of stored objects of ``source`` lie.

    That is all of them where nobody can tell which objects are stored.
    """
    ndim = len(source.layout.metadata.shape)
    try:
        for some in batches(coordinates for _, coordinates in stored_objects(source)):
            rows = np.array(some, np.int64).reshape(len(some), ndim)
            for step, work in enumerate(works):
                places = blocks_of_objects(source.layout.grids.storage, work.grid.axes, rows)[1]
                numbers = np.unique(places, axis=0).tolist() if ndim else [()]
                found.add((array, step), Ranges.of(map(work.grid.cells.number, numbers)))
    except UnsupportedError:
        for step, work in enumerate(works):
            found.add((array, step), work.cells)


__all__ = ["COPIES", "ArrayWork", "blocks_of", "gather_stored", "steps_of"]
