"""Nothing is lost and nothing is mixed, whatever the strategy; longer runs by ``make soak``."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
SECONDS = 60.0 if os.environ.get("ZARDINE_SOAK") else 4.0


def run(script: str, *arguments: object) -> dict[str, Any]:
    command = [sys.executable, str(HERE / script), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS + 120)
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.parametrize("kind", ["checked", "plain"])
@pytest.mark.parametrize("location", ["end", "start"])
@pytest.mark.parametrize("strategy", ["rewrite", "append", "in_place"])
def test_writers_and_readers(strategy: str, location: str, kind: str, tmp_path: Path) -> None:
    found = run("party.py", tmp_path / "a.zarr", strategy, location, SECONDS, kind)
    assert found["errors"] == []
    assert found["writes"] >= 50 * SECONDS, found
    assert found["reads"] >= 50 * SECONDS, found


def test_appends_of_many_processes(tmp_path: Path) -> None:
    found = run("growth.py", tmp_path / "a.zarr", SECONDS)
    assert found["errors"] == []
    assert found["blocks"] >= 5 * SECONDS, found
