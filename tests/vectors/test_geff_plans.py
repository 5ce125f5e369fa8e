"""Exports to GEFF as plans of jobs: the same bytes in any order, and where one was killed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zardine
from vectors.geometry_samples import killed_by
from vectors.test_exports_in_parts import memory_of_jobs, recorded
from zardine import vectors
from zardine.engine.freshness import GENERATION
from zardine.errors import DataError, NodeExistsError, PlanError
from zardine.jobs import Plan
from zardine.storage import MemoryStore
from zardine.vectors.exchange import geff_out, geff_work

COUNT = 1500
JOBS = 8


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make small parts and shards."""
    monkeypatch.setattr(geff_work, "AT_ONCE", 200)
    monkeypatch.setattr(geff_out, "CHUNK", 64)


def _walk(rng: np.random.Generator) -> Any:
    """Positions each of which is near the one before."""
    return np.abs(rng.normal(0, 12, (COUNT, 3)).cumsum(axis=0)).clip(max=900)


def graphs(path: str) -> str:
    """A graph whose edges lead from chunk to chunk, and from object to object."""
    rng = np.random.default_rng(1)
    first = rng.integers(0, COUNT - 5, 2 * COUNT)
    ends = np.stack((first, first + rng.integers(1, 6, 2 * COUNT)), axis=1)
    values = {"n": np.arange(COUNT), "text": [None, *(f"t{n}" for n in range(1, COUNT))]}
    options: Any = {"vertex_attributes": values, "link_attributes": {"w": rng.uniform(0, 1, 2 * COUNT)}}
    owners = np.arange(COUNT) // 700
    vectors.write_graph(path, _walk(rng), ends, chunk_shape=300, object_ids=owners, **options)
    return path


