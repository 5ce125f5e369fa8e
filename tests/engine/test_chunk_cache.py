"""The optional cache of decoded chunks."""

import numpy as np
import pytest

import zardine
from zardine.engine.array_config import parse_bytes
from zardine.engine.chunk_cache import ChunkCache
from zardine.storage import CountingStore, MemoryStore


def test_second_reads_cost_only_the_version():
    store = CountingStore(MemoryStore())
    truth = np.arange(64 * 64, dtype="u2").reshape(64, 64)
    zardine.create_array(store, data=truth, chunks=(8, 8), shards=(32, 32))
    array = zardine.open_array(store, config={"cache": "1 MiB"})
    assert (array[3:40, 5:50] == truth[3:40, 5:50]).all()
    store.reset()
    assert (array[3:40, 5:50] == truth[3:40, 5:50]).all()
    assert (store.counts.reads, store.counts.bytes_read) == (4, 0)


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


def test_kept_chunks_cannot_be_changed_through_results():
    array = zardine.create_array({}, data=np.arange(10), chunks=(5,), config={"cache": 1000})
    array[...][:] = -1
    assert array[...].tolist() == list(range(10))
    array[...][:] = -1
    assert array[...].tolist() == list(range(10))


def test_the_limit_holds():
    cache = ChunkCache(1000)
    for i in range(100):
        cache.put(("k", i, "v"), np.full(30, i, "u1"))
        assert cache.nbytes <= 1000
    assert cache.get(("k", 0, "v")) is None
    assert cache.get(("k", 99, "v")).tolist() == [99] * 30
    cache.put(("k", 100, "v"), np.zeros(2000, "u1"))
    assert cache.get(("k", 100, "v")) is None
    cache.put(("k", 99, "v"), np.zeros(30, "u1"))
    assert cache.nbytes == 990


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
