"""Dask stores and reads arrays, into sharded ones too, with zardine as zarr."""

from __future__ import annotations

import with_zardine  # noqa: F401

# isort: split
import sys
from contextlib import suppress
from pathlib import Path

import dask.array as da
import numpy as np
import zarr

folder = Path(sys.argv[1])
values = np.arange(100).reshape(10, 10)
blocks = da.from_array(values, chunks=(5, 5))

for version in (3, 2):
    place = str(folder / f"a{version}")
    blocks.to_zarr(place, zarr_format=version)
    again = da.from_zarr(place)
    assert again.chunksize == (5, 5)
    assert zarr.open_array(place).metadata.zarr_format == version
    np.testing.assert_array_equal(again.compute(), values)
    (blocks + 1).to_zarr(place, overwrite=True, zarr_format=version)
    np.testing.assert_array_equal(da.from_zarr(place).compute(), values + 1)

blocks.to_zarr(str(folder / "g"), component="x/y")
assert da.from_zarr(str(folder / "g"), component="x/y").sum().compute() == values.sum()

sharded = zarr.create_array(folder / "s", shape=(10, 10), chunks=(2, 5), shards=(4, 10), dtype="i8")
blocks.rechunk((4, 10)).to_zarr(sharded)
np.testing.assert_array_equal(sharded[:], values)
with suppress(ValueError):  # blocks that share shards: Dask refuses what would lose writes elsewhere
    blocks.rechunk((3, 10)).to_zarr(sharded)
blocks.rechunk((4, 10)).to_zarr(sharded, region=(slice(None), slice(None)))
da.store(blocks, sharded, lock=False)  # blocks that share shards: nothing is lost here
np.testing.assert_array_equal(sharded[:], values)
np.testing.assert_array_equal(da.from_zarr(sharded)[2:7, ::3].compute(), values[2:7, ::3])
np.testing.assert_array_equal(da.from_array(sharded).mean(axis=0).compute(), values.mean(axis=0))
blocks.to_zarr(zarr.storage.MemoryStore())
assert da.from_array(sharded)[da.from_array(sharded) > 90].compute().tolist() == list(range(91, 100))
