"""Tasks of Dask in processes of a cluster, which write across shards through zarr-python."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import dask
import dask.array as da
import numpy as np
import pytest
import zarr
from distributed import Client, LocalCluster

import zardine
import zardine.zarr_python


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    """Two processes of two threads, which are told nothing of zardine's pipeline: the array brings it."""
    with (
        dask.config.set({"distributed.logging.distributed": "critical"}),
        LocalCluster(
            n_workers=2, threads_per_worker=2, processes=True, dashboard_address=None, silence_logs=30
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


def test_tasks_across_shards_lose_nothing(client: Client, tmp_path: Path) -> None:
    """zarr-python itself loses 31 to 69 % of these elements."""
    d = np.arange(1000 * 1400, dtype="f8").reshape(1000, 1400)
    with zardine.zarr_python.enable(strict=True):
        a = zarr.create_array(str(tmp_path), shape=d.shape, dtype="f8", shards=(300, 700), chunks=(50, 70))
    rows, columns = (da.arange(count, chunks=100, dtype="f8") for count in d.shape)
    blocks = rows[:, None] * d.shape[1] + columns
    assert blocks.chunksize == (100, 100)
    da.store(blocks, a, lock=False, scheduler=client.get)
    np.testing.assert_array_equal(a[:], d)
    assert zardine.verify(tmp_path).ok
    workers = client.run(lambda: "zardine.engine.write" in __import__("sys").modules)
    assert len(workers) == 2
    assert all(workers.values())
    read = da.from_array(a, chunks=(300, 700)).sum().compute(scheduler=client.get)
    np.testing.assert_allclose(read, d.sum())
