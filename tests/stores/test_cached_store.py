"""What a cache keeps, and that it never gives what is old."""

from __future__ import annotations

import os
import pickle

import numpy as np
import pytest

import zardine
from zardine.storage import CachedStore, CountingStore, LocalStore, MemoryStore
from zardine.testing.store import StoreConformance


class TestCachedInMemory(StoreConformance):
    def make_store(self):
        return CachedStore(MemoryStore())


class TestCachedInDirectory(StoreConformance):
    @pytest.fixture(autouse=True)
    def _directory(self, tmp_path):
        self.root = tmp_path

    def make_store(self):
        return CachedStore(LocalStore(self.root / "data"), self.root / "cache")


class TestTinyCache(StoreConformance):
    def make_store(self):
        return CachedStore(MemoryStore(), limit=2000)


def cached(tmp_path, kind, **options):
    counting = CountingStore(MemoryStore())
    return counting, CachedStore(counting, tmp_path / "cache" if kind == "disk" else None, **options)


KINDS = pytest.mark.parametrize("kind", ["memory", "disk"])


@KINDS
def test_a_second_read_asks_for_the_version_only(tmp_path, kind):
    counting, store = cached(tmp_path, kind)
    counting.set("k", b"0123456789")
    for byte_range in ((0, None), (2, 3), (-4, None)):
        counting.reset()
        first = store.read("k", (byte_range,))
        counting.reset()
        again = store.read("k", (byte_range,))
        assert (bytes(again.parts[0]), again.version, again.size) == (bytes(first.parts[0]), first.version, 10)
        assert (counting.counts.reads, counting.counts.bytes_read) == (1, 0)
    counting.set("k", b"9876543210")
    assert store.get("k") == b"9876543210"
    counting.erase("k")
    assert store.get("k") is None


@KINDS
def test_immutable_values_are_not_asked_for(tmp_path, kind):
    counting, store = cached(tmp_path, kind, immutable=True)
    counting.set("k", b"0123456789")
    assert store.get("k") == b"0123456789"
    counting.reset()
    assert store.read("k", ((3, 2), (-1, None))).parts == (b"34", b"9")
    assert counting.counts.requests == 0
    store.set("k", b"new")  # our own writes are known
    assert store.get("k") == b"new"


@KINDS
def test_the_limit_holds(tmp_path, kind):
    counting, store = cached(tmp_path, kind, limit=100_000)
    for number in range(50):
        counting.set(f"k{number}", bytes([number]) * 10_000)
        assert store.get(f"k{number}") == bytes([number]) * 10_000
        assert store.cached_bytes <= 100_000
    if kind == "disk":
        assert sum(entry.stat().st_size for entry in os.scandir(tmp_path / "cache")) <= 100_000
    counting.set("big", bytes(200_000))
    assert store.get("big") == bytes(200_000)
    store.clear()
    assert store.cached_bytes == 0
    assert kind == "memory" or os.listdir(tmp_path / "cache") == []


def test_damaged_files_are_read_again(tmp_path):
    counting, store = cached(tmp_path, "disk")
    counting.set("k", b"0123456789")
    store.get("k")
    (file,) = (tmp_path / "cache").iterdir()
    file.write_bytes(file.read_bytes()[:-1] + b"x")
    assert store.get("k") == b"0123456789"
    file.unlink()
    assert store.get("k") == b"0123456789"


def test_files_of_processes_that_ended_are_removed(tmp_path):
    (tmp_path / "zardine-cache-999999999-aa-bb").write_bytes(b"x")
    (tmp_path / "other").write_bytes(b"x")
    CachedStore(MemoryStore(), tmp_path)
    assert os.listdir(tmp_path) == ["other"]


def test_arrays_through_a_cache(tmp_path):
    store = CachedStore(MemoryStore())
    array = zardine.create_array(store, shape=(16, 16), chunks=(2, 2), shards=(8, 8), dtype="i4")
    values = np.arange(256).reshape(16, 16)
    array[...] = values
    for _ in range(3):
        assert (zardine.open_array(store)[...] == values).all()
        assert (array[1:5, 3:9] == values[1:5, 3:9]).all()
        array[2, 2] = values[2, 2] = 7
    twin = pickle.loads(pickle.dumps(CachedStore(LocalStore(tmp_path), tmp_path / "c", limit=5)))
    assert (twin.limit, twin.store) == (5, LocalStore(tmp_path))
    with pytest.raises(ValueError, match="limit"):
        CachedStore(MemoryStore(), limit=-1)
