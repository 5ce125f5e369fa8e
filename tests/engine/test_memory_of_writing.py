"""A shard that is written whole is in memory once, encoded, whatever its size."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import zardine

pytestmark = [
    pytest.mark.skipif(zardine.__kernel__ is None, reason="the kernel is not in use"),
    pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="Linux tells the most memory in use"),
]

PROGRAM = """
import json, pathlib, sys
import numpy as np, zardine

def memory(name):
    lines = pathlib.Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name + ":"))

shape = (64, 1024, 1024)
small = zardine.create_array(sys.argv[1] + "/small", shape=shape, dtype="u2", chunks=(32, 64, 64), shards=shape)
small[:1] = 1  # what is needed once
values = np.random.default_rng(1).integers(0, 4000, shape, dtype="u2")
array = zardine.create_array(sys.argv[1] + "/array", shape=shape, dtype="u2", chunks=(32, 64, 64), shards=shape)
pathlib.Path("/proc/self/clear_refs").write_text("5")
before = memory("VmRSS")
array[...] = values
print(json.dumps([memory("VmHWM") - before, array.nbytes_stored()]))
"""


def test_a_compressed_shard_is_in_memory_once(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path)], capture_output=True, text=True, check=True, timeout=120
    )
    most, stored = json.loads(ran.stdout)
    assert stored > 100 * 2**20
    assert most < 1.3 * stored + 64 * 2**20  # 2.0 times, as it was, is more
