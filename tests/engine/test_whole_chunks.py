"""Whole chunks and shards that the kernel encodes, writes and names, many in one call: as if each were set alone."""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import threading
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zardine
from zardine.buffers import BytesLike
from zardine.errors import InvalidKeyError, StoreError
from zardine.kernel import KERNEL
from zardine.storage import MemoryStore
from zardine.stores.base import Condition, Version
from zardine.stores.local.files import LocalFiles
from zardine.stores.local.new_file import NewFile
from zardine.stores.local.store import LocalStore

pytestmark = pytest.mark.skipif(KERNEL is None, reason="without the kernel every chunk is set by itself")

SHAPE = (45, 52)
LAYOUTS: dict[str, dict[str, Any]] = {
    "zstd": {"chunks": (10, 13)},
    "raw": {"chunks": (10, 13), "compressors": None},
    "raw rows": {"chunks": (10, 52), "compressors": None, "filters": None},
    "big endian": {"chunks": (10, 13), "compressors": None, "dtype": ">i4"},
    "v2": {"chunks": (10, 13), "zarr_format": 2},
    "shards": {"chunks": (5, 13), "shards": (10, 26)},
    "raw shards": {"chunks": (5, 13), "shards": (10, 26), "compressors": None},
}


@pytest.fixture(autouse=True)
def _two_threads() -> Iterator[None]:
    """Shards are made by one thread each if there are as many of them as threads."""
    with zardine.config.set({"threads": 2}):
        yield


