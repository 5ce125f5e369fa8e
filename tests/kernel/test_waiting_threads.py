"""The kernel's threads wait from call to call: they are no burden to the program in which they do."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from zardine.kernel import KERNEL

pytestmark = pytest.mark.skipif(KERNEL is None, reason="without the native kernel there are no such threads")

BEGIN = """
import os, signal, sys, time, warnings
import numpy as np
import zardine

def threads():
    return len(os.listdir("/proc/self/task"))

zardine.config.set({"threads": 6})
values = np.arange(4 * 2**20, dtype="i4").reshape(64, 256, 256)
a = zardine.create_array(sys.argv[1], shape=values.shape, dtype="i4", chunks=(8, 32, 256))

def round_trip():
    a[...] = values
    assert (a[...] == values).all()

alone = threads()
round_trip()
assert threads() > alone, "nobody waits"
"""


def run(program: str, folder: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", BEGIN + program, str(folder / "a.zarr")],
        capture_output=True,
        text=True,
        timeout=60,
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},  # NumPy's threads take signals
    )
    assert (ran.returncode, ran.stderr) == (0, "")


@pytest.mark.skipif(sys.platform != "linux", reason="threads are counted in /proc")
def test_a_process_that_forks_has_no_threads_that_it_does_not_know(tmp_path: Path) -> None:
    run(  # warnings are errors: Python warns of forks where there are other threads
        """
for _ in range(5):
    child = os.fork()
    if child == 0:
        round_trip()
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    round_trip()
child = os.fork()
if child == 0:
    os._exit(threads())
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == alone
assert threads() == alone
""",
        tmp_path,
    )


@pytest.mark.skipif(sys.platform != "linux", reason="threads are counted in /proc")
def test_they_end_after_a_while(tmp_path: Path) -> None:
    run(
        """
for _ in range(200):
    time.sleep(0.1)
    if threads() == alone:
        break
assert threads() == alone
round_trip()
""",
        tmp_path,
    )


def test_they_take_no_signals(tmp_path: Path) -> None:
    run(
        """
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
os.kill(os.getpid(), signal.SIGTERM)  # to whoever takes it: those that wait were there before it was blocked
assert signal.sigtimedwait({signal.SIGTERM}, 10).si_signo == signal.SIGTERM
round_trip()
""",
        tmp_path,
    )
