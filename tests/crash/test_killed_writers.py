"""A writer that is killed at any system call leaves the old contents or the new ones."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorstore
import zarr

import zardine

DRIVER = Path(__file__).with_name("driver.py")
FEWEST = {"rewrite": 20, "append": 12, "in_place": 12}


@pytest.mark.parametrize("durable", [False, True], ids=["", "durable"])
@pytest.mark.parametrize("location", ["end", "start"])
@pytest.mark.parametrize("strategy", ["rewrite", "append", "in_place"])
def test_killed_at_every_call(strategy: str, location: str, durable: bool, tmp_path: Path) -> None:
    values = np.arange(1, 1025, dtype="u4").reshape(32, 32)
    array = zardine.create_array(
        tmp_path / "start.zarr",
        shape=(32, 32),
        dtype="u4",
        chunks=(4, 4),
        shards={"shape": (32, 32), "index_location": location},
        compressors=None,
    )
    array[...] = values
    command = [sys.executable, str(DRIVER), str(tmp_path), strategy, *(["durable"] if durable else [])]
    run = subprocess.run(command, capture_output=True, text=True, timeout=240)
    assert run.returncode == 0, run.stderr[-3000:]
    points = [json.loads(line) for line in run.stdout.splitlines()]
    assert len(points) >= 2 * FEWEST[strategy], f"only {len(points)} points"
    calls = {point["call"] for point in points}
    assert {"rewrite": "replace", "append": "pwritev", "in_place": "pwritev"}[strategy] in calls
    assert ("fsync" in calls) == durable
    for point in points:
        check(point, strategy)
    assert {stage for point in points for stage in point["chunks"].values()} >= {0, 1, 2}
    read = zarr.open_array(tmp_path / "target.zarr", mode="r")[...]
    spec = {"driver": "zarr3", "kvstore": {"driver": "file", "path": str(tmp_path / "target.zarr")}}
    np.testing.assert_array_equal(tensorstore.open(spec).result().read().result(), read)
    assert (read[4:8, 4:8] == 77).all()
    assert (read[9:15, 9:15] == 78).all()


def check(point: dict[str, Any], strategy: str) -> None:
    """Each write is one step for every chunk, and the first comes before the second."""
    stages = list(point["chunks"].values())
    allowed = {0, 1, 2, "torn"} if strategy == "in_place" else {0, 1, 2}
    assert set(stages) <= allowed, point
    assert stages.count("torn") <= 1, point
    first = point["chunks"].get("4,4")
    second = [stage for place, stage in point["chunks"].items() if place != "4,4"]
    if strategy != "in_place":
        assert len(set(second)) == 1, point
    if any(stage == 2 for stage in second):
        assert first != 0, point
    assert point["last"] == 5, point
    strangers = [key for key in point["left"] if not key.startswith(("zarr.json", "c/"))]
    assert not strangers, point
