"""How many requests reading and writing cost."""

from threading import Barrier
from typing import Any

import numpy as np
import pytest

import zardine
from zardine.storage import CountingStore, MemoryStore

VALUES = np.arange(1, 65, dtype="i4").reshape(8, 8)


def made(**arguments: Any) -> tuple[CountingStore, zardine.Array]:
    """One shard of 4 by 4 inner chunks, opened afresh, all counts at zero."""
    store = CountingStore(MemoryStore())
    array = zardine.create_array(store, shape=(8, 8), dtype="i4", **{"chunks": (2, 2), "shards": (8, 8), **arguments})
    array[...] = VALUES
    opened = zardine.open_array(store)
    store.reset()
    return store, opened


LOCATIONS = pytest.mark.parametrize("location", ["start", "end"])


@LOCATIONS
def test_a_cold_inner_chunk_is_two_requests_a_warm_one_is_one(location: str) -> None:
    store, array = made(shards={"shape": (8, 8), "index_location": location})
    assert array[0, 0] == 1
    assert store.counts.keys == {"c/0/0": 2}
    size = (store.store.size("c/0/0") or 0) - (16 * 16 + 4)
    assert store.reset().bytes_read <= 16 * 16 + 4 + size // 8
    assert array[5, 5] == 46
    assert store.reset().requests == 1
    assert array.vindex[[0, 3], [0, 3]].tolist() == [1, 28]
    assert store.reset().requests == 1


@LOCATIONS
def test_a_whole_shard_is_one_request(location: str) -> None:
    store, array = made(shards={"shape": (8, 8), "index_location": location})
    assert (array[...] == VALUES).all()
    assert store.reset().requests == 1
    assert (array[...] == VALUES).all()
    assert store.reset().requests == 1


def test_a_mostly_wanted_shard_is_one_request() -> None:
    store, array = made()
    assert (array[:6] == VALUES[:6]).all()
    assert store.reset().requests == 1


def test_an_empty_inner_chunk_is_its_index_only() -> None:
    store, array = made()
    array[2:4, 2:4] = 0
    opened = zardine.open_array(store)
    store.reset()
    assert opened[2, 2] == 0
    counts = store.reset()
    assert (counts.reads, counts.ranges, counts.bytes_read) == (1, 1, 16 * 16 + 4)
    assert opened[3, 3] == 0  # known to be empty; only that the shard is still the same has to be asked
    counts = store.reset()
    assert (counts.requests, counts.bytes_read) == (1, 0)


def test_a_missing_shard_is_one_request() -> None:
    store = CountingStore(MemoryStore())
    array = zardine.create_array(store, shape=(8, 8), dtype="i4", chunks=(2, 2), shards=(4, 4), fill_value=9)
    store.reset()
    assert array[0, 0] == 9
    assert store.reset().requests == 1
    assert (array[...] == 9).all()
    assert store.reset().requests == 4


def test_chunks_without_shards_are_one_request_each() -> None:
    store, array = made(chunks=(4, 4), shards=None)
    assert array[0, 0] == 1
    assert store.reset().requests == 1
    assert (array[:, :4] == VALUES[:, :4]).all()
    assert store.reset().requests == 2


def test_writing_a_whole_shard_reads_nothing() -> None:
    store, array = made()
    array[...] = VALUES + 1
    assert (store.counts.reads, store.counts.writes) == (0, 1)


def test_writing_a_part_is_one_read_and_one_write() -> None:
    store, array = made()
    array[2:4, 2:4] = 5
    assert (store.counts.reads, store.counts.writes) == (1, 1)


def test_writing_only_fill_to_a_missing_shard_writes_nothing() -> None:
    store = CountingStore(MemoryStore())
    array = zardine.create_array(store, shape=(8, 8), dtype="i4", chunks=(2, 2), shards=(4, 4))
    store.reset()
    array[0, 0] = 0
    array[...] = 0
    assert store.counts.writes == 0
    assert array.nshards_initialized == 0


