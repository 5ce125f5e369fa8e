"""Exports to folders as plans of jobs: as at once, whatever is killed, stale or damaged; the folder is read as one."""

from __future__ import annotations

import json
import os
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from effort import SOAK
from vectors.geometry_samples import killed_by
from vectors.test_exports_in_parts import recorded
from zardine import vectors
from zardine.errors import (
    ArrayChangedError,
    CorruptionError,
    DataError,
    NodeExistsError,
    PlanError,
    UnsupportedError,
)
from zardine.jobs import Plan
from zardine.storage import LocalStore, MemoryStore
from zardine.vectors.exchange import export_folder, export_work, formats, level_parts, object_files

COUNT = 1500
PER_FILE = 200
FILES = 8
OPTIONS: dict[str, Any] = {"chunk_shape": 400, "crs": {"epsg": 25832}}


def points(path: str, **more: Any) -> str:
    rng = np.random.default_rng(1)
    values = {"n": np.arange(COUNT), "fa": rng.uniform(0, 1, COUNT), "intensity": np.arange(COUNT) * 40}
    positions = rng.integers(0, 10**6, (COUNT, 3)) / 1000
    vectors.write_points(path, positions, **{**OPTIONS, "vertex_attributes": values, **more})
    return path


def lines(path: str, **more: Any) -> str:
    """Lines that run through several chunks, in no order of space; some have one vertex or none."""
    rng = np.random.default_rng(2)
    lengths = [0, 1, *rng.integers(2, 30, 100).tolist()]
    given = [rng.uniform(0, 900, 3) + rng.integers(-9, 10, (n, 3)).cumsum(axis=0) * 4.0 for n in lengths]
    values = {"size": rng.integers(0, 99, len(given)), "name": [f"é{n}" for n in range(len(given))]}
    along = {"n": np.arange(sum(lengths))}
    options = {"object_attributes": values, "vertex_attributes": along, "object_ids": 3 * np.arange(len(given))}
    options |= {"groups": [[6, 9, 300], [12]], "group_attributes": {"name": ["left", "right"]}}
    vectors.write_polylines(path, given, geometry_type="streamline", **{**OPTIONS, **options, **more})
    return path


MAKERS: dict[str, Callable[..., str]] = {
    **dict.fromkeys(("csv", "feather", "las", "laz", "parquet"), points),
    "parquet of lines": lines,
    **dict.fromkeys(("trk", "tck", "trx"), lines),
}


def found_in(store: Any) -> Any:
    """What is in a store, in no order; names of types, and what is told of it."""
    read: Any = vectors.open(store).read()
    of_lines = getattr(read, "object_attributes", {})
    told = read.crs, {name: str(each.dtype) for name, each in {**read.attributes, **of_lines}.items()}
    if not isinstance(read, vectors.Polylines):
        columns = [read.positions, *(read.attributes[name] for name in sorted(read.attributes))]
        return told, sorted(zip(*(each.tolist() for each in columns), strict=True))
    each = [
        (*(of_lines[name][row] for name in sorted(of_lines)), line.tolist(), read.attributes["n"][start:end].tolist())
        if read.attributes
        else line.tolist()
        for row, (line, start, end) in enumerate(zip(read, read.starts, read.starts[1:], strict=False))
    ]
    return told, sorted(each, key=str)


def imported(source: Path, **more: Any) -> Any:
    store = MemoryStore()
    recorded(vectors.import_vectors, source, store, chunk_shape=300, **more)
    return found_in(store)


def planned(path: str, folder: Path, name: str = "las", **more: Any) -> Plan:
    return vectors.plan_export(path, f"{folder}/", format=name, vertices_per_file=PER_FILE, **more)


def files_of(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir())


def names(count: int = FILES, ending: str = "las") -> list[str]:
    return ["_parts.json", *(f"part-{number:05}.{ending}" for number in range(count))]


