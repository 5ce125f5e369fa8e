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


def put(files: Any, *, jobs: Any = JOBS, axes: Any = AXES) -> Any:
    """Put two chunks, of which the second is full of the fill value."""
    values = np.array([1, 2, 3, 4, 0, 0, 0, 0], "i2").view("V2")
    pipeline = Format("V2", (0,), [CRC], fill=b"\0\0").pipeline()
    return pipeline.encode_to_files(values, jobs, axes, write_empty=False, threads=2, files=files)


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
