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
from zardine.errors import ArrayNotFoundError, NodeExistsError, PlanError
from zardine.storage import MemoryStore

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
