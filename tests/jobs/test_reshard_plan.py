"""Resharding as a plan: in processes, in parts, with writers meanwhile; late jobs write nothing."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zardine
from zardine.errors import JobsFailedError, NodeExistsError, PlanError
from zardine.jobs import Plan
from zardine.jobs.job import Job

VALUES = np.arange(80 * 40).reshape(80, 40)


def make(path: Path, **more: Any) -> zardine.Array:
    options: dict[str, Any] = {"shape": VALUES.shape, "chunks": (2, 5), "shards": (4, 10), "dtype": "i4"} | more
    array = zardine.create_array(path, **options)
    array[...] = VALUES
    return array


def files(path: Path) -> list[str]:
    return sorted(str(each.relative_to(path)) for each in path.rglob("*") if each.is_file())


def test_in_processes(tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    make(tmp_path / "a.zarr")
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as processes:
        options: dict[str, Any] = {"executor": processes, "progress": lambda *done: seen.append(done)}
        assert zardine.reshard(tmp_path / "a.zarr", shards=(8, 20), grace=0, **options).objects == 20
        assert seen[-1] == (VALUES.size * 4, VALUES.size * 4)
        assert zardine.reshard(tmp_path / "a.zarr", shards=(20, 5), target=tmp_path / "b.zarr", **options)
    for name in ("a.zarr", "b.zarr"):
        assert np.array_equal(zardine.open_array(tmp_path / name)[...], VALUES)
        assert zardine.verify(tmp_path / name).notes == ()
        assert not [each for each in files(tmp_path / name) if "__" in each]


@pytest.mark.parametrize("in_place", [True, False])
def test_in_parts_with_writers(tmp_path: Path, in_place: bool) -> None:
    """What others write, append and erase before the plan is finished is in the result."""
    array = make(tmp_path / "a.zarr")
    target = None if in_place else tmp_path / "b.zarr"
    plan = zardine.plan_reshard(tmp_path / "a.zarr", shards=(8, 20), target=target, grace=0)
    assert len(plan) > 4
    assert repr(plan).startswith("<Plan reshard ")
    plan.save(tmp_path / "plan.json")
    for part in (1, 2):
        Plan.load(tmp_path / "plan.json").run_part(part=(part, 3))
    assert np.array_equal(zardine.open_array(tmp_path / "a.zarr")[...], VALUES)
    array[3, 3] = -5
    with pytest.raises(PlanError, match="jobs are missing"):
        plan.finish()
    array[5, 5] = -6  # nobody was kept away
    plan.run_part(part=(3, 3))
    array[79, 39] = -7
    array[8:16, :20] = 0
    array.append(np.full((3, 40), 9, "i4"))
    expected = array[...]
    late = Job(0, 0, is_wanted=lambda: True)
    status = Plan.load(tmp_path / "plan.json").finish()
    assert status
    assert status.result.ok
    made = zardine.open_array(tmp_path / "a.zarr" if in_place else tmp_path / "b.zarr")
    assert made.shards == (8, 20)
    assert np.array_equal(made[...], expected)
    before = {each: made.store.get(each) for each in made.store.list()}
    plan.job(0)() if not in_place else None
    with pytest.raises(Exception, match="finished or cancelled meanwhile"):
        plan.work.run(late)  # a job that had begun before
    assert {each: made.store.get(each) for each in made.store.list()} == before
    assert not [each for each in before if "__" in each]
    assert zardine.verify(made).faults == ()


@pytest.mark.parametrize("in_place", [True, False])
def test_an_array_that_has_become_smaller(tmp_path: Path, in_place: bool) -> None:
    """What jobs have made of rows that are no more is erased before the result counts."""
    array = make(tmp_path / "a.zarr")
    target = None if in_place else tmp_path / "b.zarr"
    plan = zardine.plan_reshard(tmp_path / "a.zarr", shards=(8, 20), target=target, grace=0)
    plan.run_part(part=(1, 1))
    array.resize((30, 40))
    assert plan.finish()
    place = tmp_path / "a.zarr" if in_place else tmp_path / "b.zarr"
    assert np.array_equal(zardine.open_array(place)[...], VALUES[:30])
    assert zardine.verify(place).faults == ()
    assert len([each for each in files(place) if "zarr.json" not in each]) == 4 * 2


def test_a_job_that_runs_twice_at_the_same_time(tmp_path: Path) -> None:
    """Each of both notices the other; what is stored is from one of them, and all is recorded."""
    make(tmp_path / "a.zarr")
    plan = zardine.plan_reshard(tmp_path / "a.zarr", shards=(8, 20), target=tmp_path / "b.zarr")
    plan.begin()
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as processes:
        for future in [processes.submit(plan.job(number)) for number in range(len(plan)) for _ in range(3)]:
            future.result(60)
    assert plan.status().state == "complete"
    assert plan.finish()
    assert np.array_equal(zardine.open_array(tmp_path / "b.zarr")[...], VALUES)


def test_cancel_and_stale(tmp_path: Path) -> None:
    make(tmp_path / "a.zarr")
    before = files(tmp_path / "a.zarr")
    plan = zardine.plan_reshard(tmp_path / "a.zarr", shards=(8, 20), grace=0)
    plan.run(finish=False)
    with pytest.raises(NodeExistsError, match="another way"):
        zardine.reshard(tmp_path / "a.zarr", shards=(20, 20), grace=0)
    plan.cancel()
    assert files(tmp_path / "a.zarr") == before
    zardine.reshard(tmp_path / "a.zarr", shards=(20, 20), grace=0)
    with pytest.raises(PlanError, match="stored in another way"):
        plan.run()
    with pytest.raises(ValueError, match="stored so already"):
        zardine.plan_reshard(tmp_path / "a.zarr", shards=(20, 20))


def test_the_function_goes_on_with_what_a_plan_did(tmp_path: Path) -> None:
    array = make(tmp_path / "a.zarr")
    plan = zardine.plan_reshard(tmp_path / "a.zarr", shards=(8, 20), grace=0)
    plan.run_part(part=(1, 2))
    done = plan.status().stages[0].done
    array[0, 0] = 77
    result = zardine.reshard(tmp_path / "a.zarr", shards=(8, 20), grace=0)
    assert done > 0
    assert 0 < result.objects < 20
    assert zardine.open_array(tmp_path / "a.zarr")[0, 0] == 77


def test_a_damaged_shard_is_an_error_with_its_place(tmp_path: Path) -> None:
    make(tmp_path / "a.zarr")
    (tmp_path / "a.zarr/c/3/1").write_bytes(b"damaged")
    plan = zardine.plan_reshard(tmp_path / "a.zarr", shards=(8, 20), grace=0)
    with pytest.raises(JobsFailedError, match="c/3/1"):
        plan.run()
