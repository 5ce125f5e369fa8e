"""A change that fails leaves the old state; or it is committed, and says so. No caller stores it twice by a retry."""

from __future__ import annotations

import errno
import os
import shutil
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crash.space import FullDisk, full_disk
from effort import some
from zardine import vectors
from zardine.errors import CommittedError, StoreError
from zardine.kernel import KERNEL
from zardine.storage import LocalStore

rng = np.random.default_rng(0)
PLACES = rng.uniform(0, 100, (400, 3)).astype("f4")
MORE = rng.uniform(0, 100, (100, 3)).astype("f4")
LINES = np.split(PLACES[:200], 20)
BALLS = [vectors.ParametricObject("sphere", np.arange(1.0, 5) + number, f"ball {number}") for number in range(40)]


def write_points(store: Any, **options: Any) -> None:
    values = {"v": np.arange(400.0), "rgb": np.zeros((400, 3), "u1")}
    vectors.write_points(store, PLACES, vertex_attributes=values, chunk_shape=50, shard_shape=2, **options)


def write_objects(store: Any, **options: Any) -> None:
    sizes = {"size": np.arange(20.0)}
    vectors.write_points(
        store, PLACES, object_ids=np.arange(400) % 20, object_attributes=sizes, chunk_shape=50, **options
    )


def write_lines(store: Any, **options: Any) -> None:
    vectors.write_polylines(store, LINES, chunk_shape=50, **options)


def write_edges(store: Any, **options: Any) -> None:
    edges = np.arange(199)
    vectors.write_graph(store, PLACES[:200], np.stack([edges, edges + 1], axis=1), chunk_shape=50, **options)


def write_levels(store: Any, **options: Any) -> None:
    write_objects(store, **options)
    vectors.build_pyramid(store)


def append_twice(store: Any) -> None:
    opened = vectors.open(store, mode="r+")
    opened.append(vectors.Points(MORE, {"v": np.arange(100.0), "rgb": np.ones((100, 3), "u1")}))


@dataclass(frozen=True)
class Case:
    """A store, a change of it, and what a reader sees of that."""

    prepare: Callable[[Any], object]
    change: Callable[[Any], object]
    look: Callable[[Any], object]


def all_of(store: Any) -> object:
    """Everything that readers see of a store."""
    opened = vectors.open(store)
    found = opened.read()
    rows = [
        found.positions,
        *(np.asarray(each).reshape(len(found.positions), -1) for each in found.attributes.values()),
    ]
    table = np.concatenate(rows, axis=1) if len(found.positions) else np.zeros((0, 1))
    order = np.lexsort(table.T)
    more: list[object] = []
    if opened.kind != "point_cloud" or found.object_ids is not None:
        objects = vectors.read_objects(store)
        more += [objects.ids.tolist(), {name: np.asarray(each).tolist() for name, each in objects.attributes.items()}]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        parametric = [(each.name, list(each.coefficients)) for each in vectors.read_parametric_objects(store)]
    return repr(table[order].tolist()), more, parametric  # text: nan is equal to nan then


CASES = {
    "append": Case(write_points, append_twice, all_of),
    "append anew": Case(
        write_points,
        lambda store: vectors.append_points(store, MORE, vertex_attributes={"other": np.ones(100)}),
        all_of,
    ),
    "append beyond": Case(write_points, lambda store: vectors.append_points(store, MORE - 300), all_of),
    "append objects": Case(
        write_objects,
        lambda store: vectors.append_points(
            store, MORE, object_ids=15 + np.arange(100) % 10, object_attributes={"size": np.arange(5.0)}
        ),
        all_of,
    ),
    "append lines": Case(write_lines, lambda store: vectors.append_polylines(store, np.split(MORE, 10)), all_of),
    "append edges": Case(
        write_edges, lambda store: vectors.append_graph(store, MORE, [[each, each + 1] for each in range(99)]), all_of
    ),
    "delete": Case(write_points, lambda store: vectors.delete(store, bbox=([0, 0, 0], [60, 60, 60])), all_of),
    "delete objects": Case(write_objects, lambda store: vectors.delete(store, object_ids=[3, 4]), all_of),
    "delete below levels": Case(write_levels, lambda store: vectors.delete(store, object_ids=[3, 4]), all_of),
    "move": Case(write_points, lambda store: vectors.move_vertices(store, [0, 7], [[1, 2, 3], [99, 99, 99]]), all_of),
    "set": Case(write_points, lambda store: vectors.set_attribute(store, "v", np.arange(400.0) + 1), all_of),
    "set new": Case(write_points, lambda store: vectors.set_attribute(store, "w", np.arange(400.0)), all_of),
    "set objects": Case(
        write_objects, lambda store: vectors.set_attribute(store, "size", np.arange(20.0) + 1, kind="object"), all_of
    ),
    "parametric": Case(write_points, lambda store: vectors.write_parametric_objects(store, BALLS), all_of),
    "overwrite": Case(
        write_levels, lambda store: vectors.write_points(store, MORE, chunk_shape=50, overwrite=True), all_of
    ),
}
"""Changes that are committed by one write."""

