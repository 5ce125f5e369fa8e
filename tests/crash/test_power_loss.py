"""With ``durable=True`` a write that has returned survives the loss of power; one that has not is there or not.

With ``in_place`` the chunks that are just being written may be torn. Nothing is lost in truth: see :mod:`crash.disk`.
"""

from __future__ import annotations

import shutil
import warnings
from pathlib import Path

import pytest

import zardine
from crash.disk import Disk, Recorder, Tree, store_tree, tree_of
from crash.driver import Plan, after_repair, after_rerun, check_promise, opened
from crash.scenarios import SCENARIOS, combinations, look
from effort import SOAK
from zardine.engine.index_cache import INDEXES

CASES = sorted({(name, strategy, location) for name in SCENARIOS for strategy, location, _ in combinations(name)})
States = dict[tuple[int, tuple[tuple[str, bytes], ...]], bool]
"""Steps that had returned and what was on the disk when the power was lost; and whether no other step had begun."""


def states_after_loss(plan: Plan, start: Path, target: Path) -> States:
    """All that may be left, before each call that changes files and after each step."""
    shutil.copytree(start, target)
    INDEXES.clear()
    disk = Disk(target, subsets=20 if SOAK else 1)
    states: States = {}
    returned = 0

    def note(between_steps: bool) -> None:
        for tree in disk.after_loss():
            key = returned, tuple(sorted(tree.items()))
            states[key] = states.get(key, False) or between_steps

    array = opened(plan, target)
    with pytest.MonkeyPatch.context() as patch, zardine.config.set({"threads": 1}):
        Recorder(disk, lambda name: note(False), patch.setattr)
        for step in SCENARIOS[plan.scenario].steps:
            step.act(array)
            returned += 1
            note(True)
    assert disk.tree(disk.pending) == tree_of(target), "the model is not what was done"
    return states


def judge(plan: Plan, folder: Path, tree: Tree, returned: int, between_steps: bool, number: int) -> bool:
    """That it is as it was promised, and that what was being done can be done again; whether it was warned of."""
    scenario = SCENARIOS[plan.scenario]
    shutil.rmtree(folder, ignore_errors=True)
    store_tree(tree, folder)
    seen = look(folder, scenario, plan.strategy)
    check_promise(plan, seen, returned)
    if between_steps:
        assert (seen.step, seen.begun, seen.torn, seen.warned) == (returned, False, [], False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        (after_repair if number % 2 else after_rerun)(plan, folder, scenario, seen, returned, None)
    return seen.warned


@pytest.mark.parametrize(("name", "strategy", "location"), CASES)
def test_what_is_left(name: str, strategy: str, location: str, quick_path: Path) -> None:
    plan = Plan(str(quick_path), name, strategy, location, durable=True)
    start = quick_path / "start.zarr"
    SCENARIOS[name].prepare(start, location)
    states = states_after_loss(plan, start, quick_path / "target.zarr")
    warned = 0
    for number, ((returned, tree), between_steps) in enumerate(states.items()):
        if not (SOAK or between_steps or number % 4 in (0, 3)):  # run again, and repaired
            continue
        warned += judge(plan, quick_path / "left.zarr", dict(tree), returned, between_steps, number)
    print(f"{len(states)} states, {warned} with a write that was cut off")
    steps = len(SCENARIOS[name].steps)
    assert {returned for (returned, _), between in states.items() if between} == set(range(1, steps + 1))
    assert len(states) > 2 * steps
    assert strategy != "rewrite" or not warned


@pytest.mark.parametrize("strategy", SCENARIOS["update"].strategies)
def test_without_durable_it_may_be_lost(strategy: str, quick_path: Path) -> None:
    """So the model loses what was not synced."""
    plan = Plan(str(quick_path), "update", strategy, durable=False)
    start = quick_path / "start.zarr"
    SCENARIOS["update"].prepare(start, "end")
    before = tuple(sorted(tree_of(start).items()))
    assert states_after_loss(plan, start, quick_path / "target.zarr")[2, before]


def test_an_index_that_is_damaged_later(quick_path: Path) -> None:
    """Nothing says any more that it may have been cut off: that is an error, rather than old values."""
    plan = Plan(str(quick_path), "update", "append", durable=True)
    path = quick_path / "target.zarr"
    SCENARIOS["update"].prepare(path, "end")
    for step in SCENARIOS["update"].steps:
        step.act(opened(plan, path))
    shard = bytearray((path / "c/0/0").read_bytes())
    shard[-512:] = bytes(512)
    (path / "c/0/0").write_bytes(shard)
    with pytest.raises(zardine.errors.CorruptionError):
        opened(plan, path)[0, 0]
    with pytest.raises(zardine.errors.CorruptionError):
        opened(plan, path)[0, 0] = 1
