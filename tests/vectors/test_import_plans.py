"""Imports as plans of jobs: as at once, whatever is killed, stale or damaged."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
import tracemalloc
import warnings
import zipfile
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import geopandas
import numpy as np
import pandas as pd
import pytest
import shapely
import trimesh

import zardine
from effort import SOAK, some
from vectors.geometry_samples import Killed, MortalStore, copy_of, killed_by
from vectors.source_files import geff, meshes, precomputed, swc
from vectors.test_levels_in_parts import las, trk
from zardine import vectors
from zardine.errors import CorruptionError, DataError, NodeExistsError, PlanError, UnsupportedError, ZarrUserWarning
from zardine.jobs import Plan
from zardine.storage import LocalStore, MemoryStore, Store
from zardine.vectors.exchange import formats
from zardine.vectors.exchange.file_parts import Part
from zardine.vectors.exchange.formats import export_vectors, import_vectors
from zardine.vectors.exchange.import_work import PARTS
from zardine.vectors.exchange.scans import ScanParts

ENVIRON = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
OPTIONS: dict[str, Any] = {"chunk_shape": 100, "shard_shape": 4, "compressor": "zstd"}


def trx(path: Path, count: int = 60) -> Path:
    rng, made = np.random.default_rng(2), MemoryStore()
    lines = [rng.normal(0, 60, (length, 3)).cumsum(axis=0).astype("f4") for length in rng.integers(1, 90, count)]
    total = sum(map(len, lines))
    vectors.write_polylines(
        made,
        lines,
        chunk_shape=100,
        vertex_attributes={"fa": np.arange(total), "v": np.arange(2 * total).reshape(total, 2)},
        object_attributes={"n": np.arange(count)},
        groups=[[1, 5], [3]],
        group_attributes={"name": ["left", "right"]},
    )
    export_vectors(made, path)
    return path


def parquet(path: Path) -> Path:
    rng, count = np.random.default_rng(3), 3000
    points = geopandas.points_from_xy(*rng.uniform(0, 900, (3, count)))
    columns = {"n": np.arange(count), "fa": rng.uniform(0, 1, count), "ok": rng.uniform(0, 1, count) < 0.5}
    geopandas.GeoDataFrame(columns, geometry=points, crs=25832).to_parquet(path, row_group_size=400)
    return path


def table(path: Path) -> Path:
    rng, count = np.random.default_rng(4), 3000
    columns = {
        "kind": rng.choice(["a", 'b "c"', "d,\n"], count),
        "n": np.arange(count),
        "ok": rng.uniform(0, 1, count) < 0.5,
    }
    frame = pd.DataFrame({**dict(zip("xyz", rng.uniform(0, 900, (3, count)), strict=True)), **columns})
    if path.suffix == ".csv":
        frame.to_csv(path, index=False)
    else:
        frame.to_feather(path, chunksize=300)
    return path


def source_of(ending: str, folder: Path) -> Path:
    makers: dict[str, Callable[[Path], Path]] = {
        **dict.fromkeys(("csv", "feather"), table),
        "geff": geff,
        **{each: lambda path: meshes(path, ending=ending) for each in ("obj", "ply", "stl")},
        "parquet": parquet,
        "swc": swc,
        "tck": lambda path: trk(path, 60),
        "trk": lambda path: trk(path, 60),
        "trx": trx,
    }
    kind, _, packed = ending.partition(" ")
    if kind in FOLDERS:
        count = {"related": 1500, "boxes": 1500, "meshes": 150}.get(kind, 300)
        return precomputed(folder / "in.precomputed", kind, count, sharded=packed == "in shards")
    return makers.get(ending, lambda path: las(path, 3000))(folder / f"in.{ending}")


def in_parts(plan: Plan, at_once: int = 400) -> Plan:
    """The same with smaller parts."""
    work: Any = plan.work
    parts = PARTS[work.format](work.source.given, work.options, at_once, None)
    return Plan(replace(work, at_once=at_once, count=parts.count, memory=parts.memory, outline=parts.outline))


def stored(store: Store) -> dict[str, Any]:
    """All values; documents as what they say, without where the store comes from, and its own name."""
    found = {key: bytes(store.get(key) or b"") for key in store.list()}
    documents = {key: json.loads(value) if key.endswith("zarr.json") else value for key, value in found.items()}
    root = documents.get("zarr.json", {}).get("attributes", {})
    root.pop("zardine_import", None)
    root.get("ome", {}).pop("name", None)
    return documents


def rows(store: Any) -> list[bytes]:
    """All vertices with their attributes, sorted."""
    found = vectors.read_points(store)
    columns = (found.positions, *(found.attributes[name] for name in sorted(found.attributes)))
    return sorted(b"".join(np.asarray(each[row]).tobytes() for each in columns) for row in range(len(found)))


def at_once(source: Path, **options: Any) -> dict[str, Any]:
    store = MemoryStore()
    import_vectors(source, store, **{**OPTIONS, **options})
    return stored(store)


SOURCES = ["csv", "feather", "geff", "las", "laz", "obj", "parquet", "ply", "stl", "swc", "tck", "trk", "trx"]
FOLDERS = ["points", "related", "boxes", "skeletons", "loops", "meshes"]
"""Of neuroglancer."""
SOURCES += [*FOLDERS, *(f"{kind} in shards" for kind in FOLDERS if kind != "meshes")]


ALIKE = ("las", "obj", "stl", "related", "boxes", "loops", "points")
"""Read as another one is, of the same kind or packed."""


@pytest.mark.parametrize("ending", [each for each in SOURCES if SOAK or each not in ALIKE])
def test_the_store_is_that_of_an_import_at_once(ending: str, tmp_path: Path) -> None:
    source, path = source_of(ending, tmp_path), str(tmp_path / "a.zv")
    plan = zardine.vectors.plan_import(source, path, **OPTIONS)
    plan = in_parts(plan, 100 if ending.startswith(("related", "boxes")) else 400)
    assert len(plan) > 4
    plan.save(tmp_path / "plan.json")
    plan = Plan.load(tmp_path / "plan.json")
    for part in (2, 1):
        plan.run_part(part=(part, 2))
        assert not plan.status()
        with pytest.raises(zardine.errors.ZardineError):
            vectors.open(path)
    assert plan.run() == plan.run() == plan.status()
    assert plan.status().state == "finished"
    assert stored(LocalStore(path)) == at_once(source)
    assert vectors.validate(path).findings == ()
    assert not [each for each in Path(path).rglob("*") if "__zardine" in each.name]


@pytest.mark.parametrize(
    "ending", [*(["loops", "tck"] if SOAK else []), "laz", "meshes", "skeletons", "swc", "trk", "trx"]
)
def test_jobs_need_no_more_memory_than_is_told(ending: str, tmp_path: Path) -> None:
    makers = {
        "laz": lambda path: las(path, 40000),
        **{kind: partial(precomputed, kind=kind, count=400) for kind in ("loops", "meshes", "skeletons")},
        "swc": lambda path: swc(path, 24, 3000),
        "tck": lambda path: trk(path, 700, 50),
        "trk": lambda path: trk(path, 700, 50),
        "trx": lambda path: trx(path, 700),
    }
    source = makers[ending](tmp_path / f"in.{'precomputed' if ending in FOLDERS else ending}")
    plan = in_parts(
        zardine.vectors.plan_import(source, str(tmp_path / "a.zv"), **OPTIONS), 2000 if ending in FOLDERS else 10000
    )
    plan.begin()
    plan.job(0)()
    fixed = (
        16 if ending in ("swc", *FOLDERS) else 64
    ) * 2**20  # for what the libraries take by themselves, and tracemalloc does not see
    tracemalloc.start()
    try:
        for number in range(1, len(plan)):
            plan.job(number)()
        assert 0 < tracemalloc.get_traced_memory()[1] <= plan.memory - fixed + 2**20
    finally:
        tracemalloc.stop()


KILLING = """
import os, signal, sys
from zardine.vectors.exchange import formats, scans
from zardine.vectors.exchange.formats import import_vectors
formats.AT_ONCE, formats.WHOLE = 400, 0
read = scans.ScanParts.read
def mortal(parts, number):
    if number == 5:
        os.kill(os.getpid(), signal.SIGKILL)
    return read(parts, number)
