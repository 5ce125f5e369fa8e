"""How far jobs are is told while they run, wherever they run, and is believed by nobody who must not err."""

from __future__ import annotations

import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zardine
from jobs.teller import tell, tell_for_ever
from zardine.jobs import plan as plans
from zardine.jobs.ranges import Ranges
from zardine.jobs.records import Done
from zardine.jobs.running import runner_of
from zardine.jobs.telling import Advance

SHAPE = (64, 64, 64)


def test_what_processes_tell_arrives_and_nothing_waits_for_it() -> None:
    seen: list[tuple[int, int, int]] = []
    runner: Any
    with runner_of(None, 2, "zardine.jobs.plan") as runner:
        runner.channel.listen(lambda *told: seen.append(told))
        opener = runner.channel.opener()
        pid = runner.submit(partial(tell, opener), 3).result()
        assert pid != os.getpid()
        runner.channel.look()
        assert seen == [(1, 3, 5), (1, 3, 12)]
        seen.clear()
        endless = runner.submit(partial(tell_for_ever, opener), 0)  # into a pipe that nobody reads, until it is full
        time.sleep(1.0)
        for process in list(runner._pool._processes.values()):
            os.kill(process.pid, signal.SIGKILL)
        with pytest.raises(BrokenProcessPool):
            endless.result()
        for _ in range(1000):
            runner.channel.look()
        counts = [nbytes for _, _, nbytes in seen]
        assert counts[0] == 1
        assert counts == sorted(set(counts))
        seen.clear()
        assert runner.renew()
        runner.submit(partial(tell, opener), 4).result()  # one that was killed holds nothing up
        runner.channel.look()
        assert seen == [(1, 4, 5), (1, 4, 12)]


def test_what_threads_tell_arrives() -> None:
    seen: list[tuple[int, int, int]] = []
    runner: Any
    with ThreadPoolExecutor(1) as pool, runner_of(pool, None, "") as runner:
        runner.channel.listen(lambda *told: seen.append(told))
        pool.submit(tell, runner.channel.opener(), 3).result()
    assert seen == [(1, 3, 5), (1, 3, 12)]


@pytest.mark.filterwarnings("ignore")
def test_what_a_cluster_tells_arrives() -> None:
    distributed = pytest.importorskip("distributed")
    seen: list[tuple[int, int, int]] = []
    runner: Any
    with (
        distributed.LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        with runner_of(client, None, "") as runner:
            runner.channel.listen(lambda *told: seen.append(told))
            pid = client.submit(tell, runner.channel.opener(), 3, pure=False).result()
            assert pid != os.getpid()
            for _ in range(1000):
                if len(seen) == 2:
                    break
                time.sleep(0.01)
            topic = runner.channel._topic
        client.log_event(topic, (1, 4, 5))  # from one that is late
        time.sleep(0.2)
        assert seen == [(1, 3, 5), (1, 3, 12)]


def test_it_is_told_now_and_then() -> None:
    seen: list[int] = []
    advance = Advance(lambda stage, job, nbytes: seen.append(nbytes), 0, 0, 3600.0)
    for _ in range(1000):
        advance(1)
    assert not seen


def an_array(path: Path) -> np.ndarray[Any, Any]:
    values = np.random.default_rng(0).integers(0, 99, SHAPE, dtype=np.int32)
    zardine.create_array(path, shape=SHAPE, chunks=(4, 64, 64), dtype=values.dtype)[...] = values
    return values


@pytest.mark.parametrize("where", ["here", "threads", "processes"])
def test_the_count_moves_while_a_job_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    monkeypatch.setattr(plans, "TELLS", 0.0)
    values = an_array(tmp_path / "a.zarr")
    plan = zardine.plan_verify(tmp_path / "a.zarr", records=tmp_path / "records")
    assert [len(stage) for stage in plan.work.stages] == [1, 1]
    seen: list[tuple[int, int]] = []
    options: dict[str, Any] = {"progress": lambda done, total: seen.append((done, total))}
    if where == "threads":
        with ThreadPoolExecutor(2) as pool:
            plan.run(pool, **options)
    else:
        plan.run(workers=2 if where == "processes" else None, **options)
    counts = [done for done, _ in seen]
    assert {total for _, total in seen} == {values.nbytes}
    assert counts[0] == 0
    assert counts[-1] == values.nbytes
    assert counts == sorted(set(counts))
    assert len(counts) > 4  # of one job that checks 16 objects


def test_what_is_done_again_is_more_to_do(tmp_path: Path) -> None:
    values = an_array(tmp_path / "a.zarr")
    plan = zardine.plan_rechunk(tmp_path / "a.zarr", tmp_path / "b.zarr", chunks=(64, 8, 8), max_memory="512 KiB")
    seen: list[tuple[int, int]] = []
    changed = False

    def progress(done: int, total: int) -> None:
        nonlocal changed
        seen.append((done, total))
        if done == total and not changed:
            changed = True
            zardine.open_array(tmp_path / "a.zarr", mode="r+")[0] = 7

    plan.run(progress=progress)
    values[0] = 7
    assert np.array_equal(zardine.open_array(tmp_path / "b.zarr")[...], values)
    counts, totals = zip(*seen, strict=True)
    assert list(counts) == sorted(counts)
    assert list(totals) == sorted(totals)
    assert totals[-1] > totals[0]
    assert counts[-1] == totals[-1]
    assert len(seen) == len(set(seen))


def test_nobody_is_told_more_than_there_is(tmp_path: Path) -> None:
    an_array(tmp_path / "a.zarr")
    work = zardine.plan_rechunk(tmp_path / "a.zarr", tmp_path / "b.zarr", chunks=(64, 8, 8), max_memory="512 KiB").work
    seen: list[tuple[int, int]] = []
    meter = plans._Meter(work, Done("", stages={0: Ranges([(0, 1)])}), lambda *told: seen.append(told))
    each, total = work.job_bytes(0, 0), seen[0][1]
    assert seen == [(each, total)]
    meter.begin_stage(0)
    meter.begin(1)
    meter.told(0, 1, 10)
    meter.told(0, 1, 5)  # begun anew by another worker
    meter.told(0, 2, 10)  # which is not begun
    meter.told(1, 1, 10)  # of another stage
    meter.told(0, 1, -(2**60))
    meter.told(0, 1, 2**60)
    assert seen == [(each, total), (each + 10, total), (2 * each, total)]
    meter.done(1)
    assert seen[-1] == (2 * each, total)
    meter.told(0, 1, 10)
    meter.begin(2)
    meter.told(0, 2, 1)
    assert seen[-1] == (2 * each + 1, total)
