"""A short run of the fuzzer, so that it keeps working; ``make soak`` runs it for longer."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from effort import SOAK


def test_a_short_run():
    script = Path(__file__).with_name("fuzz_read.py")
    effort = ["--seconds", "60"] if SOAK else ["--rounds", "2000", "--seed", "1"]
    run = subprocess.run([sys.executable, script, *effort], capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "reading: ChecksumError" in run.stdout