scans.ScanParts.read = mortal
import_vectors(sys.argv[1], sys.argv[2], chunk_shape=100, shard_shape=4, compressor="zstd")
"""


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let files of any size be imported by plans of small parts."""
    monkeypatch.setattr(formats, "AT_ONCE", 400)
    monkeypatch.setattr(formats, "WHOLE", 0)


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Counter[int]:
    """How often each part is read."""
    counts, read = Counter[int](), ScanParts.read

    def counting(parts: ScanParts, number: int) -> Any:
        counts[number] += 1
        return read(parts, number)

    monkeypatch.setattr(ScanParts, "read", counting)
    return counts


def killed(source: Path, path: str) -> None:
    """An import in a fork, which is killed as it begins to read part 5 of 8."""
    killed_by(KILLING, str(source), path)


def told(call: Callable[[], object]) -> str:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        call()
    return "\n".join(str(each.message) for each in found if each.category is ZarrUserWarning)


@pytest.mark.usefixtures("small")
def test_the_same_call_goes_on_where_one_was_killed(tmp_path: Path, reads: Counter[int]) -> None:
    source, path, progress = las(tmp_path / "in.las", 3000), str(tmp_path / "a.zv"), list[tuple[int, int]]()
    killed(source, path)
    assert not (Path(path) / "zarr.json").exists()
    import_vectors(source, path, progress=lambda done, total: progress.append((done, total)), **OPTIONS)
    assert reads == {5: 1, 6: 1, 7: 1}
    assert progress[0][0] == 0 < progress[1][0] < progress[-1][0]
    assert progress == sorted(progress)
    assert progress[-1] == (2000, 2000)
    found = stored(LocalStore(path))
    formats.WHOLE = 2**22
    assert found == at_once(source)


