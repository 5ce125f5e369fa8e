"""Small blocks that are written without a plan: as if they were written with one."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zardine
from zardine.engine import write
from zardine.engine.freshness import known_document
from zardine.errors import ArrayChangedError, CorruptionError
from zardine.kernel import KERNEL
from zardine.nodes import array as arrays
from zardine.stores.local import beside

pytestmark = pytest.mark.skipif(KERNEL is None, reason="without the kernel every block has a plan")

SHAPE = (40, 52)
LAYOUTS: dict[str, dict[str, Any]] = {
    "zstd": {"chunks": (10, 13)},
    "raw": {"chunks": (10, 13), "compressors": None},
    "big endian": {"chunks": (10, 13), "compressors": None, "dtype": ">i4"},
    "v2": {"chunks": (10, 13), "zarr_format": 2},
    "v2, Fortran order": {"chunks": (10, 13), "zarr_format": 2, "order": "F"},
    "shards": {"chunks": (5, 13), "shards": (20, 26)},
    "raw shards": {"chunks": (5, 13), "shards": (20, 26), "compressors": None},
    "index in front": {"chunks": (5, 13), "shards": {"shape": (20, 26), "index_location": "start"}},
    "transposed": {
        "chunks": (5, 13),
        "shards": (20, 26),
        "filters": [{"name": "transpose", "configuration": {"order": [1, 0]}}],
    },
    "all chunks stored": {"chunks": (5, 13), "shards": (20, 26), "config": {"write_empty_chunks": True}},
}


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The plans by which something was written."""
    plans: list[Any] = []
    put = write.write_plan

    def seen(handle: Any, plan: Any, *rest: Any, **more: Any) -> None:
        plans.append(plan)
        put(handle, plan, *rest, **more)

    monkeypatch.setattr(arrays, "write_plan", seen)
    return plans


def create(path: Path, **options: Any) -> zardine.Array:
    return zardine.create_array(path, **{"shape": SHAPE, "dtype": "i4", "fill_value": 0, **options})


def files(path: Path) -> dict[str, bytes]:
    """The bytes of all files below ``path``, documents and what is left behind included."""
    return {str(each.relative_to(path)): each.read_bytes() for each in path.rglob("*") if each.is_file()}


