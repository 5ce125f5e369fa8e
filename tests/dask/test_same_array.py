"""Names of arrays for Dask, and what arrays share that were sent to a worker more than once."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path

import dask
import numpy as np
import pytest
from dask.base import tokenize

import zardine
import zardine.dask as zd
from servers import servers
from zardine.engine.opened import forget_opened
from zardine.storage import CountingStore, LocalStore, MemoryStore, ZipStore
from zardine.stores.object.urls import object_store_of_url


def new_array(store: object) -> zardine.Array:
    array = zardine.create_array(store, name="a", shape=(60, 70), shards=(20, 30), chunks=(10, 10), dtype="f8")
    array[:30] = 1
    return array


@pytest.mark.parametrize("kind", ["local", "memory", "zip", "s3"])
def test_same_array_and_version_same_token(kind: str, tmp_path: Path) -> None:
    if kind == "s3":
        store = object_store_of_url("s3", f"{servers.new_bucket()}/root", servers.s3_options())
    else:
        store = {"local": LocalStore, "memory": lambda _: MemoryStore(), "zip": ZipStore}[kind](tmp_path / "a.zip")
    array = new_array(store)
    before = tokenize(array)
    assert tokenize(zardine.open_array(store, path="a")) == before
    assert tokenize(pickle.loads(pickle.dumps(array))) == before
    assert zd.from_zarr(array).name == zd.from_zarr(array).name != zd.from_zarr(array, chunks="chunks").name
    assert zd.from_zarr(array, name=False).name != zd.from_zarr(array, name=False).name
    array[0, 0] = 2  # in place, by a handle that another knows nothing of
    changed = tokenize(array)
    assert changed != before
    array[50, 0] = 1  # a new shard
    assert tokenize(array) not in (before, changed)
    with dask.config.set({"tokenize.ensure-deterministic": True}):
        tokenize(array)


def test_a_worker_reads_an_index_once(tmp_path: Path) -> None:
    forget_opened()
    store = CountingStore(LocalStore(tmp_path))
    array = new_array(store)
    text = pickle.dumps(array)
    first, second = pickle.loads(text), pickle.loads(text)
    assert first._handle is second._handle
    assert first._handle.cache_space == second._handle.cache_space
    assert pickle.loads(pickle.dumps(array.with_config({"order": "F"})))._handle is not first._handle
    array.attrs["changed"] = 1
    assert pickle.loads(pickle.dumps(array))._handle is not first._handle
    with first.buffered():
        first[...] = 3
        assert second[0, 0] == 1
    assert second[0, 0] == 3


def test_the_objects_that_are_listed_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """An array that has more is never taken for what it was; nor for another handle of itself."""
    monkeypatch.setattr("zardine.engine.stored.MOST_LISTED", 100)
    url = f"{servers.new_bucket()}/root"
    store = object_store_of_url("s3", url, servers.s3_options())
    array = zardine.create_array(store, name="a", shape=(99,), chunks=(1,), dtype="u1")
    array[...] = 1
    assert tokenize(array) == tokenize(array)
    array.resize(2100)
    array[...] = 2
    servers.s3().log()
    assert tokenize(array) != tokenize(array)
    asked = servers.s3().log()
    assert len(asked) <= 4, asked  # a page of a thousand each time, of three
    assert zd.from_zarr(array, name="mine").name == "mine"


PROGRAM = """
import pickle, sys
import cloudpickle, zardine

for kind in ("LocalStore", "MemoryStore"):
    store = sys.argv[1] if kind == "LocalStore" else {}
    array = zardine.create_array(store, shape=(4,), dtype="f8", overwrite=True)
    twin = pickle.loads(cloudpickle.dumps(array))
    assert type(twin.store) is type(array.store), kind
    assert len(cloudpickle.dumps(array)) < 3000, kind
"""


def test_classes_are_sent_by_their_names(tmp_path: Path) -> None:
    """In a program that has imported nothing but zardine: else a worker has two classes of one name."""
    subprocess.run([sys.executable, "-c", PROGRAM, str(tmp_path)], check=True)


def test_what_is_in_memory_goes_with_its_arrays() -> None:
    array = new_array(MemoryStore())
    text = pickle.dumps(array)
    assert pickle.loads(text)._handle is not pickle.loads(text)._handle
    assert np.array_equal(pickle.loads(text)[...], array[...])


def test_stale_arrays_are_refused(tmp_path: Path) -> None:
    forget_opened()
    text = pickle.dumps(new_array(LocalStore(tmp_path)))
    assert pickle.loads(text)[0, 0] == 1
    zardine.create_array(
        tmp_path, name="a", shape=(60, 70), shards=(30, 30), chunks=(10, 10), dtype="f8", overwrite=True
    )
    with pytest.raises(zardine.errors.ArrayChangedError):
        pickle.loads(text)[0, 0]


def test_an_archive(tmp_path: Path) -> None:
    with ZipStore(tmp_path / "a.zip") as store:
        new_array(store)
    lazy = zd.from_zarr(tmp_path / "a.zip", "a")
    assert lazy.sum().compute() == 30 * 70
