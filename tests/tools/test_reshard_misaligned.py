"""Old and new objects that do not divide each other: none of the source is read more than twice, in bounded memory."""

from __future__ import annotations

import subprocess
import sys
import threading
import tracemalloc
from collections import Counter
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zardine
from effort import some
from servers.servers import new_bucket, s3, s3_options
from zardine.jobs import Plan
from zardine.jobs.ranges import Ranges
from zardine.storage import LocalStore, MemoryStore, WrapperStore
from zardine.stores.base import WHOLE

CASES: dict[str, tuple[tuple[int, ...], dict[str, Any], dict[str, Any], str]] = {
    "1, chunks": ((997,), {"chunks": (7,)}, {"chunks": (10,)}, "1 KiB"),
    "1, shards": ((997,), {"chunks": (3,), "shards": (33,)}, {"shards": (21,)}, "2 KiB"),
    "2, planes to columns": ((96, 96), {"chunks": (1, 96)}, {"chunks": (96, 1)}, "8 KiB"),
    "2, squares": ((100, 90), {"chunks": (16, 16)}, {"chunks": (9, 7), "shards": (18, 21)}, "8 KiB"),
    "2, shards moved": ((120, 120), {"chunks": (4, 4), "shards": (28, 28)}, {"shards": (20, 20)}, "16 KiB"),
    "2, shards of planes moved": ((96, 96), {"chunks": (1, 6), "shards": (2, 96)}, {"shards": (96, 6)}, "12 KiB"),
    "3, cubes": ((40, 40, 40), {"chunks": (8, 8, 8)}, {"chunks": (5, 5, 5), "shards": (10, 10, 10)}, "64 KiB"),
    "3, decoded shards": (
        (40, 30, 20),
        {"chunks": (4, 5, 5), "shards": (12, 10, 10)},
        {"chunks": (10, 7, 7), "shards": None},
        "24 KiB",
    ),
    "4": ((12, 13, 14, 15), {"chunks": (1, 13, 14, 15)}, {"chunks": (12, 4, 4, 5)}, "64 KiB"),
    "4, shards moved": (
        (12, 12, 12, 12),
        {"chunks": (2, 2, 2, 2), "shards": (2, 12, 6, 6)},
        {"shards": (6, 4, 4, 8)},
        "32 KiB",
    ),
}


class Metered(WrapperStore):
    """Another store, of which the bytes that are read are counted by key."""

    def __init__(self, store: Any) -> None:
        super().__init__(store)
        self.nbytes: Counter[str] = Counter()
        self._guard = threading.Lock()

    files = None

    def read(self, key: str, ranges: Sequence[Any] = (WHOLE,)) -> Any:
        reading = super().read(key, ranges)
        with self._guard:
            self.nbytes[key] += 0 if reading is None else sum(map(len, reading.parts))
        return reading


def values_of(shape: tuple[int, ...]) -> Any:
    return np.random.default_rng(0).integers(0, 1000, shape).astype("i4")


def make(store: Any, shape: tuple[int, ...], old: dict[str, Any], **more: Any) -> zardine.Array:
    array = zardine.create_array(store, shape=shape, dtype="i4", compressors=None, **old, **more)
    array[...] = values_of(shape)
    return array


def request_of(new: dict[str, Any]) -> dict[str, Any]:
    return {"shards": None, **new}


def kind_of(plan: Plan) -> list[str]:
    return [stage.name for stage in plan.work.stages]


