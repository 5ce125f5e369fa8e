"""Conversions that are cut off: killed, interrupted, out of space; places that are taken; sources that change."""

from __future__ import annotations

import json
import os
import re
import resource
import signal
import subprocess
import sys
import tracemalloc
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

import zardine
from zardine.errors import (
    ContainsArrayError,
    ContainsGroupError,
    ConversionError,
    GroupNotFoundError,
    NodeExistsError,
    NodeNotFoundError,
    ReadOnlyError,
    StoreError,
)
from zardine.hierarchy.find import UNFINISHED
from zardine.storage import CountingStore, LocalStore, MemoryStore, PrefixStore, StorePath, WrapperStore, ZipStore

VALUES = np.arange(40 * 30, dtype="f8").reshape(40, 30)

KILLED = """
import os, signal, sys, zardine
from zardine.storage import LocalStore, WrapperStore

source, target, log, after = sys.argv[1:]
left = int(after)

class Mortal(WrapperStore):
    def set(self, key, value, *, condition=None):
        global left
        if key.startswith("__zardine/jobs/"):
            return super().set(key, value, condition=condition)
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        version = super().set(key, value, condition=condition)
        left -= 1
        with open(log, "a") as file:
            print(key, file=file)
        return version

zardine.config.set({"threads": 1})
zardine.convert(source, Mortal(LocalStore(target)), shards=(10, 10), verify=True)
"""


@pytest.fixture
def hierarchy(tmp_path: Path) -> Path:
    """Two groups and two arrays of v2, 12 and 6 shards of them to be stored."""
    root = zardine.create_group(tmp_path / "old", zarr_format=2, attributes={"title": "t"})
    root.create_array("deep/a", data=VALUES, chunks=(5, 5), fill_value=-1)
    root.create_array("b", shape=(40, 30), dtype="f8", chunks=(5, 5))[:15, 5:] = 1
    zardine.consolidate_metadata(tmp_path / "old")
    return tmp_path / "old"


def check(path: Any) -> None:
    root = zardine.open_group(path, mode="r")
    np.testing.assert_array_equal(root["deep/a"][...], VALUES)
    assert root["b"][...].sum() == 15 * 25
    assert {name for name, _ in root.members(None)} == {"b", "deep", "deep/a"}


def test_a_killed_conversion_goes_on(hierarchy: Path, tmp_path: Path) -> None:
    """Killed after the mark, in the shards of an array, and between documents; only its job is done twice."""
    target, log = tmp_path / "new", tmp_path / "log"
    written = 0
    for after in (1, 4, 20, 1):  # the mark; of 6 and 12 shards; documents of deep/a, deep, b, and then of the root
        command = [sys.executable, "-c", KILLED, hierarchy, target, log, str(after)]
        process = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert process.returncode == -signal.SIGKILL, process.stderr
        written += after
        assert len(log.read_text().split()) == written
        assert (target / UNFINISHED).exists()
        assert not (target / "zarr.json").exists()
        with pytest.raises(GroupNotFoundError, match="a conversion to this place is not finished"):
            zardine.open_group(target, mode="r")
        with pytest.raises(NodeNotFoundError, match=r"is not finished .*: the same conversion again continues it$"):
            zardine.open(target)
        with pytest.raises(NodeExistsError, match="is not finished"):
            zardine.open(target, mode="a")  # does not make a group either
        with pytest.raises(NodeExistsError, match="is not finished"):
            zardine.create_array(target, name="deep2/more", shape=1, dtype="i4")
        with pytest.raises(FileNotFoundError):
            zarr.open(target, mode="r")
    assert log.read_text().split()[-3:] == ["deep/a/zarr.json", "deep/zarr.json", "b/zarr.json"]
    store = CountingStore(LocalStore(target))
    zardine.convert(hierarchy, store, shards=(10, 10))
    check(target)
    assert zardine.open_group(target, mode="r").metadata.consolidated_metadata is not None
    assert {key for key, count in Counter(log.read_text().split()).items() if count > 1} <= {
        f"b/c/{i}/{j}" for i in (0, 1) for j in (0, 1, 2)
    }
    assert sum("/c/" in key for key in store.list()) == 18
    assert sorted(store.list()) == sorted({*log.read_text().split()[1:], "zarr.json"})
    assert [key for key in store.counts.keys if "/c/" in key] == []


