"""A writer in a process of its own: ``python writer.py WORK STORE NUMBER``, for tests that need several of them."""

from __future__ import annotations

import os
import signal
import sys

import dask
import dask.array as da
import numpy as np
import xarray as xr

from zardine.xarray import to_zarr

SOAK = os.environ.get("ZARDINE_SOAK", "") not in ("", "0")

ROWS, COLUMNS = 56, 30
APPENDED, TIMES = 5, 20 if SOAK else 3
WRITERS = 4 if SOAK else 2


def field(first: int, rows: int, *, lazy: bool = False, dies_at: int = -1) -> xr.Dataset:
    """Rows that say by their values where they belong, with the coordinate ``time``."""
    time = np.arange(first, first + rows)
    values = time[:, None] * 1000.0 + np.arange(COLUMNS)
    if lazy:
        values = da.from_array(values, chunks=(3, 13))
    if dies_at >= 0:
        values = da.map_blocks(_die, da.from_array(values, chunks=(4, COLUMNS)), dies_at, dtype=float)
    return xr.Dataset({"t": (("time", "x"), values), "s": ("time", time * 2)}, {"time": time})


def _die(block: np.ndarray, at: int, block_info: dict | None = None) -> np.ndarray:
    if block_info and block_info[0]["chunk-location"][0] == at:
        os.kill(os.getpid(), signal.SIGKILL)
    return block


def main(work: str, store: str, number: int) -> None:
    if work == "regions":  # strips that end within shards, and within chunks
        for start in range(number * 3, ROWS, 3 * WRITERS):
            stop = min(start + 3, ROWS)
            part = field(start, stop - start, lazy=start % 2 == 1)
            to_zarr(part, store, region="auto" if start % 3 else {"time": slice(start, stop)})
    elif work == "appends":
        for i in range(TIMES):
            first = 1000 * (number + 1) + i * APPENDED
            to_zarr(field(first, APPENDED, lazy=i % 2 == 1), store, append_dim="time")
    elif work == "dies":
        with dask.config.set(scheduler="synchronous"):
            to_zarr(field(0, ROWS, dies_at=number), store, mode="w")
    elif work == "dies appending":
        with dask.config.set(scheduler="synchronous"):
            to_zarr(field(ROWS, ROWS, dies_at=number), store, append_dim="time")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
