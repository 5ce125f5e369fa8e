"""``zardine.rechunk``: the same elements, each source object read once, in bounded memory, whatever is killed."""

from __future__ import annotations

import itertools
import json
import os
import pickle
import random
import signal
import subprocess
import sys
import time
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zardine
from effort import SOAK, new_seed, some
from tools.test_reshard import Failing, InterruptedHereError
from zardine.errors import ContainsArrayError, JobsFailedError, NodeExistsError, PlanError
from zardine.jobs import Plan
from zardine.jobs.job import Job, NotWantedError, OvertakenError
from zardine.storage import CountingStore, LocalStore

SHAPE = (24, 40, 36)
VALUES = np.random.default_rng(5).integers(0, 1000, SHAPE).astype("int32")


def make(place: Any, chunks: tuple[int, ...] = (1, 40, 36), **options: Any) -> zardine.Array:
    """An array of planes."""
    array = zardine.create_array(place, shape=SHAPE, dtype="int32", chunks=chunks, attributes={"a": 1}, **options)
    array[...] = VALUES
    return array


def same(place: Any) -> bool:
    """Whether the array is there, whole and sound, and nothing else beside it."""
    array = zardine.open_array(place, mode="r")
    left = [key for key in array.store.list() if "__zardine" in key or key.endswith("conversion.json")]
    return bool(np.array_equal(array[...], VALUES)) and bool(zardine.verify(place)) and left == []


LAYOUTS: tuple[dict[str, Any], ...] = (
    {"chunks": (24, 4, 4)},
    {"chunks": (1, 40, 36)},
    {"chunks": (8, 8, 6), "shards": (24, 8, 12)},
    {"chunks": (5, 7, 11)},
    {"chunks": (7, 3, 5), "shards": (7, 9, 10)},
    {"chunks": (24, 40, 1)},
    {"chunks": (2, 40, 36), "shards": (4, 40, 36)},
)


@pytest.mark.parametrize("old", [0, 2, 3, 4, 6])
def test_any_chunks_to_any_chunks(tmp_path: Path, old: int) -> None:
    make(tmp_path / "a.zarr", **LAYOUTS[old])
    for number, (new, memory) in enumerate(some(itertools.product(LAYOUTS, ("64 KiB", "24 KiB", "1 GiB")), 5)):
        place = tmp_path / f"{number}.zarr"
        assert zardine.rechunk(tmp_path / "a.zarr", place, **new, max_memory=memory)
        assert same(place), (new, memory)
        array = zardine.open_array(place)
        assert (array.chunks, array.shards) == (new["chunks"], new.get("shards"))
        assert dict(array.attrs) == {"a": 1}


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("dtype", ["string", "float64", "complex64"])
def test_other_types_and_versions_and_parts_that_are_not_stored(tmp_path: Path, zarr_format: int, dtype: str) -> None:
    options: dict[str, Any] = {"filters": "auto"} if dtype == "string" else {"fill_value": 7}
    array = zardine.create_array(
        tmp_path / "a.zarr", shape=(30, 31), dtype=dtype, chunks=(1, 31), zarr_format=zarr_format, **options
    )
    array[3:9] = np.array([f"{i}" for i in range(6 * 31)]).reshape(6, 31) if dtype == "string" else 2.5
    plan = zardine.plan_rechunk(tmp_path / "a.zarr", tmp_path / "b.zarr", chunks=(30, 2), max_memory="2 KiB")
    assert len(plan.work.stages) == 2
    assert plan.run()
    made = zardine.open_array(tmp_path / "b.zarr")
    assert np.array_equal(made[...], array[...])
    assert made.fill_value == array.fill_value
    assert made.metadata.zarr_format == 3