STEPS = {
    "levels": Case(write_levels, lambda store: vectors.build_pyramid(store, factors=[(3, 1)], anew=True), all_of),
    "shards": Case(write_points, lambda store: vectors.shard_store(store, 4), all_of),
    "cells": Case(write_points, lambda store: vectors.unshard_store(store), all_of),
}
"""Changes of several steps: what readers see of level 0 stays the same, and the same call completes them."""


@contextmanager
def renewed(start: Path, target: Path) -> Iterator[str]:
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(start, target)
    yield str(target)


def outcome(change: Callable[[Any], object], store: Any) -> tuple[BaseException | None, bool]:
    """The error of a change, and whether it warns that a later writer completes it."""
    failure: BaseException | None = None
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            change(store)
        except (StoreError, KeyboardInterrupt) as error:
            failure = error
    return failure, any("is committed, but not completed" in str(each.message) for each in told)


def check(case: Case, store: Any, failure: BaseException | None, old: object, new: object) -> bool:
    """Check what a failed or a successful change left; give whether it takes effect."""
    effect = failure is None or getattr(failure, "takes_effect", False)
    assert effect in (True, False)
    if failure is not None and effect:
        assert isinstance(failure, CommittedError) or "committed" in "".join(getattr(failure, "__notes__", ()))
    assert case.look(store) == (new if effect else old)
    if not effect:
        case.change(store)
        assert case.look(store) == new
    else:
        vectors.repair(store)
        assert case.look(store) == new
    report = vectors.validate(store)
    assert report.ok, report
    assert {each.kind for each in report.findings} <= {"levels-older"}, report
    return bool(effect)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[FullDisk]:
    with full_disk(tmp_path) as found:
        if found is None:
            pytest.skip("no file system may be mounted")
        yield found


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder in memory, if one may be mounted: much is copied."""
    with full_disk(tmp_path):
        yield tmp_path


@pytest.mark.parametrize("name", CASES)
def test_every_amount_of_room(name: str, disk: FullDisk) -> None:
    case, start, target = CASES[name], disk.folder / "start.zv", disk.folder / "target.zv"
    case.prepare(start)
    old = case.look(start)
    with renewed(start, target) as place:
        case.change(place)
        new = case.look(place)
    effects = []
    for room in some(range(0, 2**20, disk.step), 4):
        with renewed(start, target) as place:
            assert case.look(place) == old  # and let go of files of the store before, which take room
            disk.leave(room)
            try:
                failure, is_later = outcome(case.change, place)
            finally:
                disk.free()
            is_done = failure is None and not is_later
            effects.append(check(case, place, failure, old, new))
            if is_done:
                break
    assert is_done
    assert effects == sorted(effects)


@pytest.mark.parametrize("name", STEPS)
def test_every_amount_of_room_for_several_steps(name: str, disk: FullDisk) -> None:
    case, start, target = STEPS[name], disk.folder / "start.zv", disk.folder / "target.zv"
    case.prepare(start)
    old = case.look(start)
    failed = 0
    for room in some(range(0, 2**20, disk.step), 4):
        with renewed(start, target) as place:
            disk.leave(room)
            try:
                failure, _ = outcome(case.change, place)
            finally:
                disk.free()
            if failure is None:
                break
            failed += 1
            assert getattr(failure, "takes_effect", False) is False
            assert case.look(place) == old
            case.change(place)
            assert case.look(place) == old
            assert vectors.validate(place).ok
    assert failed


class Failing:
    """Lets the call number ``at`` of ``os.fsync`` fail, when it was made or before."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.left, self.fails, self.real = 0, False, os.fsync
        monkeypatch.setattr(os, "fsync", self)

    def __call__(self, file: int) -> None:
        self.left -= 1
        if self.left == -1 and self.fails:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        self.real(file)