def trees(path: str) -> str:
    rng = np.random.default_rng(4)
    parents = np.maximum(np.arange(COUNT) - rng.integers(1, 9, COUNT), np.arange(COUNT) // 50 * 50)
    parents[::50] = -1
    values = {"node_id": 5 * np.arange(COUNT)}
    owners = np.repeat(3 * np.arange(COUNT // 50), 50)
    vectors.write_skeleton(path, _walk(rng), parents, chunk_shape=300, object_ids=owners, vertex_attributes=values)
    return path


def lines(path: str) -> str:
    rng = np.random.default_rng(2)
    lengths = [0, 1, *rng.integers(2, 60, 100).tolist()]
    given = [rng.uniform(0, 900, 3) + rng.integers(-9, 10, (n, 3)).cumsum(axis=0) * 4.0 for n in lengths]
    along = {"n": np.arange(sum(lengths))}
    vectors.write_polylines(path, given, chunk_shape=300, vertex_attributes=along, object_ids=3 * np.arange(102))
    return path


MAKERS = {"graph": graphs, "skeleton": trees, "lines": lines}


def stored_in(folder: Path) -> dict[str, Any]:
    """All that is in a folder; of documents without the plan that made it, and ids of what took the place of others."""
    found: dict[str, Any] = {
        str(each.relative_to(folder)): each.read_bytes() for each in folder.rglob("*") if each.is_file()
    }
    found["zarr.json"] = json.loads(found["zarr.json"])
    assert found["zarr.json"]["attributes"].pop("zardine_export")
    for name in [each for each in found if each.endswith("/zarr.json")]:
        found[name] = json.loads(found[name])
        found[name].pop(GENERATION, None)
    return found


def values_in(folder: Path) -> dict[str, Any]:
    """The elements of all arrays in a folder."""
    nodes = zardine.open_group(folder, mode="r").members(max_depth=None)
    return {name: node[...] for name, node in nodes if isinstance(node, zardine.Array)}


def described(path: Any) -> Any:
    """What a graph is, in no order."""
    found = vectors.read_graph(path)
    name = "node_id"
    ids = found.attributes[name]
    columns = {each: found.attributes[each].tolist() for each in sorted(found.attributes) if each != name}
    nodes = sorted(zip(ids.tolist(), found.positions.tolist(), *columns.values(), strict=True), key=str)
    values = [each.tolist() for _, each in sorted(found.edge_attributes.items())]
    edges = sorted(zip(ids[found.edges].tolist(), *values, strict=True), key=str)
    return sorted(columns), nodes, edges


@pytest.mark.parametrize("kind", MAKERS)
def test_parts_make_what_one_makes(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Jobs run in any order, by a plan that is a file; each shard is written once."""
    path, folder, whole = MAKERS[kind](str(tmp_path / "a.zv")), tmp_path / "out.geff", tmp_path / "whole.geff"
    vectors.plan_export(path, str(folder)).save(tmp_path / "plan.json")
    plan = Plan.load(tmp_path / "plan.json")
    assert len(plan) > 6
    assert not folder.exists()
    plan.run_part(stage=1)
    for part in (3, 1, 2):
        plan.run_part(stage=2, part=(part, 3))
    with pytest.raises(DataError, match="is no graph of GEFF"):
        vectors.import_vectors(folder, MemoryStore())
    told = recorded(plan.run)
    assert plan.status().state == "finished"
    assert not list(folder.glob("__zardine/export/*"))
    monkeypatch.setattr(geff_work, "AT_ONCE", 10**6)
    again = recorded(vectors.export_vectors, path, whole)
    assert set(told.splitlines()) <= set(again.replace(str(whole), str(folder)).splitlines())
    one, other = stored_in(folder), stored_in(whole)
    assert sorted(one) == sorted(other)
    assert one["zarr.json"] == other["zarr.json"]
    ours, theirs = MemoryStore(), MemoryStore()
    for each, store in ((folder, ours), (whole, theirs)):
        recorded(vectors.import_vectors, each, store, chunk_shape=300)
    if kind == "graph":
        assert [name for name in one if one[name] != other[name] and not name.startswith("edges/")] == []
    if kind != "lines":  # whose nodes are numbered in another order
        assert described(ours) == described(theirs)
    assert len(vectors.read_graph(ours).edges) == len(vectors.read_graph(theirs).edges) > 1000


KILLING = """
import os, signal, sys
from zardine.vectors.exchange import geff_out, geff_work
from zardine.vectors.exchange.formats import export_vectors
geff_work.AT_ONCE, geff_out.CHUNK = 200, 64
owner, name, left = {"store": (geff_out._Rows, "_store"), "create": (geff_out.GeffLayout, "create"),
                     "survey": (geff_work.GeffWork, "_survey"), "finish": (geff_work.GeffWork, "tidy")}[sys.argv[3]] + (
    [int(sys.argv[4])],)
do = getattr(owner, name)
def mortal(*given):
    left[0] -= 1
    found = do(*given) if sys.argv[3] == "create" else None
    if left[0] < 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return do(*given) if found is None and sys.argv[3] != "create" else found
setattr(owner, name, mortal)
export_vectors(sys.argv[1], sys.argv[2], overwrite=True)
"""


@pytest.mark.parametrize(("where", "left"), [("survey", 0), ("create", 0), ("store", 30), ("finish", 0)])
def test_the_same_call_goes_on_where_one_was_killed(
    where: str, left: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, folder, other = graphs(str(tmp_path / "a.zv")), tmp_path / "out.geff", tmp_path / "other.geff"
    recorded(vectors.export_vectors, lines(str(tmp_path / "b.zv")), folder)  # which goes first
    killed_by(KILLING, path, str(folder), where, str(left))
    written, write = list[int](), geff_out.GeffValues.write

    def noting(self: Any, group: Any, layout: Any, job: int, step: Any) -> Any:
        written.append(job)
        return write(self, group, layout, job, step)

    monkeypatch.setattr(geff_out.GeffValues, "write", noting)
    assert "discarded" not in recorded(vectors.export_vectors, path, folder, overwrite=True)
    assert len(written) == {"survey": JOBS, "create": JOBS, "finish": 0}.get(where, len(written))
    assert where != "store" or 0 < len(written) < JOBS
    recorded(vectors.export_vectors, path, other)
    assert stored_in(folder) == stored_in(other)


def test_two_processes_write(tmp_path: Path) -> None:
    path, folder, other = trees(str(tmp_path / "a.zv")), tmp_path / "out.geff", tmp_path / "other.geff"
    recorded(vectors.export_vectors, path, folder, workers=2)
    recorded(vectors.export_vectors, path, other)
    values, expected = values_in(folder), values_in(other)  # cut at other places, since there are more jobs
    assert values.keys() == expected.keys()
    assert len(values) > 3
    for name, each in values.items():
        np.testing.assert_array_equal(each, expected[name])


@pytest.mark.parametrize("what", ["damaged", "gone"])
def test_a_survey_that_is_damaged_is_made_again(what: str, tmp_path: Path) -> None:
    path, folder, other = graphs(str(tmp_path / "a.zv")), tmp_path / "out.geff", tmp_path / "other.geff"
    plan = vectors.plan_export(path, str(folder))
    plan.run_part(stage=1)
    survey = next(folder.rglob("cells.npz"))
    if what == "gone":
        survey.unlink()
    else:
        survey.write_bytes(survey.read_bytes()[:300])
    told = recorded(Plan(plan.work.from_json(*_again(plan, tmp_path))).run)
    assert ("the level is surveyed again" in told) == (what == "damaged")
    recorded(vectors.export_vectors, path, other)
    assert stored_in(folder) == stored_in(other)


def _again(plan: Plan, tmp_path: Path) -> tuple[Any, Any]:
    """What a plan is made of in another process."""
    plan.save(tmp_path / "plan.json")
    loaded = Plan.load(tmp_path / "plan.json")
    document = loaded.work.to_json()
    from zardine.jobs.places import Places

    return document, Places(document["places"])


def test_folders_with_something_in_them(tmp_path: Path) -> None:
    path, folder = graphs(str(tmp_path / "a.zv")), tmp_path / "out.geff"
    plan = vectors.plan_export(path, str(folder))
    folder.mkdir()
    (folder / "mine.txt").write_text("x")
    for call in (plan.run, lambda: vectors.plan_export(path, str(folder))):
        with pytest.raises(NodeExistsError, match=r"something is stored at .*overwrite=True replaces it"):
            call()
    plan = vectors.plan_export(path, str(folder), overwrite=True)
    plan.run(finish=False)
    plan.cancel()
    assert [each for each in folder.rglob("*") if each.is_file()] == []
    with pytest.raises(TypeError, match="the format geff has no option 'sharded'"):
        vectors.plan_export(path, str(folder), sharded=True)


def test_a_level_that_changes_meanwhile(tmp_path: Path) -> None:
    path, folder = graphs(str(tmp_path / "a.zv")), tmp_path / "out.geff"
    plan = vectors.plan_export(path, str(folder))
    plan.run(finish=False)
    vectors.set_attribute(path, "n", np.zeros(COUNT, np.int64))
    for call in (plan.run, plan.finish):
        with pytest.raises(PlanError, match=r"a\.zv has changed since its export was planned: plan it anew"):
            call()
    told = recorded(vectors.export_vectors, path, folder)
    assert "is discarded: the store has changed since" in told


def test_jobs_need_no_more_memory_than_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of what each job holds beside libraries: that does not grow with the level."""
    path = graphs(str(tmp_path / "a.zv"))
    monkeypatch.setattr(geff_work, "_FIXED", 2**21)
    recorded(vectors.export_vectors, path, tmp_path / "other.geff")  # what libraries keep is kept then
    plan = vectors.plan_export(path, str(tmp_path / "out.geff"))
    assert 0 < memory_of_jobs(plan) <= plan.memory


@pytest.mark.parametrize(
    "change", [{"cuts": []}, {"cuts": [0, 9, 4]}, {"format": "las"}, {"level": -1}, {"state": None}]
)
def test_plans_that_say_nonsense(change: dict[str, Any], tmp_path: Path) -> None:
    vectors.plan_export(graphs(str(tmp_path / "a.zv")), str(tmp_path / "out.geff")).save(tmp_path / "plan.json")
    document = json.loads((tmp_path / "plan.json").read_text())
    document["work"] |= change
    (tmp_path / "plan.json").write_text(json.dumps(document))
    with pytest.raises(PlanError):
        Plan.load(tmp_path / "plan.json")
