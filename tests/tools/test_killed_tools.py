"""Tools that are killed at every call that changes a file: the array reads as it should, and the next call finishes."""

from __future__ import annotations

import contextlib
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import zardine
from effort import SOAK
from tools.kill_points import every_point, run
from tools.test_compact import spread
from tools.test_repair import VALUES, make, read_by_others
from zardine.errors import ArrayChangedError, ContainsArrayError, NodeNotFoundError

RESHARDS = {
    "moved": "zardine.reshard(path, shards=(20, 10), grace=0)",
    "split": "zardine.reshard(path, shards=None, grace=0)",
    "decoded": "zardine.reshard(path, shards=(20, 20), chunks=(5, 4), grace=0)",
}


@pytest.mark.parametrize("kind", RESHARDS)
def test_reshard(tmp_path: Path, kind: str) -> None:
    start = tmp_path / "start.zarr"
    make(str(start))
    path = str(tmp_path / "a.zarr")

    def look(at: int) -> None:
        np.testing.assert_array_equal(zardine.open_array(path, mode="r")[...], VALUES)
        assert zardine.verify(path).faults == ()
        if at % 5 == 1:
            zardine.repair(path, older_than=0)  # whatever it was at: others can read what is there
            for found in read_by_others(Path(path)):
                np.testing.assert_array_equal(found, VALUES)
        if at % 5 == 0:
            eval(RESHARDS[kind], {"zardine": zardine, "path": path})
            zardine.repair(path, older_than=0)
            for found in (zardine.open_array(path, mode="r")[...], *read_by_others(Path(path))):
                np.testing.assert_array_equal(found, VALUES)
            report = zardine.verify(path)
            assert report.faults == report.notes == ()
            names = {file.name for file in Path(path).rglob("*") if file.is_file()}
            assert not any(name.endswith((".tmp", "reshard.json")) for name in names)

    points = every_point(tmp_path, start, RESHARDS[kind], look, 1 if SOAK else 11 if kind == "moved" else 31)
    assert points > 30


def test_repair(tmp_path: Path) -> None:
    start = tmp_path / "start.zarr"
    make(str(start))
    file = start / "c/0/0"
    file.write_bytes(file.read_bytes() + b"torn")
    call = "zardine.repair(path)"

    def look(at: int) -> None:
        path = str(tmp_path / "a.zarr")
        np.testing.assert_array_equal(zardine.open_array(path, mode="r")[10:], VALUES[10:])
        zardine.repair(path, older_than=0)
        kept = Path(path) / "__zardine/damaged/c/0"
        assert (kept / "0").read_bytes() == file.read_bytes()
        assert not (kept / "0~1").exists()
        for found in read_by_others(Path(path)) if at % 4 == 0 else [zardine.open_array(path)[...]]:
            np.testing.assert_array_equal(found, VALUES)
        assert zardine.verify(path)

    assert every_point(tmp_path, start, call, look, 1 if SOAK else 3) > 8


def test_compact(tmp_path: Path) -> None:
    start = tmp_path / "start.zarr"
    spread(start, make(str(start)))

    def look(at: int) -> None:
        path = str(tmp_path / "a.zarr")
        assert zardine.verify(path).faults == ()
        zardine.repair(path, older_than=0)
        for found in (zardine.open_array(path, mode="r")[...], *read_by_others(Path(path))):
            np.testing.assert_array_equal(found, VALUES)
        zardine.compact(path)
        assert zardine.verify(path).notes == ()

    assert every_point(tmp_path, start, "zardine.compact(path)", look, 1 if SOAK else 2) > 5


def test_reshard_to_another_place(tmp_path: Path) -> None:
    """There is no array there before all of it is; the same call finishes it."""
    start = tmp_path / "start.zarr"
    make(str(start))
    call = "zardine.reshard(path, shards=(20, 10), target=path + '/../b.zarr')"
    target = tmp_path / "b.zarr"

    def look(at: int) -> None:
        whole = (target / "zarr.json").exists()
        with contextlib.suppress(NodeNotFoundError):
            zardine.repair(target, older_than=0)
        try:
            eval(call, {"zardine": zardine, "path": str(tmp_path / "a.zarr")})
        except ContainsArrayError:
            assert whole
        for found in (zardine.open_array(target, mode="r")[...], *(read_by_others(target) if at % 3 == 0 else ())):
            np.testing.assert_array_equal(found, VALUES)
        assert zardine.verify(target).faults == zardine.verify(target).notes == ()
        shutil.rmtree(target)

    assert every_point(tmp_path, start, call, look, 1 if SOAK else 11) > 10