@pytest.mark.parametrize("kind", [each for each in MAKERS if SOAK or each not in ("las", "tck")])  # as their kin
def test_a_folder_comes_back_as_a_single_file_does(kind: str, tmp_path: Path) -> None:
    """Jobs run in any order, by a plan that is a file."""
    name = kind.partition(" ")[0]
    path, folder, single = MAKERS[kind](str(tmp_path / "a.zv")), tmp_path / "parts", tmp_path / f"a.{name}"
    told = recorded(vectors.export_vectors, path, single)
    planned(path, folder, name).save(tmp_path / "plan.json")
    plan = Plan.load(tmp_path / "plan.json")
    assert not folder.exists()
    assert len(plan) > 6
    plan.run_part(stage=1)
    for part in (2, 1):
        plan.run_part(part=(part, 2))
        assert files_of(folder) == ["__zardine"]
        for named in (name, None):  # no ending says of which format it will be
            with pytest.raises(DataError, match="an export to it was not finished"):
                vectors.import_vectors(folder, MemoryStore(), format=named)
    assert recorded(plan.run).replace(f"{folder / '*'}.{name}", str(single)) == told
    assert plan.status().state == "finished"
    assert files_of(folder) == names(len(plan) - 1, name)
    assert imported(folder) == imported(single)
    assert json.loads((folder / "_parts.json").read_text())["vertices"] == len(vectors.read_points(path).positions)
    vectors.import_vectors(folder, tmp_path / "jobs.zv", chunk_shape=300, workers=1)
    assert found_in(tmp_path / "jobs.zv") == imported(folder)


def test_each_file_holds_points_of_few_chunks_in_the_order_of_the_store(tmp_path: Path) -> None:
    path, folder = points(str(tmp_path / "a.zv")), tmp_path / "parts"
    recorded(vectors.export_vectors, path, f"{folder}/", format="las", vertices_per_file=PER_FILE)
    store = MemoryStore()
    recorded(vectors.import_vectors, folder, store, chunk_shape=10**6)
    assert vectors.read_points(store).attributes["n"].tolist() == vectors.read_points(path).attributes["n"].tolist()


def test_groups_of_all_files_are_joined(tmp_path: Path) -> None:
    path, folder, store = lines(str(tmp_path / "a.zv")), tmp_path / "parts", MemoryStore()
    recorded(planned(path, folder, "trx").run)
    recorded(vectors.import_vectors, folder, store, chunk_shape=300)
    held = vectors.open(store)
    assert sorted(held.groups["left"].object_attributes["object_id"].tolist()) == [6, 9, 300]
    assert held.groups["right"].object_attributes["object_id"].tolist() == [12]


def test_ids_of_lines_are_kept_since_their_order_is_not(tmp_path: Path) -> None:
    path, folder = (
        lines(str(tmp_path / "a.zv"), object_ids=None, groups=None, group_attributes=None),
        tmp_path / "parts",
    )
    planned(path, folder, "parquet").run()
    store, read = MemoryStore(), vectors.read_polylines(path)
    recorded(vectors.import_vectors, folder, store, chunk_shape=300)
    found = vectors.read_polylines(store)
    ids = found.object_attributes["object_id"]
    assert sorted(ids.tolist()) == list(range(2, len(read)))
    assert all(np.array_equal(line, read[int(number)]) for line, number in zip(found, ids, strict=True))


def test_levels_and_nodes_and_what_is_empty(tmp_path: Path) -> None:
    path, folder = points(str(tmp_path / "group.zarr" / "a")), tmp_path / "parts"
    vectors.build_pyramid(path, factors=[(2, 1)])
    store = str(tmp_path / "group.zarr")
    recorded(planned(store, folder, source_path="a", level=1).run)
    found = np.array(sorted(row[0] for row in imported(folder)[1]))
    assert np.allclose(found, sorted(vectors.read_points(path, level=1).positions.tolist()), atol=1e-6)
    empty = vectors.create(
        tmp_path / "b.zv", kind="point_cloud", bounds=[0, 0, 0, 9, 9, 9], layout=vectors.Layout(chunk_shape=3)
    )
    recorded(vectors.export_vectors, empty.path, f"{tmp_path / 'none'}/", format="las")
    assert files_of(tmp_path / "none") == names(1)
    assert imported(tmp_path / "none")[1] == []


