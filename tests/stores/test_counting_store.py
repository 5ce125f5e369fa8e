"""What is counted; that it is what a server has in its log, see ``test_requests_on_servers``."""

from __future__ import annotations

import pickle
import threading

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