def test_each_source_object_is_read_once_and_what_is_forecast_is_what_happens(tmp_path: Path) -> None:
    make(tmp_path / "a.zarr")
    source, target = CountingStore(LocalStore(tmp_path / "a.zarr")), CountingStore(LocalStore(tmp_path / "b.zarr"))
    between = CountingStore(LocalStore(tmp_path / "c.zarr"))
    plan = zardine.plan_rechunk(source, target, chunks=(24, 4, 4), max_memory="96 KiB", between=between)
    read, write = plan.work.stages
    assert (len(read), len(write)) == (6, 9)
    forecast = plan.requests  # looks at the sizes of a few source objects
    source.reset()
    target.reset()
    assert plan.run()
    chunks = {key: number for key, number in source.counts.keys.items() if key.startswith("c/")}
    assert set(chunks.values()) == {1}  # whether others have changed it is seen when it is listed
    assert len(chunks) == 24
    written = {key: number for key, number in target.counts.keys.items() if key.startswith("c/")}
    assert set(written.values()) == {1}
    assert len(written) + len(read) == plan.objects == 96
    assert between.counts.writes == len(read)
    assert between.counts.ranges == len(read) * len(write) + len(read)  # and an index of each shard
    assert between.counts.bytes_read <= 1.05 * VALUES.nbytes
    asked = [store.counts.keys.items() for store in (source, target, between)]
    assert forecast == sum(number for keys in asked for key, number in keys if "/c/" in f"/{key}")
    stored = LocalStore(tmp_path / "a.zarr").getsize_prefix("c")
    total = source.counts.bytes_read + between.counts.bytes_read
    assert abs(plan.bytes_read - (stored + VALUES.nbytes)) <= 0.1 * (stored + VALUES.nbytes)
    assert total <= 1.15 * plan.bytes_read  # with documents, which count here
    assert list(between.list()) == []
    assert plan.cost({"requests": 1.0}) == plan.requests


def test_blocks_that_fit_are_pulled(tmp_path: Path) -> None:
    make(tmp_path / "a.zarr", chunks=(4, 10, 12))
    plan = zardine.plan_rechunk(tmp_path / "a.zarr", tmp_path / "b.zarr", chunks=(2, 10, 6), shards=(8, 20, 12))
    assert [stage.name for stage in plan.work.stages] == ["copy"]
    assert plan.run()
    assert same(tmp_path / "b.zarr")


def test_whole_inner_chunks_are_appended_to_shards_that_memory_has_no_room_for(tmp_path: Path) -> None:
    make(tmp_path / "a.zarr", chunks=(8, 40, 36))
    new: dict[str, Any] = {"chunks": (8, 8, 6), "shards": (24, 40, 36), "max_memory": "96 KiB"}
    plan = zardine.plan_rechunk(tmp_path / "a.zarr", tmp_path / "b.zarr", **new)
    assert [stage.name for stage in plan.work.stages] == ["append"]
    plan.run_part(stage=1, part=(1, 3))
    shard = tmp_path / "b.zarr" / "c" / "0" / "0" / "0"
    size = shard.stat().st_size
    plan.work.run(Job(0, 0))  # as a worker does whose record was lost
    assert shard.stat().st_size == size
    assert plan.run()
    assert same(tmp_path / "b.zarr")


def test_appended_chunks_of_a_source_that_changes_meanwhile(tmp_path: Path) -> None:
    array = make(tmp_path / "a.zarr", chunks=(8, 40, 36))
    new: dict[str, Any] = {"chunks": (8, 8, 6), "shards": (24, 40, 36), "max_memory": "96 KiB"}
    plan = zardine.plan_rechunk(tmp_path / "a.zarr", tmp_path / "b.zarr", **new)
    plan.run_part(stage=1, part=(1, 1))
    array[3, 4, 5] = -1
    with pytest.raises(OvertakenError):
        plan.work.run(Job(0, 0))  # what is there is of an earlier state: a job that looks replaces it
    with pytest.raises(NotWantedError):
        plan.work.run(Job(0, 0, is_wanted=lambda: False))
    assert plan.run()
    assert np.array_equal(zardine.open_array(tmp_path / "b.zarr")[...], array[...])


def test_more_arrays_between_where_pieces_would_be_small(tmp_path: Path) -> None:
    values = np.arange(256 * 256, dtype="i4").reshape(256, 256)
    zardine.create_array(tmp_path / "a.zarr", data=values, chunks=(1, 256))
    plan = zardine.plan_rechunk(tmp_path / "a.zarr", tmp_path / "b.zarr", chunks=(256, 1), max_memory="8 KiB")
    names = [stage.name for stage in plan.work.stages]
    assert names[0] == "read"
    assert names[-1] == "write"
    assert len(names) > 2
    assert plan.run()
    assert np.array_equal(zardine.open_array(tmp_path / "b.zarr")[...], values)
    assert not list((tmp_path / "b.zarr").rglob("between*"))


