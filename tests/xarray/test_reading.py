"""The engine ``"zardine"`` of xarray: what it opens, how it is asked, and that it reads only what is selected."""

from __future__ import annotations

import asyncio
import json
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr
import zarr

import zardine
from servers import servers
from zardine.errors import ChecksumError, DimensionNamesError, GroupNotFoundError, UnsupportedError
from zardine.storage import CountingStore, LocalStore, MemoryStore
from zardine.xarray import ZardineBackendEntrypoint

CHUNKS, SHARDS = {"time": 1, "y": 10, "x": 10}, {"time": 4, "y": 20, "x": 20}


def weather() -> xr.Dataset:
    values = np.arange(8 * 30 * 40, dtype="float32").reshape(8, 30, 40)
    values[0, 0, :5] = np.nan
    flags = np.where(np.arange(40) == 3, np.nan, np.arange(40) / 2)
    return xr.Dataset(
        {
            "t": (("time", "y", "x"), values, {"units": "K", "levels": [1, 2]}),
            "flag": ("x", flags, {"long_name": "a flag"}, {"_FillValue": -1, "scale_factor": 0.5, "dtype": "int16"}),
            "station": ("y", np.array([f"s{n}" for n in range(30)], dtype=object)),
            "count": ((), 3),
        },
        coords={"time": pd.date_range("2020-01-01", periods=8), "x": np.arange(40.0), "lat": ("y", np.arange(30))},
        attrs={"title": "weather"},
    )


def written(place: Any, zarr_format: int = 3, *, consolidated: bool = True, group: str | None = None) -> xr.Dataset:
    dataset = weather()
    if zarr_format == 3:
        zardine.xarray.to_zarr(dataset, place, chunks=CHUNKS, shards=SHARDS, consolidated=consolidated, group=group)
    else:
        zardine.xarray.to_zarr(
            dataset, place, chunks=CHUNKS, shards=None, consolidated=consolidated, group=group, zarr_format=2
        )
    return dataset


def opened(place: Any, **options: Any) -> xr.Dataset:
    return xr.open_dataset(place, engine="zardine", **options)


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("consolidated", [True, False])
def test_what_xarray_writes_is_read_as_xarray_reads_it(tmp_path: Path, zarr_format: int, consolidated: bool) -> None:
    path = tmp_path / "a.zarr"
    dataset = weather()
    dataset.to_zarr(path, zarr_format=zarr_format, consolidated=consolidated)
    ours = opened(path)
    theirs = xr.open_dataset(path, engine="zarr", consolidated=consolidated)
    xr.testing.assert_identical(ours, theirs)
    xr.testing.assert_identical(ours, dataset)
    assert ours.encoding == theirs.encoding
    for name, variable in theirs.variables.items():
        told, expected = ours[name].encoding, variable.encoding
        assert told.keys() == expected.keys()
        for key in expected.keys() - {"compressors", "filters", "serializer"}:
            np.testing.assert_equal(told[key], expected[key])
        for key in ("compressors", "filters"):
            if zarr_format == 3:
                assert [each["name"] for each in told[key]] == [each.to_dict()["name"] for each in expected[key]]
            else:
                assert told[key] == expected[key]


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("consolidated", [True, False])
def test_arrays_without_a_name(tmp_path: Path, zarr_format: int, consolidated: bool) -> None:
    array = xr.DataArray([1, 2, 3], dims="x")
    array.to_zarr(tmp_path / "a.zarr", zarr_format=zarr_format, consolidated=consolidated)
    zardine.xarray.to_zarr(array, tmp_path / "b.zarr", zarr_format=zarr_format, consolidated=consolidated)
    for name in ("a.zarr", "b.zarr"):
        xr.testing.assert_identical(xr.open_dataarray(tmp_path / name, engine="zardine"), array)
    xr.testing.assert_identical(xr.open_dataarray(tmp_path / "b.zarr", engine="zarr"), array)


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_what_was_read_is_written_again_by_either_program(tmp_path: Path, zarr_format: int) -> None:
    dataset = written(tmp_path / "a.zarr", zarr_format)
    again = opened(tmp_path / "a.zarr")
    if zarr_format == 2:  # zarr-python, as it wrote the texts itself, cannot read what xarray makes of them
        again, dataset = again.drop_vars("station"), dataset.drop_vars("station")
    again.to_zarr(tmp_path / "b.zarr", zarr_format=zarr_format)
    zardine.xarray.to_zarr(again, tmp_path / "c.zarr", zarr_format=zarr_format)
    for name in ("b.zarr", "c.zarr"):
        for engine in ("zarr", "zardine"):
            result = xr.open_dataset(tmp_path / name, engine=engine)
            xr.testing.assert_identical(result, dataset)
            assert result.t.encoding["chunks"] == (1, 10, 10)
            assert result.t.encoding["shards"] == ((4, 20, 20) if zarr_format == 3 else None)


