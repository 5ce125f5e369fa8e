"""``zardine.xarray.to_zarr``: what comes back by zarr-python, by our engine, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dask
import dask.array as da
import iris_sample_data
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from xarray.testing import assert_identical

import zardine
from zardine.errors import CorruptionError, GroupNotFoundError, NodeExistsError, ReadOnlyError, UnfinishedError
from zardine.xarray import to_zarr

FILES = sorted(Path(iris_sample_data.path).rglob("*.nc"))
VALUES = np.random.default_rng(1).random((40, 120, 110))


def field(**chunks: int) -> xr.Dataset:
    time = np.datetime64("2020-01-01", "ns") + np.arange(40) * np.timedelta64(1, "D")
    found = xr.Dataset(
        {"t": (("time", "y", "x"), VALUES, {"units": "K"}), "mask": (("y", "x"), VALUES[0] > 0.5)},
        {"time": time, "height": 2.0, "name": ("y", [f"row {i}" for i in range(120)])},
        {"title": "a field"},
    )
    return found.chunk(chunks) if chunks else found


def test_all_files_of_iris_are_there() -> None:
    assert len(FILES) == 15


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_from_netcdf_and_back(file: Path, tmp_path: Path) -> None:
    with xr.open_dataset(file) as source:
        to_zarr(source, tmp_path / "s.zarr")
        expected = source.load()
    stored = xr.open_zarr(tmp_path / "s.zarr")
    assert_identical(stored.load(), expected)
    assert_identical(xr.open_dataset(tmp_path / "s.zarr", engine="zardine").load(), expected)
    stored.to_netcdf(tmp_path / "back.nc")
    with xr.open_dataset(tmp_path / "back.nc") as back:
        assert_identical(back.load(), expected)


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("chunks", [{}, {"time": 7, "y": 50}, {"time": (1, 20, 19), "x": 33}], ids=str)
def test_what_comes_back(tmp_path: Path, chunks: dict[str, Any], zarr_format: int) -> None:
    expected = field()
    calls: list[tuple[int, int]] = []
    group = to_zarr(
        field(**chunks),
        tmp_path / "a.zarr",
        zarr_format=zarr_format,
        verify=True,
        progress=lambda *call: calls.append(call),
    )
    assert group.metadata.zarr_format == zarr_format
    assert calls[0][0] == 0
    assert calls[-1][0] == calls[-1][1] == len({*calls}) - 1
    for engine in ("zarr", "zardine"):
        assert_identical(xr.open_dataset(tmp_path / "a.zarr", engine=engine).load(), expected)
    assert (group["t"].shards is None) == (zarr_format == 2)
    assert zardine.open_group(tmp_path / "a.zarr", use_consolidated=True).attrs["title"] == "a field"


def test_tasks_that_lie_across_shards(tmp_path: Path) -> None:
    values = np.random.default_rng(2).random((900, 1400))
    lazy = xr.Dataset({"v": (("y", "x"), da.from_array(values, chunks=100))})
    encoding = {"v": {"shards": (300, 700), "chunks": (60, 70)}}
    with dask.config.set(scheduler="threads", num_workers=4):
        to_zarr(lazy.chunk(y=(70, 830), x=130), tmp_path / "a.zarr", encoding=encoding, verify=True)
        to_zarr(lazy + 1, tmp_path / "a.zarr", mode="r+")
    found = xr.open_zarr(tmp_path / "a.zarr")
    assert (found.v.encoding["shards"], found.v.encoding["chunks"]) == ((300, 700), (60, 70))
    np.testing.assert_array_equal(found.v.values, values + 1)


@pytest.mark.parametrize("engine", ["zarr", "zardine"])
def test_shards_survive_a_round_trip(tmp_path: Path, engine: str) -> None:
    encoding = {"t": {"shards": (20, 60, 110), "chunks": (10, 30, 110), "compressors": [{"name": "gzip"}]}}
    first = to_zarr(field(), tmp_path / "a.zarr", encoding=encoding)
    for number in range(2):
        with xr.open_dataset(tmp_path / "a.zarr", engine=engine, chunks={} if number else None) as source:
            again = to_zarr(source, tmp_path / f"{number}.zarr")
        assert (again["t"].shards, again["t"].chunks) == ((20, 60, 110), (10, 30, 110))
        assert again["t"].metadata.codecs == first["t"].metadata.codecs


@pytest.mark.parametrize(
    ("arguments", "shards", "chunks"),
    [
        ({"shards": None, "chunks": {"time": 10}}, None, (10, 120, 110)),
        ({"shards": {"time": 20}, "chunks": {"time": 10, "y": 50, "x": 50}}, (20, 150, 150), (10, 50, 50)),
        ({"shards": {"time": 20}, "chunks": {"y": 60}}, (40, 120, 110), (40, 60, 110)),
        ({"encoding": {"t": {"shards": None, "chunks": (4, 120, 110)}}}, None, (4, 120, 110)),
        ({"encoding": {"t": {"chunks": 20}}}, (40, 120, 120), (20, 20, 20)),
        ({"chunks": {"time": 40, "y": 200, "x": 200}}, None, (40, 200, 200)),
    ],
)
def test_chunks_and_shards(tmp_path: Path, arguments: dict[str, Any], shards: Any, chunks: Any) -> None:
    group = to_zarr(field(), tmp_path / "a.zarr", **arguments)
    assert (group["t"].shards, group["t"].chunks) == (shards, chunks)
    assert_identical(xr.open_zarr(tmp_path / "a.zarr").load(), field())


def test_modes(tmp_path: Path) -> None:
    store = tmp_path / "a.zarr"
    expected = field()
    with pytest.raises(GroupNotFoundError):
        to_zarr(expected, store, mode="r+")
    to_zarr(expected, store)
    with pytest.raises(NodeExistsError, match="mode='w'"):
        to_zarr(expected, store)
    to_zarr(expected[["t"]].rename(t="u"), store, mode="a")
    assert {"t", "u", "mask"} <= set(xr.open_zarr(store))
    to_zarr(expected[["mask"]].isel(x=slice(5)), store, mode="w")
    assert set(xr.open_zarr(store)) == {"mask"}
    handle = zardine.open_array(store / "mask")
    to_zarr(expected[["mask"]].isel(x=slice(5)), store, mode="w")
    with pytest.raises(zardine.errors.ArrayChangedError):
        handle[0, 0]
    to_zarr(expected, store, mode="w", group="below/it")
    assert_identical(xr.open_zarr(store, group="below/it").load(), expected)
    longer = expected.assign_coords(time=expected.time + np.timedelta64(40, "D"))
    to_zarr(longer, store, group="below/it", mode="a-", append_dim="time")
    assert_identical(
        xr.open_zarr(store, group="below/it").load(), xr.concat([expected, longer], "time", data_vars="minimal")
    )


def test_a_delayed_group_is_marked_while_it_is_computed(tmp_path: Path) -> None:
    store = tmp_path / "a.zarr"
    seen: list[type[BaseException] | None] = []

    def look(block: np.ndarray) -> np.ndarray:
        if block.size > 1:
            try:
                zardine.open_group(store)
                seen.append(None)
            except UnfinishedError:
                seen.append(UnfinishedError)
        return block

    lazy = xr.Dataset({"t": (("y", "x"), da.from_array(VALUES[0], chunks=50).map_blocks(look, dtype=float))})
    later = to_zarr(lazy, store, compute=False, verify=True)
    assert xr.open_zarr(store).t.isnull().all()
    to_zarr(xr.Dataset({"t": (("y", "x"), VALUES[0, :7])}), store, region={"y": slice(7)})
    np.testing.assert_array_equal(xr.open_zarr(store).t[:7], VALUES[0, :7])
    assert not seen
    later.compute(scheduler="synchronous")
    assert {*seen} == {UnfinishedError}
    np.testing.assert_array_equal(xr.open_zarr(store).t, VALUES[0])


def test_trees_and_arrays(tmp_path: Path) -> None:
    tree = xr.DataTree.from_dict({"/": field(), "/a": field()[["t"]] * 2, "/a/b": xr.Dataset({"n": ("z", [1, 2, 3])})})
    for mode in ("w-", "w", "w"):
        to_zarr(tree, tmp_path / "t.zarr", mode=mode, encoding={"/a": {"t": {"shards": (40, 120, 110)}}})
        assert_identical(xr.open_datatree(tmp_path / "t.zarr", engine="zarr").load(), tree)
        assert_identical(xr.open_datatree(tmp_path / "t.zarr", engine="zardine").load(), tree)
    for number, array in enumerate((field().t, field().t.rename(None), field().time)):
        to_zarr(array, tmp_path / f"{number}.zarr")
        assert_identical(xr.open_dataarray(tmp_path / f"{number}.zarr", engine="zarr").load(), array)
    with pytest.raises(NotImplementedError, match="append_dim"):
        to_zarr(tree, tmp_path / "t.zarr", append_dim="time")
    with pytest.raises(ValueError, match="/nowhere"):
        to_zarr(tree, tmp_path / "u.zarr", encoding={"/nowhere": {}})


def test_verify_finds_what_storage_damaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from zardine.xarray import writing

    def damaged(*arguments: Any) -> None:
        stored(*arguments)
        shard = next(each for each in (tmp_path / "a.zarr/t/c").rglob("0") if each.is_file())
        data = bytearray(shard.read_bytes())
        data[9] ^= 1
        shard.write_bytes(data)

    stored = writing.write_values
    monkeypatch.setattr(writing, "write_values", damaged)
    with pytest.raises(CorruptionError, match="1 faults in what was just written"):
        to_zarr(field(), tmp_path / "a.zarr", verify=True)
    with pytest.raises(UnfinishedError):
        xr.open_dataset(tmp_path / "a.zarr", engine="zardine")


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"mode": "x"}, ValueError, "mode is one of"),
        ({"mode": "w", "append_dim": "time"}, ValueError, "cannot set append_dim unless"),
        ({"mode": "w", "region": {"x": slice(3)}}, ValueError, "cannot set region unless"),
        ({"append_dim": "z"}, ValueError, "does not match any existing dataset dimensions"),
        ({"region": slice(3)}, TypeError, "must be a dict"),
        ({"region": {"x": [1]}}, TypeError, "must be slice objects"),
        ({"region": {"x": slice(0, 4, 2)}}, ValueError, "step on all slices"),
        ({"region": {"z": slice(3)}}, ValueError, "not in Dataset dimensions"),
        ({"region": {"x": slice(3)}}, ValueError, "in common"),
        ({"region": "auto", "mode": "a-"}, ValueError, "region='auto' needs"),
        ({"mode": "a", "encoding": {"t": {"chunks": 3}}}, ValueError, "but encoding was provided"),
        ({"mode": "w", "encoding": {"q": {"chunks": 3}}}, KeyError, "'q', which is no variable"),
        ({"mode": "w", "encoding": {"t": {"chunk": 3}}}, ValueError, "unexpected encoding parameters"),
        ({"mode": "w", "encoding": {"t": {"chunks": (3, 4)}}}, ValueError, "are for 2 dimensions"),
        ({"mode": "w", "encoding": {"t": {"chunks": (3, 4, 1.5)}}}, TypeError, "must be an int"),
        ({"mode": "w", "encoding": {"t": {"chunks": (3, 4, 5), "shards": (4, 4, 5)}}}, ValueError, "evenly divide"),
        ({"mode": "w", "zarr_format": 2, "encoding": {"t": {"shards": (4, 4, 5)}}}, ValueError, "need zarr_format=3"),
        ({"mode": "w", "zarr_format": 5}, ValueError, "5"),
        ({"mode": "w", "chunks": {"tme": 3}}, ValueError, "'tme', which is no dimension.*did you mean 'time'"),
        ({"mode": "w", "shards": {"lat": 3}}, ValueError, "shards has 'lat', which is no dimension"),
        ({"mode": "w", "shards": {"time": 3}, "zarr_format": 2}, ValueError, "need zarr_format=3"),
        ({"mode": "w", "encoding": {"t": {"compressor": None}}}, ValueError, "did you mean 'compressors'"),
    ],
)
def test_what_is_refused(tmp_path: Path, arguments: dict[str, Any], error: type[Exception], text: str) -> None:
    to_zarr(field(), tmp_path / "a.zarr")
    with pytest.raises(error, match=text):
        to_zarr(field(), tmp_path / "a.zarr", **arguments)


def test_more_that_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"takes a Dataset.*not a dict"):
        to_zarr({}, tmp_path / "a.zarr")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"Invalid attribute in Dataset.attrs."):
        to_zarr(field().assign_attrs(a=object()), tmp_path / "a.zarr")
    with pytest.raises(ValueError, match=r"is called 'a/b'.*rename it"):
        to_zarr(field().rename(t="a/b"), tmp_path / "a.zarr")
    assert not (tmp_path / "a.zarr").exists()
    with pytest.raises(ReadOnlyError):
        to_zarr(field(), zardine.storage.LocalStore(tmp_path / "a.zarr", read_only=True))
    to_zarr(field(), tmp_path / "a.zarr")
    for dataset, text in (
        (field().isel(x=slice(3)), "different dimension sizes"),
        (field().rename(x="q"), "different dimension names"),
    ):
        with pytest.raises(ValueError, match=text):
            to_zarr(dataset[["t"]].drop_vars(["time", "height", "name"]), tmp_path / "a.zarr", mode="a")
    with pytest.raises(ValueError, match="non-pre-existing variables"):
        to_zarr(field().assign(new=1), tmp_path / "a.zarr", mode="r+")
    unknown = field()[["t"]].drop_vars(["height", "name"])
    with pytest.raises(KeyError, match="not all values"):
        to_zarr(unknown.assign_coords(time=unknown.time + np.timedelta64(9, "D")), tmp_path / "a.zarr", region="auto")
    with pytest.raises(ValueError, match="one after the other"):
        to_zarr(unknown.isel(time=[1, 3]), tmp_path / "a.zarr", region="auto")
    assert_identical(xr.open_zarr(tmp_path / "a.zarr").load(), field())


def test_appending_refuses_what_the_store_cannot_say(tmp_path: Path) -> None:
    place = tmp_path / "a.zarr"
    days = np.array(["2000-01-01", "2000-01-02"], "M8[ns]")
    before = xr.Dataset({"n": ("time", np.array([1, 2], "int16"))}, {"time": days})
    to_zarr(before, place)
    later = before.assign_coords(time=days + np.timedelta64(7, "D"))
    hours = before.assign_coords(time=days + np.timedelta64(180, "h"))
    with (
        pytest.warns(UserWarning, match="serialized faithfully"),
        pytest.raises(ValueError, match="'time' is stored as"),
    ):
        to_zarr(hours, place, append_dim="time")
    for values in ([1.5, 2], [1, 70000], [1, np.nan], np.array([1, 40000])):
        with pytest.raises(ValueError, match="'n': it is stored as int16, in which"):
            to_zarr(later.assign(n=("time", values)), place, append_dim="time")
    with pytest.raises(ValueError, match=r"has no \['n'\]"):
        to_zarr(later[["time"]], place, append_dim="time")
    assert_identical(xr.open_zarr(place).load(), before)
    to_zarr(later.assign(n=("time", [3.0, 4.0])), place, append_dim="time")
    expected = xr.concat([before, later.assign(n=("time", np.array([3, 4], "int16")))], "time")
    assert_identical(xr.open_dataset(place, engine="zardine").load(), expected)
    lazy = later.assign(n=("time", da.from_array(np.array([5.0, 6.5]))))
    with pytest.raises(ValueError, match=r"'n': it is stored as int16, in which 6\.5 would"):
        to_zarr(lazy.drop_vars("time"), place, region={"time": slice(0, 2)})


def test_errors_name_the_variable_and_the_region(tmp_path: Path) -> None:
    to_zarr(field(), tmp_path / "a.zarr")
    part = field()[["t"]].drop_vars(["time", "height", "name"]).isel(time=slice(3))
    with pytest.raises(ValueError, match=r"the region \{'time': 38:41\} has .*'time': 2"):
        to_zarr(part, tmp_path / "a.zarr", region={"time": slice(38, 41)})
    with pytest.raises(TypeError, match=r"variable 'a': attributes.o"):
        to_zarr(xr.Dataset({"a": ("x", [1], {"o": b"x"})}), tmp_path / "b.zarr")
    with pytest.raises(TypeError, match=r"variable 'a' has the dtype category of pandas.*astype"):
        to_zarr(xr.Dataset({"a": ("x", pd.Categorical(["p", "q"]))}), tmp_path / "b.zarr", mode="w")


def test_one_value_gets_no_shard(tmp_path: Path) -> None:
    group = to_zarr(field(), tmp_path / "a.zarr", chunks={"time": 4}, shards={"time": 8})
    assert group["height"].shards is None
    assert group["t"].shards == (8, 120, 110)


def test_a_coordinate_that_is_added_stays_one(tmp_path: Path) -> None:
    place = tmp_path / "a.zarr"
    to_zarr(xr.Dataset({"v": ("x", [1, 2, 3])}), place)
    to_zarr(xr.Dataset(coords={"one": ("x", [4, 5, 6])}), place, mode="a")
    to_zarr(xr.Dataset({"w": ("x", [1, 2, 3])}, coords={"two": ("x", [4, 5, 6])}), place, mode="a")
    to_zarr(xr.Dataset({"v": ("x", [1, 2, 3])}, coords={"three": 7, "four": ("x", [0, 0, 0])}), place, mode="a")
    to_zarr(xr.Dataset({"u": ("x", [1, 2, 3])}), place, mode="a")
    for engine in ("zardine", "zarr"):
        with xr.open_dataset(place, engine=engine) as found:  # type: ignore[arg-type]
            assert {*found.coords} == {"one", "two", "three", "four"}
            assert {*found.data_vars} == {"u", "v", "w"}
