"""Plans of a petabyte in ten million shards are made, costed, saved, and asked how far they are, in seconds."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from pathlib import Path

import pytest

import zardine

MEASURE = """
import json, resource, sys, time
import zardine
from zardine.jobs import Plan
from zardine.jobs.job import JobDone
from zardine.jobs.ranges import Ranges
from zardine.jobs.records import recorder_of

what, place = sys.argv[1:]
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
begin, used = time.monotonic(), time.process_time()
source, target = f"{place}/a.zarr", f"{place}/{what}.zarr"
plan = {
    "verify": lambda: zardine.plan_verify(source, records=target),
    "convert": lambda: zardine.plan_convert(source, target, shards=(500, 500, 800)),
    "reshard": lambda: zardine.plan_reshard(source, shards=(500, 500, 800), target=target),
    "rechunk": lambda: zardine.plan_rechunk(source, target, chunks=(500, 100, 100), shards=(500, 500, 400)),
}[what]()
facts = plan.objects, plan.requests, plan.bytes_read, plan.cost(), repr(plan)
plan.save(f"{place}/{what}.json")
plan = Plan.load(f"{place}/{what}.json")
made, made_used = time.monotonic() - begin, time.process_time() - used
plan.begin()
# what workers would have recorded
records = plan._records
last, length = len(plan.work.stages) - 1, len(plan.work.stages[-1])
token, round_ = records.state()
document = {"token": token, "round": 0, "seen": {}, "found": {}}
per_object = 1024
for number, start in enumerate(range(0, length - length // 10, per_object)):
    stop = min(start + per_object, length)
    document["done"] = {str(last): [[start, stop]]}
    document["seen"] = {str(last): ["0123456789abcdef"] * (stop - start)}
    records.home.store.set(f"{records.prefix}worker-{number}.json", json.dumps(document).encode())
begin, used = time.monotonic(), time.process_time()
status = plan.status()
asked, asked_used = time.monotonic() - begin, time.process_time() - used
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
assert status.stages[last].done >= length * 0.89, status
print(json.dumps([made, made_used, asked, asked_used, peak, len(plan), status.stages[last].done]))
"""


@pytest.mark.parametrize("what", ["verify", "convert", "reshard", "rechunk"])
def test_a_petabyte(tmp_path: Path, what: str) -> None:
    array = zardine.create_array(
        tmp_path / "a.zarr", shape=(10**5, 10**5, 10**5), dtype="u1", chunks=(100, 100, 100), shards=(500, 500, 400)
    )
    assert array.nshards == 10**7
    command = [sys.executable, "-c", MEASURE, what, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    made, made_used, asked, asked_used, peak, jobs, _ = json.loads(done.stdout)
    assert (tmp_path / f"{what}.json").stat().st_size < 20_000
    assert peak * 1024 < 500e6
    assert made_used < 10  # seconds of a processor; those of the clock depend on what else the machine does
    assert asked_used < 10
    assert max(made, asked) < 100
    assert jobs > 1000
    assert resource is not None