@pytest.mark.parametrize(
    ("case", "where", "in_place"), list(some(product(CASES, ["memory", "local"], [True, False]), 4))
)
def test_no_source_object_is_read_more_than_twice(tmp_path: Path, case: str, where: str, in_place: bool) -> None:
    shape, old, new, memory = CASES[case]
    inner = MemoryStore() if where == "memory" else LocalStore(tmp_path / "a.zarr")
    make(inner, shape, old)
    store = Metered(inner)
    sizes = {key: inner.size(key) or 0 for key in inner.list_prefix("c/")}
    target = None if in_place else MemoryStore()
    plan = zardine.plan_reshard(store, **request_of(new), target=target, grace=0, max_memory=memory)
    size, most = 4 * int(np.prod(shape)), zardine.settings.parse_bytes(memory)
    store.nbytes.clear()
    status = plan.run()
    assert status.result.ok
    read = {key: store.nbytes[key] for key in sizes}
    assert max(read[key] / sizes[key] for key in sizes) <= 2
    assert min(read.values()) > 0
    for stage in plan.work.stages:  # a block, and a copy of it encoded, or three of them
        elements = [np.prod([stop - start for start, stop in plan.work._elements(each)]) for each in boxes(plan, stage)]
        assert 4 * max(elements) <= most / 4 or len(elements) == 1
        assert size / len(elements) <= most
    found = inner if in_place else target
    np.testing.assert_array_equal(zardine.open_array(found)[...], values_of(shape))
    report = zardine.verify(found)
    assert (report.faults, report.notes) == ((), ())
    assert not [key for key in found.list() if "__" in key]


def boxes(plan: Plan, stage: Any) -> list[Any]:
    number = plan.work.stages.index(stage)
    return [plan.work._box(number, job) for job in range(len(stage))]


