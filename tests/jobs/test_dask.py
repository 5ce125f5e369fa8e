"""Plans on a real Dask cluster, whose workers are killed."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

import numpy as np
import pytest
from distributed import Client, LocalCluster

import zardine
from effort import SOAK

KILLS = 12 if SOAK else 2
VALUES = np.random.default_rng(1).integers(0, 99, (48, 64, 64)).astype("int16")


@pytest.mark.filterwarnings("ignore")
def test_a_cluster_whose_workers_are_killed(tmp_path: Path) -> None:
    array = zardine.create_array(tmp_path / "a.zarr", shape=VALUES.shape, dtype="int16", chunks=(1, 64, 64))
    array[...] = VALUES
    plan = zardine.plan_rechunk(tmp_path / "a.zarr", tmp_path / "b.zarr", chunks=(48, 4, 4), max_memory="32 KiB")
    assert len(plan) > 40
    killed: list[int] = []
    with (
        LocalCluster(n_workers=4 if SOAK else 2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):

        def kill_now_and_then(done: int, total: int) -> None:
            if len(killed) < KILLS and done > (len(killed) + 1) * total / (2 * KILLS):
                pid = next(worker.pid for worker in cluster.workers.values() if worker.pid)
                killed.append(pid)
                threading.Thread(target=os.kill, args=(pid, signal.SIGKILL)).start()

        assert plan.run(client, progress=kill_now_and_then)
        assert zardine.verify(tmp_path / "a.zarr", executor=client)
        zardine.convert(tmp_path / "a.zarr", tmp_path / "d.zarr", shards=(8, 64, 64), executor=client)
        zardine.reshard(tmp_path / "d.zarr", shards=(16, 64, 64), executor=client.get_executor())
        assert zardine.rechunk(tmp_path / "a.zarr", tmp_path / "c.zarr", chunks=16, executor=client.get_executor())
    assert len(killed) == KILLS
    for name in ("b.zarr", "c.zarr", "d.zarr"):
        assert np.array_equal(zardine.open_array(tmp_path / name)[...], VALUES)
        assert zardine.verify(tmp_path / name)
