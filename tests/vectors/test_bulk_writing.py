"""New stores whose cells the kernel makes files of: what is stored, with and without it, and when it fails."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zardine
from zardine import vectors
from zardine.errors import StoreError
from zardine.kernel import KERNEL
from zardine.storage import LocalStore, MemoryStore, StorePath
from zardine.stores.local import many_files
from zardine.vectors.content import plan

pytest.importorskip("zardine._kernel")

RANDOM = np.random.default_rng(8)
PLACES = RANDOM.uniform(-100, 300, (6000, 3)).astype("f4")
WALK = np.cumsum(RANDOM.normal(0, 2, (6000, 3)), axis=0)
EDGES = np.stack([np.arange(5999), np.arange(1, 6000)], axis=1)
FACES = RANDOM.integers(0, 6000, (2000, 3))
IDS = np.sort(RANDOM.integers(0, 90, 6000))
BIG = ">i2"


def write(folder: Path, **layout: Any) -> None:
    """Stores of every geometry."""
    plain: dict[str, Any] = {"chunk_shape": 60, **layout}
    columns = {"n": np.arange(18_000).reshape(-1, 3).astype(BIG), "text": np.array(["a", "b"] * 3000)}
    vectors.write_points(str(folder / "points"), PLACES, vertex_attributes=columns, **plain)
    vectors.write_points(str(folder / "bins"), PLACES, bin_shape=20, **plain)
    vectors.write_points(str(folder / "objects"), PLACES, object_ids=IDS, **plain)
    lines = np.split(WALK, [0, 7, 7, 8, 400, 3000, 6000])
    vectors.write_polylines(str(folder / "lines"), lines, vertex_attributes={"n": np.arange(6000)}, **plain)
    vectors.write_graph(str(folder / "graph"), WALK, EDGES, edge_attributes={"w": np.arange(5999)}, **plain)
    vectors.write_mesh(str(folder / "mesh"), PLACES, FACES, **plain)
    parents = np.where(np.arange(6000) % 50 == 0, -1, np.arange(6000) - 1)
    ids = np.arange(6000) // 50
    vectors.write_skeleton(str(folder / "skeleton"), WALK, parents, object_ids=ids, **plain)


def files(folder: Path) -> dict[str, bytes]:
    return {str(each.relative_to(folder)): each.read_bytes() for each in folder.rglob("*") if each.is_file()}


@pytest.mark.parametrize(
    "layout",
    [
        {},
        {"shard_shape": 4},
        {"shard_shape": 2, "checksum": False},
        {"compressor": "zstd"},
    ],
)
def test_files_are_those_without_the_kernel(layout: dict[str, Any], tmp_path: Path) -> None:
    write(tmp_path / "with", **layout)
    code = f"from vectors.test_bulk_writing import Path, write; write(Path('without'), **{layout})"
    environment = {**os.environ, "ZARDINE_KERNEL": "0", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=environment, check=True)
    found, wanted = files(tmp_path / "with"), files(tmp_path / "without")
    assert found.keys() == wanted.keys()
    assert [name for name in found if found[name] != wanted[name]] == []


def test_a_store_in_memory_has_the_same_values(tmp_path: Path) -> None:
    for layout in ({}, {"shard_shape": 4}):
        store, folder = MemoryStore(), tmp_path / str(len(layout))
        for place in (store, str(folder)):
            vectors.write_points(place, PLACES, chunk_shape=60, **layout)
        for name, value in files(folder).items():
            if name != "zarr.json":  # which says the name of the store
                assert store.get(name) == value, name


class Full:
    """A kernel that finds the disk full when it makes files of cells."""

    def __getattr__(self, name: str) -> Any:
        return getattr(KERNEL, name)

    def make_cell_files(self, *arguments: Any) -> list[tuple[bytes, int]]:
        return [(b"vertices/c/0/0/0", errno.ENOSPC)]


def test_nothing_is_left_where_files_cannot_be_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "points"
    with monkeypatch.context() as patch:
        patch.setattr(many_files, "KERNEL", Full())
        with pytest.raises(StoreError, match="No space left"):
            vectors.write_points(str(path), PLACES, chunk_shape=60)
    assert not any(each.is_file() for each in path.rglob("*"))
    vectors.write_points(str(path), PLACES, chunk_shape=60)
    assert len(vectors.read_points(str(path)).positions) == len(PLACES)


def test_links_that_lead_elsewhere_in_the_store_are_followed(tmp_path: Path) -> None:
    """Where the kernel does not make files, they are made one after the other."""
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    vectors.write_points(StorePath(LocalStore(tmp_path), "link/points"), PLACES, chunk_shape=60, shard_shape=4)
    assert len(vectors.read_points(str(tmp_path / "real" / "points")).positions) == len(PLACES)


@pytest.mark.parametrize(("rank", "period"), [(2, 25), (3, 33)])
def test_what_objects_are_made_of_is_sorted_by_places(rank: int, period: int, tmp_path: Path) -> None:
    path = tmp_path / "lines.zv"
    lines = np.split(WALK[:, :rank], np.arange(20, 6000, 20))
    vectors.write_polylines(str(path), lines, chunk_shape=30, object_attributes={"n": np.arange(300.0)})
    tables = {
        "object_index/manifests": ["vlen-bytes", "blosc", "crc32c"],
        "object_index/object_ids": ["bytes", "blosc", "crc32c"],
        "object_attributes/n": ["bytes", "zstd", "crc32c"],
    }
    for name, codecs in tables.items():
        found = zardine.open_array(path / "0" / name).metadata.codecs
        assert [each.name for each in found] == codecs
        blosc = [(each.configuration or {})["typesize"] for each in found if each.name == "blosc"]
        assert blosc in ([], [period if "manifests" in name else 8])
    assert (path / "0" / "object_index/object_ids/c/0").stat().st_size < 600
    read = vectors.read_polylines(str(path), object_ids=[7, 299])
    np.testing.assert_array_equal(read.positions, np.concatenate([lines[7], lines[299]]))


def test_objects_of_more_bytes_than_blosc_takes_are_compressed_by_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = np.split(WALK, np.arange(20, 6000, 20))
    for name, most in (("at most", 10_000), ("more", 1_000)):
        monkeypatch.setattr(plan, "_MOST_IN_STEP", most)
        path = tmp_path / f"{name}.zv"
        vectors.write_polylines(str(path), lines[:50], chunk_shape=30)
        codecs = zardine.open_array(path / "0/object_index/manifests").metadata.codecs
        assert [each.name for each in codecs][1] == {"at most": "blosc", "more": "zstd"}[name]
        vectors.append_polylines(str(path), lines[50:60])
        read = vectors.read_polylines(str(path), object_ids=[7, 55])
        np.testing.assert_array_equal(read.positions, np.concatenate([lines[7], lines[55]]))
