"""What :mod:`stores.test_without_locks` runs, without locks: ``python -m stores.without_locks NAME PATH``."""

from __future__ import annotations

import sys
import threading
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import zardine
from zardine import vectors as zv
from zardine.errors import UnsupportedError

STRATEGIES = ("rewrite", "append", "in_place")


def make(path: str, *, shards: tuple[int, ...] | None = (256,)) -> zardine.Array:
    array = zardine.create_array(path, shape=(256,), chunks=(64,), shards=shards, dtype="i4")
    array[...] = -1
    return array


def refuse(path: str) -> None:
    """Parts are refused in words, whole objects written; documents are changed with one warning."""
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        array = make(path)
        for strategy in STRATEGIES:
            for part in (slice(0, 64), slice(3, 5), slice(60, 200)):
                refused(lambda strategy=strategy, part=part: writes(array, strategy, part), path)
        flat = make(f"{path}-flat", shards=None)
        refused(lambda: flat.__setitem__(slice(0, 3), 7), f"{path}-flat")
        flat[64:128] = 4
        assert (array[...] == -1).all()
        assert not warned, [str(each.message) for each in warned]
        array[...] = 3
        array.attrs["unit"] = "mm"
        array.append(np.arange(256, dtype="i4"))
        array.append(np.arange(5, dtype="i4"))
        refused(lambda: array.append(np.arange(5, dtype="i4")), path)
        assert array.shape == zardine.open_array(path).shape == (517,)
        assert zardine.open_array(path).attrs["unit"] == "mm"
        assert array[256:].tolist() == [*range(256), *range(5)]
    assert len(warned) == 1, [str(each.message) for each in warned]
    assert "no file locks" in str(warned[0].message)
    assert not list(Path(path).rglob(".*"))


def refused(work: Callable[[], object], where: str) -> None:
    with pytest.raises(UnsupportedError, match="allow_lost_updates") as raised:
        work()
    assert f"the file system of {where!r} has no file locks" in str(raised.value)


def writes(array: zardine.Array, strategy: str, part: slice) -> None:
    array.with_config({"write_strategy": strategy})[part] = 5


def archives(path: str) -> None:
    """A new archive is written; one that is there only by permission, and read in any case."""
    place = f"{path}.zip"
    with zardine.storage.ZipStore(place) as store:
        array = zardine.create_array(store, shape=(8,), chunks=(4,), dtype="i4")
        array[...] = 1
    with zardine.storage.ZipStore(place) as store:
        array = zardine.open_array(store)
        assert array[...].tolist() == [1] * 8
        refused(lambda: array.__setitem__(0, 2), place)
        refused(lambda: zardine.open_array(store, mode="r+").update_attributes({"a": 1}), place)
        refused(store.compact, place)
        with zardine.config.set({"allow_lost_updates": True}):
            array[0] = 2
            store.flush()
    assert zardine.open_array(place, mode="r")[:2].tolist() == [2, 1]


def write_and_append(path: str, points: np.ndarray) -> None:
    zv.write_points(path, points, chunk_shape=(0.5, 0.5, 0.5))
    zv.append_points(path, points + 1)


def vectors(path: str) -> None:
    """Points are written, read and changed; the user is warned of it, or allows it."""
    points = np.random.default_rng(3).random((500, 3), np.float32)
    with pytest.warns(UserWarning, match="no file locks"):
        write_and_append(path, points)
    assert len(zv.read_points(path).positions) == 1000
    with zardine.config.set({"allow_lost_updates": True}), warnings.catch_warnings():
        warnings.simplefilter("error")
        zv.append_points(path, points + 2)
        zv.delete(path, bbox=([2, 2, 2], [3, 3, 3]))
    assert len(zv.read_points(path).positions) == 1000
    assert zv.validate(path).ok


def threads(path: str) -> None:
    """A single process that is allowed to write loses nothing between its threads, whose readers see whole chunks."""
    array, ended, wrong = make(path), threading.Event(), []
    zardine.config.set({"allow_lost_updates": True})
    warnings.simplefilter("error")

    def write(number: int) -> None:
        mine = array.with_config({"write_strategy": STRATEGIES[number % 3]})
        try:
            for i in range(40):
                mine[number * 64 : (number + 1) * 64] = i
                assert (mine[number * 64 : (number + 1) * 64] == i).all()
                mine.update_attributes({f"{number}": i})
            mine.append(np.full(64, number, "i4"))
        except BaseException as error:
            wrong.append(repr(error))

    def read() -> None:
        try:
            while not ended.is_set():
                seen = zardine.open_array(path, mode="r")[:256].reshape(4, 64)
                assert (seen == seen[:, :1]).all(), seen
        except BaseException as error:
            wrong.append(repr(error))

    writers = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    readers = [threading.Thread(target=read) for _ in range(2)]
    for each in writers + readers:
        each.start()
    for each in writers:
        each.join()
    ended.set()
    for each in readers:
        each.join()
    assert not wrong, wrong
    array = zardine.open_array(path)
    assert array[:256:64].tolist() == [39] * 4
    assert sorted(array[256::64].tolist()) == [0, 1, 2, 3]
    assert array.attrs.asdict() == {str(number): 39 for number in range(4)}


def one_of_several(path: str) -> None:
    """Write a part of a shard again and again, beside other processes; say what was stored, each time."""
    number, strategy = int(sys.argv[3]), STRATEGIES[int(sys.argv[3]) % 3]
    array = zardine.open_array(path, mode="r+", config={"write_strategy": strategy})
    sys.stdin.readline()
    for i in range(1, 61):
        try:
            array[number * 64 : (number + 1) * 64] = i
        except UnsupportedError:
            continue
        print(i, flush=True)


if __name__ == "__main__":
    globals()[sys.argv[1]](sys.argv[2])
