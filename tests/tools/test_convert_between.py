"""Converting by way of arrays between: no source object is read more than twice, in bounded memory."""

from __future__ import annotations

import json
import random
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from contextlib import suppress
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

import zardine
from effort import examples
from servers.servers import new_bucket, s3, s3_options
from zardine.errors import ConversionError, PlanError
from zardine.jobs import Plan
from zardine.storage import LocalStore, MemoryStore, WrapperStore
from zardine.stores.base import WHOLE
from zardine.stores.byte_ranges import resolve_range

PLANES: dict[str, Any] = {"chunks": (1, 96)}
COLUMNS: dict[str, Any] = {"chunks": (96, 2), "shards": None, "max_memory": "8 KiB"}


class Watched(WrapperStore):
    """Another store, which counts how often each byte of each chunk or shard is read."""

    files = None

    def __init__(self, store: Any) -> None:
        super().__init__(store)
        self._guard = threading.Lock()
        self.forget()

    def forget(self) -> None:
        self.times: dict[str, Any] = {}

    def read(self, key: str, ranges: Sequence[Any] = (WHOLE,)) -> Any:
        reading = super().read(key, ranges)
        size = 0 if reading is None else self._store.size(key) or 0
        with self._guard:
            times = self.times.setdefault(key, np.zeros(size, int))
            for each in ranges if reading is not None else ():
                start, stop = resolve_range(each, size)
                times[start:stop] += 1
        return reading

    def most(self, array: zardine.Array) -> int:
        """How often any byte of an object of an array, before the index of a shard, was read at most."""
        layout, found = array._handle.layout, [0]
        for key in self.times:
            coordinates = layout.keys.decode(key, array.ndim)
            if coordinates is not None:
                index = 0
                if layout.sharding is not None:
                    extents = (axis.extent(i) for axis, i in zip(layout.grids.storage, coordinates, strict=True))
                    sizes = zip(extents, layout.sharding.chunk_shape, strict=True)
                    index = 16 * prod(extent // size for extent, size in sizes) + 4
                found.append(int(self.times[key][: -index or None].max(initial=0)))
        return max(found)


@st.composite
def layouts(draw: Any, shape: tuple[int, ...], zarr_format: int) -> dict[str, Any]:
    """Chunks, or shards; of Zarr v3 also such that differ in length."""
    most = {1: 24, 2: 8, 3: 4, 4: 3}[len(shape)]
    chunks = tuple(draw(st.integers(-(-length // most), length)) for length in shape)
    kind = (
        "chunks" if zarr_format == 2 else draw(st.sampled_from(["chunks", "shards", "differing", "differing shards"]))
    )
    if kind == "chunks":
        return {"chunks": chunks, "shards": None}
    if kind == "shards":
        return {"chunks": chunks, "shards": tuple(size * draw(st.integers(1, 3)) for size in chunks)}
    axes = []
    for length, size in zip(shape, chunks, strict=True):
        unit, numbers = (1, st.integers(-(-size // 2), size)) if kind == "differing" else (size, st.integers(1, 3))
        sizes = [unit * draw(numbers)]
        while sum(sizes) < length:
            sizes.append(unit * draw(numbers))
        axes.append(sizes)
    return {"chunks": axes, "shards": None} if kind == "differing" else {"chunks": chunks, "shards": axes}


@st.composite
def cases(draw: Any) -> tuple[int, tuple[int, ...], dict[str, Any], dict[str, Any], int]:
    """Version and layout of a source, layout of a target, and how much more memory there is than has to be."""
    longest = {1: 200, 2: 60, 3: 18, 4: 9}
    ndim = draw(st.integers(1, 4))
    shape = tuple(draw(st.integers(1, longest[ndim])) for _ in range(ndim))
    zarr_format = draw(st.sampled_from([2, 3]))
    old = draw(layouts(shape, zarr_format))
    return zarr_format, shape, old, draw(layouts(shape, 3)), draw(st.integers(1, 3))


def make(store: Any, shape: tuple[int, ...], old: dict[str, Any], zarr_format: int, **more: Any) -> zardine.Array:
    """An array of which the first part is stored."""
    kept = {name: each for name, each in old.items() if each is not None}
    options = {"compressors": None, "dtype": "i4", "fill_value": -3, **kept, **more}
    array = zardine.create_array(store, shape=shape, zarr_format=zarr_format, **options)
    array[: -(-shape[0] * 3 // 4)] = np.random.default_rng(1).integers(-3, 1000, (-(-shape[0] * 3 // 4), *shape[1:]))
    return array


def plan_with_least_memory(source: Any, target: Any, more: int, **options: Any) -> tuple[Plan, int]:
    """Return the plan for so many times the memory that has to be; the error for less says how much that is."""
    memory = 64
    with suppress(ValueError):
        return zardine.plan_convert(source, target, **options, max_memory=memory), memory
    with pytest.raises(ValueError, match="max_memory of") as said:
        zardine.plan_convert(source, target, **options, max_memory=memory)
    memory = int(re.findall("max_memory of ([0-9,]+) bytes", str(said.value))[0].replace(",", "")) * more
    return zardine.plan_convert(source, target, **options, max_memory=memory), memory


@settings(max_examples=examples(7), deadline=None)
@given(cases(), st.randoms(use_true_random=False))
def test_any_grids(case: Any, rng: random.Random) -> None:
    zarr_format, shape, old, new, more = case
    folder = Path(tempfile.mkdtemp())
    try:
        inner = LocalStore(folder / "a")
        array = make(inner, shape, old, zarr_format)
        source, target = Watched(inner), MemoryStore()
        plan, memory = plan_with_least_memory(source, target, more, **new, verify=False)
        for steps in plan.work._steps:
            for step in steps:
                assert step.portion_nbytes <= memory // 2
                assert step.copies * step.portion_nbytes <= memory
        source.forget()
        assert plan.run()
        assert source.most(array) <= 2
        np.testing.assert_array_equal(zardine.open_array(target)[...], array[...])
        assert not [key for key in target.list() if "__" in key or "conversion" in key]

        # the same from a file, with jobs in any order, each of them twice, and compared
        other, _ = plan_with_least_memory(folder / "a", folder / "b", more, **new, verify=True)
        other.save(folder / "plan.json")
        loaded = Plan.load(folder / "plan.json")
        assert loaded.id == other.id
        first = 0
        loaded.begin()
        for stage in loaded.work.stages:
            jobs = list(range(first, first + len(stage))) * 2
            rng.shuffle(jobs)
            for job in jobs:
                loaded.job(job)()
            first += len(stage)
        assert Plan.load(folder / "plan.json").finish().result["compared"]
        np.testing.assert_array_equal(zardine.open_array(folder / "b")[...], array[...])
        assert not list((folder / "b").glob("__*"))
    finally:
        shutil.rmtree(folder)


@settings(max_examples=examples(25), deadline=None)
@given(cases(), st.sampled_from(["rechunk", "reshard", "reshard in place"]))
@example((2, (4,), {"chunks": (3,), "shards": None}, {"chunks": (3,), "shards": (6,)}, 1), "reshard")
@example(
    (
        *(2, (7, 1, 4, 1), {"chunks": (6, 1, 2, 1), "shards": None}),
        *({"chunks": [[2, 2, 2, 2], [1], [1, 2, 1], [1]], "shards": None}, 1),
    ),
    "reshard",
)
def test_no_object_is_read_more_than_twice_by_other_works(case: Any, work: str) -> None:
    _, shape, old, new, more = case
    inner = MemoryStore()
    array = make(inner, shape, old, 3)
    source, target = Watched(inner), MemoryStore()
    chosen = {name: each for name, each in new.items() if name == "chunks" or each is not None or work != "rechunk"}

    def plan(memory: int) -> Plan:
        if work == "rechunk":
            return zardine.plan_rechunk(source, target, **chosen, max_memory=memory)
        place = {} if work == "reshard in place" else {"target": target}
        return zardine.plan_reshard(source, **place, **chosen, max_memory=memory, grace=0)

    if work == "reshard in place":
        target = source
    values, memory = array[...], 64
    with suppress(ValueError):
        plan(memory)
        memory = 0
    if memory:
        with pytest.raises(ValueError, match=r"max_memory of|is stored so already") as said:
            plan(memory)
        assume("is stored so already" not in str(said.value))
        memory = int(re.findall("max_memory of ([0-9,]+) bytes", str(said.value))[0].replace(",", ""))
    made = plan(max(64, memory * more))
    for stage in made.work.stages:
        (grid,) = stage.grids
        assert 4 * prod(grid.largest) <= max(64, memory * more) or made.work.encoded
    source.forget()
    assert made.run()
    if array._handle.layout.object_nbytes <= max(64, memory * more) // 4:  # small shards are fetched whole for a part
        assert source.most(array) <= 2
    np.testing.assert_array_equal(zardine.open_array(target)[...], values)
    assert not [key for key in target.list() if "__" in key]


def planes(place: Any, zarr_format: int = 2, **more: Any) -> zardine.Array:
    return make(place, (96, 96), PLANES, zarr_format, **more)


def stages(plan: Plan) -> list[str]:
    return [stage.name for stage in plan.work.stages]


def test_a_zip_archive_has_arrays_between_beside_it(tmp_path: Path) -> None:
    array = planes(tmp_path / "a")
    source = Watched(LocalStore(tmp_path / "a"))
    plan = zardine.plan_convert(source, tmp_path / "b.zip", **COLUMNS)
    assert stages(plan)[:2] == ["list", "read"]
    plan.begin()
    plan.job(0)()
    plan.job(1)()
    assert [each.name for each in tmp_path.glob("b.zip?*")] == ["b.zip.between"]
    source.forget()
    assert zardine.plan_convert(source, tmp_path / "b.zip", **COLUMNS).run()
    assert source.most(array) <= 2
    np.testing.assert_array_equal(zardine.open_array(tmp_path / "b.zip")[...], array[...])
    assert not list(tmp_path.glob("b.zip?*"))


def test_a_group_with_arrays_of_all_ways(tmp_path: Path) -> None:
    root = zardine.create_group(tmp_path / "a", zarr_format=2)
    planes(f"{tmp_path}/a/between")
    make(f"{tmp_path}/a/straight", (40, 40), {"chunks": (10, 10)}, 2)
    text = root.create_array("text", shape=(60, 8), dtype="string", chunks=(1, 8))
    text[:] = [[f"{i} {j}" for j in range(8)] for i in range(60)]
    far = root.create_array("far", shape=(2**50, 2**50), dtype="u1", chunks=(1, 300))
    far[2**40 : 2**40 + 90, 500:700] = 7
    new = {"chunks": (90, 2), "shards": None, "max_memory": "8 KiB", "verify": True}
    plan = zardine.plan_convert(tmp_path / "a", tmp_path / "b", **new)
    assert stages(plan)[:2] == ["list", "read"]
    ways = {plan.path: len(steps) for plan, steps in zip(plan.work._arrays, plan.work._steps, strict=True)}
    assert ways["straight"] == 1 < min(ways["between"], ways["far"])
    assert plan.run()
    made = zardine.open_group(tmp_path / "b")
    for name in ("between", "straight", "text"):
        np.testing.assert_array_equal(made[name][...], root[name][...])
    assert made["far"][2**40 - 5 : 2**40 + 100, 400:800].sum() == 7 * 90 * 200
    assert not list((tmp_path / "b").glob("__*"))


@pytest.mark.parametrize("erased", [False, True])
def test_writers_meanwhile(tmp_path: Path, erased: bool) -> None:
    """What others write and erase after any stage is in the result, and only the jobs run again that it concerns."""
    array = planes(tmp_path / "a")
    plan = zardine.plan_convert(tmp_path / "a", tmp_path / "b", **COLUMNS, verify=True)
    for number in range(1, len(plan.work.stages) + 1):
        plan.run_part(stage=number)
        array[number * 7] = -number
    array[80:82] = 5  # of which nothing was stored
    if erased:
        for name in ("3.0", "35.0"):
            (tmp_path / "a" / name).unlink()
    assert plan.finish()
    np.testing.assert_array_equal(zardine.open_array(tmp_path / "b")[...], array[...])
    assert bool((array[3] == -3).all()) == erased
    assert not list((tmp_path / "b").glob("__*"))


def test_what_lies_between_is_compared(tmp_path: Path) -> None:
    planes(tmp_path / "a")
    plan = zardine.plan_convert(tmp_path / "a", tmp_path / "b", **COLUMNS)
    plan.run_part(stage=1)
    plan.run_part(stage=2)
    lost = sorted(path for path in (tmp_path / "b/__zardine/between").rglob("*") if path.is_file())
    lost[0].unlink()
    plan.run_part(stage=3)
    with pytest.raises(ConversionError, match="sum of the elements that were read between"):
        plan.finish()
    assert not (tmp_path / "b/zarr.json").exists()
    assert plan.run()  # which makes all of it again
    np.testing.assert_array_equal(zardine.open_array(tmp_path / "b")[...], zardine.open_array(tmp_path / "a")[...])


def test_the_same_call_goes_on_and_another_memory_is_no_other_conversion(tmp_path: Path) -> None:
    array = planes(tmp_path / "a")
    for memory in ("8 KiB", "6 KiB"):
        plan = zardine.plan_convert(tmp_path / "a", tmp_path / "b", **{**COLUMNS, "max_memory": memory})
        plan.run_part(stage=1)
        plan.run_part(stage=2)
    assert len(list((tmp_path / "b/__zardine/between").iterdir())) == 2
    zardine.convert(tmp_path / "a", tmp_path / "b", **COLUMNS)
    np.testing.assert_array_equal(zardine.open_array(tmp_path / "b")[...], array[...])
    assert not list((tmp_path / "b/__zardine").rglob("between"))


def test_cancel_leaves_nothing(tmp_path: Path) -> None:
    planes(tmp_path / "a")
    plan = zardine.plan_convert(tmp_path / "a", tmp_path / "b", **COLUMNS)
    plan.run(finish=False)
    assert list((tmp_path / "b/__zardine/between").rglob("0"))
    plan.cancel()
    assert [path for path in (tmp_path / "b").rglob("*") if path.is_file()] == []


def test_objects_are_read_straight(tmp_path: Path) -> None:
    """Python objects cannot lie between: nobody knows what they take."""
    import numcodecs

    objects: dict[str, Any] = {"dtype": "O", "filters": [numcodecs.JSON()], "fill_value": 0, "zarr_format": 2}
    zardine.create_array(tmp_path / "a", shape=(96, 96), chunks=(1, 96), **objects)
    plan = zardine.plan_convert(tmp_path / "a", tmp_path / "b", zarr_format=2, chunks=(96, 2), max_memory="64 KiB")
    assert stages(plan)[:2] == ["list", "write"]


@pytest.mark.parametrize("change", ["block", "inner", "write", "per_job", "max_memory", "axes"])
def test_plans_that_cannot_be(tmp_path: Path, change: str) -> None:
    planes(tmp_path / "a")
    zardine.plan_convert(tmp_path / "a", tmp_path / "b", **COLUMNS).save(tmp_path / "plan.json")
    document = json.loads((tmp_path / "plan.json").read_text())
    work = document["work"]
    blocks = work["blocks"][0]
    match change:
        case "block":
            blocks["between"][0]["block"] = [7, 96]
        case "inner":
            blocks["between"][0]["inner"] = [0, 2]
        case "write":
            blocks["write"] = [95, 2]
        case "per_job":
            work["per_job"] = [[1]]
        case "max_memory":
            work["max_memory"] = "much"
        case _:
            blocks["between"][0]["block"] = [96]
    (tmp_path / "plan.json").write_text(json.dumps(document))
    with pytest.raises(PlanError):
        Plan.load(tmp_path / "plan.json")


@pytest.mark.parametrize("verify", [False, True])
def test_forecast_of_an_object_store(verify: bool) -> None:
    """Objects and requests are what the log of the server counts."""
    url, options = f"s3://{new_bucket()}", s3_options()
    array = planes(f"{url}/a", 3, storage_options=options)
    array[...] = np.arange(96 * 96).reshape(96, 96)
    both = {"storage_options": options, "target_options": options}
    plan = zardine.plan_convert(f"{url}/a", f"{url}/b", **{**COLUMNS, "max_memory": "16 KiB"}, verify=verify, **both)
    assert stages(plan)[:3] == ["list", "read", "write"]
    objects, requests = plan.objects, plan.requests
    s3().log()
    assert plan.run()
    lines = [line.split() for line in s3().log()]
    chunks = [(words[0], words[1].partition("?")[0]) for words in lines if re.search(r"/c/\d+/\d+", words[1])]
    assert requests == len(chunks) + 1  # all that lies between is erased together
    assert objects == len({path for method, path in chunks if method == "PUT"})
    made = zardine.open_array(f"{url}/b", storage_options=options)
    np.testing.assert_array_equal(made[...], array[...])


MEASURE = """
import resource, sys
import zardine
zardine.config.set({"threads": 2})
plan = zardine.plan_convert(*sys.argv[1:3], chunks=(1024, 16), shards=None, max_memory="16 MiB", verify=True)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
assert plan.run()
print(len(plan.work.stages), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before, plan.memory)
"""


def test_memory_of_a_process(tmp_path: Path) -> None:
    """64 MiB of planes of Zarr v2 become columns, and are compared."""
    array = zardine.create_array(tmp_path / "a", shape=(1024, 16384), dtype="f4", chunks=(1, 16384), zarr_format=2)
    array[...] = np.arange(16384, dtype="f4")
    command = [sys.executable, "-c", MEASURE, str(tmp_path / "a"), str(tmp_path / "b")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    count, peak, memory = map(int, done.stdout.split())
    assert count == 4
    assert peak * 1024 <= memory, (peak * 1024, memory)
