"""What border chunks hold beyond the array: the fill value after a full write, and what others appended otherwise."""

from __future__ import annotations

import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import obstore.store
import pytest

import zardine
from effort import SOAK
from zardine.codecs import BytesCodec, ShardingCodec
from zardine.storage import Condition, FsspecStore, LocalStore, MemoryStore, ObjectStore, Store, WrapperStore, ZipStore

MISSING = 2**64 - 1
NESTED = ShardingCodec(chunk_shape=(4, 4), codecs=[ShardingCodec(chunk_shape=(2, 2), codecs=[BytesCodec()])])
LAYOUTS: dict[str, dict[str, Any]] = {
    "chunks": {"chunks": (4, 4)},
    "v2": {"chunks": (4, 4), "zarr_format": 2},
    "shards": {"chunks": (2, 2), "shards": (4, 4)},
    "one shard": {"chunks": (2, 4), "shards": (16, 16)},
    "nested": {"chunks": (8, 8), "serializer": NESTED},
    "rectilinear": {"chunks": [[3, 4, 5], [2, 6, 8]]},
    "rectilinear shards": {"chunks": (1, 2), "shards": [[3, 4, 5], [2, 6, 8]]},
    "kernel knows it not": {
        "chunks": (4, 4),
        "filters": [{"name": "numcodecs.delta", "configuration": {"dtype": "<i4"}}],
    },
}
FULL, SHAPE = (12, 16), (10, 11)


def make_store(kind: str, path: Path) -> Store:
    if kind == "object":
        return ObjectStore(obstore.store.MemoryStore())
    if kind == "fsspec":
        return FsspecStore(fsspec.filesystem("memory"), str(path))
    if kind == "zip":
        return ZipStore(path / "a.zip")
    return MemoryStore() if kind == "memory" else LocalStore(path / "a")


