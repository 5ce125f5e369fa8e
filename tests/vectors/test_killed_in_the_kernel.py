"""Vectors in local folders whose writer is killed, or refused, at any call of the system that the kernel makes.

The kernel makes files of new stores, and puts cells behind what shards hold: only a tracer sees its calls. A writer is
forked for each point, so that it has all modules.
"""

from __future__ import annotations

import os
import shutil
import signal
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crash.killing import Point, Tracer, has_tracer, killing, let_others_trace, traced_points
from effort import SOAK
from zardine import vectors
from zardine.errors import CorruptionError, MetadataError, NodeNotFoundError, ZardineError
from zardine.stores.local.beside import edited_name

pytestmark = pytest.mark.skipif(not has_tracer(), reason="there is no strace that may trace")
pytest.importorskip("zardine._kernel")

RNG = np.random.default_rng(3)
P = RNG.uniform(0, 100, (2000, 2)).astype("f4")
OLD = RNG.uniform(0, 100, (500, 2)).astype("f4")
MORE = RNG.uniform(0, 100, (40, 2)).astype("f4")


def write(path: str, places: Any = P, **options: Any) -> None:
    columns = {"n": np.arange(len(places), dtype="u2")}
    vectors.write_points(path, places, chunk_shape=25, shard_shape=2, vertex_attributes=columns, **options)


def append(path: str, more: Any = MORE) -> None:
    vectors.append_points(path, more, vertex_attributes={"n": np.arange(len(more), dtype="u2")})


def append_few(path: str) -> None:
    append(path, MORE[:3])


@dataclass(frozen=True)
class Change:
    """What is done to a store, and whether it may be done a second time."""

    prepare: Callable[[str], object] | None
    act: Callable[[str], object]
    again: bool = True
    first: Callable[[str], object] | None = None
    """What the same process does before, of which it keeps something."""


CHANGES = {
    "new": Change(None, write, again=False),
    "another": Change(lambda path: write(path, OLD), lambda path: write(path, overwrite=True)),
    "more": Change(write, append, again=False),
    "more again": Change(write, append_few, again=False, first=append_few),
    "fewer": Change(write, lambda path: vectors.delete(path, bbox=([10, 10], [30, 40]))),
}
NAMES = list(CHANGES) if SOAK else ["new", "another", "more", "more again"]
CALLS = {
    "new": {"openat", "pwrite64", "mkdirat"},
    "another": {"openat", "pwrite64", "unlinkat", "renameat"},
    "more": {"openat", "pwrite64", "unlinkat", "utimensat", "flock"},
    "more again": {"openat", "write", "renameat", "pwrite64", "unlinkat", "utimensat", "flock"},
    "fewer": {"openat", "pwrite64", "unlinkat", "utimensat", "flock"},
}
"""Which must be among those at which it is killed."""
CHANGING = (
    *("openat", "write", "pwrite64", "pwritev2", "ftruncate", "copy_file_range", "utimensat", "flock"),
    *("mkdirat", "renameat", "renameat2", "linkat", "unlinkat"),
)
"""At these it is killed, and the system refuses them; in a soak run it is killed at all others, too."""
LOOKING = ("fstat", "newfstatat", "statx", "faccessat", "faccessat2", "pread64", "preadv", "read", "openat2", "lseek")
"""Refused in a soak run, too."""
ERRORS = ("ENOSPC", "EIO")
STEP = 1 if SOAK else 83
Told = list[list[float]] | None


def told(path: Path) -> Told:
    """What a store says; ``None`` where there is none."""
    try:
        found = vectors.read_points(str(path))
    except (NodeNotFoundError, MetadataError):  # a folder with a level, but no document of a store
        if (path / "zarr.json").exists():
            raise
        return None
    return sorted([*place, value] for place, value in zip(found.positions.tolist(), found.attributes["n"], strict=True))


def run(change: Change, path: Path, options: list[str], log: str = os.devnull) -> int:
    """Make a change in a process that is traced; which signal ended it, or its exit code: 1 where it was refused."""
    (hold, go), (ready, begin) = os.pipe(), os.pipe()
    pid = os.fork()
    if pid == 0:
        code = 3
        try:
            os.close(go)
            if change.first is not None:
                change.first(str(path))
            let_others_trace()
            os.close(begin)
            os.read(hold, 1)
            change.act(str(path))
            code = 0
        except (ZardineError, OSError):
            code = 1
        finally:
            os._exit(code)
    for each in (hold, begin):
        os.close(each)
    os.read(ready, 1)
    os.close(ready)
    tracer = Tracer(pid, options, log)
    os.close(go)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    tracer.wait()
    return status


