"""Shapes of shards against the size of the grid, arguments about layouts, and names of arrays and links."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from vectors.geometry_samples import links, rows, values
from zardine import vectors
from zardine.errors import DataError
from zardine.storage import MemoryStore

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
    vectors.append_points(store, [[300.0, 300, 300]])
    assert vectors.shard_store(store, 32)["arrays_sharded"] == 2
    assert shapes(store) == {(31, 31, 31)}
    assert len(vectors.read_points(store)) == 501


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
