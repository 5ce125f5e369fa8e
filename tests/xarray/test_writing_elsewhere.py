"""``zardine.xarray.to_zarr`` on a server of S3, into an archive, into memory, and from a cluster of Dask."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from distributed import Client, LocalCluster
from xarray.testing import assert_identical

import zardine
from servers import servers
from zardine.storage import MemoryStore
from zardine.xarray import to_zarr

VALUES = np.random.default_rng(3).random((120, 90))


def field(first: int = 0, rows: int = 120) -> xr.Dataset:
    return xr.Dataset(
        {"v": (("y", "x"), VALUES[:rows]), "w": (("y", "x"), VALUES[:rows] * 2)}, {"y": np.arange(first, first + rows)}
    )


def test_a_server_of_s3() -> None:
    url = f"s3://{servers.new_bucket()}/a.zarr"
    options = servers.s3_options()
    encoding = {"v": {"shards": (60, 90), "chunks": (20, 30)}}
    to_zarr(field().chunk(y=50, x=40), url, storage_options=options, encoding=encoding, verify=True)
    to_zarr(field(120, 30).chunk(y=7), url, storage_options=options, append_dim="y")
    to_zarr(field(60, 31) + 1, url, storage_options=options, region="auto")
    found = xr.open_dataset(url, engine="zardine", storage_options=options).load()
    expected = xr.concat([field(), field(120, 30)], "y")
    for name in ("v", "w"):
        expected[name][60:91] = field(60, 31)[name] + 1
    assert_identical(found, expected)
    to_zarr(field(), url, storage_options=options, mode="w")
    assert_identical(xr.open_dataset(url, engine="zardine", storage_options=options).load(), field())


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_memory(zarr_format: int) -> None:
    store = MemoryStore()
    group = to_zarr(field().chunk(y=50), store, zarr_format=zarr_format)
    assert_identical(xr.open_dataset(group, engine="zardine").load(), field())
    to_zarr(field() * 2, store, mode="w", group="below")
    assert_identical(xr.open_dataset(store, engine="zardine", group="below").load(), field() * 2)


def test_an_archive(tmp_path: Path) -> None:
    to_zarr(field(), tmp_path / "a.zarr.zip")
    assert_identical(xr.open_dataset(tmp_path / "a.zarr.zip", engine="zardine").load(), field())


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with (
        LocalCluster(n_workers=2, threads_per_worker=2, processes=True, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        yield client


def test_a_cluster(tmp_path: Path, client: Client) -> None:
    store = tmp_path / "a.zarr"
    encoding = {name: {"shards": (60, 90), "chunks": (20, 30)} for name in ("v", "w")}
    calls: list[tuple[int, int]] = []
    to_zarr(field().chunk(y=25, x=40), store, encoding=encoding, progress=lambda *call: calls.append(call))
    assert calls[0][0] == 0
    assert calls[-1][0] == calls[-1][1] > 1
    assert_identical(xr.open_zarr(store).load(), field())
    later = to_zarr((field() + 1).chunk(y=35), store, mode="w", encoding=encoding, compute=False)
    client.compute(later).result()
    to_zarr(field(120, 33).chunk(y=11) + 1, store, append_dim="y")
    assert_identical(xr.open_zarr(store).load(), xr.concat([field() + 1, field(120, 33) + 1], "y"))
    assert zardine.verify(store)