class Failing(WrapperStore):
    """Refuses every write from the ``after``-th on, as a full disk does."""

    def __init__(self, store: Any, after: int, error: type[BaseException] = StoreError) -> None:
        super().__init__(store)
        self.after, self.error, self.keys = after, error, []

    def set(self, key: str, value: Any, *, condition: Any = None) -> Any:
        if len(self.keys) >= self.after:
            raise self.error("No space left on device")
        self.keys.append(key)
        return super().set(key, value, condition=condition)


@pytest.mark.parametrize("after", range(30))
def test_wherever_it_stops_it_is_unfinished_and_goes_on(hierarchy: Path, after: int) -> None:
    inner = MemoryStore()
    failing = Failing(inner, after)
    try:
        with zardine.config.set({"threads": 1}):
            zardine.convert(hierarchy, failing, shards=(10, 10))
    except StoreError as found:
        error = str(found)
    else:
        assert after >= 27
        check(inner)
        return
    keys = list(inner.list())
    assert "zarr.json" not in keys
    assert (UNFINISHED in keys) == (after > 0)
    assert ("is not finished; the same call again continues it" in error) == (after > 0)
    again = CountingStore(inner)
    zardine.convert(hierarchy, again, shards=(10, 10))
    check(inner)
    assert UNFINISHED not in inner.list()
    jobs = [key for key in failing.keys if "/jobs/" in key]
    if len(jobs) > 2 and "deep/a/c/0/0" in failing.keys:  # the job of the first array is recorded
        assert not any(key.startswith("b/c/") for key in again.counts.keys)


def test_interrupted_by_ctrl_c(hierarchy: Path) -> None:
    inner = MemoryStore()
    with pytest.raises(KeyboardInterrupt):
        zardine.convert(hierarchy, Failing(inner, 9, KeyboardInterrupt), shards=(10, 10))
    assert UNFINISHED in inner.list()
    zardine.convert(hierarchy, inner, shards=(10, 10))
    check(inner)


def test_a_disk_that_is_full(hierarchy: Path, tmp_path: Path) -> None:
    """Files may not grow beyond 20 000 bytes: the error of the operating system is told once, in a line."""
    big = zardine.create_array(tmp_path / "big", shape=(200, 200), dtype="f8", chunks=(20, 20), zarr_format=2)
    big[...] = np.random.default_rng(0).random((200, 200))

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))

    command = [sys.executable, "-m", "zardine", "convert", str(tmp_path / "big"), str(tmp_path / "new")]
    env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}  # Python would keep the half of a compiled module that fits
    process = subprocess.run(command, capture_output=True, text=True, timeout=60, preexec_fn=limit, env=env)
    assert (process.returncode, process.stdout) == (1, "")
    assert process.stderr.startswith("Error: cannot write key 'c/0/0' of file://")
    assert process.stderr.endswith("is not finished; the same call again continues it\n")
    assert process.stderr.count("\n") == 2
    assert subprocess.run(command, capture_output=True, timeout=60).returncode == 0
    np.testing.assert_array_equal(zardine.open_array(tmp_path / "new")[...], big[...])


def test_another_request_does_not_continue(hierarchy: Path, tmp_path: Path) -> None:
    target = MemoryStore()
    with pytest.raises(StoreError):
        zardine.convert(hierarchy, Failing(target, 5), shards=(10, 10))
    keys = sorted(target.list())
    cases: list[tuple[dict[str, Any], str]] = [
        ({}, "it had shards=[10, 10], now it is shards='auto';"),
        ({"shards": (20, 10)}, "it had shards=[10, 10], now it is shards=[20, 10];"),
        ({"shards": (10, 10), "checksum": False}, "it had checksum=None, now it is checksum=False;"),
    ]
    for options, text in cases:
        with pytest.raises(NodeExistsError, match=f"and not this one .*: {re.escape(text)}"):
            zardine.convert(hierarchy, target, **options)
    same = tmp_path / "same"
    zardine.copy_store(LocalStore(hierarchy), LocalStore(same))
    with pytest.raises(NodeExistsError, match=f"is an unfinished conversion of file://{hierarchy}, and not this one"):
        zardine.convert(same, target, shards=(10, 10))  # equal documents do not make it the same data
    with pytest.raises(NodeExistsError, match="resume=True continues it, overwrite=True begins anew"):
        zardine.convert(hierarchy, target, shards=(10, 10), resume=False)
    zardine.open_array(hierarchy, path="b").attrs["new"] = 1
    with pytest.raises(NodeExistsError, match="the documents of the source have changed"):
        zardine.convert(hierarchy, target, shards=(10, 10))
    assert sorted(target.list()) == keys
    zardine.convert(hierarchy, target, shards=(20, 10), overwrite=True)
    check(target)
    assert zardine.open_group(target)["b"].shards == (20, 10)


