"""What the tests share: the process with other programs, started once, and a folder that is quick to sync."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from crash.foreign import Foreign, foreign_programs


@pytest.fixture(scope="session")
def foreign() -> Iterator[Foreign]:
    """zarr-python and tensorstore, in a process of their own."""
    with tempfile.TemporaryDirectory(prefix="z") as folder, foreign_programs(Path(folder)) as found:
        yield found


@pytest.fixture
def quick_path(tmp_path: Path) -> Iterator[Path]:
    """A folder in memory where there is one: what is killed is a process, and what is lost is a model's."""
    if not os.access("/dev/shm", os.W_OK):
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(prefix="zardine-test-", dir="/dev/shm") as folder:
        yield Path(folder)