def prepared(change: Change, folder: Path) -> tuple[Path, list[Told], list[Point]]:
    """The store before, what it says before and after, and the calls that are made between."""
    start, after, log = folder / "start", folder / "after", folder / "log"
    start.mkdir()
    if change.prepare is not None:
        change.prepare(str(start))
    shutil.copytree(start, after)
    if change.first is not None:
        change.first(str(after))
    states = [told(after) if change.prepare is not None else None]
    change.act(str(after))
    states.append(told(after))
    assert states[0] != states[1]
    renew(start, after)
    assert run(change, after, [], str(log)) == 0
    return start, states, traced_points(log)


def renew(start: Path, target: Path) -> None:
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(start, target)


def chosen(points: list[Point]) -> Iterator[Point]:
    """The first and the last of each call that changes something, and some of the others."""
    points = [point for point in points if SOAK or point.name in CHANGING]
    names = [point.name for point in points]
    last = {name: at for at, name in enumerate(names)}
    for at, point in enumerate(points):
        if at % STEP == 0 or names.index(point.name) == at or last[point.name] == at:
            yield point


def judge(change: Change, path: Path, states: list[Told], number: int, *, may_stay: bool = False) -> int:
    """What is stored is old or new, and the next writer goes on; which of the two it is.

    ``may_stay``: records of edits that are done, where the system did not remove them.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            state = told(path)
        except CorruptionError:  # says that repair brings it to an end
            assert change is CHANGES["another"]
            vectors.repair(str(path))
            state = told(path)
            assert state == states[1]
        assert state in states, "neither old nor new"
        found = states.index(state)
        if number % 2 and state is not None:
            vectors.repair(str(path))
            assert told(path) == state
        if not found or change.again:
            change.act(str(path))
            assert told(path) == states[1]
        else:
            vectors.set_attribute(str(path), "n", np.zeros(len(states[1] or ()), "u2"))
    report = vectors.validate(str(path))
    assert report.ok, report.findings
    records = [each for each in path.rglob("*") if edited_name(each.name) is not None]
    assert may_stay or not records, "records are left beside"
    return found


@pytest.mark.parametrize("name", NAMES)
def test_killed_at_every_system_call(name: str, tmp_path: Path) -> None:
    change, target = CHANGES[name], tmp_path / "target"
    start, states, points = prepared(change, tmp_path)
    seen, killed = Counter[int](), Counter[str]()
    for number, point in enumerate(chosen(points)):
        renew(start, target)
        status = run(change, target, killing(point))
        assert status in (0, -signal.SIGKILL), point
        killed[point.name] += status != 0
        try:
            seen[judge(change, target, states, number)] += 1
        except (AssertionError, ZardineError) as error:
            raise AssertionError(f"{point}: {error}") from error
    print(f"{name}: {len(points)} calls, {dict(killed)}, old and new {seen[0]}, {seen[1]}")
    assert set(seen) == {0, 1}
    assert {call for call, times in killed.items() if times} >= CALLS[name]


@pytest.mark.parametrize("name", NAMES)
def test_refused_at_every_system_call(name: str, tmp_path: Path) -> None:
    change, target = CHANGES[name], tmp_path / "target"
    start, states, points = prepared(change, tmp_path)
    outcomes = Counter[int]()
    refused = [point for point in chosen(points) if point.name in (*CHANGING, *LOOKING)]
    tried = [
        (point, code) for number, point in enumerate(refused) for code in (ERRORS if SOAK else ERRORS[number % 2 :][:1])
    ]
    for number, (point, code) in enumerate(tried):
        renew(start, target)
        options = ["-e", f"trace={point.name}", "-e", f"inject={point.name}:error={code}:when={point.at + 1}"]
        status = run(change, target, options)
        assert status in (0, 1), (point, code, status)
        outcomes[status] += 1
        try:
            found = judge(change, target, states, number, may_stay=point.name == "unlinkat")
            assert found or status, "it says that it is done"
        except (AssertionError, ZardineError) as error:
            raise AssertionError(f"{point}, {code}, {status}: {error}") from error
    print(f"{name}: done {outcomes[0]}, refused {outcomes[1]}")
    assert outcomes[1] or change.first is not None  # what is refused to one call is done in steps


def test_what_counts_is_not_told_to_have_failed(tmp_path: Path) -> None:
    """Nobody does again what the system does not tell of: a document takes its place, and cannot be looked at then."""
    change, target = CHANGES["more again"], tmp_path / "target"
    start, states, points = prepared(change, tmp_path)
    looks = [point for point in points if point.name == "statx"]
    outcomes = Counter[int]()
    for number, point in enumerate(looks):
        renew(start, target)
        status = run(change, target, ["-e", "trace=statx", "-e", f"inject=statx:error=EIO:when={point.at + 1}"])
        assert status in (0, 1), point
        assert judge(change, target, states, number) or status, point
        outcomes[status] += 1
    assert outcomes[0]
