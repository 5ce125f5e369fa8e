"""Chunks that the kernel puts into files: arguments that do not fit, and what it leaves to the caller."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from zardine.stores.open_files import version_of

from .cases import CRC, NAMES, Format, opened

KERNEL = pytest.importorskip("zardine._kernel")

AXES = [("s", *(np.array(each, np.int64) for each in ([4, 4], [0, 0], [4, 4], [0, 4])), 1)]
PARTS = np.array([[0, 1], [1, 2]], np.int64)


def put(path: Path, *keys: str, conditions: Any = (), parts: Any = PARTS, shard: Any = None) -> Any:
    """Put two chunks, of which the second is full of the fill value."""
    values = np.array([1, 2, 3, 4, 0, 0, 0, 0], "i2").view("V2")
    pipeline = Format("V2", (0,), [CRC], fill=b"\0\0").pipeline()
    with opened(path, *keys, conditions=conditions) as files:
        return pipeline.encode_to_files(values, parts, AXES, write_empty=False, threads=2, files=files, shard=shard)


def test_what_becomes_of_each(tmp_path: Path) -> None:
    assert put(tmp_path, "a", "b") == (b"\1\2", [])
    assert (tmp_path / "a").read_bytes()[:8] == np.array([1, 2, 3, 4], "i2").tobytes()
    assert put(tmp_path, "a", "c/b", conditions=["", None]) == (b"\0\2", [])
    status = os.stat(tmp_path / "a")
    version = "-".join(f"{each:x}" for each in (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns))
    assert put(tmp_path, "b", "c/b", conditions=[version, None]) == (b"\0\2", [])
    assert put(tmp_path, "a", "c/b", conditions=[version, version]) == (b"\1\2", [])
    assert put(tmp_path, "a", "c/b", conditions=[version, None]) == (b"\0\2", [])
    assert put(tmp_path, "c/d/a", "c/e/b") == (b"\1\2", [])
    assert sorted(os.listdir(tmp_path)) == ["a", "c"]
    assert os.listdir(tmp_path / "c") == ["d"]


def test_what_does_not_fit_is_refused(tmp_path: Path) -> None:
    for keys in [["a"], ["a", "b", "c"]]:
        with pytest.raises(ValueError, match="parts"):
            put(tmp_path, *keys)
    with pytest.raises(ValueError, match="name row"):
        put(tmp_path, "a", "b", parts=PARTS + 7)
    with pytest.raises(ValueError, match="files for"):
        put(tmp_path, "a", "b", parts=np.array([[0, 2], [1, 2]]))
    with pytest.raises(ValueError, match="1 conditions for 2 keys"):
        put(tmp_path, "a", "b", conditions=[""])
    with opened(tmp_path, "a", "b") as files:
        files.close()
        files.close()
        pipeline = Format("V2", (0,), [CRC], fill=b"\0\0").pipeline()
        values = np.zeros(8, "V2")
        with pytest.raises(ValueError, match="closed"):
            pipeline.encode_to_files(values, PARTS, AXES, write_empty=False, threads=2, files=files)
    with pytest.raises(OSError, match="descriptor"):
        KERNEL.open_new_files(-1, ["a"], (), NAMES, 0)
    assert os.listdir(tmp_path) == []


def test_only_the_usual_case_is_done(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    (tmp_path / "file").touch()
    for key in [
        "",
        "/a",
        "a/",
        "a//b",
        "../a",
        "a/..",
        "./a",
        "a\0",
        ".own-1.end",
        "a/.own-1.end/b",
        "link/a",
        "file/a",
    ]:
        with opened(tmp_path, "new/a", key) as files:
            assert files is None, key
    with pytest.raises(OSError, match="too long"):
        KERNEL.open_new_files(os.open(tmp_path, os.O_RDONLY), ["a" * 300 + "/b"], (), NAMES, 0)
    assert sorted(os.listdir(tmp_path)) == ["file", "link"]


def named(path: Path, real: Path) -> tuple[bytes, bytes]:
    """Return a base as it is named: its path, and what its real path begins with."""
    return os.fsencode(path), os.fsencode(f"{real}/")


def test_a_base_that_is_named_is_where_it_is_said_to_be(tmp_path: Path) -> None:
    base, link = tmp_path / "base", tmp_path / "link"
    (base / "there").mkdir(parents=True)
    (base / "inside").symlink_to(base / "there")
    (base / "file").touch()
    link.symlink_to(base)

    def put_one(path: Path, real: Path, key: str) -> Any:
        files = KERNEL.open_new_files(named(path, real), [key], (), NAMES, 0)
        if files is None:
            return None
        values, pipeline = np.ones(4, "i2").view("V2"), Format("V2", (0,), [], fill=b"\0\0").pipeline()
        done = pipeline.encode_to_files(values, PARTS[:1], AXES, write_empty=False, threads=1, files=files)
        files.close()
        return done

    for path in base, link:
        for key in "a", "there/b", "new/below/c", "new/d":
            assert put_one(path, base, key) == (b"\1", [])
            assert (base / key).stat().st_size == 8
            (base / key).unlink()
        for key in "inside/a", "file/a", "../a", "there/../a", "/a", "a/", "", "there/.own-1.end":
            assert put_one(path, base, key) is None, key
    assert put_one(link, tmp_path / "elsewhere", "there/a") is None  # the link has moved
    assert put_one(base, tmp_path / "elsewhere", "new/a") is None
    assert put_one(base, tmp_path / "bas", "a") is None
    with pytest.raises(FileNotFoundError):
        put_one(tmp_path / "none", tmp_path / "none", "a")
    with pytest.raises(OSError, match="nul"):
        put_one(Path("a\0b"), tmp_path, "a")
    assert sorted(os.listdir(tmp_path)) == ["base", "link"]
    assert sorted(os.listdir(base)) == ["file", "inside", "new", "there"]
    assert os.listdir(base / "there") == []


def test_a_version_is_what_python_calls_it(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"one")
    for seconds in (0, 10**9 + 0.5, -5, -(10**9) - 0.25):
        os.utime(path, (seconds, seconds))
        version = version_of(path.stat())
        assert KERNEL.has_version(str(path), version)
        for wrong in (version[1:], version[:-1], version + "0", "", "-", "1-2-3-4"):
            assert not KERNEL.has_version(str(path), wrong)
        assert not KERNEL.has_version(str(tmp_path / "none"), version)
    path.write_bytes(b"two!")
    assert not KERNEL.has_version(str(path), version)
    with pytest.raises(ValueError, match="zero"):
        KERNEL.has_version("a\0b", version)


def test_a_shard_is_its_chunks_and_its_index(tmp_path: Path) -> None:
    both, places = np.array([[0, 2]]), [np.array([2, 0])]
    assert put(tmp_path, "a", parts=both, shard=(3, False, False, places, None)) == (b"\1", [])
    data = (tmp_path / "a").read_bytes()
    assert data[:8] == np.array([1, 2, 3, 4], "i2").tobytes()
    assert np.frombuffer(data[12:], "<i8").tolist() == [-1, -1, -1, -1, 0, 12]
    ranks = np.array([1, 0, 0])
    parts = np.array([[0, 0], [0, 2]])
    assert put(tmp_path, "b", "a", parts=parts, shard=(3, True, True, places, ranks)) == (b"\2\1", [])
    assert len((tmp_path / "a").read_bytes()) == 52 + 12
    assert os.listdir(tmp_path) == ["a"]
    for wrong in [
        (2, False, False, places, None),
        (3, False, False, [places[0] - 1], None),
        (3, False, False, [places[0][:1]], None),
        (3, False, False, [], None),
        (3, False, False, [places[0].astype("i4")], None),
        (3, False, False, places, ranks[:1]),
        (2**62, False, False, places, None),
        (3, False, False, places),
    ]:
        with pytest.raises(ValueError, match=r"rows|places|row|int64|member|negative"):
            put(tmp_path, "a", parts=both, shard=wrong)
    for wrong_parts in [[[0, 3]], [[-1, 1]], [[1, 0]], [[0, 1], [1, 2]], [[0]]]:
        with pytest.raises(ValueError, match=r"rows|parts"):
            put(tmp_path, "a", parts=np.array(wrong_parts), shard=(3, False, False, places, None))


def change(path: Path, *keys: str, first: int = 1, most: int = 100, shard: Any = None) -> Any:
    """Put two elements into each of two chunks of four."""
    axes = [("s", *(np.array(each, np.int64) for each in ([4, 4], [first, first], [2, 2], [0, 2])), 1)]
    values = np.array([1, 2, 3, 4], "i2").view("V2")
    pipeline = Format("V2", (0,), [CRC], fill=b"\0\0").pipeline()
    parts = PARTS if shard is None else np.array([[0, 2]])
    with opened(path, *keys) as files:
        return pipeline.change_files(
            values, parts, axes, write_empty=False, threads=2, files=files, most=most, shard=shard
        )


def _close(changed: list[Any]) -> None:
    for each in changed:
        if each is not None and each[0] is not None:
            os.close(each[0].detach())


def test_files_that_are_changed_keep_the_rest(tmp_path: Path) -> None:
    names = "a", "b"
    made, failed = change(tmp_path, *names)
    assert failed == []
    assert made == [(None, None, b"", b"")] * 2
    changed, failed = change(tmp_path, *names, first=0)
    assert [each[0] is not None for each in changed] == [True, True]
    _close(changed)
    assert np.frombuffer((tmp_path / "b").read_bytes()[:8], "i2").tolist() == [3, 4, 4, 0]
    assert change(tmp_path, *names, most=11) == ([None, None], [])  # of twelve bytes
    data = bytearray((tmp_path / "b").read_bytes())
    data[0] ^= 1
    (tmp_path / "b").write_bytes(data)
    changed, failed = change(tmp_path, *names)
    assert [each is None for each in changed] == [False, True]
    assert [number for number, _ in failed] == [1]
    assert (tmp_path / "b").read_bytes() == data
    _close(changed)
    (tmp_path / ".own-edit-a.end").touch()  # of a shard that was there: chunks that are files are never edited
    changed, _ = change(tmp_path, *names)
    assert [each is None for each in changed] == [False, True]
    _close(changed)
    assert sorted(os.listdir(tmp_path)) == [".own-edit-a.end", "a", "b"]


def test_shards_that_are_changed_keep_the_rest(tmp_path: Path) -> None:
    places, path = [np.array([2, 0])], tmp_path / "a"
    form = (3, False, True, places, None)
    for first in (0, 2):
        changed, failed = change(tmp_path, "a", first=first, shard=form)
        assert failed == []
        _close(changed)
    ((_, status, offsets, lengths),) = changed
    now = path.stat()
    assert status == (now.st_ino, now.st_size, now.st_mtime_ns, now.st_ctime_ns)
    assert np.frombuffer(offsets, np.int64).tolist() == [0, -1, 12]
    assert np.frombuffer(lengths, np.int64).tolist() == [12, -1, 12]
    data = path.read_bytes()
    assert np.frombuffer(data[:8] + data[12:20], "i2").tolist() == [3, 4, 3, 4, 1, 2, 1, 2]
    assert np.frombuffer(data[24:-4], "<i8").tolist() == [0, 12, -1, -1, 12, 12]
    for wrong in (data[:-1], data[:30], b"", data[:-5] + b"\7" + data[-4:]):
        path.write_bytes(wrong)
        assert change(tmp_path, "a", shard=form) == ([None], [])
        assert path.read_bytes() == wrong
    path.write_bytes(data)
    (tmp_path / ".own-edit-a.end").touch()
    assert change(tmp_path, "a", shard=form) == ([None], [])
    (tmp_path / ".own-edit-a.end").unlink()
    assert change(tmp_path, "a", most=11, shard=form) == ([None], [])
    assert change(tmp_path, "a", shard=(4, *form[1:])) == ([None], [])
    with pytest.raises(ValueError, match="negative"):
        change(tmp_path, "a", shard=(3, False, True, [places[0] - 1], None))
    path.unlink()
    assert change(tmp_path, "a", shard=(2**57, *form[1:]))[0] == [None]  # no memory for that
    assert os.listdir(tmp_path) == []
