"""Looks at folders, which tell whether names came or went."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from zardine.storage import CountingStore, LocalStore, MemoryStore, ZipStore
from zardine.stores.local import file_times
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


@pytest.mark.parametrize("minutes", [-7, 0, 7])
def test_the_clock_of_a_file_server_is_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, minutes: int) -> None:
    monkeypatch.setattr(file_times, "_latest", {})
    monkeypatch.setattr(file_times, "_has_our_clock", lambda device: False)
    ours, passed = file_times.time.time_ns, [1000.0]
    monkeypatch.setattr(file_times.time, "time_ns", lambda: ours() + minutes * 60 * 10**9)
    monkeypatch.setattr(file_times.time, "monotonic", lambda: passed[0])
    (tmp_path / "other").mkdir()
    store = LocalStore(tmp_path)
    assert store.version_of_names("") == ""  # who knows when that was, by its clock
    passed[0] += 0.04
    assert store.version_of_names("") == ""
    passed[0] += 0.02
    version = store.version_of_names("")
    assert version
    status = os.stat(tmp_path / "other")
    os.utime(tmp_path / "other", ns=(status.st_atime_ns, status.st_ctime_ns + 4 * 10**18))  # in 2150
    assert store.version_of_names("other/") == ""
    assert store.version_of_names("") == version


def leave(folder: Path, kind: str) -> LocalStore | ZipStore:
    """A store with what a killed writer has left in it, or beside it."""
    if kind == "local":
        (folder / ".zardine-0123456789abcdef.tmp").write_bytes(b"1")
        return LocalStore(folder)
    store = ZipStore(folder / "a.zip", mode="w")
    store.set("a", b"1")
    (folder / "a.zip.0123456789abcdef.part").write_bytes(b"1")
    return store


@pytest.mark.parametrize("kind", ["local", "zip"])
@pytest.mark.parametrize("hours", [-2, 0, 2])
@pytest.mark.parametrize("server", [False, True], ids=["disk", "server"])
def test_leftovers_are_as_old_as_the_clock_of_their_file_system_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: bool, hours: int, kind: str
) -> None:
    """The clock of this machine is put forward or back after a file was left, or is not that of the server."""
    store = leave(tmp_path, kind)
    monkeypatch.setattr(file_times, "_asked", {})
    monkeypatch.setattr(file_times, "_has_our_clock", lambda device: not server)
    ours, passed = file_times.time.time, [1000.0]
    monkeypatch.setattr(file_times.time, "time", lambda: ours() + hours * 3600)
    monkeypatch.setattr(file_times.time, "monotonic", lambda: passed[0])
    if hours and not server:  # dated in the future, it would be left for ever
        assert len(list(store.leftovers())) == store.remove_leftovers() == 1
    else:
        assert store.remove_leftovers() == 0
        assert list(store.leftovers()) == []
        passed[0] += 3601
        assert len(list(store.leftovers())) == server
    assert len(os.listdir(tmp_path)) == (kind == "zip") + (server or not hours)


def test_where_the_clock_cannot_be_asked_ours_stands_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_times, "_asked", {})
    monkeypatch.setattr(file_times, "_has_our_clock", lambda device: False)
    file_times.ask_clock(str(tmp_path / "none"), "x")
    file_times.ask_clock(str(tmp_path), "none/x")
    assert file_times._asked == {}
    assert file_times.is_older(os.stat(tmp_path), 0)
    assert not file_times.is_older(os.stat(tmp_path), 3600)
    file_times.ask_clock(str(tmp_path), "x")
    assert list(file_times._asked) == [os.stat(tmp_path).st_dev]
    assert os.listdir(tmp_path) == []


def test_disks_of_this_machine_have_its_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_times.os, "major", lambda device: 0)
    monkeypatch.setattr(file_times.os, "minor", lambda device: 10**6)  # a mount that nobody knows
    assert not file_times._has_our_clock(1)
    monkeypatch.undo()
    mounts = Path("/proc/self/mountinfo")
    if mounts.exists():
        lines = [line.split() for line in mounts.read_text(errors="replace").splitlines()]
        kinds = {line[4]: line[line.index("-") + 1] for line in lines}
        for place in {"/", "/dev/shm"} & kinds.keys():
            if kinds[place] in ("ext4", "xfs", "overlay", "tmpfs"):
                assert file_times._has_our_clock(os.stat(place).st_dev)