def test_what_lies_between_is_compared(tmp_path: Path) -> None:
    """Checksums cannot see that a whole object has become another one."""
    make(tmp_path / "a.zarr")
    options: dict[str, Any] = {"chunks": (24, 4, 4), "max_memory": "48 KiB", "between": tmp_path / "c.zarr"}
    plan = zardine.plan_rechunk(tmp_path / "a.zarr", tmp_path / "b.zarr", **options)
    plan.run_part(stage=1, part=(1, 1))
    first, second = sorted(path for path in (tmp_path / "c.zarr").rglob("c/*/0/0"))[:2]
    first.write_bytes(second.read_bytes())
    with pytest.raises(PlanError, match="the sum of the elements that stage 2"):
        plan.run()
    assert not (tmp_path / "b.zarr" / "zarr.json").exists()


def test_a_plan_is_a_value(tmp_path: Path) -> None:
    make(tmp_path / "a.zarr")
    plan = zardine.plan_rechunk(tmp_path / "a.zarr", tmp_path / "b.zarr", chunks=(24, 4, 4), max_memory="48 KiB")
    assert "6 jobs of at most" in repr(plan)
    assert not (tmp_path / "b.zarr").exists()
    plan.save(tmp_path / "plan.json")
    twin = Plan.load(tmp_path / "plan.json")
    assert twin.id == plan.id == pickle.loads(pickle.dumps(plan)).id
    assert str(twin.status()) == "new: read 0 of 6 jobs, write 0 of 9 jobs"
    plan.begin()
    for number in random.Random(3).sample(range(6), 6):
        pickle.loads(pickle.dumps(plan.job(number)))()
        plan.job(number)()  # again
    assert str(twin.status()) == "begun: read 6 of 6 jobs, write 0 of 9 jobs"
    with pytest.raises(PlanError, match=r"of stage 2 \('write'\) 9 of 9 jobs are missing: 0 to 8"):
        twin.finish()
    for number in range(6, 15):
        twin.job(number)()
    assert twin.status().state == "complete"
    with pytest.raises(zardine.errors.NodeNotFoundError):
        zardine.open_array(tmp_path / "b.zarr", mode="r")
    assert plan.finish()
    assert same(tmp_path / "b.zarr")
    plan.job(3)()
    assert plan.run().state == plan.finish().state == "finished"
    assert same(tmp_path / "b.zarr")
    with pytest.raises(PlanError, match="too late to cancel"):
        plan.cancel()
    with pytest.raises(IndexError):
        plan.job(15)


def test_files_that_are_no_plans(tmp_path: Path) -> None:
    make(tmp_path / "a.zarr")
    plan = zardine.plan_rechunk(tmp_path / "a.zarr", tmp_path / "b.zarr", chunks=(24, 4, 4))
    file = tmp_path / "plan.json"
    plan.save(file)
    good = json.loads(file.read_text())

    def refused(document: Any, text: str) -> None:
        file.write_text(document if isinstance(document, str) else json.dumps(document))
        with pytest.raises(PlanError, match=text):
            Plan.load(file)

    refused("{", "is no plan")
    refused("[]", "'zardine_plan' is missing")
    refused({**good, "zardine_plan": 1}, "a plan of form 1, and this zardine reads form 2: make the plan again")
    refused({**good, "kind": "other"}, "the kind 'other', which this zardine does not know")
    refused({**good, "work": {}}, "has no member 'places'")
    refused({**good, "work": {**good["work"], "write": [0, 1, 1]}}, "lengths of 1 or more")
    refused({**good, "work": {**good["work"], "max_memory": 5}}, "was changed since it was written")
    with pytest.raises(PlanError, match="has none"):
        zardine.plan_rechunk(zardine.create_array(None, data=VALUES), tmp_path / "c", chunks=4).save(file)


def test_a_stale_plan_is_refused(tmp_path: Path) -> None:
    array = make(tmp_path / "a.zarr")
    plan = zardine.plan_rechunk(tmp_path / "a.zarr", tmp_path / "b.zarr", chunks=(24, 4, 4))
    array.append(VALUES)
    with pytest.raises(PlanError, match=r"shape has become \(48, 40, 36\), which was \(24, 40, 36\)"):
        plan.run()
    array.resize(SHAPE)
    plan.begin()
    zardine.reshard(tmp_path / "a.zarr", shards=(2, 40, 36), grace=0)
    with pytest.raises(PlanError, match="chunk grid has become another one"):
        plan.run()
    plan.cancel()
    assert not list(LocalStore(tmp_path / "b.zarr").list())


