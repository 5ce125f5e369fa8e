"""Programs that take no locks: a shard that one replaces while we write it keeps what both wrote.

zarr-python writes another chunk of the shard before each call of ours that has to do with files, one at a time.
"""

from __future__ import annotations

import gc
import os
import shutil
import threading
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zardine
from crash.foreign import Foreign
from crash.killing import watch_calls
from crash.scenarios import LOCATIONS, STRATEGIES, Box, Values
from python_writes import write_by_python
from zardine.engine import update_shard
from zardine.engine.index_cache import INDEXES

SHAPE = (16, 16)
OURS: Box = (slice(4), slice(4))
PARTLY: Box = (slice(1, 3), slice(4))
FIRST_ROW: Box = (slice(1), slice(4))
THEIRS: Box = (slice(4, 8), slice(8, 12))
OTHER: Box = (slice(12, 16), slice(12, 16))
"""A chunk that no one writes."""
LOOKS = ("open", "stat", "fstat", "pread", "close")
"""Calls that change nothing: others may write before these as well."""


@dataclass(frozen=True)
class Write:
    """What is stored at first (the boxes of the only shard), and what both write."""

    start: tuple[Box, ...]
    box: Box
    value: int
    theirs: Box = THEIRS
    their_value: int = 99
    shards: bool = True
    mode: int | None = None
    """Permissions of the shard, if they are not those of a new file."""
    last_call: str | None = None
    """The call directly before which a foreign write cannot be known, since it makes the change by name."""


WRITES = {
    "update": Write((OURS, THEIRS, OTHER), OURS, 77, last_call="replace"),
    "update of a part": Write((OURS, THEIRS, OTHER), PARTLY, 77, last_call="replace"),
    "update of a file with other permissions": Write((OURS, OTHER), OURS, 77, mode=0o640, last_call="replace"),
    "they empty a chunk": Write((OURS, THEIRS, OTHER), OURS, 77, their_value=0, last_call="replace"),
    "they remove the shard": Write((THEIRS,), OURS, 77, their_value=0, last_call="replace"),
    "the shard becomes empty": Write((OURS,), OURS, 0, last_call="unlink"),
    "a chunk becomes empty": Write((OURS, OTHER), OURS, 0, last_call="replace"),
    "new shard": Write((), OURS, 77),
    "chunk": Write((OURS,), PARTLY, 77, theirs=FIRST_ROW, shards=False, last_call="replace"),
    "the chunk becomes empty": Write((PARTLY,), PARTLY, 0, theirs=FIRST_ROW, shards=False, last_call="unlink"),
    "new chunk": Write((), PARTLY, 77, theirs=FIRST_ROW, shards=False),
}
"""An edit within the file changes nothing by name, and a new name is made only if it is not there."""
CASES = [
    (strategy, location, name)
    for name, write in WRITES.items()
    for strategy, location in (product(STRATEGIES, LOCATIONS) if write.shards else [("rewrite", "end")])
]


