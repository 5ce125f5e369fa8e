"""Wrong bytes in small files: an error of ours, or what the library of the format reads, too; no crash, no hang."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from effort import SOAK, new_seed
from sources.fuzz_files import FORMS

ENVIRON = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
CASES = 1000 if SOAK else 25
BATCH = 50
"""Cases of one process."""
SECONDS = 120
"""After which something hangs: a batch takes a second."""


def run(form: str, first: int, count: int, *more: str) -> tuple[bool, list[str]]:
    """Try files; whether that came to an end, and what it printed."""
    command = [sys.executable, "-m", "sources.fuzz_files", form, str(first), str(count), *more]
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=ENVIRON, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired as error:
        return False, (error.stdout or b"").decode().splitlines()
    return done.returncode == 0, done.stdout.splitlines()


@pytest.mark.parametrize("form", FORMS)
def test_wrong_bytes(form: str) -> None:
    """Where the process ends early, the library has to do the same to one that has nothing of zardine in its way."""
    seed = new_seed(0)
    stop = seed + CASES
    read = 0
    while seed < stop:
        count = min(BATCH, stop - seed)
        ended, lines = run(form, seed, count)
        assert not [line for line in lines if line.startswith("wrong")]
        if ended:
            read += int(lines[-1].removeprefix("read "))
            seed += count
        else:
            last = int(lines[-1].removeprefix("case "))
            assert not run(form, last, 1, "alone")[0], f"zardine crashes or hangs with case {last}"
            seed = last + 1
    assert read
