"""Files on S3 and on web servers: read by few ranges; conversions of them that are cut off, and go on."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import h5py
import netCDF4
import numpy as np
import pytest

import zardine
import zardine.sources
from servers import servers
from sources.same_elements import equal
from zardine.errors import PlanError
from zardine.hierarchy.find import UNFINISHED
from zardine.jobs import Plan
from zardine.stores.object.urls import object_store_of_url

VALUES = np.cumsum(np.random.default_rng(3).integers(-9, 9, (400, 90, 80)), axis=0).astype("<i4")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two files of about 11 MB: HDF5 in 400 chunks beside other groups, and NetCDF 3."""
    folder = tmp_path_factory.mktemp("far")
    with h5py.File(folder / "a.h5", "w") as file:
        for i in range(20):
            file.create_dataset(f"others/o{i}", data=np.arange(100), chunks=(10,)).attrs["number"] = i
        file.create_dataset("a", data=VALUES, chunks=(10, 90, 80))
        file.create_dataset("packed", data=VALUES[:40], chunks=(1, 90, 80), compression="gzip")
    with netCDF4.Dataset(folder / "b.nc", "w", format="NETCDF3_CLASSIC") as file:
        for name, length in zip("zyx", VALUES.shape, strict=True):
            file.createDimension(name, length)
        file.createVariable("a", "i4", tuple("zyx"))[:] = VALUES
        file.createVariable("z", "f8", ("z",))[:] = np.arange(400.0)
    return folder


class Ranges(BaseHTTPRequestHandler):
    """Answers requests for ranges of files, as web servers do."""

    def __init__(self, folder: Path, asked: list[str], *rest: Any) -> None:
        self.folder, self.asked = folder, asked
        super().__init__(*rest)

    def log_message(self, *_: Any) -> None:
        pass

    def do_HEAD(self) -> None:
        self.answer(with_body=False)

    def do_GET(self) -> None:
        self.answer(with_body=True)

    def answer(self, *, with_body: bool) -> None:
        wanted = self.headers.get("Range", "")
        self.asked.append(wanted)
        path = self.folder / self.path.strip("/")
        if not path.is_file():
            self.send_error(404)
            return
        data = path.read_bytes()
        start, stop = 0, len(data)
        if wanted:
            first, _, last = wanted.removeprefix("bytes=").partition("-")
            start, stop = int(first), min(stop, int(last or stop) + 1)
        self.send_response(206 if wanted else 200)
        self.send_header("Content-Length", str(stop - start))
        self.send_header("ETag", '"one"')
        self.send_header("Last-Modified", "Mon, 01 Jan 2024 00:00:00 GMT")
        self.send_header("Accept-Ranges", "bytes")
        if wanted:
            self.send_header("Content-Range", f"bytes {start}-{stop - 1}/{len(data)}")
        self.end_headers()
        if with_body:
            self.wfile.write(data[start:stop])


@pytest.fixture
def web(folder: Path) -> Iterator[tuple[str, list[str]]]:
    asked: list[str] = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Ranges, folder, asked))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}", asked
    server.shutdown()
    server.server_close()


def test_on_a_web_server(web: tuple[str, list[str]], tmp_path: Path) -> None:
    url, asked = web
    group = zardine.sources.open(f"{url}/a.h5")
    assert isinstance(group, zardine.Group)
    assert len(list(group["others"].array_keys())) == 20
    assert len(asked) <= 6
    asked.clear()
    assert equal(group["a"][200:205, 3], VALUES[200:205, 3])
    assert len(asked) <= 3
    asked.clear()
    made = zardine.convert(f"{url}/b.nc", tmp_path / "made", verify=True)
    assert isinstance(made, zardine.Group)
    assert equal(made["a"][...], VALUES)
    assert len(asked) < 60
    with pytest.raises(FileNotFoundError, match=r"nothing\.nc does not exist"):
        zardine.convert(f"{url}/nothing.nc", tmp_path / "other")


def test_on_s3(folder: Path, tmp_path: Path) -> None:
    bucket, options = servers.new_bucket(), servers.s3_options()
    held = object_store_of_url("s3", bucket, options)
    for name in ("a.h5", "b.nc"):
        held.set(name, (folder / name).read_bytes())
    servers.s3().log()
    group = zardine.sources.open(f"s3://{bucket}/a.h5", storage_options=options)
    assert isinstance(group, zardine.Group)
    assert len(servers.s3().log()) <= 6
    assert equal(group["packed"][5], VALUES[5])
    assert len(servers.s3().log()) <= 4
    made = zardine.convert(
        f"s3://{bucket}/a.h5",
        f"s3://{bucket}/made.zarr",
        storage_options=options,
        target_options=options,
        filters="keep",
        compressors="keep",
    )
    assert isinstance(made, zardine.Group)
    assert equal(made["a"][...], VALUES)
    assert equal(made["packed"][...], VALUES[:40])
    found = zardine.convert(f"s3://{bucket}/b.nc", tmp_path / "made", storage_options=options)
    assert isinstance(found, zardine.Group)
    assert equal(found["a"][100:110], VALUES[100:110])


KILLED = """
import os, signal, sys, zardine
source, target, after = sys.argv[1:]
def progress(done, total):
    if done >= total / int(after):
        os.kill(os.getpid(), signal.SIGKILL)
zardine.convert(source, target, shards=(40, 90, 80), chunks=(10, 90, 80), progress=progress)
"""


