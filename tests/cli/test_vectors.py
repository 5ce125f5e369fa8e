"""``zardine vectors``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from vectors.stores_of_all_kinds import WRITERS
from zardine import vectors


@pytest.fixture
def store(tmp_path: Path) -> str:
    path = str(tmp_path / "scan.zv")
    points = np.random.default_rng(0).uniform(0, 40, (100, 3)).astype("f4")
    vectors.write_points(path, points, chunk_shape=10, vertex_attributes={"intensity": points[:, 0]}, compressor="zstd")
    return path


def test_info(run: Any, store: str) -> None:
    shown = run("vectors", "info", store).stdout
    assert "100 vertices, float32" in shown
    assert "attributes of vertices: intensity" in shown
    facts = json.loads(run("vectors", "info", store, "--json").stdout)
    assert facts["levels"][0]["compressors"] == ["zstd", "crc32c"]


@pytest.mark.parametrize("kind", WRITERS)
def test_what_is_stored_of_every_geometry(tmp_path: Path, kind: str) -> None:
    store = str(tmp_path / "all.zv")
    WRITERS[kind](store, chunk_shape=20)
    stored = vectors.describe_store(store, sizes=True)["levels"][0]["stored"]
    if kind != "points":
        assert {"groups", "group_attributes/label", "object_index/manifests", "object_attributes/name"} <= set(stored)
    for name, each in stored.items():
        files = [file for file in Path(store, "0", name, "c").rglob("*") if file.is_file()]
        assert each == {"objects": len(files), "nbytes": sum(file.stat().st_size for file in files)}


def test_info_of_what_is_stored(run: Any, store: str) -> None:
    vectors.shard_store(store, 2)
    vectors.build_pyramid(store, factors=[(2, 1)])
    for level in (0, 1):
        stored = vectors.describe_store(store, sizes=True)["levels"][level]["stored"]
        assert {"vertices", "vertex_fragments"} <= set(stored)
        for name, each in stored.items():
            files = [file for file in Path(store, str(level), name, "c").rglob("*") if file.is_file()]
            assert each == {"objects": len(files), "nbytes": sum(file.stat().st_size for file in files)}
            line = f"{name}: {each['objects']} stored object{'s' * (len(files) != 1)}, bytes: {each['nbytes']:,}"
            assert line in run("vectors", "info", store, "--complete").stdout
    assert vectors.open(store).info(sizes=True) == vectors.describe_store(store, sizes=True)
    assert json.loads(run("vectors", "info", store, "--complete", "--json").stdout)["levels"][1]["stored"] == stored
    assert json.loads(run("info", store, "--complete", "--json").stdout)["vectors"]["levels"][1]["stored"] == stored
    assert "stored object" not in run("vectors", "info", store).stdout


def test_conversions_pyramid_and_validate(run: Any, store: str) -> None:
    assert "3 arrays converted" in run("vectors", "shard", store, "--shards", "2").stdout
    assert json.loads(run("vectors", "shard", store, "--shards", "2", "--json").stdout)["arrays"] == 0
    assert run("vectors", "reshard", store, "--shards", "4,2,1").exit_code == 0
    assert vectors.get_shard_info(store)["0/vertices"]["shard_shape"] == (4, 2, 1)
    assert run("vectors", "pyramid", store, "--levels", "2").stdout.startswith("Level 1: ")
    assert run("vectors", "validate", store).stdout.startswith("no faults: ")
    assert run("vectors", "unshard", store, "-q").stdout == ""
    assert run("vectors", "reshard", store, "--shards", "none").exit_code == 0
    assert not vectors.is_sharded(store)
    assert run("vectors", "repair", store).stdout == "Nothing to do\n"


def test_faults_and_wrong_usage(run: Any, store: str) -> None:
    for file in Path(store).glob("0/vertices/c/0/0/*"):
        file.unlink()
    result = run("vectors", "validate", store)
    assert result.exit_code == 1
    assert "lost" in result.stdout
    report = json.loads(run("vectors", "validate", store, "--json").stdout)
    assert not report["ok"]
    assert report["findings"][0]["severity"] == "error"
    assert run("vectors", "repair", store, "--drop-lost").exit_code == 0
    assert run("vectors", "shard", store, "--shards", "many").exit_code == 2
    assert run("vectors", "info", f"{store}/nothing").exit_code == 1


def test_shapes_of_shards_that_are_too_large(run: Any, store: str) -> None:
    assert run("vectors", "shard", store, "--shards", "1000").exit_code == 0
    assert vectors.get_shard_info(store)["0/vertices"]["shard_shape"] == (8, 8, 8)
    vectors.append_points(store, [[2000, 2000, 2000]])
    result = run("vectors", "shard", store, "--shards", "1000")
    assert result.exit_code == 1
    assert "index of 16 bytes" in result.stderr
    assert len(vectors.read_points(store)) == 101


def test_repair_says_what_becomes_of_lost_rows(run: Any) -> None:
    text = " ".join(run("vectors", "repair", "--help").stdout.split())
    assert "lost become fill values" in text
    assert "which may be 0" in text


def test_conversions_print_the_same_keys(run: Any, store: str) -> None:
    def done(*words: str) -> Any:
        return json.loads(run("vectors", *words, "--json").stdout)

    cells = done("shard", store)["cells"]
    assert cells > 3
    assert done("reshard", store, "--shards", "4,2,1") == {"arrays": 3, "cells": cells, "shard_shape": [4, 2, 1]}
    assert done("reshard", store, "--shards", "1") == {"arrays": 3, "cells": cells, "shard_shape": 1}
    assert done("reshard", store, "--shards", "none") == {"arrays": 0, "cells": 0, "shard_shape": None}
    assert done("unshard", store) == {"arrays": 0, "cells": 0, "shard_shape": None}


@pytest.mark.parametrize(
    "words",
    [
        *(("shard", "--shards", text) for text in ("0", "4,0,4", "-1", "", "4,", "many", "none", "nan", "1.5")),
        *(("reshard", "--shards", text) for text in ("0", "4,0,4", "many", "inf")),
        *(("pyramid", f"--{name}", text) for name in ("factor", "sparsity") for text in ("0", "0.5", "nan", "inf")),
        ("pyramid", "--levels", "0"),
    ],
)
def test_numbers_that_can_never_be_are_wrong_usage(run: Any, store: str, words: tuple[str, ...]) -> None:
    result = run("vectors", words[0], store, *words[1:])
    assert result.exit_code == 2
    assert "Invalid value for" in result.stderr


COMMANDS = [("info",), ("validate",), ("repair",), ("shard",), ("unshard",), ("reshard", "--shards", "4"), ("pyramid",)]


@pytest.mark.parametrize("command", COMMANDS)
def test_what_is_not_there_does_not_exist(run: Any, tmp_path: Path, command: tuple[str, ...]) -> None:
    path = str(tmp_path / "nothing")
    result = run("vectors", command[0], path, *command[1:])
    assert result.exit_code == 1
    assert result.stderr == f"Error: {path!r} does not exist\n"
    assert not (tmp_path / "nothing").exists()


@pytest.mark.parametrize("command", COMMANDS)
def test_storage_options(run: Any, store: str, command: tuple[str, ...]) -> None:
    option = ("--storage-option", "auto_mkdir=true")
    result = run("vectors", command[0], store, *command[1:], *option)
    assert result.exit_code == 2
    assert "storage_options ('auto_mkdir') have no meaning for" in result.stderr
    assert run("vectors", command[0], f"local://{store}", *command[1:], *option).exit_code == 0  # through fsspec


def test_info_shows_units_and_the_reference_system(run: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "scan.zv")
    points, axes = [[0, 0], [3, 4]], [{"name": "x", "unit": "metre"}, {"name": "y"}]
    wkt = 'PROJCRS["WGS 84 / UTM zone 33N", BASEGEOGCRS["WGS 84"]]'
    vectors.write_points(path, points, axes=axes, crs={"wkt": wkt})
    shown = run("vectors", "info", path).stdout
    assert "x 0 to 3 metre, y 0 to 4\n" in shown
    assert "Reference  WGS 84 / UTM zone 33N\n" in shown
    assert json.loads(run("vectors", "info", path, "--json").stdout)["crs"] == {"wkt": wkt}
    for crs, text in (({"epsg": 4326}, '{"epsg": 4326}'), ({"wkt": "local\n"}, "local\\n")):
        vectors.write_points(path, points, crs=crs, overwrite=True)
        assert f"Reference  {text}\n" in run("vectors", "info", path).stdout
    vectors.write_points(path, points, overwrite=True)
    assert "Reference" not in run("vectors", "info", path).stdout
    assert json.loads(run("vectors", "info", path, "--json").stdout)["crs"] is None


def files_of(store: str) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in Path(store).rglob("*") if path.is_file()}


def test_repair_reports_what_it_leaves(run: Any, store: str) -> None:
    cell = next(Path(store).glob("0/vertices/c/*/*/*"))
    damaged = bytearray(cell.read_bytes())
    damaged[-1] ^= 1
    cell.write_bytes(bytes(damaged))
    for words in ((), ("--dry-run",), ("-q",)):
        result = run("vectors", "repair", store, *words)
        assert result.exit_code == 1
        assert "0/vertices" in result.stdout
        assert "Nothing to do" not in result.stdout
        assert ("fault left" in result.stdout) == ("-q" not in words)
    told = json.loads(run("vectors", "repair", store, "--json").stdout)
    assert [each["severity"] for each in told["left"]] == ["error"] * len(told["left"]) != []


def test_a_dry_run_tells_what_would_be_done_and_changes_nothing(run: Any, store: str) -> None:
    document = Path(store) / "0/vertices/zarr.json"
    damaged = json.loads(document.read_text())
    damaged["attributes"]["nonempty_chunks"].pop()
    document.write_text(json.dumps(damaged))
    for file in Path(store).glob("0/vertex_attributes/intensity/c/0/0/*"):
        file.unlink()
    before = files_of(store)
    dry = {words: run("vectors", "repair", store, "--dry-run", *words) for words in ((), ("--drop-lost",))}
    assert files_of(store) == before
    told = [line for line in dry[()].stdout.splitlines() if line.startswith("action ")]
    assert [f"action {each}" for each in vectors.repair(store, dry_run=True).actions] == told != []
    assert files_of(store) == before
    assert "to do" in dry[()].stdout
    assert dry[()].exit_code == 1
    assert dry["--drop-lost",].exit_code == 0
    done = run("vectors", "repair", store, "--drop-lost")
    assert done.stdout == dry["--drop-lost",].stdout.replace("to do", "done")
    assert done.exit_code == 0
    assert files_of(store) != before
    assert vectors.validate(store).ok
    seen: list[tuple[int, int]] = []
    vectors.repair(store, progress=lambda done, of: seen.append((done, of)))
    assert seen == [(0, 1), (1, 1)]


@pytest.mark.parametrize("command", ["validate", "repair"])
def test_problems_of_a_document_are_told_on_one_line(tmp_path: Path, run: Any, command: str) -> None:
    vectors.write_points(tmp_path / "p.zv", np.random.default_rng(0).random((30, 3)), chunk_shape=1)
    path = tmp_path / "p.zv/0/vertex_fragments/zarr.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "shape": "x", "codecs": []}))
    told = run("vectors", command, tmp_path / "p.zv").stdout
    assert 'is invalid: shape: expected an array of integers, found "x"; codecs: the list is empty' in told
    assert "\\n" not in told