def test_convert(tmp_path: Path) -> None:
    start = tmp_path / "start.zarr"
    make(str(start))
    call = "zardine.convert(path, path + '/../b.zarr', zarr_format=2, shards=None)"
    target = tmp_path / "b.zarr"

    def look(at: int) -> None:
        with contextlib.suppress(ContainsArrayError):
            eval(call, {"zardine": zardine, "path": str(tmp_path / "a.zarr")})
        np.testing.assert_array_equal(zardine.open_array(target, mode="r")[...], VALUES)
        if at % 3 == 0:
            import zarr

            np.testing.assert_array_equal(zarr.open_array(target, mode="r")[...], VALUES)
        zardine.repair(target, older_than=0)
        assert zardine.verify(target).faults == zardine.verify(target).notes == ()
        shutil.rmtree(target)

    assert every_point(tmp_path, start, call, look, 1 if SOAK else 17) > 10


def test_reshard_in_a_process_of_its_own(tmp_path: Path) -> None:
    """Nothing of the killed process is left in this one: locks are dropped with it."""
    make(str(tmp_path / "a.zarr"))
    path = str(tmp_path / "a.zarr")
    for at in (3, 17, 31):
        assert run(tmp_path, at, RESHARDS["moved"]) in (-signal.SIGKILL, 0)
        np.testing.assert_array_equal(zardine.open_array(path, mode="r")[...], VALUES)
    zardine.reshard(path, shards=(20, 10), grace=0)
    assert zardine.open_array(path).shards == (20, 10)


READER = """
import sys, time
import numpy as np, zardine
from zardine.errors import ArrayChangedError, ContainsArrayError, NodeNotFoundError
path, seconds = sys.argv[1], float(sys.argv[2])
values = np.arange(40000, dtype="i4").reshape(200, 200)
end = time.monotonic() + seconds
reads = changed = 0
array = zardine.open_array(path, mode="r")
rng = np.random.default_rng()
while time.monotonic() < end:
    i, j = rng.integers(0, 180, 2)
    try:
        found = array[i : i + 20, j : j + 20]
    except ArrayChangedError:
        changed += 1
        array = zardine.open_array(path, mode="r")
        continue
    assert (found == values[i : i + 20, j : j + 20]).all(), (i, j)
    reads += 1
print(reads, changed)
"""


def test_readers_meanwhile_see_before_or_after(tmp_path: Path) -> None:
    """Processes that read all the time, while the array is resharded to and fro; one is opened once and for all."""
    path = str(tmp_path / "a.zarr")
    values = np.arange(40000, dtype="i4").reshape(200, 200)
    zardine.create_array(path, shape=(200, 200), chunks=(10, 10), shards=(100, 50), dtype="i4")[...] = values
    seconds = 60 if SOAK else 4
    readers = [
        subprocess.Popen([sys.executable, "-c", READER, path, str(seconds)], stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    end = time.monotonic() + seconds - 3
    shapes, times = [(200, 100), None, (50, 50)], 0
    while time.monotonic() < end:
        assert zardine.reshard(path, shards=shapes[times % 3])
        times += 1
    results = [reader.communicate(timeout=120)[0].split() for reader in readers]
    assert [reader.returncode for reader in readers] == [0, 0]
    assert times > 0
    for reads, changed in results:
        assert int(reads) > 20
        assert int(changed) <= times


def test_writers_meanwhile_lose_nothing(tmp_path: Path) -> None:
    """A write that returned is there after the switch; others are told to open the array again."""
    path = str(tmp_path / "a.zarr")
    zardine.create_array(path, shape=(100, 100), chunks=(10, 10), shards=(50, 50), dtype="i4")[...] = 0
    expected = np.zeros((100, 100), "i4")
    stop = threading.Event()
    counts = [0, 0]

    def write() -> None:
        array = zardine.open_array(path)
        number = 0
        while not stop.is_set():
            number += 1
            i, j = number * 7 % 10 * 10, number * 3 % 10 * 10
            try:
                array[i : i + 10, j : j + 10] = number
            except ArrayChangedError:
                counts[1] += 1
                time.sleep(0.1)
                array = zardine.open_array(path)
                continue
            expected[i : i + 10, j : j + 10] = number
            counts[0] += 1

    writer = threading.Thread(target=write)
    writer.start()
    try:
        done = zardine.reshard(path, shards=(100, 20))
    finally:
        time.sleep(0.3)
        stop.set()
        writer.join()
    assert done
    assert counts[0] > 10
    assert counts[1] > 0
    np.testing.assert_array_equal(zardine.open_array(path)[...], expected)
