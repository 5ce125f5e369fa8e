"""Threads and processes that read and write one array at the same time."""

import os
import pickle
import subprocess
import sys
import textwrap
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zardine
from zardine.storage import LocalStore, MemoryStore


@pytest.fixture(params=["memory", "local"])
def store(request: Any, tmp_path: Path) -> Any:
    return MemoryStore() if request.param == "memory" else LocalStore(tmp_path)


def test_threads_writing_different_inner_chunks_of_one_shard_lose_nothing(store: Any) -> None:
    array = zardine.create_array(store, shape=(64,), dtype="i4", chunks=(1,), shards=(64,))
    barrier = threading.Barrier(8)

    def work(thread: int) -> None:
        own = zardine.open_array(store) if thread % 2 else array
        barrier.wait()
        for i in range(thread, 64, 8):
            own[i] = i + 1

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    assert array[...].tolist() == list(range(1, 65))
    assert array.nchunks_initialized == 64


def test_threads_writing_parts_of_one_chunk_lose_nothing(store: Any) -> None:
    array = zardine.create_array(store, shape=(32,), dtype="i4", chunks=(32,))
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda i: array.__setitem__(i, i + 1), range(32)))
    assert array[...].tolist() == list(range(1, 33))


def test_threads_erasing_and_writing_one_shard_lose_nothing(store: Any) -> None:
    array = zardine.create_array(store, shape=(8,), dtype="i4", chunks=(1,), shards=(8,))

    def work(i: int) -> None:
        for _ in range(10):
            array[i] = 0
            array[i] = i + 1

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    assert array[...].tolist() == list(range(1, 9))


def test_threads_changing_attributes_lose_nothing(store: Any) -> None:
    array = zardine.create_array(store, shape=(1,), dtype="i4")

    def work(i: int) -> None:
        zardine.open_array(store).attrs[f"name {i}"] = i

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(24)))
    assert array.refresh().attrs.asdict() == {f"name {i}": i for i in range(24)}


def test_readers_see_old_or_new_but_no_mixture_within_a_chunk(store: Any) -> None:
    array = zardine.create_array(store, shape=(4, 1000), dtype="i4", chunks=(1, 1000), shards=(4, 1000))
    array[...] = 1
    done = threading.Event()
    seen: set[int] = set()

    def read() -> None:
        own = zardine.open_array(store)
        while not done.is_set():
            row = own[2]
            assert len(set(row.tolist())) == 1
            seen.add(int(row[0]))

    with ThreadPoolExecutor(2) as pool:
        readers = [pool.submit(read) for _ in range(2)]
        for value in range(2, 40):
            array[...] = value
        done.set()
        for reader in readers:
            reader.result()
    assert seen <= set(range(1, 40))


def test_processes_writing_different_inner_chunks_of_one_shard_lose_nothing(tmp_path: Path) -> None:
    zardine.create_array(tmp_path, shape=(60,), dtype="i4", chunks=(1,), shards=(60,))
    code = textwrap.dedent("""
        import sys, zardine
        array = zardine.open_array(sys.argv[1])
        for i in range(int(sys.argv[2]), 60, 3):
            array[i] = i + 1
    """)
    running = [subprocess.Popen([sys.executable, "-c", code, str(tmp_path), str(i)]) for i in range(3)]
    assert [process.wait() for process in running] == [0, 0, 0]
    assert zardine.open_array(tmp_path)[...].tolist() == list(range(1, 61))


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_can_read_and_write(tmp_path: Path) -> None:
    array = zardine.create_array(tmp_path, shape=(64, 64), dtype="f8", chunks=(8, 8), shards=(32, 32))
    values = np.arange(64.0 * 64).reshape(64, 64)
    with zardine.config.set({"threads": 4}):
        array[...] = values  # the pool of threads is running now, and the cache is warm
        assert (array[...] == values).all()
        child = os.fork()
        if child == 0:
            status = 1
            try:
                good = bool((array[...] == values).all()) and array[5, 5] == values[5, 5]
                array[40:, 40:] = -1.0
                status = 0 if good else 2
            finally:
                os._exit(status)
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == 0
        values[40:, 40:] = -1
        assert (array[...] == values).all()


@pytest.mark.parametrize("threads", [1, 2, 7])
def test_any_number_of_threads_gives_the_same(threads: int) -> None:
    rng = np.random.default_rng(0)
    values = rng.integers(0, 1000, (40, 50), np.int32)
    with zardine.config.set({"threads": threads}):
        array = zardine.create_array(None, data=values, chunks=(3, 7), shards=(12, 14))
        assert (array[...] == values).all()
        assert (array[::-3, 1::2] == values[::-3, 1::2]).all()
        array[5:30, 5:30] = 7
        values[5:30, 5:30] = 7
        assert (array[...] == values).all()


@pytest.mark.parametrize("threads", [1, 4])
def test_the_first_error_of_many_threads_is_raised(threads: int) -> None:
    array = zardine.create_array(None, data=np.arange(1, 101), chunks=(1,))
    array.store.set("c/50", b"damaged")
    with zardine.config.set({"threads": threads}):
        with pytest.raises(zardine.errors.CorruptionError) as error:
            array[...]
        assert error.value.chunk == (50,)
        assert (array[:50] == np.arange(1, 51)).all()


def test_arrays_go_to_other_processes_by_pickle(tmp_path: Path) -> None:
    array = zardine.create_array(
        tmp_path, name="a", data=np.arange(10), chunks=(5,), attributes={"x": 1}, config={"order": "F"}
    )
    twin = pickle.loads(pickle.dumps(array))
    assert twin == array
    assert (twin.order, twin.attrs.asdict(), twin[...].tolist()) == ("F", {"x": 1}, list(range(10)))
    twin[0] = 5
    assert array[0] == 5
    group = zardine.open_group(tmp_path)
    assert pickle.loads(pickle.dumps(group)) == group
    copied = pickle.loads(pickle.dumps(zardine.create_array(None, data=np.arange(3))))
    assert copied[...].tolist() == [0, 1, 2]
