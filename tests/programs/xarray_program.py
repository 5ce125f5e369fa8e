"""xarray writes, opens, appends, writes regions and loads in an event loop, with zardine as zarr."""

from __future__ import annotations

import with_zardine  # noqa: F401

# isort: split
import asyncio
import sys
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
import zarr

folder = Path(sys.argv[1])
times = np.array(["2020-01-01", "2020-01-02", "2020-01-03"], "M8[ns]")
data = xr.Dataset(
    {
        "t": (("time", "x"), np.arange(12.0).reshape(3, 4), {"units": "K"}),
        "count": (("x",), np.arange(4), {}, {"_FillValue": -1}),
        "name": (("x",), np.array(["a", "bc", "", "é"])),
        "mask": (("x",), np.array([True, False, True, False])),
    },
    coords={"time": ("time", times, {}, {"units": "days since 2020-01-01"}), "x": [10, 20, 30, 40]},
    attrs={"title": "t", "numbers": [1, 2]},
)

for version in (3, 2):
    for consolidated in (True, False):
        options: dict[str, Any] = {"zarr_format": version, "consolidated": consolidated}
        place = folder / f"{version}-{consolidated}"
        data.to_zarr(place / "a", **options)
        xr.testing.assert_identical(xr.open_zarr(place / "a", consolidated=consolidated).load(), data)
        xr.testing.assert_identical(xr.open_dataset(place / "a", engine="zarr").load(), data)

        later = data[["t"]].assign_coords(time=data.time + np.timedelta64(3, "D"))
        later.to_zarr(place / "a", append_dim="time", **options)
        grown = xr.open_zarr(place / "a", consolidated=consolidated)
        assert grown.sizes["time"] == 6
        np.testing.assert_array_equal(grown.time.values[3:], later.time.values)

        part = xr.Dataset({"t": (("time", "x"), np.full((1, 4), 7.0))})
        part.to_zarr(place / "a", region={"time": slice(4, 5), "x": slice(None)}, **options)
        changed = xr.open_zarr(place / "a", consolidated=consolidated)
        assert (changed.t[4].values == 7).all()
        assert changed.t[::2, [0, 3]].shape == (3, 2)
        assert float(changed.t.isel(time=xr.DataArray([1, 2], dims="p"), x=xr.DataArray([1, 2], dims="p"))[1]) == 10

        encoding = {"t": {"chunks": (1, 2), **({"shards": (1, 4)} if version == 3 else {})}}
        data.chunk(time=1).to_zarr(place / "b", encoding=encoding, **options)
        written = zarr.open_group(place / "b", mode="r")["t"]
        assert (written.chunks, written.shards) == ((1, 2), (1, 4) if version == 3 else None)
        xr.testing.assert_identical(xr.open_zarr(place / "b", chunks=None).load(), data)

        loaded = asyncio.run(xr.open_zarr(place / "a", chunks=None).load_async())
        xr.testing.assert_identical(loaded, changed.load())
        asyncio.run(xr.open_zarr(place / "a", chunks=None).t.isel(x=[0, 2]).load_async())

        tree = xr.DataTree.from_dict({"/": data, "/inner": data})
        tree.to_zarr(place / "tree", zarr_format=version)
        xr.testing.assert_identical(xr.open_datatree(place / "tree", engine="zarr").load(), tree)

        memory = zarr.storage.MemoryStore()
        data.to_zarr(memory, **options)
        xr.testing.assert_identical(xr.open_zarr(memory).load(), data)
        with zarr.storage.ZipStore(place / "a.zip", mode="w") as archive:
            data.to_zarr(archive, **options)
        with zarr.storage.ZipStore(place / "a.zip", mode="r") as archive:
            xr.testing.assert_identical(xr.open_zarr(archive, consolidated=consolidated).load(), data)

try:
    xr.open_zarr(folder / "nothing")
except FileNotFoundError:
    pass
else:
    raise AssertionError("nothing is there")
