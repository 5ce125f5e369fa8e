"""Shapes of shards against the size of the grid, arguments about layouts, and names of arrays and links."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from vectors.geometry_samples import links, rows, values
from zardine import vectors
from zardine.errors import DataError, SelectionError
from zardine.storage import MemoryStore, Store, WrapperStore
from zardine.vectors.format.layouts import ASKED

POINTS = np.random.default_rng(0).uniform(0, 80, (500, 3))


def shapes(store: Any) -> set[Any]:
    return {info["shard_shape"] for info in vectors.get_shard_info(store).values()}


def stored_bytes(store: Any) -> int:
    return sum(map(len, values(store).values()))


@pytest.mark.parametrize("asked", [9, 100, 1000, (8, 2**40, 10**30)])
def test_shards_are_cut_to_the_grid(asked: Any) -> None:
    store = MemoryStore()
    vectors.write_points(store, POINTS, chunk_shape=10, shard_shape=asked)
    assert shapes(store) == {(8, 8, 8)}
    assert stored_bytes(store) < 100_000
    assert vectors.shard_store(store, asked)["arrays_sharded"] == 0
    vectors.unshard_store(store)
    assert vectors.shard_store(store, asked)["arrays_sharded"] == 2
    assert shapes(store) == {(8, 8, 8)}
    assert rows(vectors.read_points(store).positions) == rows(POINTS)


def test_a_small_grid_does_not_keep_a_store_from_growing() -> None:
    store = MemoryStore()
    vectors.write_points(store, POINTS, chunk_shape=50, shard_shape=8)
    assert shapes(store) == {(8, 8, 8)}
    vectors.append_points(store, [[900, 900, 900]])
    assert len(vectors.read_points(store)) == 501


def test_a_grid_that_grows_by_much() -> None:
    store = MemoryStore()
    vectors.write_points(store, POINTS, chunk_shape=10, shard_shape=32)
    assert shapes(store) == {(8, 8, 8)}
    vectors.append_points(store, [[300.0, 300, 300]])
    assert shapes(store) == {(31, 31, 31)}
    assert vectors.shard_store(store, 32)["arrays_sharded"] == 0
    vectors.append_points(store, [[500.0, 300, 300]])
    assert shapes(store) == {(32, 31, 31)}
    assert len(vectors.read_points(store)) == 502
    assert ASKED in vectors_document(store)
    vectors.append_points(store, [[320.0, 320, 320]])
    assert ASKED not in vectors_document(store)  # nothing is cut any more
    assert shapes(store) == {(32, 32, 32)}


def vectors_document(store: Any, name: str = "0/vertices") -> dict[str, Any]:
    """The attributes of an array."""
    found: dict[str, Any] = json.loads(bytes(store.get(f"{name}/zarr.json")))["attributes"]
    return found


def test_appends_in_all_directions_keep_the_shape_that_was_asked_for() -> None:
    asked = (16, 4, 32)
    store = MemoryStore()
    vectors.write_points(store, POINTS, chunk_shape=10, shard_shape=asked, vertex_attributes={"a": POINTS[:, 0]})
    assert shapes(store) == {(8, 4, 8)}
    low, high = np.zeros(3, int), np.full(3, 8)
    extra = [[155, 5, 5], [5, 255, 5], [-205, 5, 5], [5, -15, 5], [5, 5, -95], [5, 5, 205], [-405, -405, -405]]
    for number, point in enumerate(extra):
        vectors.append_points(store, [point], vertex_attributes={"a": [number]})
        cell = np.floor(np.array(point) / 10).astype(int)
        low, high = np.minimum(low, cell), np.maximum(high, cell + 1)
        grid = json.loads(bytes(store.get("0/vertices/zarr.json")))["shape"]
        assert (np.array(grid) >= high - low).all()  # it has room before the first chunk
        assert shapes(store) == {tuple(min(each, size) for each, size in zip(asked, grid, strict=True))}
    assert shapes(store) == {asked}
    assert rows(vectors.read_points(store).positions) == rows([*POINTS, *extra])
    assert not [finding for finding in vectors.validate(store).findings if finding.severity == "error"]


@pytest.mark.parametrize("asked", [32, None, 4, (8, 8, 8)])
def test_conversions_change_what_appends_use(asked: Any) -> None:
    store = MemoryStore()
    vectors.write_points(store, POINTS, chunk_shape=10, shard_shape=20)
    assert vectors_document(store)[ASKED] == [20, 20, 20]
    vectors.reshard(store, asked)
    before = values(store)
    vectors.reshard(store, asked)
    assert values(store) == before
    assert (ASKED in vectors_document(store)) == (asked == 32)
    vectors.append_points(store, [[390, 390, 390]])
    assert shapes(store) == {32: {(32, 32, 32)}, None: {None}, 4: {(4, 4, 4)}, (8, 8, 8): {(8, 8, 8)}}[asked]
    assert len(vectors.read_points(store)) == 501


def test_edits_and_levels_use_the_shape_that_was_asked_for() -> None:
    store = MemoryStore()
    lines = [POINTS[:20], POINTS[20:60]]
    vectors.write_polylines(store, lines, chunk_shape=10, shard_shape=16)
    vectors.append_polylines(store, [[[5, 5, 5], [155, 155, 155]]])
    assert shapes(store) == {(16, 16, 16)}
    vectors.build_pyramid(store, factors=[(4, 1)])
    found = {name: info["shard_shape"] for name, info in vectors.get_shard_info(store).items() if name[0] == "1"}
    assert set(found.values()) <= {(8, 8, 8), (16, 16, 16)}
    vectors.append_polylines(store, [[[5, 5, 5], [-155, 5, 5]]])
    own = {name: info["shard_shape"] for name, info in vectors.get_shard_info(store).items() if name[0] == "0"}
    assert set(own.values()) == {(16, 16, 16)}
    assert len(vectors.read_polylines(store)) == 4


def test_shards_that_would_get_too_large_stay_as_they_are() -> None:
    store = MemoryStore()
    vectors.write_points(store, POINTS, chunk_shape=10, shard_shape=1000)
    vectors.append_points(store, [[3000, 3000, 3000]])
    assert shapes(store) == {(8, 8, 8)}
    assert ASKED not in vectors_document(store)
    vectors.append_points(store, [[3010, 3000, 3000]])
    assert len(vectors.read_points(store)) == 502


@pytest.mark.parametrize(
    "asked",
    [
        *(None, "888", 8, [], [20], [20, 20, 20, 20], [20, 20, "20"], [20, 20, 20.0], [0, 0, 0], [-1, 20, 20]),
        *([4, 20, 20], [True, True, True], {"a": 3}, [10**40, 20, 20]),
    ],
    ids=str,
)
def test_a_shape_in_the_document_that_does_not_fit_what_is_stored(asked: Any) -> None:
    store = MemoryStore()
    vectors.write_points(store, POINTS, chunk_shape=10, shard_shape=8)
    for name in ("vertices", "vertex_fragments"):
        document = json.loads(bytes(store.get(f"0/{name}/zarr.json") or b""))
        document["attributes"][ASKED] = asked
        store.set(f"0/{name}/zarr.json", json.dumps(document).encode())
    assert len(vectors.read_points(store)) == 500
    vectors.append_points(store, [[155, 155, 155]])
    assert shapes(store) == {(16, 16, 16) if asked == [10**40, 20, 20] else (8, 8, 8)}
    assert len(vectors.read_points(store)) == 501


def test_counts_and_bytes() -> None:
    store = MemoryStore()
    vectors.write_points(store, POINTS, chunk_shape=10, shard_shape=4)
    for shape in (4, None):
        vectors.reshard(store, shape)
        info = vectors.get_shard_info(store, sizes=True)
        for name, each in info.items():
            stored = {key: value for key, value in values(store).items() if key.startswith(f"{name}/c/")}
            assert (each["objects"], each["nbytes"]) == (len(stored), sum(map(len, stored.values())))
            assert each["objects"] == (8 if shape else each["chunks"])
    assert "nbytes" not in vectors.get_shard_info(store)["0/vertices"]


def test_fragments_and_chunks_of_a_part() -> None:
    store = MemoryStore()
    vectors.write_points(store, POINTS, chunk_shape=20, bin_shape=10)
    box = [0, 0, 0, 19.5, 19.5, 39.5]
    assert vectors.list_chunks(store, bbox=box).tolist() == [[0, 0, 0], [0, 0, 1]]
    assert len(vectors.list_chunks(store)) == 64
    assert vectors.list_chunks(store, array="vertex_fragments").tolist() == vectors.list_chunks(store).tolist()
    assert vectors.chunk_exists(store, [0, 3, 3])
    assert not vectors.chunk_exists(store, [0, 3, 4])
    every, some = vectors.read_fragments(store), vectors.read_fragments(store, chunks=[[0, 0, 0], [3, 0, 0]])
    assert len(every.chunks) == 64 * 8
    assert some.chunks.tolist() == [[0, 0, 0]] * 8 + [[3, 0, 0]] * 8
    assert some.vertex_counts.sum() == len(vectors.read_points(store, chunks=[[0, 0, 0], [3, 0, 0]]))
    box = [0, 0, 0, 29, 29, 29]
    inside = np.floor(vectors.read_points(store, bbox=box).positions / 10)
    assert len(vectors.read_fragments(store, bbox=box).chunks) == len(np.unique(inside, axis=0)) > 1
    with pytest.raises(SelectionError, match="has no 'typo' of cells"):
        vectors.list_chunks(store, array="typo")
    with pytest.raises(SelectionError, match="rows of 3 integers"):
        vectors.chunk_exists(store, [0, 3])


class Written(WrapperStore):
    """Counts how often each key is written."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.counts: Counter[str] = Counter()

    def set(self, key: str, value: Any, *, condition: Any = None) -> Any:
        self.counts[key] += 1
        return super().set(key, value, condition=condition)


