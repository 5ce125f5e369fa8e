"""What is counted; that it is what a server has in its log, see ``test_requests_on_servers``."""

from __future__ import annotations

import pickle
import threading

import numpy as np
import pytest

import zardine
from servers import servers
from zardine.storage import CachedStore, CountingStore, HTTPStore, LocalStore, MemoryStore, ObjectStore, PrefixStore


def test_operations_where_nothing_is_sent():
    store = CountingStore(MemoryStore())
    store.set("a", b"x")
    store.get("a")
    list(store.list())
    assert store.counts.sent is None
    assert store.counts.operations == store.counts.requests == 3


def test_requests_where_some_are():
    inner = ObjectStore(servers.package("obstore.store").MemoryStore())
    store = CountingStore(inner)
    store.set("a", bytes(100))
    store.reset()
    store.read("a", ((0, 1), (50, 1), (-1, None)))
    assert (store.counts.operations, store.counts.sent, store.counts.requests) == (1, 3, 3)
    first = store.reset()
    assert (first.sent, store.counts.sent) == (3, 0)
    store.get("a")
    assert (first.sent, store.counts.sent) == (3, 1)


def test_wrappers_on_the_way():
    inner = ObjectStore(servers.package("obstore.store").MemoryStore())
    inner.set("p/a", b"x")
    for between in (
        PrefixStore(inner, "p"),
        CachedStore(PrefixStore(inner, "p")),
        CountingStore(PrefixStore(inner, "p")),
    ):
        store = CountingStore(between)
        store.get("a")
        assert store.counts.sent == 1
        assert store.with_read_only(True).counts.sent == 1
    cached = CountingStore(CachedStore(PrefixStore(inner, "p"), immutable=True))
    cached.get("a")
    cached.get("a")
    assert (cached.counts.reads, cached.counts.sent) == (2, 1)


def test_many_threads():
    inner = ObjectStore(servers.package("obstore.store").MemoryStore())
    inner.set("a", b"x")
    store = CountingStore(inner)
    total = []

    def work():
        for _ in range(50):
            store.get("a")
            total.append(store.reset())

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    total.append(store.reset())
    assert sum(counts.sent for counts in total) == sum(counts.reads for counts in total) == 400


def test_copies_count_for_themselves(tmp_path):
    store = CountingStore(LocalStore(tmp_path))
    store.set("a", b"x")
    for copy in (pickle.loads(pickle.dumps(store)), pickle.loads(pickle.dumps(store.with_read_only(True)))):
        assert copy.get("a") == b"x"
        assert (copy.counts.reads, copy.counts.writes) == (1, 0)
    assert (store.counts.reads, store.counts.writes) == (0, 1)
    assert pickle.loads(pickle.dumps(store)) == store
    assert pickle.loads(pickle.dumps(CountingStore(MemoryStore()))).get("a") is None
    web = CountingStore(HTTPStore(servers.nginx().url))
    web.get("missing")
    copy = pickle.loads(pickle.dumps(web))
    copy.get("missing")
    copy.get("missing")
    assert (web.counts.sent, copy.counts.sent) == (1, 2)


@pytest.mark.parametrize("strategy", ["rewrite", "append", "in_place"])
def test_shards_that_are_changed_within_their_file(tmp_path, strategy):
    store = CountingStore(LocalStore(tmp_path))
    array = zardine.create_array(store, shape=(64, 64), dtype="i4", chunks=(8, 8), shards=(64, 64), compressors=None)
    array[...] = values = np.arange(64 * 64, dtype="i4").reshape(64, 64)
    size = (tmp_path / "c/0/0").stat().st_size
    store.reset()
    array.with_config({"write_strategy": strategy})[:8, :8] = values[:8, :8] = 5
    assert (store.counts.reads, store.counts.writes, store.counts.erases) == (1, 1, 0)
    assert store.counts.bytes_written == {"rewrite": size, "append": 260 + 64 * 16 + 4 + 4, "in_place": 260}[strategy]
    assert 64 * 16 + 4 <= store.counts.bytes_read < size
    np.testing.assert_array_equal(zardine.open_array(str(tmp_path))[...], values)
    known = zardine.open_array(store, mode="r+").with_config({"write_strategy": strategy})
    assert known[0, 0] == 5
    store.reset()
    known[:8, :8] = 6
    reads = int(strategy == "in_place")  # the bytes that are overwritten, so that an error can put them back
    assert (store.counts.reads, store.counts.writes) == (reads, 1)  # its index was read before
    store.reset()
    known[0, 0] = 7
    assert (store.counts.reads, store.counts.writes) == (1, 1)  # the rest of the chunk is read
    store.reset()
    with store.files.edit("c/0/0") as file:
        assert file.size > 0
    assert (store.counts.reads, store.counts.writes, store.counts.keys["c/0/0"]) == (1, 0, 1)


@pytest.mark.parametrize("wrap", [CountingStore, CachedStore, lambda store: CachedStore(store, immutable=True)])
def test_every_strategy_through_a_wrapper(tmp_path, wrap):
    for strategy in ("append", "in_place", "rewrite"):
        array = zardine.create_array(
            wrap(LocalStore(tmp_path / strategy)),
            shape=(64, 64),
            dtype="i4",
            chunks=(8, 8),
            shards=(32, 32),
            config={"write_strategy": strategy},
        )
        expected = np.zeros((64, 64), "i4")
        for i in range(0, 60, 7):
            array[i : i + 3, i : i + 9] = expected[i : i + 3, i : i + 9] = i
            np.testing.assert_array_equal(array[...], expected)
        assert zardine.verify(tmp_path / strategy)
