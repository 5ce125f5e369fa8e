"""Nothing is lost, whatever the shapes, whichever the scheduler, and when workers are killed."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest
from distributed import Client, LocalCluster
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

import zardine
import zardine.dask as zd
from effort import SOAK, examples, new_seed
from servers import servers
from servers.fault_proxy import FaultProxy


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    patience = {
        "distributed.scheduler.allowed-failures": 100,
        "distributed.deploy.lost-worker-timeout": "1 hour",  # after 15 s it would give up one that is being restarted
        "distributed.logging.distributed": "critical",
    }
    with (
        dask.config.set(patience),
        LocalCluster(
            n_workers=2, threads_per_worker=2, processes=True, dashboard_address=None, silence_logs=30
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def pool() -> Iterator[ProcessPoolExecutor]:
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        yield pool


def test_cluster(client: Client, tmp_path: Path) -> None:
    """The blocks over shards of which Dask and zarr-python lose a third."""
    values = np.random.default_rng(0).random((1000, 1000))
    target = zardine.create_array(tmp_path, shape=(1000, 1000), shards=(300, 700), chunks=(100, 100), dtype="f8")
    with zardine.config.set({"window_bytes": 1}):  # nothing is joined: 21 tasks write one shard
        zd.store(da.from_array(values, chunks=(100, 100)), target, scheduler=client.get)
    assert_array_equal(target[...], values)
    assert zardine.verify(tmp_path).ok
    lazy = zd.from_zarr(tmp_path)
    assert_array_equal(lazy.compute(scheduler=client.get), values)
    stored = zd.to_zarr(lazy + 1, tmp_path / "b", compute_kwargs={"scheduler": client.get}, return_stored=True)
    assert_array_equal(stored.compute(scheduler=client.get), values + 1)


def test_a_worker_shares_what_it_knows(client: Client, tmp_path: Path) -> None:
    """A worker that reads all inner chunks of a shard by a task for each has one handle, however often it is sent."""
    target = zardine.create_array(tmp_path, shape=(64, 64), shards=(64, 64), chunks=(8, 8), dtype="f8")
    target[...] = 1

    def handles(block: Any) -> Any:
        from zardine.engine.opened import _handles

        return np.full((1, 1), len(_handles))

    client.run(lambda: __import__("zardine.engine.opened", fromlist=["_"]).forget_opened())
    lazy = zd.from_zarr(target, chunks="chunks").map_blocks(handles, chunks=(1, 1), dtype=int)
    assert lazy.compute(scheduler=client.get).max() == 1


def test_objects(client: Client) -> None:
    options = servers.s3_options()
    place = f"s3://{servers.new_bucket()}/a"
    values = np.arange(40 * 40.0).reshape(40, 40)
    source = da.from_array(values, chunks=(9, 11))
    with zardine.config.set({"window_bytes": 1}):
        zd.to_zarr(
            source,
            place,
            shards=(20, 20),
            chunks=(5, 5),
            storage_options=options,
            compute_kwargs={"scheduler": client.get},
        )
    lazy = zd.from_zarr(place, storage_options=options)
    assert lazy.npartitions == 4
    assert_array_equal(lazy.compute(scheduler=client.get), values)


def test_no_index_is_asked_for_twice_by_one_worker(client: Client) -> None:
    """Nor by threads of a worker that want it at the same time: the requests of a server far away are counted."""
    place = f"s3://{servers.new_bucket()}/a"
    array = zardine.create_array(
        place, shape=(128, 64), shards=(64, 64), chunks=(8, 8), dtype="f8", storage_options=servers.s3_options()
    )
    array[...] = np.random.default_rng(0).random(array.shape)
    proxy = FaultProxy(int(servers.s3().url.rpartition(":")[2]))
    proxy.latency = 0.02  # so that they do
    try:
        lazy = zd.from_zarr(place, storage_options=servers.s3_options(proxy.url), chunks="chunks")
        servers.s3().log()
        assert_array_equal(lazy.compute(scheduler=client.get), array[...])
        asked = Counter(line.split()[1] for line in servers.s3().log() if " bytes=-" in line)
    finally:
        proxy.close()
    assert len(asked) == array.nshards
    assert max(asked.values()) <= 2 + 1, asked  # once by each of two workers, and by the array that is compared


def test_memory_is_refused_before_anything_is_lost(client: Client) -> None:
    target = zardine.create_array(zardine.storage.MemoryStore(), shape=(8,), chunks=(2,), dtype="f8")
    for scheduler in (client.get, "processes"):
        with pytest.raises(zardine.errors.StoreError, match="in the memory of one process"):
            zd.store(da.ones(8, chunks=2), target, scheduler=scheduler)


axis = st.tuples(st.integers(1, 24), st.integers(1, 5), st.integers(1, 4), st.integers(1, 13), st.integers(0, 6))


@settings(max_examples=examples(10), deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.lists(axis, min_size=1, max_size=3),
    st.sampled_from(["rewrite", "append", "in_place"]),
    st.sampled_from(["threads", "threads", "synchronous", "processes", "cluster"]),
    st.sampled_from([1, 300, 2**20]),
    st.booleans(),
)
def test_any_shapes(
    client: Client,
    pool: ProcessPoolExecutor,
    axes: list[tuple[int, ...]],
    strategy: Any,
    scheduler: str,
    window: int,
    sharded: bool,
) -> None:
    """On each axis, length, inner chunk, chunks in a shard, Dask chunk and start of the region are anything."""
    inner = tuple(chunk for _, chunk, _, _, _ in axes)
    shards = tuple(chunk * count for _, chunk, count, _, _ in axes) if sharded else None
    shape = tuple(length + start for length, _, _, _, start in axes)
    region = tuple(slice(start, None) for *_, start in axes)
    values = (
        np.arange(np.prod([length for length, *_ in axes]), dtype="i4").reshape([length for length, *_ in axes]) + 1
    )
    how: dict[str, Any] = {"scheduler": client.get if scheduler == "cluster" else scheduler}
    if scheduler == "processes":
        how["pool"] = pool
    expected = np.zeros(shape, "i4")
    expected[region] = values
    with tempfile.TemporaryDirectory() as place:
        array = zardine.create_array(
            place, shape=shape, chunks=inner, shards=shards, dtype="i4", config={"write_strategy": strategy}
        )
        with zardine.config.set({"window_bytes": window}):
            source = da.from_array(values, chunks=tuple(block for _, _, _, block, _ in axes))
            zd.to_zarr(source, array, region=region, compute_kwargs=how)
        assert_array_equal(array[...], expected)
        blocks = tuple(block for _, _, _, block, _ in axes)
        for chunks in ("shards", "chunks", blocks):
            assert_array_equal(zd.from_zarr(array, chunks=chunks).compute(**how), expected)
        assert zardine.verify(place).ok


@pytest.mark.parametrize("strategy", ["rewrite", *(["append"] if SOAK else []), "in_place"])
def test_workers_that_are_killed(client: Client, tmp_path: Path, strategy: Any) -> None:
    """Workers die in the midst of writing: what was acknowledged is there at once, and in the end everything is."""
    rng = random.Random(new_seed(5))
    values = np.random.default_rng(0).random((400, 400))
    target = zardine.create_array(
        tmp_path / "a",
        shape=(400, 400),
        shards=(200, 200),
        chunks=(20, 20),
        dtype="f8",
        config={"write_strategy": strategy},
    )
    doomed = {(rng.randrange(8), rng.randrange(8)): rng.random() / 30 for _ in range(30 if SOAK else 1)}
    marks, acknowledged = tmp_path / "marks", tmp_path / "acknowledged"
    marks.mkdir()

    def deadly(block: Any, block_id: Any = None) -> Any:
        if block_id in doomed:
            try:
                os.close(os.open(marks / f"{block_id}", os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                return block
            import threading

            threading.Timer(doomed[block_id], os.kill, (os.getpid(), signal.SIGKILL)).start()
        return block

    def note(block: Any, block_id: Any = None) -> Any:
        file = os.open(acknowledged, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(file, f"{block_id[0]} {block_id[1]} {block.sum()!r}\n".encode())
        os.close(file)
        return block[:1, :1]

    with zardine.config.set({"window_bytes": 1}):
        source = da.from_array(values, chunks=50).map_blocks(deadly, dtype="f8")
        stored = zd.to_zarr(source, target, compute=False, return_stored=True)
    future = client.compute(stored.map_blocks(note, chunks=(1, 1), dtype="f8").sum())
    seen, last = 0, time.monotonic() + (900 if SOAK else 150)
    while not future.done():
        assert time.monotonic() < last, f"{future}, {client.processing()}, killed: {list(marks.iterdir())}"
        time.sleep(0.05)
        lines = acknowledged.read_text().splitlines() if acknowledged.exists() else []
        for line in lines[seen : len(lines) - 1]:
            i, j = map(int, line.split()[:2])
            block = (slice(50 * i, 50 * i + 50), slice(50 * j, 50 * j + 50))
            assert_array_equal(target[block], values[block])
        seen = max(seen, len(lines) - 1)
    future.result()
    assert len(list(marks.iterdir())) == len(doomed)
    assert_array_equal(zardine.open_array(tmp_path / "a")[...], values)
    assert zardine.verify(tmp_path / "a").ok


PROGRAM = """
import os, sys
import dask.array as da, numpy as np
import zardine, zardine.dask as zd