def test_taken_places_are_refused_and_left_alone(tmp_path: Path) -> None:
    make(tmp_path / "a.zarr")
    make(tmp_path / "b.zarr")
    with pytest.raises(ContainsArrayError):
        zardine.rechunk(tmp_path / "a.zarr", tmp_path / "b.zarr", chunks=4)
    (tmp_path / "c").mkdir()
    (tmp_path / "c/thesis.tex").write_text("years of work")
    with pytest.raises(NodeExistsError, match=r"thesis\.tex is stored there"):
        zardine.rechunk(tmp_path / "a.zarr", tmp_path / "c", chunks=4)
    assert (tmp_path / "c/thesis.tex").read_text() == "years of work"
    with pytest.raises(ValueError, match="inside of the other"):
        zardine.rechunk(tmp_path / "a.zarr", tmp_path / "a.zarr/b", chunks=4)
    zardine.plan_rechunk(tmp_path / "a.zarr", tmp_path / "d.zarr", chunks=4).begin()
    with pytest.raises(NodeExistsError, match=r"max_memory"):
        zardine.rechunk(tmp_path / "a.zarr", tmp_path / "d.zarr", chunks=4, max_memory="1 MiB")


def test_what_cannot_fit_is_said(tmp_path: Path) -> None:
    make(tmp_path / "a.zarr")
    with pytest.raises(ValueError, match=r"a chunk of the source .* takes 5,760 bytes, .* give .* 11,520 bytes"):
        zardine.rechunk(tmp_path / "a.zarr", tmp_path / "b.zarr", chunks=4, max_memory="8 KiB")
    with pytest.raises(ValueError, match=r"an object of the target .* give a max_memory of [\d,]+ bytes") as error:
        zardine.rechunk(tmp_path / "a.zarr", tmp_path / "b.zarr", chunks=-1, max_memory="64 KiB")
    assert not (tmp_path / "b.zarr").exists()
    enough = int(str(error.value).split(" bytes or more")[0].split()[-1].replace(",", ""))
    zardine.rechunk(tmp_path / "a.zarr", tmp_path / "b.zarr", chunks=-1, max_memory=enough)


def test_others_write_meanwhile(tmp_path: Path) -> None:
    """What they write between a job and finishing is in the result."""
    array = make(tmp_path / "a.zarr", chunks=(1, 20, 36))
    plan = zardine.plan_rechunk(tmp_path / "a.zarr", tmp_path / "b.zarr", chunks=(24, 4, 4), max_memory="48 KiB")
    plan.run(finish=False)
    array[7, 3:5] = -1
    array[20] = 0  # erased: all of it is the fill value
    before = plan.status()
    assert before.state == "complete"
    assert plan.finish()
    assert np.array_equal(zardine.open_array(tmp_path / "b.zarr")[...], array[...])
    assert zardine.open_array(tmp_path / "b.zarr")[7, 3, 0] == -1


class Flaky(Executor):
    """Loses every third job once; the others it runs at once."""

    def __init__(self, error: Exception) -> None:
        self.error, self.seen, self.most = error, set[int](), 0

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        job = args[-1]
        if job % 3 == 0 and job not in self.seen:
            self.seen.add(job)
            future.set_exception(self.error)
        else:
            future.set_result(fn(*args))
        return future


def test_failed_jobs_are_tried_again_where_that_makes_sense(tmp_path: Path) -> None:
    make(tmp_path / "a.zarr")
    plan = zardine.plan_rechunk(tmp_path / "a.zarr", tmp_path / "b.zarr", chunks=(24, 4, 4), max_memory="48 KiB")
    assert plan.run(Flaky(ConnectionError("gone")))
    assert same(tmp_path / "b.zarr")
    plan = zardine.plan_rechunk(tmp_path / "a.zarr", tmp_path / "c.zarr", chunks=(24, 4, 4), max_memory="48 KiB")
    with pytest.raises(JobsFailedError, match=r"stage 'read' failed; .*\n  - job 0: ValueError: wrong") as raised:
        plan.run(Flaky(ValueError("wrong")))
    assert raised.value.jobs == (0,)
    assert isinstance(raised.value.__cause__, ValueError)
    assert plan.run()
    assert same(tmp_path / "c.zarr")


