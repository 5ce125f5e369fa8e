"""Schedulers and workers that are killed: the same command goes on, and nobody is left behind."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import zardine
from effort import SOAK, new_seed
from jobs.processes import workers_of

VALUES = np.random.default_rng(0).integers(0, 1000, (240, 128, 32)).astype("int32")
KILLS = 10 if SOAK else 1
CASES = [(what, victim) for what in ("convert", "reshard", "verify") for victim in ("scheduler", "worker")]


@pytest.mark.parametrize(("what", "victim"), CASES if SOAK else [CASES[3], CASES[4]])
def test_killed_again_and_again(tmp_path: Path, what: str, victim: str) -> None:
    source, target, records = tmp_path / "a.zarr", tmp_path / "b.zarr", tmp_path / "records"
    array = zardine.create_array(source, shape=VALUES.shape, dtype="int32", chunks=(1, 64, 32))
    array[...] = VALUES
    command = [sys.executable, "-m", "zardine", what, str(source), "--workers", "2", "--quiet"]
    command += {
        "convert": [str(target), "--shards", "2,128,32"],
        "reshard": ["--shards", "2,128,32", "--grace", "0"],
        "verify": ["--records", str(records)],
    }[what]
    rng = random.Random(new_seed(3))
    home = {"convert": target, "reshard": source, "verify": records}[what]
    killed = 0
    followed: list[int] = []
    for _ in range(KILLS):
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        while process.poll() is None and not list(home.glob("__zardine/jobs/*/*-*.json")):
            time.sleep(0.01)
        time.sleep(rng.random() * 0.05)
        workers = workers_of(process.pid)
        followed += workers
        try:
            if victim == "scheduler":
                process.kill()
            elif workers:
                os.kill(rng.choice(workers), signal.SIGKILL)
            killed += 1
        except ProcessLookupError:
            pass
        _, text = process.communicate(timeout=120)
        assert process.returncode == (-signal.SIGKILL if process.returncode < 0 else 0), text
        if process.returncode == 0:
            break
    else:
        if what != "convert" or not (target / "zarr.json").exists():
            subprocess.run(command, check=True, timeout=120)
    assert killed
    made = zardine.open_array(target if what == "convert" else source)
    assert made.shards == (None if what == "verify" else (2, 128, 32))
    assert np.array_equal(made[...], VALUES)
    assert zardine.verify(made)
    assert not list(home.glob("__zardine/jobs/*/*"))
    end = time.monotonic() + 30
    while time.monotonic() < end and any(Path(f"/proc/{pid}").exists() for pid in followed):
        time.sleep(0.05)
    assert not [pid for pid in followed if Path(f"/proc/{pid}").exists()]


def test_what_a_killed_worker_left_of_its_record_goes_with_the_plan(tmp_path: Path) -> None:
    array = zardine.create_array(tmp_path / "a.zarr", shape=VALUES.shape, dtype="int32", chunks=(60, 64, 32))
    array[...] = VALUES
    plan = zardine.plan_convert(tmp_path / "a.zarr", tmp_path / "b.zarr", shards=(120, 128, 32))
    plan.begin()
    plan.job(0)()
    (records,) = (tmp_path / "b.zarr").glob("__zardine/jobs/*")
    (records / ".zardine-0123456789abcdef.tmp").write_bytes(b"{")
    plan.run()
    assert not (tmp_path / "b.zarr" / "__zardine").exists()
    assert np.array_equal(zardine.open_array(tmp_path / "b.zarr")[...], VALUES)
