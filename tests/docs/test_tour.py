"""The tour in CONTRIBUTING names every file that runs for one read and one write, and both stay short.

Counted are calls of functions in zardine's files (frames of generators too), as ``sys.setprofile`` tells of them.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import numpy as np
import pytest

import zardine
from zardine.kernel import KERNEL

ROOT = Path(__file__).resolve().parent.parent.parent
SOURCE = Path(zardine.__file__).parent

pytestmark = pytest.mark.skipif(KERNEL is None, reason="without the kernel every chunk goes through its codec chain")


def files_of_calls(work: Callable[[], object]) -> list[str]:
    """The file of every call of a function of zardine, in order."""
    called: list[str] = []

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(str(SOURCE)):
            called.append(frame.f_code.co_filename)

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    return [Path(file).relative_to(SOURCE).as_posix() for file in called]


@pytest.fixture
def array(tmp_path: Path) -> zardine.Array:
    """An array of small chunks in local shards, opened anew and used before."""
    new = zardine.create_array(tmp_path / "a.zarr", shape=(256, 256), shards=(128, 128), chunks=(32, 32), dtype="f4")
    new[...] = np.arange(65536).reshape(256, 256)
    return zardine.open_array(tmp_path / "a.zarr", mode="r+")


def read(array: zardine.Array) -> None:
    """Read a part of one chunk."""
    assert array[10, 20:30].shape == (10,)


def write(array: zardine.Array) -> None:
    """Write a part of one chunk."""
    array[10:12, 20:30] = 5


@pytest.mark.parametrize(("work", "most_calls", "most_files"), [(read, 20, 12), (write, 100, 30)])
def test_files_that_run(array: zardine.Array, work: Callable[[object], None], most_calls: int, most_files: int) -> None:
    for _ in range(2):
        work(array)
    called = files_of_calls(lambda: work(array))
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    tour = text[text.index("## A read and a write") : text.index("## What runs where")]
    named = set(re.findall(r"`([a-z_0-9/]+\.py)`", tour))
    assert sorted(set(called) - named) == []
    assert len(called) <= most_calls
    assert len(set(called)) <= most_files


def test_the_table_of_floors_has_all_of_them() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    table = text[text.index("| floor |") : text.index("## A read and a write")]
    named = {each.removesuffix("/").removesuffix(".py") for each in re.findall(r"`([a-z_0-9]+(?:/|\.py)?)`", table)}
    there = {each.stem for each in SOURCE.iterdir() if each.is_dir() or each.suffix == ".py"}
    assert sorted(name for name in there - named if not name.startswith("_")) == []


def test_files_that_are_named_are_there() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    for name in set(re.findall(r"`([a-z_0-9/]+\.py)`", text)) - {"utils.py"}:
        places = (SOURCE / name, ROOT / name, ROOT / "tests" / name, ROOT / "benchmarks" / name)
        assert any(place.exists() for place in places) or list((ROOT / "tests").rglob(name)), name
