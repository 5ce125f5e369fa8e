"""The commands for arrays and groups, given a store of Zarr Vectors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zardine
from zardine import vectors


@pytest.fixture
def store(tmp_path: Path) -> str:
    path = str(tmp_path / "scan.zv")
    points = np.random.default_rng(0).uniform(0, 40, (100, 3)).astype("f4")
    columns = {"intensity": points[:, 0]}
    vectors.write_points(path, points, chunk_shape=10, vertex_attributes=columns, compressor="zstd", shard_shape=2)
    return path


def damaged(store: str) -> Path:
    """Cut the index off one shard of the vertices."""
    shard = next(Path(store).glob("0/vertices/c/*/*/*"))
    shard.write_bytes(shard.read_bytes()[:-3])
    return shard


def test_info(run: Any, store: str) -> None:
    result = run("info", store)
    assert result.exit_code == 0
    assert "100 vertices, float32" in result.stdout
    assert "attributes of vertices: intensity" in result.stdout
    assert result.stdout == run("vectors", "info", store).stdout
    facts = json.loads(run("info", store, "--json").stdout)
    assert facts["kind"] == "group"
    assert facts["vectors"] == json.loads(run("vectors", "info", store, "--json").stdout)
    whole = run("info", store, "--complete", "--attributes", "--requests").stdout
    assert "Objects stored" in whole
    assert "zarr_vectors" in whole
    assert "Requests" in whole
    assert "Arrays below" in run("info", store, "--path", "0").stdout  # a level is a group like any other


def test_info_where_the_document_is_damaged(run: Any, store: str) -> None:
    group = zardine.open_group(store)
    group.attrs["zarr_vectors"] = {**group.attrs["zarr_vectors"], "bounds": "none"}
    result = run("info", store)
    assert result.exit_code == 1
    assert "Arrays below" in result.stdout
    assert "cannot be told" in result.stderr


def test_tree(run: Any, store: str) -> None:
    vectors.build_pyramid(store)
    shown = run("tree", store).stdout
    assert "Zarr Vectors: point_cloud" in " ".join(shown.split())  # the path may be longer than a line
    assert any(line.endswith("0  100 vertices") for line in shown.splitlines())
    facts = json.loads(run("tree", store, "--json").stdout)
    assert facts["holds"] == "Zarr Vectors: point_cloud"
    zardine.open_group(store).attrs["zarr_vectors"] = {"geometry_types": 7}
    assert "Zarr Vectors: ?" in " ".join(run("tree", store).stdout.split())


def test_verify(run: Any, store: str) -> None:
    result = run("verify", store)
    assert result.exit_code == 0
    assert result.stdout.splitlines()[-1] == "vectors: no faults: 100 vertices, 1 level"
    assert "zardine.vectors.validate" in result.stdout
    assert run("verify", store, "-q").stdout == ""
    assert json.loads(run("verify", store, "--json").stdout)["vectors"]["vertex_counts"] == [100]
    assert "vectors: no faults" not in run("verify", store, "--no-deep").stdout
    next(Path(store).glob("0/vertices/c/*/*/*")).unlink()  # every chunk that is left is sound
    assert not zardine.verify(store).faults
    for words in ((), ("-q",), ("--json",)):
        result = run("verify", store, *words)
        assert result.exit_code == 1
        assert "lost" in result.stdout


def test_repair(run: Any, store: str) -> None:
    assert run("repair", store).stdout == "0 actions done, 0 faults left\n"
    damaged(store)
    before = {path: path.read_bytes() for path in Path(store).rglob("*") if path.is_file()}
    tried = run("repair", store, "--dry-run", "--drop-unreadable")
    assert tried.exit_code == 0
    assert "vertex_count is" in tried.stdout
    assert {path: path.read_bytes() for path in Path(store).rglob("*") if path.is_file()} == before
    assert run("repair", store).exit_code == 1
    document = json.loads(run("repair", store, "--json").stdout)
    assert [each["kind"] for each in document["left"]] == ["unreadable"]
    assert not document["vectors"]["ok"]
    assert run("repair", store, "--drop-unreadable", "--discard-damaged").exit_code == 0
    assert vectors.validate(store).ok
    assert run("verify", store).exit_code == 0
    assert 0 < len(vectors.read_points(store)) < 100


def test_reshard(run: Any, store: str) -> None:
    assert "3 arrays converted" in run("reshard", store, "--shards", "none").stdout
    assert not vectors.is_sharded(store)
    assert json.loads(run("reshard", store, "--shards", "auto", "--json").stdout)["shard_shape"] == 8
    assert run("reshard", store, "--shards", "2,2,4", "-q").stdout == ""
    assert vectors.get_shard_info(store)["0/vertices"]["shard_shape"] == (2, 2, 4)
    assert run("reshard", store).exit_code == 2
    for words in (
        ("--shards", "2", "--chunks", "4"),
        ("--shards", "2", "--to", "elsewhere"),
        ("--shards", "2", "--grace", "0"),
        ("--shards", "2", "--workers", "2"),
        ("--cancel",),
    ):
        result = run("reshard", store, *words)
        assert result.exit_code == 2
        assert "has no meaning for a store of Zarr Vectors" in result.stderr
    result = run("reshard", store, "--shards", "2,2")
    assert result.exit_code == 1
    assert "shard" in result.stderr


def test_a_store_within_another(run: Any, tmp_path: Path, store: str) -> None:
    zardine.create_group(tmp_path)
    inside = (str(tmp_path), "--path", "scan.zv")
    assert "100 vertices" in run("info", *inside).stdout
    assert "vectors: no faults" in run("verify", *inside).stdout
    assert "vectors: no faults" not in run("verify", str(tmp_path)).stdout
    assert "0 actions done" in run("repair", *inside).stdout
    assert "3 arrays converted" in run("reshard", *inside, "--shards", "none").stdout
    for words in (("info",), ("validate",), ("repair",), ("shard",), ("reshard", "--shards", "4"), ("pyramid",)):
        assert run("vectors", words[0], *inside, *words[1:]).exit_code == 0
    assert run("vectors", "info", str(tmp_path), "--path", "nothing").exit_code == 1


def test_other_places_are_as_they_were(run: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "a.zarr")
    zardine.create_array(path, shape=(4,), chunks=(2,), dtype="i1")
    assert "vectors" not in run("verify", path).stdout
    assert run("repair", path).exit_code == 0
    assert run("reshard", path, "--shards", "4").exit_code == 0
    for words in (("verify",), ("repair",), ("reshard", "--shards", "4"), ("info",)):
        result = run(words[0], str(tmp_path / "nothing"), *words[1:])
        assert result.exit_code == 1
        assert "does not exist" in result.stderr