def test_each_of_the_many_objects_is_written_once() -> None:
    store = Written(MemoryStore())
    vectors.write_points(store, POINTS, chunk_shape=10, shard_shape=4)
    before = values(store)
    store.counts.clear()
    vectors.unshard_store(store)
    cells = {key: count for key, count in store.counts.items() if "/c/" in key}
    assert set(cells.values()) == {1}
    assert len(cells) == sum(info["chunks"] for info in vectors.get_shard_info(store).values())
    assert sum(1 for key in store.counts if "/c." in key) == 2 * 8  # shards, a second time
    store.counts.clear()
    vectors.shard_store(store, 4)
    assert {key for key in store.counts if "/c/" in key} == {key for key in before if "/c/" in key}
    assert max(count for key, count in store.counts.items() if "/c" in key) == 1
    assert {key: value for key, value in values(store).items() if "/c/" in key} == {
        key: value for key, value in before.items() if "/c/" in key
    }


def test_files_get_second_names_and_lose_the_first(tmp_path: Path) -> None:
    vectors.write_points(str(tmp_path / "a.zv"), POINTS, chunk_shape=10)
    vectors.shard_store(str(tmp_path / "a.zv"), 4)
    shards = list((tmp_path / "a.zv/0/vertices").glob("c/*/*/*"))
    assert [each.stat().st_nlink for each in shards] == [1] * 8
    vectors.unshard_store(str(tmp_path / "a.zv"))
    assert rows(vectors.read_points(str(tmp_path / "a.zv")).positions) == rows(POINTS)


