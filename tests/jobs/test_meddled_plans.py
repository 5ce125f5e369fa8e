"""Plans that several workers run at the same time, that are killed, cancelled and begun anew at any moment."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

import zardine
from effort import SOAK
from meddling import TWO, Stage, let_play
from zardine.errors import ArrayNotFoundError, JobsFailedError, NodeExistsError, PlanError
from zardine.jobs import plan as plan_module
from zardine.jobs.job import Job
from zardine.storage import MemoryStore, Store, WrapperStore
from zardine.tools.converting.jobs import ConvertWork

FOUND = [93, 117, 156, 187, 225, 302, 333]
"""Seeds that have once found something: an empty array at the end; a worker that ended with a fault of ours."""


@pytest.mark.parametrize("seed", [*range(3000 if SOAK else 60), *FOUND])
def test_workers_that_come_and_go(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    chosen = random.Random(seed)
    inner = MemoryStore()
    how, new = ({"shards": None, **each} for each in chosen.sample(TWO, 2))
    source = zardine.create_array(inner, name="src", shape=(40, 20), dtype="i4", **how)
    source[...] = values = np.arange(800, dtype="i4").reshape(40, 20) + 1
    largest = max(int(np.prod(each["shards"] or each["chunks"])) for each in (how, new))
    options = {"max_memory": chosen.choice([256 * largest, "1 GiB"]), "target_path": "out", **new}
    stage = Stage(seed, inner, kills=chosen.choice([0, 0, 1, 3, 6]))
    let_play(monkeypatch, stage)
    tool = chosen.choice(["rechunk", "convert"])

    def plan_of(store: Any) -> zardine.jobs.Plan:
        if tool == "rechunk":
            return zardine.plan_rechunk(store, store, path="src", **options)
        return zardine.plan_convert(store, store, source_path="src", **options)

    def worker(does: Callable[[zardine.jobs.Plan], object]) -> Callable[[], object]:
        store = stage.store(kills=True)

        def run() -> None:
            with suppress(PlanError, NodeExistsError):  # another one has finished or cancelled it
                does(plan_of(store))

        return stage.until_done(run)

    def a_part(plan: zardine.jobs.Plan) -> None:
        for stage in range(len(plan.work.stages)):
            plan.run_part(stage=stage + 1, part=(chosen.randint(1, 2), 2))

    does = [lambda plan: plan.run(), lambda plan: plan.run(finish=False), a_part]
    cancels = [worker(lambda plan: plan.cancel())] if chosen.random() < 0.5 else []
    stage.run(worker(does[0]), *(worker(chosen.choice(does)) for _ in range(chosen.randint(1, 3))), *cancels)
    try:
        made = zardine.open_array(inner, path="out")
    except ArrayNotFoundError:
        assert cancels or stage.has_killed
        if cancels and stage.has_killed:  # who was killed as he wrote too late may have left something
            zardine.convert(inner, inner, source_path="src", overwrite=True, **options)
        else:
            plan_of(inner).run()
        made = zardine.open_array(inner, path="out")
    np.testing.assert_array_equal(made[...], values)
    assert zardine.verify(inner).faults == ()


FOUND_IN_PLACE = [91, 130, 289, 372, 430, 506]
"""Seeds that have once found something: who came when another had finished began anew, and ended with a fault of ours;
a plan and the function waited for each other's locks; records that stayed."""