class Intruder:
    """Writes once: before call number ``at`` of this thread, or never."""

    def __init__(self, at: int, write: Callable[[], None], put: Callable[[Any, str, Any], None]) -> None:
        self.calls: list[str] = []
        self._at, self._write = at, write
        self._writes = False
        self._thread = threading.get_ident()  # files that were replaced are closed in another one
        watch_calls(self._instead, put, LOOKS)

    def _instead(self, name: str, call: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if not self._writes and threading.get_ident() == self._thread:
            self.calls.append(name)
            if len(self.calls) == self._at + 1:
                self._writes = True
                self._write()
                self._writes = False
        return call(*args, **kwargs)


def prepare(path: Path, write: Write, location: str) -> Values:
    """Store the array; gives its values."""
    values = np.zeros(SHAPE, "u4")
    for box in write.start:
        values[box] = np.arange(1, 257).reshape(SHAPE)[box]
    array = zardine.create_array(
        path,
        shape=SHAPE,
        dtype="u4",
        chunks=(4, 4),
        shards={"shape": SHAPE, "index_location": location} if write.shards else None,
        compressors=None,
        checksum=True,
    )
    array[...] = values
    if write.mode is not None:
        os.chmod(path / "c/0/0", write.mode)
    return values


def contents(path: Path) -> Values:
    """What is stored; nothing is to be warned of."""
    INDEXES.clear()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return np.asarray(zardine.open_array(path, mode="r")[...])


def before_each_call(
    start: Path,
    target: Path,
    strategy: str,
    ours: Callable[[zardine.Array], object],
    theirs: Callable[[], None],
    look: Callable[[str], None],
) -> list[str]:
    """Have ``theirs`` done before each call that ``ours`` makes, one at a time; ``look`` is told before which."""
    calls: list[str] = []
    gc.collect()  # what the garbage collector closes would be among the calls
    while True:
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(start, target)
        array = zardine.open_array(target, mode="r+", config={"write_strategy": strategy})
        assert array.store.lock_is_exclusive  # which is found out once
        with pytest.MonkeyPatch.context() as patch, zardine.config.set({"threads": 1}):
            patch.setattr("zardine.engine.freshness.LEASE", 1e9)  # so that there are no looks at the document
            intruder = Intruder(len(calls), theirs, patch.setattr)
            ours(array)
        if len(intruder.calls) <= len(calls):
            # a file that is kept open may be closed at any time
            made, known = ([call for call in some if call != "close"] for some in (intruder.calls, calls))
            assert made == known, "without a foreign write, other calls were made"
            return calls
        calls.append(intruder.calls[len(calls)])
        look(calls[-1])
        assert [path.name for path in target.rglob(".*")] == [], "left beside"


@pytest.mark.parametrize(("strategy", "location", "name"), CASES)
def test_nothing_is_lost(strategy: str, location: str, name: str, foreign: Foreign, quick_path: Path) -> None:
    write = WRITES[name]
    start, target = quick_path / "start.zarr", quick_path / "target.zarr"
    both = prepare(start, write, location)
    only_ours, only_theirs = both.copy(), both.copy()
    for values, box, value in (
        *((values, write.box, write.value) for values in (both, only_ours)),
        *((values, write.theirs, write.their_value) for values in (both, only_theirs)),
    ):
        values[box] = value
    lost: list[str] = []

    def ours(array: zardine.Array) -> None:
        array[write.box] = write.value

    def look(call: str) -> None:
        seen = contents(target)
        if not (seen == both).all():
            assert (seen == only_ours).all() or (seen == only_theirs).all(), f"before {call}: {seen.tolist()}"
            lost.append(call)

    calls = before_each_call(
        start, target, strategy, ours, lambda: foreign.write(target, write.theirs, write.their_value), look
    )
    edited = strategy != "rewrite" and "pwritev" in calls
    print(f"{len(calls)} points: {' '.join(calls)}; lost before: {lost}")
    assert lost == ([] if write.last_call is None or edited else [write.last_call])


def test_attributes(foreign: Foreign, quick_path: Path) -> None:
    """A document is replaced, as a chunk is."""
    start, target = quick_path / "start.zarr", quick_path / "target.zarr"
    prepare(start, WRITES["update"], "end")
    lost: list[str] = []

    def look(call: str) -> None:
        found = zardine.open_array(target, mode="r").attrs.asdict()
        if found != {"ours": 1, "theirs": 2}:
            assert found in ({"ours": 1}, {"theirs": 2})
            lost.append(call)

    calls = before_each_call(
        start,
        target,
        "rewrite",
        lambda array: array.attrs.update(ours=1),
        lambda: foreign.set_attribute(target, "theirs", 2),
        look,
    )
    print(f"{len(calls)} points: {' '.join(calls)}")
    assert lost == ["replace"]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_program_that_writes_into_the_file(
    strategy: str, monkeypatch: pytest.MonkeyPatch, foreign: Foreign, quick_path: Path
) -> None:
    """What it wrote while we encoded is kept, since size and time of the file tell."""
    path = quick_path / "edited.zarr"
    expected = prepare(path, Write((OURS, OTHER), OURS, 77), "end")
    expected[OURS], expected[THEIRS] = 77, 99
    encode = update_shard.new_chunks
    waiting = [lambda: foreign.write(path, THEIRS, 99)]

    def slowly(*args: Any) -> Any:
        chunks = encode(*args)
        if waiting:
            before = path.joinpath("c/0/0")
            kept = before.with_name("kept")
            os.link(before, kept)
            waiting.pop()()
            kept.write_bytes(before.read_bytes())
            kept.replace(before)
        return chunks

    monkeypatch.setattr(update_shard, "new_chunks", slowly)
    write_by_python(monkeypatch.setattr)
    inode = os.stat(path / "c/0/0").st_ino
    array = zardine.open_array(path, mode="r+", config={"write_strategy": strategy})
    array[OURS] = 77
    assert not waiting
    assert (os.stat(path / "c/0/0").st_ino == inode) == (strategy != "rewrite")
    np.testing.assert_array_equal(contents(path), expected)
