"""What of an array is stored."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from zardine.engine.freshness import check_fresh
from zardine.engine.locate import read_index, recorded_index_of
from zardine.engine.source import ArraySource
from zardine.errors import DataError
from zardine.sharding.layout import ShardLayout


def stored_objects(source: ArraySource) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Key and grid coordinates of every stored chunk or shard, also of such as lie outside the array."""
    prefix = f"{source.path}/" if source.path else ""
    ndim = len(source.layout.metadata.shape)
    for key in source.store.list_prefix(prefix):
        coordinates = source.layout.keys.decode(key[len(prefix) :], ndim)
        if coordinates is not None:
            yield key, coordinates


def stored_keys(source: ArraySource) -> list[str]:
    """Keys of the stored chunks or shards that hold elements of the array."""
    counts = [axis.count for axis in source.layout.grids.objects]
    keys = [
        key
        for key, coordinates in stored_objects(source)
        if all(i < count for i, count in zip(coordinates, counts, strict=True))
    ]
    check_fresh(source)
    return keys


def count_stored_chunks(source: ArraySource) -> int:
    """How many chunks are stored: objects, or the inner chunks in them. Reads the index of every shard."""
    if source.layout.sharding is None:
        return len(stored_keys(source))
    try:
        total = _count_in_shards(source)
    except DataError:
        check_fresh(source, surely=True)
        raise
    check_fresh(source)
    return total


def _count_in_shards(source: ArraySource) -> int:
    total = 0
    for key, coordinates in stored_objects(source):
        grids = source.layout.grids
        if any(i >= axis.count for i, axis in zip(coordinates, grids.objects, strict=True)):
            continue
        layout = source.layout.shard(coordinates)
        assert layout is not None
        try:
            found = read_index(source.store, key, layout)
            index = None if found is None else found.index
        except DataError as error:
            index = recorded_index_of(source.store, layout, key, source.store.version(key))
            if index is None:
                raise error.at(array=source.path, key=key) from None
        if index is None:
            continue
        stored = index.stored()
        total += int(stored[_rows_in_array(source, coordinates, layout)].sum())
    return total


def _rows_in_array(source: ArraySource, coordinates: tuple[int, ...], layout: ShardLayout) -> npt.NDArray[np.int64]:
    """The index rows of the inner chunks of a shard that hold elements of the array."""
    rows = np.zeros((), np.int64)
    grids = source.layout.grids
    for i, objects, chunks, stride in zip(coordinates, grids.objects, grids.chunks, layout.strides, strict=True):
        start = objects.start(i)
        length = min(objects.extent(i), objects.length - start)
        rows = rows[..., None] + stride * np.arange(-(-length // chunks.runs[0][0]), dtype=np.int64)
    return rows.reshape(-1)