def test_the_same_request_with_overwrite_continues(hierarchy: Path) -> None:
    target = MemoryStore()
    zardine.create_array(target, name="old/thing", data=VALUES)
    failing = Failing(target, 8)
    with pytest.raises(StoreError):
        zardine.convert(hierarchy, failing, shards=(10, 10), overwrite=True)
    again = CountingStore(target)
    zardine.convert(hierarchy, again, shards=(10, 10), overwrite=True)
    check(target)
    assert not any(key.startswith("old/") for key in [*again.counts.keys, *target.list()])
    zardine.convert(hierarchy, target, shards=(10, 10), overwrite=True)  # a finished one is replaced
    check(target)


def test_places_that_are_taken(hierarchy: Path, tmp_path: Path) -> None:
    def store(**nodes: Any) -> MemoryStore:
        made = MemoryStore()
        for path, data in nodes.items():
            zardine.create_array(made, name=path.replace("_", "/"), data=data)
        return made

    for target, path, kind in (
        (store(x=VALUES), None, ContainsGroupError),
        (store(x=VALUES), "x", ContainsArrayError),
        (store(x=VALUES), "x/y", ContainsArrayError),
        (MemoryStore({"readme": b"x"}), None, NodeExistsError),
        (MemoryStore({"a/c/0": b"x"}), "a", NodeExistsError),
    ):
        before = sorted(target.list())
        with pytest.raises(kind):
            zardine.convert(hierarchy, target, target_path=path)
        assert sorted(target.list()) == before
    inside = store(x=VALUES)
    zardine.convert(hierarchy, inside, source_path="deep", target_path="new/deeper")
    assert sorted(zardine.open_group(inside).members(None)) == sorted(zardine.open_group(inside).members(None))
    np.testing.assert_array_equal(zardine.open_group(inside)["new/deeper/a"][...], VALUES)
    with pytest.raises(ReadOnlyError, match="cannot convert to"):
        zardine.convert(hierarchy, MemoryStore(read_only=True))


