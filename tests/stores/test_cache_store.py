"""The cache with zarr-python's arguments keeps what was read, never gives what is old, and tells what it holds."""

from __future__ import annotations

import asyncio
import pickle

import numpy as np
import pytest

import zardine as zarr
from zardine.experimental.cache_store import CacheStore
from zardine.storage import CountingStore, LocalStore, MemoryStore, ZipStore
from zardine.testing.store import StoreConformance


class TestCacheStore(StoreConformance):
    def make_store(self):
        return CacheStore(MemoryStore(), cache_store=MemoryStore(), max_size=10_000)


@pytest.mark.parametrize("kind", ["memory", "files"])
def test_what_was_read_is_kept(tmp_path, kind):
    counting = CountingStore(MemoryStore())
    where = MemoryStore() if kind == "memory" else LocalStore(tmp_path / "cache")
    store = CacheStore(counting, cache_store=where, max_size=10**6)
    array = zarr.create_array(store, data=np.arange(100.0), chunks=10)
    np.testing.assert_array_equal(array[:], np.arange(100.0))
    counting.reset()
    np.testing.assert_array_equal(array[:], np.arange(100.0))
    assert counting.counts.bytes_read == 0
    info = store.cache_info()
    assert info["cached_keys"] == info["tracked_keys"] >= 10
    assert 0 < info["current_size"] <= info["max_size"] == 10**6
    assert info["cache_store_type"] == type(where).__name__
    assert (info["max_age_seconds"], info["cache_set_data"]) == ("infinity", True)
    stats = store.cache_stats()
    assert stats["hits"] >= 10
    assert stats["total_requests"] == stats["hits"] + stats["misses"]
    assert 0 < stats["hit_rate"] < 1
    zarr.open_array(counting)[:] = 7  # past the cache
    assert (zarr.open_array(store)[:] == 7).all()
    asyncio.run(store.clear_cache())
    assert (store.cache_info()["cached_keys"], store.cache_info()["current_size"]) == (0, 0)
    assert (array[:] == 7).all()


def test_travels_to_other_processes(tmp_path):
    store = CacheStore(LocalStore(tmp_path / "a"), cache_store=LocalStore(tmp_path / "c"), max_age_seconds=60)
    again = pickle.loads(pickle.dumps(store))
    assert again == store
    assert again.cache_info()["max_age_seconds"] == 60
    assert store.with_read_only(True).read_only


def test_refusals(tmp_path):
    with pytest.raises(TypeError, match="MemoryStore or a LocalStore"):
        CacheStore(MemoryStore(), cache_store=ZipStore(tmp_path / "a.zip"))
    for age in ("forever", -1):
        with pytest.raises(ValueError, match="max_age_seconds"):
            CacheStore(MemoryStore(), cache_store=LocalStore(tmp_path / "none"), max_age_seconds=age)
    assert not (tmp_path / "none").exists()
