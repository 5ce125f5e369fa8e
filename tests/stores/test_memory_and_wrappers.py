"""MemoryStore over foreign mappings, and what wrappers add."""

from __future__ import annotations

import copy
import gc
import os
import pickle
import subprocess
import sys
import threading
from collections import UserDict

import numpy as np
import pytest

import zardine
from zardine.errors import ConditionFailedError, InvalidKeyError, ReadOnlyError, StoreError
from zardine.storage import (
    CachedStore,
    CountingStore,
    LocalStore,
    ManagedMemoryStore,
    MemoryStore,
    PrefixStore,
    WrapperStore,
)
from zardine.stores import memory
from zardine.stores.base import Condition


def test_a_mapping_is_used_live():
    values = {"a/b": b"x"}
    store = MemoryStore(values)
    assert store.get("a/b") == b"x"
    values["c"] = b"outside"
    assert list(store.list()) == ["a/b", "c"]
    version = store.version("c")
    assert store.version("c") == version
    values["c"] = b"changed"
    assert store.version("c") != version
    with pytest.raises(ConditionFailedError):
        store.set("c", b"mine", condition=Condition(version))
    del values["c"]
    assert store.get("c") is None
    store.set("d", bytearray(b"mine"))
    assert values["d"] == b"mine"
    assert type(values["d"]) is bytes


def test_foreign_values():
    mutable = bytearray(b"mutable")
    values = UserDict(
        {"array": np.arange(3, dtype="u2"), "mutable": mutable, "view": memoryview(b"view"), "": b"no key", "a//b": b""}
    )
    values[5] = b"no key"
    values["text"] = "no bytes"
    store = MemoryStore(values)
    assert store.get("array") == np.arange(3, dtype="u2").tobytes()
    assert store.size("array") == 6
    value = store.get("mutable")
    mutable[:] = b"resized, which an exported buffer would forbid"
    assert value == b"mutable"
    assert store.get("view") == b"view"
    with pytest.raises(StoreError, match="is a str"):
        store.get("text")
    assert list(store.list()) == ["array", "mutable", "text", "view"]


def test_buffers_of_zarr_python():
    zarr = pytest.importorskip("zarr")
    values = {}
    array = zarr.create_array(zarr.storage.MemoryStore(values), shape=(4,), dtype="i4", chunks=(2,))
    array[:] = 7
    store = MemoryStore(values)
    assert sorted(store.list()) == ["c/0", "c/1", "zarr.json"]
    assert bytes(store.get("zarr.json")).startswith(b"{")
    assert store.version("c/0") == store.version("c/0")
    assert bytes(store.read("zarr.json", ((0, 1),)).parts[0]) == b"{"


def test_whole_values_are_not_copied():
    value = bytes(1000)
    store = MemoryStore()
    store.set("k", value)
    assert store.get("k") is value
    assert store.read("k", ((10, 20),)).parts[0].obj is value


def test_stores_over_one_mapping():
    values = {}
    first, second = MemoryStore(values), MemoryStore(values)
    assert first == second
    assert hash(first) == hash(second)
    assert first != MemoryStore({})
    assert first != first.with_read_only(True)
    assert str(first) == f"memory://{id(values)}"
    version = first.set("k", b"x")
    assert second.version("k") == version
    twin = copy.deepcopy(first)
    twin.set("k", b"copy")
    assert first.get("k") == b"x"
    assert twin.version("k") != version
    assert list(twin.list()) == ["k"]


def test_named_stores():
    store = ManagedMemoryStore("a name")
    store.set("k", b"x")
    assert ManagedMemoryStore("a name") == store
    assert ManagedMemoryStore("a name", read_only=True).get("k") == b"x"
    assert str(store) == "memory://a name"
    twin = pickle.loads(pickle.dumps(store))
    assert (twin, twin.name, twin.get("k")) == (store, "a name", b"x")
    assert ManagedMemoryStore() != ManagedMemoryStore()
    for bad in ("", "a/b"):
        with pytest.raises(ValueError, match="name"):
            ManagedMemoryStore(bad)


def test_nothing_is_kept_of_stores_that_are_gone():
    values = {}
    MemoryStore(values).set("k", b"x")
    unnamed = ManagedMemoryStore()
    unnamed.set("k", b"x")
    name = unnamed.name
    del unnamed
    gc.collect()
    assert id(values) not in memory._backings
    assert name not in memory._named


def test_a_name_keeps_what_nobody_holds():
    zardine.create_array("memory://kept by its name", shape=(2,), dtype="i4")[...] = 5
    gc.collect()
    assert zardine.open("memory://kept by its name", mode="r")[...].tolist() == [5, 5]


def test_listing_many_keys():
    store = MemoryStore()
    for number in range(5000):
        store.set(f"g{number % 50:02}/a{number % 10}/c/{number}", b"")
    assert store.list_dir("") == ([], [f"g{number:02}/" for number in range(50)])
    assert len(store.list_dir("g03/a3/c/")[0]) == 100
    store.erase_prefix("g03/")
    assert len(list(store.list())) == 4900


