"""Files that the kernel changes in part, many in one call: as if each were changed alone."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zardine
from python_writes import write_by_python
from zardine.engine import write
from zardine.engine.index_cache import INDEXES
from zardine.errors import CorruptionError
from zardine.kernel import KERNEL
from zardine.stores import late_closing
from zardine.stores.base import Condition, Version
from zardine.stores.local import beside
from zardine.stores.local.store import LocalStore

pytestmark = pytest.mark.skipif(KERNEL is None, reason="without the kernel every object is changed by itself")

SHAPE = (45, 52)
VALUES = np.arange(1, 45 * 52 + 1, dtype="i4").reshape(SHAPE)
LAYOUTS: dict[str, dict[str, Any]] = {
    "zstd": {"chunks": (10, 13)},
    "raw": {"chunks": (10, 13), "compressors": None},
    "big endian": {"chunks": (10, 13), "compressors": None, "dtype": ">i4"},
    "v2": {"chunks": (10, 13), "zarr_format": 2},
    "shards": {"chunks": (5, 13), "shards": (20, 26)},
    "raw shards": {"chunks": (5, 13), "shards": (20, 26), "compressors": None},
    "without checksums": {"chunks": (5, 13), "shards": (20, 26), "compressors": ()},
    "index in front": {"chunks": (5, 13), "shards": {"shape": (20, 26), "index_location": "start"}},
    "transposed": {
        "chunks": (5, 13),
        "shards": (20, 26),
        "filters": [{"name": "transpose", "configuration": {"order": [1, 0]}}],
    },
}
Step = Callable[[Any], None]


def _assign(*selection: Any, value: int = 7) -> Step:
    def step(array: Any) -> None:
        array[selection] = value

    return step


STEPS: tuple[Step, ...] = (
    _assign(slice(0, 21), slice(3, None)),
    _assign(slice(7, 8)),
    _assign(slice(0, 3), slice(0, 13), value=0),  # one chunk of zeros, and a part of one
    _assign(slice(0, 45, 7), slice(1, 52, 3), value=-5),
    _assign(slice(20, 40), slice(26, 52), value=0),
    _assign(slice(40, 45), value=9),
)


@pytest.fixture(autouse=True)
def _two_threads() -> Iterator[None]:
    with zardine.config.set({"threads": 2}):
        yield


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The keys of objects that were written by themselves."""
    keys: list[str] = []
    put = write._write

    def seen(change: Any) -> None:
        keys.append(change.key)
        put(change)

    monkeypatch.setattr(write, "_write", seen)
    return keys


def create(path: Path, **options: Any) -> zardine.Array:
    return zardine.create_array(path, **{"shape": SHAPE, "dtype": "i4", "fill_value": 0, **options})


