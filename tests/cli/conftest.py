"""Stores to look at, and two ways to run the command line: within this process, and as users do."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

import zardine
from zardine.cli.commands import root

Run = Callable[..., Result]
Shell = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def run() -> Run:
    """Run a command line in this process: ``run("info", path)``; the terminal has 80 columns."""

    def invoke(*words: object, columns: int = 80, **env: str) -> Result:
        runner = CliRunner(env={"COLUMNS": str(columns), **env})
        return runner.invoke(root, [str(word) for word in words], prog_name="zardine")

    return invoke


def environment(**more: str) -> dict[str, str]:
    """That of a plain pipe: nothing in it asks for colours or a width."""
    asking = ("FORCE_COLOR", "NO_COLOR", "COLUMNS", "TTY_COMPATIBLE", "TTY_INTERACTIVE", "PYTHONIOENCODING")
    return {name: value for name, value in os.environ.items() if name not in asking} | more


@pytest.fixture
def shell() -> Shell:
    """Run ``python -m zardine`` in a process of its own, with pipes for stdout and stderr."""

    def invoke(*words: object, **env: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "zardine", *map(str, words)]
        return subprocess.run(command, env=environment(**env), capture_output=True, encoding="utf-8", timeout=120)

    return invoke


@pytest.fixture
def sharded(tmp_path: Path) -> Path:
    """A sharded array, one of its four shards stored."""
    array = zardine.create_array(
        str(tmp_path / "heights.zarr"),
        shape=(40, 60),
        dtype="float32",
        chunks=(5, 10),
        shards=(20, 30),
        fill_value=np.nan,
        dimension_names=("y", "x"),
        attributes={"units": "m", "long": "x" * 200, **{f"a{i}": i for i in range(10)}},
    )
    array[:20, :30] = 1
    return tmp_path / "heights.zarr"


@pytest.fixture
def hierarchy(tmp_path: Path) -> Path:
    """Groups and arrays, some with names that are markup to rich."""
    group = zardine.create_group(str(tmp_path / "data.zarr"), attributes={"title": "Example"})
    group.create_array("raw/counts", shape=(4, 6), dtype="u2", chunks=2, attributes={"units": "[bold]1[/bold]"})
    group.create_array("raw/times", shape=4, dtype="M8[ns]", chunks=2)
    group.create_group("[red]")["[b]:fish:"] = np.arange(3)
    group.create_array("uneven", shape=(100, 200), dtype=[("x", "f4"), ("n", "i2")], chunks=((10, 20, 70), (50, 150)))
    return tmp_path / "data.zarr"


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    """A group with one member whose document is no JSON, one without data type, and one that is fine."""
    group = zardine.create_group(str(tmp_path / "broken.zarr"))
    for name in ("fine", "incomplete", "nonsense"):
        group.create_array(name, shape=3, dtype="i4")
    (tmp_path / "broken.zarr/nonsense/zarr.json").write_text("nonsense")
    (tmp_path / "broken.zarr/incomplete/zarr.json").write_text('{"zarr_format": 3, "node_type": "array"}')
    return tmp_path / "broken.zarr"
