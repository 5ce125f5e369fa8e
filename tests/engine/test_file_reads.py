"""What typical selections of a local array cost: files opened, read calls and bytes, as the system counts them."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zardine
from zardine.stores.open_files import kept_files

SHAPE, SHARD, CHUNK = (64, 64, 64), (32, 32, 32), (8, 8, 8)
RAW = 8 * 8 * 8 * 2 + 4
INDEX = 64 * 16 + 4


@dataclass
class Cost:
    opens: int
    reads: int
    nbytes: int


def io_counts() -> tuple[int, int, int]:
    """Calls that read, bytes read, and how many of them this look itself is going to have read."""
    text = Path("/proc/self/io").read_text()
    lines = dict(line.split(": ") for line in text.splitlines())
    return int(lines["syscr"]), int(lines["rchar"]), len(text)


OPENED_AGAIN = 0 if zardine.__kernel__ else 1
"""How often a file is opened out of which a chunk was just read: the kernel reads it from one that is kept open."""


def cost_of(array: zardine.Array, selection: Any, monkeypatch: pytest.MonkeyPatch) -> Cost:
    opens = 0
    real = os.open

    def counted(*args: Any, **kwargs: Any) -> int:
        nonlocal opens
        opens += 1
        return real(*args, **kwargs)

    own = io_counts()
    overhead = io_counts()[0] - own[0]  # calls of looking itself
    with monkeypatch.context() as patch:
        patch.setattr(os, "open", counted)
        before = io_counts()
        array[selection] if not isinstance(selection, list) else array.vindex[tuple(selection)]
        after = io_counts()
    return Cost(opens, after[0] - before[0] - overhead, after[1] - before[1] - before[2])


@pytest.fixture(autouse=True)
def room() -> None:
    """There is room for files to be kept open."""
    kept_files.clear()


@pytest.fixture
def array(tmp_path: Path) -> zardine.Array:
    made = zardine.create_array(tmp_path, shape=SHAPE, shards=SHARD, chunks=CHUNK, dtype="u2", compressors=None)
    made[...] = np.arange(64**3, dtype="u2").reshape(SHAPE) + 1
    return zardine.open_array(tmp_path, mode="r")


pytestmark = pytest.mark.skipif(not Path("/proc/self/io").exists(), reason="the system does not count reads")


def test_one_inner_chunk(array: zardine.Array, monkeypatch: pytest.MonkeyPatch) -> None:
    box = (slice(8, 16), slice(8, 16), slice(8, 16))
    cold = cost_of(array, box, monkeypatch)
    assert (cold.opens, cold.nbytes) == (1, INDEX + RAW)
    assert cold.reads <= 2
    warm = cost_of(array, box, monkeypatch)
    assert (warm.opens, warm.reads, warm.nbytes) == (OPENED_AGAIN, 1, RAW)


def test_one_element(array: zardine.Array, monkeypatch: pytest.MonkeyPatch) -> None:
    cost_of(array, (9, 9, 9), monkeypatch)
    assert cost_of(array, (9, 9, 9), monkeypatch) == Cost(OPENED_AGAIN, 1, RAW)


def test_a_plane(array: zardine.Array, monkeypatch: pytest.MonkeyPatch) -> None:
    cold = cost_of(array, 3, monkeypatch)
    assert (cold.opens, cold.nbytes) == (4, 4 * (INDEX + 16 * RAW))
    warm = cost_of(array, 3, monkeypatch)
    assert (warm.opens, warm.nbytes) == (4 * OPENED_AGAIN, 4 * 16 * RAW)
    assert warm.reads <= 4 * 16
    if zardine.__kernel__:  # chunks that lie together are read together
        assert warm.reads <= 4


def test_all(array: zardine.Array, monkeypatch: pytest.MonkeyPatch) -> None:
    cost = cost_of(array, ..., monkeypatch)
    assert (cost.opens, cost.nbytes) == (8, 8 * (INDEX + 64 * RAW))
    assert cost.reads <= 8 * (1 + 64)


def test_points(array: zardine.Array, monkeypatch: pytest.MonkeyPatch) -> None:
    points = [np.array([0, 1, 40, 41]), np.array([0, 1, 40, 41]), np.array([0, 1, 40, 41])]
    cost_of(array, points, monkeypatch)
    cost = cost_of(array, points, monkeypatch)
    assert (cost.opens, cost.reads, cost.nbytes) == (2, 2, 2 * RAW)


def test_nothing_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = zardine.create_array(tmp_path, shape=SHAPE, shards=SHARD, chunks=CHUNK, dtype="u2", compressors=None)
    tried = 0 if OPENED_AGAIN else 1  # whether all are to be had that are kept open
    assert cost_of(made, ..., monkeypatch) == Cost(8 + tried, 0, 0)
    made[0, 0, 0] = 1
    opened = zardine.open_array(tmp_path, mode="r")
    cost_of(opened, (0, 0, 0), monkeypatch)
    cost = cost_of(opened, (slice(0, 32), slice(0, 32), slice(8, 32)), monkeypatch)
    assert (cost.opens, cost.nbytes) == (0 if zardine.__kernel__ else 1, 0)  # the kernel reads files that are kept open


@pytest.mark.skipif(not zardine.__kernel__, reason="the native kernel opens them itself")
def test_more_shards_than_are_kept_for_one_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = zardine.create_array(tmp_path / "many", shape=(160, 8), shards=(4, 8), chunks=(2, 4), dtype="u2")
    made[...] = np.arange(1280).reshape(160, 8)
    array = zardine.open_array(tmp_path / "many", mode="r")
    assert cost_of(array, np.s_[:, 5], monkeypatch).opens == 0
    assert array[:, 5].tolist() == list(range(5, 1280, 8))


@pytest.mark.skipif(not zardine.__kernel__, reason="the native kernel looks itself")
def test_a_shard_that_others_made_longer(array: zardine.Array, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its index is known anew, from a read of another kind, while the open file is known as it was before."""
    selection = (9, 9, 9)
    before = array[selection]
    code = """
import sys, zardine
zardine.config.set({"array.write_strategy": "append"})
zardine.open_array(sys.argv[1])[0, 0, 0] = 5
"""
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True)
    assert array[::3, ::3][0, 0, 0] == 5
    assert array[selection] == before
    assert cost_of(array, selection, monkeypatch) == Cost(0, 1, RAW)


