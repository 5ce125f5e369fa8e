"""Nothing is lost and nothing is mixed, whatever the strategy; twenty seconds in all, more with ``party.py``."""

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
from effort import SOAK, some

PARTY = Path(__file__).with_name("party.py")

ONE_STRATEGY = [
    f"{strategy}-{location}-{kind}"
    for strategy in ("rewrite", "append", "in_place")
    for location in ("end", "start")
    for kind in ("checked", "plain")
]


def run(case: str, seconds: float, fewest: dict[str, int], folder: Path) -> None:
    """Run a case until so much of each kind is done; other programs read what is there in the end."""
    fewest |= {"reads": int(20 * seconds) if SOAK else 5}
    command = [sys.executable, str(PARTY), "--case", case, "--folder", str(folder)]
    command += ["--seconds", str(60.0 if SOAK else seconds), "--fewest", json.dumps(fewest)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1000)
    assert done.stdout, done.stderr[-3000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[0])
    print(found)
    assert found["faults"] == []
    assert found["lost"] == found["mixed"] == found["error"] == done.returncode == 0
    found["changes"] = found["writes"] + found["appends"]
    assert all(found[kind] >= count for kind, count in fewest.items()), (found, fewest)
    path = str(folder / "a.zarr")
    values = zardine.open_array(path, mode="r")[...]
    np.testing.assert_array_equal(zarr.open_array(path, mode="r")[...], values)
    spec = {"driver": "zarr3", "kvstore": {"driver": "file", "path": path}}
    np.testing.assert_array_equal(tensorstore.open(spec).result().read().result(), values)


@pytest.mark.parametrize("case", list(some(ONE_STRATEGY, 6)))
def test_writers_and_readers(case: str, tmp_path: Path) -> None:
    run(case, 1.5, {"changes": 120}, tmp_path)


@pytest.mark.parametrize("location", ["end", "start"])
def test_all_strategies_and_tools(location: str, tmp_path: Path) -> None:
    run(f"all-{location}-tools", 3.0, {"changes": 300, "verify": 3, "compact": 3, "repair": 3}, tmp_path)


@pytest.mark.parametrize("location", ["end", "start"])
def test_appenders_and_a_resizer(location: str, tmp_path: Path) -> None:
    fewest = {"changes": 180, "appends": 120, "resizes": 6, "attributes": 3, "writes": 12}
    run(f"growth-{location}", 3.0, fewest, tmp_path)


def test_a_layout_that_changes_all_the_time(tmp_path: Path) -> None:
    """Writers, readers, appends, resizes, resharding, verifying and compacting; a minute of them in a soak run."""
    fewest = dict.fromkeys(("appends", "resizes", "reshards", "verify", "compact"), 5 if SOAK else 2)
    run("layouts", 6.0, {"changes": 200, "refused": 1, **fewest}, tmp_path)
