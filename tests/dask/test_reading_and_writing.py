"""``zardine.dask``: tasks, graphs, requests and errors, with threads in one process."""

from __future__ import annotations

import pickle
from collections import Counter
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pytest
from dask.delayed import Delayed
from numpy.testing import assert_array_equal

import zardine
import zardine.dask as zd
from zardine.errors import ArrayNotFoundError, ContainsArrayError, ReadOnlyError, SelectionError
from zardine.storage import MemoryStore

VALUES = np.random.default_rng(1).random((60, 70))


@pytest.fixture
def stored(tmp_path: Path) -> zardine.Array:
    array = zardine.create_array(tmp_path / "a.zarr", shape=(60, 70), shards=(20, 30), chunks=(10, 10), dtype="f8")
    array[...] = VALUES
    return array


def blocks(length: int = 10) -> da.Array:
    return da.from_array(VALUES, chunks=length)


# reading


@pytest.mark.parametrize(
    ("chunks", "found"),
    [
        ("shards", ((20, 20, 20), (30, 30, 10))),
        ("chunks", ((10,) * 6, (10,) * 7)),
        ("auto", ((60,), (70,))),
        ((30, -1), ((30, 30), (70,))),
        (((10, 50), (70,)), ((10, 50), (70,))),
    ],
)
def test_chunks(stored: zardine.Array, chunks: Any, found: Any) -> None:
    lazy = zd.from_zarr(stored, chunks=chunks)
    assert lazy.chunks == found
    assert lazy.dtype == stored.dtype
    assert_array_equal(lazy.compute(), VALUES)


def test_places(stored: zardine.Array, tmp_path: Path) -> None:
    group = zardine.open_group(tmp_path, mode="r")
    for lazy in (
        zd.from_zarr(str(tmp_path / "a.zarr")),
        zd.from_zarr(tmp_path, "a.zarr"),
        zd.from_zarr(group, "a.zarr"),
        zd.from_zarr(group["a.zarr"], config={"order": "F"}),
        da.from_array(stored, chunks=stored.shards),
    ):
        assert_array_equal(lazy.compute(), VALUES)


