"""Move: how the elements of a box get from one array to another that has the same ones in another layout.

Either they are decoded and encoded again, or their chunks are moved as the encoded bytes that they are: where both
layouts have the same chunks, and the same codecs, or further ones behind them. Boxes are in elements. Nothing that is
made here counts yet: the tools commit it, know who else writes, and where a killed run goes on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from itertools import product
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from zardine.buffers import BytesLike
from zardine.chunk_grids import RegularGrid
from zardine.codecs.base import BytesBytesCodec
from zardine.engine.handle import ArrayHandle
from zardine.engine.layout import ArrayLayout
from zardine.engine.locate import find_chunks, read_chunk_object
from zardine.engine.read import read_plan
from zardine.engine.workers import for_each, most_requests
from zardine.engine.write import write_plan
from zardine.errors import DataError
from zardine.indexing.boxes import ranges_of
from zardine.indexing.plan import GridPart, GridPlan, plan_grid
from zardine.indexing.selection import GridSelection
from zardine.settings import thread_count
from zardine.stores.file_seam import files_to_read
from zardine.tools.checking.beyond_shape import cut_chunk


def move(
    source: ArrayHandle,
    target: ArrayHandle,
    box: GridSelection,
    *,
    encoded: bool,
    behind: Sequence[BytesBytesCodec] = (),
) -> None:
    """Make the objects of ``target`` that a box consists of; those in which nothing is stored are erased.

    With ``encoded`` chunks are moved as they are, encoded further by the codecs ``behind``. Raises
    :class:`~zardine.errors.DataError` for old objects that are damaged: an index, or the length of a chunk.
    """
    if encoded:
        chunks = encoded_chunks(source, plan_grid(box, source.layout.grids))
        put_encoded(target, plan_grid(box, target.layout.grids), chunks, behind)
    else:
        write_elements(target, box, read_elements(source, box))


def read_elements(source: ArrayHandle, box: GridSelection) -> npt.NDArray[Any]:
    """Return the elements of a box."""
    values = np.empty(box.full_shape, source.layout.metadata.dtype)
    read_plan(source, plan_grid(box, source.layout.grids), values)
    return values


def write_elements(target: ArrayHandle, box: GridSelection, values: npt.NDArray[Any]) -> None:
    """Store the elements of a box, which are of the dtype of the array."""
    write_plan(target, plan_grid(box, target.layout.grids), values)


def keys_of(handle: ArrayHandle, box: GridSelection) -> Iterator[str]:
    """Yield the keys of all objects that have elements of a box, whether they are stored or not."""
    axes = handle.layout.grids.storage
    if box.size:
        low = [axis.find(start) for axis, (start, _) in zip(axes, ranges_of(box), strict=True)]
        high = [axis.find(stop - 1) for axis, (_, stop) in zip(axes, ranges_of(box), strict=True)]
        for place in np.ndindex(*(last - first + 1 for first, last in zip(low, high, strict=True))):
            yield handle.key(tuple(first + i for first, i in zip(low, place, strict=True)))


def inner_chunks(layout: ArrayLayout) -> tuple[int, ...] | None:
    """Return the shape of the chunks that are encoded; ``None`` where they differ."""
    if layout.sharding is not None:
        return layout.sharding.chunk_shape
    if isinstance(layout.grid, RegularGrid):
        return tuple(axis.runs[0][0] for axis in layout.grids.storage)
    return None


def moves_encoded(old: ArrayLayout, new: ArrayLayout) -> bool:
    """Whether the encoded chunks of one layout are those of the other."""
    return appended_codecs(old, new) == ()


def appended_codecs(old: ArrayLayout, new: ArrayLayout) -> tuple[BytesBytesCodec, ...] | None:
    """Return what encodes the encoded chunks of one layout further, so that they are those of the other.

    Nothing where they are already; ``None`` where elements have to be decoded.
    """
    if inner_chunks(old) is None or inner_chunks(old) != inner_chunks(new):
        return None
    before, after = _documents(old), _documents(new)
    if after[: len(before)] != before:
        return None
    codecs = new.codecs if new.sharding is None else new.sharding.inner_codecs
    return tuple(each for each in codecs[len(before) :] if isinstance(each, BytesBytesCodec))


def _documents(layout: ArrayLayout) -> list[Any]:
    codecs = layout.codecs if layout.sharding is None else layout.sharding.inner_codecs
    return [codec.to_json() for codec in codecs]


_Chunks: TypeAlias = npt.NDArray[Any]
"""Encoded chunks, or ``None``, of shape the chunks of the plan along each axis."""


def encoded_chunks(source: ArrayHandle, plan: GridPlan) -> _Chunks:
    """Return the encoded chunks of a plan as they are stored, of shape its chunks along each axis; else ``None``.

    Those that the end of the array cuts are without what they hold beyond it, as of an append that is under way.
    """
    found = np.full(tuple(len(axis.chunks) for axis in plan.axes), None, object)
    flat = source.layout.sharding is None
    wanted: Iterator[tuple[Any, tuple[int, ...]]]
    if flat:
        wanted = zip(np.ndindex(found.shape), product(*(axis.chunks.tolist() for axis in plan.axes)), strict=True)
    else:
        wanted = ((part, part.object) for part in plan.parts())

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


__all__ = [
    "appended_codecs",
    "encoded_chunks",
    "inner_chunks",
    "keys_of",
    "move",
    "moves_encoded",
    "put_encoded",
    "read_elements",
    "write_elements",
]
