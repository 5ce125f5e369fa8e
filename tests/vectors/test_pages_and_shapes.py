"""Imports of the pages of Zarr Vectors, shapes and boxes that are none, and what is said of shards."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import zardine
from vectors.geometry_samples import values
from zardine import vectors
from zardine.cli.commands import root
from zardine.codecs import ShardingCodec
from zardine.errors import DataError, SelectionError
from zardine.storage import MemoryStore

POINTS = np.random.default_rng(0).uniform(0, 40, (50, 3))
SHARDING: dict[str, Any] = {"name": "sharding_indexed", "configuration": {"codecs": [{"name": "bytes"}]}}


def test_the_imports_of_the_pages() -> None:
    from zardine.vectors.sharding import reshard, shard_store, unshard_store
    from zardine.vectors.types.points import read_points, write_points

    assert (write_points, read_points) == (vectors.write_points, vectors.read_points)
    assert (shard_store, unshard_store, reshard) == (vectors.shard_store, vectors.unshard_store, vectors.reshard)


@pytest.mark.parametrize(
    "given",
    [
        {"codecs": [SHARDING]},
        [SHARDING],
        SHARDING,
        "sharding_indexed",
        [ShardingCodec(chunk_shape=(1, 1, 1), codecs=())],
        {"codecs": [{"name": "sharding_indexed"}]},
    ],
)
def test_sharding_that_names_no_shard_is_not_written_flat(given: Any) -> None:
    store = MemoryStore()
    with pytest.raises(DataError, match="shard_shape"):
        vectors.write_points(store, POINTS, chunk_shape=10, codec_config=given)
    assert values(store) == {}
    vectors.write_points(store, POINTS, chunk_shape=10, codec_config=given, shard_shape=2)
    assert {each["shard_shape"] for each in vectors.get_shard_info(store).values()} == {(2, 2, 2)}


@pytest.mark.parametrize(
    "setting",
    [{"index_location": "start"}, {"index_codecs": [{"name": "bytes"}]}, {"index_codecs": ["bytes", "gzip"]}],
)
def test_settings_of_the_index_that_are_not_honoured(setting: dict[str, Any]) -> None:
    given = [{"name": "sharding_indexed", "configuration": {**SHARDING["configuration"], **setting}}]
    with pytest.raises(DataError, match=next(iter(setting))):
        vectors.write_points(MemoryStore(), POINTS, chunk_shape=10, codec_config=given, shard_shape=2)


@pytest.mark.parametrize("shape", [(2, 2, 2), (1, 1, 2), (1, 1), (10, 10, 10), (1.0, 1, 1), (True, 1, 1), 1, "111"])
def test_an_inner_chunk_that_is_not_one_cell(shape: Any) -> None:
    sharding = {"name": "sharding_indexed", "configuration": {"chunk_shape": shape, "codecs": []}}
    store = MemoryStore()
    with pytest.raises(DataError, match=r"inner chunk_shape .*\[1, 1, 1\]"):
        vectors.write_points(store, POINTS, chunk_shape=10, codec_config={"codecs": [sharding]}, shard_shape=2)
    assert values(store) == {}


NOTES: list[Any] = ["Points of March.", ["Points of March."], [], {"by": "me"}, 7]


@pytest.mark.parametrize("notes", NOTES)
def test_notes_of_a_store_say_whether_it_is_sharded(notes: Any) -> None:
    store = MemoryStore()
    vectors.write_points(store, POINTS, chunk_shape=10)
    zardine.open_group(store, mode="r+").attrs["notes"] = notes
    for _ in range(2):
        vectors.shard_store(store, 2)
        found = vectors.describe_store(store)["notes"]
        assert "sharding_indexed" in str(found)
        assert str(found).count("sharding_indexed") == 1
        assert str(notes).strip("[]{}") in str(found)
    vectors.unshard_store(store)
    assert vectors.describe_store(store)["notes"] == ([7] if notes == 7 else notes)


@pytest.mark.parametrize("shape", [b"444", bytearray(b"\4\4\4"), "444", True, (True, 2, 2), np.array([True] * 3)])
def test_what_is_no_shape(shape: Any) -> None:
    with pytest.raises(DataError, match="shard_shape"):
        vectors.write_points(MemoryStore(), POINTS, chunk_shape=10, shard_shape=shape)
    store = MemoryStore()
    vectors.write_points(store, POINTS, chunk_shape=10)
    with pytest.raises(DataError, match="shard_shape"):
        vectors.shard_store(store, shape)


@pytest.mark.parametrize("shape", [b"444", True, (True, 2, 2)])
def test_what_is_no_shape_of_a_chunk(shape: Any) -> None:
    for name in ("chunk_shape", "bin_shape"):
        with pytest.raises(DataError, match=name):
            vectors.write_points(MemoryStore(), POINTS, **{"chunk_shape": 10, name: shape})


def test_a_box_that_ends_before_it_begins() -> None:
    store = MemoryStore()
    vectors.write_points(store, POINTS, chunk_shape=10)
    with pytest.raises(SelectionError, match="before it begins on axis 1"):
        vectors.read_points(store, bbox=([0, 9, 0], [9, 0, 9]))
    assert len(vectors.read_points(store, bbox=([50, 50, 50], [50, 50, 50]))) == 0


def test_the_shards_of_every_array_are_told(tmp_path: Any) -> None:
    path = str(tmp_path / "a.zv")
    vectors.write_points(path, POINTS, chunk_shape=10, vertex_attributes={"n": np.arange(50)})
    vectors.shard_store(path, 2, arrays="vertex_attributes/n")
    shapes = {"vertices": None, "vertex_fragments": None, "vertex_attributes/n": [2, 2, 2]}
    assert vectors.describe_store(path)["levels"][0]["shard_shapes"] == shapes
    shown = CliRunner(env={"COLUMNS": "200"}).invoke(root, ["vectors", "info", path]).stdout
    assert "shards of other arrays: vertex_attributes/n 2 × 2 × 2" in shown
