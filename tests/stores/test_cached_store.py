"""What a cache keeps, and that it never gives what is old."""

from __future__ import annotations

import os
import pickle
import shutil
import subprocess
import sys
import textwrap
import tracemalloc

import numpy as np
import pytest

import zardine
from effort import SOAK
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


@pytest.mark.parametrize("limit", [200_000, *([2_000_000] if SOAK else [])])
def test_the_limit_is_one_of_room(tmp_path, limit):
    """Thousands of small parts: what counts is what they take, not how long they are."""
    inner = MemoryStore()
    inner.set("k", bytes(1_000_000))
    for number in range(3000):
        inner.set(f"some/keys/c/{number}", b"x" * 10)

    def use(store):
        for number in range(1500 if limit < 10**6 else 4000):
            store.read("k", ((number * 16, 8),))
            store.read(f"some/keys/c/{number % 3000}", ((2, 8),))

    on_disk = CachedStore(inner, tmp_path / "cache", limit=limit)
    use(on_disk)
    taken = sum(entry.stat().st_blocks * 512 for entry in os.scandir(tmp_path / "cache"))
    assert limit / 10 < on_disk.cached_bytes <= limit
    assert taken <= on_disk.cached_bytes
    on_disk.clear()
    assert os.listdir(tmp_path / "cache") == []
    tracemalloc.start()
    try:
        in_memory = CachedStore(inner, limit=limit)
        before = tracemalloc.get_traced_memory()[0]
        use(in_memory)
        assert tracemalloc.get_traced_memory()[0] - before <= limit
        assert limit / 10 < in_memory.cached_bytes <= limit
    finally:
        tracemalloc.stop()


@KINDS
def test_a_part_of_a_part_is_known(tmp_path, kind):
    counting, store = cached(tmp_path, kind)
    value = bytes(range(256))
    counting.set("k", value)
    for kept in ((100, 50), (10, 20), (200, None), (120, 5)):
        store.read("k", (kept,))
    counting.reset()
    for start, length in ((100, 50), (110, 40), (149, 1), (10, 1), (29, 1), (250, None), (121, 3), (-6, None)):
        stop = None if length is None else start + length
        assert bytes(store.read("k", ((start, length),)).parts[0]) == value[start:stop]
    assert counting.counts.bytes_read == 0
    for start, length in ((9, 2), (29, 2), (50, 1), (99, 1), (0, None)):
        assert store.read("k", ((start, length),)).parts[0] == value[start : None if length is None else start + length]
    counting.reset()
    assert store.read("k", ((3, 200), (0, None))).parts == (value[3:203], value)
    assert counting.counts.bytes_read == 0


@pytest.mark.filterwarnings("error")
def test_a_cache_whose_directory_is_removed_makes_it_again(tmp_path):
    counting, store = cached(tmp_path, "disk")
    for number in range(3):
        counting.set(f"k{number}", b"0123456789")
        assert store.get(f"k{number}") == b"0123456789"
        shutil.rmtree(tmp_path / "cache")
    assert [store.get(f"k{number}") for number in range(3)] == [b"0123456789"] * 3
    counting.reset()
    assert store.get("k2") == b"0123456789"
    assert counting.counts.bytes_read == 0


def test_a_cache_that_cannot_store_says_so_once_and_goes_on(tmp_path):
    counting, store = cached(tmp_path, "disk")
    for number in range(3):
        counting.set(f"k{number}", b"0123456789")
    store.get("k0")
    shutil.rmtree(tmp_path / "cache")
    (tmp_path / "cache").write_bytes(b"a file in its place")
    with pytest.warns(UserWarning, match="cannot be kept in the cache, and are read anew") as told:
        assert [store.get(f"k{number % 3}") for number in range(6)] == [b"0123456789"] * 6
    assert len(told) == 1
    array = zardine.create_array(store, name="a", shape=(8,), chunks=(2,), shards=(4,), dtype="i4")
    array[...] = range(8)
    assert array[...].tolist() == list(range(8))
    (tmp_path / "cache").unlink()
    assert store.get("k1") == b"0123456789"  # there is a place again
    counting.reset()
    assert store.get("k1") == b"0123456789"
    assert counting.counts.bytes_read == 0


_FULL = """
    import os, resource, signal, sys, warnings
    from zardine.storage import CachedStore, MemoryStore
    inner = MemoryStore()
    inner.set("k", bytes(range(256)) * 400)
    store = CachedStore(inner, sys.argv[1])
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    sys.dont_write_bytecode = True  # Python would keep the half of a compiled module that fits
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))  # no file gets longer: as on a disk that is full
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for _ in range(3):
            assert store.get("k") == bytes(range(256)) * 400
    assert len(told) == 1 and "cannot be kept" in str(told[0].message), told
    assert os.listdir(sys.argv[1]) == [], "half a file is left"
    assert store.cached_bytes == 0
    assert store.read("k", ((0, 100),)).parts[0] == bytes(range(100))
    assert store.cached_bytes > 0
"""


def test_a_disk_that_is_full(tmp_path):
    command = [sys.executable, "-c", textwrap.dedent(_FULL), str(tmp_path / "cache")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


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
