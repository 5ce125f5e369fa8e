"""Zip archives read and written by threads while others compact, close and replace them."""

from __future__ import annotations

import gc
import os
import shutil
import threading
import time
import warnings
from collections import Counter

import numpy as np
import pytest

import zardine
from zardine.errors import ConditionFailedError
from zardine.storage import ZipStore
from zardine.stores.base import Condition

VALUES = np.arange(1, 40_001, dtype="i4")


def make(path, *, sharded):
    options = {"chunks": (500,), "shards": (5000,)} if sharded else {"chunks": (5000,), "compressors": None}
    with ZipStore(path) as store:
        zardine.create_array(store, data=VALUES, checksum=sharded, **options)


def close(path):
    with ZipStore(path) as store:
        store.get("zarr.json")


def compact(path):
    ZipStore(path).compact()


def replace(path):
    shutil.copy(path, f"{path}.new")
    os.replace(f"{path}.new", path)
    ZipStore(path).get("zarr.json")


def write(path):
    with ZipStore(path) as store:
        store.set("other", b"x" * 100)


def take_descriptors():
    """What a descriptor that was closed too early would mean now."""
    return [open(__file__, "rb") for _ in range(8)]


@pytest.mark.parametrize("disturb", [close, compact, replace, write])
@pytest.mark.parametrize("sharded", [True, False])
def test_readers_get_right_data_whatever_others_do(tmp_path, disturb, sharded):
    path = tmp_path / "a.zip"
    make(path, sharded=sharded)
    found = Counter()
    stop = threading.Event()

    def read():
        array = zardine.open_array(path, mode="r")
        while not stop.is_set():
            try:
                found["right" if (array[700:39_000] == VALUES[700:39_000]).all() else "wrong"] += 1
            except Exception as error:
                found[repr(error)] += 1

    readers = [threading.Thread(target=read) for _ in range(3)]
    for each in readers:
        each.start()
    end = time.monotonic() + 0.25
    try:
        while time.monotonic() < end or (found["right"] <= 3 and time.monotonic() < end + 30):
            disturb(path)
            for file in take_descriptors():
                file.close()
    finally:
        stop.set()
        for each in readers:
            each.join()
    assert set(found) == {"right"}
    assert found["right"] > 3


@pytest.mark.parametrize("disturb", [close, compact, replace, write])
def test_what_is_read_from_stays_open_until_it_was_read(tmp_path, disturb, monkeypatch):
    path = tmp_path / "a.zip"
    with ZipStore(path) as store:
        store.set("gone", b"x" * 1000)
        store.erase("gone")
        store.set("k", bytes(range(256)))
    store.get("k")
    before = len(os.listdir("/proc/self/fd"))
    pread, files = os.pread, []

    def late_pread(*args):
        if not files:
            files.extend(take_descriptors())  # first, so that nothing below reads like this again
            disturb(path)
            files.extend(take_descriptors())
        return pread(*args)

    monkeypatch.setattr(os, "pread", late_pread)
    assert store.read("k", ((100, 10),)).parts[0] == bytes(range(100, 110))
    monkeypatch.undo()
    assert files
    for each in files:
        each.close()
    store.get("k")
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) <= before


def test_threads_that_change_and_compact_and_close_lose_nothing(tmp_path):
    path = tmp_path / "a.zip"
    rounds, threads = 25, 4
    ZipStore(path).set("count", b"0")
    failures = []

    def work(number):
        try:
            for turn in range(rounds):
                store = ZipStore(path)
                while True:
                    old = store.read("count")
                    try:
                        store.set("count", str(int(old.parts[0]) + 1).encode(), condition=Condition(old.version))
                        break
                    except ConditionFailedError:
                        continue
                store.set(f"{number}/{turn}", b"x")
                if turn % 5 == number:
                    store.compact()
                elif turn % 3 == 0:
                    store.close()
        except BaseException as error:
            failures.append(error)

    running = [threading.Thread(target=work, args=(number,)) for number in range(threads)]
    for each in running:
        each.start()
    for each in running:
        each.join()
    assert not failures
    with ZipStore(path) as store:
        assert store.get("count") == str(rounds * threads).encode()
        assert len(list(store.list())) == rounds * threads + 1


def test_an_archive_is_opened_anew_only_when_it_was_written(tmp_path):
    """One thread lets go of its last store, which writes the directory; another opens the path."""
    path = tmp_path / "a.zip"
    for number in range(60):
        store = ZipStore(path)
        store.set(f"k{number}", b"x")
        box, missing = [store], []
        del store
        start = threading.Barrier(2)

        def drop(box=box, start=start):
            start.wait()
            box.clear()

        def look(number=number, start=start, missing=missing):
            start.wait()
            if ZipStore(path).get(f"k{number}") is None:
                missing.append(number)

        both = [threading.Thread(target=drop), threading.Thread(target=look)]
        for each in both:
            each.start()
        for each in both:
            each.join()
        assert not missing


def test_what_cannot_be_written_when_nobody_uses_it_any_more_is_told(tmp_path, monkeypatch):
    path = tmp_path / "a.zip"
    store = ZipStore(path)
    store.set("k", b"x")
    path.unlink()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        del store
        gc.collect()
    assert [each.category for each in caught] == [RuntimeWarning]
    assert "is lost: zip://" in str(caught[0].message)
