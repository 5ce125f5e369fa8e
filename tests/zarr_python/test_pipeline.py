"""Arrays of zarr-python through zardine's codec pipeline: what they read and write is what zarr-python's own gives."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import pickle
import subprocess
import sys
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
import zarr.storage

import zardine
import zardine.zarr_python
from zardine.errors import ArrayChangedError, CorruptionError, UnsupportedError
from zardine.nodes import asynchronous
from zardine.stores.local.store import LocalStore
from zardine.zarr_python import ZardineFallbackWarning, pipeline
from zardine.zarr_python import stores as our_stores

ZARR = tuple(map(int, zarr.__version__.split(".")[:2]))
LAYOUTS: dict[str, dict[str, Any]] = {
    "sharded": {"shards": (40, 60), "chunks": (10, 20)},
    "chunks": {"chunks": (30, 30)},
    "v2": {"chunks": (30, 30), "zarr_format": 2},
    "v2-F": {"chunks": (30, 30), "zarr_format": 2, "order": "F"},
    "v2-slash": {"chunks": (30, 30), "zarr_format": 2, "chunk_key_encoding": {"name": "v2", "separator": "/"}},
    "dots": {"chunks": (30, 30), "chunk_key_encoding": {"name": "default", "separator": "."}},
}


@pytest.fixture(autouse=True)
def ours() -> Iterator[None]:
    """Zardine's pipeline, where anything that it does not know is an error."""
    with zardine.zarr_python.enable(strict=True):
        yield


def theirs(array: zarr.Array) -> zarr.Array:
    """The same array through zarr-python's own pipeline."""
    with zarr.config.set({"codec_pipeline.path": "zarr.core.codec_pipeline.BatchedCodecPipeline"}):
        return zarr.open_array(array.store_path, mode="r+")


def create(store: Any = None, shape: tuple[int, ...] = (101, 123), dtype: Any = "i4", **options: Any) -> zarr.Array:
    store = zarr.storage.MemoryStore() if store is None else store
    return zarr.create_array(store, name="inner/a", shape=shape, dtype=dtype, **options)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("where", ["memory", "local"])
def test_selections_are_those_of_numpy(layout: str, where: str, tmp_path: Path) -> None:
    a = create(str(tmp_path) if where == "local" else None, **LAYOUTS[layout])
    rng = np.random.default_rng(0)
    d = rng.integers(0, 1000, a.shape).astype("i4")
    a[:] = d
    i, j, mask = rng.integers(0, 101, 50), rng.integers(0, 123, 50), rng.random(101) < 0.3
    few, some = np.unique(i), np.unique(j)
    reads = {
        "all": (a[:], d),
        "steps": (a[3:77:3, 5:100:7], d[3:77:3, 5:100:7]),
        "long steps": (a[::90, ::61], d[::90, ::61]),
        "element": (a[5, 6], d[5, 6]),
        "row": (a[5], d[5]),
        "column": (a[:, 6], d[:, 6]),
        "nothing": (a[5:5], d[5:5]),
        "points": (a.vindex[i, j], d[i, j]),
        "a mask": (a.vindex[d > 500], d[d > 500]),
        "lists": (a.oindex[i, j], d[np.ix_(i, j)]),
        "a list and a slice": (a.oindex[i, 3:50], d[i, 3:50]),
        "a list downwards": (a.oindex[few[::-1], 3:50], d[few[::-1], 3:50]),
        "a list and an integer": (a.oindex[i, 3], d[i, 3]),
        "an integer and a list": (a.oindex[3, j], d[3, j]),
        "mask and list": (a.oindex[mask, j], d[np.ix_(mask, j)]),
        "mask and slice": (a.oindex[mask, 2:9], d[mask, 2:9]),
    }
    for name, (found, expected) in reads.items():
        np.testing.assert_array_equal(found, expected, name, strict=isinstance(found, np.ndarray))
    writes = [
        (lambda x: (slice(3, 50), slice(4, 9)), 7),
        (lambda x: (slice(3, 90, 4), slice(4, 9, 2)), 8),
        (lambda x: (7, slice(None)), np.arange(123)),
        (lambda x: (slice(0, 101), 9), np.arange(101)),
        (lambda x: (0, 0), 99),
    ]
    for index, value in writes:
        a[index(a)] = value
        d[index(d)] = value
    a.vindex[few, few] = np.arange(len(few))
    d[few, few] = np.arange(len(few))
    a.oindex[few, some] = d[np.ix_(few, some)] = rng.integers(0, 9, (len(few), len(some)))
    a.oindex[few, 3] = d[few, 3] = 12
    a.oindex[few[::-1], 3:5] = rows = rng.integers(0, 9, (len(few), 2))
    d[few[::-1], 3:5] = rows
    a[d > 500] = 4
    d[d > 500] = 4
    np.testing.assert_array_equal(theirs(a)[:], d)
    out = np.zeros((2, *d.shape), "i4", order="F")
    buffer = zarr.core.buffer.cpu.NDBuffer.from_numpy_array(out[1])
    a.get_basic_selection(slice(None), out=buffer)
    np.testing.assert_array_equal(out[1], d)
    assert not out[0].any()


