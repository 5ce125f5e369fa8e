"""A long conversion goes on whose workers and schedulers are killed at random; no worker needs more than is planned."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from effort import SOAK, new_seed
from jobs.long_work import check_result, plan_long_work

KILLS = {"worker": 20, "scheduler": 3} if SOAK else {"worker": 1, "scheduler": 1}
ENVIRON = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
IDLE = """
import sys, zardine
from jobs.processes import peak_memory
zardine.create_array(f"{sys.argv[1]}/a", shape=(4, 4), dtype="f4", chunks=(1, 4), zarr_format=2)[...] = 1
zardine.plan_convert(f"{sys.argv[1]}/a", f"{sys.argv[1]}/b").run()
print(peak_memory("self"))
"""


def memory_of_an_idle_worker(folder: Path) -> int:
    """Return the most memory of a process that has converted next to nothing."""
    folder.mkdir()
    command = [sys.executable, "-c", IDLE, str(folder)]
    return int(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=ENVIRON).stdout)


def test_killed_at_random(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = plan_long_work(tmp_path, monkeypatch)
    per_job = plan.work.stages[1].grids[0].axes[0].longest
    plan.save(tmp_path / "plan.json")
    rng = random.Random(new_seed(7))
    victims = [who for who, count in KILLS.items() for _ in range(count)]
    rng.shuffle(victims)
    moments = list(zip(sorted(rng.sample(range(2, len(plan) - 8), len(victims))), victims, strict=True))
    log = tmp_path / "log"
    command = [sys.executable, "-m", "jobs.run_and_kill", str(tmp_path / "plan.json"), json.dumps(moments), str(log)]
    ended: Counter[int] = Counter()
    while not plan.status():
        run = subprocess.run(command, stderr=subprocess.PIPE, text=True, env=ENVIRON, timeout=300, check=False)
        ended[run.returncode] += 1
        assert run.returncode in (0, -signal.SIGKILL), run.stderr
        if not plan.status():  # what is called done is stored
            _, writing = plan.status().stages
            stored = sum(1 for each in (tmp_path / "target.zarr" / "c").rglob("*") if each.is_file())
            assert stored >= (writing.done - 1) * per_job + 1
    noted = [json.loads(line) for line in log.read_text().splitlines()]
    assert Counter(each["killed"] for each in noted if "killed" in each) == KILLS
    assert ended == {0: 1, -signal.SIGKILL: KILLS["scheduler"]}
    check_result(tmp_path)
    peak = max(each["peak"] for each in noted if "peak" in each)
    most = peak - memory_of_an_idle_worker(tmp_path / "idle")
    assert peak > 0
    assert most <= plan.memory
    print(f"{len(plan)} jobs; largest worker {most / 2**20:.0f} MiB of {plan.memory / 2**20:.0f} MiB planned")