@pytest.mark.parametrize("name", CASES)
def test_every_fsync_that_fails(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case, start, target = CASES[name], folder / "start.zv", folder / "target.zv"
    case.prepare(start)
    old = case.look(start)
    failing = Failing(monkeypatch)
    with renewed(start, target) as place:
        case.change(LocalStore(place, durable=True))
        new, calls = case.look(place), -failing.left
    assert calls > 3
    effects = []
    for at in some(range(calls), 1 + calls // 8):
        with renewed(start, target) as place:
            failing.left, failing.fails = at, True
            failure, _ = outcome(case.change, LocalStore(place, durable=True))
            failing.fails = False
            effects.append(check(case, place, failure, old, new))
    assert effects[0] is False


class Interrupt:
    """Raises ``KeyboardInterrupt`` at one of the moments at which Python looks for signals."""

    def __init__(self, at: int) -> None:
        self.left = at

    def __call__(self, frame: Any, event: str, argument: Any) -> None:
        if event in ("call", "c_return"):
            self.left -= 1
            if self.left == -1:
                sys.setprofile(None)
                raise KeyboardInterrupt


def interrupted(change: Callable[[Any], object], store: Any, at: int) -> tuple[BaseException | None, int]:
    """The error of a change with Ctrl-C at a moment, and how many moments were left then: below 0 if it came."""
    interrupt = Interrupt(at)
    sys.setprofile(interrupt)
    try:
        change(store)
    except (StoreError, KeyboardInterrupt) as error:
        return error, interrupt.left
    finally:
        sys.setprofile(None)
    return None, interrupt.left


@pytest.mark.skipif(KERNEL is None, reason="what is written in Python is interrupted")
@pytest.mark.parametrize("name", ["append", "delete objects", "set new", "overwrite"])
def test_ctrl_c_at_every_moment(name: str, folder: Path) -> None:
    case, start, target = CASES[name], folder / "start.zv", folder / "target.zv"
    case.prepare(start)
    old = case.look(start)
    with renewed(start, target) as place:
        _, left = interrupted(case.change, place, 10**9)
        new, moments = case.look(place), 10**9 - left
    effects, late = [], 0
    for at in some(range(moments), moments // 40):
        with renewed(start, target) as place:
            failure, left = interrupted(case.change, place, at)
            if isinstance(failure, KeyboardInterrupt) and not getattr(failure, "takes_effect", False):
                late += case.look(place) == new  # when the function had nothing to do any more but to end
                if case.look(place) == new:
                    continue
            effects.append(check(case, place, failure, old, new))
    assert False in effects
    assert late <= 2


NEW = {"points": write_points, "objects": write_objects, "lines": write_lines, "graph": write_edges}


def check_new(write: Callable[[Any], object], place: Any, failure: BaseException | None) -> None:
    """Check that a writer of a new store left all or nothing, and that the same call works after nothing."""
    effect = failure is None or getattr(failure, "takes_effect", False)
    if not effect:
        with pytest.raises(FileNotFoundError):
            vectors.open(place).read()
        write(place)
    assert vectors.validate(place).findings == ()
    assert len(vectors.open(place)) in (200, 400)


@pytest.mark.parametrize("name", NEW)
def test_every_amount_of_room_for_a_new_store(name: str, disk: FullDisk) -> None:
    write, target = NEW[name], disk.folder / "new.zv"
    failed = 0
    for room in some(range(0, 2**20, disk.step), 4):
        shutil.rmtree(target, ignore_errors=True)
        disk.leave(room)
        try:
            failure, is_later = outcome(write, target)
        finally:
            disk.free()
        assert not is_later
        check_new(write, target, failure)
        if failure is None:
            break
        failed += 1
    assert failed > 1


@pytest.mark.parametrize("name", ["points", "objects"])
def test_every_fsync_of_a_new_store_that_fails(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = NEW[name]
    write(LocalStore(folder / "other.zv", durable=True))  # the directories above are synced once
    failing = Failing(monkeypatch)
    write(LocalStore(folder / "new.zv", durable=True))
    calls = -failing.left
    for at in (*some(range(calls), calls // 6), calls - 2, calls - 1):
        shutil.rmtree(folder / "new.zv")
        failing.left, failing.fails = at, True
        failure, _ = outcome(write, LocalStore(folder / "new.zv", durable=True))
        failing.fails = False
        if failing.left >= 0:  # threads that meet sync some directories twice, so that there were fewer calls
            continue
        assert failure is not None
        check_new(write, folder / "new.zv", failure)


@pytest.mark.skipif(KERNEL is None, reason="what is written in Python is interrupted")
def test_ctrl_c_at_every_moment_of_a_new_store(folder: Path) -> None:
    target = folder / "new.zv"
    _, left = interrupted(write_points, target, 10**9)
    moments = 10**9 - left
    late = 0
    for at in (*some(range(moments), moments // 40), *some(range(moments - 400, moments), 20)):
        shutil.rmtree(target, ignore_errors=True)
        failure, left = interrupted(write_points, target, at)
        if left >= 0:
            continue
        try:
            is_there = len(vectors.open(target)) == 400
        except FileNotFoundError:
            is_there = False
        if is_there and not getattr(failure, "takes_effect", False):
            late += 1  # when the function had nothing to do any more but to end
            continue
        check_new(write_points, target, failure)
    assert late <= 4


def test_a_naive_retry_stores_points_once(disk: FullDisk) -> None:
    """The usual loop of a program that knows nothing of commits: try again until the call succeeds."""
    case, start, target = CASES["append"], disk.folder / "start.zv", disk.folder / "target.zv"
    case.prepare(start)
    for room in count(0, disk.step):
        with renewed(start, target) as place:
            disk.leave(room)
            failure, is_later = outcome(case.change, place)
            disk.free()
            if failure is not None:
                case.change(place)
            assert len(vectors.read_points(place)) == 500
            case.change(place)  # which completes the first one
            assert len(vectors.read_points(place)) == 600
            if failure is None and not is_later:
                break
    assert room > 0
