"""Stores that many processes write together: each the cells of its own boxes, and nothing is seen before the end."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from effort import SOAK, some
from vectors import cell_sources as sources
from vectors.geometry_samples import Killed, MortalStore, rows, values
from vectors.with_zarr_vectors import agree
from zardine import vectors
from zardine.errors import (
    CorruptionError,
    DataError,
    JobsFailedError,
    MetadataError,
    NodeExistsError,
    NodeNotFoundError,
    PlanError,
)
from zardine.jobs import Plan
from zardine.storage import MemoryStore, Store
from zardine.vectors import Layout, Space

LAYOUT = Layout(chunk_shape=10, shard_shape=4, compressor="zstd")
FLAT = Layout(chunk_shape=10, bin_shape=5)
OF_LINES: dict[str, Any] = {
    "attributes": {"w": "float64"},
    "object_attributes": {"length": "int32", "text": "text"},
}
ENVIRON = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}


def planned(path: Any, source: Any = sources.points, kind: str = "points", **options: Any) -> Plan:
    """Plan to write points with attributes, or what the options say."""
    usual: dict[str, Any] = {"bounds": sources.BOUNDS, "layout": LAYOUT}
    if source in (
        "vectors.cell_sources:points",
        sources.points,
        sources.few,
        sources.dying,
        sources.changing,
        sources.wrong,
    ):
        usual["attributes"] = sources.TYPES
    elif kind == "points":
        usual["attributes"] = {"n": "int64"}
    else:
        usual.update(OF_LINES)
    return vectors.plan_write_cells(path, source, kind, **{**usual, **options})


def told(store: Any) -> Any:
    """All that a store of points with attributes says."""
    found = vectors.read_points(store)
    return rows(found.positions, *(found.attributes[name] for name in sorted(sources.TYPES)))


def unseen(store: Any) -> bool:
    """Whether no reader finds a store there."""
    try:
        vectors.open(store)
    except (NodeNotFoundError, MetadataError):
        return True
    return False


def restore(store: Store, state: dict[str, bytes]) -> None:
    """Let a store hold what it held before: plans of stores in memory know them by name."""
    store.erase_prefix("")
    for key, value in state.items():
        store.set(key, value)


def whole() -> Any:
    """What all jobs together write."""
    return rows(sources.P, *(sources.COLUMNS[name] for name in sorted(sources.TYPES)))


@pytest.mark.parametrize("layout", [LAYOUT, FLAT], ids=["shards", "bins"])
def test_processes_write_what_one_writer_writes(tmp_path: Path, layout: Layout) -> None:
    path, one = str(tmp_path / "jobs.zv"), str(tmp_path / "one.zv")
    status = planned(path, layout=layout).run(workers=2 if layout is LAYOUT else None)
    assert status
    assert status.result == {"vertices": len(sources.P), "objects": 0}
    assert told(path) == whole()
    agree(path)
    made = vectors.Points(sources.P, sources.COLUMNS)
    vectors.write(one, made, layout=layout, space=Space(bounds=sources.BOUNDS))
    box = (0, 0, 25, 31)
    assert rows(vectors.read_points(path, bbox=box).positions) == rows(vectors.read_points(one, bbox=box).positions)
    mine, theirs = (json.loads(Path(each, "0/vertices/zarr.json").read_text()) for each in (path, one))
    assert mine == theirs
    assert sorted(each.name for each in Path(path).iterdir()) == ["0", "zarr.json"]


@pytest.mark.parametrize("chunk", [10, 0.1])
@pytest.mark.parametrize("end", [(40, 40), (40, 45), (80, 41), (30, 120), (10, 0)])
@pytest.mark.parametrize("shard", [None, 1, 4])
def test_no_box_is_without_thickness(chunk: float, end: tuple[int, int], shard: int | None) -> None:
    """Wherever bounds end; and the positions on their ends are those of the last box."""
    high = np.array(end) * (chunk / 10)
    ends = np.unique([[low, top] for low in (-chunk, high[0]) for top in (0.0, high[1])], axis=0).round(6)
    bounds, seen = (*ends[0], *ends[-1]), []

    def given(box: Any) -> vectors.Points:
        seen.append(box)
        low, top = np.asarray(box)
        chosen = ((low <= ends) & (ends <= top)).all(axis=1)
        return vectors.Points(ends[chosen])

    given.__qualname__ = "given"  # it runs here alone
    store = MemoryStore()
    layout = Layout(chunk_shape=chunk, shard_shape=shard)
    plan = planned(store, given, bounds=bounds, layout=layout, attributes={}, dtype="float64", job_shape=shard or 2)
    assert plan.run(workers=1)
    assert len(seen) == len(plan)
    thin = [box for box in seen if (np.subtract(box[1], box[0]) < chunk / 1000).any()]
    assert all(box[1][1] == box[0][1] == 0 for box in thin)
    assert bool(thin) == (end[1] == 0)  # bounds without any
    assert rows(vectors.read_points(store).positions) == rows(ends)
    assert vectors.validate(store).findings == ()


def test_the_store_can_be_changed_like_any_other(tmp_path: Path) -> None:
    path = str(tmp_path / "a.zv")
    plan = planned(path)
    plan.run()
    vectors.append_points(path, [[90, 90]], vertex_attributes={"kind": ["bush"]})
    vectors.delete(path, bbox=(-30, -30, 0, 0))
    agree(path)
    assert plan.run()  # is finished, and stays so
    assert len(vectors.read_points(path, bbox=(-30, -30, -1, -1))) == 0


def test_objects_are_in_many_boxes(tmp_path: Path) -> None:
    path = str(tmp_path / "a.zv")
    assert planned(path, sources.owned, objects=True).run(workers=2).result["objects"] == 3
    agree(path)
    assert vectors.read_objects(path).ids.tolist() == [-7, 3, 2**40]
    for each in (3, -7):
        found = vectors.read_points(path, object_ids=[each])
        chosen = each == sources.IDS
        assert rows(found.positions, found.attributes["n"]) == rows(sources.P[chosen], sources.COLUMNS["n"][chosen])


@pytest.mark.parametrize("numbered", [False, True])
def test_lines_come_with_their_tables(tmp_path: Path, numbered: bool) -> None:
    path = str(tmp_path / "a.zv")
    plan = planned(path, sources.lines, "polylines", arguments={"numbered": numbered}, renumber=numbered)
    count = 3 * 6
    assert plan.run(workers=None if numbered else 2).result == {"vertices": 4 * count, "objects": count}
    agree(path)
    found = vectors.read_polylines(path)
    assert np.diff(found.object_ids).min() >= 1
    if numbered:
        assert found.object_ids.tolist() == list(range(count))
    expected = []
    for job in range(len(plan)):
        given = sources.lines(box_of(plan, job))
        if given is None:
            continue
        expected += list(
            zip(
                map(bytes, map(np.ascontiguousarray, given.lines)),
                *map(np.ndarray.tolist, given.object_attributes.values()),
                strict=True,
            )
        )
    mine = zip(
        map(bytes, found.lines), *(found.object_attributes[name].tolist() for name in ("length", "text")), strict=True
    )
    assert sorted(mine) == sorted(expected)


def box_of(plan: Plan, job: int) -> Any:
    """Return the box of a job."""
    corners = np.array(plan.work.stages[0].grids[0].box(job)).T * 10 + sources.LOW
    return np.clip(corners.astype(float), sources.LOW, sources.HIGH)


def test_a_plan_is_a_file_and_machines_run_its_parts(tmp_path: Path) -> None:
    path, file = str(tmp_path / "a.zv"), tmp_path / "plan.json"
    planned(path, "vectors.cell_sources:points").save(file)
    plan = Plan.load(file, functions=["vectors.cell_sources:points"])
    load = "import sys; from zardine.jobs import Plan; plan = Plan.load(sys.argv[1], functions=[sys.argv[3]])"
    code = f"{load}; plan.run_part(part=(int(sys.argv[2]), 3))"
    for part in ("1", "3"):
        command = [sys.executable, "-c", code, str(file), part, "vectors.cell_sources:points"]
        subprocess.run(command, check=True, env=ENVIRON)
    assert unseen(path)
    with pytest.raises(PlanError, match="2 of 6 jobs are missing: 2 to 3"):
        plan.finish()
    plan.run_part(part=(2, 3))
    assert unseen(path)
    assert plan.finish()
    assert told(path) == whole()


def test_a_file_alone_runs_no_function(tmp_path: Path) -> None:
    path, file = str(tmp_path / "a.zv"), tmp_path / "plan.json"
    lines = ("from pathlib import Path", "from vectors.cell_sources import points", "Path('harmed').touch()")
    (tmp_path / "harm.py").write_text("\n".join(lines))
    planned(path, "harm:points", attributes=sources.TYPES).save(file)
    tool = "import sys; sys.path[:1] = []; from zardine.cli import main; main()"  # as the command, which has no folder
    for names, allowed in (((), False), (("vectors.cell_sources:points",), False), (("harm:points",), True)):
        more = [f"--function={name}" for name in names]
        command = [sys.executable, "-c", tool, "jobs", "run", str(file), *more]
        done = subprocess.run(command, env=ENVIRON, cwd=tmp_path, capture_output=True, text=True)
        assert (done.returncode == 0) == allowed, done.stderr
        assert (tmp_path / "harmed").exists() == allowed
        assert allowed or "--function harm:points" in done.stderr
    assert told(path) == whole()


def test_killed_processes_lose_one_job(tmp_path: Path) -> None:
    marks = tmp_path / "marks"
    marks.mkdir()
    path = str(tmp_path / "a.zv")
    plan = planned(path, sources.dying, arguments={"marks": str(marks)})
    plan.save(tmp_path / "plan.json")
    name = "vectors.cell_sources:dying"
    code = f"import sys; from zardine.jobs import Plan; Plan.load(sys.argv[1], functions=[{name!r}]).run()"
    deaths = 0
    while subprocess.run([sys.executable, "-c", code, str(tmp_path / "plan.json")], env=ENVIRON).returncode:
        deaths += 1
        assert unseen(path)
    assert deaths == len(list(marks.iterdir())) == 2
    assert told(path) == whole()
    agree(path)


@pytest.mark.parametrize("kind", ["points", "objects", "lines"])
def test_killed_anywhere_nothing_is_seen_and_it_goes_on(kind: str) -> None:
    def plan_at(store: Store) -> Plan:
        if kind == "lines":
            return planned(store, sources.lines, "polylines", layout=Layout(chunk_shape=20, shard_shape=2), job_shape=4)
        source = sources.points if kind == "points" else sources.owned
        return planned(
            store, source, objects=kind == "objects", layout=Layout(chunk_shape=20, shard_shape=2), job_shape=4
        )

    whole_store = MemoryStore()
    plan_at(whole_store).run()
    expected = rows(vectors.read_points(whole_store).positions)
    changes, done, seen = 0, False, 0
    while not done:
        store = MemoryStore()
        try:
            plan_at(MortalStore(store, changes)).run()
            done = True
        except (Killed, JobsFailedError):
            pass
        if unseen(store):
            state = values(store)
            plan_at(store).cancel()
            assert values(store) == {}
            restore(store, state)
        else:
            seen += 1
            assert rows(vectors.read_points(store).positions) == expected
        assert plan_at(store).run()
        assert vectors.validate(store).findings == ()
        assert rows(vectors.read_points(store).positions) == expected
        assert sorted(values(store)) == sorted(values(whole_store))
        changes += 1 if SOAK else 11
    assert 1 <= seen < changes


def records(store: Store) -> list[str]:
    """Keys of what jobs have written down."""
    return [key for key in store.list() if "/cells/" in key]


@pytest.mark.parametrize("source", [sources.points, sources.lines])
def test_damaged_records_are_found_and_their_jobs_run_again(source: Any) -> None:
    kind = "points" if source is sources.points else "polylines"
    store = MemoryStore()
    plan = planned(store, source, kind)
    plan.run(finish=False)
    key = sorted(records(store))[1]
    state = values(store)
    good = state[key]
    cases: list[bytes | None] = [None, b"", good[:-1]]
    cases += [good[:at] + bytes([good[at] ^ 4]) + good[at + 1 :] for at in some(range(len(good)), 797)]
    for bad in cases:
        restore(store, state)
        if bad is None:
            store.erase(key)
        else:
            store.set(key, bad)
        number = key.rpartition("/")[2].split(".")[0]
        with pytest.raises(CorruptionError, match=f"run the plan once more. Job {number}: "):
            plan.finish()
        assert unseen(store)
        assert plan.status().stages[0].missing == number
        assert plan.run()
        assert vectors.validate(store).findings == ()


def change_findings(store: Store, change: Callable[[list[Any]], object]) -> None:
    """Change what jobs said that they found: pairs of a number and that."""
    (key,) = [key for key in store.list() if "/jobs/" in key and not key.endswith("plan.json")]
    document = json.loads(bytes(store.get(key) or b""))
    change(document["found"]["0"])
    store.set(key, json.dumps(document).encode())


def set_first(found: list[Any], bad: Any) -> None:
    """Let the job 1 have found something else."""
    found[1] = bad


def test_what_jobs_say_they_found_is_not_believed() -> None:
    store = MemoryStore()
    plan = planned(store)
    plan.run(finish=False)
    state = values(store)
    for bad in (None, 7, {"vertices": -1, "record": "a"}, {"vertices": 5, "record": "../../x"}, {"vertices": 0}):
        restore(store, state)
        change_findings(store, partial(set_first, bad=bad))
        with pytest.raises(CorruptionError, match=r"Job 1: "):
            plan.finish()
        assert plan.run()
        assert told(store) == whole()


def test_a_record_that_names_cells_of_another_job_is_refused() -> None:
    store = MemoryStore()
    plan = planned(store)
    plan.run(finish=False)
    change_findings(store, lambda found: found.__setitem__(1, found[0]))
    mine = {name.rpartition("/")[2].split(".")[0]: name for name in records(store)}
    store.set(mine["0"].replace("/0.", "/1."), bytes(store.get(mine["0"]) or b""))
    with pytest.raises(CorruptionError, match=r"Job 1: .*cells of .* that are not its own"):
        plan.finish()
    assert plan.run()
    assert told(store) == whole()


def test_a_job_that_finds_less_the_second_time_leaves_nothing_behind(tmp_path: Path) -> None:
    store = MemoryStore()
    plan = planned(store, sources.changing, arguments={"marks": str(tmp_path)}, layout=FLAT)
    plan.run(finish=False)
    key = sorted(records(store))[0]
    store.erase(key)
    with pytest.raises(CorruptionError):
        plan.finish()
    (tmp_path / "less").touch()
    assert plan.run()
    assert vectors.validate(store).findings == ()
    assert len(vectors.read_points(store)) < len(sources.P)


def test_nobody_else_writes_there_before_the_end_and_a_plan_can_be_cancelled(tmp_path: Path) -> None:
    path = str(tmp_path / "a.zv")
    plan = planned(path)
    plan.run(finish=False)
    for overwrite in (False, True):
        with pytest.raises(NodeExistsError, match=r"the jobs of a plan are writing .*cancel\(\)"):
            vectors.write_points(path, sources.P, overwrite=overwrite)
    with pytest.raises(NodeExistsError, match="the jobs of a plan are writing"):
        planned(path, layout=FLAT).run()
    plan.cancel()
    assert [each for each in Path(path).rglob("*") if each.is_file()] == []
    assert planned(path, layout=FLAT).run()
    with pytest.raises(NodeExistsError):
        planned(path)
    assert planned(path, layout=FLAT).run()


def test_a_store_that_took_the_place_is_not_mistaken_for_the_plan_s(tmp_path: Path) -> None:
    path = str(tmp_path / "a.zv")
    plan = planned(path)
    vectors.write(path, vectors.Points(sources.P), layout=LAYOUT, space=Space(bounds=sources.BOUNDS))
    with pytest.raises(NodeExistsError):
        plan.run()
    assert len(vectors.read_points(path)) == len(sources.P)


def test_most_boxes_may_be_empty(tmp_path: Path) -> None:
    path = str(tmp_path / "a.zv")
    plan = planned(path, sources.few)
    result = plan.run().result
    agree(path)
    assert 0 < result["vertices"] == len(vectors.read_points(path)) < len(sources.P)
    nothing = str(tmp_path / "b.zv")
    planned(nothing, sources.few, space=Space(), bounds=(100, 100, 200, 200)).run()
    agree(nothing)
    assert len(vectors.read_points(nothing)) == 0


def test_points_around_the_box_are_left_out_where_that_is_asked_for() -> None:
    store = MemoryStore()
    options: dict[str, Any] = {"arguments": {"margin": 3.0}}
    with pytest.raises(JobsFailedError, match="out_of_bounds='ignore'"):
        planned(store, sources.nearby, **options).run()
    store, options["space"] = MemoryStore(), Space(out_of_bounds="ignore")
    planned(store, sources.nearby, **options).run()
    found = vectors.read_points(store)
    assert rows(found.positions, found.attributes["n"]) == rows(sources.P, sources.COLUMNS["n"])


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("array", "wrong gives ndarray; point_cloud come as Points"),
        ("outside", r"wrong gives the position \[999.0, 999.0\] in the chunk \(99, 99\); this job has"),
        ("axes", "positions have 3 coordinates, the store has 2 axes"),
        ("name", "attribute 'other' was not named"),
        ("text", "the text 'bush'"),
        ("rounded", "'n' is stored as int64"),
        ("ids", "objects=True"),
        ("many", "gives 101 vertices for one job; with max_vertices=100"),
    ],
)
def test_what_a_function_may_not_give(what: str, words: str) -> None:
    with pytest.raises(JobsFailedError, match=words):
        planned(MemoryStore(), sources.wrong, arguments={"what": what}, max_vertices=100).run()


def test_lines_that_leave_their_box_or_share_ids() -> None:
    with pytest.raises(JobsFailedError, match=r"of line 0; .*lines have to lie in the box of one job"):
        planned(MemoryStore(), sources.crossing, "polylines").run()
    store = MemoryStore()
    plan = planned(store, sources.lines, "polylines", arguments={"numbered": True})
    with pytest.raises(DataError, match=r"object 0 was given by the jobs 0 and 1: .*renumber=True"):
        plan.run()
    assert unseen(store)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"source": lambda box: None}, "other processes can import"),
        ({"source": "json"}, "other processes can import"),
        ({"kind": "meshes"}, "points and lines can be written by jobs"),
        ({"bounds": None}, "give bounds="),
        ({"layout": Layout()}, "give bounds="),
        ({"space": Space(bounds=(0, 0, 1, 1))}, "bounds are given twice"),
        ({"space": Space(out_of_bounds="expand")}, "expand"),
        ({"kind": "lines", "attributes": None, "space": Space(out_of_bounds="ignore")}, "lines stay whole"),
        ({"job_shape": 3}, "whole shards"),
        ({"max_vertices": 0}, "max_vertices"),
        ({"arguments": {"a": b"x"}}, "JSON"),
        ({"arguments": [1]}, "by name"),
        ({"attributes": {"a": "text"}}, "cannot be of the type 'text'"),
        ({"attributes": {"a": ["x", "x"]}}, "each once"),
        ({"attributes": {"a": ("f4", 0)}}, "a pair such as"),
        ({"attributes": {"a/b": "f4"}}, "no name for an attribute"),
        ({"attributes": {"a": "datetime64[s]"}}, "cannot be of the type"),
        ({"object_attributes": {"a": "f4"}}, "object_attributes are of lines"),
        ({"kind": "lines", "objects": True}, "objects=True is for points"),
        ({"dtype": "int32"}, "float32 or float64"),
    ],
)
def test_wrong_arguments(options: dict[str, Any], words: str) -> None:
    given = {"source": sources.points, "kind": "points", **options}
    with pytest.raises(DataError, match=words):
        planned(MemoryStore(), **given)


def test_files_of_plans_are_not_believed(tmp_path: Path) -> None:
    path, file = str(tmp_path / "a.zv"), tmp_path / "plan.json"
    planned(path, "vectors.cell_sources:points").save(file)
    document = json.loads(file.read_text())
    request = document["work"]["request"]
    for name, bad in [
        ("job_shape", [3, 3]),
        ("job_shape", "x"),
        ("max_vertices", -1),
        ("attributes", {"n": {"dtype": "V3"}}),
        ("attributes", []),
        ("kind", "mesh"),
        ("dtype", "i4"),
        ("bounds", [[0, 0], [float("inf"), 1]]),
        ("objects", 1),
        ("codecs", ["nothing"]),
    ]:
        changed = {**document, "work": {**document["work"], "request": {**request, name: bad}}}
        file.write_text(json.dumps(changed))
        with pytest.raises(PlanError):
            Plan.load(file)
    missing = {**document, "work": {**document["work"], "source": "vectors.cell_sources:nothing"}}
    file.write_text(json.dumps(missing))
    with pytest.raises(PlanError, match="was changed"):
        Plan.load(file)
    plan = planned(path, "vectors.cell_sources:nothing")
    with pytest.raises(JobsFailedError, match="cell_sources:nothing of the plan cannot be imported"):
        plan.run()


@pytest.mark.parametrize("kind", ["points", "objects", "lines"])
def test_a_job_takes_the_memory_that_is_forecast(kind: str) -> None:
    count = 60_000 if kind == "lines" else 24_000
    source = {"points": sources.many, "objects": sources.many_owned, "lines": sources.many_lines}[kind]
    plan = vectors.plan_write_cells(
        MemoryStore(),
        source,
        "polylines" if kind == "lines" else "points",
        bounds=(0, 0, 0, 79, 79, 79),
        layout=Layout(chunk_shape=10, shard_shape=8, bin_shape=5 if kind == "points" else None),
        arguments={"count": count},
        objects=kind == "objects",
        max_vertices=count,
    )
    assert len(plan) == 1
    plan.begin()
    sources.many(((0,) * 3, (79,) * 3), 10)
    tracemalloc.start()
    try:
        plan.run(finish=False)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < plan.memory - 14 * 2**20  # of the sixteen for what does not depend on vertices
    assert plan.finish().result["vertices"] == count


def test_a_forecast() -> None:
    plan = planned(MemoryStore())
    assert len(plan) == 6
    assert plan.objects == 9 * 5
    assert plan.memory > 2**20
    assert "write point_cloud" in repr(plan)
    before = values(plan.work.home.store)
    assert before == {}