def test_chunks_of_dask_are_shards_or_inner_chunks(tmp_path: Path) -> None:
    dataset = written(tmp_path / "a.zarr")
    shards = opened(tmp_path / "a.zarr", chunks={})
    assert shards.t.chunks == ((4, 4), (20, 10), (20, 20))
    inner = opened(tmp_path / "a.zarr", chunks={}, chunk_by="chunks")
    assert inner.t.chunks == ((1,) * 8, (10,) * 3, (10,) * 4)
    xr.testing.assert_identical(shards.compute(), dataset)
    xr.testing.assert_identical(inner.compute(), dataset)
    with pytest.raises(ValueError, match="chunk_by is 'shards' or 'chunks', not 'shard'"):
        opened(tmp_path / "a.zarr", chunk_by="shard")


SELECTIONS: list[Callable[[xr.DataArray], xr.DataArray]] = [
    lambda t: t[3, 4, 5],
    lambda t: t[::-2, 5:25:7, -1],
    lambda t: t[[5, 1, 1], :, [3, 30]],
    lambda t: t[:, 0:0],
    lambda t: t.isel(y=xr.DataArray([3, 29, 3], dims="p"), x=xr.DataArray([0, 39, 5], dims="p")),
    lambda t: t.isel(y=xr.DataArray([[3, 29], [0, 3]], dims=("p", "q")), x=xr.DataArray([0, 39], dims="q")),
    lambda t: t.isel(x=t.x.values > 35),
    lambda t: t[2:6][1].isel(x=[7, 2])[::-1],
    lambda t: t.sel(time="2020-01-03", x=[3.0, 17.0]),
    lambda t: t.mean("time"),
    lambda t: t.transpose("x", "time", "y")[5, ::-1],
]


@pytest.mark.parametrize("number", range(len(SELECTIONS)))
def test_every_selection(tmp_path: Path, number: int) -> None:
    dataset = written(tmp_path / "a.zarr")
    select = SELECTIONS[number]
    xr.testing.assert_identical(select(opened(tmp_path / "a.zarr").t), select(dataset.t))
    loaded = asyncio.run(select(opened(tmp_path / "a.zarr").t).load_async())
    xr.testing.assert_identical(loaded, select(dataset.t))


def test_only_what_is_selected_is_read() -> None:
    store = CountingStore(MemoryStore())
    dataset = written(store)
    store.reset()
    result = opened(store, drop_variables=["time", "x"])
    assert store.reset().reads == 1  # the document that has all others
    point = result.t[5, 15, 25]
    assert store.counts.reads == 0
    assert point.item() == dataset.t[5, 15, 25].item()
    counts = store.reset()
    assert counts.reads == 1 + 1 + 1  # whether the array is still what is said of it, the index of a shard, a chunk
    assert counts.bytes_read < 2000
    result.t[5, 15, 26].variable.load()
    assert store.reset().reads == 1


