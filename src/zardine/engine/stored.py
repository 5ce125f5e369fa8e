"""What of an array is stored."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import blake2b
from math import prod
from typing import Final
from uuid import uuid4

import numpy as np
import numpy.typing as npt

from zardine.engine.file_index import recorded_index_of
from zardine.engine.freshness import check_fresh
from zardine.engine.handle import ArrayHandle
from zardine.engine.read_index import read_index
from zardine.engine.workers import for_each, most_requests
from zardine.errors import DataError, StoreError
from zardine.sharding.layout import ShardLayout
from zardine.stores.base import Store


def stored_objects(handle: ArrayHandle) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Key and grid coordinates of every stored chunk or shard, also of such as lie outside the array."""
    prefix = f"{handle.path}/" if handle.path else ""
    ndim = len(handle.layout.metadata.shape)
    for key in handle.store.list_prefix(prefix):
        coordinates = handle.layout.keys.decode(key[len(prefix) :], ndim)
        if coordinates is not None:
            yield key, coordinates


def erase_stored(handle: ArrayHandle) -> None:
    """Erase every stored chunk or shard, also those outside of the array."""
    handle.store.erase_values([key for key, _ in stored_objects(handle)])


def stored_objects_within(handle: ArrayHandle) -> Iterator[tuple[str, tuple[int, ...]]]:
    """As :func:`stored_objects`, of those that hold elements of the array."""
    counts = [axis.count for axis in handle.layout.grids.storage]
    for key, coordinates in stored_objects(handle):
        if all(i < count for i, count in zip(coordinates, counts, strict=True)):
            yield key, coordinates


def stored_keys(handle: ArrayHandle) -> list[str]:
    """Keys of the stored chunks or shards that hold elements of the array."""
    keys = [key for key, _ in stored_objects_within(handle)]
    check_fresh(handle)
    return keys


def sizes_of(store: Store, keys: Sequence[str]) -> int:
    """Return the bytes that values have together; what is not stored has none."""
    sizes = [0] * len(keys)

    def look(which: int) -> None:
        sizes[which] = store.size(keys[which]) or 0

    for_each(look, range(len(keys)), len(keys), most_requests(store, 1))
    return sum(sizes)


MOST_LISTED: Final = 10_000
"""Objects whose versions are asked for to name what is stored: ten requests of an object store, and a tenth of a second
for local files."""


def data_version(handle: ArrayHandle) -> str | None:
    """What changes whenever something below the array is stored, erased or changed: a digest of names and versions.

    Costs as much as listing, of :data:`MOST_LISTED` objects at most: of an array with more it is a new one each time,
    which is never wrong. ``None`` where the store cannot tell versions while it lists, or does not let us list.
    """
    digest = blake2b(digest_size=16)
    try:
        versions = handle.store.list_versions(f"{handle.path}/" if handle.path else "")
        if versions is None:
            return None
        for number, (key, version) in enumerate(versions):
            if number == MOST_LISTED:
                return uuid4().hex
            digest.update(f"{key}\0{version}\0".encode())
    except StoreError:
        return None
    return digest.hexdigest()


def count_stored_chunks(handle: ArrayHandle) -> int:
    """How many chunks are stored: objects, or the inner chunks in them. Reads the index of every shard."""
    if handle.layout.sharding is None:
        return len(stored_keys(handle))
    try:
        total = _count_in_shards(handle)
    except DataError:
        check_fresh(handle, surely=True)
        raise
    check_fresh(handle)
    return total


def _count_in_shards(handle: ArrayHandle) -> int:
    counts: list[int] = []
    storage = handle.layout.grids.storage

    def count(stored: tuple[str, tuple[int, ...]]) -> None:
        key, coordinates = stored
        if any(i >= axis.count for i, axis in zip(coordinates, storage, strict=True)):
            return
        layout = handle.layout.shard(coordinates)
        assert layout is not None
        try:
            found = read_index(handle.store, key, layout)
            index = None if found is None else found.index
        except DataError as error:
            index = recorded_index_of(handle.store, layout, key, handle.store.version(key))
            if index is None:
                raise error.at(array=handle.path, key=key) from None
        if index is not None:
            counts.append(int(index.stored()[_rows_in_array(handle, coordinates, layout)].sum()))

    at_most = prod(axis.count for axis in storage)
    for_each(count, stored_objects(handle), at_most, most_requests(handle.store, 1))
    return sum(counts)


def _rows_in_array(handle: ArrayHandle, coordinates: tuple[int, ...], layout: ShardLayout) -> npt.NDArray[np.int64]:
    """The index rows of the inner chunks of a shard that hold elements of the array."""
    rows = np.zeros((), np.int64)
    grids = handle.layout.grids
    for i, objects, chunks, stride in zip(coordinates, grids.storage, grids.chunks, layout.strides, strict=True):
        start = objects.start(i)
        length = min(objects.extent(i), objects.length - start)
        rows = rows[..., None] + stride * np.arange(-(-length // chunks.runs[0][0]), dtype=np.int64)
    return rows.reshape(-1)