@pytest.mark.usefixtures("small")
def test_what_was_read_of_another_file_is_discarded(tmp_path: Path, reads: Counter[int]) -> None:
    source, path = las(tmp_path / "in.las", 3000), str(tmp_path / "a.zv")
    killed(source, path)
    about = source.stat()
    las(source, 3000, seed=1)
    os.utime(source, ns=(about.st_atime_ns, about.st_mtime_ns))
    assert "in.las: an unfinished import to " in told(lambda: import_vectors(source, path, **OPTIONS))
    assert reads == Counter(range(8))
    found = stored(LocalStore(path))
    formats.WHOLE = 2**22
    assert found == at_once(source)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda source, path: source.touch(), "the file has changed since"),
        (lambda source, path: source.rename(source.with_name("b.las")), "it was of .*in.las"),
        (lambda source, path: None, "it had other options: chunk_shape"),
        (lambda source, path: next(Path(path).rglob("import.json")).write_text("{"), "what it was of is not known"),
    ],
)
def test_why_what_was_read_is_discarded(change: Any, why: str, tmp_path: Path) -> None:
    source, path = las(tmp_path / "in.las", 3000), str(tmp_path / "a.zv")
    killed(source, path)
    change(source, path)
    now = next(tmp_path.glob("*.las"))
    with pytest.warns(ZarrUserWarning, match=f"is discarded: {why}"):
        import_vectors(now, path, chunk_shape=250)
    assert vectors.validate(path).findings == ()
    assert len(vectors.read_points(path)) == 3000
    assert not list(Path(path).rglob("*__zardine*"))


DAMAGE: dict[str, Callable[[Path], object]] = {
    "damaged": lambda part: part.write_bytes(part.read_bytes()[:-1] + b"?"),
    "gone": lambda part: part.unlink(),
}


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("what", DAMAGE)
def test_a_part_that_is_damaged_is_read_again(what: str, tmp_path: Path, reads: Counter[int]) -> None:
    source, path = las(tmp_path / "in.las", 3000), str(tmp_path / "a.zv")
    killed(source, path)
    DAMAGE[what](next(Path(path).rglob("part-3")))
    text = told(lambda: import_vectors(source, path, **OPTIONS))
    assert "part 3 is read again: __zardine/import/" in text
    assert text.endswith(f"is {what}")
    assert reads == {3: 1, 5: 1, 6: 1, 7: 1}
    found = stored(LocalStore(path))
    formats.WHOLE = 2**22
    assert found == at_once(source)


