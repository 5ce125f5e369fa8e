"""A conversion of many objects as a plan of many jobs: small, or in a soak run 2 GB in 2,500 objects of Zarr v2."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

import zardine
from effort import SOAK
from zardine.jobs import Plan
from zardine.tools.converting import jobs

STEPS, ROWS, COLUMNS = (2500, 512, 400) if SOAK else (72, 64, 32)
SHARD = 8 if SOAK else 2
"""Chunks of a shard; a job makes two shards."""


def plane(step: int) -> npt.NDArray[np.float32]:
    """Return what the source holds at one index of its first axis."""
    y, x = np.mgrid[:ROWS, :COLUMNS].astype("f4") / 100
    noise = np.random.default_rng(step).integers(0, 64, (ROWS, COLUMNS)).astype("f4") / 64
    return np.round(280 + 20 * np.sin(y + step / 50) * np.cos(x), 1) + noise


def plan_long_work(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Plan:
    """Store the source, and plan to convert it to shards."""
    array = zardine.create_array(
        folder / "source.zarr",
        zarr_format=2,
        shape=(STEPS, ROWS, COLUMNS),
        chunks=(1, ROWS, COLUMNS),
        dtype="f4",
        compressors={"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1, "blocksize": 0},
    )
    for step in range(STEPS):
        array[step] = plane(step)
    monkeypatch.setattr(jobs, "_JOB_BYTES", 2 * SHARD * ROWS * COLUMNS * 4)
    shards = (SHARD, ROWS, COLUMNS)
    return zardine.plan_convert(folder / "source.zarr", folder / "target.zarr", shards=shards)


def check_result(folder: Path) -> None:
    """Compare what was made with the source, element by element, and verify its checksums."""
    made = zardine.open_array(folder / "target.zarr")
    assert made.shape == (STEPS, ROWS, COLUMNS)
    assert made.shards is not None
    for start in range(0, STEPS, made.shards[0]):
        stop = min(start + made.shards[0], STEPS)
        assert np.array_equal(made[start:stop], np.stack([plane(step) for step in range(start, stop)]))
    assert made.nshards_initialized == made.nshards
    assert zardine.verify(made)
    assert not list((folder / "target.zarr").rglob("__zardine"))


__all__ = ["check_result", "plan_long_work"]
