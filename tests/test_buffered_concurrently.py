"""``Array.buffered`` with threads that write, read, flush and append at the same time, and with forked processes."""

from __future__ import annotations

import multiprocessing
import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zardine
from effort import SOAK
from zardine.storage import LocalStore, MemoryStore, WrapperStore

FORKS = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")


class PausingStore(WrapperStore):
    """Does something between having read a chunk and handing it out, once."""

    meanwhile: Callable[[], object] | None = None

    def read(self, key: str, *arguments: Any, **more: Any) -> Any:
        result = super().read(key, *arguments, **more)
        if key.startswith("c/") and self.meanwhile is not None:
            meanwhile, self.meanwhile = self.meanwhile, None
            meanwhile()
        return result


def in_another_thread(work: Callable[[], object]) -> None:
    with ThreadPoolExecutor(1) as pool:
        pool.submit(work).result(timeout=20)


@pytest.mark.parametrize("shards", [(8, 8), None])
def test_a_read_that_a_flush_overtakes_misses_nothing(shards: Any) -> None:
    store = PausingStore(MemoryStore())
    array = zardine.create_array(store, shape=(16, 16), dtype="i4", chunks=(2, 2), shards=shards)
    array[...] = 1
    with array.buffered():
        for selection in (np.s_[...], np.s_[3, 4], np.s_[::-3, 2:]):
            array[3, 4] = value = int(array[3, 4]) + 1
            store.meanwhile = lambda: in_another_thread(array.flush)
            assert np.max(array[selection]) == (value if selection is not np.s_[::-3, 2:] else 1)
            assert array[3, 4] == value
        array[3, 4] = 10
        store.meanwhile = lambda: in_another_thread(array.flush)
        assert array.vindex[[0, 3], [0, 4]].tolist() == [1, 10]


def test_a_read_that_a_flush_and_a_newer_write_overtake() -> None:
    store = PausingStore(MemoryStore())
    array = zardine.create_array(store, shape=(4,), dtype="i4", chunks=(4,))
    array[...] = 1
    with array.buffered():
        array[1] = 2

        def overtake() -> None:
            array.flush()
            array[2] = 3

        store.meanwhile = lambda: in_another_thread(overtake)
        assert array[...].tolist() in ([1, 2, 1, 1], [1, 2, 3, 1])
        assert array[...].tolist() == [1, 2, 3, 1]