def test_a_damaged_chunk_names_the_job_and_the_chunk(tmp_path: Path) -> None:
    make(tmp_path / "a.zarr")
    chunk = tmp_path / "a.zarr/c/9/0/0"
    good = chunk.read_bytes()
    chunk.write_bytes(good[:-1] + bytes([good[-1] ^ 1]))
    with pytest.raises(JobsFailedError, match=r"job 2: ChecksumError: .*\(9, 0, 0\)"):
        zardine.rechunk(tmp_path / "a.zarr", tmp_path / "b.zarr", chunks=(24, 4, 4), max_memory="48 KiB")
    chunk.write_bytes(good)
    assert zardine.rechunk(tmp_path / "a.zarr", tmp_path / "b.zarr", chunks=(24, 4, 4), max_memory="48 KiB")
    assert same(tmp_path / "b.zarr")


@pytest.mark.parametrize("kind", [ThreadPoolExecutor, ProcessPoolExecutor])
def test_executors(tmp_path: Path, kind: type[Executor]) -> None:
    make(tmp_path / "a.zarr")
    seen: list[tuple[int, int]] = []
    options: dict[str, Any] = {}
    if kind is ProcessPoolExecutor:
        import multiprocessing

        options["mp_context"] = multiprocessing.get_context("spawn")
    with kind(2, **options) as executor:  # type: ignore[call-arg]
        assert zardine.rechunk(
            tmp_path / "a.zarr",
            tmp_path / "b.zarr",
            chunks=(24, 4, 4),
            max_memory="48 KiB",
            executor=executor,
            progress=lambda done, total: seen.append((done, total)),
        )
    assert same(tmp_path / "b.zarr")
    assert seen == sorted(seen)
    assert seen[-1] == (2 * VALUES.nbytes, 2 * VALUES.nbytes)
    with pytest.raises(TypeError, match="executor is one of"):
        zardine.rechunk(tmp_path / "a.zarr", tmp_path / "c.zarr", chunks=8, executor=3)  # type: ignore[arg-type]


RUN = """
import sys, zardine
if __name__ == "__main__":
    zardine.rechunk(sys.argv[1], sys.argv[2], chunks=(24, 4, 4), max_memory="48 KiB", workers=int(sys.argv[3]))
"""


def test_killed_at_any_moment_the_same_call_goes_on(tmp_path: Path) -> None:
    make(tmp_path / "a.zarr")
    script = tmp_path / "run.py"
    script.write_text(RUN)
    rng = random.Random(new_seed(11))
    killed = 0
    for number in range(20 if SOAK else 2):
        place = tmp_path / f"{number}.zarr"
        command = [sys.executable, str(script), str(tmp_path / "a.zarr"), str(place), "1"]
        for patience in (0.0, 0.02, 0.1, 0.3):
            process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
            while process.poll() is None and not place.exists():
                time.sleep(0.001)
            time.sleep(rng.random() * patience)
            process.kill()
            _, text = process.communicate()
            assert process.returncode == -signal.SIGKILL or not process.returncode or "already stored" in text, text
            killed += process.returncode == -signal.SIGKILL
            if (place / "zarr.json").exists() and not list(place.glob("__zardine/jobs/*/plan.json")):
                break
        else:
            subprocess.run(command, check=True, timeout=60)
        assert same(place)
    assert killed > 1


