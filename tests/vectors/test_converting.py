"""``shard_store``, ``unshard_store``, ``reshard``: nothing but shards changes, and nothing is ever lost."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from effort import SOAK
from vectors.geometry_samples import Killed, MortalStore, copy_of, document, rows, set_document, values
from zardine import vectors
from zardine.errors import CorruptionError, DataError
from zardine.storage import CountingStore, MemoryStore

POINTS = np.random.default_rng(1).uniform(-30, 30, (200, 3))


def store_of_points(**options: Any) -> MemoryStore:
    store = MemoryStore()
    vectors.write_points(
        store, POINTS, chunk_shape=20, bin_shape=10, vertex_attributes={"n": np.arange(200)}, **options
    )
    return store


def check(store: Any) -> None:
    found = vectors.read_points(store)
    assert rows(found.positions, found.attributes["n"]) == rows(POINTS, np.arange(200))


def without_shards(store: MemoryStore) -> dict[str, Any]:
    """All documents, without what shards change."""
    found = {}
    for key, value in values(store).items():
        if key.endswith("zarr.json"):
            node = json.loads(value)
            node.pop("chunk_grid", None)
            node.pop("codecs", None)
            node["attributes"].pop("notes", None)
            found[key] = node
    return found


@pytest.mark.parametrize("compressor", [None, "zstd"])
def test_there_and_back_restores_every_byte(compressor: str | None) -> None:
    store = store_of_points(compressor=compressor)
    before = values(store)
    done = vectors.shard_store(store, shard_shape=8)
    cells = len({tuple(each) for each in np.floor(POINTS / 20).tolist()})
    assert done == {"arrays_sharded": 3, "chunks_packed": 3 * cells, "shard_shape": 8}
    assert vectors.is_sharded(store)
    codecs = [each["compressors"] for each in vectors.get_shard_info(store).values()]
    assert codecs == [[compressor, "crc32c"] if compressor else ["crc32c"]] * 3
    after = values(store)
    assert len(after) < 20
    assert "notes" in json.loads(after["zarr.json"])["attributes"]
    check(store)
    assert vectors.shard_store(store, shard_shape=8)["arrays_sharded"] == 0
    assert values(store) == after
    assert vectors.unshard_store(store) == {"arrays_unsharded": 3, "chunks_extracted": 3 * cells}
    assert values(store) == before
    assert vectors.unshard_store(store)["arrays_unsharded"] == 0


def test_documents_are_the_same_with_and_without_shards() -> None:
    flat, sharded = store_of_points(), store_of_points(shard_shape=(2, 4, 1))
    assert without_shards(flat) == without_shards(sharded)
    vectors.shard_store(flat, shard_shape=(2, 4, 1))
    assert without_shards(flat) == without_shards(sharded)


def test_calls_of_the_sharding_page(tmp_path: Path) -> None:
    path = str(tmp_path / "scan.zv")
    vectors.write_points(path, POINTS, chunk_shape=(20.0, 20.0, 20.0), bin_shape=(5.0, 5.0, 5.0), shard_shape=(4, 4, 4))
    assert document(path, "0/vertices")["chunk_grid"]["configuration"]["chunk_shape"] == [4, 4, 4]
    vectors.shard_store(path, shard_shape=8)
    vectors.shard_store(path, shard_shape=(4, 4, 16))
    vectors.reshard(path, 4)
    vectors.reshard(path, None)
    assert not vectors.is_sharded(path)
    vectors.shard_store(path, shard_shape=(1, 1, 1))
    assert not vectors.is_sharded(path)
    codecs = [{"name": "bytes"}, {"name": "blosc", "configuration": {"cname": "zstd", "clevel": 5}}]
    sharding = {"name": "sharding_indexed", "configuration": {"chunk_shape": [1, 1, 1, 65536, 3], "codecs": codecs}}
    vectors.write_points(
        path, POINTS, chunk_shape=20, shard_shape=4, codec_config={"codecs": [sharding]}, overwrite=True
    )
    assert {tuple(each["compressors"]) for each in vectors.get_shard_info(path).values()} == {("blosc",)}
    assert len(vectors.read_points(path)) == 200


@pytest.mark.parametrize("name", ["po", "g", "m", "ss", "sk", "pl", "l", "d2", "par"])
def test_every_kind_of_store(copy_of: Callable[[str], str], name: str) -> None:
    path = copy_of(name)
    before, links = vectors.read_points(path), _links(path)
    info = vectors.get_shard_info(path)
    vectors.shard_store(path, 3)
    assert all(each["shard_shape"] for each in vectors.get_shard_info(path).values())
    assert vectors.validate(path).ok
    vectors.unshard_store(path)
    assert rows(before.positions) == rows(vectors.read_points(path).positions)
    assert _links(path) == links
    assert vectors.get_shard_info(path).keys() == info.keys()


def _links(path: str) -> Any:
    kind = vectors.describe_store(path)["geometry_types"][0]
    if kind == "mesh":
        return vectors.read_mesh(path).faces.tolist()
    if kind in ("line", "polyline", "streamline"):
        return [line.tolist() for line in vectors.read_polylines(path).lines]
    return vectors.read_graph(path).edges.tolist()


@pytest.mark.parametrize("shape", [0, -1, (2, 2), "many", 1.5, True, (2, 0, 2)])
def test_shapes_that_are_none_change_nothing(shape: Any) -> None:
    store = store_of_points()
    before = values(store)
    with pytest.raises(DataError, match="shard_shape"):
        vectors.shard_store(store, shape)
    assert values(store) == before


@pytest.mark.parametrize(("first", "target"), [(None, 3), (3, None), (2, 3)])
def test_killed_anywhere_the_store_reads_complete(first: Any, target: Any) -> None:
    points = POINTS[:40, :2]
    whole = MemoryStore()
    vectors.write_points(whole, points, chunk_shape=30, vertex_attributes={"n": np.arange(40)}, shard_shape=first)
    changes, done = 0, False
    while not done:
        store = copy_of(whole)
        try:
            vectors.reshard(MortalStore(store, changes), target)
            done = True
        except Killed:
            pass
        left = copy_of(store)
        for each in (store, left):
            found = vectors.read_points(each)
            assert rows(found.positions, found.attributes["n"]) == rows(points, np.arange(40))
            assert vectors.validate(each).ok
            vectors.repair(each) if each is left else vectors.reshard(each, first if changes % 2 else target)
            found = vectors.read_points(each)
            assert rows(found.positions, found.attributes["n"]) == rows(points, np.arange(40))
            assert vectors.validate(each).findings == ()
        changes += 1 if SOAK else 5


def test_cells_that_no_list_names_are_kept(copy_of: Callable[[str], str]) -> None:
    path = copy_of("p1")
    for name in ("vertices", "vertex_fragments"):
        node = document(path, f"0/{name}")
        node["attributes"]["nonempty_chunks"] = node["attributes"]["nonempty_chunks"][:1]
        set_document(path, f"0/{name}", node)
    vectors.shard_store(path, 2)
    assert len(vectors.read_points(path)) == 8
    assert vectors.validate(path).ok


def test_sixty_cells_of_one_shard_cost_two_requests_an_array() -> None:
    counting = CountingStore(MemoryStore())
    grid = np.stack(np.meshgrid(*[np.arange(8)] * 3, indexing="ij"), axis=-1).reshape(-1, 3) * 10.0 + 5
    vectors.write_points(counting, grid, chunk_shape=10, shard_shape=8)
    counting.reset()
    found = vectors.read_points(counting, bbox=([0, 0, 0], [39, 49, 29]), attributes=None)
    assert len(found) == 60
    reads = [count for key, count in counting.counts.keys.items() if "/c/" in key]
    assert reads == [2]
    store = MemoryStore()
    vectors.write_points(store, grid, chunk_shape=10, shard_shape=8, object_ids=np.arange(512))
    counting = CountingStore(store)
    vectors.read_points(counting, bbox=([0, 0, 0], [39, 49, 29]), attributes=None)
    reads = {key: count for key, count in counting.counts.keys.items() if "vert" in key and "/c/" in key}
    assert reads == {"0/vertices/c/0/0/0": 2, "0/vertex_fragments/c/0/0/0": 2}


def test_a_listed_chunk_that_is_gone_is_an_error(tmp_path: Path) -> None:
    path = str(tmp_path / "a.zv")
    vectors.write_points(path, POINTS, chunk_shape=20)
    for file in (tmp_path / "a.zv/0/vertices/c/1/1").iterdir():
        file.unlink()
    with pytest.raises(CorruptionError, match=r"nothing is stored|lost"):
        vectors.read_points(path)
    assert "chunk-lost" in vectors.validate(path).codes


class Requests(MemoryStore):
    """Keeps the keys that were written and read."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[str] = []

    def set(self, key: str, *args: Any, **more: Any) -> Any:
        self.written.append(key)
        return super().set(key, *args, **more)


def test_of_many_cells_each_is_written_once() -> None:
    grid = np.stack(np.meshgrid(*[np.arange(8)] * 3, indexing="ij"), axis=-1).reshape(-1, 3) * 10.0 + 5
    store = Requests()
    vectors.write_points(store, grid, chunk_shape=10, shard_shape=4)
    store.written.clear()
    vectors.unshard_store(store)
    cells = [key for key in store.written if key.startswith("0/vertices/c")]
    assert len(cells) == 512 + 8
    store.written.clear()
    vectors.shard_store(store, 4)
    assert len([key for key in store.written if key.startswith("0/vertices/c")]) == 8 + 8
