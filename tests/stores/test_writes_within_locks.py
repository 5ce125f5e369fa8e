"""Who has locked a key of local files sets it by what it holds already: the directory, and the lock."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from zardine.errors import ConditionFailedError
from zardine.storage import Condition, LocalStore

OTHER = """
import sys
from zardine.storage import LocalStore
LocalStore(sys.argv[1]).set(sys.argv[2], b"other")
"""


def _other_process(path: Path, key: str) -> None:
    subprocess.run([sys.executable, "-c", OTHER, str(path), key], check=True)


def test_others_wait_until_the_lock_is_given_back(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    store.set("a/k", b"0")
    threads, processes = [], []
    with store.lock("a/k"):
        for value in (b"1", b"2"):
            version = store.set("a/k", value, condition=Condition(store.version("a/k")))
            assert version == store.version("a/k")
            threads.append(threading.Thread(target=store.set, args=("a/k", b"thread")))
            processes.append(subprocess.Popen([sys.executable, "-c", OTHER, str(tmp_path), "a/k"]))
            threads[-1].start()
            with pytest.raises(subprocess.TimeoutExpired):
                processes[-1].wait(1)
            assert all(thread.is_alive() for thread in threads)
            assert (tmp_path / "a" / "k").read_bytes() == value
    assert [process.wait(60) for process in processes] == [0, 0]
    for thread in threads:
        thread.join(60)
    assert (tmp_path / "a" / "k").read_bytes() in (b"thread", b"other")
    assert sorted(os.listdir(tmp_path / "a")) == ["k"]


def test_a_key_that_another_process_makes_meanwhile(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    with store.lock("a/k"):
        _other_process(tmp_path, "a/k")
        with pytest.raises(ConditionFailedError):
            store.set("a/k", b"mine", condition=Condition(None))
        assert (tmp_path / "a" / "k").read_bytes() == b"other"
        store.set("a/k", b"mine")
    assert (tmp_path / "a" / "k").read_bytes() == b"mine"
    assert sorted(os.listdir(tmp_path / "a")) == ["k"]


def test_a_condition_is_looked_at(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    store.set("k", b"0")
    with store.lock("k"):
        first = store.version("k")
        store.set("k", b"1")
        with pytest.raises(ConditionFailedError):
            store.set("k", b"2", condition=Condition(first))
        store.erase("k")
        store.set("k", b"3", condition=Condition(None))
    assert (tmp_path / "k").read_bytes() == b"3"
    assert os.listdir(tmp_path) == ["k"]


def test_a_directory_that_is_erased_meanwhile_is_made_again(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    store.set("a/k", b"0")
    with store.lock("a/k"):
        shutil.rmtree(tmp_path / "a")
        store.set("a/k", b"1")
        with store.lock("a/k"):
            store.set("a/k", b"2")
        store.set("a/k", b"3")
    assert (tmp_path / "a" / "k").read_bytes() == b"3"


def test_an_empty_directory_in_the_way_goes(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    with store.lock("k"):
        (tmp_path / "k").mkdir()
        store.set("k", b"1")
    assert (tmp_path / "k").read_bytes() == b"1"


def test_a_base_that_is_made_for_a_lock_stays_only_with_what_is_put_there(tmp_path: Path) -> None:
    for name, makes in (("new", ()), ("with", ("a/other",)), ("empty", ())):
        if name == "empty":
            (tmp_path / name).mkdir()
        store = LocalStore(tmp_path / name)
        with store.lock("a/b/k"):
            for key in makes:
                store.set(key, b"1")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty", "with"]
    assert list(LocalStore(tmp_path / "with").list_prefix("")) == ["a/other"]