@pytest.mark.parametrize("name", ["a.h5", "b.nc"])
def test_a_killed_conversion_goes_on(folder: Path, tmp_path: Path, name: str) -> None:
    target = tmp_path / "made"
    command = [sys.executable, "-c", KILLED, str(folder / name), str(target), "4"]
    assert subprocess.run(command, env=os.environ, check=False).returncode == -signal.SIGKILL
    assert (target / UNFINISHED).exists()
    assert list(target.rglob("c/*/*/*"))
    seen: list[tuple[int, int]] = []
    made = zardine.convert(
        folder / name,
        target,
        shards=(40, 90, 80),
        chunks=(10, 90, 80),
        verify=True,
        progress=lambda done, total: seen.append((done, total)),
    )
    assert isinstance(made, zardine.Group)
    assert equal(made["a"][...], VALUES)
    assert seen[-1][0] == seen[-1][1]
    assert not list(target.rglob("__zardine"))


def test_a_file_that_changed_between_two_runs(folder: Path, tmp_path: Path) -> None:
    source, target = tmp_path / "a.h5", tmp_path / "made"
    source.write_bytes((folder / "a.h5").read_bytes())
    command = [sys.executable, "-c", KILLED, str(source), str(target), "4"]
    assert subprocess.run(command, env=os.environ, check=False).returncode == -signal.SIGKILL
    with h5py.File(source, "r+") as file:
        file["a"][3] = 0
    with pytest.raises(zardine.errors.NodeExistsError, match="an unfinished conversion"):
        zardine.convert(source, target, shards=(40, 90, 80), chunks=(10, 90, 80))
    made = zardine.convert(source, target, shards=(40, 90, 80), chunks=(10, 90, 80), overwrite=True)
    assert isinstance(made, zardine.Group)
    assert (made["a"][3] == 0).all()


@pytest.mark.parametrize(("name", "path", "steps"), [("a.h5", "packed", 40), ("b.nc", "a", 400)])
def test_in_plans(web: tuple[str, list[str]], tmp_path: Path, name: str, path: str, steps: int) -> None:
    """A file behind a URL as a plan in a file: in parts, and by processes, with progress."""
    target, seen = tmp_path / "made", list[tuple[int, int]]()
    options: Any = {"source_path": path, "chunks": (10, 90, 80), "shards": (20, 90, 80), "verify": True}
    planned = zardine.plan_convert(f"{web[0]}/{name}", target, **options)
    planned.save(tmp_path / "plan.json")
    plan = Plan.load(tmp_path / "plan.json")
    assert plan.id == planned.id
    assert not target.exists()
    plan.run_part(stage=1)
    plan.run_part(stage=2, part=(1, 2))
    assert plan.status().state == "begun"
    assert Plan.load(tmp_path / "plan.json").run(workers=2, progress=lambda done, total: seen.append((done, total)))
    assert seen == sorted(seen)
    assert seen[-1][0] == seen[-1][1]
    assert equal(zardine.open_array(target)[...], VALUES[:steps])
    assert not list(target.rglob("__zardine"))


@pytest.fixture
def half_done(folder: Path, tmp_path: Path) -> Path:
    """The path of a plan of which a half is done; beside it are source and target."""
    shutil.copy(folder / "a.h5", tmp_path / "a.h5")
    plan = zardine.plan_convert(tmp_path / "a.h5", tmp_path / "made", chunks=(10, 90, 80), shards=(40, 90, 80))
    plan.save(tmp_path / "plan.json")
    plan.run_part(stage=1)
    plan.run_part(stage=2, part=(1, 2))
    return tmp_path / "plan.json"


def test_a_plan_of_a_file_in_which_elements_change(half_done: Path, tmp_path: Path) -> None:
    """What is done is done again, as with any source."""
    with h5py.File(tmp_path / "a.h5", "r+") as file:
        file["a"][3] = 0
    assert Plan.load(half_done).run()
    made = zardine.open_array(tmp_path / "made" / "a")
    assert (made[3] == 0).all()
    assert equal(made[4:], VALUES[4:])


def test_a_plan_of_a_file_that_becomes_another(half_done: Path, tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "r+") as file:
        file["more"] = VALUES[0]
    with pytest.raises(PlanError, match=r"that of /more is new.*begin anew with overwrite=True"):
        Plan.load(half_done).run()
    assert not (tmp_path / "made" / "zarr.json").exists()
    Plan.load(half_done).cancel()
    assert not [each for each in (tmp_path / "made").rglob("*") if each.is_file()]


def test_a_target_that_others_write(half_done: Path, folder: Path, tmp_path: Path) -> None:
    """Another conversion to a place where one is under way is refused; the same one goes on with it."""
    target = tmp_path / "made"
    before = {each: each.read_bytes() for each in target.rglob("*") if each.is_file()}
    for call in (zardine.convert, zardine.plan_convert):
        with pytest.raises(zardine.errors.NodeExistsError, match=r"is an unfinished conversion of .*a\.h5"):
            call(folder / "b.nc", target)
    assert {each: each.read_bytes() for each in target.rglob("*") if each.is_file()} == before
    assert Plan.load(half_done).run()
    assert Plan.load(half_done).run()
    assert equal(zardine.open_array(target / "a")[...], VALUES)
