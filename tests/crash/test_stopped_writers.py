"""A writer that is stopped (Ctrl-Z, a frozen container) at any call keeps no reader waiting, nor from what is whole."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from crash.driver import Plan
from crash.foreign import environment
from effort import SOAK

FEW = [
    ("update", "rewrite", "end"),
    ("update", "append", "end"),
    ("update", "append", "start"),
    ("update", "in_place", "end"),
    ("append", "append", "end"),
]
ALL = product(("update", "buffered", "append", "resize"), ("rewrite", "append", "in_place"), ("end", "start"))
CASES = list(ALL) if SOAK else FEW


def stopped(plan: Plan) -> list[dict[str, Any]]:
    """Return what came of each point."""
    command = [sys.executable, "-m", "crash.stopped", json.dumps(asdict(plan))]
    run = subprocess.run(command, capture_output=True, text=True, timeout=1200 if SOAK else 300, env=environment())
    assert run.returncode == 0, run.stderr[-3000:]
    return [json.loads(line) for line in run.stdout.splitlines()]


@pytest.mark.parametrize(("scenario", "strategy", "location"), CASES)
def test_readers_see_what_the_last_finished_write_left(
    tmp_path: Path, scenario: str, strategy: str, location: str
) -> None:
    durable = location == "start" or scenario == "append"  # else the kernel appends, in calls that are not seen
    plan = Plan(str(tmp_path), scenario, strategy, location, durable, step=1 if SOAK else 31)
    points = stopped(plan)
    wrong = [point for point in points if "wrong" in point]
    assert not wrong, f"{len(wrong)} of {len(points)} points, for example {wrong[0]}"
    if scenario == "update":
        if location == "end":
            assert any(point["warned"] for point in points) == (strategy == "append")
        assert any(point["torn"] for point in points) == (strategy == "in_place")