@pytest.mark.parametrize("local", [True, False])
@pytest.mark.parametrize("shards", [(16, 16), None])
@pytest.mark.parametrize("limit", [0, 500, 10**6])
def test_threads_that_write_read_and_flush(tmp_path: Path, local: bool, shards: Any, limit: int) -> None:
    side, writers = 32, 4
    store = LocalStore(tmp_path) if local else MemoryStore()
    array = zardine.create_array(store, shape=(side, side), dtype="i4", chunks=(4, 8), shards=shards)
    last = np.zeros((side, side), "i4")
    over = threading.Event()

    def write(number: int) -> None:
        """Rows of its own, in chunks that others write too; what is written is read again at once."""
        rng = np.random.default_rng(number)
        for value in range(1, 61 if SOAK else 31):
            row, column = number + writers * int(rng.integers(side // writers)), int(rng.integers(side - 5))
            if value % 3:
                array[row, column : column + 5] = value
                assert array[row, column : column + 5].tolist() == [value] * 5
            else:
                array.vindex[[row] * 5, range(column, column + 5)] = value
                assert array.vindex[[row, row], [column, column + 4]].tolist() == [value] * 2
            last[row, column : column + 5] = value

    def flush() -> None:
        while not over.is_set():
            array.flush()
            time.sleep(0.002)

    def read() -> None:
        """Each writer's values only grow, so what is read is never older than what was written before."""
        while not over.is_set():
            before = last.copy()
            assert (array[...] >= before).all()

    with array.buffered(limit=limit), ThreadPoolExecutor(writers + 3) as pool:
        helpers = [pool.submit(flush), pool.submit(read), pool.submit(read)]
        work = [pool.submit(write, number) for number in range(writers)]
        try:
            for each in work:
                each.result()
        finally:
            over.set()
        for helper in helpers:
            helper.result()
    assert (zardine.open_array(store)[...] == last).all()


@pytest.mark.parametrize("shards", [(6, 4), None])
def test_threads_that_write_while_others_append(tmp_path: Path, shards: Any) -> None:
    array = zardine.create_array(tmp_path, shape=(5, 4), dtype="i4", chunks=(3, 4), shards=shards)
    other = zardine.open_array(tmp_path)
    over = threading.Event()

    def append(handle: zardine.Array) -> None:
        for _ in range(40):
            handle.append(np.full((1, 4), -1))

    def write() -> int:
        written = 0
        while not over.is_set():
            written += 1
            array[:5] = written  # covers the chunk that others append to
            time.sleep(0.001)
        return written

    with array.buffered(limit=200), ThreadPoolExecutor(4) as pool:
        writer = pool.submit(write)
        appending = [pool.submit(append, handle) for handle in (array, other)]
        try:
            for each in appending:
                each.result()
        finally:
            over.set()
        written = writer.result()
    assert zardine.open_array(tmp_path)[:, 2].tolist() == [written] * 5 + [-1] * 80


def run_forked(*works: Callable[[], object]) -> None:
    context = multiprocessing.get_context("fork")
    processes = [context.Process(target=work) for work in works]
    for process in processes:
        process.start()
    for process in processes:
        process.join(30)
        if process.exitcode is None:
            process.kill()
    assert [process.exitcode for process in processes] == [0] * len(works)


@FORKS
@pytest.mark.parametrize("shards", [(8, 8), None])
def test_forked_children_store_what_they_write(tmp_path: Path, shards: Any) -> None:
    array = zardine.create_array(tmp_path, shape=(16, 16), dtype="i4", chunks=(2, 2), shards=shards)

    def write(number: int) -> None:
        assert array[0, 0] == 0  # what waits in the parent is the parent's
        for row in range(number, 16, 4):
            array[row, 8:] = row + 1
            assert (array[row, 8:] == row + 1).all()
        with array.buffered() as waiting:
            array[number, 7] = -1
            assert waiting.nbytes > 0

    with array.buffered() as waiting:
        array[:, :7] = 50
        before = waiting.nbytes
        run_forked(*(lambda n=n: write(n) for n in range(4)))
        assert waiting.nbytes == before
    expected = np.zeros((16, 16), "i4")
    expected[:, :7], expected[:4, 7], expected[:, 8:] = 50, -1, np.arange(1, 17)[:, None]
    assert (zardine.open_array(tmp_path)[...] == expected).all()


@FORKS
def test_a_child_that_leaves_the_block_stores_nothing_of_its_parent(tmp_path: Path) -> None:
    array = zardine.create_array(tmp_path, shape=(8,), dtype="i4", chunks=(2,))
    child, status = -1, 1
    try:
        with array.buffered():
            array[:2] = 1
            child = os.fork()
            if child == 0:
                array[4] = 2
            else:
                assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
                assert zardine.open_array(tmp_path)[...].tolist() == [0, 0, 0, 0, 2, 3, 0, 0]
        array[5] = 3
        status = 0
    finally:
        if child == 0:
            os._exit(status)
    array[6] = 4
    assert zardine.open_array(tmp_path)[...].tolist() == [1, 1, 0, 0, 2, 3, 4, 0]


@FORKS
def test_a_fork_while_a_thread_is_storing(tmp_path: Path) -> None:
    storing, forked = threading.Event(), threading.Event()

    class SlowStore(WrapperStore):
        def set(self, key: str, value: Any, **more: Any) -> Any:
            if key.startswith("c/") and threading.current_thread() is not threading.main_thread():
                storing.set()
                assert forked.wait(20)
            return super().set(key, value, **more)

    array = zardine.create_array(SlowStore(LocalStore(tmp_path)), shape=(8,), dtype="i4", chunks=(2,))
    with zardine.config.set({"threads": 1}), array.buffered():
        array[:2] = 1
        thread = threading.Thread(target=array.flush)
        thread.start()
        assert storing.wait(20)
        context = multiprocessing.get_context("fork")
        child = context.Process(target=lambda: array.__setitem__(slice(4, 6), 2))
        child.start()
        child.join(20)
        forked.set()
        thread.join(20)
        if child.exitcode is None:
            child.kill()
        child.join()
        assert child.exitcode == 0
        array[7] = 3
    assert zardine.open_array(tmp_path)[...].tolist() == [1, 1, 0, 0, 2, 2, 0, 3]