def test_killed_before_each_change(tmp_path: Path) -> None:
    """Whoever is killed leaves the old store, or none, or the new one; the plan goes on."""
    source = las(tmp_path / "in.las", 60)
    whole, other = at_once(source), MemoryStore()
    import_vectors(source, other, **OPTIONS)
    told_rows = rows(other)
    for old in (False, True):
        before = MemoryStore()
        if old:
            vectors.write_points(before, np.zeros((3, 3)), chunk_shape=50)
        for changes in some(range(400), 61):
            mortal = MortalStore(copy_of(before), changes)
            plan = in_parts(zardine.vectors.plan_import(source, mortal.store, overwrite=old, **OPTIONS), 25)
            dying = Plan(replace(plan.work, target=replace(plan.work.home, store=mortal)))  # type: ignore[arg-type]
            try:
                dying.run()
                done = True
            except Killed:
                done = False
            store = mortal.store
            if old and not done:
                assert len(vectors.read_points(store)) in (3, 60)
            assert plan.run()
            if old:  # its objects may have other keys
                assert rows(store) == told_rows
            else:
                assert stored(store) == whole
            assert vectors.validate(store).findings == ()
            if done:
                break
        assert done


def test_a_store_that_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, path = las(tmp_path / "in.las", 3000), str(tmp_path / "a.zv")
    vectors.write_points(path, np.zeros((3, 3)), chunk_shape=50)
    with pytest.raises(NodeExistsError):
        zardine.vectors.plan_import(source, path, **OPTIONS)
    plan = in_parts(zardine.vectors.plan_import(source, path, overwrite=True, **OPTIONS))
    plan.run(finish=False)
    assert len(vectors.read_points(path)) == 3
    (found,) = vectors.validate(path).findings
    assert (found.severity, found.kind) == ("warning", "import-unfinished")
    plan.run()
    assert not vectors.validate(path).findings
    assert stored(LocalStore(path)) == at_once(source)
    vectors.append_points(path, np.zeros((1, 3)))  # plans are of what is there: this one is over
    assert plan.run().state == "finished"
    assert len(vectors.read_points(path)) == 3001
    import_vectors(source, path, overwrite=True, workers=1, **OPTIONS)
    assert stored(LocalStore(path)) == at_once(source)


def test_a_store_that_came_meanwhile(tmp_path: Path) -> None:
    source, path = las(tmp_path / "in.las", 3000), str(tmp_path / "a.zv")
    plan = in_parts(zardine.vectors.plan_import(source, path, **OPTIONS))
    vectors.write_points(path, np.zeros((3, 3)), chunk_shape=50)
    with pytest.raises(NodeExistsError):
        plan.run()
    assert len(vectors.read_points(path)) == 3


def test_a_file_that_changes_meanwhile(tmp_path: Path) -> None:
    source, path = las(tmp_path / "in.las", 3000), str(tmp_path / "a.zv")
    plan = in_parts(zardine.vectors.plan_import(source, path, **OPTIONS))
    plan.run(finish=False)
    source.touch()
    with pytest.raises(PlanError, match=r"in\.las has changed since its import was planned"):
        plan.run()
    source.unlink()
    with pytest.raises(PlanError, match="cannot be read any more"):
        plan.finish()
    plan.cancel()
    assert not [each for each in Path(path).rglob("*") if each.is_file()]


def test_a_file_that_is_damaged_leaves_nothing(tmp_path: Path) -> None:
    source, path = las(tmp_path / "in.laz", 3000), str(tmp_path / "a.zv")
    data = bytearray(source.read_bytes())
    data[-40:] = bytes(40)
    source.write_bytes(data[:-900])
    with pytest.raises(DataError):
        import_vectors(source, path, workers=1, **OPTIONS)
    assert not [each for each in Path(path).rglob("*") if each.is_file()]


def test_a_value_that_is_damaged_leaves_nothing(tmp_path: Path) -> None:
    """The source is at fault, not what was kept of it: what was read is of no use once it is mended."""
    source, path = source_of("skeletons", tmp_path), str(tmp_path / "a.zv")
    value = next(each for each in source.iterdir() if each.name.isdecimal())
    value.write_bytes(value.read_bytes()[:-1])
    with pytest.raises(CorruptionError, match=r"a skeleton of .* takes"):
        import_vectors(source, path, workers=1, **OPTIONS)
    assert not [each for each in Path(path).rglob("*") if each.is_file()]


