"""Jobs that are run one by one: in order they do what the plan does, out of order they refuse."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import zardine
from zardine import vectors
from zardine.errors import PlanError
from zardine.jobs import Plan
from zardine.jobs.job import Job

VALUES = np.random.default_rng(0).integers(0, 100, (64, 32, 32)).astype("int32")
VALUES[5:20] = 0  # some jobs have nothing to do


def source(tmp_path: Path) -> Path:
    path = tmp_path / "a.zarr"
    group = zardine.create_group(path)
    for name in ("x", "y", "z"):
        array = group.create_array(name, shape=VALUES.shape, dtype="int32", chunks=(1, 32, 32), overwrite=True)
        array[...] = VALUES
    return path


def converted(tmp_path: Path) -> Plan:
    return zardine.plan_convert(source(tmp_path), tmp_path / "b.zarr", shards=(4, 32, 32), verify=True)


def by_way_of_others(tmp_path: Path) -> Plan:
    return zardine.plan_convert(
        source(tmp_path) / "x", tmp_path / "b.zarr", chunks=(64, 4, 4), shards=None, max_memory="128 KiB", verify=True
    )


def rechunked(tmp_path: Path) -> Plan:
    return zardine.plan_rechunk(source(tmp_path) / "x", tmp_path / "b.zarr", chunks=(64, 4, 4), max_memory="128 KiB")


def resharded(tmp_path: Path) -> Plan:
    return zardine.plan_reshard(source(tmp_path) / "x", shards=(16, 32, 32), max_memory="256 KiB")


def resharded_by_way_of_others(tmp_path: Path) -> Plan:
    return zardine.plan_reshard(
        source(tmp_path) / "x", chunks=(64, 4, 4), shards=None, target=tmp_path / "b.zarr", max_memory="128 KiB"
    )


def verified(tmp_path: Path) -> Plan:
    return zardine.plan_verify(source(tmp_path), records=tmp_path / "records")


def imported(tmp_path: Path) -> Plan:
    points = np.random.default_rng(0).uniform(0, 100, (500, 3)).astype("float32")
    vectors.write_points(tmp_path / "p.zv", points, chunk_shape=50)
    vectors.export_vectors(tmp_path / "p.zv", tmp_path / "p.las")
    return vectors.plan_import(tmp_path / "p.las", tmp_path / "q.zv", chunk_shape=50)


IN_STAGES = [converted, by_way_of_others, rechunked, resharded_by_way_of_others, verified]
WORKS = [*IN_STAGES, resharded, imported]


@pytest.mark.parametrize("make", WORKS)
def test_one_by_one(make: Callable[[Path], Plan], tmp_path: Path) -> None:
    plan = make(tmp_path)
    plan.begin()
    for number in range(len(plan)):
        plan.job(number)()
    assert plan.finish()
    if make is verified:
        assert plan.result()
    elif make is not imported:
        found = tmp_path / ("a.zarr/x" if make is resharded else "b.zarr/y" if make is converted else "b.zarr")
        assert np.array_equal(zardine.open_array(found)[...], VALUES)


@pytest.mark.parametrize("make", IN_STAGES)
def test_out_of_order(make: Callable[[Path], Plan], tmp_path: Path) -> None:
    plan = make(tmp_path)
    stages = [len(stage) for stage in plan.work.stages]
    assert len(stages) > 1
    plan.begin()
    for number in reversed(range(stages[0], len(plan))):
        with pytest.raises(PlanError, match="has to wait for stage 1"):
            plan.job(number)()
    with pytest.raises(PlanError):
        plan.finish()
    assert plan.run()


@pytest.mark.parametrize("make", WORKS)
def test_before_the_beginning(make: Callable[[Path], Plan], tmp_path: Path) -> None:
    plan = make(tmp_path)
    with pytest.raises(PlanError):
        plan.job(len(plan) - 1)()


@pytest.mark.parametrize("make", [converted, verified])
def test_a_job_that_was_given_nothing(make: Callable[[Path], Plan], tmp_path: Path) -> None:
    """What was not handed on is not taken for nothing to do."""
    plan = make(tmp_path)
    plan.begin()
    plan.job(0)()
    with pytest.raises(PlanError, match="was not given what the stage before has found"):
        plan.work.run(Job(1, 0))


def test_damage_is_found_in_any_order(tmp_path: Path) -> None:
    """What was not listed yet is no reason to say that all is well."""
    plan = verified(tmp_path)
    chunk = next(path for path in (tmp_path / "a.zarr/y/c/3").rglob("*") if path.is_file())
    data = bytearray(chunk.read_bytes())
    data[5] ^= 255
    chunk.write_bytes(data)
    plan.begin()
    for number in reversed(range(len(plan))):
        while True:
            try:
                plan.job(number)()
                break
            except PlanError:
                plan.run_part(stage=1)
    assert plan.finish()
    assert len(plan.result().faults) == 1