def files(path: Path) -> dict[str, bytes]:
    """The bytes of all files below ``path``, documents and what is left behind included."""
    return {str(each.relative_to(path)): each.read_bytes() for each in path.rglob("*") if each.is_file()}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_files_have_the_bytes_that_they_have_one_by_one(
    layout: str, tmp_path: Path, alone: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    here, there = (create(tmp_path / name, **LAYOUTS[layout]) for name in "ab")
    expected, few, many = np.zeros(SHAPE, "i4"), 0, 0
    for array in (here, there, expected):
        array[5:33, 6:] = VALUES[5:33, 6:]
    for step in STEPS:
        alone.clear()
        step(here)
        few += len(alone)
        with monkeypatch.context() as patched:
            write_by_python(patched.setattr)
            alone.clear()
            step(there)
        many += len(alone)
        step(expected)
        assert files(tmp_path / "a") == files(tmp_path / "b")
        np.testing.assert_array_equal(zardine.open_array(tmp_path / "a")[...], expected)
        np.testing.assert_array_equal(here[...], expected)  # by the indexes that are remembered
    assert few < many / 3


@pytest.mark.parametrize("layout", ["zstd", "shards"])
def test_appending_writes_nothing_one_by_one(layout: str, tmp_path: Path, alone: list[str]) -> None:
    array = create(tmp_path / "a", **LAYOUTS[layout])
    array.resize((0, 52))
    for start in range(0, 45, 3):
        array.append(VALUES[start : start + 3])
    assert alone == []
    np.testing.assert_array_equal(zardine.open_array(tmp_path / "a")[...], VALUES)


def test_the_index_of_what_was_written_is_remembered(tmp_path: Path) -> None:
    array = create(tmp_path / "a", **LAYOUTS["shards"])
    array[...] = VALUES
    array[3] = 5
    known = INDEXES.get(array._handle.cache_space, "c/0/0")
    assert known is not None
    assert known.version == array.store.version("c/0/0")
    with zardine.config.set({"cache.shard_index_bytes": 0}):
        fresh = zardine.open_array(tmp_path / "a")
        assert (fresh[3] == 5).all()
    layout = array._handle.layout.uniform_shard
    assert layout is not None
    stored = layout.checked_index_of((tmp_path / "a" / "c" / "0" / "0").read_bytes())
    np.testing.assert_array_equal(known.index.offsets, stored.offsets)
    np.testing.assert_array_equal(known.index.lengths, stored.lengths)


def _spoil(path: Path, offset: int) -> bytes:
    data = bytearray(path.read_bytes())
    data[offset] ^= 255
    path.write_bytes(data)
    return bytes(data)


@pytest.mark.parametrize("place", [0, -1, -20])
@pytest.mark.parametrize("layout", ["zstd", "shards"])
def test_what_is_damaged_stays_and_is_told(layout: str, place: int, tmp_path: Path) -> None:
    array = create(tmp_path / "a", **LAYOUTS[layout])
    array[...] = VALUES
    path = tmp_path / "a" / "c" / "0" / "0"
    damaged = _spoil(path, place)
    with pytest.raises(CorruptionError):
        array[2:4, 2:4] = 1
    assert path.read_bytes() == damaged


def test_a_damaged_chunk_that_is_not_needed_is_carried_over_or_replaced(tmp_path: Path, alone: list[str]) -> None:
    array = create(tmp_path / "a", **LAYOUTS["shards"])
    array[...] = VALUES
    _spoil(tmp_path / "a" / "c" / "0" / "0", 3)
    array[5:7] = 1
    with pytest.raises(CorruptionError):
        array[0, 0]
    array[:5, :13] = 2
    assert alone == []
    assert (array[:5, :13] == 2).all()
    assert (array[5:7] == 1).all()


def test_a_file_that_another_thread_has_locked_is_waited_for(tmp_path: Path, alone: list[str]) -> None:
    array = create(tmp_path / "a", **LAYOUTS["shards"])
    array[...] = 1
    with array.store.lock("c/1/1"):
        writer = threading.Thread(target=array.__setitem__, args=((slice(0, 40), slice(1, 51)), 2))
        writer.start()
        writer.join(0.3)
        assert writer.is_alive()
        assert zardine.open_array(tmp_path / "a")[25, 35] == 1
    writer.join(60)
    assert (array[:40, 1:51] == 2).all()
    assert alone == ["c/1/1"]


def test_who_has_locked_a_file_may_change_it(tmp_path: Path) -> None:
    array = create(tmp_path / "a", chunks=(10, 13))
    array[...] = 1
    with array.store.lock("c/0/0"), zardine.config.set({"threads": 1}):
        array[:39] = 2
    assert (array[:39] == 2).all()


def test_an_edit_that_was_cut_off_is_left_to_who_knows_of_it(tmp_path: Path, alone: list[str]) -> None:
    array = create(tmp_path / "a", **LAYOUTS["shards"])
    array[...] = 1
    record = tmp_path / "a" / "c" / "0" / beside.edit_record_name("1")
    record.touch()
    array[1, 1:51] = 2
    assert alone == ["c/0/1"]
    assert (array[1, 1:51] == 2).all()
    assert not record.exists()


def test_other_names_of_a_file_and_links_keep_what_they_mean(tmp_path: Path, alone: list[str]) -> None:
    array = create(tmp_path / "a", **LAYOUTS["raw"])
    array[...] = 1
    folder, other = tmp_path / "a" / "c" / "0", tmp_path / "a" / "other"
    os.link(folder / "0", other)
    shutil.move(folder / "1", tmp_path / "a" / "moved")
    (folder / "1").symlink_to(tmp_path / "a" / "moved")
    before = other.read_bytes()
    array[1, 1:51] = 2
    assert sorted(alone) == ["c/0/0", "c/0/1"]
    assert other.read_bytes() == (tmp_path / "a" / "moved").read_bytes() == before
    assert (array[1, 1:51] == 2).all()


def test_the_mode_of_a_file_stays(tmp_path: Path, alone: list[str]) -> None:
    array = create(tmp_path / "a", **LAYOUTS["shards"])
    array[...] = 1
    path = tmp_path / "a" / "c" / "1" / "1"
    path.chmod(0o640)
    array[25, 1:51] = 2
    assert path.stat().st_mode & 0o777 == 0o640
    assert alone == []


def test_durable_stores_and_those_of_others_change_each_object(tmp_path: Path, alone: list[str]) -> None:
    class Sets(LocalStore):
        def set(self, key: str, value: Any, *, condition: Condition | None = None) -> Version | None:
            return super().set(key, value, condition=condition)

    class Locks(LocalStore):
        def lock(self, key: str) -> Any:
            return super().lock(key)

    for store in (LocalStore(tmp_path / "a", durable=True), Sets(tmp_path / "b"), Locks(tmp_path / "c")):
        array = zardine.create_array(store, shape=40, chunks=10, dtype="i4")
        array[1:39] = 1
        assert {"c/0", "c/3"} <= set(alone)
        alone.clear()


@pytest.mark.parametrize("form", [{"write_strategy": "append"}, {"chunk_order": "morton"}])
def test_other_ways_to_write_shards_stay(form: dict[str, str], tmp_path: Path, alone: list[str]) -> None:
    array = create(tmp_path / "a", **LAYOUTS["shards"], config=form)
    array[...] = 1
    alone.clear()
    array[1, 1:51] = 2
    assert alone == ["c/0/0", "c/0/1"]


def _descriptors() -> int:
    late_closing._closer.finish()  # of files that were replaced
    return len(os.listdir("/proc/self/fd"))


def test_no_file_stays_open(tmp_path: Path) -> None:
    array = create(tmp_path / "a", **LAYOUTS["shards"])
    array[...] = 1
    array[1, 1:51] = 2
    before = _descriptors()
    for number in range(20):
        array[1, 1:51] = number
    assert _descriptors() == before