def unpack(shard: bytes, shape: tuple[int, ...], inner: tuple[int, ...], rest: tuple[tuple[int, ...], ...]) -> Any:
    """A shard (of shards) of raw int32, decoded by hand, with -1 for what is not stored."""
    values = np.full(shape, -1, "<i4")
    counts = [n // m for n, m in zip(shape, inner, strict=True)]
    number = counts[0] * counts[1]
    index = struct.unpack(f"<{2 * number}Q", shard[len(shard) - 16 * number - 4 : -4])
    for i in range(number):
        offset, length = index[2 * i : 2 * i + 2]
        if offset != MISSING:
            row, column = i // counts[1] * inner[0], i % counts[1] * inner[1]
            part = shard[offset : offset + length]
            decoded = unpack(part, inner, *rest) if rest else np.frombuffer(part, "<i4", inner[0] * inner[1])
            values[row : row + inner[0], column : column + inner[1]] = decoded.reshape(inner)
    return values


def stored(array: zardine.Array, name: str) -> dict[tuple[int, int], Any]:
    """All elements of every stored object by the coordinates of its first one; decoded by hand."""
    arguments = LAYOUTS[name]
    cuts = arguments.get("shards") or arguments["chunks"]
    axes = [np.append(0, np.cumsum(cut)).tolist() if isinstance(cut, list) else list(range(0, 17, cut)) for cut in cuts]
    found = {}
    for row, (top, bottom) in enumerate(zip(axes[0], axes[0][1:], strict=False)):
        for column, (left, right) in enumerate(zip(axes[1], axes[1][1:], strict=False)):
            data = array.store.get(f"{row}.{column}" if name == "v2" else f"c/{row}/{column}")
            if data is None:
                continue
            shape = bottom - top, right - left
            if name == "nested":
                found[top, left] = unpack(bytes(data), shape, (4, 4), ((2, 2), ()))
            elif "shards" in arguments:
                inner = arguments["chunks"]
                found[top, left] = unpack(bytes(data), shape, inner, ())
            elif name == "kernel knows it not":
                found[top, left] = np.cumsum(np.frombuffer(data, "<i4")).reshape(shape)
            else:
                found[top, left] = np.frombuffer(data, "<i4").reshape(shape)
    return found


def with_leftovers(store: Any, name: str, **more: Any) -> zardine.Array:
    """An array whose border chunks hold 9 beyond it."""
    with zardine.config.set({"array.checksum": False}):
        array = zardine.create_array(
            store, shape=FULL, dtype="i4", fill_value=-1, compressors=None, **{**LAYOUTS[name], **more}
        )
    array[...] = 9
    array.resize(SHAPE, erase=False)
    return array


def check(array: zardine.Array, name: str, value: Any) -> None:
    count = 0
    for (top, left), values in stored(array, name).items():
        if top >= SHAPE[0] or left >= SHAPE[1]:
            continue
        height, width = SHAPE[0] - top, SHAPE[1] - left
        expected = np.full(values.shape, -1)
        expected[:height, :width] = np.broadcast_to(value, SHAPE)[top:, left:][: values.shape[0], : values.shape[1]]
        np.testing.assert_array_equal(values, expected)
        count += 1
    assert count == (1 if name == "one shard" else 4 if name == "nested" else 9)


@pytest.mark.filterwarnings("ignore:.*no conditional writes")
@pytest.mark.parametrize("buffered", [False, True], ids=["at once", "buffered"])
@pytest.mark.parametrize("name", LAYOUTS)
@pytest.mark.parametrize("kind", ["memory", "local", "object", "fsspec", "zip"])
def test_a_full_write_leaves_the_fill_value_beyond(kind: str, name: str, buffered: bool, tmp_path: Path) -> None:
    with make_store(kind, tmp_path) as store:
        array = with_leftovers(store, name)
        assert any((values == 9).any() for values in stored(array, name).values())
        values = np.arange(1, SHAPE[0] * SHAPE[1] + 1).reshape(SHAPE)
        if buffered:
            with array.buffered():
                array[:4] = values[:4]
                array[4:] = values[4:]
        else:
            array[...] = values
        check(array, name, values)
        assert (zardine.open_array(store)[...] == values).all()
        array.resize(FULL)
        assert (array[: SHAPE[0], : SHAPE[1]] == values).all()


@pytest.mark.filterwarnings("ignore:.*no conditional writes")
@pytest.mark.parametrize("empty", [False, True])
@pytest.mark.parametrize("name", ["chunks", "shards", "nested", "one shard"])
@pytest.mark.parametrize("kind", ["memory", "local", "object", "fsspec", "zip"])
def test_a_full_write_of_the_fill_value(kind: str, name: str, empty: bool, tmp_path: Path) -> None:
    with make_store(kind, tmp_path) as store:
        array = with_leftovers(store, name, config={"write_empty_chunks": empty})
        array[...] = -1
        for (top, left), values in stored(array, name).items():
            if top < SHAPE[0] and left < SHAPE[1]:
                assert (values == -1).all()
        array.resize((12, 12))
        assert (array[: SHAPE[0], : SHAPE[1]] == -1).all()
        if kind in ("memory", "local") and not empty:
            assert not [key for key in store.list() if key in ("c/0/0", "c/2/2", "c/2/0", "c/1/1")]


@pytest.mark.parametrize("kind", ["memory", "local"])
def test_a_part_of_a_shard_that_covers_chunks_at_the_border(kind: str, tmp_path: Path) -> None:
    array = with_leftovers(make_store(kind, tmp_path), "shards")
    array[8:10, 10:11] = 3
    values = stored(array, "shards")[8, 8]
    assert values.tolist() == [[9, 9, 3, -1], [9, 9, 3, -1], [9, 9, 9, 9], [9, 9, 9, 9]]


@pytest.mark.parametrize("selection", [np.s_[:9], np.s_[:, :10], np.s_[::2], np.s_[9:, 10:]], ids=str)
def test_a_partial_write_keeps_what_is_beyond(selection: Any) -> None:
    array = with_leftovers(MemoryStore(), "chunks")
    array[selection] = 3
    assert (stored(array, "chunks")[8, 8][2:] == 9).all()
    array.vindex[[8, 9], [10, 10]] = 4
    assert (stored(array, "chunks")[8, 8][2:] == 9).all()


class Seen(WrapperStore):
    """Notes which values are read, and calls ``between`` once at a step of the writer."""

    def __init__(self, inner: Any, *, exclusive: bool = True) -> None:
        super().__init__(inner)
        self.exclusive = exclusive
        self.values: list[str] = []
        self.steps: list[str] = []
        self.at = -1
        self.between: Callable[[], object] = lambda: None

    def step(self, name: str) -> None:
        self.steps.append(name)
        if len(self.steps) - 1 == self.at:
            self.between()

    def read(self, key: str, *ranges: Any) -> Any:
        found = super().read(key, *ranges)
        if ranges != (((0, 0),),):
            self.values.append(key)
        self.step(f"read {key}" if ranges != (((0, 0),),) else f"look {key}")
        return found

    def set(self, key: str, value: Any, *, condition: Condition | None = None) -> Any:
        self.step(f"set {key}")
        version = super().set(key, value, condition=condition)
        self.step(f"after {key}")
        return version

    def erase_version(self, key: str, version: Any) -> None:
        self.step(f"set {key}")
        super().erase_version(key, version)
        self.step(f"after {key}")

    def is_unchanged(self, key: str, version: Any) -> bool:
        found = super().is_unchanged(key, version)
        self.step(f"look {key}")
        return found

    @contextmanager
    def lock(self, key: str) -> Iterator[None]:
        if not self.exclusive:
            yield
            return
        with super().lock(key):
            yield

    def writer(self, prefix: str) -> Any:
        return super().writer(prefix) if self.exclusive else nullcontext(False)

    @property
    def files(self) -> None:
        return None

    @property
    def has_cheap_looks(self) -> bool:
        return self.exclusive

    @property
    def lock_is_exclusive(self) -> bool:
        return self.exclusive


@pytest.mark.parametrize("exclusive", [True, False])
@pytest.mark.parametrize("name", LAYOUTS)
def test_no_value_is_read(name: str, exclusive: bool) -> None:
    with_leftovers(inner := MemoryStore(), name)
    store = Seen(inner, exclusive=exclusive)
    array = zardine.open_array(store, mode="r+")
    store.values.clear()
    array[...] = 1
    document = {"zarr.json", ".zarray"}
    assert not set(store.values) - document
    assert len(store.values) <= (1 if exclusive else 2)  # before, and after
    check(array, name, 1)


def test_writes_away_from_the_border_look_at_nothing_more() -> None:
    with_leftovers(inner := MemoryStore(), "shards")
    store = Seen(inner)
    array = zardine.open_array(store, mode="r+")
    array[:4, :4] = 1
    store.steps.clear()
    array[:4, :4] = 2
    assert [step for step in store.steps if "c/" in step] == ["set c/0/0", "after c/0/0"]


def appended_at(step: int, exclusive: bool, shards: Any, value: int) -> list[str]:
    """Write everything, with an append just after one of the steps; gives these."""
    inner = MemoryStore()
    chunks = (4,) if shards is None else (2,)
    zardine.create_array(inner, shape=(10,), dtype="i4", chunks=chunks, shards=shards)[...] = 1
    store = Seen(inner, exclusive=exclusive)
    array = zardine.open_array(store, mode="r+")
    appender = zardine.open_array(inner if exclusive else Seen(inner, exclusive=False), mode="r+")
    store.steps.clear()
    store.at, store.between = step, lambda: appender.append([7] * 5)
    with zardine.config.set({"threads": 1}):  # the append runs within the write: it must not wait for another thread
        array[...] = value
    assert zardine.open_array(inner)[...].tolist() == [value] * 10 + [7] * 5 * (step >= 0)
    return store.steps


@pytest.mark.parametrize("shards", [None, (4,), (12,)], ids=["chunks", "shards", "one shard"])
@pytest.mark.parametrize("exclusive", [True, False])
@pytest.mark.parametrize("value", [5, 0])
def test_an_append_between_any_two_steps_stays(exclusive: bool, shards: Any, value: int) -> None:
    steps = appended_at(-1, exclusive, shards, value)
    border = "c/0" if shards == (12,) else "c/2"
    assert steps.index(f"look {border}") < steps.index(f"set {border}")
    for number in range(len(steps)):
        appended_at(number, exclusive, shards, value)


@pytest.mark.parametrize("shards", [None, (4,), (12,)], ids=["chunks", "shards", "one shard"])
@pytest.mark.parametrize("exclusive", [True, False])
@pytest.mark.parametrize("value", [5, 0])
def test_a_handle_of_the_shorter_array_keeps_what_was_appended(exclusive: bool, shards: Any, value: int) -> None:
    inner = MemoryStore()
    chunks = (4,) if shards is None else (2,)
    zardine.create_array(inner, shape=(10,), dtype="i4", chunks=chunks, shards=shards)[...] = 1
    array = zardine.open_array(Seen(inner, exclusive=exclusive), mode="r+")
    for number in range(1, 4):
        zardine.open_array(inner, mode="r+").append([7])
        array[...] = value
        assert zardine.open_array(inner)[...].tolist() == [value] * 10 + [7] * number


@pytest.mark.parametrize("shards", [None, (4,), (12,)], ids=["chunks", "shards", "one shard"])
@pytest.mark.parametrize("kind", ["memory", "local"])
@pytest.mark.parametrize("buffered", [False, True])
def test_a_full_write_while_an_append_has_stored_its_values(
    kind: str, shards: Any, buffered: bool, tmp_path: Path
) -> None:
    """These are beyond the shape that the document tells still, and the appender holds its lock."""
    inner = make_store(kind, tmp_path)
    chunks = (4,) if shards is None else (2,)
    array = zardine.create_array(inner, shape=(10,), dtype="i4", chunks=chunks, shards=shards)
    array[...] = 1
    met: list[str] = []

    class Between(WrapperStore):
        def set(self, key: str, value: Any, *, condition: Condition | None = None) -> Any:
            if key == "zarr.json":
                met.append(key)
                meet()
            return super().set(key, value, condition=condition)

    appender = zardine.open_array(Between(inner), mode="r+")

    def rewrite() -> None:
        if buffered:
            with array.buffered():
                array[...] = 5
        else:
            array[...] = 5

    def meet() -> None:
        other = threading.Thread(target=rewrite)
        other.start()
        other.join(30)
        assert not other.is_alive()

    appender.append([7] * 5)
    assert met == ["zarr.json"]
    assert zardine.open_array(inner)[...].tolist() == [5] * 10 + [7] * 5


def test_whose_lock_a_store_tells(tmp_path: Path) -> None:
    for store in (MemoryStore(), LocalStore(tmp_path), Seen(MemoryStore())):
        store.set("a", b"1")
        found: list[bool] = []

        def ask(store: Any = store, found: list[bool] = found) -> None:
            found.append(store.is_locked("a"))

        assert not store.is_locked("a")
        with store.lock("a"):
            assert not store.is_locked("a")  # it is ours
            other = threading.Thread(target=ask)
            other.start()
            other.join()
            ask(LocalStore(tmp_path) if isinstance(store, LocalStore) else store)
        ask()
        assert found == [True, False, False]
    assert LocalStore(tmp_path).is_locked("not there")


APPENDER = """
import sys, zardine
array = zardine.open_array(sys.argv[1], mode="r+")
for number in range(int(sys.argv[2])):
    array.append([number + 100] * 3)
"""


@pytest.mark.parametrize("shards", [None, (8,)], ids=["chunks", "shards"])
def test_processes_that_append_beside_one_that_writes_everything(shards: Any, tmp_path: Path) -> None:
    array = zardine.create_array(
        tmp_path / "a", shape=(6,), dtype="i4", chunks=(8,) if not shards else (4,), shards=shards
    )
    count = 400 if SOAK else 25
    command = [sys.executable, "-c", APPENDER, str(tmp_path / "a"), str(count)]
    appenders = [subprocess.Popen(command) for _ in range(2)]
    written = 0
    while any(each.poll() is None for each in appenders):
        array.refresh()
        size = array.shape[0]
        kept = array[...]
        array[...] = kept
        zardine.open_array(tmp_path / "a", mode="r+")[:size] = kept
        written += 1
    assert [each.returncode for each in appenders] == [0, 0]
    assert written > 3
    found = zardine.open_array(tmp_path / "a")[6:].tolist()
    assert sorted(found) == sorted([number + 100 for number in range(count)] * 6)


@pytest.mark.parametrize("shards", [None, (8,)], ids=["chunks", "shards"])
@pytest.mark.parametrize("kind", ["object", "memory", "local"])
def test_a_thread_that_appends_beside_one_that_writes_everything(kind: str, shards: Any, tmp_path: Path) -> None:
    for number in range(400 if SOAK else 15):
        (tmp_path / str(number)).mkdir()
        store = make_store(kind, tmp_path / str(number))
        array = zardine.create_array(store, shape=(6,), dtype="i4", chunks=(8,) if not shards else (4,), shards=shards)
        array[...] = 2
        appender = zardine.open_array(store, mode="r+")
        begin = threading.Barrier(2)

        def append(appender: zardine.Array = appender, begin: threading.Barrier = begin) -> None:
            begin.wait()
            appender.append([7] * 5)

        other = threading.Thread(target=append)
        other.start()
        begin.wait()
        while other.is_alive():
            array[...] = 1
        other.join()
        array[...] = 3
        assert zardine.open_array(store)[...].tolist() == [3] * 6 + [7] * 5
