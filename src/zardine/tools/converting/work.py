"""Which objects of a new array are to be written, and in which portions. No values here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice, product
from math import prod
from typing import TypeAlias

import numpy as np

from zardine.buffers import Ints
from zardine.chunk_grids.axis import Axis
from zardine.codecs.base import BytesBytesCodec
from zardine.engine.stored import stored_objects
from zardine.errors import UnsupportedError
from zardine.jobs.ranges import Ranges
from zardine.jobs.stages import Cells
from zardine.nodes.array import Array
from zardine.tools.rechunking.blocks import pulled_blocks, reads_too_often, volume
from zardine.tools.resharding.plan import appended_codecs
from zardine.tools.seen import blocks_of_objects

Coordinates: TypeAlias = tuple[int, ...]
Region: TypeAlias = tuple[slice, ...]

_BLOCK_BYTES = 2**27
"""Bytes of the elements of a block, where objects of several of the source are made together."""
_BATCH = 2**16
"""Stored objects that are looked at together."""


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
    per_block: Coordinates
    """Objects of a block along each axis."""
    portion: Coordinates
    """Objects along each axis that are made at a time, so that each chunk of the source is decoded once."""
    behind: tuple[BytesBytesCodec, ...] | None = None
    """Codecs that make encoded chunks of the target out of those of the source; ``None``: elements are decoded."""

    @cached_property
    def grid(self) -> Cells:
        """All blocks."""
        return Cells(tuple(-(-n // k) for n, k in zip(self._counts, self.per_block, strict=True)))

    @property
    def count(self) -> int:
        """How many objects."""
        if self.cells.count == self.grid.count:
            return prod(self._counts)
        return sum(prod(stop - start for start, stop, _ in self._bounds(row)) for row in self._rows())

    @property
    def portion_nbytes(self) -> int:
        """Bytes in memory of the elements of a portion, about; elements of varying length count 16."""
        extents = (max((size for size, _ in axis.runs), default=1) for axis in self._axes)
        return prod(map(prod, zip(extents, self.portion, strict=True))) * self.target.dtype.itemsize

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
            place = tuple(i // k for i, k in zip(coordinates, self.per_block, strict=True))
            if self.grid.number(place) not in self.cells:
                yield key

    def touched(self, some: Ints) -> tuple[Ints, Ints]:
        """Return which of some objects of the source lie in which blocks: rows of the first, and places of blocks."""
        return blocks_of_objects(self.source._handle.layout.grids.storage, self.block_axes, some)

    @cached_property
    def block_axes(self) -> tuple[Axis, ...]:
        """Blocks along each axis, in elements."""
        axes = zip(self._axes, self.per_block, strict=True)
        return tuple(axis if k == 1 else Axis.regular(axis.length, axis.runs[0][0] * k) for axis, k in axes)

    @property
    def _axes(self) -> tuple[Axis, ...]:
        return self.target._handle.layout.grids.storage

    @property
    def _counts(self) -> Coordinates:
        return tuple(axis.count for axis in self._axes)

    def _rows(self) -> Iterator[Coordinates]:
        return map(self.grid.place, self.cells)

    def _bounds(self, row: Coordinates) -> Iterator[tuple[int, int, int]]:
        for i, number, count, step in zip(row, self.per_block, self._counts, self.portion, strict=True):
            yield i * number, min((i + 1) * number, count), step


def plan_work(source: Array, target: Array, *, as_text: bool = False, everything: bool = False) -> ArrayWork:
    """Look at what is stored of ``source``, and work out what is to be made of it; or of ``everything``.

    Lists the keys of the source.
    """
    work = work_of(source, target, as_text=as_text, everything=everything)
    return work if everything else replace(work, cells=stored_cells(work))


def work_of(source: Array, target: Array, *, as_text: bool = False, everything: bool = False) -> ArrayWork:
    """Work out how all of ``target`` is made of ``source``. No I/O."""
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
    sizes = tuple(axis.runs[0][0] if axis.runs else 1 for axis in wanted)
    cut = any(
        reads_too_often(axes, [size * number for size, number in zip(sizes, numbers, strict=True)])
        for axes, numbers in ((grids.storage, per_block), (grids.chunks, portion))
    )
    if cut and all(axis.is_regular for axis in wanted):
        most = _BLOCK_BYTES // max(1, source.dtype.itemsize)
        unit = [max((size for size, _ in axis.runs), default=1) for axis in grids.storage]
        whole = volume(unit, source.shape) <= most  # a shard that is larger is read in parts
        block = pulled_blocks(grids.storage if whole else grids.chunks, sizes, most)
        per_block = portion = [length // size for length, size in zip(block, sizes, strict=True)]
    made = target._with_handle(replace(target._handle, watched=False))  # nobody else knows of it
    behind = None
    if source.store.is_foreign and not as_text and not everything:
        behind = appended_codecs(source._handle.layout, made._handle.layout)
    work = ArrayWork(source, made, as_text, Ranges(), tuple(per_block), tuple(portion), behind)
    return replace(work, cells=Ranges([(0, work.grid.count)]))


def stored_cells(work: ArrayWork) -> Ranges:
    """Return the blocks in which elements of stored objects of the source lie; all where nobody can tell."""
    found = Ranges()
    try:
        for rows in _batches(work.source):
            places = work.touched(rows)[1]
            found |= Ranges.of_many(
                map(work.grid.number, np.unique(places, axis=0).tolist() if work.source.ndim else [()])
            )
    except UnsupportedError:
        return Ranges([(0, work.grid.count)])
    return found


def _batches(array: Array) -> Iterator[Ints]:
    """Yield grid coordinates of stored objects, some thousands at a time."""
    coordinates = (each for _, each in stored_objects(array._handle))
    while batch := list(islice(coordinates, _BATCH)):
        yield np.array(batch, np.int64).reshape(len(batch), array.ndim)


__all__ = ["ArrayWork", "Coordinates", "Region", "plan_work", "stored_cells", "work_of"]
