"""The engine of resharding: new stored objects out of old ones, of encoded chunks where these stay as they are.

It is given two handles of the same elements, the old layout and the new one, and makes a *block* at a time: a box of
new objects that share old ones, so that each old one is read as seldom as memory allows. Blocks are disjoint and may be
made in any order, at the same time, and again. What is made counts for nothing here: callers agree on it by one write
of the document, and remove the old objects; they know who else writes, and where a killed run goes on. Such callers are
those of arrays (:mod:`~zardine.tools.resharding.run`) and of cells of vectors (``zardine.vectors.storing.conversion``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import reduce
from itertools import product
from math import prod
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from zardine.buffers import BytesLike
from zardine.codecs.base import BytesBytesCodec
from zardine.engine.handle import ArrayHandle
from zardine.engine.locate import find_chunks, read_chunk_object
from zardine.engine.read import read_plan
from zardine.engine.workers import for_each, most_requests
from zardine.engine.write import write_plan
from zardine.errors import DataError
from zardine.indexing.plan import GridPart, GridPlan, plan_grid
from zardine.indexing.selection import AxisSlice, GridSelection
from zardine.settings import thread_count
from zardine.stores.file_seam import files_to_read
from zardine.tools.checking.beyond_shape import cut_chunk

Box: TypeAlias = tuple[range, ...]
"""Grid coordinates of objects: of each axis a range."""

Exists: TypeAlias = Callable[[tuple[int, ...]], bool]
"""Whether the old object at these grid coordinates is stored."""

Put: TypeAlias = Callable[[Iterable[tuple[str, BytesLike | None]]], object]
"""Stores new objects by their keys; ``None`` stands for one in which nothing is stored."""

_OF_AN_OBJECT = 1024
"""Bytes that a new object takes beside its elements while a block is made, about."""


def block_shape(source: ArrayHandle, target: ArrayHandle, most: int | None = None) -> tuple[int, ...]:
    """Return how many new objects of each axis make a block: those of one old object, where its borders are theirs.

    Fewer where the elements of so many would take more than ``most`` bytes, one at least; one where nobody knows what
    they take.
    """
    sizes = [1] * len(target.layout.grids.storage)
    for i, (old, new) in enumerate(zip(source.layout.grids.storage, target.layout.grids.storage, strict=True)):
        if old.is_regular and new.is_regular and old.runs[0][0] % new.runs[0][0] == 0:
            sizes[i] = max(1, min(old.runs[0][0] // new.runs[0][0], new.count))
    if most is not None:
        known = target.layout.metadata.data_type.item_size is not None
        room = max(1, most // (object_bytes(target) + _OF_AN_OBJECT)) if known else 1
        for i, size in enumerate(sizes):  # the first axes first, so that what is read of a shard lies together
            fits = max(1, room // prod(sizes[i + 1 :]))
            sizes[i] = size if size <= fits else -(-size // -(-size // fits))
    return tuple(sizes)


def blocks_of(target: ArrayHandle, shape: Sequence[int]) -> Iterator[Box]:
    """Yield every block of this ``shape`` that the array has, in C order."""
    axes = [(size, axis.count) for size, axis in zip(shape, target.layout.grids.storage, strict=True)]
    for firsts in product(*(range(0, count, size) for size, count in axes)):
        yield box_at(target, firsts, shape)


def box_at(target: ArrayHandle, firsts: Sequence[int], shape: Sequence[int]) -> Box:
    """Return the block that begins with the new object at ``firsts``, cut off at the end of the array."""
    axes = zip(firsts, shape, target.layout.grids.storage, strict=True)
    return tuple(range(first, min(first + size, axis.count)) for first, size, axis in axes)


def box_of(coordinates: Sequence[int]) -> Box:
    """Return one new object as a block."""
    return tuple(range(i, i + 1) for i in coordinates)


def region_of(target: ArrayHandle, box: Box) -> GridSelection:
    """Return the elements of the array that these new objects hold."""
    axes = []
    for axis, which in zip(target.layout.grids.storage, box, strict=True):
        start, last = axis.start(which[0]), which[-1]
        axes.append(AxisSlice(start, 1, min(axis.start(last) + axis.extent(last), axis.length) - start))
    return GridSelection(tuple(axes), (False,) * len(axes), (False,) * len(axes))


def sources_of(source: ArrayHandle, target: ArrayHandle, box: Box) -> list[str]:
    """Return keys of the old objects that hold elements of these new ones, relative to the array, stored or not."""
    ranges = []
    for axis, each in zip(source.layout.grids.storage, region_of(target, box).axes, strict=True):
        assert isinstance(each, AxisSlice)
        ends = np.array([each.start, each.start + each.count - 1], np.int64)
        first, last = axis.locate(ends)[0].tolist()
        ranges.append(range(first, last + 1))
    return [source.layout.keys.encode(each) for each in product(*ranges)]


def move(
    source: ArrayHandle,
    target: ArrayHandle,
    box: Box,
    *,
    encoded: bool,
    behind: Sequence[BytesBytesCodec] = (),
    exists: Exists | None = None,
    put: Put | None = None,
) -> None:
    """Make the new objects of a block; those in which nothing is stored are erased.

    With ``encoded`` chunks are moved as they are, encoded further by the codecs ``behind``: with these, both layouts
    must have the same ones. Then old objects that ``exists`` denies are not asked for, and ``put`` may do the storing;
    else each is stored as any value is.

    Raises :class:`~zardine.errors.DataError` for old objects that are damaged: an index, or the length of a chunk.
    """
    region = region_of(target, box)
    plan, new = plan_grid(region, source.layout.grids), plan_grid(region, target.layout.grids)
    if not encoded:
        values = np.empty(region.full_shape, source.layout.metadata.dtype)
        read_plan(source, plan, values)
        write_plan(target, new, values)
        return
    chunks = encoded_chunks(source, plan, exists)
    if put is None:
        put_encoded(target, new, chunks, behind)
    else:
        put(_assembled(target, new, chunks, behind))


_Chunks: TypeAlias = npt.NDArray[Any]
"""Encoded chunks, or ``None``, of shape the chunks of the plan along each axis."""


def encoded_chunks(source: ArrayHandle, plan: GridPlan, exists: Exists | None = None) -> _Chunks:
    """Return the encoded chunks of a plan as they are stored, of shape its chunks along each axis; else ``None``.

    Those that the end of the array cuts are without what they hold beyond it, as of an append that is under way.
    """
    found = np.full(tuple(len(axis.chunks) for axis in plan.axes), None, object)
    flat = source.layout.sharding is None
    wanted: Iterator[tuple[Any, tuple[int, ...]]]
    if flat:
        places = zip(np.ndindex(found.shape), product(*(axis.chunks.tolist() for axis in plan.axes)), strict=True)
        wanted = (each for each in places if exists is None or exists(each[1]))
    else:
        wanted = ((part, part.object) for part in plan.parts() if exists is None or exists(part.object))

    def fetch(each: tuple[Any, tuple[int, ...]]) -> None:
        where, coordinates = each
        key = source.key(coordinates)
        try:
            if flat:
                reading = read_chunk_object(source, coordinates, key)
                found[where] = None if reading is None else reading.parts[0]
            else:
                found[_slices(where)] = _chunks_of_shard(source, where, key).reshape(where.shape)
        except DataError as error:
            raise error.at(array=source.path, key=key) from None

    for_each(fetch, wanted, plan.object_count, 1 if files_to_read(source.store) else most_requests(source.store))
    _cut(source, plan, found)
    return found


def _cut(source: ArrayHandle, plan: GridPlan, found: _Chunks) -> None:
    """Take from encoded chunks of a plan what they hold beyond the end of the array."""
    layout = source.layout
    if not found.size or not layout.metadata.fill_is_defined or layout.is_draft:
        return
    ends = []
    for axis, part in zip(layout.grids.chunks, plan.axes, strict=True):
        last = int(part.chunks[-1])
        ends.append(last if axis.start(last) + axis.extent(last) > axis.length else -1)
    for number, end in enumerate(ends):
        if end < 0:
            continue
        at_end = [each.chunks.tolist() for each in plan.axes]
        at_end[number] = [end]
        for before in range(number):  # those were cut with the axes before
            if ends[before] >= 0:
                at_end[before] = at_end[before][:-1]
        for chunk in product(*at_end):
            where = tuple(i - int(each.chunks[0]) for i, each in zip(chunk, plan.axes, strict=True))
            if found[where] is not None:
                chain = layout.chain(tuple(axis.extent(i) for axis, i in zip(layout.grids.chunks, chunk, strict=True)))
                values = cut_chunk(source, chain, chunk, found[where])
                if values is not None:
                    found[where] = chain.encode(values)


def _chunks_of_shard(source: ArrayHandle, part: GridPart, key: str) -> _Chunks:
    """Return the encoded chunks of a part of a shard; of one whose last write was cut off as they were before."""
    files = files_to_read(source.store) is not None
    found = find_chunks(source, part, key, files=files, unlocked=files)
    try:
        chunks = np.empty(part.count, object)
        for i, chunk in enumerate(found.chunks(np.arange(part.count))):  # numpy would look into equally long ones
            chunks[i] = chunk
        found.check_untorn(key)
        return chunks
    finally:
        found.close()


def put_encoded(target: ArrayHandle, plan: GridPlan, chunks: _Chunks, behind: Sequence[BytesBytesCodec] = ()) -> None:
    """Store the new objects of a plan, made of its encoded ``chunks``; those in which nothing is stored are erased."""

    def put(part: GridPart) -> None:
        key, value = _object(target, part, chunks, behind)
        if value is None:
            target.store.erase(key)
        else:
            target.store.set(key, value)

    at_once = thread_count() if files_to_read(target.store) else most_requests(target.store)
    for_each(put, plan.parts(), plan.object_count, at_once)


def _assembled(
    target: ArrayHandle, plan: GridPlan, found: _Chunks, behind: Sequence[BytesBytesCodec]
) -> Iterator[tuple[str, BytesLike | None]]:
    """Yield the new objects of a plan by their keys."""
    return (_object(target, part, found, behind) for part in plan.parts())


def _object(
    target: ArrayHandle, part: GridPart, found: _Chunks, behind: Sequence[BytesBytesCodec]
) -> tuple[str, BytesLike | None]:
    """Return the key and the value of a new object."""
    key, layout = target.key(part.object), target.layout.shard(part.object)
    chunks = found[_slices(part)].reshape(-1).tolist()
    if behind:
        chunks = [
            None if each is None else reduce(lambda data, codec: codec.encode(data), behind, each) for each in chunks
        ]
    if layout is None or all(chunk is None for chunk in chunks):
        return key, chunks[0]
    rows: list[BytesLike | None] = [None] * layout.count
    for row, chunk in zip(part.positions(layout.strides).tolist(), chunks, strict=True):
        rows[row] = chunk
    return key, layout.assemble(rows)


def _slices(part: GridPart) -> tuple[Any, ...]:
    """Return where the chunks of a part are among those of its plan; also without axes an index of an array."""
    return (*(slice(low, high) for low, high in zip(part.low, part.high, strict=True)), ...)


def object_bytes(target: ArrayHandle) -> int:
    """Return bytes of the elements of a new object, about what making one takes."""
    return max(1, target.layout.object_nbytes)


def count(target: ArrayHandle) -> int:
    """Return how many new objects a full array has."""
    return prod(axis.count for axis in target.layout.grids.storage)
