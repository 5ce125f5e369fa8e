"""``zardine rechunk`` and ``zardine jobs``, as users and batch systems run them."""

from __future__ import annotations

import json
import os
import shlex
import signal
from pathlib import Path

import laspy
import numpy as np
import pytest

import zardine
from cli.conftest import Run, Shell
from zardine import vectors
from zardine.cli.progress import Advance


@pytest.fixture
def planes(tmp_path: Path) -> Path:
    """An array of 24 planes."""
    array = zardine.create_array(tmp_path / "a.zarr", shape=(24, 32, 32), dtype="int32", chunks=(1, 32, 32))
    array[...] = np.arange(24 * 32 * 32).reshape(24, 32, 32)
    return tmp_path / "a.zarr"


def test_rechunk(run: Run, planes: Path, tmp_path: Path) -> None:
    words = ("rechunk", planes, tmp_path / "b.zarr", "--chunks", "24,4,4", "--shards", "24,16,16")
    done = run(*words, "--max-memory", "64 KiB")
    assert done.exit_code == 0, done.output
    assert done.output == "finished: read 3 of 3 jobs, write 4 of 4 jobs\n"
    made = zardine.open_array(tmp_path / "b.zarr")
    assert np.array_equal(made[...], zardine.open_array(planes)[...])
    again = run(*words)
    assert again.exit_code == 1
    assert "an array is already stored at" in again.output
    assert run("rechunk", planes, tmp_path / "c.zarr", "--chunks", "3", "--max-memory", "many").exit_code == 2
    assert run("rechunk", tmp_path / "none", tmp_path / "c.zarr", "--chunks", "3").exit_code == 1
    assert not (tmp_path / "c.zarr").exists()


@pytest.mark.parametrize("chunks", ["10,10", "1,2000", "auto"])
def test_rechunk_puts_small_chunks_into_shards(run: Run, tmp_path: Path, chunks: str) -> None:
    values = np.arange(240 * 2000, dtype="float64").reshape(240, 2000)
    zardine.create_array(tmp_path / "a.zarr", data=values, chunks=(240, 200))
    words = ("rechunk", tmp_path / "a.zarr", tmp_path / "b.zarr", "--chunks", chunks)
    done = run(*words)
    assert done.exit_code == 0, done.output
    made = zardine.open_array(tmp_path / "b.zarr")
    assert made.shards is not None
    assert made.shards != made.chunks
    assert f"shards {','.join(map(str, made.shards))} hold them; --shards none" in done.output
    assert np.array_equal(made[...], values)
    assert sum(path.is_file() for path in (tmp_path / "b.zarr").rglob("*")) == 2
    for more in (("--max-memory", "4 MB"), ("--json",), ("--quiet",)):
        place = tmp_path / f"c{len(more)}{more[0]}.zarr"
        result = run("rechunk", tmp_path / "a.zarr", place, *words[3:], *more)
        assert result.exit_code == 0, result.output
        assert ("hold them" in result.output) == (more[0] == "--max-memory")
        assert zardine.open_array(place).shards is not None
    plan = run("jobs", "plan", *words[:2], tmp_path / "p.zarr", *words[3:], "--out", tmp_path / "plan.json")
    assert "1 objects written" in plan.output


def test_rechunk_leaves_other_chunks_without_shards(run: Run, tmp_path: Path) -> None:
    zardine.create_array(tmp_path / "a.zarr", data=np.ones((250, 2000)), chunks=(250, 200))
    for number, words in enumerate((("10,10", "--shards", "none"), ("250,500",), ("-1",))):
        done = run("rechunk", tmp_path / "a.zarr", tmp_path / f"{number}.zarr", "--chunks", *words)
        assert done.exit_code == 0, done.output
        assert zardine.open_array(tmp_path / f"{number}.zarr").shards is None
        assert "shards" not in done.output
    for name, shape in (("empty", (0, 5)), ("one", ())):
        zardine.create_array(tmp_path / name, shape=shape, dtype="i4")
        done = run("rechunk", tmp_path / name, tmp_path / f"{name}.zarr", "--chunks", "1" if shape else "auto")
        assert done.exit_code == 0, done.output
        assert zardine.open_array(tmp_path / f"{name}.zarr").shards is None


