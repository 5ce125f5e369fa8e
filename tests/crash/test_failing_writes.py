"""Whichever call of the system fails: old or new is stored, the error says which, and no lock is held."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from effort import SOAK

HERE = Path(__file__).parent
COMPILER = shutil.which("cc")

pytestmark = pytest.mark.skipif(
    COMPILER is None or not sys.platform.startswith("linux"), reason="needs Linux and a compiler of C"
)


@pytest.mark.parametrize("kernel", ["1", "0"], ids=["kernel", "python"])
def test_every_call_of_every_kind_of_write(tmp_path: Path, kernel: str) -> None:
    library, folder = tmp_path / "failing_call.so", tmp_path / "writes"
    folder.mkdir()
    source = HERE / "failing_call.c"
    assert COMPILER is not None
    subprocess.run([COMPILER, "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    paths = os.pathsep.join([str(HERE.parent), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "LD_PRELOAD": str(library), "PYTHONPATH": paths, "ZARDINE_KERNEL": kernel}
    command = [sys.executable, "-W", "ignore", HERE / "failing_writes.py", folder]
    limit = 1800 if SOAK else 300
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=limit, check=False)
    *wrong, last = done.stdout.splitlines() or [""]
    assert (wrong, done.stderr) == ([], "")
    word, failures = last.split()
    assert word == "done"
    assert int(failures) > 100