@pytest.mark.parametrize(
    "dtype", ["?", "u1", ">i4", "<f8", "c16", "M8[s]", "U5", "S4", "V3", [("a", "<i4"), ("b", "<f8", (2,))], str]
)
@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.filterwarnings("ignore::zarr.errors.ZarrUserWarning")
@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_types_are_those_of_zarr_python(dtype: Any, zarr_format: int) -> None:
    with zardine.zarr_python.enable(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            a = create(shape=(23,), dtype=dtype, chunks=(5,), zarr_format=zarr_format)
        except (ValueError, TypeError):
            assert dtype == [("a", "<i4"), ("b", "<f8", (2,))]  # not of zarr-python either
            return
        if dtype is str:
            values = np.array([f"{'x' * i}é" for i in range(23)], dtype=object)
        else:
            values = np.frombuffer(bytes(range(32, 32 + 23)) * 32, "u1")[: 23 * a.dtype.itemsize].copy()
            values = np.zeros(23, a.dtype) if a.dtype.kind in "Uc?" else values.view(a.dtype)
        a[:] = values
        a[3:9] = values[4:10]
        found, expected = a[:], theirs(a)[:]
        if dtype is not str:
            assert found.dtype == a.dtype
            assert found.dtype.newbyteorder("=") == expected.dtype.newbyteorder("=")
        np.testing.assert_array_equal(found, expected)
        assert found.dtype.kind == "V" or (found[3:9] == found[4:10]).sum() < 7


def test_what_has_no_axes() -> None:
    a = create(shape=(), dtype="f8", fill_value=3)
    assert a[()] == 3
    a[()] = 4
    a[...] = a[...] + 1
    assert theirs(a)[()] == a[()] == 5


def test_arrays_grow_and_shrink(tmp_path: Path) -> None:
    a = create(str(tmp_path), shape=(10, 20), shards=(8, 10), chunks=(4, 5))
    a[:] = 1
    a.append(np.full((5, 20), 2, "i4"))
    a[14:, 3] = 7
    assert a.shape == (15, 20)
    assert (a[:10] == 1).all()
    assert (a[10:14] == 2).all()
    assert a[14].sum() == 19 * 2 + 7
    a.resize((9, 20))
    a.resize((12, 20))
    np.testing.assert_array_equal(a[:], theirs(a)[:])
    other = zarr.open_array(a.store_path)
    a.resize((30, 20))
    other[8:12] = 5  # a handle that knows nothing of the new shape
    a[12:30] = 6
    assert (zarr.open_array(a.store_path)[8:12] == 5).all()
    assert (other[8:12] == 5).all()


@pytest.mark.skipif(ZARR < (3, 3), reason="zarr-python has no rectilinear grids before")
def test_rectilinear_arrays_grow() -> None:
    with zarr.config.set({"array.rectilinear_chunks": True}):
        a = create(shape=(10, 10), chunks=((4, 6), (5, 5)))
        a[:] = 1
        a.append(np.full((10, 10), 2, "i4"))
        a.append(np.full((2, 10), 3, "i4"))
    assert [int(row[0]) for row in a[:]] == [1] * 10 + [2] * 10 + [3] * 2


@pytest.mark.skipif(ZARR < (3, 3), reason="zarr-python has no rectilinear grids before")
def test_rectilinear_arrays_of_equal_chunks_grow_by_others() -> None:
    with zarr.config.set({"array.rectilinear_chunks": True}):
        a = create(shape=(2, 4), chunks=((2,), (2, 2)), fill_value=7)
        a.append(np.full((7, 4), 2, "i4"))  # its chunks are 2 and 7 rows now
        a.resize((11, 4))  # and 2
        a[9:] = 3
        assert [int(row[0]) for row in a[:]] == [7] * 2 + [2] * 7 + [3] * 2
        assert (theirs(a)[:] == a[:]).all()


def test_what_was_opened_for_reading_is_not_written_to(tmp_path: Path) -> None:
    create(str(tmp_path), chunks=(30, 30))
    a = zarr.open_array(str(tmp_path), path="inner/a", mode="r")
    with pytest.raises(ValueError, match=r"cannot write to .*/inner/a: it was opened read-only"):
        a[0, 0] = 1


def test_fill_values_and_empty_chunks(tmp_path: Path) -> None:
    for empty in (False, True):
        a = create(str(tmp_path / str(empty)), fill_value=5, **LAYOUTS["sharded"], config={"write_empty_chunks": empty})
        assert (a[:30] == 5).all()
        a[:40, :60] = 5
        assert a.nchunks_initialized == 12 * empty
        a[0, 0] = 1
        assert (a[0, 0], a[0, 1]) == (1, 5)


@pytest.mark.skipif(ZARR < (3, 2), reason="zarr-python 3.1 always fills")
def test_missing_chunks_can_be_an_error(tmp_path: Path) -> None:
    a = create(str(tmp_path), **LAYOUTS["sharded"], config={"read_missing_chunks": False})
    a[0, 0] = 1
    assert a[:40, :60].sum() == 1  # chunks within a shard that is there are filled, as by zarr-python
    with pytest.raises(zarr.errors.ChunkNotFoundError, match="c/0/1"):
        a[:40, :80]


def test_an_array_that_was_replaced_is_not_read_by_the_old_layout(tmp_path: Path) -> None:
    a = create(str(tmp_path), **LAYOUTS["sharded"])
    a[:] = 1
    zarr.create_array(str(tmp_path), name="inner/a", shape=a.shape, dtype="i4", chunks=(50, 50), overwrite=True)
    with pytest.raises(ArrayChangedError):
        a[:]
    with pytest.raises(ArrayChangedError):
        a[0] = 2


@pytest.mark.parametrize("where", ["memory", "local"])
def test_a_block_of_few_small_chunks_is_read_without_another_thread(
    where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    a = create(str(tmp_path) if where == "local" else None, shards=(40, 60), chunks=(10, 20))
    d = np.arange(101 * 123, dtype="i4").reshape(a.shape)
    a[:] = d
    handed_over: list[str] = []
    in_thread, change_in_thread = pipeline._in_thread, asynchronous.change_in_thread

    async def seen(work: Any, *arguments: Any) -> Any:
        handed_over.append(work.__name__)
        return await in_thread(work, *arguments)

    async def seen_change(node: Any, work: Any, *arguments: Any) -> Any:
        handed_over.append(work.__name__)
        return await change_in_thread(node, work, *arguments)

    monkeypatch.setattr(pipeline, "_in_thread", seen)
    monkeypatch.setattr(asynchronous, "change_in_thread", seen_change)
    for index in [np.s_[10:20, 20:40], np.s_[5, 6], np.s_[100, 120:], np.s_[30:35, 7], np.s_[-1:, -1]]:
        np.testing.assert_array_equal(a[index], d[index])
    assert handed_over == []
    np.testing.assert_array_equal(a[5, ::2], d[5, ::2])
    assert handed_over == ["read_items"]
    for index in [np.s_[5:15, 6], np.s_[35:45, 3]]:
        np.testing.assert_array_equal(a[index], d[index])
    handed_over.clear()
    place = str(tmp_path / "many") if where == "local" else None
    many = create(place, shape=(1024, 4096), chunks=(512, 1024), dtype="u1")
    many[:] = 1
    assert many[500:520, 1000:1030].sum() == 600  # chunks of two MiB in all
    assert many[0, 5] == 1
    assert handed_over == ["write_items", "read_items"]
    handed_over.clear()
    large = create(shape=(1025, 1024), chunks=(1025, 1024), dtype="u1")
    assert large[5, 6] == 0
    large[5, 6] = 1
    assert large[5, 6] == 1
    assert handed_over == ["read_items", "write_items", "read_items"]


def test_the_document_of_an_array_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    a = create(str(tmp_path), shards=(40, 60), chunks=(10, 20))
    a[:] = 1
    looked: list[str] = []
    read_up_to = LocalStore.read_up_to

    def seen(self: LocalStore, key: str, most: int) -> Any:
        looked.append(key)
        return read_up_to(self, key, most)

    monkeypatch.setattr(LocalStore, "read_up_to", seen)
    b = zarr.open_array(a.store_path)
    assert (b[:] == 1).all()
    assert b[3, 4] == 1
    b[3:5] = 2
    assert looked == ["inner/a/zarr.json"]


def test_damage_is_our_error(tmp_path: Path) -> None:
    a = create(str(tmp_path), shape=(64, 64), shards=(64, 64), chunks=(8, 8))
    a[:] = np.arange(64 * 64).reshape(64, 64)
    shard = tmp_path / "inner/a/c/0/0"
    shard.write_bytes(shard.read_bytes()[:-9])
    with pytest.raises(CorruptionError, match="inner/a"):
        a[:]


def test_it_is_used_by_arrays_that_were_pickled(tmp_path: Path) -> None:
    a = create(str(tmp_path), **LAYOUTS["sharded"])
    a[:] = 3
    twin = pickle.loads(pickle.dumps(a))
    twin[0] = 4
    assert a[0].sum() == 4 * 123
    assert type(twin._async_array.codec_pipeline) is zardine.ZardineCodecPipeline


def test_it_works_under_a_running_loop_and_when_cancelled(tmp_path: Path) -> None:
    a = create(str(tmp_path), **LAYOUTS["sharded"])
    a[:] = 3

    async def many() -> None:
        array = a._async_array
        found = await asyncio.gather(*(array.getitem((i, slice(None))) for i in range(50)))
        assert all((row == 3).all() for row in found)
        for _ in range(20):
            task = asyncio.ensure_future(array.setitem(slice(None), np.full(a.shape, 4, "i4")))
            await asyncio.sleep(0.001)
            task.cancel()
        await array.setitem(slice(None), np.full(a.shape, 5, "i4"))

    asyncio.run(many())
    assert set(np.unique(a[:])) <= {4, 5}  # those that were cancelled end at some time, whole
    assert threading.active_count() < 200


def _in_child(path: str) -> None:
    array = zarr.open_array(path, path="inner/a")
    assert (array[:] == 3).all()
    array[0] = 4


def test_it_works_after_fork(tmp_path: Path) -> None:
    a = create(str(tmp_path), **LAYOUTS["sharded"])
    a[:] = 3
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of threads and fork
        child = multiprocessing.get_context("fork").Process(target=_in_child, args=(str(tmp_path),))
        child.start()
    child.join(60)
    assert child.exitcode == 0
    assert (a[0] == 4).all()


def test_the_values_of_a_memory_store_are_zarr_pythons(tmp_path: Path) -> None:
    values: dict[str, Any] = {}
    a = create(zarr.storage.MemoryStore(values), **LAYOUTS["sharded"])
    a[:] = 3
    assert isinstance(values["inner/a/c/0/0"], zarr.core.buffer.Buffer)
    theirs(a)[1] = 4
    assert a[:3].sum() == 123 * (3 + 4 + 3)


class Shouting(zarr.storage.LocalStore):
    """A store that might do anything when it is read."""


def test_what_is_not_known_falls_back_with_one_warning(tmp_path: Path) -> None:
    with zardine.zarr_python.enable():
        a = create(Shouting(tmp_path), **LAYOUTS["sharded"])
        with pytest.warns(ZardineFallbackWarning, match=r"Shouting, is none of zarr-python's own"):
            a[:] = 3
        with warnings.catch_warnings():
            warnings.simplefilter("error", ZardineFallbackWarning)  # it was said once
            a[5] = 4
            assert a[4:6].sum() == 123 * 7
    strict = create(Shouting(tmp_path / "b"), **LAYOUTS["sharded"])
    with pytest.raises(UnsupportedError, match="Shouting"):
        strict[:] = 3


def test_wrappers_and_read_only_stores(tmp_path: Path) -> None:
    a = create(zarr.storage.LoggingStore(zarr.storage.LocalStore(tmp_path), log_level="ERROR"), **LAYOUTS["sharded"])
    a[:] = 3
    b = zarr.open_array(zarr.storage.LocalStore(tmp_path, read_only=True), path="inner/a")
    assert (b[:] == 3).all()
    with pytest.raises(ValueError, match="read-only"):
        b[:] = 4


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_zip_stores(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    with zardine.zarr_python.enable(), zarr.storage.ZipStore(path, mode="w") as store:
        create(store, **LAYOUTS["sharded"])[:] = 3
    with zarr.storage.ZipStore(path, mode="r") as store:
        assert (zarr.open_array(store, path="inner/a")[:] == 3).all()
    assert our_stores.store_of(zarr.storage.ZipStore(path, mode="r")).read_only


def test_fsspec_and_obstore(tmp_path: Path) -> None:
    import fsspec.implementations.memory
    import obstore.store

    fs = fsspec.implementations.memory.MemoryFileSystem()
    wrapper = fsspec.implementations.asyn_wrapper if hasattr(fsspec.implementations, "asyn_wrapper") else None
    if wrapper is None:
        import fsspec.implementations.asyn_wrapper as wrapper
    wrapped = wrapper.AsyncFileSystemWrapper(fs, asynchronous=True)
    for store in (
        zarr.storage.FsspecStore(wrapped, path=f"/{tmp_path.name}"),
        zarr.storage.ObjectStore(obstore.store.MemoryStore()),
        zarr.storage.ObjectStore(obstore.store.LocalStore(str(tmp_path))),
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            a = create(store, **LAYOUTS["sharded"])
            a[:] = np.broadcast_to(np.arange(123), a.shape)
            a[3:5, 7] = 1
        np.testing.assert_array_equal(a[:], theirs(a)[:])


def test_enable_and_disable() -> None:
    before = zarr.config.get("codec_pipeline.path")
    assert before == "zardine.ZardineCodecPipeline"
    with zardine.zarr_python.enable():
        zardine.zarr_python.disable()
        assert zarr.config.get("codec_pipeline.path") == "zarr.core.codec_pipeline.BatchedCodecPipeline"
        assert type(create()._async_array.codec_pipeline).__name__ == "BatchedCodecPipeline"
    assert zarr.config.get("codec_pipeline.path") == before


def test_importing_zardine_does_not_import_zarr() -> None:
    code = "import sys, zardine; from zardine import *; import zardine.zarr_python; assert 'zarr' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ})


_WRITE = """
import sys, numpy as np, zarr, zardine.zarr_python
zardine.zarr_python.enable(strict=True)
array = zarr.open_array(sys.argv[1], path="inner/a")
sys.stdin.readline()
for number in range(int(sys.argv[2]), 64, 4):
    row, column = divmod(number, 8)
    array[row * 8 : row * 8 + 8, column * 8 : column * 8 + 8] = number + 1
"""


def test_four_processes_write_64_chunks_of_one_shard_and_nothing_is_lost(tmp_path: Path) -> None:
    a = create(str(tmp_path), shape=(64, 64), shards=(64, 64), chunks=(8, 8))
    command = [sys.executable, "-c", _WRITE, str(tmp_path)]
    writers = [subprocess.Popen([*command, str(i)], stdin=subprocess.PIPE, text=True) for i in range(4)]
    for each in writers:
        assert each.stdin is not None
        each.stdin.write("go\n")
        each.stdin.flush()
    assert [each.wait(60) for each in writers] == [0] * 4
    np.testing.assert_array_equal(a[::8, ::8].reshape(-1), np.arange(1, 65))


def test_tasks_of_dask_across_shards_lose_nothing(tmp_path: Path) -> None:
    import dask
    import dask.array

    a = create(str(tmp_path), shape=(900, 1400), dtype="i4", shards=(300, 700), chunks=(50, 70))
    d = np.arange(900 * 1400, dtype="i4").reshape(900, 1400)
    blocks = dask.array.from_array(d, chunks=(100, 100))
    with dask.config.set(scheduler="threads", num_workers=8):
        dask.array.store(blocks, a, lock=False)
    np.testing.assert_array_equal(a[:], d)