def test_opening_many_variables_costs_one_request() -> None:
    store = CountingStore(MemoryStore())
    zardine.xarray.to_zarr(xr.Dataset({f"v{n}": ("x", np.zeros(3)) for n in range(100)}), store)
    store.reset()
    assert len(opened(store)) == 100
    assert store.counts.reads == 1


def test_a_tree_costs_each_document_once() -> None:
    store = CountingStore(MemoryStore())
    leaf = xr.Dataset({"a": ("x", [1, 2])})
    tree = xr.DataTree.from_dict({"/": leaf, "/u": leaf, "/u/v": leaf, "/w": xr.Dataset()})
    zardine.xarray.to_zarr(tree, store)
    store.reset()
    result = xr.open_datatree(store, engine="zardine")  # type: ignore[arg-type]
    assert store.reset().reads == 1
    xr.testing.assert_identical(result, tree)
    store.reset()
    groups = xr.open_groups(store, engine="zardine", group="u", consolidated=False)  # type: ignore[arg-type]
    assert [*groups] == [".", "v"]
    assert max(store.counts.keys.values()) <= 2
    below = xr.open_datatree(store, engine="zardine", group="u")  # type: ignore[arg-type]
    xr.testing.assert_identical(below, xr.DataTree.from_dict({"/": leaf, "/v": leaf}))


def test_zip_memory_groups_and_places_in_stores(tmp_path: Path) -> None:
    dataset = written(tmp_path / "a.zarr.zip")
    xr.testing.assert_identical(opened(tmp_path / "a.zarr.zip"), dataset)
    xr.testing.assert_identical(xr.open_dataset(tmp_path / "a.zarr.zip"), dataset)  # which no other engine takes
    store = MemoryStore()
    written(store, group="deep/down")
    group = zardine.open_group(store, mode="r")
    for place, options in (
        (store, {"group": "deep/down"}),
        (group, {"group": "/deep/down/"}),
        (group["deep/down"], {}),
    ):
        result = xr.open_dataset(place, **options)  # no engine: nobody else knows what these are
        xr.testing.assert_identical(result, dataset)
        assert result.encoding["source"] == f"{store}/deep/down"
    xr.testing.assert_identical(zardine.xarray.open(store, group="deep/down", chunks={}).compute(), dataset)


def test_stores_of_zarr_python(tmp_path: Path) -> None:
    store = zarr.storage.MemoryStore()
    dataset = weather()
    dataset.to_zarr(store)
    xr.testing.assert_identical(opened(store), dataset)
    dataset.to_zarr(tmp_path / "a.zarr")
    xr.testing.assert_identical(opened(zarr.storage.LocalStore(tmp_path / "a.zarr")), dataset)

    class Other(zarr.storage.MemoryStore):
        pass

    with pytest.raises(UnsupportedError, match=r"none of zarr-python's own; give its path or URL"):
        opened(Other())


def test_s3_and_http(tmp_path: Path) -> None:
    place, options = f"s3://{servers.new_bucket()}/a.zarr", {"storage_options": servers.s3_options()}
    dataset = weather()
    zardine.xarray.to_zarr(dataset, place, chunks=CHUNKS, shards=SHARDS, **options)
    result = opened(place, **options)
    assert result.encoding["source"] == place
    xr.testing.assert_identical(pickle.loads(pickle.dumps(result)), dataset)
    script = "import http.server as h, sys; s = h.ThreadingHTTPServer(('127.0.0.1', 0), h.SimpleHTTPRequestHandler)\n"
    script += "print(s.server_port, flush=True); s.serve_forever()"
    written(tmp_path / "a.zarr")
    command = [sys.executable, "-c", script]
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as server:
        try:
            assert server.stdout is not None
            url = f"http://127.0.0.1:{int(server.stdout.readline())}/a.zarr"
            xr.testing.assert_identical(opened(url), dataset)
        finally:
            server.terminate()


