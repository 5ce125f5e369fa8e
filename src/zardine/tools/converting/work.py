"""Which objects of a new array are to be written, and in which portions. No values here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice, product
from math import prod
from typing import TypeAlias

import numpy as np

from zardine.buffers import Ints
from zardine.chunk_grids.axis import Axis
from zardine.codecs.base import BytesBytesCodec
from zardine.engine.stored import stored_objects
from zardine.errors import UnsupportedError
from zardine.nodes.array import Array
from zardine.tools.resharding.plan import appended_codecs

Coordinates: TypeAlias = tuple[int, ...]
Region: TypeAlias = tuple[slice, ...]

_BATCH = 2**16
"""Stored objects that are looked at together."""


@dataclass(frozen=True, slots=True, eq=False)
class ArrayWork:
    """The objects of ``target`` in which something lies that is stored in ``source``: those that have to be written.

    Objects are taken together in *blocks*: all that lie in one object of the source, where its borders allow that.
    """

    source: Array
    target: Array
    as_text: bool
    blocks: Ints | None
    """Grid coordinates of the blocks, a row each, sorted; ``None``: all, where nobody can tell what is stored."""
    per_block: Coordinates
    """Objects of a block along each axis."""
    portion: Coordinates
    """Objects along each axis that are made at a time, so that each chunk of the source is decoded once."""
    behind: tuple[BytesBytesCodec, ...] | None = None
    """Codecs that make encoded chunks of the target out of those of the source; ``None``: elements are decoded."""

    @property
    def count(self) -> int:
        """How many objects."""
        if self.blocks is None:
            return prod(self._counts)
        sizes = np.ones(len(self.blocks), np.int64)
        for column, number, count in zip(self.blocks.T, self.per_block, self._counts, strict=True):
            sizes *= np.minimum(number, count - column * number)
        return int(sizes.sum())

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

    def unplanned(self) -> Iterator[str]:
        """Yield keys of the target that are stored though nothing of the source lies there."""
        if self.blocks is None:
            return
        planned = Members(self.blocks)
        for key, coordinates in stored_objects(self.target._handle):
            if tuple(i // k for i, k in zip(coordinates, self.per_block, strict=True)) not in planned:
                yield key

    @property
    def _axes(self) -> tuple[Axis, ...]:
        return self.target._handle.layout.grids.storage

    @property
    def _counts(self) -> Coordinates:
        return tuple(axis.count for axis in self._axes)

    def _rows(self) -> Iterator[Coordinates]:
        if self.blocks is None:
            yield from product(*(range(-(-n // k)) for n, k in zip(self._counts, self.per_block, strict=True)))
            return
        for start in range(0, len(self.blocks), _BATCH):
            yield from map(tuple, self.blocks[start : start + _BATCH].tolist())

    def _bounds(self, row: Coordinates) -> Iterator[tuple[int, int, int]]:
        for i, number, count, step in zip(row, self.per_block, self._counts, self.portion, strict=True):
            yield i * number, min((i + 1) * number, count), step


class Members:
    """Which rows of integers are there, in little memory."""

    def __init__(self, rows: Ints) -> None:
        sizes = rows.max(axis=0) + 1 if len(rows) else np.ones(rows.shape[1], np.int64)
        self._sizes: list[int] = sizes.tolist()
        self._rows: set[Coordinates] | None = None
        self._numbers: Ints = np.empty(0, np.int64)
        if prod(self._sizes) < 2**63:
            numbers = np.zeros(len(rows), np.int64)
            for column, size in zip(rows.T, self._sizes, strict=True):
                numbers = numbers * size + column
            self._numbers = np.unique(numbers)
        else:
            self._rows = set(map(tuple, rows.tolist()))

    def __contains__(self, row: Coordinates) -> bool:
        if self._rows is not None:
            return row in self._rows
        number = 0
        for i, size in zip(row, self._sizes, strict=True):
            if i >= size:
                return False
            number = number * size + i
        place = int(np.searchsorted(self._numbers, number))
        return place < len(self._numbers) and int(self._numbers[place]) == number


def plan_work(source: Array, target: Array, *, as_text: bool = False, everything: bool = False) -> ArrayWork:
    """Look at what is stored of ``source``, and work out what is to be made of it; or of ``everything``.

    Lists the keys of the source.
    """
    grids, wanted = source._handle.layout.grids, target._handle.layout.grids.storage
    per_block, portion, axes = [], [], []
    for axis, chunks, other in zip(grids.storage, grids.chunks, wanted, strict=True):
        number = step = 1
        if axis.is_regular and other.is_regular:
            size = other.runs[0][0]
            number = axis.runs[0][0] // size if axis.runs[0][0] % size == 0 else 1
            step = max(1, min(chunks.runs[0][0], chunks.length) // size)
            other = Axis.regular(other.length, size * number)
        per_block.append(number)
        portion.append(step)
        axes.append(other)
    try:
        blocks: Ints | None = None if everything else _touched(source, axes)
    except UnsupportedError:
        blocks = None
    made = target._with_handle(replace(target._handle, watched=False))  # nobody else knows of it
    behind = None
    if source.store.is_foreign and not as_text and not everything:
        behind = appended_codecs(source._handle.layout, made._handle.layout)
    return ArrayWork(source, made, as_text, blocks, tuple(per_block), tuple(portion), behind)


def stored_members(array: Array) -> Members:
    """Return grid coordinates of the objects that are stored."""
    return Members(np.concatenate([np.empty((0, array.ndim), np.int64), *_batches(array)]))


def _touched(source: Array, axes: list[Axis]) -> Ints:
    """Return where, on a grid of ``axes``, elements of stored objects of ``source`` lie."""
    grids = source._handle.layout.grids.storage
    counts = np.array([axis.count for axis in grids], np.int64)
    found = np.empty((0, source.ndim), np.int64)
    for rows in _batches(source):
        rows = rows[(rows < counts).all(axis=1)]
        touched = np.empty((len(rows), 0), np.int64)
        for number, (axis, other) in enumerate(zip(grids, axes, strict=True)):
            column = rows[:, number]
            starts = axis.starts(column)
            stops = np.minimum(starts + axis.extents(column), axis.length)
            first, last = other.locate(starts)[0], other.locate(stops - 1)[0]
            lengths = last - first + 1
            which = np.repeat(np.arange(len(rows)), lengths)
            within = np.arange(len(which)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
            rows, touched = rows[which], np.column_stack([touched[which], first[which] + within])
        found = np.concatenate([found, touched])
        found = found[:1] if source.ndim == 0 else np.unique(found, axis=0)
    return found


def _batches(array: Array) -> Iterator[Ints]:
    """Yield grid coordinates of stored objects, some thousands at a time."""
    coordinates = (each for _, each in stored_objects(array._handle))
    while batch := list(islice(coordinates, _BATCH)):
        yield np.array(batch, np.int64).reshape(len(batch), array.ndim)
