"""Converting as a plan: in processes, in parts, and with writers meanwhile; the result is that of one thread."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zardine
from zardine.errors import NodeExistsError, PlanError
from zardine.jobs import Plan
from zardine.tools.converting import jobs

VALUES = np.arange(60 * 40).reshape(60, 40)


@pytest.fixture(autouse=True)
def _small_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "_JOB_BYTES", 4096)


@pytest.fixture(params=[2, 3])
def hierarchy(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """Groups with arrays, one of them sparse."""
    root = zardine.create_group(tmp_path / "old", zarr_format=request.param, attributes={"title": "t"})
    root.create_array("deep/a", data=VALUES, chunks=(5, 5), fill_value=-1)
    root.create_array("b", shape=(60, 40), dtype="f8", chunks=(5, 5))[:15, 5:] = 1
    root.create_array("far", shape=(2**62, 2**62), dtype="u1", chunks=(5, 5))[2**61, 5:300] = 7
    zardine.consolidate_metadata(tmp_path / "old")
    return tmp_path / "old"


def same(path: Any) -> bool:
    root = zardine.open_group(path, mode="r")
    far = root["far"]
    assert isinstance(far, zardine.Array)
    return (
        np.array_equal(root["deep/a"][...], VALUES)
        and root["b"][...].sum() == 15 * 35
        and far[2**61, :310].sum() == 7 * 295
        and root.metadata.consolidated_metadata is not None
        and not [key for key in root.store.list() if "__" in key or "zardine" in key]
    )


@pytest.mark.parametrize("hierarchy", [2], indirect=True)
def test_in_processes(hierarchy: Path, tmp_path: Path) -> None:
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as processes:
        zardine.convert(hierarchy, tmp_path / "new", shards=(10, 10), executor=processes, verify=True)
    assert same(tmp_path / "new")
    assert zardine.verify(tmp_path / "new")


def test_in_parts(hierarchy: Path, tmp_path: Path) -> None:
    plan = zardine.plan_convert(hierarchy, tmp_path / "new", shards=(10, 10), verify=True)
    plan.save(tmp_path / "plan.json")
    for stage in (1, 2, 3):
        for part in (1, 2, 3):
            again = Plan.load(tmp_path / "plan.json")
            assert again.id == plan.id
            again.run_part(stage=stage, part=(part, 3))
    assert plan.status().state == "complete"
    assert not (tmp_path / "new/zarr.json").exists()
    status = Plan.load(tmp_path / "plan.json").finish()
    assert status
    assert status.result["compared"]
    assert same(tmp_path / "new")
    before = (tmp_path / "new/deep/a/c/0/0").stat().st_mtime_ns
    plan.job(3)()  # late: does nothing
    assert (tmp_path / "new/deep/a/c/0/0").stat().st_mtime_ns == before
    assert plan.run()
    with pytest.raises(NodeExistsError):
        zardine.plan_convert(hierarchy, tmp_path / "new", shards=(10, 10))


def test_what_is_there_is_erased_when_the_plan_is_made(hierarchy: Path, tmp_path: Path) -> None:
    for shards in ((10, 10), (10, 10), (20, 10)):  # the second time the result is the one that is there
        plan = zardine.plan_convert(hierarchy, tmp_path / "new", shards=shards, overwrite=True)
        assert not [path for path in (tmp_path / "new").rglob("*") if path.is_file()]
        assert plan.run()
        assert same(tmp_path / "new")
    with pytest.raises(ValueError, match="are one place"):
        zardine.plan_convert(hierarchy, hierarchy / "a", overwrite=True)
    with pytest.raises(NodeExistsError, match="already stored"):
        zardine.plan_convert(hierarchy, tmp_path / "new", shards=(20, 10))
    assert same(tmp_path / "new")


def test_writers_meanwhile(hierarchy: Path, tmp_path: Path) -> None:
    """What is written, and erased, between a job and finishing is in the result; nothing else is copied again."""
    old = zardine.open_group(hierarchy)
    plan = zardine.plan_convert(hierarchy, tmp_path / "new", shards=(10, 10), verify=True)
    plan.run(finish=False)
    old["deep/a"][3, 3] = 5000
    old["b"][50:, 30:] = 4  # nothing was stored there
    old["b"][:5, :] = 0
    (hierarchy / ("b/c/1/2" if (hierarchy / "zarr.json").exists() else "b/1.2")).unlink()
    kept = (tmp_path / "new/deep/a/c/4/0").stat().st_mtime_ns
    assert plan.finish()
    made = zardine.open_group(tmp_path / "new")
    for name in ("deep/a", "b"):
        assert np.array_equal(made[name][...], old[name][...])
    assert made["deep/a"][3, 3] == 5000
    assert (tmp_path / "new/deep/a/c/4/0").stat().st_mtime_ns == kept


def test_a_stale_plan_is_refused(hierarchy: Path, tmp_path: Path) -> None:
    plan = zardine.plan_convert(hierarchy, tmp_path / "new")
    zardine.open_group(hierarchy)["b"].resize((70, 40))
    with pytest.raises(PlanError, match=r"that of /b? is another one"):
        plan.run()
    assert not (tmp_path / "new").exists()


def test_cancel(hierarchy: Path, tmp_path: Path) -> None:
    plan = zardine.plan_convert(hierarchy, tmp_path / "new")
    plan.run(finish=False)
    plan.cancel()
    assert [path for path in (tmp_path / "new").rglob("*") if path.is_file()] == []
    with pytest.raises(PlanError, match="cancelled, or not begun"):
        plan.job(3)()


def test_many_arrays(tmp_path: Path) -> None:
    root = zardine.create_group(tmp_path / "old", zarr_format=2)
    for number in range(60):
        root.create_array(f"a{number}", data=np.arange(4) + number, chunks=(2,))
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as processes:
        made = zardine.convert(tmp_path / "old", tmp_path / "new", executor=processes)
    assert isinstance(made, zardine.Group)
    assert all(made[f"a{number}"][3] == number + 3 for number in range(0, 60, 7))


@pytest.mark.parametrize("hierarchy", [2], indirect=True)
def test_another_run_finishes_first(hierarchy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same plan is run by two, and one is through while the other begins: both have the result."""
    zardine.plan_convert(hierarchy, tmp_path / "new", shards=(10, 10)).save(tmp_path / "plan.json")
    first, second = (Plan.load(tmp_path / "plan.json") for _ in range(2))
    check = jobs.ConvertWork.check

    def run_the_other(work: jobs.ConvertWork) -> None:
        monkeypatch.setattr(jobs.ConvertWork, "check", check)
        assert second.run()
        check(work)

    monkeypatch.setattr(jobs.ConvertWork, "check", run_the_other)
    assert first.run()
    assert same(tmp_path / "new")
