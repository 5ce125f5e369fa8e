"""Stores in memory that are pickled or forked into other processes: nothing written there vanishes without a word."""

import copy
import gc
import multiprocessing
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pytest

import zardine
from zardine.errors import StoreError
from zardine.storage import CountingStore, FsspecStore, LocalStore, ManagedMemoryStore, MemoryStore, PrefixStore, Store

pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")

STORES: dict[str, Callable[[], Store]] = {
    "unnamed": MemoryStore,
    "named": lambda: ManagedMemoryStore("pickled by a test"),
    "mapping": lambda: MemoryStore({}),
    "prefix": lambda: PrefixStore(MemoryStore(), "a/b"),
    "counting": lambda: CountingStore(MemoryStore()),
    "fsspec": lambda: FsspecStore(fsspec.filesystem("memory"), "/pickled by a test"),
}


@pytest.fixture(params=STORES)
def store(request: Any) -> Store:
    made = STORES[request.param]()
    made.erase_prefix("")
    return made


def fill(array: zardine.Array) -> int:
    array[...] = 7
    return int(array[0])


def total(array: zardine.Array) -> int:
    return int(array[...].sum())


def own_array() -> zardine.Array:
    return zardine.array([1, 2, 3])


def test_a_pickle_is_the_same_store_in_the_process_that_made_it(store: Store) -> None:
    array = zardine.create_array(store, shape=(3,), dtype="i4", fill_value=1)
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        twin = pickle.loads(pickle.dumps(array, protocol))
        assert fill(twin) == 7
        assert array[...].tolist() == [7, 7, 7]
        array[...] = 0


def test_a_pickle_keeps_what_nobody_else_refers_to() -> None:
    array = zardine.array([1, 2, 3])
    data = pickle.dumps(array)
    array[0] = 5
    del array
    gc.collect()
    assert pickle.loads(data)[...].tolist() == [5, 2, 3]


def test_a_pickle_is_an_error_in_a_program_started_anew(store: Store, tmp_path: Path) -> None:
    (tmp_path / "p").write_bytes(pickle.dumps(zardine.create_array(store, shape=(3,), dtype="i4")))
    program = f"import pickle; pickle.load(open({str(tmp_path / 'p')!r}, 'rb'))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "StoreError" in done.stderr
    assert "LocalStore" in done.stderr
    assert "with_read_only(True)" in done.stderr


@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_a_pool_of_processes(store: Store, method: str) -> None:
    array = zardine.create_array(store, shape=(3,), dtype="i4", fill_value=1)
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context(method)) as pool:
        with pytest.raises(StoreError, match=r"LocalStore.*with_read_only\(True\)"):
            pool.submit(fill, array).result(timeout=60)
        if not isinstance(store, FsspecStore):
            read_only = zardine.open_array(store.with_read_only(True))
            assert pool.submit(total, read_only).result(timeout=60) == 3
        with pytest.raises(StoreError, match="LocalStore"):
            pool.submit(own_array).result(timeout=60)
    assert array[...].tolist() == [1, 1, 1]


def test_the_other_kind_of_pool_does_not_wait_for_ever() -> None:
    with multiprocessing.get_context("fork").Pool(1) as pool, pytest.raises(StoreError, match="LocalStore"):
        pool.apply_async(fill, (zardine.array([1, 2, 3]),)).get(timeout=60)


def in_fork(work: Callable[[], object]) -> str:
    """What a forked child says of ``work``: ``done``, or its error."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            work()
            said = "done"
        except BaseException as error:
            said = f"{type(error).__name__}: {error}"
        os.write(write, said.encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as told:
        text = told.read()
    os.waitpid(child, 0)
    return text


def test_a_fork_reads_what_it_inherited_and_does_not_write_to_it(store: Store) -> None:
    array = zardine.create_array(store, shape=(3,), dtype="i4", fill_value=1)

    def read() -> None:
        assert total(array) == 3

    assert in_fork(read) == "done"
    changes: list[Callable[[], object]] = [
        lambda: fill(array),
        lambda: array.attrs.update(a=1),
        lambda: array.resize((9,)),
        lambda: store.erase("zarr.json"),
        lambda: store.erase_prefix(""),
    ]
    for change in changes:
        assert in_fork(change).startswith("StoreError: ")
    assert "LocalStore" in in_fork(lambda: fill(array))
    assert array[...].tolist() == [1, 1, 1]


def test_what_a_fork_may_do() -> None:
    array = zardine.array([1, 2, 3])
    data, deep = pickle.dumps(array), copy.deepcopy(array)

    def make() -> None:
        own = own_array()
        assert fill(pickle.loads(pickle.dumps(own))) == 7
        assert own[0] == 7

    assert in_fork(make) == "done"
    assert in_fork(lambda: fill(copy.deepcopy(array))) == "done"
    assert in_fork(lambda: fill(zardine.open_array(copy.deepcopy(deep.store)))) == "done"
    assert in_fork(lambda: pickle.loads(data)).startswith("StoreError: what")
    assert in_fork(lambda: pickle.dumps(array)).startswith("StoreError: ")
    read_only = zardine.open_array(array.store.with_read_only(True))
    assert in_fork(lambda: total(pickle.loads(pickle.dumps(read_only)))) == "done"


def test_a_mapping_that_processes_share_can_be_written_by_a_fork() -> None:
    with multiprocessing.get_context("fork").Manager() as manager:
        store = MemoryStore(manager.dict())
        assert in_fork(lambda: store.set("k", b"of the fork")) == "done"
        assert store.get("k") == b"of the fork"


def test_a_fork_while_another_thread_holds_the_store_does_not_wait() -> None:
    store = MemoryStore()
    store.set("k", b"x")
    held = store._backing.lock
    ready, done = multiprocessing.Event(), multiprocessing.Event()
    import threading

    def hold() -> None:
        with held:
            ready.set()
            done.wait(60)

    thread = threading.Thread(target=hold)
    thread.start()
    ready.wait(60)
    try:
        child = os.fork()
        if child == 0:
            os._exit(0 if store.get("k") == b"x" else 1)
        done.set()
        assert os.waitpid(child, 0)[1] == 0
    finally:
        done.set()
        thread.join()


@pytest.mark.parametrize("kind", [MemoryStore, LocalStore])
def test_dask_in_processes(kind: type, tmp_path: Path) -> None:
    da = pytest.importorskip("dask.array")
    store = MemoryStore() if kind is MemoryStore else LocalStore(tmp_path)
    target = zardine.create_array(store, shape=(8,), chunks=(4,), dtype="i8")
    source = da.arange(8, chunks=4)
    if kind is MemoryStore:
        with pytest.raises(StoreError, match="LocalStore"):
            da.store(source, target, scheduler="processes", lock=False)
        da.store(source, target, scheduler="threads", lock=False)
    else:
        da.store(source, target, scheduler="processes", lock=False)
    assert target[...].tolist() == list(range(8))


def test_dask_names_an_array_without_keeping_it() -> None:
    da = pytest.importorskip("dask.array")
    array = zardine.array(np.arange(8))
    number = array.store._backing.number
    assert da.from_array(array).name == da.from_array(array).name != da.from_array(zardine.array(np.arange(8))).name
    from zardine.stores import memory

    assert number not in memory._pickled