@pytest.mark.parametrize("seed", [*range(3000 if SOAK else 60), *FOUND_IN_PLACE])
def test_workers_that_reshard_in_place(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    chosen = random.Random(seed)
    inner = MemoryStore()
    how, new = ({"shards": None, **each} for each in chosen.sample(TWO, 2))
    source = zardine.create_array(inner, name="src", shape=(40, 20), dtype="i4", **how)
    source[...] = values = np.arange(800, dtype="i4").reshape(40, 20) + 1
    stage = Stage(seed, inner, kills=chosen.choice([0, 0, 1, 3, 6]))
    let_play(monkeypatch, stage)
    plan = zardine.plan_reshard(stage.store(kills=True), path="src", **new)

    def worker(does: Callable[[], object]) -> Callable[[], object]:
        def run() -> None:
            with suppress(PlanError, NodeExistsError):  # another one has cancelled it, or does the same
                does()

        return stage.until_done(run)

    def a_part() -> None:
        for number in range(len(plan.work.stages)):
            plan.run_part(stage=number + 1, part=(chosen.randint(1, 2), 2))

    def function() -> None:
        zardine.reshard(stage.store(kills=True), path="src", **new)

    does = [plan.run, lambda: plan.run(finish=False), a_part, function]
    cancels = [worker(plan.cancel)] if chosen.random() < 0.5 else []
    stage.run(worker(plan.run), *(worker(chosen.choice(does)) for _ in range(chosen.randint(1, 3))), *cancels)
    array = zardine.open_array(inner, path="src")
    np.testing.assert_array_equal(array[...], values)
    faults = zardine.verify(inner).faults
    assert {each.kind for each in faults} <= ({"unnamed"} if cancels and stage.has_killed else set())
    if not cancels:
        plan.run()
        array = zardine.open_array(inner, path="src")
        assert (array.chunks, array.shards) == (new["chunks"], new["shards"])
        np.testing.assert_array_equal(array[...], values)
        left = [key for key in inner.list_prefix("") if "__zardine" in key]
        assert not left, left


def test_a_kill_as_a_round_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    """The plan says first that a round begins, then which jobs run again: else what they record would never count."""
    from zardine.jobs.records import Records

    inner = MemoryStore()
    source = zardine.create_array(inner, name="src", shape=(8,), dtype="i4", chunks=(4,))
    source[...] = 1
    plan = zardine.plan_rechunk(inner, inner, path="src", target_path="out", chunks=(8,))
    plan.run(finish=False)
    source[...] = 2
    void, calls = Records.void, []

    class DyingError(Exception):
        pass

    def killed(self: Records, *args: Any) -> None:
        original = MemoryStore.set

        def set_(store: Any, key: str, *rest: Any, **options: Any) -> Any:
            calls.append(key)
            if len(calls) == 2:
                raise DyingError
            return original(store, key, *rest, **options)

        with monkeypatch.context() as patch:
            patch.setattr(MemoryStore, "set", set_)
            void(self, *args)

    with monkeypatch.context() as patch:
        patch.setattr(Records, "void", killed)
        with pytest.raises(DyingError):
            plan.run()
    assert len(calls) == 2
    plan.run()
    assert zardine.open_array(inner, path="out")[...].tolist() == [2] * 8


class _FarStore(WrapperStore):
    """Of values that are stored anew with the same bytes it tells the same version, as object stores do."""

    @property
    def lock_is_exclusive(self) -> bool:
        return False

    def version(self, key: str) -> Any:
        data = self._store.get(key)
        return None if data is None else bytes(data)

    def set(self, key: str, value: Any, *, condition: Any = None) -> Any:
        self._store.set(key, value)
        return bytes(value)

    def erase_version(self, key: str, version: Any) -> None:
        Store.erase_version(self, key, version)


@pytest.mark.parametrize("is_far", [False, True])
def test_what_is_taken_back_is_nobody_elses(is_far: bool) -> None:
    """The same plan is begun anew, and has stored the same: the version alone does not tell where that is the bytes."""
    store: Store = _FarStore(MemoryStore()) if is_far else MemoryStore()
    job = Job(0, 0)
    late = job.guarded(store, ["k", "l"])
    late.set("k", b"one")
    late.set("l", b"two")
    store.set("k", b"one")
    is_begun = [True]
    job.take_back(lambda: not is_begun[0])
    assert store.get("k") == b"one"
    assert store.get("l") == (b"two" if is_far else None)
    is_begun[0] = False
    job.take_back(lambda: True)
    assert store.get("l") is None


def test_a_result_that_was_changed_since_is_not_taken_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker has stored a chunk once more when others finish the plan, and the result gets attributes."""
    inner = MemoryStore()
    zardine.create_array(inner, name="src", data=np.arange(8, dtype="i4"), chunks=(4,))
    plan = zardine.plan_convert(inner, inner, source_path="src", target_path="out", shards=None, chunks=(8,))
    plan.run(finish=False)
    run = ConvertWork.run

    def late(work: Any, job: Any) -> Any:
        found = run(work, job)
        if job.targets and not finished:
            finished.append(True)
            plan.finish()
            zardine.open_array(inner, path="out", mode="r+").attrs["a"] = 1
        return found

    finished: list[bool] = []
    monkeypatch.setattr(ConvertWork, "run", late)
    plan.job(len(plan) - 1)()
    assert finished
    assert zardine.open_array(inner, path="out")[...].tolist() == list(range(8))


def test_the_error_of_a_job_is_told_although_taking_back_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    inner = MemoryStore()
    zardine.create_array(inner, name="src", data=np.arange(8, dtype="i4"), chunks=(4,))
    plan = zardine.plan_rechunk(inner, inner, path="src", target_path="out", chunks=(8,))
    inner.set("src/c/1", b"no chunk")

    def failing(*about: Any) -> None:
        raise PlanError("the records cannot be read")

    monkeypatch.setattr(plan_module, "_take_back", failing)
    with pytest.raises(JobsFailedError, match="stored checksum"):
        plan.run()