def test_older_formats() -> None:
    group = zardine.create_group(None, zarr_format=2)
    names = {"_ARRAY_DIMENSIONS": ["x"], "_nczarr_attr": {}, "units": "m"}
    array = group.create_array("a", shape=(4,), chunks=(2,), dtype="int32", fill_value=7, attributes=names)
    array[:2] = [1, 7]
    masked = opened(group)
    np.testing.assert_array_equal(masked.a, [1, np.nan, np.nan, np.nan])
    assert masked.a.attrs == {"units": "m"}
    np.testing.assert_array_equal(opened(group, use_zarr_fill_value_as_mask=False).a, [1, 7, 7, 7])
    oldest = zardine.create_array(group.store, name="b", shape=(3,), dtype="f8", zarr_format=1, attributes=names)
    oldest[:] = 5
    both = opened(zardine.open_group(group.store, zarr_format=2), drop_variables="a")
    assert both.b.dims == ("x",)
    np.testing.assert_array_equal(both.b, [5, 5, 5])


@pytest.mark.parametrize(
    ("place", "document"),
    [
        (".zattrs", {"_nczarr_array": {"dimension_references": ["/deep/x"], "storage": "chunked"}}),
        (".zarray", {"_NCZARR_ARRAY": {"dimrefs": ["/x"], "storage": "chunked"}}),
    ],
)
def test_dimensions_as_netcdf_writes_them(tmp_path: Path, place: str, document: dict[str, Any]) -> None:
    group = zardine.create_group(tmp_path / "a.zarr", zarr_format=2)
    group.create_array("a", shape=(3,), dtype="int8", attributes={"units": "m"})
    path = tmp_path / "a.zarr" / "a" / place
    path.write_text(json.dumps(json.loads(path.read_text()) | document))
    result = opened(tmp_path / "a.zarr")
    assert result.a.dims == ("x",)
    assert result.a.attrs == ({"units": "m"})


def test_names_of_dimensions_in_v3() -> None:
    group = zardine.create_group(None)
    group.create_array("a", shape=(3, 2), dtype="int8", attributes={"_ARRAY_DIMENSIONS": ["y", "x"], "k": 1})
    assert opened(group).a.dims == ("y", "x")
    assert opened(group).a.attrs == {"k": 1}
    group.create_array("b", shape=(3,), dtype="int8")
    with pytest.raises(DimensionNamesError, match=r"/b: .*missing `dimension_names`.*drop_variables"):
        opened(group)
    assert [*opened(group, drop_variables="b")] == ["a"]
    group.create_array("b", shape=(3, 2), dtype="int8", dimension_names=("y", None), overwrite=True)
    with pytest.raises(KeyError, match=r"has 2 dimensions, and the names \('y', None\)"):
        opened(group)


@pytest.mark.parametrize(
    ("dtype", "stored", "expected"),
    [
        ("float32", "AAAAAAAAwME=", -536870912.0),
        ("float64", "AAAAAAAA+H8=", np.nan),
        ("float64", -999, -999.0),
        ("float64", "NaN", np.nan),
        ("int16", -5, -5),
        ("complex64", ["AAAAAAAA8D8=", "AAAAAAAAAEA="], 1 + 2j),
    ],
)
def test_fill_values_of_v3(dtype: str, stored: Any, expected: Any) -> None:
    group = zardine.create_group(None)
    group.create_array("a", shape=(3,), dtype=dtype, dimension_names=("x",), attributes={"_FillValue": stored})
    np.testing.assert_equal(opened(group, mask_and_scale=False).a.attrs["_FillValue"], expected)


@pytest.mark.parametrize(("dtype", "stored"), [("float32", "?"), ("float32", [1]), ("int8", "AA=="), ("S2", "é")])
def test_fill_values_that_are_none_say_where(dtype: str, stored: Any) -> None:
    group = zardine.create_group(None)
    group.create_array("a", shape=(3,), dtype=dtype, dimension_names=("x",), attributes={"_FillValue": stored})
    with pytest.raises(zardine.errors.MetadataError, match=r"/a are invalid\n  - _FillValue: "):
        opened(group)