@pytest.mark.parametrize("case", [case for case in CASES if "moved" not in case])
def test_converting_reads_no_source_object_more_than_twice_either(case: str) -> None:
    shape, old, new, _ = CASES[case]
    inner, target = MemoryStore(), MemoryStore()
    make(inner, shape, old)[: shape[0] // 2] = 0  # of which nothing is stored
    store = Metered(inner)
    zardine.convert(store, target, **request_of(new), verify=False)
    keys = list(inner.list_prefix("c/"))
    assert max(store.nbytes[key] / (inner.size(key) or 1) for key in keys) <= 2
    made = zardine.open_array(target)
    np.testing.assert_array_equal(made[...], zardine.open_array(inner)[...])
    assert zardine.verify(target).faults == ()


def test_what_is_tried_here_takes_all_ways() -> None:
    ways = set()
    for shape, old, new, memory in CASES.values():
        store = MemoryStore()
        make(store, shape, old)
        plan = zardine.plan_reshard(store, **request_of(new), max_memory=memory)
        ways.add((len(plan.work.stages) > 1, plan.work.encoded))
    assert ways == {(False, False), (False, True), (True, False), (True, True)}


@pytest.mark.parametrize("case", ["2, shards of planes moved", "2, squares"])
def test_on_an_object_store(case: str) -> None:
    shape, old, new, memory = CASES[case]
    url, options = f"s3://{new_bucket()}/a", s3_options()
    array = make(url, shape, old, storage_options=options)
    keys = {key: array.store.size(key) or 0 for key in array.store.list_prefix("c/")}
    s3().log()
    done = zardine.reshard(url, **request_of(new), grace=0, max_memory=memory, storage_options=options)
    assert done
    read: Counter[str] = Counter()
    for words in (line.split() for line in s3().log()):
        if words[0] == "GET" and "/c/" in words[1]:
            read[f"c/{words[1].partition('?')[0].rpartition('/a/c/')[2]}"] += int(words[4])
    read = Counter({key: number for key, number in read.items() if key in keys})
    assert set(read) == set(keys)
    assert max(read[key] / keys[key] for key in keys) <= 2
    np.testing.assert_array_equal(zardine.open_array(url, storage_options=options)[...], values_of(shape))


@pytest.mark.parametrize("case", ["2, planes to columns", "2, shards of planes moved", "2, shards moved"])
@pytest.mark.parametrize("in_place", [True, False])
def test_what_is_written_and_resized_meanwhile_is_in_the_result(tmp_path: Path, case: str, in_place: bool) -> None:
    """After each stage, and while the plan is finished."""
    shape, old, new, memory = CASES[case]
    array = make(tmp_path / "a.zarr", shape, old)
    target = None if in_place else tmp_path / "b.zarr"
    request = {**request_of(new), "target": target, "grace": 0, "max_memory": memory}
    plan = zardine.plan_reshard(tmp_path / "a.zarr", **request)
    for number in range(len(plan.work.stages)):
        array[number * 7, 3:50] = -number - 1
        plan.run_part(stage=number + 1)
        array[number * 5 + 1 : number * 5 + 9, 11] = -number - 100
    array[40:48] = 0
    array.resize((shape[0] - 13, shape[1]))
    array.append(np.full((30, shape[1]), 5, "i4"))
    expected = array[...]
    assert plan.finish()
    made = zardine.open_array(tmp_path / ("a.zarr" if in_place else "b.zarr"))
    np.testing.assert_array_equal(made[...], expected)
    report = zardine.verify(made)
    assert (report.faults, report.notes) == ((), ())
    assert not [key for key in made.store.list() if "__" in key]


def test_interrupted_between_two_stages(tmp_path: Path) -> None:
    """The same call goes on; another one is refused, and taking back leaves nothing."""
    shape, old, new, memory = CASES["2, shards of planes moved"]
    for number, outcome in enumerate(("goes on", "cancel", "restart")):
        path = tmp_path / f"{number}.zarr"
        make(path, shape, old)
        before = sorted(each for each in path.rglob("*") if each.is_file())
        request = {**request_of(new), "grace": 0, "max_memory": memory}
        plan = zardine.plan_reshard(path, **request)
        plan.save(tmp_path / "plan.json")
        Plan.load(tmp_path / "plan.json").run_part(stage=1)
        assert [note.kind for note in zardine.verify(path).notes] == ["unfinished"]
        assert zardine.verify(path).faults == ()
        if outcome == "cancel":
            assert zardine.reshard(path, cancel=True).outcome == "cancelled"
            assert sorted(each for each in path.rglob("*") if each.is_file()) == before
        else:
            done = zardine.reshard(path, **request, restart=outcome == "restart")
            assert done.encoded
            assert not list(path.glob("__*"))
        np.testing.assert_array_equal(zardine.open_array(path)[...], values_of(shape))


def test_what_does_not_fit(tmp_path: Path) -> None:
    make(tmp_path / "a.zarr", (100, 90), {"chunks": (16, 16)})
    with pytest.raises(ValueError, match=r"takes 14,400 bytes, .* give a max_memory of 28,800 bytes"):
        zardine.reshard(tmp_path / "a.zarr", shards=None, chunks=(40, 100), max_memory="1 KiB")
    assert not list((tmp_path / "a.zarr").glob("__*"))


class Many(MemoryStore):
    """A store that tells of so many chunks."""

    number = 0

    def list_versions(self, prefix: str) -> Any:
        return ((f"c/{i // 100}/{i % 100}", f"{i:032x}") for i in range(self.number))


def test_what_finishing_holds_does_not_grow_with_the_number_of_objects() -> None:
    peaks = []
    for number in (40_000, 80_000):
        store = Many()
        store.number = number
        zardine.create_array(store, shape=(number // 100 * 8, 800), chunks=(8, 8), dtype="u1")
        plan = zardine.plan_reshard(store, shards=(24, 240))
        tracemalloc.start()
        try:
            seen = list(plan.work.seen(0, Ranges([(0, len(plan))]), surely=False))
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
        assert len({text for _, text in seen}) == len(plan)
    assert peaks[1] < 1.2 * peaks[0]


MEASURE = """
import resource, sys
import zardine
plan = zardine.plan_reshard(sys.argv[1], shards=None, chunks=(1024, 16), max_memory="16 MiB", grace=0)
zardine.config.set({"threads": 2})
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
assert plan.run()
print(len(plan.work.stages), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before, plan.memory)
"""


def test_memory_of_a_process(tmp_path: Path) -> None:
    """64 MiB of planes become columns."""
    array = zardine.create_array(tmp_path / "a.zarr", shape=(1024, 16384), dtype="f4", chunks=(1, 16384))
    array[...] = np.arange(16384, dtype="f4")
    command = [sys.executable, "-c", MEASURE, str(tmp_path / "a.zarr")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    stages, peak, memory = map(int, done.stdout.split())
    assert stages == 2
    assert peak * 1024 <= 1.1 * memory
