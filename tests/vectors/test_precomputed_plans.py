"""Exports for neuroglancer as plans of jobs: the same bytes whoever writes them, and whatever is killed or damaged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from effort import SOAK
from vectors.geometry_samples import killed_by
from vectors.test_exports_in_parts import memory_of_jobs, recorded
from zardine import vectors
from zardine.errors import DataError, NodeExistsError, PlanError
from zardine.jobs import Plan
from zardine.storage import MemoryStore
from zardine.vectors.exchange.precomputed import entries, sharding, work

COUNT = 3000
AT_ONCE = 400


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make small parts and bins."""
    monkeypatch.setattr(work, "AT_ONCE", AT_ONCE)
    monkeypatch.setattr(entries, "_BIN", 20_000)
    monkeypatch.setattr(sharding, "_SHARD", 20_000)


def points(path: str) -> str:
    rng = np.random.default_rng(1)
    values = {"n": np.arange(COUNT), "kind": np.array(["soma", "axon", "spine"])[np.arange(COUNT) % 3]}
    ids = 7 * rng.permutation(COUNT)
    more = {"object_attributes": {"w": np.arange(COUNT) / 8}, "groups": [ids[:9], ids[4:200]]}
    vectors.write_points(
        path, rng.uniform(0, 900, (COUNT, 3)), chunk_shape=300, object_ids=ids, vertex_attributes=values, **more
    )
    return path


def loose_points(path: str) -> str:
    rng = np.random.default_rng(2)
    owners = rng.integers(0, 5, COUNT)
    vectors.write_points(path, rng.uniform(0, 900, (COUNT, 3)), chunk_shape=300, object_ids=owners)
    return path


