"""Each call of flock, fstat, statvfs and stat that a work on local files makes may fail: that is an error of ours."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
COMPILER = shutil.which("cc")

pytestmark = pytest.mark.skipif(
    COMPILER is None or not sys.platform.startswith("linux"), reason="needs Linux and a compiler of C"
)


def test_a_call_that_fails_is_an_error_of_ours(tmp_path: Path) -> None:
    library, root = tmp_path / "failing_calls.so", tmp_path / "store"
    assert COMPILER is not None
    subprocess.run([COMPILER, "-shared", "-fPIC", "-o", library, HERE / "failing_calls.c", "-ldl"], check=True)
    command = [sys.executable, "-W", "ignore", HERE / "calls_that_fail.py", root]
    environment = {**os.environ, "LD_PRELOAD": str(library)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert (done.stdout, done.stderr) == ("done\n", "")