@pytest.mark.skipif(not zardine.__kernel__, reason="the native kernel looks itself")
@pytest.mark.parametrize("selection", [(9, 9, 9), np.s_[3, 3, :]], ids=["in one shard", "in two"])
def test_what_others_change_is_looked_up_once(
    selection: Any, array: zardine.Array, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """New shards, edited ones and new documents are seen by the next read, and those after it are as cheap as ever."""
    shard, document = tmp_path / "c" / "0" / "0" / "0", tmp_path / "zarr.json"
    looks: list[object] = []
    real = os.stat

    def stat(*args: Any, **kwargs: Any) -> os.stat_result:
        looks.append(args)
        return real(*args, **kwargs)

    def read() -> list[int]:
        with monkeypatch.context() as patch:
            patch.setattr(os, "stat", stat)
            return np.atleast_1d(array[selection]).tolist()

    def replaced(path: Path, data: bytes) -> None:
        (tmp_path / "new").write_bytes(data)
        os.replace(tmp_path / "new", path)

    expected = read()
    other = zardine.open_array(tmp_path, mode="r")[selection]
    changes = [
        lambda: replaced(shard, shard.read_bytes()),
        lambda: os.utime(shard, ns=(1, 1)),
        lambda: replaced(document, document.read_bytes().replace(b'"attributes"', b'"attributes" ')),
        lambda: document.write_bytes(document.read_bytes() + b"\n"),
    ]
    for change in changes:
        change()
        assert read() == expected == np.atleast_1d(other).tolist()
        looks.clear()
        assert read() == expected
        assert not looks
    zardine.open_array(tmp_path, mode="r+")[0, 0, 0] = 5  # another handle of this process
    assert read() == expected
    erased = zardine.create_array(tmp_path, shape=SHAPE, chunks=CHUNK, dtype="u2", overwrite=True)
    with pytest.raises(zardine.errors.ArrayChangedError):
        read()
    erased[...] = 1
    with pytest.raises(zardine.errors.ArrayChangedError):
        read()