def straight(path: str) -> str:
    rng = np.random.default_rng(3)
    ends = rng.uniform(0, 900, (COUNT // 2, 2, 3))
    ends[:, 1] = ends[:, 0] + rng.normal(0, 9, (COUNT // 2, 3))
    ends = ends.clip(0, 900)
    vectors.write_lines(path, ends, chunk_shape=300, object_attributes={"w": np.arange(COUNT // 2)})
    return path


def skeletons(path: str) -> str:
    rng = np.random.default_rng(4)
    parents = np.arange(COUNT) - 1
    parents[::50] = -1
    positions = (rng.uniform(0, 800, (COUNT // 50, 1, 3)) + rng.uniform(0, 60, (COUNT // 50, 50, 3))).reshape(-1, 3)
    owners = np.repeat(3 * np.arange(COUNT // 50), 50)
    values = {"n": np.arange(COUNT)}
    vectors.write_skeleton(path, positions, parents, chunk_shape=300, object_ids=owners, vertex_attributes=values)
    return path


def meshes(path: str) -> str:
    rng = np.random.default_rng(5)
    count = COUNT // 3
    positions = (rng.uniform(0, 800, (count, 1, 3)) + rng.uniform(0, 60, (count, 3, 3))).reshape(-1, 3)
    owners = np.repeat(np.arange(count) // 10, 3)
    vectors.write_mesh(path, positions, np.arange(COUNT).reshape(-1, 3), chunk_shape=300, object_ids=owners)
    return path


MAKERS = {
    "points": points,
    "loose points": loose_points,
    "lines": straight,
    "skeletons": skeletons,
    "meshes": meshes,
}


def stored_in(folder: Path) -> dict[str, bytes]:
    """All that is in a folder; of its document without the plan that made it."""
    found = {str(each.relative_to(folder)): each.read_bytes() for each in folder.rglob("*") if each.is_file()}
    info = json.loads(found.pop("info"))
    assert info.pop("zardine_export")
    return {**found, "info": json.dumps(info).encode()}


def planned(path: str, folder: Path, **more: Any) -> Plan:
    return vectors.plan_export(path, str(folder), format="precomputed", **more)


KINDS_AND_SHARDS = [  # meshes have one form
    (kind, sharded)
    for turn, kind in enumerate(MAKERS)
    for sharded in (True, False)
    if SOAK or sharded == bool(turn % 2)
]


@pytest.mark.parametrize(("kind", "sharded"), KINDS_AND_SHARDS)
def test_parts_make_what_one_makes(kind: str, sharded: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Jobs run in any order, by a plan that is a file; the values are those of a level that is one part."""
    path, folder, whole = MAKERS[kind](str(tmp_path / "a.zv")), tmp_path / "out", tmp_path / "whole"
    options: Any = {"sharded": sharded} if kind != "meshes" else {}
    planned(path, folder, **options).save(tmp_path / "plan.json")
    plan = Plan.load(tmp_path / "plan.json")
    assert len(plan) > 9
    assert not folder.exists()
    plan.run_part(stage=1)
    for stage in (2, 3):
        for part in (3, 1, 2):
            plan.run_part(stage=stage, part=(part, 3))
    assert not (folder / "info").exists()
    with pytest.raises(DataError):
        vectors.import_vectors(folder, MemoryStore(), format="precomputed")
    told = recorded(plan.run)
    assert plan.status().state == "finished"
    assert not (folder / "__zardine/export").exists()
    monkeypatch.setattr(work, "AT_ONCE", 10**6)
    again = recorded(vectors.export_vectors, path, whole, format="precomputed", **options)
    assert set(told.splitlines()) <= set(again.replace(str(whole), str(folder)).splitlines())
    one, other = stored_in(folder), stored_in(whole)
    if kind in ("skeletons", "meshes"):
        assert one == other
    assert sorted(one) == sorted(other)
    assert len([name for name in one if name.endswith(".shard")]) > 2 or options.get("sharded") is not True
    ours, theirs = MemoryStore(), MemoryStore()
    for each, store in ((folder, ours), (whole, theirs)):
        recorded(vectors.import_vectors, each, store, chunk_shape=300)
    a, b = (vectors.open(each).read() for each in (ours, theirs))
    assert sorted(a.positions.tolist()) == sorted(b.positions.tolist())
    assert len(a.positions) == COUNT


KILLING = """
import os, signal, sys
from zardine.vectors.exchange.precomputed import entries, sharding, work
from zardine.vectors.exchange.formats import export_vectors
work.AT_ONCE, entries._BIN, sharding._SHARD = 400, 20_000, 20_000
owner, name, left = work, sys.argv[3], [int(sys.argv[4])]
if name == "set":
    from zardine.stores.local.store import LocalStore
    owner = LocalStore
if name == "write_document":
    owner = work.Folder
do = getattr(owner, name)
def mortal(*given, **named):
    left[0] -= 1
    if left[0] < 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return do(*given, **named)
setattr(owner, name, mortal)
export_vectors(sys.argv[1], sys.argv[2], format="precomputed", sharded=True, overwrite=True)
"""


def killed(path: str, folder: Path, name: str, left: int) -> None:
    """An export in a fork, which is killed at a call of a function."""
    killed_by(KILLING, path, str(folder), name, str(left))


@pytest.mark.parametrize(("name", "left"), [("write_index", 5), ("set", 1), ("set", 7), ("write_document", 0)])
def test_the_same_call_goes_on_where_one_was_killed(
    name: str, left: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, folder, other = points(str(tmp_path / "a.zv")), tmp_path / "out", tmp_path / "other"
    options: Any = {"format": "precomputed", "sharded": True, "overwrite": True}
    recorded(vectors.export_vectors, loose_points(str(tmp_path / "b.zv")), folder, **options)  # which goes first
    killed(path, folder, name, left)
    written, write = list[str](), work.write_index

    def noting(into: Any, index: Any, values: Any) -> None:
        written.append(index.key)
        write(into, index, values)

    monkeypatch.setattr(work, "write_index", noting)
    assert "discarded" not in recorded(vectors.export_vectors, path, folder, **options)
    again = len(written)
    recorded(vectors.export_vectors, path, other, **options)
    assert stored_in(folder) == stored_in(other)
    whole = len(written) - again
    assert again == {"set": whole, "write_document": 0}.get(name, again)
    assert name != "write_index" or 0 < again < whole


def test_two_processes_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, folder, other = skeletons(str(tmp_path / "a.zv")), tmp_path / "out", tmp_path / "other"
    recorded(vectors.export_vectors, path, folder, format="precomputed", workers=2)
    recorded(vectors.export_vectors, path, other, format="precomputed")
    assert stored_in(folder) == stored_in(other)


@pytest.mark.parametrize("what", ["damaged", "cut", "gone"])
def test_a_run_that_is_damaged_is_made_again(what: str, tmp_path: Path) -> None:
    path, folder, other = points(str(tmp_path / "a.zv")), tmp_path / "out", tmp_path / "other"
    plan = planned(path, folder)
    plan.run_part(stage=1)
    plan.run_part(stage=2)
    run = next(folder.rglob("run-00002"))
    data = run.read_bytes()
    run.unlink()
    if what == "damaged":
        run.write_bytes(data[:-3] + b"???")
    elif what == "cut":
        run.write_bytes(data[:900])
    assert "part 2 is sorted again: " in recorded(plan.run)
    recorded(vectors.export_vectors, path, other, format="precomputed")
    assert stored_in(folder) == stored_in(other)


def test_what_was_written_of_something_else_is_discarded(tmp_path: Path) -> None:
    path, folder = points(str(tmp_path / "a.zv")), tmp_path / "out"
    killed(path, folder, "write_index", 5)
    vectors.set_attribute(path, "n", np.zeros(COUNT, np.int64))
    told = recorded(vectors.export_vectors, path, folder, format="precomputed", sharded=False)
    assert "is discarded: the store has changed since" in told
    assert not list(folder.rglob("*.shard"))
    store = MemoryStore()
    recorded(vectors.import_vectors, folder, store)
    assert vectors.read_points(store).attributes["n"].tolist() == [0] * COUNT


def test_a_level_that_changes_meanwhile(tmp_path: Path) -> None:
    path, folder = points(str(tmp_path / "a.zv")), tmp_path / "out"
    plan = planned(path, folder)
    plan.run(finish=False)
    vectors.set_attribute(path, "n", np.zeros(COUNT, np.int64))
    for call in (plan.run, plan.finish):
        with pytest.raises(PlanError, match=r"a\.zv has changed since its export was planned: plan it anew"):
            call()
    plan.cancel()
    assert [each for each in folder.rglob("*") if each.is_file()] == []


def test_folders_with_something_in_them(tmp_path: Path) -> None:
    path, folder = points(str(tmp_path / "a.zv")), tmp_path / "out"
    plan = planned(path, folder)
    folder.mkdir()
    (folder / "mine.txt").write_text("x")
    for call in (plan.run, lambda: planned(path, folder)):
        with pytest.raises(NodeExistsError, match=r"something is stored at .*overwrite=True replaces it"):
            call()
    recorded(planned(path, folder, overwrite=True).run)
    plan = planned(path, folder, overwrite=True)
    assert plan.status().state == "new"  # though one of the same has been written
    (folder / "by_id/5.shard").unlink(missing_ok=True)
    recorded(plan.run)
    assert (folder / "mine.txt").read_text() == "x"
    with pytest.raises(PlanError, match="too late to cancel"):
        plan.cancel()


@pytest.mark.parametrize("kind", ["points", "lines", "skeletons"])
def test_jobs_need_no_more_memory_than_is_told(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of what each job holds beside libraries and bins: that does not grow with the level."""
    path = MAKERS[kind](str(tmp_path / "a.zv"))
    monkeypatch.setattr(work, "_FIXED", 2**21)
    recorded(vectors.export_vectors, path, tmp_path / "other", format="precomputed")  # what libraries keep is kept then
    plan = planned(path, tmp_path / "out")
    assert 0 < memory_of_jobs(plan) <= plan.memory


@pytest.mark.parametrize(
    "change",
    [{"cuts": []}, {"cuts": [0, 9, 4]}, {"format": "las"}, {"sharded": 3}, {"level": -1}, {"state": None}],
)
def test_plans_that_say_nonsense(change: dict[str, Any], tmp_path: Path) -> None:
    planned(points(str(tmp_path / "a.zv")), tmp_path / "out").save(tmp_path / "plan.json")
    document = json.loads((tmp_path / "plan.json").read_text())
    document["work"] |= change
    (tmp_path / "plan.json").write_text(json.dumps(document))
    with pytest.raises(PlanError):
        Plan.load(tmp_path / "plan.json")