def test_a_part_that_is_damaged_at_the_end_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The others are: the same call reads it again."""
    source, path = las(tmp_path / "in.las", 3000), str(tmp_path / "a.zv")
    from_bytes = Part.from_bytes
    monkeypatch.setattr(Part, "from_bytes", lambda data, place: from_bytes(data[:-1], place))
    with pytest.raises(CorruptionError, match="is no part of an import"):
        import_vectors(source, path, workers=1, **OPTIONS)
    assert len(parts_of(Path(path))) == 1
    monkeypatch.undo()
    import_vectors(source, path, workers=1, **OPTIONS)
    assert stored(LocalStore(path)) == at_once(source)


def test_an_import_without_jobs_discards_what_jobs_have_left(tmp_path: Path) -> None:
    source, other, path = las(tmp_path / "in.las", 300), las(tmp_path / "other.las", 300), str(tmp_path / "a.zv")
    for file, why in ((source, "this one is not by jobs"), (other, "it was of .*in.las")):
        zardine.vectors.plan_import(source, path, overwrite=True, **OPTIONS).run(finish=False)
        with pytest.warns(ZarrUserWarning, match=f"is discarded: {why}"):
            import_vectors(file, path, overwrite=True, **OPTIONS)
        assert not list(Path(path).rglob("*__zardine*"))


def test_two_processes_read(tmp_path: Path) -> None:
    source, path = las(tmp_path / "in.laz", 3000), str(tmp_path / "a.zv")
    import_vectors(source, path, workers=2, **OPTIONS)
    assert stored(LocalStore(path)) == at_once(source)


IMPORTING = """
import sys
from zardine.vectors.exchange import formats
if __name__ == "__main__":
    formats.AT_ONCE = int(sys.argv[3])
    formats.import_vectors(sys.argv[1], sys.argv[2], workers=2, chunk_shape=100, shard_shape=4, compressor="zstd")
