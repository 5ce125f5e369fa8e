"""A writer that is killed at any system call leaves the old contents or the new ones, for all programs."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from dataclasses import asdict
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from crash.driver import Plan
from crash.foreign import Foreign, environment
from crash.killing import has_tracer
from crash.scenarios import SCENARIOS, STRATEGIES, combinations
from effort import SOAK

CASES = [(name, strategy) for name, scenario in SCENARIOS.items() for strategy in scenario.strategies]

STEP = 1 if SOAK else 11
EVERY = 1 if SOAK else 40
"""Which points are tried, and after how many of them other programs read."""

CHANGES: dict[str, set[str]] = {
    "update": set(),
    "new": {"mkdir", "link"},
    "in parts": {"mkdir", "link", "replace"},
    "other lengths": set(),
    "empty": {"unlink", "rmdir"},
    "buffered": {"mkdir", "link"},
    "append": {"link", "replace"},
    "resize": {"link", "replace", "unlink", "rmdir"},
    "chunks": {"link", "replace", "unlink"},
    "attributes": {"replace"},
    "attributes of Zarr v2": {"replace"},
}
"""Calls that must be among those that kill."""
IN_PARTS = {
    ("update", "in_place"),
    ("other lengths", "in_place"),
    ("chunks", "rewrite"),
    *product(("buffered", "resize"), STRATEGIES),
}
"""Where a step changes several things that are each old or new."""

IN_THE_KERNEL = "append", "rewrite"
"""What is wholly done there unless it is durable; killed there by :func:`test_killed_in_the_kernel`."""


def killed(plan: Plan) -> list[dict[str, Any]]:
    """What came of each point."""
    command = [sys.executable, "-m", "crash.driver", json.dumps(asdict(plan))]
    run = subprocess.run(command, capture_output=True, text=True, timeout=1200 if SOAK else 300, env=environment())
    assert run.returncode == 0, run.stderr[-3000:]
    return [json.loads(line) for line in run.stdout.splitlines()]


def check(points: list[dict[str, Any]], plan: Plan) -> None:
    """That nothing was wrong, and every stage was seen."""
    wrong = [point for point in points if "wrong" in point]
    assert not wrong, f"{len(wrong)} of {len(points)} points, for example {wrong[0]}"
    steps = len(SCENARIOS[plan.scenario].steps)
    assert {point["step"] for point in points} >= set(range(steps)), "some steps were never cut off"
    assert {point["repaired"] for point in points if point["foreign"]} == {False, True}
    print(f"{plan.scenario}, {plan.strategy}, index at the {plan.location}{', durable' * plan.durable}:", end=" ")
    print(f"{len(points)} points, {sum(point['foreign'] for point in points)} read by other programs", end=" ")
    print(dict(Counter(point["name"] for point in points)))


@pytest.mark.parametrize(("name", "strategy"), CASES)
def test_killed_at_every_call(name: str, strategy: str, foreign: Foreign, quick_path: Path) -> None:
    ways = [each for each in combinations(name) if each[0] == strategy]
    for number, (way, location, durable) in enumerate(ways if SOAK else [ways[len(name) % len(ways)]]):
        folder = quick_path / str(number)
        folder.mkdir()
        step = min(STEP, 7) if name == "resize" else STEP  # of which a part is a few calls
        durable = durable or (name, strategy) == IN_THE_KERNEL
        plan = Plan(str(folder), name, way, location, durable, foreign=foreign.address, every=EVERY, step=step)
        points = killed(plan)
        check(points, plan)
        assert all(point["killed"] for point in points)
        calls = {point["name"] for point in points}
        assert calls >= CHANGES[name] | ({"fsync"} if durable else set()), calls
        assert ("pwritev" in calls) == (name == "in parts" or (strategy != "rewrite" and name != "new")), calls
        half = any(point["half"] for point in points)
        assert half == ((name, strategy) in IN_PARTS) or not (half or SOAK)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("name", ["update", "append"])
def test_killed_at_every_system_call(name: str, strategy: str, foreign: Foreign, quick_path: Path) -> None:
    """The same with a tracer, which knows of all calls; where there is none, with the wrapped functions once more."""
    traced = has_tracer()
    location = "end" if strategy == "append" else "start"
    plan = Plan(str(quick_path), name, strategy, location, True, traced, foreign.address, every=EVERY, step=STEP)
    points = killed(plan)
    print("killed by", "strace" if traced else "wrapped functions: there is no strace that may trace", end=": ")
    check(points, plan)
    calls = {point["name"] for point in points}
    if traced:
        assert sum(point["killed"] for point in points) >= 0.75 * len(
            points
        )  # some calls come in another order, or not
        assert calls >= {"openat", "close", "flock", "utimensat", "fsync"}, calls
        assert calls & ({"pwritev2", "pwritev"} if strategy != "rewrite" else {"renameat", "renameat2"}), calls
    assert len(points) >= (50 if traced and SOAK else 10)


@pytest.mark.parametrize("name", ["chunks", "update", "append"])
def test_killed_in_the_kernel(name: str, foreign: Foreign, quick_path: Path) -> None:
    """Whole chunks are written, and files are changed in part, by the kernel, where only a tracer kills."""
    if not has_tracer():
        pytest.skip("there is no strace that may trace")
    step = 1 if SOAK else 5  # there are few calls
    plan = Plan(str(quick_path), name, "rewrite", "end", False, True, foreign.address, every=EVERY, step=step)
    points = killed(plan)
    check(points, plan)
    assert sum(point["killed"] for point in points) >= 0.9 * len(points)
    assert {point["name"] for point in points} >= {"openat", "write", "utimensat", "flock", "close"}