def test_an_all_empty_shard_is_erased() -> None:
    store, array = made()
    array[:6] = 0
    assert store.exists("c/0/0")
    array[6:, :] = 0
    assert not store.exists("c/0/0")
    assert (array[...] == 0).all()
    plain_store, plain = made(chunks=(4, 4), shards=None)
    plain[0:4, 0:4] = 0
    assert not plain_store.exists("c/0/0")
    assert plain_store.exists("c/0/1")


def test_empty_chunks_are_kept_where_that_is_wanted() -> None:
    store, array = made(config={"write_empty_chunks": True})
    array = array.with_config({"write_empty_chunks": True})
    array[...] = 0
    assert store.exists("c/0/0")
    assert array.nchunks_initialized == 16


def test_missing_chunks_can_be_an_error() -> None:
    _, array = made()
    array[2:4, 2:4] = 0
    strict = array.with_config({"read_missing_chunks": False})
    assert strict[0, 0] == 1
    with pytest.raises(zardine.errors.ChunkNotFoundError, match=r"\(1, 1\)"):
        strict[3, 3]
    array[...] = 0
    with pytest.raises(KeyError):
        strict[0, 0]


@pytest.mark.parametrize("limit", [0, 1])
def test_without_room_for_indexes_every_read_is_cold(limit: int) -> None:
    store, array = made()
    with zardine.config.set({"cache.shard_index_bytes": limit}):
        for _ in range(2):
            assert array[0, 0] == 1
            assert store.reset().requests == 2


def test_stored_chunks_are_counted_by_the_indexes_alone() -> None:
    store, array = made(shards=(4, 4))
    array[0:2, 0:2] = 0
    store.reset()
    assert array.nchunks_initialized == 15
    counts = store.reset()
    assert (counts.reads, counts.lists, counts.bytes_read) == (4, 1, 4 * (4 * 16 + 4))
    assert array.nshards_initialized == 4
    assert store.reset().reads == 0


def test_inner_chunks_beyond_the_array_are_not_counted() -> None:
    array = zardine.create_array(
        None, shape=(8, 8), dtype="i4", chunks=(2, 2), shards=(8, 8), config={"write_empty_chunks": True}
    )
    array[...] = VALUES
    array.resize((3, 3), erase=False)
    assert (array.nchunks, array.nchunks_initialized) == (4, 4)


def test_opening_is_one_request_and_creating_few() -> None:
    store = CountingStore(MemoryStore())
    zardine.create_array(store, name="a", shape=(4,), dtype="i4")
    store.reset()
    zardine.open_array(store, path="a")
    assert store.reset().requests == 1
    zardine.open_group(store)["a"]
    assert store.reset().requests == 2


@pytest.mark.parametrize("where", [(0, 0), (slice(0, 3), slice(0, 3))], ids=str)
def test_a_look_at_the_document_waits_for_no_other_request(where: Any) -> None:
    """Of an array that only consolidated metadata has told of, where each request takes long."""
    inner = MemoryStore()
    zardine.create_group(inner).create_array("a", data=VALUES, chunks=(2, 2), shards=(8, 8))
    zardine.consolidate_metadata(inner)
    meeting = Barrier(2)  # of the look and the first request for data: neither is answered before both are asked

    class Far(CountingStore):
        @property
        def has_cheap_looks(self) -> bool:
            return False

        def read(self, key: str, *ranges: Any) -> Any:
            if key == "a/c/0/0" and not self.counts.keys[key]:
                meeting.wait(60)
            return super().read(key, *ranges)

        def read_up_to(self, key: str, most: int) -> Any:
            if key == "a/zarr.json":
                meeting.wait(60)
            return super().read_up_to(key, most)

    store = Far(inner)
    array = zardine.open_group(store)["a"]
    assert np.array_equal(array[where], VALUES[where])
    assert store.counts.keys["a/zarr.json"] == 1
    assert store.counts.keys["a/c/0/0"] == 2