def test_prefix_store():
    inner = MemoryStore()
    store = PrefixStore(inner, "a/b")
    store.set("c/d", b"x")
    assert list(inner.list()) == ["a/b/c/d"]
    assert store.prefix == "a/b/"
    assert str(store) == f"{inner}/a/b"
    assert PrefixStore(inner, "") != store
    assert PrefixStore(inner, "/a/b/") == store
    assert str(PrefixStore(inner, "")) == str(inner)
    store.erase_prefix("")
    assert list(inner.list()) == []
    with pytest.raises(InvalidKeyError):
        PrefixStore(inner, "..")


def test_wrappers_pass_on(tmp_path):
    inner = LocalStore(tmp_path)
    store = WrapperStore(PrefixStore(inner, "p"))
    version = store.set("k", b"x", condition=Condition(None))
    assert inner.version("p/k") == version
    with store.files.open("k") as file:
        assert os.path.samefile(f"/proc/self/fd/{file.fd}", tmp_path / "p" / "k")
    assert store.with_read_only(True).read_only
    assert not store.read_only
    assert WrapperStore(inner.with_read_only(True)).read_only
    assert WrapperStore(inner, read_only=True).read_only
    assert pickle.loads(pickle.dumps(store)) == store
    assert repr(store) == f"WrapperStore(PrefixStore({inner!r}, 'p/'))"
    closed = []
    inner.close = lambda: closed.append(True)
    with store:
        pass
    assert closed == [True]


@pytest.mark.parametrize("kind", [WrapperStore, CountingStore, CachedStore])
def test_what_a_store_tells_of_itself_comes_through_wrappers(kind, tmp_path):
    inner = LocalStore(tmp_path)
    inner.set("p/k", b"x")
    (tmp_path / "p" / "link").symlink_to(tmp_path / "nowhere")
    (tmp_path / "p" / ".zardine-1.tmp").write_bytes(b"half")
    store = kind(PrefixStore(inner, "p"))
    assert [name for name, _ in store.left_out()] == ["link"]
    assert [each.message for each in zardine.verify(store).faults if each.key == "link"] != []
    assert list(store.leftovers(0)) == [str(tmp_path / "p" / ".zardine-1.tmp")]
    with pytest.raises(ReadOnlyError):
        store.with_read_only(True).remove_leftovers(0)
    assert store.remove_leftovers(0) == 1
    assert list(inner.leftovers(0)) == []
    assert (store.meter, store.origin) == (None, None)
    inner.faults = lambda: iter(["torn"])
    assert list(store.faults()) == ["torn"]


def test_counting():
    store = CountingStore(MemoryStore())
    store.set("a", np.arange(4, dtype="u2"))
    store.set("b", b"x" * 100)
    counts = store.counts
    assert (counts.writes, counts.bytes_written, counts.reads) == (2, 108, 0)
    store.get("a")
    store.read("b", ((0, 10), (-5, None), (99, 10)))
    store.get("missing")
    store.get_partial_values([("a", (0, 1)), ("a", (1, 2)), ("missing", (0, None))])
    store.exists("a")
    assert (counts.reads, counts.ranges, counts.bytes_read) == (6, 8, 8 + 16 + 3)
    list(store.list())
    store.list_dir("")
    store.erase("a")
    store.erase_values(["b", "c"])
    store.erase_prefix("x/")
    assert (counts.lists, counts.erases, counts.requests) == (2, 4, 14)
    assert counts.keys == {"a": 5, "b": 3, "c": 1, "missing": 2}
    store.set_partial_values([("a", 0, b"xy"), ("a", 2, b"z")])
    assert (counts.writes, counts.bytes_written) == (3, 111)
    assert store.reset() is counts
    assert store.counts.requests == 0


def test_counting_in_threads():
    store = CountingStore(MemoryStore({"a": b"xy"}))

    def read():
        for _ in range(1000):
            store.get("a")

    threads = [threading.Thread(target=read) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (store.counts.reads, store.counts.bytes_read, store.counts.keys["a"]) == (8000, 16000, 8000)


def test_imports_stay_light():
    code = "import sys, zardine.storage; print(*[m for m in sys.modules])"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    for heavy in ("asyncio", "tempfile", "shutil", "pytest"):
        assert heavy not in loaded


def test_a_read_only_twin_counts_into_the_same():
    store = CountingStore(MemoryStore({"a": b"x"}))
    twin = store.with_read_only(True)
    store.reset()
    twin.get("a")
    assert store.counts.reads == twin.counts.reads == 1
    twin.reset()
    assert store.counts.reads == 0


def test_a_key_is_looked_at_and_erased_in_one_instant():
    class Slow(MemoryStore):
        def version(self, key):
            found = super().version(key)
            storing.start()
            storing.join(0.2)
            return found

    values = {}
    store, other = Slow(values), MemoryStore(values)
    version = other.set("k", b"one")
    storing = threading.Thread(target=lambda: other.set("k", b"two"))
    store.erase_version("k", version)
    storing.join()
    assert other.get("k") == b"two"
