"""Forks a writer again and again and stops it (SIGSTOP) at every point in turn; reads what is stored meanwhile.

``python -m crash.stopped PLAN``: the plan is JSON with the fields of :class:`crash.driver.Plan`. The reader waits less
for the writer than it does otherwise. Prints one JSON line for each point, with what was wrong. In the end the writer
goes on.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import zardine
from crash.driver import Child, Plan, calls_made, check_promise, opened, prepared, renew
from crash.killing import Point, kill_at, points_of
from crash.scenarios import SCENARIOS, look
from zardine.cache import Cache
from zardine.engine import read
from zardine.stores import base, open_files
from zardine.stores.attempts import Patience
from zardine.stores.local import directory_sync
from zardine.tools.checking import outside

SHORT = Patience(seconds=0.002, longest_wait=0.001)
LONGEST = 5.0
"""Seconds in which each reader must have its answer."""


def every_point(plan: Plan) -> Iterator[dict[str, Any]]:
    """Stop the writer at each point, and read."""
    for module in (open_files, base):
        vars(module)["EDITS"] = SHORT
    vars(read)["TORN"] = SHORT
    vars(outside)["_PAUSES"] = (0.0,)
    vars(directory_sync)["_synced"] = Cache(0)  # so that each child makes the same calls
    start, target = prepared(plan)
    renew(start, target)
    for step in SCENARIOS[plan.scenario].steps:  # so that no child has to load modules
        step.act(opened(plan, target))
    points = points_of(calls_made(plan))
    firsts = {(point.name, point.part): at for at, point in reversed(list(enumerate(points)))}
    for at, point in enumerate(points):
        if at % plan.step == plan.first or at in firsts.values():
            renew(start, target)
            yield {**asdict(point), **judge(plan, target, point)}


def judge(plan: Plan, target: Path, point: Point) -> dict[str, Any]:
    """Say what readers find while the writer is stopped, and after it has gone on."""
    scenario = SCENARIOS[plan.scenario]
    child = Child(plan, target, lambda: kill_at(point, signal.SIGSTOP))
    found: dict[str, Any] = {}
    try:
        assert os.WIFSTOPPED(os.waitpid(child.pid, os.WUNTRACED)[1])
        begun = int((os.read(child._out, 1000).decode().splitlines() or ["0"])[-1])
        began = time.monotonic()
        seen = look(target, scenario, plan.strategy)
        check_promise(plan, seen, begun)
        found = {"torn": len(seen.torn), "warned": seen.warned}
        report = zardine.verify(target)
        assert {fault.kind for fault in report.faults} <= {"outside"}, str(report)
        found["busy"] = sum(note.kind == "busy" for note in report.notes)
        zardine.open(target, mode="r").info_complete()
        assert time.monotonic() - began < LONGEST
    except (AssertionError, zardine.errors.ZardineError, OSError) as error:
        found["wrong"] = f"{type(error).__name__}: {error}"
    os.kill(child.pid, signal.SIGCONT)
    child.end()
    try:
        seen = look(target, scenario, plan.strategy)
        assert seen.step == len(scenario.steps), seen
        assert not seen.torn, seen
        assert not seen.warned, seen
    except AssertionError as error:
        found["wrong"] = f"after it went on: {error}"
    return found


if __name__ == "__main__":
    for each in every_point(Plan(**json.loads(sys.argv[1]))):
        print(json.dumps(each), flush=True)