def test_rectilinear_chunks() -> None:
    group = zardine.create_group(None)
    array = group.create_array("a", shape=(6, 4), chunks=[[1, 2, 3], [2, 2]], dtype="int8", dimension_names=("y", "x"))
    array[:] = 3
    result = opened(group, chunks={})
    assert result.a.chunks == ((1, 2, 3), (2, 2))
    assert result.a.encoding["chunks"] == ((1, 2, 3), 2)
    assert int(result.a.sum().compute()) == 72


def test_damage_is_an_error_that_says_where(tmp_path: Path) -> None:
    written(tmp_path / "a.zarr")
    result = opened(tmp_path / "a.zarr")
    (shard,) = tmp_path.glob("a.zarr/t/c/0/0/0")
    data = bytearray(shard.read_bytes())
    data[5] ^= 255
    shard.write_bytes(data)
    with pytest.raises(ChecksumError, match=r"array 't', chunk \(0, 0, 0\)"):
        result.t.load()
    with pytest.raises(ChecksumError):
        opened(tmp_path / "a.zarr", chunks={}).t.compute()
    assert result.t[7, 29, 39].item() == weather().t[7, 29, 39].item()


def test_what_is_wrong_is_said(tmp_path: Path) -> None:
    written(tmp_path / "a.zarr", consolidated=False)
    with pytest.raises(FileNotFoundError, match=r"no group is stored at .*nothing\.zarr"):
        opened(tmp_path / "nothing.zarr")
    with pytest.raises(GroupNotFoundError, match=r"no group is stored at .*/deep"):
        opened(tmp_path / "a.zarr", group="deep")
    with pytest.raises(ValueError, match="is not consolidated"):
        opened(tmp_path / "a.zarr", consolidated=True)
    with pytest.raises(TypeError, match=r"open_dataset\(\) got .* 'gruop'; did you mean 'group'\?"):
        opened(tmp_path / "a.zarr", gruop="deep")
    with pytest.raises(ValueError, match="opens to read: mode is 'r', not 'a'"):
        opened(tmp_path / "a.zarr", mode="a")
    with pytest.raises(ValueError, match="see open_array"):
        opened(tmp_path / "a.zarr" / "t")


def test_no_store_is_taken_from_another_engine(tmp_path: Path) -> None:
    engine = ZardineBackendEntrypoint()
    assert not engine.guess_can_open(tmp_path / "a.zarr")  # the engine "zarr" is installed here
    assert not engine.guess_can_open("https://example.org/a.nc")
    assert not engine.guess_can_open(b"CDF")
    assert engine.guess_can_open("s3://bucket/a.zarr.zip")
    assert engine.guess_can_open(LocalStore(tmp_path))


def test_zarr_python_is_not_imported(tmp_path: Path) -> None:
    written(tmp_path / "a.zarr")
    script = f"""
import sys
import zardine
from zardine import *
assert not {{"zarr", "xarray", "dask"}} & sys.modules.keys()
import xarray as xr
data = xr.open_dataset({str(tmp_path / "a.zarr")!r}, engine="zardine")
data.load()
assert "zarr" not in sys.modules
sys.modules["zarr"] = None
sys.modules["xarray"] = None
"""
    subprocess.run([sys.executable, "-c", script], check=True)


def test_without_xarray_one_sentence_says_what_to_install() -> None:
    script = "import sys; sys.modules['xarray'] = None; import zardine.xarray; zardine.xarray.open"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.stderr.splitlines()[-1] == (
        "ImportError: zardine.xarray needs the package xarray: pip install 'zardine[xarray]'"
    )


def test_a_cluster_of_dask_reads(tmp_path: Path) -> None:
    from distributed import Client, LocalCluster

    dataset = written(tmp_path / "a.zarr")
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster):
        xr.testing.assert_identical(opened(tmp_path / "a.zarr", chunks={}).compute(), dataset)
