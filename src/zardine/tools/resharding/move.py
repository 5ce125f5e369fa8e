"""Making one new object out of old ones: of encoded chunks where these stay as they are, else of elements."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod

import numpy as np

from zardine.buffers import BytesLike
from zardine.engine.handle import ArrayHandle
from zardine.engine.locate import find_chunks
from zardine.engine.read import read_plan
from zardine.engine.write import write_plan
from zardine.errors import DataError
from zardine.indexing.plan import GridPlan, ObjectPart, plan_grid
from zardine.indexing.selection import AxisSlice, GridSelection


def region_of(target: ArrayHandle, coordinates: Sequence[int]) -> GridSelection:
    """Return the elements of the array that the new object at these grid coordinates holds."""
    axes = []
    for axis, i in zip(target.layout.grids.storage, coordinates, strict=True):
        start = axis.start(i)
        axes.append(AxisSlice(start, 1, min(axis.extent(i), axis.length - start)))
    return GridSelection(tuple(axes), (False,) * len(axes), (False,) * len(axes))


def sources_of(source: ArrayHandle, target: ArrayHandle, coordinates: Sequence[int]) -> list[str]:
    """Return keys of the old objects that hold these elements, relative to the array, stored or not."""
    ranges = []
    for axis, each in zip(source.layout.grids.storage, region_of(target, coordinates).axes, strict=True):
        assert isinstance(each, AxisSlice)
        ends = np.array([each.start, each.start + each.count - 1], np.int64)
        first, last = axis.locate(ends)[0].tolist()
        ranges.append(range(first, last + 1))
    return [source.layout.keys.encode(each) for each in product(*ranges)]


def move(source: ArrayHandle, target: ArrayHandle, coordinates: Sequence[int], *, encoded: bool) -> None:
    """Write the new object at these grid coordinates, or erase it if all in it is empty."""
    region = region_of(target, coordinates)
    plan = plan_grid(region, source.layout.grids)
    if encoded:
        _move_encoded(source, target, coordinates, plan)
        return
    values = np.empty(region.full_shape, source.layout.metadata.dtype)
    read_plan(source, plan, values)
    write_plan(target, plan_grid(region, target.layout.grids), values)


def _move_encoded(source: ArrayHandle, target: ArrayHandle, coordinates: Sequence[int], plan: GridPlan) -> None:
    key = target.key(coordinates)
    layout = target.layout.shard(coordinates)
    chunks: list[BytesLike | None] = [None] * (1 if layout is None else layout.count)
    firsts = [
        objects.start(i) // inner.runs[0][0]
        for objects, inner, i in zip(target.layout.grids.storage, target.layout.grids.chunks, coordinates, strict=True)
    ]
    for part in plan.parts():
        for i, chunk in enumerate(_stored_chunks(source, part)):
            row = 0
            if layout is not None:
                places = zip(part.chunk(i), firsts, layout.strides, strict=True)
                row = sum((place - first) * stride for place, first, stride in places)
            chunks[row] = chunk
    if all(chunk is None for chunk in chunks):
        target.store.erase(key)
    elif layout is None:
        assert chunks[0] is not None
        target.store.set(key, chunks[0])
    else:
        target.store.set(key, layout.assemble(chunks))


def _stored_chunks(source: ArrayHandle, part: ObjectPart) -> list[BytesLike | None]:
    """Return the encoded chunks of a part as they are; a shard whose last write was cut off as it was before."""
    key, files = source.key(part.object), source.store.gives_files
    try:
        found = find_chunks(source, part, key, files=files, unlocked=files)
    except DataError as error:
        raise error.at(array=source.path, key=key) from None
    try:
        return [found.chunk(i) for i in range(part.count)]
    finally:
        found.close()


def object_bytes(target: ArrayHandle) -> int:
    """Return bytes of the elements of a new object, about what making one takes."""
    return max(1, target.layout.object_nbytes)


def count(target: ArrayHandle) -> int:
    """Return how many new objects a full array has."""
    return prod(axis.count for axis in target.layout.grids.storage)