def test_a_killed_worker_loses_at_most_its_job(tmp_path: Path) -> None:
    """Processes of our own are begun anew."""
    make(tmp_path / "a.zarr")
    script = tmp_path / "run.py"
    script.write_text(RUN)
    command = [sys.executable, str(script), str(tmp_path / "a.zarr"), str(tmp_path / "b.zarr"), "2"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    killed = 0
    while process.poll() is None and killed < 2:
        records = list((tmp_path / "b.zarr").rglob("jobs/*/*-*.json"))
        pids = {int(record.name.split("-")[-2]) for record in records}
        for pid in sorted(pids)[killed : killed + 1]:
            try:
                os.kill(pid, signal.SIGKILL)
                killed += 1
            except ProcessLookupError:
                pass
        time.sleep(0.005)
    _, text = process.communicate(timeout=60)
    assert process.returncode == 0, text
    assert killed
    assert same(tmp_path / "b.zarr")


MEASURE = """
import sys, resource, zardine
plan = zardine.plan_rechunk(sys.argv[1], sys.argv[2], chunks=(256, 16, 16), max_memory="32 MiB")
small = zardine.create_array(None, shape=(64, 64), dtype="f4", chunks=(8, 8)); small[...] = 1; small[...]
zardine.rechunk(sys.argv[1] + "/small", sys.argv[2] + "-small", chunks=(64, 4), max_memory="8 KiB")
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
plan.run()
print(len(plan.work.stages), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before, plan.memory)
"""


def test_memory_is_what_was_asked_for(tmp_path: Path) -> None:
    group = zardine.create_group(tmp_path / "a.zarr")
    small = group.create_array("small", shape=(64, 64), dtype="f4", chunks=(1, 64))
    small[...] = 3
    array = group.create_array("large", shape=(256, 256, 512), dtype="f4", chunks=(1, 256, 512))
    plane = np.random.default_rng(0).random((256, 512), np.float32).round(2)
    for i in range(256):
        array[i] = plane + i
    text = MEASURE.replace("sys.argv[1], sys.argv[2], chunks=(256", "sys.argv[1] + '/large', sys.argv[2], chunks=(256")
    command = [sys.executable, "-c", text, str(tmp_path / "a.zarr"), str(tmp_path / "b.zarr")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    stages, peak, promised = map(int, done.stdout.split())
    assert stages == 2
    assert peak * 1024 <= 1.1 * 32 * 2**20
    assert peak * 1024 <= promised
    made = zardine.open_array(tmp_path / "b.zarr")
    assert np.array_equal(made[100, :, 3], plane[:, 3] + 100)


@pytest.mark.parametrize("then", ["again", "cancel"])
def test_interrupted_at_any_write(tmp_path: Path, then: str) -> None:
    """What is there is the whole array or none; the same call goes on, and cancelling leaves nothing."""
    make(tmp_path / "a.zarr")
    options: dict[str, Any] = {"chunks": (24, 10, 12), "max_memory": "48 KiB"}
    ended = 0
    for number in some(range(100), 1 if SOAK else 7):
        place = tmp_path / f"{number}.zarr"
        store = Failing(LocalStore(place))
        store.left = number
        try:
            zardine.rechunk(tmp_path / "a.zarr", store, **options)
        except (InterruptedHereError, JobsFailedError):
            ended += 1
        else:
            break
        plan = zardine.plan_rechunk(tmp_path / "a.zarr", LocalStore(place), **options)
        if (place / "zarr.json").exists():
            assert np.array_equal(zardine.open_array(place, mode="r")[...], VALUES)
            with pytest.raises(PlanError, match="too late"):
                plan.cancel()
        elif then == "cancel":
            plan.cancel()
            assert [path for path in place.rglob("*") if path.is_file()] == []
            continue
        assert plan.run()
        assert same(place)
    assert ended > 4


def test_what_can_be_done_about_a_place_that_is_taken(tmp_path: Path) -> None:
    """Rechunking overwrites nothing, and overwriting what it has begun takes the work of its jobs."""
    make(tmp_path / "a.zarr")
    zardine.create_group(tmp_path / "group.zarr")
    zardine.create_array(tmp_path / "array.zarr", shape=3, dtype="i4")
    for name in ("group", "array"):
        with pytest.raises(NodeExistsError, match=r"is already stored at .*target_path='name' within a group") as said:
            zardine.rechunk(tmp_path / "a.zarr", tmp_path / f"{name}.zarr", chunks=(24, 4, 4))
        assert "overwrite" not in str(said.value)
    zardine.plan_rechunk(tmp_path / "a.zarr", tmp_path / "b.zarr", chunks=(24, 4, 4)).begin()
    with pytest.raises(NodeExistsError, match=r"may be running: .*cancelling its plan takes it back; .*end its jobs"):
        zardine.create_array(tmp_path / "b.zarr", shape=3, dtype="i4")


def test_two_have_their_arrays_between_at_one_place(tmp_path: Path) -> None:
    make(tmp_path / "a.zarr")
    other = make(tmp_path / "b.zarr")
    other[...] = VALUES[::-1]
    options: dict[str, Any] = {"chunks": (24, 4, 4), "max_memory": "48 KiB", "between": tmp_path / "scratch"}
    plans = [
        zardine.plan_rechunk(tmp_path / f"{name}.zarr", tmp_path / f"{name}2.zarr", **options) for name in ("a", "b")
    ]
    for stage in (1, 2):
        for plan in plans:
            plan.run_part(stage=stage)
    assert all(plan.finish() for plan in plans)
    assert same(tmp_path / "a2.zarr")
    assert np.array_equal(zardine.open_array(tmp_path / "b2.zarr")[...], VALUES[::-1])
    assert [path for path in (tmp_path / "scratch").rglob("*") if path.is_file()] == []
