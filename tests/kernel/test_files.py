"""Chunks that the kernel puts into files: arguments that do not fit, and what it leaves to the caller."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from .cases import CRC, Format

pytest.importorskip("zardine._kernel")

AXES = [("s", *(np.array(each, np.int64) for each in ([4, 4], [0, 0], [4, 4], [0, 4])), 1)]
JOBS = np.array([[0], [1]], np.int64)


def put(files: Any, *, jobs: Any = JOBS, axes: Any = AXES, shards: Any = None) -> Any:
    """Put two chunks, of which the second is full of the fill value."""
    values = np.array([1, 2, 3, 4, 0, 0, 0, 0], "i2").view("V2")
    pipeline = Format("V2", (0,), [CRC], fill=b"\0\0").pipeline()
    return pipeline.encode_to_files(values, jobs, axes, write_empty=False, threads=2, files=files, shards=shards)


def test_what_becomes_of_each(tmp_path: Path) -> None:
    directory = os.open(tmp_path, os.O_RDONLY)
    try:
        names = [(directory, b"a", b"a.tmp", b"a.rec", False), (directory, b"b", b"b.tmp", b"b.rec", False)]
        assert put(names) == (b"\1\2", [])
        assert (tmp_path / "a").read_bytes()[:8] == np.array([1, 2, 3, 4], "i2").tobytes()
        assert put([(directory, b"a", b"a.tmp", b"a.rec", True), names[1]]) == (b"\0\2", [])
        assert put([(directory, b"x/a", b"a.tmp", b"a.rec", False), names[1]]) == (b"\0\2", [])
        assert os.listdir(tmp_path) == ["a"]
    finally:
        os.close(directory)
    for number in (-1, -100, 2**31 - 1):  # no descriptors (-100: the working directory, where the names are wrong)
        assert put([(number, b"", b"", b"", False)] * 2) == (b"\0\2", [])


def test_what_does_not_fit_is_refused() -> None:
    good = (-1, b"a", b"b", b"c", False)
    for files in [[good], [good] * 3, [(-1, b"a\0", b"b", b"c", False)] * 2]:
        with pytest.raises(ValueError, match=r"files for|zero byte"):
            put(files)
    with pytest.raises((TypeError, ValueError)):
        put([(-1, b"a", b"b")] * 2)
    with pytest.raises(ValueError, match="name row"):
        put([good] * 2, jobs=JOBS + 7)


def test_a_shard_is_its_chunks_and_its_index(tmp_path: Path) -> None:
    directory = os.open(tmp_path, os.O_RDONLY)
    bounds, rows = np.array([0, 2]), np.array([2, 0])
    try:
        file = (directory, b"a", b"a.tmp", b"a.rec", False)
        assert put([file], shards=(bounds, rows, 3, False, False)) == (b"\1", [])
        data = (tmp_path / "a").read_bytes()
        assert data[:8] == np.array([1, 2, 3, 4], "i2").tobytes()
        assert np.frombuffer(data[12:], "<i8").tolist() == [-1, -1, -1, -1, 0, 12]
        empty = put([file, file], shards=(np.array([0, 0, 2]), rows, 3, True, True))
        assert empty == (b"\2\1", [])
        assert len((tmp_path / "a").read_bytes()) == 52 + 12
        assert os.listdir(tmp_path) == ["a"]
        for wrong in [
            (bounds, rows, 2, False, False),
            (bounds + 1, rows, 3, False, False),
            (bounds, rows - 1, 3, False, False),
            (bounds[:1], rows, 3, False, False),
            (bounds, rows[:1], 3, False, False),
            (np.array([0, 2, 2]), rows, 3, False, False),
            (bounds.astype("i4"), rows, 3, False, False),
            (bounds, rows, 2**62, False, False),
            (bounds, rows, 3, False),
        ]:
            with pytest.raises(ValueError, match=r"bounds|rows|files for|int64|member|negative"):
                put([file], shards=wrong)
    finally:
        os.close(directory)


def change(files: Any, *, first: int = 1, most: int = 100, shards: Any = None) -> Any:
    """Put two elements into each of two chunks of four."""
    axes = [("s", *(np.array(each, np.int64) for each in ([4, 4], [first, first], [2, 2], [0, 2])), 1)]
    values = np.array([1, 2, 3, 4], "i2").view("V2")
    pipeline = Format("V2", (0,), [CRC], fill=b"\0\0").pipeline()
    return pipeline.change_files(
        values, JOBS, axes, write_empty=False, threads=2, files=files, most=most, shards=shards
    )


def _close(changed: list[Any]) -> None:
    for each in changed:
        if each is not None and each[0] is not None:
            os.close(each[0])


def test_files_that_are_changed_keep_the_rest(tmp_path: Path) -> None:
    directory = os.open(tmp_path, os.O_RDONLY)
    names = [(directory, b"a", b"a.tmp", b"a.rec", False), (directory, b"b", b"b.tmp", b"b.rec", False)]
    try:
        made, failed = change(names)
        assert failed == []
        for number, (old, status, *columns) in enumerate(made):
            now = (tmp_path / "ab"[number]).stat()
            assert status == (now.st_ino, now.st_size, now.st_mtime_ns, now.st_ctime_ns)
            assert (old, columns) == (None, [b"", b""])
        changed, failed = change(names, first=0)
        assert [each[0] is not None for each in changed] == [True, True]
        _close(changed)
        assert np.frombuffer((tmp_path / "b").read_bytes()[:8], "i2").tolist() == [3, 4, 4, 0]
        assert change(names, most=11) == ([None, None], [])  # of twelve bytes
        data = bytearray((tmp_path / "b").read_bytes())
        data[0] ^= 1
        (tmp_path / "b").write_bytes(data)
        changed, failed = change(names)
        assert [each is None for each in changed] == [False, True]
        assert [number for number, _ in failed] == [1]
        assert (tmp_path / "b").read_bytes() == data
        _close(changed)
        (tmp_path / "a.rec").touch()
        assert change(names)[0] == [None, None]
        assert sorted(os.listdir(tmp_path)) == ["a", "a.rec", "b"]
    finally:
        os.close(directory)
    for number in (-1, -100, 2**31 - 1):
        assert change([(number, b"", b"", b"", False)] * 2) == ([None, None], [])


def test_shards_that_are_changed_keep_the_rest(tmp_path: Path) -> None:
    directory = os.open(tmp_path, os.O_RDONLY)
    bounds, rows = np.array([0, 2]), np.array([2, 0])
    file, path = (directory, b"a", b"a.tmp", b"a.rec", False), tmp_path / "a"
    try:
        for first in (0, 2):
            changed, failed = change([file], first=first, shards=(bounds, rows, 3, False, True))
            assert failed == []
            _close(changed)
        ((_, _, offsets, lengths),) = changed
        assert np.frombuffer(offsets, np.int64).tolist() == [0, -1, 12]
        assert np.frombuffer(lengths, np.int64).tolist() == [12, -1, 12]
        data = path.read_bytes()
        assert np.frombuffer(data[:8] + data[12:20], "i2").tolist() == [3, 4, 3, 4, 1, 2, 1, 2]
        assert np.frombuffer(data[24:-4], "<i8").tolist() == [0, 12, -1, -1, 12, 12]
        for wrong in (data[:-1], data[:30], b"", data[:-5] + b"\7" + data[-4:]):
            path.write_bytes(wrong)
            assert change([file], shards=(bounds, rows, 3, False, True)) == ([None], [])
            assert path.read_bytes() == wrong
        path.write_bytes(data)
        assert change([file], most=11, shards=(bounds, rows, 3, False, True)) == ([None], [])
        assert change([file], shards=(bounds, rows, 4, False, True)) == ([None], [])
        with pytest.raises(ValueError, match="negative"):
            change([file], shards=(bounds, rows - 1, 3, False, True))
        path.unlink()
        assert change([file], shards=(bounds, rows, 2**57, False, True))[0] == [None]  # no memory for that
        assert os.listdir(tmp_path) == []
    finally:
        os.close(directory)
