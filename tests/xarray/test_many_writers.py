"""Several processes write one dataset at a time, and some of them die: nothing that was acknowledged is lost."""

from __future__ import annotations

import runpy
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import xarray as xr
from click.testing import CliRunner
from xarray.testing import assert_identical

import zardine
from effort import some
from zardine.cli.commands import root
from zardine.errors import UnfinishedError
from zardine.xarray import to_zarr

PROGRAM = Path(__file__).with_name("writer.py")
WRITER = runpy.run_path(str(PROGRAM))
APPENDED, COLUMNS, ROWS, TIMES, WRITERS, field = (
    WRITER[name] for name in ("APPENDED", "COLUMNS", "ROWS", "TIMES", "WRITERS", "field")
)


def start(work: str, store: Path, number: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, PROGRAM, work, store, str(number)])


def together(work: str, store: Path) -> None:
    running = [start(work, store, number) for number in range(WRITERS)]
    assert [each.wait(120) for each in running] == [0] * WRITERS


def killed(work: str, store: Path, number: int) -> None:
    assert start(work, store, number).wait(120) == -signal.SIGKILL


def test_regions_that_share_shards_and_chunks(tmp_path: Path) -> None:
    store = tmp_path / "r.zarr"
    encoding = {"t": {"chunks": (4, 10), "shards": (40, 30)}, "s": {"chunks": (4,), "shards": (40,)}}
    to_zarr(field(0, ROWS) * 0, store, encoding=encoding)
    together("regions", store)
    assert_identical(xr.open_zarr(store).load(), field(0, ROWS))
    assert zardine.verify(store)


def test_appends(tmp_path: Path) -> None:
    store = tmp_path / "a.zarr"
    encoding = {"t": {"chunks": (4, 10), "shards": (40, 30)}, "s": {"chunks": (4,)}, "time": {"chunks": (4,)}}
    to_zarr(field(0, 7), store, encoding=encoding)
    together("appends", store)
    for engine in ("zarr", "zardine"):
        found = xr.open_dataset(store, engine=engine).load()
        assert found.sizes["time"] == 7 + WRITERS * TIMES * APPENDED
        assert_identical(found.sortby("time").isel(time=slice(7)), field(0, 7))
        for number in range(WRITERS):
            first = 1000 * (number + 1)
            mine = found.isel(time=(found.time.values // 1000) == number + 1)
            assert_identical(mine.sortby("time"), field(first, TIMES * APPENDED))
    assert zardine.verify(store)


@pytest.mark.parametrize(("at", "before"), list(some([(6, True), (0, False), (0, True), (6, False)], 3)))
def test_a_group_whose_writer_was_killed_is_not_opened(tmp_path: Path, at: int, before: bool) -> None:
    store = tmp_path / "d.zarr"
    if before:
        to_zarr(field(500, 9), store)
    killed("dies", store, at)
    for opening in (
        zardine.open,
        zardine.open_group,
        lambda path: xr.open_dataset(path, engine="zardine"),
        lambda path: xr.open_datatree(path, engine="zardine"),
        lambda path: to_zarr(field(0, 3), path, mode="a"),
        lambda path: to_zarr(field(0, 3), path, region="auto"),
    ):
        with pytest.raises(UnfinishedError, match=r"mode='w'"):
            opening(store)
    result = CliRunner().invoke(root, ["info", str(store)])
    assert result.exit_code != 0
    assert "zardine.xarray.to_zarr" in result.output
    to_zarr(field(0, ROWS), store, mode="w")
    assert_identical(xr.open_zarr(store).load(), field(0, ROWS))


def test_what_a_killed_append_left_is_not_seen(tmp_path: Path) -> None:
    store = tmp_path / "k.zarr"
    to_zarr(field(0, ROWS), store)
    killed("dies appending", store, 6)
    for engine in ("zarr", "zardine"):
        assert_identical(xr.open_dataset(store, engine=engine).load(), field(0, ROWS))
    to_zarr(field(900, 5), store, append_dim="time")
    found = xr.open_zarr(store).load()
    assert_identical(found.isel(time=slice(ROWS)), field(0, ROWS))
    assert_identical(found.isel(time=slice(-5, None)), field(900, 5))
    assert found.t.shape == (found.sizes["time"], COLUMNS)