def test_only_what_is_selected_is_read(stored: zardine.Array, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    read = zardine.Array.__getitem__
    monkeypatch.setattr(zardine.Array, "__getitem__", lambda self, where: [seen.append(where), read(self, where)][1])
    lazy = zd.from_zarr(stored)
    assert_array_equal(lazy[5:7, 2:4].compute(), VALUES[5:7, 2:4])
    assert [(rows.start, rows.stop, cols.start, cols.stop) for rows, cols in seen] == [(5, 7, 2, 4)]
    assert_array_equal(lazy[5:7, [1, 40]].compute(), VALUES[5:7, [1, 40]])
    assert_array_equal(lazy[0, 3].compute(), VALUES[0, 3])


def test_graphs_are_small(tmp_path: Path) -> None:
    array = zardine.create_array(tmp_path, shape=(10_000, 10_000), shards=(10, 10), chunks=(5, 5), dtype="u1")
    lazy = zd.from_zarr(array)
    assert lazy.npartitions == 10**6
    assert len(pickle.dumps(lazy.__dask_graph__())) < 20_000
    written = zd.to_zarr(da.zeros((10_000, 10_000), chunks=10), array, compute=False, return_stored=True)
    assert len(pickle.dumps(written.__dask_graph__())) < 60_000


def test_empty_axes_and_no_axes(tmp_path: Path) -> None:
    for shape in ((), (0, 3), (5,)):
        zd.to_zarr(da.ones(shape, chunks=2), tmp_path / "a", overwrite=True)
        lazy = zd.from_zarr(tmp_path / "a")
        assert_array_equal(lazy.compute(), np.ones(shape))


@pytest.mark.parametrize("dtype", ["M8[s]", "S3", "U3", "c16", "?", "T", [("a", "i4"), ("b", "f8")]])
def test_types(tmp_path: Path, dtype: Any) -> None:
    if dtype == "T":
        dtype = np.dtypes.StringDType()
    values = np.array([(i, i) for i in range(7)], dtype) if isinstance(dtype, list) else np.arange(7).astype(dtype)
    zd.to_zarr(da.from_array(values, chunks=2), tmp_path / "a")
    assert_array_equal(zd.from_zarr(tmp_path / "a").compute(), values)


@pytest.mark.parametrize("zarr_format", [2, 1])
def test_older_formats(tmp_path: Path, zarr_format: int) -> None:
    zd.to_zarr(blocks(20), tmp_path / "a", zarr_format=zarr_format)
    array = zardine.open_array(tmp_path / "a")
    assert (array.chunks, array.shards) == ((20, 20), None)
    assert_array_equal(zd.from_zarr(tmp_path / "a").compute(), VALUES)


# writing


@pytest.mark.parametrize("length", [7, 10, 16, 60])
@pytest.mark.parametrize("strategy", ["rewrite", "append", "in_place"])
def test_blocks_that_share_shards(tmp_path: Path, length: int, strategy: Any) -> None:
    array = zardine.create_array(
        tmp_path,
        shape=VALUES.shape,
        shards=(20, 30),
        chunks=(10, 10),
        dtype="f8",
        config={"write_strategy": strategy},
    )
    with zardine.config.set({"window_bytes": 1}):  # nothing is joined
        zd.store(blocks(length), array)
    assert_array_equal(array[...], VALUES)


def test_one_task_a_shard(tmp_path: Path) -> None:
    array = zardine.create_array(tmp_path, shape=VALUES.shape, shards=(20, 35), chunks=(5, 5), dtype="f8")
    done = zd.to_zarr(blocks(5), array, compute=False)
    assert isinstance(done, Delayed)
    names = Counter(str(key[0]).rpartition("-")[0] for key in done.__dask_graph__() if isinstance(key, tuple))
    assert names["zardine-write"] == array.nshards
    assert array.nshards_initialized == 0
    assert done.compute() is None
    assert_array_equal(array[...], VALUES)


def test_new_arrays_have_shards_of_blocks(tmp_path: Path) -> None:
    for number, (source, shards) in enumerate(
        [
            (da.zeros((1000, 1000), chunks=100), (1000, 1000)),
            (da.zeros((20_000, 20_000), chunks=1000), (4000, 2000)),
            (da.zeros((40_000, 40_000), chunks=(8000, 8000)), (4000, 8000)),
            (da.zeros(10, chunks=(3,)), (12,)),
        ]
    ):
        done = zd.to_zarr(source, tmp_path / str(number), compute=False)
        assert isinstance(done, Delayed)
        array = zardine.open_array(tmp_path / str(number))
        assert array.shards == shards
        assert all(shard % chunk == 0 for shard, chunk in zip(shards, array.chunks, strict=True))
    zd.to_zarr(blocks(20), tmp_path / "b", shards=None)
    assert zardine.open_array(tmp_path / "b").chunks == (20, 20)
    zd.to_zarr(blocks(20), tmp_path / "c", chunks=(8, 8), compute=False)
    assert zardine.open_array(tmp_path / "c").shards == (80, 80)
    zd.to_zarr(blocks(20), tmp_path / "d", chunks=[[10, 50], [70]], attributes={"a": 1})
    assert zardine.open_array(tmp_path / "d").attrs["a"] == 1
    assert_array_equal(zd.from_zarr(tmp_path / "d").compute(), VALUES)


def test_regions(stored: zardine.Array, tmp_path: Path) -> None:
    expected = VALUES.copy()
    expected[5:25, ::3] = 1
    zd.to_zarr(da.ones((20, 24), chunks=(6, 7)), stored, region=(slice(5, 25), slice(None, None, 3)))
    assert_array_equal(stored[...], expected)
    expected[40:] = 2
    zd.to_zarr(da.full((20, 70), 2.0, chunks=9), tmp_path / "a.zarr", region=(slice(40, None), ...))
    assert_array_equal(stored[...], expected)
    zd.to_zarr(blocks(), tmp_path, "a.zarr", region=...)
    assert_array_equal(stored[...], VALUES)


@pytest.mark.parametrize("compute", [True, False])
def test_return_stored(tmp_path: Path, compute: bool) -> None:
    array = zd.to_zarr(blocks(9), tmp_path / "a", compute=compute, return_stored=True)
    assert_array_equal(array.compute(), VALUES)
    part = zd.to_zarr(blocks(9)[:20], tmp_path / "a", region=(slice(10, 30),), compute=compute, return_stored=True)
    assert_array_equal(part.compute(), VALUES[:20])
    assert_array_equal(zd.from_zarr(tmp_path / "a")[10:30].compute(), VALUES[:20])


def test_many_arrays_in_one_computation(tmp_path: Path) -> None:
    group = zardine.create_group(tmp_path)
    targets = [group.create_array(name, shape=(60, 70), shards=(20, 30), chunks=(10, 10), dtype="f8") for name in "ab"]
    base = blocks(12)
    done = zd.store([base, base[:30] + 1], targets, regions=[None, (slice(30, 60),)], compute=False)
    assert isinstance(done, Delayed)
    assert targets[0].nshards_initialized == 0
    done.compute()
    assert_array_equal(targets[0][...], VALUES)
    assert_array_equal(targets[1][30:], VALUES[:30] + 1)
    assert not targets[1][:30].any()


def test_what_dask_itself_does(stored: zardine.Array, tmp_path: Path) -> None:
    da.store(blocks(7) + 1, stored, lock=False)
    assert_array_equal(stored[...], VALUES + 1)
    assert_array_equal(da.from_array(stored, chunks=stored.shards).compute(), VALUES + 1)


# errors


def test_errors(stored: zardine.Array, tmp_path: Path) -> None:
    here = tmp_path / "a.zarr"
    with pytest.raises(ContainsArrayError, match="overwrite=True"):
        zd.to_zarr(blocks(), here)
    with pytest.raises(TypeError, match=r"dask\.array\.from_array"):
        zd.to_zarr(VALUES, here)
    with pytest.raises(ReadOnlyError, match="opened read-only"):
        zd.to_zarr(blocks(), zardine.open_array(here, mode="r"))
    with pytest.raises(SelectionError, match=r"shape \(60, 70\).*shape \(5, 70\)"):
        zd.to_zarr(blocks(), stored, region=slice(0, 5))
    with pytest.raises(SelectionError, match="more axes"):
        zd.to_zarr(blocks(), stored, region=(slice(None),) * 3)
    with pytest.raises(SelectionError, match="a slice for each axis"):
        zd.to_zarr(blocks(), stored, region=5)
    with pytest.raises(SelectionError, match="forwards"):
        zd.to_zarr(blocks(), stored, region=(slice(None, None, -1),))
    for wrong in ({"shards": (20, 20)}, {"chunks": (2, 2)}, {"overwrite": True}, {"attributes": {}}):
        with pytest.raises(TypeError, match=f"{next(iter(wrong))} is for new arrays"):
            zd.to_zarr(blocks(), stored, **wrong)
    with pytest.raises(ValueError, match="compute_chunk_sizes"):
        zd.to_zarr(blocks()[blocks() > 0.5], tmp_path / "b")
    with pytest.raises(ArrayNotFoundError):
        zd.to_zarr(blocks(), tmp_path / "b", region=...)
    with pytest.raises(ArrayNotFoundError):
        zd.from_zarr(tmp_path / "b")
    with pytest.raises(ValueError, match="'shards', 'chunks', 'auto'"):
        zd.from_zarr(stored, chunks="shard")
    with pytest.raises(TypeError, match="path is for"):
        zd.from_zarr(stored, "a")
    with pytest.raises(ValueError, match="2 sources, 1 targets"):
        zd.store([blocks(), blocks()], [stored])
    with pytest.raises(TypeError, match="not ndarray"):
        zd.store([blocks()], [VALUES])


def test_a_source_is_not_replaced_by_itself(stored: zardine.Array, tmp_path: Path) -> None:
    here = tmp_path / "a.zarr"
    for lazy in (
        zd.from_zarr(stored) + 1,
        da.from_array(zardine.open_array(here), chunks=10).T.T,
        zd.from_zarr(here)[:5],
    ):
        with pytest.raises(ValueError, match=r"a\.zarr cannot be replaced by a copy of .*persist"):
            zd.to_zarr(lazy, here, overwrite=True)
        with pytest.raises(ValueError, match="cannot be replaced"):
            zd.to_zarr(lazy, tmp_path, overwrite=True)
        with pytest.raises(ValueError, match="cannot be replaced"):
            zardine.create_array(here, data=lazy, overwrite=True)
    assert_array_equal(stored[...], VALUES)
    zd.to_zarr((zd.from_zarr(stored) + 1).persist(), here, overwrite=True)
    assert_array_equal(zd.from_zarr(here).compute(), VALUES + 1)
    zd.to_zarr(zd.from_zarr(here) + 1, tmp_path / "b.zarr", overwrite=True)


@pytest.mark.parametrize(
    ("given", "meant"),
    [("scheduler", "compute_kwargs"), ("component", "path"), ("mode", "overwrite"), ("chunk", "chunks")],
)
def test_arguments_of_others_are_known(tmp_path: Path, given: str, meant: str) -> None:
    arguments: Any = {given: "a"}
    with pytest.raises(TypeError, match=rf"to_zarr\(\) got an unexpected .*did you mean '{meant}'"):
        zd.to_zarr(blocks(), tmp_path / "a", **arguments)
    with pytest.raises(TypeError, match="targets are arrays of zardine, one or a list of them, not a ndarray"):
        zd.store(blocks(), VALUES)  # type: ignore[arg-type]


def test_what_several_sources_are_made_of_is_computed_once() -> None:
    count = Counter[str]()

    def made(block: np.ndarray) -> np.ndarray:
        count["made"] += 1
        return block + 1

    first = blocks(30).map_blocks(made, dtype=float)
    targets = [zardine.create_array(zardine.storage.MemoryStore(), shape=(60, 70), dtype=float) for _ in range(2)]
    count.clear()
    zd.store([first, first * 2], targets, scheduler="synchronous")
    assert count["made"] == first.npartitions
    assert_array_equal(targets[1][...], (VALUES + 1) * 2)


def test_other_processes_get_a_copy_of_memory() -> None:
    """What is read by them is what was there when the tasks were sent."""
    values = np.arange(100.0).reshape(10, 10)
    array = zardine.create_array(MemoryStore(), data=values, chunks=(5, 5))
    read = zd.from_zarr(array)
    assert_array_equal(read.compute(scheduler="processes"), values)
    array[0, 0] = -1.0
    assert read[0, 0].compute() == -1.0  # the same memory, where it can be
