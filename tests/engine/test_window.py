"""Memory beside the result is bounded, and what comes next is fetched while what is there is decoded."""

from __future__ import annotations

import threading
import time
import tracemalloc
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import zardine
from zardine.engine.read_ahead import ahead, batches
from zardine.indexing.parse import parse_any
from zardine.indexing.plan import make_plan
from zardine.storage import CountingStore, MemoryStore, WrapperStore
from zardine.stores.base import ReadCost


@pytest.fixture(autouse=True)
def small_window() -> Iterator[None]:
    with zardine.config.set({"window_bytes": 2**20}):
        yield


def sharded(shape: tuple[int, ...], shards: tuple[int, ...], chunks: tuple[int, ...]) -> zardine.Array:
    array = zardine.create_array(MemoryStore(), shape=shape, shards=shards, chunks=chunks, dtype="u2", compressors=None)
    array[...] = np.arange(array.size, dtype="u2").reshape(shape)
    return array


@pytest.mark.parametrize("selection", [(...,), (slice(3, None, 2),), ([5, 900, 3], slice(7, 300))])
def test_batches_hold_every_chunk_once_and_keep_to_the_window(selection: Any) -> None:
    array = sharded((1024, 1024), (1024, 512), (64, 64))
    plan = make_plan(parse_any(selection, array.shape), array._handle.layout.grids)
    found = list(batches(array._handle, plan.parts(), 3))
    chunks = [part.chunk(i) for batch in found for part in batch for i in range(part.count)]
    wanted = [part.chunk(i) for part in plan.parts() for i in range(part.count)]
    assert sorted(chunks) == sorted(wanted)
    assert len(set(chunks)) == len(chunks)
    for batch in found:
        assert sum(part.count for part in batch) * 64 * 64 * 2 <= 2**19
        assert 1 <= len(batch) <= 3


def test_points_in_a_large_shard_are_read_in_pieces() -> None:
    array = sharded((4096, 64), (4096, 64), (64, 64))
    rows = np.random.default_rng(1).integers(0, 4096, 500)
    columns = rows % 64
    expected = (rows * 64 + columns).astype("u2")
    with zardine.config.set({"window_bytes": 4 * 64 * 64 * 2}):
        assert (array.vindex[rows, columns] == expected).all()


class CopyingStore(WrapperStore):
    """Gives new bytes for each range, as a store does that fetches from elsewhere."""

    def read(self, key: str, ranges: Any = ((0, None),)) -> Any:
        reading = super().read(key, ranges)
        if reading is None:
            return None
        return type(reading)(tuple(bytearray(part) for part in reading.parts), reading.version, reading.size)


def test_the_memory_of_a_read_is_the_result_and_the_window() -> None:
    array = sharded((2048, 2048), (2048, 1024), (64, 64))
    store = CopyingStore(array.store)
    opened = zardine.open_array(store, mode="r")
    out = np.empty(opened.shape, opened.dtype)
    tracemalloc.start()
    try:
        opened.get_basic_selection(out=out)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (out == array[...]).all()
    assert peak < 2.5 * 2**20, f"{peak} bytes at the peak, for shards of {2048 * 1024 * 2}"


def test_writers_of_large_shards_take_turns() -> None:
    running: list[int] = []
    most: list[int] = []
    lock = threading.Lock()

    class SlowStore(WrapperStore):
        def set(self, key: str, value: Any, *, condition: Any = None) -> Any:
            with lock:
                running.append(1)
                most.append(len(running))
            time.sleep(0.01)
            with lock:
                running.pop()
            return super().set(key, value, condition=condition)

        @property
        def cost(self) -> ReadCost:
            return ReadCost(requests=8)

    values = np.arange(2**21, dtype="u2").reshape(16, -1)
    for window, bound in ((2**18, 1), (2**20, 2), (2**30, 8)):
        most.clear()
        with zardine.config.set({"window_bytes": window}):
            array = zardine.create_array(
                SlowStore(MemoryStore()), shape=values.shape, shards=(1, 2**17), chunks=(1, 2**14), dtype="u2"
            )
            most.clear()
            array[...] = values
        assert 1 <= max(most) <= bound
        assert (array[...] == values).all()
    assert max(most) > 2


def test_the_next_batch_is_fetched_meanwhile() -> None:
    log: list[tuple[str, int]] = []
    started = [threading.Event() for _ in range(4)]

    def fetch(n: int) -> int:
        log.append(("fetch", n))
        started[n].set()
        return n * 10

    with zardine.config.set({"threads": 4}):
        for n, result in ahead(fetch, iter(range(4))):
            assert result == n * 10
            if n < 3:
                assert started[n + 1].wait(10), "the next one is not fetched while this one is used"
            if n < 2:
                assert ("fetch", n + 2) not in log, "two ahead would be beyond the window"


@pytest.mark.parametrize("count", [0, 1, 3])
def test_the_first_batch_is_fetched_by_the_caller_itself(count: int) -> None:
    fetched = [(item, result) for item, result in ahead(lambda item: (item, threading.get_ident()), iter(range(count)))]
    assert [item for item, _ in fetched] == [number for number, _ in (result for _, result in fetched)]
    assert len(fetched) == count
    assert all(thread == threading.get_ident() for _, (_, thread) in fetched[:1])


def test_an_error_in_the_background_is_raised_here() -> None:
    def fetch(n: int) -> int:
        if n == 2:
            raise OSError("broken")
        return n

    results = ahead(fetch, iter(range(5)))
    assert [next(results), next(results)] == [(0, 0), (1, 1)]
    with pytest.raises(OSError, match="broken"):
        next(results)


def test_a_large_shard_mostly_wanted_is_read_by_ranges_where_bytes_cost_more_than_requests() -> None:
    class FarStore(WrapperStore):
        @property
        def cost(self) -> ReadCost:
            return ReadCost(latency=0.001, bandwidth=1e6)

    array = sharded((256, 256), (256, 256), (16, 16))
    store = CountingStore(FarStore(array.store))
    opened = zardine.open_array(store, mode="r")
    store.reset()
    assert (opened[:160] == array[:160]).all()
    assert store.reset().requests == 2
    opened = zardine.open_array(store, mode="r")
    store.reset()
    assert (opened[...] == array[...]).all()
    assert store.reset().requests == 1