def test_source_and_target_are_apart(hierarchy: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(hierarchy)
    local = LocalStore(hierarchy)
    memory = MemoryStore()
    zardine.create_array(memory, name="g/a", data=VALUES)
    for source, target in (
        (hierarchy, hierarchy),
        (hierarchy, f"file://{hierarchy}/deep"),
        (hierarchy / "deep", hierarchy),
        (hierarchy, tmp_path / "link"),
        (tmp_path / "link", hierarchy / "new"),
        (hierarchy, CountingStore(local)),
        (hierarchy, PrefixStore(LocalStore(tmp_path), "old/x")),
        (StorePath(memory, "g"), StorePath(memory, "g/b")),
        (StorePath(memory, "g/a"), memory),
        (memory, PrefixStore(memory, "x")),
    ):
        with pytest.raises(ValueError, match="are one place, or one is inside of the other"):
            zardine.convert(source, target, overwrite=True)
    with ZipStore(tmp_path / "dir/a.zip") as zipped:
        zardine.convert(hierarchy, zipped)
        with pytest.raises(ValueError, match="are one place, or one is inside of the other"):
            zardine.convert(tmp_path / "dir/a.zip", tmp_path / "dir", overwrite=True)
    zardine.convert(tmp_path / "dir/a.zip", tmp_path / "of zip")
    zardine.convert(StorePath(memory, "g/a"), StorePath(memory, "g/b"))
    zardine.convert(hierarchy, tmp_path / "old2")


def test_a_source_that_changes_meanwhile(hierarchy: Path) -> None:
    target = MemoryStore()

    def change(done: int, total: int) -> None:
        zardine.open_array(hierarchy, path="b").attrs["n"] = done

    with pytest.raises(ConversionError, match=f"documents of file://{hierarchy} changed while it was converted"):
        zardine.convert(hierarchy, target, progress=change)
    assert UNFINISHED in target.list()
    assert "zarr.json" not in target.list()


def test_what_verify_says(hierarchy: Path) -> None:
    target = MemoryStore()
    options: dict[str, Any] = {"shards": (10, 10), "verify": True, "checksum": False, "compressors": None}

    def damage(done: int, total: int) -> None:
        if done == total // 2:  # all is written, nothing compared
            shard = bytearray(target.get("deep/a/c/1/2") or b"")
            shard[8] ^= 1
            target.set("deep/a/c/1/2", shard)
            target.set("b/c/3/2", target.get("b/c/0/0") or b"")

    with pytest.raises(ConversionError, match="so it stays unfinished") as error:
        zardine.convert(hierarchy, target, progress=damage, **options)
    assert [str(problem) for problem in error.value.problems] == [
        "/b: key b/c/3/2: it is stored, and nothing of the source is there",
        "/deep/a: region [10:20, 20:30]: 1 of 100 elements differ, the first at (10, 21): "
        "np.float64(321.0) became np.float64(321.00000000000006)",
    ]
    with pytest.raises(ConversionError):
        zardine.convert(hierarchy, target, **options)  # what is there is not written again
    zardine.convert(hierarchy, target, overwrite=True, resume=False, **options)
    check(target)


def test_differences() -> None:
    from zardine.tools.copying.compare import differences, same_object

    nan = np.array([0x7FC00001, 0x7FC00000, 0x80000000], "u4").view("f4")
    assert differences(nan, np.array([np.nan, np.nan, 0], "f4")).tolist() == [True, False, True]
    text = np.array(["a", "a\0", "ü"], np.dtypes.StringDType())
    assert differences(text, np.array(["a", "a", "ü"], text.dtype)).tolist() == [False, True, False]
    one, other = np.empty(2, object), np.empty(2, object)
    one[:], other[:] = [{"a": [1.0, np.nan]}, 1], [{"a": [1.0, np.nan]}, 1.0]
    assert differences(one, other).tolist() == [False, True]
    assert not same_object([1], [True])
    assert same_object(np.arange(3), np.arange(3))
    assert not same_object(np.arange(3), np.arange(3.0))


def test_memory_is_bounded(tmp_path: Path) -> None:
    shape = (64, 1024, 128)  # 64 MiB
    source = zardine.create_array(
        tmp_path / "old", shape=shape, dtype="f8", chunks=(8, 128, 64), zarr_format=2, compressors=None
    )
    for start in range(0, 64, 8):
        source[start : start + 8] = np.arange(start, start + 8, dtype="f8")[:, None, None] + 1
    with zardine.config.set({"window_bytes": 2**24, "threads": 2}):
        tracemalloc.start()
        try:
            how: dict[str, Any] = {"shards": (16, 256, 64), "compressors": None, "verify": True}  # shards of 2 MiB
            made = zardine.convert(tmp_path / "old", tmp_path / "new", **how)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert peak < 20 * 2**20, peak
    assert made[..., 0, 0].sum() == 64 * 65 / 2


def test_the_mark_tells_what_it_is(hierarchy: Path) -> None:
    target = MemoryStore()
    with pytest.raises(StoreError):
        zardine.convert(hierarchy, Failing(target, 3))
    mark = json.loads(bytes(target.get(UNFINISHED) or b""))
    assert set(mark) == {"about", "function", "source", "fingerprint", "options"}
    assert mark["function"] == "convert"
    assert mark["source"] == f"file://{hierarchy}"
    target.set(UNFINISHED, b"nonsense")
    with pytest.raises(NodeExistsError, match="unfinished conversion"):
        zardine.convert(hierarchy, target)


def test_a_directory_that_may_not_be_written(hierarchy: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreError, match="cannot write key"):
        zardine.convert(hierarchy, tmp_path / "file/new")
    if os.getuid() != 0:
        (tmp_path / "closed").mkdir(mode=0o500)
        with pytest.raises(StoreError, match="Permission denied"):
            zardine.convert(hierarchy, tmp_path / "closed")
