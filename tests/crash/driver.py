"""Forks a writer again and again and kills it at every point in turn; prints what is stored afterwards.

``python -m crash.driver PLAN``: the plan is JSON with the fields of :class:`Plan`. In its folder the array
``start.zarr`` is made; each child changes a copy of it as the scenario says and is killed. After each, everything is
read; then either ``zardine.repair`` is run or the writer runs again, and after that zardine has nothing to warn of, and
zarr-python and tensorstore read the same. One JSON line for each point, with what was wrong.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

import zardine
from crash.foreign import Foreign
from crash.killing import (
    Tracer,
    kill_at,
    killing,
    let_others_trace,
    points_of,
    record_calls,
    traced_points,
)
from crash.scenarios import SCENARIOS, MixedError, Scenario, Seen, Values, boxes, look
from zardine.engine import freshness
from zardine.engine.index_cache import INDEXES


@dataclass(frozen=True)
class Plan:
    """What is tried."""

    folder: str
    scenario: str
    strategy: str = "rewrite"
    location: str = "end"
    durable: bool = False
    traced: bool = False
    """Whether the tracer kills, at system calls, or the wrapped functions do."""
    foreign: str | None = None
    """Address of the process that reads with other programs; without, they do not."""
    every: int = 1
    """After how many points they read; in any case at the first of each kind."""
    first: int = 0
    """Which points are tried: numbers ``first``, ``first + step`` and so on, and the first of each call."""
    step: int = 1


class Child:
    """A forked writer."""

    def __init__(self, plan: Plan, target: Path, arm: Callable[[], object] | None = None, *, waits: bool = False):
        self._out, log = os.pipe()
        hold, self._go = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                work(plan, target, arm, log, hold if waits else None)
                os._exit(0)
            except BaseException:
                traceback.print_exc()
                os._exit(3)
        os.close(log)
        os.close(hold)

    def go(self) -> None:
        """Let it begin, if it has not been killed while it waits."""
        with contextlib.suppress(BrokenPipeError):
            os.write(self._go, b"!")

    def end(self) -> tuple[bool, str]:
        """Whether it was killed, and what it said."""
        status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        with open(self._out) as file:
            said = file.read()
        os.close(self._go)
        assert status in (0, -9), f"the writer ended with {status}"
        return status == -9, said


def work(plan: Plan, target: Path, arm: Callable[[], object] | None, log: int, hold: int | None) -> None:
    """What a writer does; it says the number of each step when it begins it, and the calls it made."""
    say = os.write
    vars(freshness)["LEASE"] = 1e9  # no looks at the document after a time: the calls are the same in every run
    array = opened(plan, target)
    if hold is None:
        zardine.config.set({"threads": 1})  # so that the calls come in one order
    else:
        let_others_trace()
        os.read(hold, 1)
    calls = arm() if arm is not None else None
    for number, step in enumerate(SCENARIOS[plan.scenario].steps):
        say(log, f"{number}\n".encode())
        step.act(array)
    say(log, f"{len(SCENARIOS[plan.scenario].steps)}\n".encode())
    if isinstance(calls, list):
        say(log, " ".join(calls).encode())


def opened(plan: Plan, target: Path) -> zardine.Array:
    store = zardine.storage.LocalStore(target, durable=plan.durable)
    return zardine.open_array(store, mode="r+", config={"write_strategy": plan.strategy})


def calls_made(plan: Plan) -> list[str]:
    """The calls that change files in one whole run of the writer."""
    start, target = prepared(plan)
    renew(start, target)
    killed, said = Child(plan, target, record_calls).end()
    assert not killed
    return said.splitlines()[-1].split()


def prepared(plan: Plan) -> tuple[Path, Path]:
    start, target = Path(plan.folder, "start.zarr"), Path(plan.folder, "target.zarr")
    if not start.exists():
        SCENARIOS[plan.scenario].prepare(start, plan.location)
    return start, target


def renew(start: Path, target: Path) -> None:
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(start, target)
    INDEXES.clear()


def every_point(plan: Plan) -> Iterator[dict[str, Any]]:
    """Kill at each, and look."""
    start, target = prepared(plan)
    renew(start, target)
    for step in SCENARIOS[plan.scenario].steps:  # so that no child has to load modules
        step.act(opened(plan, target))
    log = Path(plan.folder, "log")
    if plan.traced:
        renew(start, target)
        traced(plan, target, [], str(log))
    points = traced_points(log) if plan.traced else points_of(calls_made(plan))
    readers = None if plan.foreign is None else Foreign(plan.foreign)
    kinds: set[Any] = set()
    calls = [(point.name, point.part) for point in points]
    firsts = {calls.index(call) for call in calls}
    tried = [point for at, point in enumerate(points) if at % plan.step == plan.first or at in firsts]
    for number, point in enumerate(tried):
        renew(start, target)
        if plan.traced:
            killed, said = traced(plan, target, killing(point))
        else:
            killed, said = Child(plan, target, lambda point=point: kill_at(point)).end()
        begun = int((said.splitlines() or ["0"])[-1])
        repairs = number % 2 == 1
        kind = (point.name, point.part, repairs, begun)
        asked = readers if kind not in kinds or number % plan.every == 0 else None
        kinds.add(kind)
        result = {**asdict(point), "killed": killed, "begun": begun, "repaired": repairs, "foreign": asked is not None}
        yield result | judge(plan, target, begun, repairs, asked)


def traced(plan: Plan, target: Path, options: list[str], log: str = os.devnull) -> tuple[bool, str]:
    """Run a writer under the tracer."""
    child = Child(plan, target, waits=True)
    tracer = Tracer(child.pid, options, log)
    child.go()
    ended = child.end()
    tracer.wait()
    return ended


def judge(plan: Plan, target: Path, begun: int, repairs: bool, readers: Foreign | None) -> dict[str, Any]:
    """What is found after a writer was killed in step ``begun`` and after what is done about it."""
    scenario = SCENARIOS[plan.scenario]
    found: dict[str, Any] = {}
    try:
        seen = look(target, scenario, plan.strategy)
        found = {"step": seen.step, "half": seen.begun, "torn": len(seen.torn), "warned": seen.warned}
        check_promise(plan, seen, begun)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            (after_repair if repairs else after_rerun)(plan, target, scenario, seen, begun, readers)
    except (AssertionError, zardine.errors.ZardineError, OSError, Warning) as error:
        found["wrong"] = f"{type(error).__name__}: {error}"
    return found


def may_tear(plan: Plan) -> bool:
    """Whether chunks are written over where they are."""
    return plan.strategy == "in_place"


def check_promise(plan: Plan, seen: Seen, begun: int) -> None:
    """That what was done is there, that nothing else is, and that only ``in_place`` tears a chunk."""
    assert seen.step == begun or (seen.step == begun + 1 and not seen.begun), f"after step {begun}: {seen}"
    assert not seen.torn or may_tear(plan), seen
    shards = {tuple(part.start // size for part, size in zip(box, shards_of(plan), strict=True)) for box in seen.torn}
    keeps_lengths = SCENARIOS[plan.scenario].compressors is None
    assert len(shards) == len(seen.torn) or not keeps_lengths, seen  # shorter chunks need the new index
    assert not seen.warned or plan.strategy != "rewrite", seen


def shards_of(plan: Plan) -> tuple[int, int]:
    return SCENARIOS[plan.scenario].shards or SCENARIOS[plan.scenario].chunks


def after_repair(plan: Plan, target: Path, scenario: Scenario, seen: Seen, begun: int, readers: Foreign | None) -> None:
    """``zardine.repair`` changes no value, leaves nothing to warn of and nothing beside; torn chunks are written anew.

    Nothing of what an ``append`` or ``resize`` left beyond the shape comes back when the array grows.
    """
    repairs = zardine.repair(target, older_than=0)
    allowed = {"unreadable"} if seen.torn or (resizes(scenario, begun) and may_tear(plan)) else set()
    assert {fault.kind for fault in repairs.left} <= allowed, [fault.message for fault in repairs.left]
    mend(plan, target, seen)
    check_whole(target, scenario, seen.values, seen.attributes, readers)
    beside = [path.name for path in target.rglob("*") if path.name.endswith(".tmp")]
    assert not beside, f"left beside: {beside}"
    if resizes(scenario, begun):
        array = opened(plan, target)
        array.resize(tuple(length + 8 for length in array.shape))
        check_whole(target, scenario, np.pad(seen.values, (0, 8)), seen.attributes, None)


def after_rerun(plan: Plan, target: Path, scenario: Scenario, seen: Seen, begun: int, readers: Foreign | None) -> None:
    """The steps that were not acknowledged, made again, lead to the last stage.

    A shard whose last write was cut off is in order after the next one.
    """
    if begun < len(scenario.steps) and not scenario.steps[begun].again:
        begun = seen.step
    mend(plan, target, seen)
    if seen.warned:
        array = opened(plan, target)
        for box in boxes(array.shape, shards_of(plan)):
            first = tuple(part.start for part in box)
            array[first] = seen.values[first]
    for step in scenario.steps[begun:]:
        step.act(opened(plan, target))
    check_whole(target, scenario, *scenario.stages()[-1], readers)


def resizes(scenario: Scenario, begun: int) -> bool:
    """Whether the shape changes in step ``begun``, or the one before."""
    shapes = [values.shape for values, _ in scenario.stages()]
    return len(set(shapes[max(0, begun - 1) : begun + 2])) > 1


def mend(plan: Plan, target: Path, seen: Seen) -> None:
    """Write torn chunks wholly, which is what a user has to do."""
    array = opened(plan, target)
    for box in seen.torn:
        array[box] = seen.values[box]


def check_whole(
    target: Path, scenario: Scenario, values: Values, attributes: dict[str, Any], readers: Foreign | None
) -> None:
    """That all programs find these, and that we have nothing to warn of."""
    INDEXES.clear()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        array = zardine.open_array(target, mode="r")
        found = array[...]
    if found.shape != values.shape or (found != values).any() or array.attrs.asdict() != attributes:
        raise MixedError(f"after that: {found.shape} {array.attrs.asdict()} {found.tolist()}"[:600])
    if readers is not None:
        readers.check(target, values, attributes)


def main() -> None:
    plan = Plan(**json.loads(sys.argv[1]))
    for line in every_point(plan):
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