def any_block(rng: np.random.Generator) -> tuple[Any, ...]:
    """Slices and integers."""
    found: list[Any] = []
    for length in SHAPE:
        start = int(rng.integers(length))
        stop = int(rng.integers(start, min(length, start + 20))) + 1
        found.append(start if rng.random() < 0.2 else slice(start, stop))
    return tuple(found)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_files_have_the_bytes_that_a_plan_gives_them(
    layout: str, tmp_path: Path, planned: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(len(layout))
    here, there = (create(tmp_path / name, **LAYOUTS[layout]) for name in "ab")
    expected = np.zeros(SHAPE, here.dtype)
    few = 0
    for number in range(40):
        block = any_block(rng)
        values = np.asarray(rng.integers(0, 2 + number % 5, expected[block].shape), here.dtype)
        if values.ndim:
            values = np.asfortranarray(values) if number % 3 else values[..., ::-1]
        planned.clear()
        here[block] = values
        few += len(planned)
        with monkeypatch.context() as patched:
            patched.setattr(arrays, "write_block", lambda *_, **__: False)
            there[block] = values
        expected[block] = values
        assert files(tmp_path / "a") == files(tmp_path / "b")
        np.testing.assert_array_equal(here[...], expected)
    np.testing.assert_array_equal(zardine.open_array(tmp_path / "a")[...], expected)
    assert few < 10  # those that leave nothing to be stored


def test_appends_take_no_plan(tmp_path: Path, planned: list[Any]) -> None:
    array = zardine.create_array(tmp_path / "a", shape=(0, 52), dtype="i4", chunks=(5, 13), shards=(20, 26))
    values = np.arange(45 * 52, dtype="i4").reshape(45, 52)
    array.append(values[:0])
    del planned[:]
    for start in range(0, 45, 3):
        array.append(values[start : start + 3])
    assert planned == []
    np.testing.assert_array_equal(zardine.open_array(tmp_path / "a")[...], values)


def test_what_lies_beyond_the_array_gives_way_as_with_a_plan(tmp_path: Path) -> None:
    array = create(tmp_path / "a", shape=(12, 13), chunks=(10, 13), compressors=None)
    array[...] = 7
    array.resize((25, 13), erase=False)
    array[...] = 9
    array.resize((12, 13), erase=False)
    array[10:12, 0:13] = 5
    array.resize((25, 13), erase=False)
    assert (array[12:20] == 0).all()
    array[10:20, :] = 6  # ends where the chunk does
    array[19:20, 3] = 8
    assert array[19].tolist() == [6, 6, 6, 8, *[6] * 9]


def _locked(path: Path) -> Callable[[], None]:
    file = os.open(path, os.O_RDWR)
    fcntl.flock(file, fcntl.LOCK_EX)
    return lambda: os.close(file)


def test_a_file_that_another_edits_is_waited_for(tmp_path: Path, planned: list[Any]) -> None:
    array = create(tmp_path / "a", chunks=(10, 13))
    array[...] = 1
    planned.clear()
    unlock = _locked(tmp_path / "a" / "c" / "0" / "0")

    class PlannedError(Exception):
        pass

    def wait(*_: Any, **__: Any) -> None:
        raise PlannedError

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(arrays, "write_plan", wait)
        with pytest.raises(PlannedError):
            array[5:15, 0:5] = 2  # of which one file is free
    assert (array[0:10, 0:5] == 1).all()
    unlock()
    array[5:15, 0:5] = 2
    assert planned == []
    assert (array[5:15, 0:5] == 2).all()


def test_who_changes_the_array_is_waited_for_and_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    array = create(tmp_path / "a", chunks=(10, 13))
    array[...] = 1
    document = known_document(array._handle)
    folder = os.open(tmp_path / "a", os.O_RDONLY)
    with array.store.files.replace(["c/0/0"], changing=True, document=document) as files:
        assert files is not None
        with pytest.raises(BlockingIOError):
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    with array.store.files.replace(["c/0/0"], changing=True, document=document) as files:
        assert files is None
    waits: list[Any] = []
    monkeypatch.setattr(arrays, "write_plan", lambda *_: waits.append(_))
    array[3:5, 2:4] = 2
    assert len(waits) == 1
    assert (array[...] == 1).all()
    os.close(folder)
    array[3:5, 2:4] = 3
    assert len(waits) == 1
    assert (array[3:5, 2:4] == 3).all()


def test_a_document_that_others_have_changed_is_read_again_once(tmp_path: Path, planned: list[Any]) -> None:
    ours = create(tmp_path / "a", chunks=(10, 13))
    ours[...] = 1
    planned.clear()
    zardine.open_array(tmp_path / "a", mode="r+").attrs["by"] = "another"
    for number in range(3):
        ours[number, 2:4] = 2
    assert len(planned) == 1
    assert (ours[:3, 2:4] == 2).all()
    assert (ours[3:] == 1).all()


@pytest.mark.parametrize("endian", ["little", "big"])
def test_parts_of_large_raw_chunks(endian: str, tmp_path: Path, planned: list[Any]) -> None:
    size, count = 300_000, 4
    array = zardine.create_array(
        tmp_path / "a",
        shape=(count * size,),
        dtype="f8",
        chunks=(size,),
        serializer={"name": "bytes", "configuration": {"endian": endian}},
        compressors=None,
        checksum=False,
        fill_value=0,
    )
    expected = np.arange(count * size, dtype="f8")
    array[...] = expected
    planned.clear()
    path = tmp_path / "a" / "c" / "1"
    for start, stop, step in [
        (size, 2 * size, 1),
        (size, size + 5000, 1),
        (2 * size - 5000, 2 * size, 1),
        (size + 7, size + 9, 1),
        (size + 7, 2 * size - 9, 1),
        (size - 9, 3 * size + 9, 1),
        (size + 1, 2 * size, -1),
    ]:
        values = np.random.default_rng(stop).normal(size=stop - start)[::step]
        array[start:stop] = values
        expected[start:stop] = values
        np.testing.assert_array_equal(array[...], expected)
        assert path.read_bytes() == expected[size : 2 * size].astype("<f8" if endian == "little" else ">f8").tobytes()
    array[size : 2 * size] = 0
    assert not path.exists()
    array[size + 3] = 1
    array[size : size + 100_000] = 0
    assert not path.exists()
    assert len(planned) == 2  # those that leave nothing to be stored


@pytest.mark.parametrize("cut", [-8, 8])
def test_raw_chunks_of_another_size_are_damaged(cut: int, tmp_path: Path) -> None:
    array = create(tmp_path / "a", chunks=(40, 52), compressors=None, checksum=False)
    array[...] = 7
    path = tmp_path / "a" / "c" / "0" / "0"
    data = path.read_bytes()
    damaged = data[:cut] if cut < 0 else data + bytes(cut)
    path.write_bytes(damaged)
    with pytest.raises(CorruptionError, match="c/0/0"):
        array[3:6, 1:4] = 1
    assert path.read_bytes() == damaged
    array[...] = 8
    assert (array[...] == 8).all()


@pytest.mark.parametrize("layout", ["zstd", "shards"])
def test_nothing_is_put_into_what_is_damaged(layout: str, tmp_path: Path) -> None:
    array = create(tmp_path / "a", **LAYOUTS[layout])
    array[...] = np.arange(40 * 52).reshape(SHAPE)
    path = tmp_path / "a" / "c" / "0" / "0"
    data = bytearray(path.read_bytes())
    data[10] ^= 255
    data[-10] ^= 255
    path.write_bytes(data)
    with pytest.raises(CorruptionError, match="c/0/0"):
        array[3:6, 1:4] = 1
    assert path.read_bytes() == data


def test_unfinished_files_of_forked_processes_have_other_names() -> None:
    mine, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(theirs, next(beside._numbers).to_bytes(16))
        os._exit(0)
    os.waitpid(child, 0)
    number = int.from_bytes(os.read(mine, 16))
    ours = [next(beside._numbers) for _ in range(3)]
    assert all(abs(number - each) >= beside._KEYS for each in ours)
    assert all(b - a == beside._KEYS for a, b in pairwise(ours))
    os.close(mine)
    os.close(theirs)


def test_a_handle_that_is_stale_writes_nothing(tmp_path: Path) -> None:
    array = create(tmp_path / "a", chunks=(10, 13))
    array[...] = 3
    zardine.reshard(tmp_path / "a", shards=(20, 26))
    before = files(tmp_path / "a")
    with pytest.raises(ArrayChangedError, match="open it again"):
        array[0:5, 0:5] = 1
    assert files(tmp_path / "a") == before


def test_large_blocks_and_whole_shards_have_plans(tmp_path: Path, planned: list[Any]) -> None:
    array = zardine.create_array(tmp_path / "a", shape=(2**21,), dtype="u1", chunks=(2**16,))
    array[3:] = 1
    assert len(planned) == 1
    array[: 2**20] = 1
    array[5 : 2**20] = 1
    assert len(planned) == 1
    with zardine.config.set({"window_bytes": 2**18}):
        array[5:99] = 2
        array[: 2**18] = 2
    assert len(planned) == 2
    narrow = zardine.create_array(tmp_path / "b", shape=(100,), dtype="u1", chunks=(1,))
    narrow[:33] = 1
    narrow[:32] = 2
    assert len(planned) == 3
    assert narrow[:34].tolist() == [2] * 32 + [1, 0]
    shards = zardine.create_array(tmp_path / "c", shape=(100,), dtype="u1", chunks=(2,), shards=(10,))
    shards[1:19] = 1
    assert len(planned) == 3
    shards[11:30] = 2
    assert len(planned) == 4
    assert shards[:31].tolist() == [0, *[1] * 10, *[2] * 19, 0]