def note(block, block_id=None):
    os.write(1, f"{block_id[0]} {block_id[1]}\\n".encode())
    return block[:1, :1]

zardine.config.set({"window_bytes": 1})
values = np.arange(1.0, 160001).reshape(400, 400)
target = zardine.open_array(sys.argv[1])
stored = zd.to_zarr(da.from_array(values, chunks=50), target, compute=False, return_stored=True)
stored.map_blocks(note, chunks=(1, 1), dtype="f8").compute(scheduler="threads", num_workers=4)
"""


@pytest.mark.parametrize("number", range(30 if SOAK else 1))
def test_a_program_that_is_killed(tmp_path: Path, number: int) -> None:
    values = np.arange(1.0, 160001).reshape(400, 400)
    target = zardine.create_array(tmp_path, shape=(400, 400), shards=(200, 200), chunks=(20, 20), dtype="f8")
    wanted = random.Random(new_seed(number)).randrange(1, 60)
    with subprocess.Popen([sys.executable, "-c", PROGRAM, str(tmp_path)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(wanted)]
        process.kill()
        lines += process.stdout.readlines()
    assert len(lines) >= wanted
    for line in lines:
        if line.endswith("\n"):
            i, j = map(int, line.split())
            block = (slice(50 * i, 50 * i + 50), slice(50 * j, 50 * j + 50))
            assert_array_equal(target[block], values[block])
    rest = target[...]
    assert ((rest == values) | (rest == 0)).all()
    zd.to_zarr(da.from_array(values, chunks=50), target)
    assert_array_equal(target[...], values)
