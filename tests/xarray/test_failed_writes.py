"""What is left by a write that failed, or that is under way; and what must never begin."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pytest
import xarray as xr
from xarray.testing import assert_identical

import zardine
import zardine.dask
from zardine.errors import GroupNotFoundError, UnfinishedError, ZarrUserWarning
from zardine.storage import CountingStore, LocalStore, MemoryStore
from zardine.xarray import to_zarr


def field(rows: int = 12, first: int = 0) -> xr.Dataset:
    values = np.arange(first, first + rows)[:, None] * 100.0 + np.arange(30)
    return xr.Dataset({"t": (("time", "x"), values), "n": ("time", np.arange(rows))}, {"time": first + np.arange(rows)})


def failing(data: xr.Dataset, where: int = 1) -> xr.Dataset:
    """The same, of Dask, of which a chunk cannot be computed."""

    def fail(block: np.ndarray, block_info: Any = None) -> np.ndarray:
        if block_info and block_info[0]["chunk-location"][0] == where:
            raise RuntimeError("no such block")
        return block

    lazy = da.map_blocks(fail, da.from_array(data.t.values, chunks=(4, 30)), dtype=float)
    return data.assign(t=(("time", "x"), lazy))


# appending


def test_a_failed_append_is_taken_back(tmp_path: Path) -> None:
    store = tmp_path / "a.zarr"
    to_zarr(field(), store, chunks={"time": 5, "x": 30})
    before = {path: path.read_bytes() for path in store.rglob("*") if path.is_file()}
    with pytest.raises(RuntimeError, match="no such block") as caught:
        to_zarr(failing(field(12, 12)), store, append_dim="time")
    assert "12:24 of 'time', is taken back" in caught.value.__notes__[-1]
    for engine in ("zarr", "zardine"):
        for consolidated in (True, False):
            found = xr.open_dataset(store, engine=engine, consolidated=consolidated).load()
            assert_identical(found, field())
    after = {path for path in store.rglob("*") if path.is_file()}
    assert after == set(before)
    to_zarr(field(3, 12), store, append_dim="time")
    assert_identical(xr.open_zarr(store).load(), field(15).assign(n=("time", [*range(12), 0, 1, 2])))
    to_zarr(field(3, 15), store, append_dim="time")  # what was erased beyond the end is not seen again
    assert xr.open_zarr(store).sizes["time"] == 18
    assert zardine.verify(store).ok


def test_an_append_with_another_behind_it_stays(tmp_path: Path) -> None:
    store = tmp_path / "a.zarr"
    to_zarr(field(), store)

    def late(block: np.ndarray, block_info: Any = None) -> np.ndarray:
        if block_info and block_info[0]["chunk-location"][0] == 2:
            to_zarr(field(5, 100), store, append_dim="time")
            raise RuntimeError("no such block")
        return block

    data = field(12, 12)
    lazy = da.map_blocks(late, da.from_array(data.t.values, chunks=(4, 30)), dtype=float)
    with pytest.raises(RuntimeError) as caught:
        to_zarr(data.assign(t=(("time", "x"), lazy)), store, append_dim="time")
    assert "could not be taken back" in caught.value.__notes__[-1]
    assert "region={'time': slice(12, 24)}" in caught.value.__notes__[-1]
    found = xr.open_zarr(store).load()
    assert found.sizes["time"] == 29
    assert_identical(found.isel(time=slice(12)), field())
    assert_identical(found.isel(time=slice(24, None)), field(5, 100))
    to_zarr(data, store, region={"time": slice(12, 24)})
    assert_identical(xr.open_zarr(store).load(), xr.concat([field(), data, field(5, 100)], "time"))


# unfinished


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("lazily", [False, True])
def test_arrays_of_an_unfinished_group_are_not_opened(tmp_path: Path, zarr_format: int, lazily: bool) -> None:
    """Neither by their own path while they are written, nor after that was cut off."""
    store = tmp_path / "a.zarr"
    if lazily:
        later = to_zarr(failing(field()), store, zarr_format=zarr_format, compute=False)
        for opened in (zardine.open_array(store / "t"), zardine.open_group(store)["t"]):
            assert np.isnan(opened[0, 0])
        with pytest.raises(RuntimeError):
            later.compute(scheduler="synchronous")
    else:
        tree = xr.DataTree.from_dict({"/": failing(field()), "/below": field()})
        with pytest.raises(RuntimeError):
            to_zarr(tree, store, zarr_format=zarr_format)
    paths = [store / "t"] if lazily else [store / "t", store / "n", store / "below", store / "below/t"]
    for path in paths:
        for opening in (zardine.open, zardine.load, lambda path: zardine.open(store, path=path.relative_to(store))):
            with pytest.raises(UnfinishedError, match=r"zardine\.xarray\.to_zarr since .* mode='w'"):
                opening(path)
    with pytest.raises(UnfinishedError):
        zardine.open_array(store / "t")
    with pytest.raises(UnfinishedError):
        zardine.Array.open(store / "t")
    with pytest.raises(UnfinishedError):
        zardine.dask.from_zarr(store / "t")
    assert zardine.verify(store).ok
    to_zarr(field(), store, mode="w", zarr_format=zarr_format)
    assert_identical(xr.open_zarr(store).load(), field())
    assert zardine.open_array(store / "t")[1, 1] == 101
    assert "unfinished" not in "".join(path.read_text() for path in store.rglob("*z*") if path.is_file())


# what is to be stored


@pytest.mark.parametrize("engine", ["zardine", "zarr"])
@pytest.mark.parametrize("chunks", [None, {}, {"x": 7}])
def test_a_source_is_not_replaced_by_itself(tmp_path: Path, engine: str, chunks: Any) -> None:
    store = tmp_path / "a.zarr"
    to_zarr(field(), store)
    to_zarr(field(), store, group="below", mode="a")
    with xr.open_dataset(store, engine=engine, chunks=chunks) as opened:
        opened = opened.isel(x=slice(20))
        below = xr.open_dataset(store, group="below", engine=engine, chunks=chunks)
        for data in (opened, opened.t, below, xr.DataTree.from_dict({"/": field(), "/z": below.drop_vars("n")})):
            with pytest.raises(ValueError, match=r"a\.zarr.* cannot be replaced by a copy of .*load\(\)"):
                to_zarr(data, store, mode="w")
        with pytest.raises(ValueError, match="cannot be replaced"):
            to_zarr(opened, tmp_path, group="a.zarr", mode="w")
        assert_identical(xr.open_zarr(store).load(), field())
        to_zarr(opened, store, group="other", mode="w")
        to_zarr(opened.load(), store, mode="w")
    assert_identical(xr.open_zarr(store).load(), field().isel(x=slice(20)))


def test_nothing_is_touched_by_a_call_that_cannot_be(tmp_path: Path) -> None:
    """With mode="w" old data would be gone before the mistake is found."""
    store = tmp_path / "a.zarr"
    to_zarr(field(), store)
    wrong: list[tuple[Any, dict[str, Any]]] = [
        (field(), {"encoding": {"t": {"chunks": (3, 4), "shards": (7, 4)}}}),
        (field(), {"encoding": {"t": {"compressors": [{"name": "no-such-codec"}]}}}),
        (field(), {"encoding": {"t": 5}}),
        (field(), {"encoding": 5}),
        (field(), {"encoding": {"t": {"dtype": "int8"}}}),
        (field(), {"chunks": {"x": 0}}),
        (field(), {"progress": 5}),
        (field().assign(a=("x", np.array([object()] * 30))), {}),
        (field().assign_attrs(a=object()), {}),
        (field().rename(t="__t"), {}),
    ]
    counting = CountingStore(LocalStore(store))
    for data, options in wrong:
        with pytest.raises((ValueError, TypeError)):
            to_zarr(data, counting, mode="w", **options)
    assert (counting.counts.writes, counting.counts.erases) == (0, 0)
    assert_identical(xr.open_zarr(store).load(), field())


# values that cannot be stored


@pytest.mark.parametrize("lazily", [False, True])
def test_packed_values_out_of_range(tmp_path: Path, lazily: bool) -> None:
    packed = {"dtype": "int16", "scale_factor": 0.01, "add_offset": 273.15, "_FillValue": -32768}
    good = xr.Dataset({"t": ("x", np.array([-54.5, 273.15, np.nan, 600.82]))})
    bad = good.where(good.t < 600, 610.0)
    whole = xr.Dataset({"t": ("x", np.array([1, 300]))})
    if lazily:
        good, bad, whole = good.chunk(x=2), bad.chunk(x=2), whole.chunk(x=1)
    to_zarr(good, tmp_path / "a.zarr", encoding={"t": packed})
    np.testing.assert_allclose(xr.open_zarr(tmp_path / "a.zarr").t, good.t, atol=0.006)
    with pytest.raises(ValueError, match=r"'t' is to be stored as int16 .*scale_factor=0\.01.* 610\.0 would come back"):
        to_zarr(bad, tmp_path / "b.zarr", encoding={"t": packed})
    with pytest.raises(ValueError, match=r"'t': it is stored as int16 with .*scale_factor"):  # as what is there
        to_zarr(bad, tmp_path / "a.zarr", region={"x": slice(0, 4)})
    read = xr.open_dataset(tmp_path / "a.zarr", engine="zardine", chunks={} if lazily else None)
    with pytest.raises(ValueError, match=r"drop_encoding"), xr.set_options(keep_attrs=True):
        to_zarr(read.t.copy(data=read.t.data + 100).to_dataset(), tmp_path / "c.zarr")
    with pytest.raises(ValueError, match=r"'t' is to be stored as uint8, in which 300 would come back as 44"):
        to_zarr(whole, tmp_path / "d.zarr", encoding={"t": {"dtype": "uint8"}})
    to_zarr(whole, tmp_path / "e.zarr", encoding={"t": {"dtype": "uint16"}})
    assert xr.open_zarr(tmp_path / "e.zarr").t.values.tolist() == [1, 300]


# names and places


@pytest.mark.parametrize("consolidated", [True, False])
def test_a_variable_that_is_passed_over_is_told_of(tmp_path: Path, consolidated: bool) -> None:
    data = xr.Dataset({"__a": ("x", [1, 2]), "b": ("x", [1, 2])})
    data.to_zarr(tmp_path / "a.zarr", zarr_format=3, consolidated=consolidated)
    with pytest.warns(ZarrUserWarning, match="'__a', which is left out") as told:
        assert [*xr.open_dataset(tmp_path / "a.zarr", engine="zardine", consolidated=consolidated)] == ["b"]
    assert told[0].filename == __file__
    with pytest.raises(ValueError, match=r"'__a'.*reserved prefix"):
        to_zarr(data, tmp_path / "b.zarr")
    assert not (tmp_path / "b.zarr").exists()
    to_zarr(data, tmp_path / "c.zarr", zarr_format=2)
    assert_identical(xr.open_dataset(tmp_path / "c.zarr", engine="zardine").load(), data)


def test_what_is_said_of_a_place(tmp_path: Path) -> None:
    with pytest.raises(GroupNotFoundError, match=r"b\.zarr does not exist"):
        xr.open_dataset(tmp_path / "b.zarr", engine="zardine")
    to_zarr(field(), tmp_path / "a.zarr", consolidated=False)
    with pytest.warns(RuntimeWarning, match="Failed to open Zarr store with consolidated metadata") as told:
        xr.open_dataset(tmp_path / "a.zarr", engine="zardine")
    assert [each.filename for each in told] == [__file__]
    memory = MemoryStore()
    to_zarr(field(), memory)
    xr.open_dataset(memory, engine="zardine")  # no warning, and where it is told, none either
    xr.open_dataset(tmp_path / "a.zarr", engine="zardine", consolidated=False)
    xr.open_dataset(zardine.open_group(tmp_path / "a.zarr"))
