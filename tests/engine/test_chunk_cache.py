"""The optional cache of decoded chunks."""

import threading
from contextlib import suppress

import numpy as np
import pytest

import zardine
from engine.far_store import FarStore
from zardine.engine import freshness
from zardine.engine.array_config import parse_bytes
from zardine.engine.chunk_cache import ChunkCache
from zardine.storage import CountingStore, MemoryStore
from zardine.stores.base import FAR


@pytest.mark.parametrize("is_cheap", [True, False])
def test_second_reads_cost_only_a_look(monkeypatch, is_cheap):
    monkeypatch.setattr(MemoryStore, "has_cheap_looks", is_cheap)
    store = CountingStore(MemoryStore())
    truth = np.arange(64 * 64, dtype="u2").reshape(64, 64)
    zardine.create_array(store, data=truth, chunks=(8, 8), shards=(32, 32))
    array = zardine.open_array(store, config={"cache": "1 MiB"})
    assert (array[3:40, 5:50] == truth[3:40, 5:50]).all()
    store.reset()
    assert (array[3:40, 5:50] == truth[3:40, 5:50]).all()
    assert (store.counts.reads, store.counts.bytes_read) == (0 if is_cheap else 4, 0)  # where it is a request


def test_changes_by_others_are_seen():
    store = MemoryStore()
    writer = zardine.create_array(store, shape=(20,), dtype="i4", chunks=(5,), shards=(10,))
    reader = writer.with_config({"cache": 10**6})
    writer[...] = 1
    assert (reader[...] == 1).all()
    writer[3:12] = 2
    assert reader[...].tolist() == [1] * 3 + [2] * 9 + [1] * 8
    writer[...] = 0
    assert (reader[...] == 0).all()


@pytest.mark.parametrize("shards", [None, (10,)])
def test_changes_by_others_in_local_files_are_seen(tmp_path, shards):
    writer = zardine.create_array(tmp_path / "a", shape=(20,), dtype="i4", chunks=(5,), shards=shards, fill_value=0)
    reader = writer.with_config({"cache": 10**6})
    writer[...] = 1
    for value in range(2, 5):
        assert reader[7] == value - 1
        assert (reader[...] == value - 1).all()
        writer[6:13] = value
        assert reader[7] == value
        assert reader[...].tolist() == [value - 1] * 6 + [value] * 7 + [value - 1] * 7
        writer[...] = value
    for file in (tmp_path / "a" / "c").iterdir():
        file.unlink()
    assert reader[7] == 0
    assert (reader[...] == 0).all()


def test_kept_chunks_cannot_be_changed_through_results():
    array = zardine.create_array({}, data=np.arange(10), chunks=(5,), config={"cache": 1000})
    array[...][:] = -1
    assert array[...].tolist() == list(range(10))
    array[...][:] = -1
    assert array[...].tolist() == list(range(10))


def test_the_limit_holds():
    cache = ChunkCache(1000)
    for i in range(100):
        cache.put("k", i, "v", np.full(30, i, "u1"))
        assert cache.nbytes <= 1000
    assert cache.get("k", 0) is None
    assert cache.get("k", 99).chunk.tolist() == [99] * 30
    cache.put("k", 100, "v", np.zeros(2000, "u1"))
    assert cache.get("k", 100) is None
    cache.put("k", 99, "w", np.zeros(30, "u1"))
    assert cache.nbytes == 990
    assert cache.get("k", 99).version == "w"
    cache.drop("k", 99)
    assert cache.get("k", 99) is None


class Asked(FarStore):
    @property
    def cost(self):
        return FAR


@pytest.fixture
def far():
    """An array of 16 shards in a store where everything is a request, and the store."""
    inner = MemoryStore()
    truth = np.arange(1, 64 * 64 + 1, dtype="u2").reshape(64, 64)
    zardine.create_array(inner, data=truth, chunks=(4, 4), shards=(16, 16))
    store = CountingStore(Asked(inner))
    array = zardine.open_array(store, mode="r+", zarr_format=3, config={"cache": "1 MiB"})
    store.reset()
    return store, array, truth


def test_far_away_nothing_is_asked_for_but_the_version_of_what_is_kept(far, monkeypatch):
    monkeypatch.setattr(freshness, "LEASE", 600.0)  # however slow this machine is
    store, array, truth = far
    selections = [(5, 6), (slice(4, 8), slice(4, 8)), (slice(5, 7), slice(4, 8))]
    for number, chosen in enumerate(selections):
        assert (array[chosen] == truth[chosen]).all()
        counts = store.reset()
        assert counts.reads == 1  # the index, and with it the chunk, since the shard is small; then a look
        assert (counts.bytes_read > 0) == (number == 0)
    assert (array[::16, ::16] == truth[::16, ::16]).all()
    assert store.reset().reads == 16  # no chunk of them was kept
    assert (array[::16, ::16] == truth[::16, ::16]).all()
    counts = store.reset()
    assert (counts.reads, counts.bytes_read) == (16, 0)


def test_far_away_what_others_write_is_seen_and_costs_one_look_more(far, monkeypatch):
    monkeypatch.setattr(freshness, "LEASE", 600.0)
    store, array, truth = far
    assert array[5, 6] == truth[5, 6]
    other = zardine.open_array(store.store.store, mode="r+")
    other[4:6, 6] = [100, 200]
    store.reset()
    assert array[5, 6] == 200
    assert store.reset().reads == 3  # the version, the chunk by the index as it was, then the shard as it is
    assert array[4, 6] == 100
    assert store.reset().bytes_read == 0
    other[...] = 0
    assert (array[:8, :8] == 0).all()


def test_far_away_as_many_are_asked_for_at_a_time_as_without_a_cache(far, monkeypatch):
    _, array, truth = far
    meeting = threading.Barrier(16)

    def read(self, key, ranges=((0, None),)):
        if key != "zarr.json":
            with suppress(threading.BrokenBarrierError):
                meeting.wait(60)  # nobody is answered before all have asked
        return self.store.read(key, ranges)

    monkeypatch.setattr(Asked, "read", read, raising=False)
    with zardine.config.set({"threads": 2}):
        assert (array[::16, ::16] == truth[::16, ::16]).all()
    assert not meeting.broken


@pytest.mark.parametrize(
    ("text", "count"),
    [(None, 0), (7, 7), ("12", 12), ("1.5 KB", 1500), ("256 MiB", 2**28), ("2gib", 2**31), (" 3 B ", 3)],
)
def test_sizes_as_text(text, count):
    assert parse_bytes(text) == count


@pytest.mark.parametrize("text", ["", "MiB", "1 XB", "1..2 KB", "-1", -1])
def test_wrong_sizes(text):
    with pytest.raises(ValueError, match="number of bytes"):
        parse_bytes(text)
