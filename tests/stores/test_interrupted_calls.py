"""Ctrl-C while a call opens, or returns, a file does not leave that open."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from effort import some

PROGRAM = """
import gc, os, random, signal, sys
from zardine.storage import LocalStore, ZipStore
import zardine

root, seed, rounds = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
chance = random.Random(seed)
store = LocalStore(root)
array = zardine.create_array(root, name="a", data=list(range(16)), chunks=(4,), shards=(8,))
with ZipStore(root + "/z.zip") as archive:
    archive.set("a", b"1")

def edited():
    with store.files.edit("f") as file:
        file.read((0, 1))

def in_pieces():
    with store.new_value("p") as value:
        value.write([b"1"])
        value.put()

def zipped():
    with ZipStore(root + "/z.zip", mode="r") as archive:
        archive.get("a")

works = [
    lambda: store.set("f", b"1"), lambda: store.get("f"), lambda: store.read("d/g"), lambda: store.set("d/g", b"1"),
    lambda: store.list_dir(""), lambda: store.erase("d/g"), lambda: store.erase_prefix("d/"), edited, in_pieces, zipped,
    lambda: array[1:3], lambda: array.__setitem__(slice(1, 3), 1), lambda: list(store.list()),
]
for work in works:
    try:
        work()
    except Exception:
        pass
steps = 0

def interrupt(number, frame):
    raise KeyboardInterrupt

signal.signal(signal.SIGALRM, interrupt)
from zardine.stores.open_files import kept_files
kept_files.clear()
gc.collect()
before, interrupts = len(os.listdir("/proc/self/fd")), 0
for _ in range(rounds):
    work = chance.choice(works)
    try:
        signal.setitimer(signal.ITIMER_REAL, chance.uniform(2e-6, 3e-4))
        work()
        signal.setitimer(signal.ITIMER_REAL, 0)
    except KeyboardInterrupt:
        interrupts += 1
    except Exception:
        signal.setitimer(signal.ITIMER_REAL, 0)
kept_files.clear()
gc.collect()
from zardine.stores.late_closing import _closer
_closer.finish()
print(interrupts, len(os.listdir("/proc/self/fd")) - before)
"""


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="needs a system that lists descriptors")
@pytest.mark.parametrize("seed", list(some(range(8), 4)))
def test_hardly_any_descriptor_stays_open(tmp_path: Path, seed: int) -> None:
    command = [sys.executable, "-W", "ignore", "-c", PROGRAM, tmp_path / "store", str(seed), "2000"]
    environment = {**os.environ, "ZARDINE_KERNEL": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    interrupts, leaked = map(int, done.stdout.split())
    assert interrupts > 300, done.stderr
    assert leaked <= interrupts // 15, done.stderr  # some come between two lines of Python