"""


def parts_of(path: Path) -> dict[Path, int]:
    """What jobs have read so far, and when."""
    found = {}
    for folder, _, names in os.walk(path / "__zardine/import"):  # which passes over folders that are gone by then
        for each in (Path(folder) / name for name in names if re.fullmatch(r"part-.*[0-9]", name)):
            with suppress(FileNotFoundError):
                found[each] = each.stat().st_mtime_ns
    return found


def wait_for_parts(path: Path, count: int, process: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + 120
    while len(parts_of(path)) < count:
        assert process.poll() is None, "it ended before it was killed"
        assert time.monotonic() < end
        time.sleep(0.005)


@pytest.mark.parametrize("ending", SOURCES if SOAK else ["las"])
def test_workers_and_then_all_of_them_are_killed(ending: str, tmp_path: Path) -> None:
    """Killed workers are replaced; where all are killed, the same command goes on from what was read."""
    source, path, script = source_of(ending, tmp_path), tmp_path / "a.zv", tmp_path / "script.py"
    script.write_text(IMPORTING)
    command = [sys.executable, str(script), str(source), str(path), "60"]
    process = subprocess.Popen(command, env=ENVIRON, start_new_session=True)
    try:
        wait_for_parts(path, 2, process)
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        os.kill(int(children[-1]), signal.SIGKILL)
        wait_for_parts(path, 6, process)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    before = parts_of(path)
    assert not (path / "zarr.json").exists()
    made = MemoryStore()
    import_vectors(source, made, **OPTIONS)
    process = subprocess.Popen(command, env=ENVIRON)
    seen = dict(before)
    while process.poll() is None:
        seen |= parts_of(path)
        time.sleep(0.005)
    assert process.returncode == 0
    assert sum(seen[each] != before[each] for each in before) <= 2  # what was stored, and not noted yet
    assert stored(LocalStore(str(path))) == stored(made)
    assert not list(path.rglob("*__zardine*"))


def test_losses_are_told_where_the_plan_is_finished(tmp_path: Path) -> None:
    """Also what other processes have seen while they read, once."""
    folder = swc(tmp_path / "cells", 12)
    for number in (2, 7):
        file = folder / f"neuron {number}.swc"
        file.write_text("# SCALE 2 2 2\n" + file.read_text().replace("0.5", "0.5 ", 1).replace("\n", " 8\n"))
    (folder / "notes.txt").write_text("notes")
    plan = in_parts(zardine.vectors.plan_import(folder, str(tmp_path / "a.zv"), **OPTIONS), 200)
    assert len(plan) > 2
    assert told(lambda: plan.run(workers=2, finish=False)) == ""
    again = told(plan.finish)
    assert sorted(again.split("\n")) == sorted(told(lambda: import_vectors(folder, MemoryStore())).split("\n"))
    for number in (2, 7):
        assert f"neuron {number}.swc: columns after the seventh are left out" in again
        assert f"neuron {number}.swc: positions are stored as they are in the file; its scale is not applied" in again
    assert "1 files that do not end in .swc are left out" in again


WRONG_FOLDERS: dict[str, tuple[str, Callable[[Path], object], str]] = {
    "a file cut off": ("swc", lambda file: file.write_text("1 0 0 0 0"), r"neuron 3\.swc, line 1: number, type"),
    "an empty file": ("swc", lambda file: file.write_text(""), r"neuron 3\.swc holds no samples"),
    "a circle": ("swc", lambda file: file.write_text("1 0 0 0 0 1 2\n2 0 0 0 0 1 1"), r"neuron 3\.swc: .*in a circle"),
    "a mesh cut off": ("ply", lambda file: file.write_bytes(file.read_bytes()[:-9]), r"1000000000021\.ply "),
    "points": (
        "ply",
        lambda file: trimesh.PointCloud(np.eye(3)).export(str(file)),
        r"1000000000021\.ply holds points, no faces: a folder is read as meshes",
    ),
    "other attributes": (
        "ply",
        lambda file: trimesh.Trimesh(np.eye(3), [[0, 1, 2]], vertex_attributes={"q": np.zeros(3)}).export(str(file)),
        r"1000000000021\.ply: its vertices have other attributes, .* than those of .*ply: 'q'",
    ),
    "a vertex that is not there": (
        "obj",
        lambda file: file.write_text("v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 9\n"),
        r"1000000000021\.obj",
    ),
}


@pytest.mark.parametrize("what", WRONG_FOLDERS)
def test_folders_with_a_wrong_file(what: str, tmp_path: Path) -> None:
    ending, change, text = WRONG_FOLDERS[what]
    folder = source_of(ending, tmp_path)
    change(folder / ("neuron 3.swc" if ending == "swc" else f"1000000000021.{ending}"))
    for workers in (None, 1):
        with pytest.raises(DataError, match=text):
            import_vectors(folder, str(tmp_path / "a.zv"), workers=workers, **OPTIONS)
        assert not [each for each in tmp_path.rglob("a.zv/*") if each.is_file()]


@pytest.mark.parametrize(
    "outline", [[[67, 0, 0], [60, 1, 60]], [[67, 0, 0], [2**60, 60, 3600]], [[67, 9, 0], [90, 0, 9]]]
)
@pytest.mark.parametrize("ending", ["tck", "trk"])
def test_outlines_that_are_not_of_the_file(ending: str, outline: Any, tmp_path: Path) -> None:
    source = source_of(ending, tmp_path)
    plan = zardine.vectors.plan_import(source, str(tmp_path / "a.zv"), **OPTIONS)
    wrong = Plan(replace(plan.work, outline=outline, count=1))  # type: ignore[arg-type]
    with pytest.raises(zardine.errors.JobsFailedError, match="plan the import anew"):
        wrong.run()


@pytest.mark.parametrize("ending", ["geojson", "gpkg", "shp"])
def test_files_that_are_one_part(ending: str, tmp_path: Path) -> None:
    """With text, and with what belongs to the file."""
    source, path = tmp_path / f"in.{ending}", tmp_path / "a.zv"
    rng, count = np.random.default_rng(3), 300
    lines = [shapely.LineString(rng.uniform(0, 900, (length, 2))) for length in rng.integers(2, 9, count)]
    geopandas.GeoDataFrame({"t": [f"{n % 7}" for n in range(count)]}, geometry=lines, crs=25832).to_file(source)
    plan = zardine.vectors.plan_import(source, str(path), **OPTIONS)
    assert len(plan) == 1
    plan.save(tmp_path / "plan.json")
    plan = Plan.load(tmp_path / "plan.json")
    plan.run(finish=False)
    if ending == "shp":
        about = source.with_suffix(".dbf").stat()
        os.utime(source.with_suffix(".dbf"), ns=(about.st_atime_ns, about.st_mtime_ns + 1))
        with pytest.raises(PlanError, match="has changed"):
            plan.run()
        os.utime(source.with_suffix(".dbf"), ns=(about.st_atime_ns, about.st_mtime_ns))
    assert plan.run()
    assert stored(LocalStore(str(path))) == at_once(source)
    assert set(vectors.read_polylines(str(path)).object_attributes["t"].tolist()) == set("0123456")


def test_links_in_folders(tmp_path: Path) -> None:
    """One that leads round in a circle, and one to nothing."""
    folder = swc(tmp_path / "cells", 5)
    (folder / "again").symlink_to(folder)
    (folder / "nothing.swc").symlink_to(folder / "none")
    zardine.vectors.plan_import(folder, str(tmp_path / "a.zv"), **OPTIONS).run()
    assert len(vectors.read_objects(str(tmp_path / "a.zv")).ids) == 5


def test_folders_that_change_meanwhile(tmp_path: Path) -> None:
    folder = swc(tmp_path / "cells", 12)
    plan = in_parts(zardine.vectors.plan_import(folder, str(tmp_path / "a.zv"), **OPTIONS), 200)
    plan.begin()
    plan.job(0)()
    (folder / "neuron 99.swc").write_text("1 0 0 0 0 1 -1")
    with pytest.raises(PlanError, match="cells has changed since its import was planned"):
        plan.run()


def test_what_plans_cannot_be_of(tmp_path: Path) -> None:
    source, packed = las(tmp_path / "in.las", 30), tmp_path / "packed.trx"
    whole = trx(tmp_path / "in.trx")
    with zipfile.ZipFile(whole) as old, zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as new:
        for each in old.infolist():
            new.writestr(each.filename, old.read(each))
    in_parts(zardine.vectors.plan_import(packed, str(tmp_path / "b.zv"), **OPTIONS)).run()
    assert stored(LocalStore(str(tmp_path / "b.zv"))) == at_once(packed) == at_once(whole)
    with pytest.raises(UnsupportedError, match="leave workers out"):
        import_vectors(source, MemoryStore(), workers=2)
    with pytest.raises(DataError, match="holds no document called info"):
        zardine.vectors.plan_import(tmp_path / "a.precomputed", str(tmp_path / "a.zv"))
    with pytest.raises(TypeError, match="object_ids"):
        zardine.vectors.plan_import(source, str(tmp_path / "a.zv"), object_ids=[1])
    with pytest.raises(DataError, match="no compressor"):
        zardine.vectors.plan_import(source, str(tmp_path / "a.zv"), compressor="nonsense")
    with pytest.raises(DataError, match="cannot be kept in a plan"):
        zardine.vectors.plan_import(source, str(tmp_path / "a.zv"), crs={"a": object()})
    assert not (tmp_path / "a.zv").exists()


def test_options_in_every_form(tmp_path: Path) -> None:
    source = las(tmp_path / "in.las", 300)
    options: dict[str, Any] = {
        "chunk_shape": np.array([100.0, 50, 25]),
        "shard_shape": (np.int64(2), 2, 4),
        "compressor": zardine.codecs.ZstdCodec(level=3),
        "bounds": np.array([[0, 0, 0], [2000, 2000, 2000]]),
        "crs": {"name": "mine"},
        "axes": ("a", "b", "c"),
        "dtype": np.dtype("f4"),
        "checksum": False,
    }
    plan = zardine.vectors.plan_import(source, str(tmp_path / "a.zv"), **options)
    plan.save(tmp_path / "plan.json")
    Plan.load(tmp_path / "plan.json").run()
    assert stored(LocalStore(str(tmp_path / "a.zv"))) == at_once(source, **options)