def test_a_plan_is_run_in_parts_by_a_batch_system(shell: Shell, run: Run, planes: Path, tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    options = ("--chunks", "24,4,4", "--shards", "none", "--max-memory", "16 KiB", "--out", file)
    planned = run("jobs", "plan", "rechunk", planes, tmp_path / "b.zarr", *options, "--json")
    assert planned.exit_code == 0, planned.output
    assert [stage["jobs"] for stage in json.loads(planned.output)["stages"]] == [12, 16]
    assert run("jobs", "status", file).output.startswith("new: ")
    early = run("jobs", "run", file, "--stage", 2, "--part", "1/4")
    assert early.exit_code == 1
    assert "stage 2 has to wait for stage 1, of which 12 of 12 jobs are missing: 0 to 11" in early.output
    assert run("jobs", "run", file, "--part", "5/4").exit_code == 2
    assert run("jobs", "run", file, "--part", "a").exit_code == 2
    part = {"SLURM_ARRAY_TASK_ID": "1", "SLURM_ARRAY_TASK_MIN": "0", "SLURM_ARRAY_TASK_MAX": "2"}
    second = shell("jobs", "run", file, **part)
    assert second.stdout == "begun: read 4 of 12 jobs, write 0 of 16 jobs\n", second.stderr
    status = run("jobs", "status", file, "--json")
    assert status.exit_code == 1
    assert json.loads(status.output)["stages"][0]["missing"] == "0 to 3, 8 to 11"
    for part_of_stage in ("1/3", "3/3", "1/2", "2/2"):
        assert run("jobs", "run", file, "--part", part_of_stage).exit_code == 0
    assert json.loads(run("jobs", "status", file, "--json").output)["state"] == "complete"
    assert run("jobs", "finish", file).exit_code == 0
    assert run("jobs", "status", file).exit_code == 0
    assert np.array_equal(zardine.open_array(tmp_path / "b.zarr")[...], zardine.open_array(planes)[...])
    assert run("jobs", "cancel", file).exit_code == 1


@pytest.mark.parametrize("command", ["rechunk", "reshard", "verify", "jobs run", "convert"])
def test_an_interrupted_work_names_the_command_that_goes_on(
    run: Run, planes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    new, plan = tmp_path / "it's new.zarr", tmp_path / "plan.json"
    assert run("jobs", "plan", "rechunk", planes, new, "--chunks", "8,8,8", "--out", plan).exit_code == 0
    words = {
        "rechunk": ["rechunk", planes, new, "--chunks", "8,8,8"],
        "reshard": ["reshard", planes, "--shards", "8,32,32"],
        "verify": ["verify", planes, "--records", tmp_path / "records"],
        "jobs run": ["jobs", "run", plan],
        "convert": ["convert", planes, new],
    }[command]
    with monkeypatch.context() as interrupted:
        interrupted.setattr(Advance, "report", lambda *done: os.kill(os.getpid(), signal.SIGINT))
        result = run(*words)
        assert result.exit_code == 130, result.output
        assert f"To go on: {shlex.join(['zardine', *map(str, words)])}\nInterrupted\n" in result.stderr
        secret = run(*words, "--storage-option", "key=secret")
        assert "secret" not in secret.stderr
    result = run(*words)
    assert result.exit_code == 0, result.output


def test_only_what_goes_on_is_said_to(run: Run, planes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Advance, "report", lambda *done: os.kill(os.getpid(), signal.SIGINT))
    result = run("verify", planes)
    assert (result.exit_code, result.stderr) == (130, "Interrupted\n")


def test_a_plan_is_cancelled(run: Run, planes: Path, tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    options = ("--chunks", "24,4,4", "--max-memory", "16 KiB", "--out", file, "--quiet")
    assert run("jobs", "plan", "rechunk", planes, tmp_path / "b.zarr", *options).output == ""
    early = run("jobs", "finish", file)
    assert early.exit_code == 1
    assert "it is not begun" in early.output
    assert run("jobs", "run", file, "--part", "1/2", "--quiet").output == ""
    assert run("jobs", "cancel", file).exit_code == 0
    assert run("jobs", "finish", file).exit_code == 1
    assert [path for path in (tmp_path / "b.zarr").rglob("*") if path.is_file()] == []
    assert run("jobs", "status", file).output.startswith("new: ")
    assert run("jobs", "run", file, "--workers", 2).exit_code == 0
    (tmp_path / "not.json").write_text("{}")
    assert "is no plan" in run("jobs", "status", tmp_path / "not.json").output


@pytest.mark.parametrize("what", ["convert", "reshard", "verify"])
def test_plans_of_other_works(run: Run, planes: Path, tmp_path: Path, what: str) -> None:
    file, made = tmp_path / "plan.json", tmp_path / "b.zarr"
    words: tuple[object, ...] = (planes,)
    if what == "convert":
        words = (planes, made, "--shards", "4,32,32", "--verify")
    elif what == "reshard":
        words = (planes, "--shards", "4,32,32", "--to", made)
    planned = run("jobs", "plan", what, *words, "--out", file)
    assert planned.exit_code == 0, planned.output
    assert planned.output.startswith(f"{what} file://")
    again = run("jobs", "plan", what, *words, "--out", file)
    assert again.exit_code == 2
    assert "is there already, and may be the plan of jobs that run" in again.output
    if what == "convert":  # what is there is erased once the plan can be written, not before
        made.mkdir()
        (made / "old").touch()
        assert run("jobs", "plan", what, *words, "--overwrite", "--out", file).exit_code == 2
        assert (made / "old").exists()
        file.unlink()
        assert run("jobs", "plan", what, *words, "--overwrite", "--out", file).exit_code == 0
        assert not (made / "old").exists()
    count = len(json.loads(run("jobs", "status", file, "--json").output)["stages"])
    for stage in range(1, count + 1):
        for part in ("1/2", "2/2"):
            done = run("jobs", "run", file, "--stage", stage, "--part", part)
            assert done.exit_code == 0, done.output
    finished = run("jobs", "finish", file)
    assert finished.exit_code == 0, finished.output
    if what == "verify":
        assert finished.output.startswith("no faults: 1 node, 24 of 24 chunks stored, ")
        report = json.loads(run("jobs", "finish", file, "--json").output)
        assert (report["state"], report["report"]["chunks"]) == ("finished", 24)
    else:
        assert finished.output.startswith("finished: ")
        assert zardine.open_array(made).shards == (4, 32, 32)
        assert np.array_equal(zardine.open_array(made)[...], zardine.open_array(planes)[...])


def test_workers_of_other_works(run: Run, planes: Path, tmp_path: Path) -> None:
    """Faults are found in other processes, and arrays made."""
    assert run("convert", planes, tmp_path / "b.zarr", "--shards", "4,32,32", "--workers", 2).exit_code == 0
    assert run("reshard", tmp_path / "b.zarr", "--shards", "8,32,32", "--workers", 2).exit_code == 0
    data = bytearray((tmp_path / "b.zarr/1/0/0").read_bytes())
    data[100] ^= 1
    (tmp_path / "b.zarr/1/0/0").write_bytes(data)
    found = run("verify", tmp_path / "b.zarr", "--workers", 2)
    assert found.exit_code == 1
    assert "1 fault: 1 node, 3 of 3 shards stored, 24 inner chunks, " in found.output


def test_an_unfinished_rechunk_is_called_so(run: Run, planes: Path, tmp_path: Path) -> None:
    zardine.plan_rechunk(planes, tmp_path / "b.zarr", chunks=(24, 4, 4), max_memory="16 KiB").begin()
    for words in (("info", tmp_path / "b.zarr"), ("rechunk", planes, tmp_path / "b.zarr", "--chunks", "3")):
        told = run(*words)
        assert told.exit_code == 1
        assert "rechunking" in told.output
        assert "conversion to" not in told.output


def test_the_plan_of_an_export(run: Run, tmp_path: Path) -> None:
    path, folder, file = tmp_path / "a.zv", f"{tmp_path / 'parts'}/", tmp_path / "plan.json"
    vectors.write_points(path, np.arange(3000.0).reshape(1000, 3), chunk_shape=200)
    words = (path, folder, "--format", "laz", "--vertices-per-file", 300)
    planned = run("jobs", "plan", "export", *words, "--out", file, "--json")
    assert planned.exit_code == 0, planned.output
    stages = [(stage["name"], stage["jobs"]) for stage in json.loads(planned.output)["stages"]]
    assert stages == [("look", 1), ("write", 4)]
    assert run("jobs", "run", file, "--part", "1/1").output == "begun: look 1 of 1 jobs, write 0 of 4 jobs\n"
    assert run("jobs", "run", file).output == "finished: look 1 of 1 jobs, write 4 of 4 jobs\n"
    again = run("vectors", "export", *words)
    assert again.exit_code == 1
    assert "is not empty" in again.output
    assert run("vectors", "export", *words, "--overwrite", "--workers", 1, "--quiet").exit_code == 0
    assert run("vectors", "import", folder, tmp_path / "b.zv", "--chunks", 300).output.startswith("1,000 vertices")
    wrong = run("vectors", "export", path, tmp_path / "a.las", "--workers", 2)
    assert wrong.exit_code == 2
    assert "--workers is of folders that are written by jobs" in wrong.output


def test_the_plan_of_an_import(run: Run, tmp_path: Path) -> None:
    scan = laspy.LasData(laspy.LasHeader(point_format=3, version="1.2"))
    scan.xyz = np.arange(30.0).reshape(10, 3)
    scan.write(str(tmp_path / "a.las"))
    file, words = tmp_path / "plan.json", ("import", tmp_path / "a.las", tmp_path / "a.zarr", "--path", "x/points")
    planned = run("jobs", "plan", *words, "--compressor", "zstd", "--out", file, "--json")
    assert planned.exit_code == 0, planned.output
    assert [(stage["name"], stage["jobs"]) for stage in json.loads(planned.output)["stages"]] == [("read", 1)]
    assert run("jobs", "run", file, "--part", "1/1").output == "complete: read 1 of 1 jobs\n"
    assert not (tmp_path / "a.zarr" / "x" / "points" / "zarr.json").exists()
    assert run("jobs", "finish", file).output == "finished: read 1 of 1 jobs\n"
    found = vectors.read_points(tmp_path / "a.zarr" / "x" / "points")
    assert sorted(map(tuple, found.positions.tolist())) == [(i, i + 1, i + 2) for i in range(0, 30, 3)]
    again = run("jobs", "plan", *words, "--out", tmp_path / "other.json")
    assert again.exit_code == 1
    assert "is already stored at" in again.output
    for name, why in (("none.las", "does not exist"), ("a.xyz", "the ending is none of")):
        (tmp_path / "a.xyz").write_text("1 1 0")
        wrong = run("jobs", "plan", "import", tmp_path / name, tmp_path / "b.zv", "--out", tmp_path / "other.json")
        assert wrong.exit_code in (1, 2)
        assert why in wrong.output
    assert not (tmp_path / "other.json").exists()
    result = run("vectors", "import", tmp_path / "a.las", tmp_path / "b.zv", "--workers", 1)
    assert result.output == "10 vertices, 2 chunks\n"
