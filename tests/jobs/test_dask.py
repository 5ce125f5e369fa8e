"""Plans on a real Dask cluster, whose workers are killed."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from threading import Event, Thread
from typing import Any

import numpy as np
import pytest
from distributed import Client, LocalCluster

import zardine
from effort import SOAK
from jobs.long_work import check_result, plan_long_work
from zardine.jobs import Plan

VALUES = np.random.default_rng(1).integers(0, 99, (48, 64, 64)).astype("int16")


class Killer:
    """Kills workers of a cluster, the oldest first."""

    def __init__(self, cluster: Any) -> None:
        self._cluster = cluster
        self.killed: list[int] = []

    def kill(self) -> None:
        """Kill one, if one is up: one that is killed while it begins is not begun again by its nanny."""
        up = (nanny.process for nanny in self._cluster.workers.values() if nanny.process is not None)
        alive = [process.pid for process in up if process.status.name == "running" and process.pid not in self.killed]
        if alive:
            self.killed.append(min(alive))
            os.kill(min(alive), signal.SIGKILL)

    @contextmanager
    def every(self, seconds: float) -> Iterator[None]:
        """Kill one again and again while this lasts."""
        over = Event()

        def run() -> None:
            while not over.wait(seconds):
                self.kill()

        thread = Thread(target=run)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()


def run_and_look(plan: Plan, client: Any, on_progress: Callable[[float], object]) -> None:
    """Run a plan. Progress is ahead of its status by jobs under way at most; what is left at the end is nothing."""
    told: list[tuple[int, int]] = []

    def progress(done: int, total: int) -> None:
        on_progress(done / total)
        told.append((done, sum(each.done for each in plan.status().stages)))

    assert plan.run(client, progress=progress)
    most = max(plan.work.job_bytes(stage, 0) for stage in range(len(plan.work.stages)))
    assert told
    under_way = 2 * 4  # of four workers, each with one that waits
    assert all(done <= (jobs + under_way) * most for done, jobs in told)
    assert [each.missing for each in plan.status().stages] == [""] * len(plan.work.stages)
    assert plan.status().state == "finished"


@pytest.mark.filterwarnings("ignore")
def test_a_cluster_whose_workers_are_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By number of jobs done; and in a soak run one of four every 5 s, while 2 GB are converted again and again."""
    kills = 12 if SOAK else 2
    array = zardine.create_array(tmp_path / "a.zarr", shape=VALUES.shape, dtype="int16", chunks=(1, 64, 64))
    array[...] = VALUES
    plan = zardine.plan_rechunk(tmp_path / "a.zarr", tmp_path / "b.zarr", chunks=(48, 4, 4), max_memory="32 KiB")
    assert len(plan) > 40
    long_plan = plan_long_work(tmp_path, monkeypatch)
    with (
        LocalCluster(n_workers=4 if SOAK else 2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        killer = Killer(cluster)

        def kill_now_and_then(share: float) -> None:
            if len(killer.killed) < kills and share > (len(killer.killed) + 1) / (2 * kills):
                killer.kill()

        run_and_look(plan, client, kill_now_and_then)
        assert len(killer.killed) == kills
        assert zardine.verify(tmp_path / "a.zarr", executor=client)
        zardine.reshard(tmp_path / "b.zarr", shards=(48, 8, 8), executor=client.get_executor())
        assert zardine.rechunk(tmp_path / "a.zarr", tmp_path / "c.zarr", chunks=16, executor=client.get_executor())
        with killer.every(5.0) if SOAK else nullcontext():
            rounds = 0
            while not rounds or (SOAK and len(killer.killed) < kills + 10):
                shutil.rmtree(tmp_path / "target.zarr", ignore_errors=True)
                run_and_look(long_plan, client, lambda share: None)
                check_result(tmp_path)
                rounds += 1
    print(f"{rounds} conversions of {len(long_plan)} jobs; {len(killer.killed)} workers killed")
    for name in ("b.zarr", "c.zarr"):
        assert np.array_equal(zardine.open_array(tmp_path / name)[...], VALUES)
        assert zardine.verify(tmp_path / name)
