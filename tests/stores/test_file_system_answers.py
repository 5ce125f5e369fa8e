"""File systems that answer late (at close), wrongly or in part lose no value, and store none twice."""

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


@pytest.mark.parametrize("kernel", ["1", "0"])
def test_a_write_is_done_or_raises_an_error(tmp_path: Path, kernel: str) -> None:
    library = tmp_path / "failing_calls.so"
    assert COMPILER is not None
    subprocess.run([COMPILER, "-shared", "-fPIC", "-o", library, HERE / "failing_calls.c", "-ldl"], check=True)
    command = [sys.executable, "-W", "ignore", HERE / "file_system_answers.py", tmp_path / "stores"]
    environment = {**os.environ, "LD_PRELOAD": str(library), "ZARDINE_KERNEL": kernel}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert (done.stdout, done.stderr) == ("True\n", "")
