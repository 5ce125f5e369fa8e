"""Which objects of a new array are to be written, in which portions, and by way of which arrays. No values here."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise, product
from math import prod
from typing import TypeAlias

import numpy as np

from zardine.chunk_grids.axis import Axis
from zardine.codecs.base import BytesBytesCodec
from zardine.engine.array_config import ArrayConfig
from zardine.engine.stored import stored_objects
from zardine.errors import MetadataError, UnsupportedError
from zardine.hierarchy.find import HIDDEN
from zardine.jobs.ranges import Ranges, batches
from zardine.jobs.stages import BlockGrid, Cells
from zardine.metadata.node_names import join_path
from zardine.nodes.array import Array
from zardine.stores.base import Store
from zardine.stores.local.store import LocalStore
from zardine.stores.zip.store import ZipStore
from zardine.tools.listing import GatheredCells
from zardine.tools.rechunking.blocks import (
    Between,
    Blocks,
    pulled_blocks,
    reads_too_often,
    seldom_pulled_blocks,
    volume,
)
from zardine.tools.rechunking.cells import blocks_for, least_memory, share_of, source_axes, stage_grids
from zardine.tools.rechunking.copying import between_of
from zardine.tools.rechunking.differing import counted_blocks
from zardine.tools.resharding.plan import appended_codecs
from zardine.tools.seen import blocks_of_objects

Coordinates: TypeAlias = tuple[int, ...]
Region: TypeAlias = tuple[slice, ...]

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

    source: Array
    target: Array
    as_text: bool
    cells: Ranges
    """Numbers of the blocks that are to be made, in :attr:`grid`."""
    per_block: tuple[Axis, ...]
    """Blocks along each axis, in objects."""
    portion: Coordinates
    """Objects of a block along each axis that are made at a time, so that each chunk of the source is decoded once."""
    behind: tuple[BytesBytesCodec, ...] | None = None
    """Codecs that make encoded chunks of the target out of those of the source; ``None``: elements are decoded."""
    copies: int = COPIES
    """How often the elements of a portion are in memory."""
    memory: int | None = None
    """Bytes that portions may take together, and a part of it what is fetched ahead; ``None``: as the settings say."""

    @cached_property
    def grid(self) -> Cells:
        """All blocks."""
        return Cells(tuple(axis.count for axis in self.per_block))

    @property
    def count(self) -> int:
        """How many objects."""
        if self.cells.count == self.grid.count:
            return prod(axis.count for axis in self._axes)
        return sum(prod(stop - start for start, stop, _ in self._bounds(row)) for row in self._rows())

    @property
    def portion_nbytes(self) -> int:
        """Bytes in memory of the elements of a portion, about; elements of varying length count 16."""
        portion = [
            blocks.longest if number >= objects.longest else axis.longest * number
            for axis, objects, blocks, number in zip(
                self._axes, self.per_block, self.block_axes, self.portion, strict=True
            )
        ]
        return volume(portion, self.target.shape) * self.target.dtype.itemsize

    def portions(self) -> Iterator[list[Coordinates]]:
        """Yield grid coordinates of the objects to be made at a time."""
        for row in self._rows():
            ranges = [
                [range(low, min(low + step, stop)) for low in range(start, stop, step)]
                for start, stop, step in self._bounds(row)
            ]
            for parts in product(*ranges):
                yield list(product(*parts))

    def region(self, objects: Iterable[Coordinates]) -> Region:
        """Return the smallest region of the array with the elements of all these objects."""
        rows = list(objects)
        region = []
        for number, axis in enumerate(self._axes):
            low, high = min(row[number] for row in rows), max(row[number] for row in rows)
            region.append(slice(axis.start(low), min(axis.start(high) + axis.extent(high), axis.length)))
        return tuple(region)

    def keys(self, objects: Iterable[Coordinates]) -> list[str]:
        """Return keys of objects of the target."""
        return [self.target._handle.key(each) for each in objects]

    def unplanned(self) -> Iterator[str]:
        """Yield keys of the target that are stored though nothing of the source lies there."""
        for key, coordinates in stored_objects(self.target._handle):
            place = [axis.find(i) for axis, i in zip(self.per_block, coordinates, strict=True)]
            if self.grid.number(place) not in self.cells:
                yield key

    @cached_property
    def block_axes(self) -> tuple[Axis, ...]:
        """Blocks along each axis, in elements."""
        return tuple(map(_blocks_along, self._axes, self.per_block))

    @property
    def cuts(self) -> BlockGrid:
        """The elements in blocks."""
        return BlockGrid(self.block_axes)

    @property
    def _axes(self) -> tuple[Axis, ...]:
        return self.target._handle.layout.grids.storage

    def _rows(self) -> Iterator[Coordinates]:
        return map(self.grid.place, self.cells)

    def _bounds(self, row: Coordinates) -> Iterator[tuple[int, int, int]]:
        for i, axis, step in zip(row, self.per_block, self.portion, strict=True):
            start = axis.start(i)
            yield start, min(start + axis.extent(i), axis.length), step


def _blocks_along(axis: Axis, objects: Axis) -> Axis:
    """Return the blocks along an axis in elements, which are those in ``objects``."""
    if objects.is_regular:
        return axis.together(objects.runs[0][0])
    return Axis.cut(axis.length, axis.starts(objects.starts(np.arange(objects.count, dtype=np.int64))))


def blocks_of(source: Array, target: Array, memory: int | None = None) -> Blocks | None:
    """Return the blocks in which all of ``target`` is made of ``source``; ``None``: those of :func:`work_of`. No I/O.

    No object of the source is read more than twice, if need be by way of arrays between, and a worker takes about
    ``memory``. Raises ``ValueError`` where a chunk of the source or an object of the target does not fit.
    """
    old, new = source._handle.layout, target._handle.layout
    grids, wanted = old.grids, new.grids.storage
    per_block, portion = _own_blocks(source, target)
    often = any(
        reads_too_often(axes, [axis.together(number) for axis, number in zip(wanted, numbers, strict=True)])
        for axes, numbers in ((grids.storage, per_block), (grids.chunks, portion))
    )
    item_size = max(1, source.dtype.itemsize)
    largest = tuple(axis.longest for axis in wanted)
    portion_size = volume([size * number for size, number in zip(largest, portion, strict=True)], source.shape)
    room = (_MEMORY if memory is None else memory) // COPIES // item_size
    if not often and portion_size <= room:
        return None
    most = min(_BLOCK_BYTES // item_size, room)
    axes, counted = source_axes(old, (1,) * source.ndim, most)
    differ = not all(axis.is_regular for axis in wanted)
    if differ and volume(largest, source.shape) <= most:
        pulled: Blocks | None = counted_blocks(axes, wanted, most, counted)
        if pulled is not None and pulled.between:
            pulled = None
    else:
        pulled = None if differ else pulled_blocks(axes, largest, most)
    if pulled is None and can_be_between(target):
        share = share_of((source.store, target.store))
        if memory is None:
            memory = max(_MEMORY, least_memory(old, new, share, appends=False, encoded=False))
        return blocks_for(old, new, memory, share, appends=False)
    if pulled is None and differ:
        most = max(most, volume(largest, source.shape))
        return counted_blocks(axes, wanted, most, counted, between=False)
    return pulled or seldom_pulled_blocks(axes, largest, most)


def folder_between(store: Store, path: str) -> tuple[Store, str]:
    """Return where the arrays between are of what is made at a path: hidden there; beside a zip archive."""
    if isinstance(store, ZipStore):  # which does not give back room
        folder, name = os.path.split(store.path)
        return LocalStore(folder), join_path(f"{name}.between", path)
    return store, join_path(path, f"{HIDDEN}/between")


def can_be_between(target: Array) -> bool:
    """Whether the elements of an array can lie in one between: Python objects cannot."""
    ones = (1,) * target.ndim
    cut = BlockGrid.regular(target.shape, ones)
    try:
        between_of(target.metadata, Between(ones, ones), (cut, cut), encoded=False)
    except MetadataError:
        return False
    return True


def steps_of(
    source: Array,
    target: Array,
    blocks: Blocks | None,
    between: tuple[Store, str],
    memory: int | None = None,
    *,
    as_text: bool = False,
    everything: bool = False,
) -> tuple[ArrayWork, ...]:
    """Work out how all of ``target`` is made of ``source``: straight, or by way of arrays between. No I/O.

    Arrays between are in the store, below the folder, that ``between`` names.
    """
    if blocks is None or not blocks.between:
        made = work_of(source, target, blocks, as_text=as_text, everything=everything)
        return (replace(made, memory=memory),)
    grids = stage_grids(source._handle.layout, target._handle.layout, blocks, (1,) * target.ndim)
    arrays = [source]
    for number, (each, cut) in enumerate(zip(blocks.between, pairwise(grids), strict=True)):
        metadata = between_of(target.metadata, each, cut, encoded=False)
        arrays.append(Array(between[0], join_path(between[1], str(number)), metadata, ArrayConfig()))
    arrays.append(target)
    share = share_of((source.store, target.store))
    memory = _MEMORY if memory is None else memory
    steps = []
    for (old, new), grid in zip(pairwise(arrays), grids, strict=True):
        made = _work_in(old, new, grid, as_text=as_text and old is source, everything=True)
        steps.append(replace(made, copies=share - (share > 2), memory=memory))
    return tuple(steps)


def work_of(
    source: Array,
    target: Array,
    blocks: Blocks | None = None,
    *,
    as_text: bool = False,
    everything: bool = False,
) -> ArrayWork:
    """Work out how all of ``target`` is made of ``source`` straight, in ``blocks``. No I/O.

    Without ``blocks`` those objects of the target are made together that lie in one of the source.
    """
    if blocks is not None:
        (grid,) = stage_grids(source._handle.layout, target._handle.layout, blocks, (1,) * target.ndim)
        return _work_in(source, target, grid, as_text=as_text, everything=everything)
    numbers, portion = _own_blocks(source, target)
    per_block = (
        Axis.regular(axis.count, n) for axis, n in zip(target._handle.layout.grids.storage, numbers, strict=True)
    )
    return _work(source, target, tuple(per_block), portion, as_text=as_text, everything=everything)


def _work_in(source: Array, target: Array, grid: BlockGrid, *, as_text: bool, everything: bool) -> ArrayWork:
    """Work out how all of ``target`` is made in the blocks of a grid of elements, which are of whole objects."""
    per_block = tuple(map(_objects_along, target._handle.layout.grids.storage, grid.axes))
    portion = tuple(axis.longest for axis in per_block)
    return _work(source, target, per_block, portion, as_text=as_text, everything=everything)


def _objects_along(axis: Axis, blocks: Axis) -> Axis:
    """Return the blocks along an axis in objects, which are those in elements."""
    if axis.is_regular and blocks.is_regular:
        return Axis.regular(axis.count, -(-blocks.runs[0][0] // axis.runs[0][0]))
    return Axis.cut(axis.count, axis.locate(blocks.starts(np.arange(blocks.count, dtype=np.int64)))[0])


def _work(
    source: Array, target: Array, per_block: tuple[Axis, ...], portion: Coordinates, *, as_text: bool, everything: bool
) -> ArrayWork:
    made = target._with_handle(replace(target._handle, watched=False))  # nobody else knows of it
    behind = None
    if source.store.is_foreign and not as_text and not everything:
        behind = appended_codecs(source._handle.layout, made._handle.layout)
    work = ArrayWork(source, made, as_text, Ranges(), per_block, portion, behind)
    return replace(work, cells=Ranges([(0, work.grid.count)]))


def _own_blocks(source: Array, target: Array) -> tuple[Coordinates, Coordinates]:
    """Return how many objects of the target lie in one of the source along each axis, and how many in a chunk of it."""
    grids, wanted = source._handle.layout.grids, target._handle.layout.grids.storage
    per_block, portion = [], []
    for axis, chunks, other in zip(grids.storage, grids.chunks, wanted, strict=True):
        number = step = 1
        if axis.is_regular and other.is_regular:
            size = other.runs[0][0]
            number = axis.runs[0][0] // size if axis.runs[0][0] % size == 0 else 1
            step = max(1, min(chunks.runs[0][0], chunks.length) // size)
        per_block.append(number)
        portion.append(step)
    return tuple(per_block), tuple(portion)


def gather_stored(found: GatheredCells, array: int, source: Array, works: Sequence[ArrayWork]) -> None:
    """Gather, of each of some works, the blocks in which elements of stored objects of ``source`` lie.

    That is all of them where nobody can tell which objects are stored.
    """
    try:
        for some in batches(coordinates for _, coordinates in stored_objects(source._handle)):
            rows = np.array(some, np.int64).reshape(len(some), source.ndim)
            for step, work in enumerate(works):
                places = blocks_of_objects(source._handle.layout.grids.storage, work.block_axes, rows)[1]
                numbers = np.unique(places, axis=0).tolist() if source.ndim else [()]
                found.add((array, step), Ranges.of(map(work.grid.number, numbers)))
    except UnsupportedError:
        for step, work in enumerate(works):
            found.add((array, step), work.cells)


__all__ = ["COPIES", "ArrayWork", "Coordinates", "Region", "blocks_of", "gather_stored", "steps_of", "work_of"]