@pytest.fixture
def sets(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The keys of chunks that were set one by one, and the names of files in which shards were put in parts."""
    keys: list[str] = []
    put, put_in_parts = LocalFiles._set, NewFile.put

    def seen(self: LocalFiles, key: str, data: BytesLike, *others: Any) -> Version:
        if not key.endswith(("zarr.json", ".zarray", ".zattrs", ".zgroup")):
            keys.append(key)
        return put(self, key, data, *others)

    def seen_in_parts(self: NewFile, *others: Any) -> Version:
        keys.append(self.temporary)
        return put_in_parts(self, *others)

    monkeypatch.setattr(LocalFiles, "_set", seen)
    monkeypatch.setattr(NewFile, "put", seen_in_parts)
    return keys


def create(path: Path, **options: Any) -> zardine.Array:
    return zardine.create_array(path, **{"shape": SHAPE, "dtype": "i4", "fill_value": 0, **options})


def files(path: Path) -> list[str]:
    """All files below ``path`` but documents."""
    found = (each for each in path.rglob("*") if each.is_file() and each.name[0] != "." and each.name != "zarr.json")
    return sorted(str(each.relative_to(path)) for each in found)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_they_are_read_as_they_were_written(layout: str, tmp_path: Path, sets: list[str]) -> None:
    a = create(tmp_path / "a", **LAYOUTS[layout])
    for factor in (1, -7):
        d = np.arange(1, 45 * 52 + 1, dtype="i4").reshape(SHAPE) * factor
        a[...] = d
        np.testing.assert_array_equal(zardine.open_array(tmp_path / "a")[...], d)
        assert sets == []  # also those that the end of the array cuts, be they new or not
    assert not list((tmp_path / "a").rglob(".zardine-*"))
    objects = a.shards or a.chunks
    assert len(files(tmp_path / "a")) == np.prod([-(-n // c) for n, c in zip(SHAPE, objects, strict=True)])


def test_a_chunk_that_the_end_cuts_is_written_as_many_are(tmp_path: Path, sets: list[str]) -> None:
    a = create(tmp_path / "a", **LAYOUTS["raw"])
    for value in (5, -6, 0):
        a[40:, 39:] = value
        assert zardine.open_array(tmp_path / "a")[38:, 38:].tolist() == [[0] * 14] * 2 + [[0] + [value] * 13] * 5
        a[40:, 39:] = 8
    assert sets == []


@pytest.mark.parametrize("layout", ["raw", "shards"])
def test_what_is_appended_meanwhile_stays(layout: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It lies beyond the end of the array in an object of which the version was noted before."""
    a = create(tmp_path / "a", **LAYOUTS[layout])
    d = np.arange(1, 45 * 52 + 1, dtype="i4").reshape(SHAPE)
    a[...] = d
    new_files, appended = LocalFiles.replace, []

    def between(self: LocalFiles, keys: list[str], **options: Any) -> Any:
        if not appended:
            appended.append(keys)
            zardine.open_array(tmp_path / "a").append(d[:2])
        return new_files(self, keys, **options)

    monkeypatch.setattr(LocalFiles, "replace", between)
    a[...] = -d
    assert len(appended[0]) > 1
    np.testing.assert_array_equal(zardine.open_array(tmp_path / "a")[...], np.concatenate((-d, d[:2])))


@pytest.mark.parametrize("count", [3000, 65])
def test_many_are_written_by_few_calls(
    count: int, tmp_path: Path, sets: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those in one directory; no more directories than 64 are open at a time."""
    new_files, calls = LocalFiles.replace, []

    def seen(self: LocalFiles, keys: list[str], **options: Any) -> Any:
        calls.append(len(keys))
        return new_files(self, keys, **options)

    monkeypatch.setattr(LocalFiles, "replace", seen)
    shape, chunks = ((count,), (1,)) if count > 65 else ((count, 1), (1, 1))
    a = zardine.create_array(tmp_path / "a", shape=shape, chunks=chunks, dtype="i2", compressors=None, fill_value=0)
    d = np.arange(1, count + 1, dtype="i2").reshape(shape)
    a[...] = d
    np.testing.assert_array_equal(zardine.open_array(tmp_path / "a")[...], d)
    assert sets == []
    assert len(files(tmp_path / "a")) == count
    assert calls == ([1024, 1024, 952] if count > 65 else [64, 1])


@pytest.mark.parametrize("order", ["as_written", "f", "morton"])
@pytest.mark.parametrize(
    "form", ["raw", "zstd", "without checksums", "rows as they are", "index in front", "transposed"]
)
def test_shards_have_the_bytes_that_they_have_one_by_one(
    form: str, order: str, tmp_path: Path, sets: list[str]
) -> None:
    codecs: dict[str, Any] = {
        "raw": {"compressors": None},
        "zstd": {},
        "without checksums": {"compressors": ()},
        "rows as they are": {"compressors": (), "chunks": (5, 52), "shards": (10, 52)},
        "index in front": {"compressors": None, "shards": {"shape": (10, 26), "index_location": "start"}},
        "transposed": {"filters": [{"name": "transpose", "configuration": {"order": [1, 0]}}]},
    }
    options = {"chunks": (5, 13), "shards": (10, 26), "config": {"chunk_order": order}, **codecs[form]}
    d = np.arange(1, 45 * 52 + 1, dtype="i4").reshape(SHAPE)
    d[3:18, 10:30] = 0  # some chunks are full of the fill value
    d[20:30, 26:] = 0  # and one shard
    d[30:35] = 0
    create(tmp_path / "a", **options)[...] = d
    for threads, name in ((2, "b"), (8, "d")):  # one by all threads; several at a time
        with zardine.config.set({"window_bytes": 2**10, "threads": threads}):
            create(tmp_path / name, **options)[...] = d
    assert sets == []
    with zardine.config.set({"window_bytes": 16}):
        create(tmp_path / "c", **options)[...] = d
    assert len(sets) == len(files(tmp_path / "a")) == (5 if form == "rows as they are" else 9)
    assert files(tmp_path / "a") == files(tmp_path / "b") == files(tmp_path / "c")
    for name in files(tmp_path / "a"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "c" / name).read_bytes()
        assert (tmp_path / "b" / name).read_bytes() == (tmp_path / "c" / name).read_bytes()
        assert (tmp_path / "d" / name).read_bytes() == (tmp_path / "c" / name).read_bytes()
    np.testing.assert_array_equal(zardine.open_array(tmp_path / "a")[...], d)


LARGE: dict[str, dict[str, Any]] = {
    "zstd": {"compressors": zardine.codecs.ZstdCodec(level=1)},
    "raw": {"compressors": None},
    "index in front": {"compressors": None, "index_location": "start"},
}


def create_large(path: Path | MemoryStore, form: str) -> tuple[zardine.Array, Any]:
    """An array of one shard of 72 MB, which is encoded in three groups, and values that lie in another order."""
    options = dict(LARGE[form])
    shards = {"shape": (6144, 6144), "index_location": options.pop("index_location", "end")}
    a = zardine.create_array(path, shape=(6000, 6144), dtype="i2", chunks=(64, 512), shards=shards, **options)
    values = (np.arange(6144, dtype="i2")[:, None] * np.arange(6000, dtype="i2") // 64).T
    values[1000:2000] = 0
    return a, values


@pytest.mark.parametrize("form", LARGE)
def test_a_large_shard_is_written_while_it_is_encoded(form: str, tmp_path: Path, sets: list[str]) -> None:
    a, values = create_large(tmp_path / "a", form)
    tracemalloc.start()
    a[...] = values
    assert tracemalloc.get_traced_memory()[1] < 2**21
    tracemalloc.stop()
    assert sets == []
    store = MemoryStore()
    other, _ = create_large(store, form)
    other[...] = values
    assert (tmp_path / "a/c/0/0").read_bytes() == bytes(store.get("c/0/0") or b"")
    np.testing.assert_array_equal(a[900:2100, 5000:], values[900:2100, 5000:])
    a[...] = 0
    assert files(tmp_path / "a") == []


@pytest.fixture
def raise_at_alarm(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Callable[[], None]], None]]:
    """Call a function, and let a handler of signals raise a millisecond later, or after the kernel has its files."""
    new_files = LocalFiles.replace

    def stop(*_: Any) -> None:
        raise KeyboardInterrupt

    @contextmanager
    def timed(*args: Any, **options: Any) -> Iterator[Any]:
        with new_files(*args, **options) as files:
            signal.setitimer(signal.ITIMER_REAL, 0.001)
            yield files

    def begin(write: Callable[[], None]) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0.001)
        write()

    def call(write: Callable[[], None]) -> None:
        monkeypatch.setattr(LocalFiles, "replace", timed)
        with pytest.raises(KeyboardInterrupt):
            begin(write)
        monkeypatch.undo()

    old = signal.signal(signal.SIGALRM, stop)
    gc.disable()  # what is raised in a callback of the collector is lost
    yield call
    gc.enable()
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, old)


@pytest.mark.parametrize("is_new", [True, False])
def test_what_a_signal_raises_stops_a_large_shard(is_new: bool, tmp_path: Path, raise_at_alarm: Any) -> None:
    a, values = create_large(tmp_path / "a", "zstd")
    if not is_new:
        a[0, 0] = 7
    before = [(tmp_path / "a" / each).read_bytes() for each in files(tmp_path / "a")]
    raise_at_alarm(lambda: a.__setitem__(..., values))
    assert [(tmp_path / "a" / each).read_bytes() for each in files(tmp_path / "a")] == before
    assert not list((tmp_path / "a").rglob(".zardine-*"))
    assert (a[0, 0], a[5, 5]) == (0 if is_new else 7, 0)


@pytest.mark.parametrize("compressors", [None, ()], ids=["with checksums", "as it lies in memory"])
def test_what_a_signal_raises_stops_the_shards_after_it(compressors: Any, tmp_path: Path, raise_at_alarm: Any) -> None:
    options: dict[str, Any] = {"chunks": (100, 1000), "shards": (1000, 1000), "compressors": compressors}
    a = zardine.create_array(tmp_path / "a", shape=(40_000, 1000), dtype="i4", **options)
    values = np.ones(a.shape, a.dtype)
    with zardine.config.set({"window_bytes": 2**20}):
        raise_at_alarm(lambda: a.__setitem__(..., values))
    assert len(files(tmp_path / "a")) < 20
    assert not list((tmp_path / "a").rglob(".zardine-*"))


def test_shards_that_are_not_whole_keep_the_rest(tmp_path: Path, sets: list[str]) -> None:
    a = create(tmp_path / "a", **LAYOUTS["shards"])
    a[...] = d = np.arange(1, 45 * 52 + 1, dtype="i4").reshape(SHAPE)
    a[:21, 3:] = 7
    d[:21, 3:] = 7
    np.testing.assert_array_equal(zardine.open_array(tmp_path / "a")[...], d)
    assert sorted(os.listdir(tmp_path / "a" / "c")) == ["0", "1", "2", "3", "4"]
    a[:20] = 0
    d[:20] = 0
    np.testing.assert_array_equal(zardine.open_array(tmp_path / "a")[...], d)
    assert sorted(os.listdir(tmp_path / "a" / "c")) == ["2", "3", "4"]
    other = zardine.open_array(tmp_path / "a", mode="r+")
    assert a[25, 30] == d[25, 30]  # now its index is known
    other[...] = 5
    assert (a[...] == 5).all()


def test_a_shard_that_is_edited_by_another_thread_is_waited_for(tmp_path: Path, sets: list[str]) -> None:
    a = create(tmp_path / "a", **LAYOUTS["shards"])
    a[...] = 1
    with a.store.lock("c/1/1"):
        writer = threading.Thread(target=a.__setitem__, args=(slice(0, 40), 2))
        writer.start()
        writer.join(0.3)
        assert writer.is_alive()
        assert zardine.open_array(tmp_path / "a")[15, 35] == 1
    writer.join(60)
    assert (a[:40] == 2).all()
    assert sets == ["c/1/1"]


def test_chunks_of_the_fill_value_go_and_leave_no_directory(tmp_path: Path) -> None:
    a = create(tmp_path / "a", chunks=(10, 13))
    a[...] = 0
    assert not (tmp_path / "a" / "c").exists()
    a[...] = 1
    a[10:30] = 0
    assert sorted(os.listdir(tmp_path / "a" / "c")) == ["0", "3", "4"]
    assert int(a[...].sum()) == 25 * 52


def test_the_mode_of_a_file_stays(tmp_path: Path) -> None:
    a = create(tmp_path / "a", chunks=(10, 13))
    a[...] = 1
    chunk = tmp_path / "a" / "c" / "1" / "1"
    chunk.chmod(0o640)
    a[...] = 2
    assert chunk.stat().st_mode & 0o777 == 0o640
    assert a[15, 15] == 2


def test_what_is_in_the_way_is_told_as_ever(tmp_path: Path, sets: list[str]) -> None:
    a = create(tmp_path / "a", chunks=(10, 13))
    (tmp_path / "a" / "c" / "1" / "1" / "below").mkdir(parents=True)
    (tmp_path / "a" / "c" / "1" / "1" / "below" / "key").touch()
    with pytest.raises(StoreError, match="c/1/1"):
        a[...] = 1
    assert "c/1/1" in sets


def test_a_link_is_replaced_and_not_followed(tmp_path: Path) -> None:
    a = create(tmp_path / "a", chunks=(10, 13))
    a[...] = 1
    chunk, other = tmp_path / "a" / "c" / "1" / "1", tmp_path / "a" / "other"
    chunk.rename(other)
    before = other.read_bytes()
    chunk.symlink_to(other)
    a[...] = 2
    assert other.read_bytes() == before
    assert not chunk.is_symlink()
    assert (a[...] == 2).all()


def test_directories_that_are_links_are_followed_inside_of_the_store_alone(tmp_path: Path, sets: list[str]) -> None:
    a = create(tmp_path / "a", chunks=(10, 13))
    inside, outside, chunks = tmp_path / "a" / "inside", tmp_path / "outside", tmp_path / "a" / "c"
    for each in (inside, outside, chunks):
        each.mkdir()
    (chunks / "1").symlink_to("../inside")
    a[...] = d = np.arange(1, 45 * 52 + 1, dtype="i4").reshape(SHAPE)
    assert (a[...] == d).all()
    assert files(inside) == ["0", "1", "2", "3"]
    assert len(sets) == 20  # the kernel follows none
    (chunks / "1").unlink()
    (chunks / "1").symlink_to(outside)
    with pytest.raises(InvalidKeyError):
        a[...] = -d
    assert files(outside) == []


def test_durable_stores_and_those_of_others_set_each_chunk(tmp_path: Path, sets: list[str]) -> None:
    class Mine(LocalStore):
        def set(self, key: str, value: BytesLike, *, condition: Condition | None = None) -> Version | None:
            mine.append(key)
            return super().set(key, value, condition=condition)

    mine: list[str] = []
    zardine.create_array(LocalStore(tmp_path / "a", durable=True), shape=40, chunks=10, dtype="i4")[...] = 1
    assert sorted(sets) == ["c/0", "c/1", "c/2", "c/3"]
    zardine.create_array(Mine(tmp_path / "b"), shape=40, chunks=10, dtype="i4")[...] = 1
    assert sorted(mine)[:4] == ["c/0", "c/1", "c/2", "c/3"]


def test_a_chunk_that_another_thread_has_locked_is_waited_for(tmp_path: Path, sets: list[str]) -> None:
    a = create(tmp_path / "a", chunks=(10, 13))
    a[...] = 1
    with a.store.lock("c/1/1"):
        writer = threading.Thread(target=a.__setitem__, args=(slice(0, 40), 2))
        writer.start()
        writer.join(0.3)
        assert writer.is_alive()
        assert zardine.open_array(tmp_path / "a")[15, 15] == 1
    writer.join(60)
    assert (a[:40] == 2).all()
    assert sets == ["c/1/1"]


def test_who_has_locked_a_chunk_may_write_it(tmp_path: Path) -> None:
    a = create(tmp_path / "a", chunks=(10, 13))
    a[...] = 1
    with a.store.lock("c/0/0"), zardine.config.set({"threads": 1}):
        a[:40] = 2
    assert (a[:40] == 2).all()


def _change_parts(path: str, stop: Any) -> None:
    a = zardine.open_array(path, mode="r+")
    number = 0
    while not stop.is_set():
        number += 1
        a[:, 0] = number


def test_changes_of_parts_bring_no_old_values_back(tmp_path: Path) -> None:
    a = create(tmp_path / "a", chunks=(15, 52), shape=(45, 52), compressors=None)
    a[...] = 0
    context = multiprocessing.get_context("spawn")
    stop = context.Event()
    others = [context.Process(target=_change_parts, args=(str(tmp_path / "a"), stop)) for _ in range(2)]
    for each in others:
        each.start()
    while not a[0, 0]:
        assert all(each.is_alive() for each in others)
    for number in range(1, 61):
        a[...] = -number
        assert (a[:, 1:] == -number).all()
    stop.set()
    for each in others:
        each.join(60)
    assert (a[:, 1:] == -60).all()
    assert [each.exitcode for each in others] == [0, 0]
