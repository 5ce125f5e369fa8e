"""Many cells at a time out of shards: the same as one by one, of the newest files, and never more trusting."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from zardine import vectors
from zardine.engine import read_elements
from zardine.errors import CorruptionError
from zardine.kernel import KERNEL
from zardine.storage import CountingStore, LocalStore
from zardine.vectors.reading import loading
from zardine.vectors.storing import cell_bytes, cells_together
from zardine.vectors.storing.cells import CellArray
from zardine.vectors.storing.cells_together import read_cells_together

LAYOUTS: dict[str, dict[str, Any]] = {
    "shards": {"shard_shape": 3},
    "shards, no checksums": {"shard_shape": (2, 3), "checksum": False},
    "shards, compressed": {"shard_shape": 3, "compressor": "zstd"},
    "no shards": {},
}


def write(path: Path, seed: int = 0, **layout: Any) -> None:
    positions = np.random.default_rng(seed).uniform(0, 100, (400, 2)).astype("f4")
    vectors.write_points(
        str(path), positions[(positions > 30).any(axis=1)], chunk_shape=10, bounds=((0, 0), (110, 110)), **layout
    )


def cells_of(path: Path) -> CellArray:
    found = CellArray.open(LocalStore(path), "0/vertices")
    assert found is not None
    return found


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_they_are_those_that_are_read_one_by_one(tmp_path: Path, layout: dict[str, Any]) -> None:
    write(tmp_path, **layout)
    array = cells_of(tmp_path)
    grid = np.indices((12, 12)).reshape(2, -1).T - 1  # some of them are off the grid, or have no cell
    for chunks in (grid, np.random.default_rng(0).permutation(grid), grid[20:21], grid[:0]):
        wanted = array.read(chunks)
        found = array.read_together(chunks)
        assert found.apart() == wanted
        assert found.filled().apart() == [cell for cell in wanted if cell]
    assert b"" in wanted or len(wanted) == 0


@pytest.mark.skipif(KERNEL is None, reason="without the kernel they are read one by one")
def test_only_plain_shards_are_read_together(tmp_path: Path) -> None:
    chunks = np.array([[7, 7], [3, 4]])
    for name, layout in LAYOUTS.items():
        write(tmp_path / name, **layout)
        found = read_cells_together(cells_of(tmp_path / name).array, chunks)
        assert (found is not None) == (name in ("shards", "shards, no checksums")), name


def test_files_that_were_exchanged_are_read_anew(tmp_path: Path) -> None:
    path, other = tmp_path / "a", tmp_path / "b"
    write(path, shard_shape=3)
    write(other, seed=1, shard_shape=3)
    chunks = np.indices((11, 11)).reshape(2, -1).T
    before, after = cells_of(path).read_together(chunks).apart(), cells_of(other).read_together(chunks).apart()
    held = cells_of(path)
    assert held.read_together(chunks).apart() == before != after
    shutil.rmtree(path / "0/vertices/c")
    shutil.copytree(other / "0/vertices/c", path / "0/vertices/c")
    assert cells_of(path).read_together(chunks).apart() == held.read_together(chunks).apart() == after


def test_damage_is_found_and_forgotten_when_it_is_mended(tmp_path: Path) -> None:
    write(tmp_path, shard_shape=3)
    chunks = np.indices((11, 11)).reshape(2, -1).T
    wanted = cells_of(tmp_path).read_together(chunks).apart()
    (shard,) = (tmp_path / "0/vertices/c/2").glob("2")
    good = shard.read_bytes()
    for at in (0, len(good) // 3, len(good) - 1):
        bad = bytearray(good)
        bad[at] ^= 1
        shard.write_bytes(bad)
        with pytest.raises(CorruptionError):
            cells_of(tmp_path).read_together(chunks)
        shard.write_bytes(good)
        assert cells_of(tmp_path).read_together(chunks).apart() == wanted


def test_indexes_are_read_once_by_all_who_open_an_array(tmp_path: Path) -> None:
    write(tmp_path, shard_shape=3)
    spaces = {cells_of(tmp_path).array._handle.cache_space for _ in range(3)}
    assert len(spaces) == 1
    vectors.reshard(str(tmp_path), 4)
    assert cells_of(tmp_path).array._handle.cache_space not in spaces


def test_who_appends_again_asks_for_the_cells_alone(tmp_path: Path) -> None:
    write(tmp_path, shard_shape=3)
    counts = []
    for number in range(4):
        counting = CountingStore(LocalStore(tmp_path))
        if number == 2:  # somebody whose index is another one has changed the same shard
            shard = tmp_path / "0/vertices/c/1/1"
            content = shard.read_bytes()
            shard.unlink()
            shard.write_bytes(content)
        vectors.append_points(counting, np.full((5, 2), 45.0, "f4"))
        counts.append(counting.counts)
    shards = [[each.keys[f"0/{name}/c/1/1"] for name in ("vertices", "vertex_fragments")] for each in counts]
    assert shards[1] == shards[3] == [2, 2]  # the cell, and the change
    assert counts[1].bytes_read < counts[0].bytes_read
    assert (vectors.read_points(str(tmp_path)).positions == 45).all(axis=1).sum() == 20
    assert vectors.validate(str(tmp_path)).ok


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_shards_are_the_same_without_the_kernel(
    tmp_path: Path, layout: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def files(path: Path) -> dict[str, bytes]:
        write(path, **layout)
        return {str(each.relative_to(path)): each.read_bytes() for each in path.rglob("*") if each.is_file()}

    wanted = files(tmp_path / "a" / "store")
    monkeypatch.setattr(cell_bytes, "_PACKED_AT_ONCE", 100)
    assert files(tmp_path / "b" / "store") == wanted
    monkeypatch.setattr(read_elements, "KERNEL", None)
    assert files(tmp_path / "c" / "store") == wanted


@pytest.mark.skipif(KERNEL is None, reason="without the kernel each array is read by itself")
def test_arrays_of_one_form_are_read_by_one_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = str(tmp_path)
    positions = np.random.default_rng(0).uniform(0, 100, (400, 2))
    columns = {"n": np.arange(400, dtype="u1"), "v": np.arange(800.0).reshape(400, 2)}
    vectors.write_points(path, positions, chunk_shape=10, shard_shape=4, vertex_attributes=columns)
    bbox = ([15, 15], [62, 71])
    calls: list[int] = []
    real = cells_together.join_elements

    def counted(*args: Any) -> Any:
        calls.append(len(args[3]))
        return real(*args)

    monkeypatch.setattr(cells_together, "join_elements", counted)
    together = vectors.read_points(path, bbox=bbox)
    assert calls == [3]
    monkeypatch.setattr(loading, "read_alike", lambda *_: None)
    apart = vectors.read_points(path, bbox=bbox)
    assert calls == [3, 1, 1, 1]
    assert together.positions.tolist() == apart.positions.tolist()
    for name in columns:
        assert together.attributes[name].tolist() == apart.attributes[name].tolist()


def test_what_one_of_them_lacks_is_told(tmp_path: Path) -> None:
    path = str(tmp_path)
    positions = np.random.default_rng(0).uniform(0, 100, (400, 2))
    columns = {"n": np.arange(400), "v": np.arange(400.0)}
    vectors.write_points(path, positions, chunk_shape=10, shard_shape=4, vertex_attributes=columns)
    whole = vectors.read_points(path, bbox=([0, 0], [35, 35]))
    for name in ("vertices", "vertex_attributes/n"):
        shard = tmp_path / "0" / name / "c/0/0"
        content = shard.read_bytes()
        for damaged in (content[:50] + b"?" + content[51:], content[:-1], None):
            shard.unlink()
            if damaged is not None:
                shard.write_bytes(damaged)
            with pytest.raises(CorruptionError, match=f"0/{name}"):
                vectors.read_points(path, bbox=([0, 0], [35, 35]))
            shard.write_bytes(content)
    assert vectors.read_points(path, bbox=([0, 0], [35, 35])).positions.tolist() == whole.positions.tolist()
