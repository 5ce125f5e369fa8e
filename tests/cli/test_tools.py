"""The tools on the command line: mistyped paths, wrong arguments, and numbers of things in words."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zardine


@pytest.fixture
def path(tmp_path: Path) -> Path:
    array = zardine.create_array(tmp_path / "a.zarr", shape=(4, 4), chunks=(2, 2), shards=(4, 4), dtype="i4")
    array[...] = 7
    return tmp_path / "a.zarr"


COMMANDS: dict[str, tuple[str, ...]] = {
    "verify": (),
    "repair": (),
    "compact": (),
    "reshard": ("--shards", "none"),
    "advise": (),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_mistyped_paths(run: Any, tmp_path: Path, path: Path, command: str) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file.txt").write_text("x")
    zardine.create_group(tmp_path / "g.zarr")
    for words, said in {
        (tmp_path / "nothere.zarr",): f"Error: '{tmp_path}/nothere.zarr' does not exist\n",
        (tmp_path / "empty",): f"is stored at file://{tmp_path}/empty",
        (tmp_path / "file.txt",): f"Error: '{tmp_path}/file.txt' is a file: a store is a directory; give the path of "
        "a directory, or of a file that ends in .zip\n",
        (tmp_path / "g.zarr", "--path", "nope"): "g.zarr/nope",
    }.items():
        for more in ([], ["--json"]):
            result = run(command, *words, *COMMANDS[command], *more, columns=300)
            assert (result.exit_code, result.stdout) == (1, ""), words
            assert said in result.stderr, words
    assert sorted(file.name for file in tmp_path.iterdir()) == ["a.zarr", "empty", "file.txt", "g.zarr"]
    assert list((tmp_path / "empty").iterdir()) == []


def test_folders_in_which_there_is_nothing_to_compact(run: Any, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("notes")
    result = run("compact", tmp_path, columns=300)
    assert (result.exit_code, result.stdout) == (1, "")
    assert "no array or group is stored at" in result.stderr
    (tmp_path / "zarr.json").write_text('{"zarr_format": 3, "node_type": "array"}')
    result = run("compact", tmp_path, columns=300)
    assert result.exit_code == 1
    assert "fault zarr.json: document: " in result.stdout


def test_what_a_killed_first_write_left_is_still_removed(run: Any, tmp_path: Path) -> None:
    (tmp_path / ".zardine-1.tmp").write_bytes(b"half")
    assert run("repair", tmp_path).exit_code == 1
    result = run("repair", tmp_path, "--older-than", 0)
    assert (result.exit_code, list(tmp_path.iterdir())) == (0, [])
    assert "1 action done, 0 faults left" in result.stdout


def test_one_is_no_plural(run: Any, path: Path) -> None:
    assert run("verify", path).stdout.startswith("no faults: 1 node, 1 of 1 shard stored, 4 inner chunks, ")
    assert run("compact", path).stdout.endswith(" bytes won: 0 of 1 shard rewritten\n")
    (path / "notes.txt").write_text("")
    assert "1 fault: 1 node" in run("verify", path).stdout
    assert "0 actions done, 1 fault left" in run("repair", path).stdout
    assert "1 object\n" in run("advise", path).stdout


def test_what_is_advised_is_done(run: Any, path: Path, tmp_path: Path) -> None:
    proposed = json.loads(run("advise", path, "--access", "line:0", "--json").stdout)
    new = tmp_path / "advised.zarr"
    result = run("advise", path, "--access", "line:0", "--then", "rechunk", "--to", new)
    assert result.exit_code == 0, result.stderr
    assert result.stdout.splitlines()[-1].startswith("finished: ")
    made, array = zardine.open_array(new), zardine.open_array(path)
    assert [list(made.chunks), made.shards and list(made.shards)] == [proposed["chunks"], proposed["shards"]]
    assert np.array_equal(made[...], array[...])
    again = run("advise", path, "--then", "rechunk", "--to", new)
    assert again.exit_code != 0
    assert "already stored" in again.stderr
    shape = run("advise", "10,10", "f4", "--then", "rechunk", "--to", tmp_path / "c")
    assert "takes a stored array, not a shape" in shape.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("repair", "--older-than", "-5"), "older_than is a number of seconds, 0 or more, not -5.0"),
        (("repair", "--older-than", "nan"), "older_than is a number of seconds, 0 or more, not nan"),
        (("repair", "--older-than", "x"), "'x' is not a valid float"),
        (("compact", "--order", "x"), "order is 'c', 'f', 'morton' or None, not 'x'"),
        (("advise", "f4"), "a stored array has a dtype of its own: leave 'f4' out"),
        (("advise", "--ratio", "nan"), "ratio is stored bytes for each byte in memory, a number above 0, not nan"),
        (("advise", "--ratio", "-1"), "ratio is stored bytes for each byte in memory, a number above 0, not -1.0"),
        (("advise", "--ratio", "inf"), "not inf"),
        (("advise", "--ratio", "0"), "not 0.0"),
        (("advise", "--access", "point=inf"), "the weight of access 'point' is a number above 0, not inf"),
        (("advise", "--access", "point=nan"), "the weight of access 'point' is a number above 0, not nan"),
        (("advise", "--access", "point=-1"), "the weight of access 'point' is a number above 0, not -1.0"),
        (("advise", "--access", "point=x"), "--access 'point=x': 'x' is not a number"),
        (("advise", "--access", "point", "--access", "point=2"), "--access 'point' is given twice"),
        (("advise", "--access", "plane:7"), "access 'plane:7': the array has 2 axes, called 0 to 1"),
        (("advise", "--then", "rechunk"), "--then rechunk needs a place for the new array: --to PATH"),
        (("advise", "--to", "b.zarr"), "--to, --max-memory, --workers and --dask go with --then rechunk"),
        (("advise", "--store", "tape"), "store is 'local', 's3', a store or a ReadCost, not 'tape'"),
        (("verify", "--path", "../x"), "invalid node path '../x'"),
        (("verify", "--storage-option", "a=1"), "storage_options ('a') have no meaning for"),
    ],
    ids=str,
)
def test_wrong_arguments(run: Any, path: Path, words: tuple[str, ...], said: str) -> None:
    before = {file: file.read_bytes() for file in path.rglob("*") if file.is_file()}
    command, *rest = words
    start = time.monotonic()
    result = run(command, path, *rest, columns=300)
    assert (result.exit_code, result.stdout) == (2, ""), result.stderr
    assert said in result.stderr
    assert time.monotonic() - start < 20
    assert before == {file: file.read_bytes() for file in path.rglob("*") if file.is_file()}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("100,100", "f4", "--ratio", "nan"), "ratio is stored bytes"),
        (("100,100", "f4", "--access", "point=inf"), "the weight of access 'point'"),
        (("100,100",), "The shape 100,100 needs a DTYPE, too. A folder of that name is ./100,100."),
        (("100,100", "f4", "--path", "x"), "a shape has no node 'x' in it"),
        (("100,100", "nothing"), "nothing"),
        (("0,3", "f4"), "there is nothing to choose"),
        (("100,,100", "f4"), "'100,,100' is neither a shape, such as 10,10, nor a stored array"),
    ],
    ids=str,
)
def test_wrong_shapes_to_advise_on(run: Any, words: tuple[str, ...], said: str) -> None:
    result = run("advise", *words, columns=300)
    assert (result.exit_code, result.stdout) == (2, ""), result.stderr
    assert said in result.stderr


def test_a_folder_that_looks_like_a_shape(run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    zardine.create_array("2024", shape=(100, 100), dtype="f4", chunks=(10, 10))
    assert "as it is now" in run("advise", "./2024").stdout
    result = run("advise", "2024")
    assert result.exit_code == 2
    assert "./2024" in result.stderr
    assert "./2024" in run("advise", "--help").stdout


def test_numbers_that_overflow_end(run: Any) -> None:
    for more in (["--ratio", "1e308"], ["--ratio", "1e-320"], ["--access", "point=1e308", "--access", "all=1e308"]):
        assert run("advise", "1000,1000", "f8", *more).exit_code == 0