@pytest.mark.parametrize("kind", ["las", "parquet", "parquet of lines", "trk", "trx"])
def test_jobs_need_no_more_memory_than_is_told(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (level_parts, export_work):
        monkeypatch.setattr(module, "AT_ONCE", 2000)
    path, count = str(tmp_path / "a.zv"), 20_000
    if MAKERS[kind] is points:
        values = {"n": np.arange(count), "fa": np.arange(count) / 7}
        positions = np.random.default_rng(1).uniform(0, 900, (count, 3))
        vectors.write_points(path, positions, chunk_shape=300, vertex_attributes=values)
    else:
        given = np.random.default_rng(1).normal(0, 4, (count // 20, 20, 3)).cumsum(axis=1)
        along = {"n": np.arange(count)}
        vectors.write_polylines(path, list(given), chunk_shape=30, vertex_attributes=along, geometry_type="streamline")
    options: Any = {"format": kind.partition(" ")[0], "vertices_per_file": 10_000}
    plan = vectors.plan_export(path, f"{tmp_path / 'out'}/", **options)
    recorded(vectors.export_vectors, path, f"{tmp_path / 'other'}/", **options)  # what libraries keep is kept then
    plan.begin()
    tracemalloc.start()
    try:
        for number in range(len(plan)):
            plan.job(number)()
        assert 0 < tracemalloc.get_traced_memory()[1] <= plan.memory - export_work._FIXED + 2 * 2**20
    finally:
        tracemalloc.stop()


KILLING = """
import os, signal, sys
from dataclasses import replace
from zardine.vectors.exchange import export_work
from zardine.vectors.exchange.formats import export_vectors
writer, written = export_work.WRITERS["las"], []
def mortal(path, place, parts, layout):
    writer.write(path, place, parts, layout)
    if len(written) == 5:
        os.kill(os.getpid(), signal.SIGKILL)
    written.append(place)
export_work.WRITERS["las"] = replace(writer, write=mortal)
export_vectors(sys.argv[1], sys.argv[2] + "/", format="las", vertices_per_file=int(sys.argv[3]))
"""


def killed(path: str, folder: Path) -> None:
    """An export in a fork, which is killed as it has written file 5 of 8."""
    killed_by(KILLING, path, str(folder), str(PER_FILE))


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The files that are written, by their numbers."""
    found: list[int] = []
    writer = export_work.WRITERS["las"]

    def noting(path: Any, place: Path, parts: Any, layout: Any) -> None:
        found.append(int(place.stem.partition("-")[2]))
        writer.write(path, place, parts, layout)

    monkeypatch.setitem(export_work.WRITERS, "las", replace(writer, write=noting))
    return found


def export(path: str, folder: Path, **more: Any) -> str:
    return recorded(vectors.export_vectors, path, f"{folder}/", format="las", **{"vertices_per_file": PER_FILE, **more})


def test_the_same_call_goes_on_where_one_was_killed(tmp_path: Path, written: list[int]) -> None:
    path, folder, progress = points(str(tmp_path / "a.zv")), tmp_path / "parts", list[tuple[int, int]]()
    killed(path, folder)
    assert files_of(folder) == ["__zardine"]
    assert "discarded" not in export(path, folder, progress=lambda done, total: progress.append((done, total)))
    assert written == [5, 6, 7]
    assert progress[0] == (0, 1000)
    assert progress[1][0] > 500
    assert progress == sorted(progress)
    assert progress[-1] == (1000, 1000)
    assert files_of(folder) == names()
    export(path, tmp_path / "other")
    for name in names()[1:]:
        assert (folder / name).read_bytes() == (tmp_path / "other" / name).read_bytes()


@pytest.mark.parametrize("what", ["damaged", "gone"])
def test_a_file_that_is_damaged_is_written_again(what: str, tmp_path: Path, written: list[int]) -> None:
    path, folder = points(str(tmp_path / "a.zv")), tmp_path / "parts"
    killed(path, folder)
    part = next(folder.rglob("part-00003.las"))
    if what == "gone":
        part.unlink()
    else:
        part.write_bytes(part.read_bytes()[:-1] + b"?")
    told = export(path, folder)
    assert "part 3 is written again: " in told
    assert f"part-00003.las is {what}" in told
    assert sorted(written) == [3, 5, 6, 7]
    assert imported(folder) == imported_whole(path, tmp_path)


def imported_whole(path: str, tmp_path: Path) -> Any:
    recorded(vectors.export_vectors, path, tmp_path / "whole.las", overwrite=True)
    return imported(tmp_path / "whole.las")


CHANGES: dict[str, tuple[Callable[[str], object], dict[str, Any], str]] = {
    "values": (
        lambda path: vectors.set_attribute(path, "n", vectors.read_points(path).attributes["n"]),
        {},
        "the store has changed since",
    ),
    "points": (
        lambda path: vectors.append_points(
            path, [[1.0, 2, 3]], vertex_attributes={"n": [1], "fa": [1], "intensity": [1]}
        ),
        {},
        "the store has changed since",
    ),
    "options": (lambda path: None, {"vertices_per_file": 450}, "it had other options: vertices_per_file"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_was_written_of_something_else_is_discarded(change: str, tmp_path: Path, written: list[int]) -> None:
    path, folder = points(str(tmp_path / "a.zv")), tmp_path / "parts"
    killed(path, folder)
    call, more, why = CHANGES[change]
    call(path)
    told = export(path, folder, **more)
    assert f"is discarded: {why}" in told
    assert written[0] == 0
    assert files_of(folder) == names(4 if more else FILES)
    assert imported(folder) == imported_whole(path, tmp_path)


def test_what_is_left_of_another_store_is_discarded(tmp_path: Path) -> None:
    one, other, folder = points(str(tmp_path / "a.zv")), points(str(tmp_path / "b.zv")), tmp_path / "parts"
    killed(one, folder)
    assert f"is discarded: it was of file://{one}" in export(other, folder)
    assert files_of(folder) == names()


def test_a_level_that_changes_meanwhile(tmp_path: Path) -> None:
    path, folder = points(str(tmp_path / "a.zv")), tmp_path / "parts"
    plan = planned(path, folder)
    plan.run(finish=False)
    vectors.set_attribute(path, "n", np.zeros(COUNT, np.int64))
    for call in (plan.run, plan.finish):
        with pytest.raises(PlanError, match=r"a\.zv has changed since its export was planned: plan it anew"):
            call()
    plan.cancel()
    assert files_of(folder) == []
    vectors.shard_store(path, 2)  # is no change
    plan = planned(path, folder)
    plan.run(finish=False)
    vectors.unshard_store(path)
    recorded(plan.run)
    assert files_of(folder) == names()


def test_a_level_that_changes_while_a_file_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, folder, writer = points(str(tmp_path / "a.zv")), tmp_path / "parts", export_work.WRITERS["las"]

    def changing(path_: Any, place: Path, parts: Any, layout: Any) -> None:
        vectors.set_attribute(path, "n", np.zeros(COUNT, np.int64))
        writer.write(path_, place, parts, layout)

    monkeypatch.setitem(export_work.WRITERS, "las", replace(writer, write=changing))
    with pytest.raises(ArrayChangedError):
        export(path, folder)
    assert files_of(folder) == []


def test_folders_with_something_in_them(tmp_path: Path) -> None:
    path, folder = points(str(tmp_path / "a.zv")), tmp_path / "parts"
    folder.mkdir()
    (folder / "mine.txt").write_text("x")
    for overwrite in (False, True):
        with pytest.raises(NodeExistsError, match=r"it holds 'mine\.txt', which is no \.las file"):
            export(path, folder, overwrite=overwrite)
    assert files_of(folder) == ["mine.txt"]
    (folder / "mine.txt").rename(folder / "old.las")
    with pytest.raises(NodeExistsError, match="is not empty"):
        export(path, folder)
    plan = planned(path, folder, overwrite=True)
    plan.run(finish=False)
    assert (folder / "old.las").read_text() == "x"
    recorded(plan.finish)
    assert files_of(folder) == names()
    assert export(path, folder, overwrite=True, vertices_per_file=450)
    assert files_of(folder) == names(4)
    assert imported(folder) == imported_whole(path, tmp_path)
    (tmp_path / "file").write_text("x")
    with pytest.raises(NodeExistsError, match="is a file, not a directory"):
        export(path, tmp_path / "file")


def test_a_file_that_came_meanwhile(tmp_path: Path) -> None:
    path, folder = points(str(tmp_path / "a.zv")), tmp_path / "parts"
    plan = planned(path, folder)
    plan.begin()
    (folder / "mine.las").write_text("x")
    with pytest.raises(NodeExistsError, match="is not empty"):
        plan.run()
    assert (folder / "mine.las").read_text() == "x"
    (folder / "mine.las").unlink()
    recorded(plan.run)
    assert files_of(folder) == names()


CUTS = [(0, False), (1, True), (5, False), (FILES, True), (0, True), (1, False), (5, True), (FILES, False)]


@pytest.mark.parametrize(("moved", "old"), CUTS if SOAK else CUTS[:4])
def test_cut_off_as_files_are_put_there(moved: int, old: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, folder = points(str(tmp_path / "a.zv")), tmp_path / "parts"
    if old:
        export(path, folder, vertices_per_file=300)
    left, move = [moved], os.replace

    def dying(a: Any, b: Any) -> None:
        if Path(b).parent == folder:
            left[0] -= 1
            if left[0] < 0:
                raise KeyboardInterrupt
        move(a, b)

    for module in (export_work, export_folder):
        monkeypatch.setattr(module, "replace_file", dying)
    with pytest.raises(KeyboardInterrupt):
        export(path, folder, overwrite=old)
    monkeypatch.undo()
    assert not (folder / "_parts.json").exists()
    with pytest.raises(DataError, match="an export to it was not finished"):
        vectors.import_vectors(folder, MemoryStore(), format="las")
    export(path, folder, overwrite=old)
    assert files_of(folder) == names()
    assert imported(folder) == imported_whole(path, tmp_path)


def test_a_folder_that_lacks_something(tmp_path: Path) -> None:
    path, folder = points(str(tmp_path / "a.zv")), tmp_path / "parts"
    export(path, folder)
    whole = (folder / "part-00004.las").read_bytes()
    (folder / "part-00004.las").write_bytes(whole[:-20])
    with pytest.raises(DataError, match=r"part-00004\.las has [0-9]+ bytes: _parts\.json tells of"):
        vectors.import_vectors(folder, MemoryStore())
    (folder / "part-00004.las").unlink()
    with pytest.raises(DataError, match=r"part-00004\.las is missing"):
        vectors.import_vectors(folder, MemoryStore())
    for text in ("{", "[]", '{"files": {"a": "b"}}', '{"files": 3}'):
        (folder / "_parts.json").write_text(text)
        with pytest.raises(DataError, match="does not say which files belong together"):
            vectors.import_vectors(folder, MemoryStore())
    (folder / "_parts.json").unlink()
    assert len(imported(folder)[1]) < COUNT


def test_a_lost_chunk_is_an_error_of_the_first_job(tmp_path: Path) -> None:
    path, folder = points(str(tmp_path / "a.zv")), tmp_path / "parts"
    store = LocalStore(path)
    store.erase(sorted(each for each in store.list_prefix("0/vertices/c/"))[-1])
    with pytest.raises(CorruptionError):
        export(path, folder)
    assert files_of(folder) == []


def test_two_processes_write(tmp_path: Path) -> None:
    path, folder = lines(str(tmp_path / "a.zv"), shard_shape=2, compressor="zstd"), tmp_path / "parts"
    told = recorded(vectors.export_vectors, path, f"{folder}/", format="trk", vertices_per_file=PER_FILE, workers=2)
    assert "the attribute 'name' cannot be kept: it is text" in told
    assert "lines without vertices are left out" in told
    recorded(vectors.export_vectors, path, tmp_path / "a.trk")
    assert imported(folder) == imported(tmp_path / "a.trk")


def test_files_of_others_are_read_as_one(tmp_path: Path) -> None:
    folder = tmp_path / "tiles"
    folder.mkdir()
    for number in range(3):
        path = points(str(tmp_path / f"{number}.zv"))
        recorded(vectors.export_vectors, path, folder / f"tile {number}.laz")
    (folder / "readme.txt").write_text("x")
    store = MemoryStore()
    told = recorded(vectors.import_vectors, folder, store, chunk_shape=300)
    assert "1 files that do not end in .laz are left out" in told
    assert len(vectors.read_points(store)) == 3 * COUNT
    recorded(vectors.export_vectors, points(str(tmp_path / "n.zv"), vertex_attributes={}), folder / "x.laz")
    with pytest.raises(DataError, match="pieces of one file have different attributes"):
        vectors.import_vectors(folder, MemoryStore())


def test_what_cannot_be_planned(tmp_path: Path) -> None:
    path = points(str(tmp_path / "a.zv"))
    for target, name in (("a.las", None), ("out/", "gpkg"), ("a.ply", None)):
        with pytest.raises(UnsupportedError, match="is written by one process"):
            vectors.plan_export(path, str(tmp_path / target), format=name)
    with pytest.raises(UnsupportedError, match="is written by one process"):
        vectors.export_vectors(path, tmp_path / "a.las", workers=2)
    with pytest.raises(TypeError, match="have no option 'sharded'"):
        vectors.plan_export(path, f"{tmp_path / 'out'}/", format="las", sharded=True)
    for count in (0, True, "9"):
        with pytest.raises(DataError, match="vertices_per_file is a number"):
            vectors.plan_export(path, f"{tmp_path / 'out'}/", format="las", vertices_per_file=count)  # type: ignore[arg-type]
    with pytest.raises(DataError, match="holds a point_cloud"):
        vectors.export_vectors(path, f"{tmp_path / 'out'}/", format="trk")
    assert not (tmp_path / "out").exists() or files_of(tmp_path / "out") == []


@pytest.mark.parametrize(
    "change",
    [
        {"cuts": []},
        {"cuts": [0, "3"]},
        {"cuts": [0, 9, 4]},
        {"format": "shp"},
        {"vertices_per_file": 0},
        {"level": -1},
        {"state": None},
        {"replaced": 3},
    ],
)
def test_plans_that_say_nonsense(change: dict[str, Any], tmp_path: Path) -> None:
    plan = planned(points(str(tmp_path / "a.zv")), tmp_path / "parts")
    plan.save(tmp_path / "plan.json")
    document = json.loads((tmp_path / "plan.json").read_text())
    document["work"] |= change
    (tmp_path / "plan.json").write_text(json.dumps(document))
    with pytest.raises(PlanError):
        Plan.load(tmp_path / "plan.json")


def neurons(path: str) -> str:
    rng = np.random.default_rng(3)
    parents = np.arange(COUNT) - 1
    parents[::50] = -1
    positions = (rng.uniform(0, 800, (COUNT // 50, 1, 3)) + rng.uniform(0, 60, (COUNT // 50, 50, 3))).reshape(-1, 3)
    owners = np.repeat(3 * np.arange(COUNT // 50), 50)
    names = {"name": [f"neuron {number}" for number in range(COUNT // 50)]}
    vectors.write_skeleton(path, positions, parents, chunk_shape=200, object_ids=owners, object_attributes=names)
    return path


def surfaces(path: str) -> str:
    rng = np.random.default_rng(5)
    positions = (rng.uniform(0, 800, (COUNT // 3, 1, 3)) + rng.uniform(0, 60, (COUNT // 3, 3, 3))).reshape(-1, 3)
    owners, values = np.repeat(np.arange(COUNT // 3) // 10, 3), {"n": np.arange(COUNT)}
    faces = np.arange(COUNT).reshape(-1, 3)
    vectors.write_mesh(path, positions, faces, chunk_shape=200, object_ids=owners, vertex_attributes=values)
    return path


OBJECTS = {"swc": neurons, "ply": surfaces, "obj": surfaces, "stl": surfaces}


def contents_of(folder: Path) -> dict[str, bytes]:
    return {each.name: each.read_bytes() for each in folder.iterdir() if each.name not in ("_parts.json", "__zardine")}


@pytest.mark.parametrize("name", OBJECTS)
def test_files_of_objects_by_jobs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Jobs write several files each, in any order; the files are those of a single job."""
    path, folder, other = OBJECTS[name](str(tmp_path / "a.zv")), tmp_path / "files", tmp_path / "other"
    told = recorded(vectors.export_vectors, path, f"{other}/", format=name)
    monkeypatch.setattr(formats, "AT_ONCE", PER_FILE)
    vectors.plan_export(path, f"{folder}/", format=name).save(tmp_path / "plan.json")
    plan = Plan.load(tmp_path / "plan.json")
    assert len(plan) > 6
    plan.run_part(stage=1)
    for part in (2, 1):
        plan.run_part(part=(part, 2))
        assert files_of(folder) == ["__zardine"]
        with pytest.raises(DataError, match="an export to it was not finished"):
            vectors.import_vectors(folder, MemoryStore(), format=name)
    some = sorted(folder.rglob(f"*.{name}"))
    some[0].write_bytes(b"?")
    some[-1].unlink()
    again = recorded(plan.run)
    assert again.count("is written again") == 2
    assert [line for line in again.splitlines() if "written again" not in line] == [
        line.replace(str(other), str(folder)) for line in told.splitlines()
    ]
    assert contents_of(folder) == contents_of(other)
    assert len(contents_of(other)) == {"swc": COUNT // 50}.get(name, COUNT // 30)
    store = MemoryStore()
    assert "left out" not in recorded(vectors.import_vectors, folder, store, chunk_shape=300, format=name)
    sorted(folder.glob(f"*.{name}"))[0].unlink()
    with pytest.raises(DataError, match="is missing"):
        vectors.import_vectors(folder, MemoryStore(), format=name)


KILLING_OBJECTS = """
import os, signal, sys
from zardine.vectors.exchange import formats, object_files
formats.AT_ONCE, written, write = 200, [], object_files.write_swc
def mortal(*given):
    if len(written) == 25:
        os.kill(os.getpid(), signal.SIGKILL)
    written.append(write(*given))
object_files.write_swc = mortal
formats.export_vectors(sys.argv[1], sys.argv[2] + "/", format="swc")
"""


def test_files_of_objects_go_on_where_one_was_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, folder, other = neurons(str(tmp_path / "a.zv")), tmp_path / "files", tmp_path / "other"
    killed_by(KILLING_OBJECTS, path, str(folder))
    monkeypatch.setattr(formats, "AT_ONCE", PER_FILE)
    written, write = list[Path](), object_files.write_swc

    def noting(file: Path, *given: Any) -> None:
        written.append(file)
        write(file, *given)

    monkeypatch.setattr(object_files, "write_swc", noting)
    assert "discarded" not in recorded(vectors.export_vectors, path, f"{folder}/", format="swc")
    assert COUNT // 50 - 25 <= len(written) < COUNT // 50
    recorded(vectors.export_vectors, path, f"{other}/", format="swc")
    assert contents_of(folder) == contents_of(other)
