"""Tools where memory or the disk is small: bounded by what they promise; a clear error, and the old data."""

from __future__ import annotations

import multiprocessing
import os
import resource
import signal
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zardine
from crash.torn import put_state, torn
from effort import SOAK
from tools.test_compact import spread
from tools.test_repair import VALUES, make, read_by_others
from zardine.errors import TornShardWarning

MEASURED = """
import resource, sys, zardine
import numpy as np
path, chunks = sys.argv[1], sys.argv[2]
zardine.config.set({"threads": 1, "window_bytes": 2**20})
small = zardine.create_array(path + ".small", shape=(64, 64), chunks=(8, 8), shards=(64, 64), dtype="u4")
small[...] = 1
for shards in ((32, 64), (64, 64)):  # what is imported and allocated once
    zardine.reshard(path + ".small", shards=shards, chunks=(4, 4) if chunks != "same" and shards[0] == 32 else None,
                    grace=0)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
zardine.reshard(path, shards=(256, 4096), chunks=None if chunks == "same" else (64, 64), grace=0)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.skipif(sys.platform == "darwin", reason="ru_maxrss counts bytes there")
@pytest.mark.parametrize("chunks", ["same", "others"])
def test_memory_of_reshard_is_bounded_by_one_row_of_shards(tmp_path: Path, chunks: str) -> None:
    """Of an array of 128 MiB; a row of its new shards has 4 MiB, one of its old ones 8."""
    path = tmp_path / "a.zarr"
    array = zardine.create_array(
        path, shape=(8192, 4096), chunks=(128, 128), shards=(512, 1024), dtype="u4", compressors=None
    )
    row = np.arange(512 * 4096, dtype="u4").reshape(512, 4096)
    for start in range(0, 8192, 512):
        array[start : start + 512] = row + start
    run = subprocess.run(
        [sys.executable, "-c", MEASURED, str(path), chunks], capture_output=True, text=True, check=True
    )
    assert int(run.stdout) * 1024 < 6 * 2**22, f"{int(run.stdout):,} KiB"
    array = zardine.open_array(path)
    assert array.shards == (256, 4096)
    for start in range(0, 8192, 512):
        assert (array[start : start + 512] == row + start).all()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 300 KiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=300k", "tmpfs", str(folder)]
    if os.getuid() != 0 or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("no file system can be mounted here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)  # files that were replaced are closed late


def fill_up(folder: Path, left: int) -> Path:
    """A file beside that leaves so many bytes."""
    status = os.statvfs(folder)
    file = folder / "filler"
    with file.open("wb") as opened:
        opened.write(bytes(max(0, status.f_bavail * status.f_bsize - left)))
    return file


def damage(path: Path) -> None:
    """An append that was cut off, in one shard."""
    array = zardine.open_array(path, config={"write_strategy": "append", "most_unused": 1.0})

    def append() -> None:
        array[0, 0] = VALUES[0, 0] + 1

    put_state(torn(path, append), path)


CALLS: dict[str, Callable[[str], Any]] = {
    "reshard": lambda path: zardine.reshard(path, shards=(20, 10), grace=0),
    "reshard, decoding": lambda path: zardine.reshard(path, shards=(20, 20), chunks=(5, 4), grace=0),
    "reshard elsewhere": lambda path: zardine.reshard(path, shards=(20, 10), target=path + ".new"),
    "repair": lambda path: zardine.repair(path),
    "compact": lambda path: zardine.compact(path, order="f"),
    "convert": lambda path: zardine.convert(path, path + ".new", shards=(20, 20)),
}


def prepare(path: Path, name: str) -> np.ndarray[Any, Any]:
    array = make(path)
    if name == "compact":
        spread(path, array)
    if name == "repair":
        damage(path)
    return VALUES


FORK = multiprocessing.get_context("fork")


def attempt(path: Path, name: str, limit: int = 0) -> list[Any]:
    """What comes of it in a process of its own, the files of which may have ``limit`` bytes."""
    ours, theirs = FORK.Pipe(duplex=False)
    process = FORK.Process(target=_attempt, args=(str(path), name, limit, theirs))
    process.start()
    theirs.close()
    outcome: list[Any] = ours.recv()
    process.join()
    assert process.exitcode == 0
    return outcome


def _attempt(path: str, name: str, limit: int, told: Connection) -> None:
    warnings.simplefilter("ignore")
    if limit:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    try:
        done = CALLS[name](path)
        told.send(["done", [left.message for left in getattr(done, "left", getattr(done, "faults", ()))]])
    except OSError as error:
        told.send([type(error).__name__, str(error)])


def check_refused(outcome: list[Any], reason: str) -> None:
    """The tool says what it could not do and why, in an error or among what is left."""
    kind, told = outcome
    texts = told if kind == "done" else [told]
    assert kind in ("done", "StoreError"), outcome
    assert any("cannot write key" in text and reason in text for text in texts), outcome


def check_whole(path: Path, values: np.ndarray[Any, Any]) -> None:
    """The old data reads."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TornShardWarning)
        np.testing.assert_array_equal(zardine.open_array(path)[...], values)


@pytest.mark.parametrize("name", CALLS)
def test_a_full_disk(small_disk: Path, name: str) -> None:
    """Whatever is left of it, from nothing on; the old data can be read and, once there is room, written."""
    refused = 0
    for left in (0, 4096, 8192, 16_384, 32_768, 65_536, 131_072) if SOAK else (0, 8192, 131_072):
        path = small_disk / f"a{left}.zarr"
        values = prepare(path, name)
        filler = fill_up(small_disk, left)
        outcome = attempt(path, name)
        done = outcome == ["done", []]
        if not done:
            check_refused(outcome, "No space left on device")
            refused += 1
            check_whole(path, values)
        filler.unlink()
        array = zardine.open_array(path)
        array[0, 0] = values[0, 0]
        assert attempt(path, name) == ["done", []] or (done and "elsewhere" in name) or (done and name == "convert")
        for found in read_by_others(path):
            np.testing.assert_array_equal(found, values)
        assert not list(small_disk.rglob("*.tmp"))
        for each in (path, Path(f"{path}.new")):
            zardine.storage.LocalStore(each).erase_prefix("")
        if done:
            break
    else:
        pytest.fail("never done")
    assert refused > 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="limits are of POSIX")
@pytest.mark.parametrize("name", CALLS)
def test_files_that_cannot_grow(tmp_path: Path, name: str) -> None:
    refused = 0
    for limit in (1, 300, 700, 1500, 3000, 20_000) if SOAK else (1, 700, 20_000):
        path = tmp_path / f"a{limit}.zarr"
        values = prepare(path, name)
        outcome = attempt(path, name, limit)
        if outcome == ["done", []]:
            break
        check_refused(outcome, "File too large")
        refused += 1
        check_whole(path, values)
        zardine.open_array(path)[0, 0] = values[0, 0]
        assert attempt(path, name) == ["done", []]
        for found in read_by_others(path):
            np.testing.assert_array_equal(found, values)
    else:
        pytest.fail("never done")
    assert refused > SOAK