def test_absurd_shards_are_refused() -> None:
    store = MemoryStore()
    with pytest.raises(DataError, match="index of 16 bytes"):
        vectors.write_points(store, POINTS, chunk_shape=0.1, shard_shape=1000)
    assert list(store.list()) == []
    vectors.write_points(store, POINTS, chunk_shape=0.1)
    before = values(store)
    with pytest.raises(DataError, match="index of 16 bytes"):
        vectors.shard_store(store, 1000)
    assert values(store) == before


@pytest.mark.parametrize("arrays", ["vertice", ["vertices", "typo"], ["0/vertices"], [3]])
def test_arrays_that_are_not_there(arrays: Any) -> None:
    store = MemoryStore()
    vectors.write_points(store, POINTS, chunk_shape=10)
    before = values(store)
    for convert in (vectors.shard_store, vectors.unshard_store):
        with pytest.raises(DataError, match=r"has no array .*there are vertex_fragments, vertices"):
            convert(store, arrays=arrays)
    assert values(store) == before
    assert vectors.shard_store(store, 4, arrays="vertices")["arrays_sharded"] == 1
    assert vectors.get_shard_info(store)["0/vertex_fragments"]["shard_shape"] is None


@pytest.mark.parametrize(
    "codec_config",
    [3, 2.5, {"codecs": ["zstd"], "chunk_grid": 3}, {"codecs": ["zstd"], "chunk_grid": {"name": "regular"}}, [3], "no"],
)
def test_codec_config(codec_config: Any) -> None:
    store = MemoryStore()
    with pytest.raises(DataError):
        vectors.write_points(store, POINTS, codec_config=codec_config)
    assert list(store.list()) == []


def test_attributes_of_links_have_one_name_everywhere() -> None:
    edges, faces = np.array([[0, 1], [2, 1]]), np.array([[0, 1, 2], [2, 1, 3]])
    graph, mesh = MemoryStore(), MemoryStore()
    vectors.write_graph(graph, POINTS[:4], edges, chunk_shape=10, link_attributes={"w": [1, 2]})
    vectors.write_mesh(mesh, POINTS[:4], faces, chunk_shape=10, link_attributes={"w": [1, 2]})
    found = vectors.read_graph(graph)
    assert links(found.positions, found.edges, found.edge_attributes["w"]) == links(POINTS, edges, [1, 2])
    assert sorted(vectors.read_mesh(mesh).face_attributes["w"].tolist()) == [1, 2]
    with pytest.raises(DataError, match="edge_attributes"):
        vectors.write_graph(MemoryStore(), POINTS, edges, link_attributes={}, edge_attributes={})
    with pytest.raises(DataError, match="face_attributes"):
        vectors.write_mesh(MemoryStore(), POINTS, faces, link_attributes={}, face_attributes={})
