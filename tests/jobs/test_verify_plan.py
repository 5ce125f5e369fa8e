"""Verifying as a plan: in processes, in parts, on other machines; what it finds is what it finds in one thread."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import zardine
from zardine.errors import PlanError
from zardine.jobs import Plan


@pytest.fixture
def damaged(tmp_path: Path) -> Path:
    """A group of many arrays, of which some are damaged in several ways."""
    path = tmp_path / "a.zarr"
    group = zardine.create_group(path)
    for number in range(12):
        array = group.create_array(f"a{number}", shape=(30, 30), chunks=(5, 5), shards=(10, 10), dtype="i4")
        array[...] = np.arange(900).reshape(30, 30) + number
    group.create_array("none", shape=(2**40, 2**40), chunks=(10, 10), dtype="u1")[2**39, 5] = 3
    for name, place in (("a3/c/0/1", 40), ("a7/c/2/2", -1), ("a7/c/1/1", 3)):
        data = bytearray((path / name).read_bytes())
        data[place] ^= 1
        (path / name).write_bytes(data)
    (path / "a5/stray").write_bytes(b"x")
    return path


def test_with_every_executor(damaged: Path) -> None:
    plain = zardine.verify(damaged)
    assert len(plain.faults) == 4
    assert (plain.objects, plain.nodes) == (12 * 9 + 1, 14)
    with ThreadPoolExecutor(2) as threads:
        assert zardine.verify(damaged, executor=threads) == plain
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as processes:
        assert zardine.verify(damaged, executor=processes) == plain
        memory = zardine.storage.MemoryStore()
        zardine.create_array(memory, shape=3, dtype="i4")[...] = 1
        with pytest.raises(Exception, match="memory of one process"):
            zardine.verify(memory, executor=processes)


def test_a_plan_in_parts(damaged: Path, tmp_path: Path) -> None:
    """What jobs find is recorded at a place, and merged at the end."""
    with pytest.raises(PlanError, match="no place for what its jobs find"):
        zardine.plan_verify(damaged).save(tmp_path / "plan.json")
    records = tmp_path / "records"
    plan = zardine.plan_verify(damaged, records=records)
    assert repr(plan).startswith("<Plan verify ")
    assert (plan.objects, plan.bytes_written) == (0, 0)
    plan.save(tmp_path / "plan.json")
    for part in (1, 2, 3):
        again = Plan.load(tmp_path / "plan.json")
        assert again == plan
        again.run_part(stage=1) if part == 1 else again.run_part(part=(part, 3))
    assert not plan.status()
    with pytest.raises(PlanError, match="not finished"):
        plan.result()
    plan.run_part(part=(1, 3))
    assert plan.finish()
    assert plan.result() == zardine.verify(damaged)
    assert [path.name for path in records.rglob("*") if path.is_file()] == [f"verified-{plan.id}.json"]


def test_interrupted_it_goes_on(damaged: Path, tmp_path: Path) -> None:
    """What was looked at is not looked at again by the same call; a finished one begins anew."""
    plan = zardine.plan_verify(damaged, records=tmp_path / "records")
    plan.run_part(stage=1)
    plan.run_part(part=(1, 2))
    (damaged / "a3/c/0/1").unlink()  # looked at already
    assert "a3/c/0/1" in [fault.key for fault in zardine.verify(damaged, records=tmp_path / "records").faults]
    assert "a3/c/0/1" not in [fault.key for fault in zardine.verify(damaged, records=tmp_path / "records").faults]
