"""``zardine vectors``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

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
    assert facts["levels"][0]["compressors"] == ["zstd"]


def test_conversions_pyramid_and_validate(run: Any, store: str) -> None:
    assert "3 arrays converted" in run("vectors", "shard", store, "--shape", "2").stdout
    assert json.loads(run("vectors", "shard", store, "--shape", "2", "--json").stdout)["arrays_sharded"] == 0
    assert run("vectors", "reshard", store, "4,2,1").exit_code == 0
    assert vectors.get_shard_info(store)["0/vertices"]["shard_shape"] == (4, 2, 1)
    assert run("vectors", "pyramid", store, "--levels", "2").stdout.startswith("Level 1: ")
    assert run("vectors", "validate", store).stdout == "0 errors, 0 warnings\n"
    assert run("vectors", "unshard", store, "-q").stdout == ""
    assert run("vectors", "reshard", store, "none").exit_code == 0
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
    assert run("vectors", "shard", store, "--shape", "0").exit_code == 1
    assert run("vectors", "shard", store, "--shape", "many").exit_code == 2
    assert run("vectors", "info", f"{store}/nothing").exit_code == 1


def test_shapes_of_shards_that_are_too_large(run: Any, store: str) -> None:
    assert run("vectors", "shard", store, "--shape", "1000").exit_code == 0
    assert vectors.get_shard_info(store)["0/vertices"]["shard_shape"] == (8, 8, 8)
    vectors.append_points(store, [[2000, 2000, 2000]])
    result = run("vectors", "shard", store, "--shape", "1000")
    assert result.exit_code == 1
    assert "index of 16 bytes" in result.stderr
    assert len(vectors.read_points(store)) == 101


def test_repair_says_what_becomes_of_lost_rows(run: Any) -> None:
    text = " ".join(run("vectors", "repair", "--help").stdout.split())
    assert "lost become fill values" in text
    assert "which may be 0" in text
