"""Looks at folders, which tell whether names came or went."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from zardine.storage import CountingStore, LocalStore, MemoryStore
from zardine.stores.local import store as local_store


def test_names_that_come_and_go_make_another_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_store, "_STEP_OF_TIMES", 10**11)  # however slow the machine is
    store = LocalStore(tmp_path)
    assert store.version_of_names("a/") == "none"
    seen = ["none"]
    for change in (lambda: store.set("a/b", b"1"), lambda: store.set("a/c/d", b"1"), lambda: store.erase("a/b")):
        change()
        assert store.version_of_names("a/") == ""  # changed just now: it may be changed again and look the same
        now = os.stat(tmp_path / "a").st_mtime_ns
        os.utime(tmp_path / "a", ns=(now, now - 10**12 + len(seen)))
        version = store.version_of_names("a/")
        assert version
        assert version not in seen
        assert store.version_of_names("a/") == version == CountingStore(store).version_of_names("a/")
        seen.append(version)
    assert MemoryStore().version_of_names("a/") is None


@pytest.mark.parametrize(("age", "whole", "settled"), [(1, True, False), (1, False, True), (9, True, True)])
def test_times_may_be_whole_seconds(tmp_path: Path, age: int, whole: bool, settled: bool) -> None:
    now = os.stat(tmp_path).st_mtime_ns // 10**9 * 10**9
    os.utime(tmp_path, ns=(now, now - age * 10**9 + (not whole)))
    assert bool(LocalStore(tmp_path).version_of_names("")) == settled
