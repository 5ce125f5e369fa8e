"""Where the kernel can be built it has to be there: a build that failed quietly must not pass for a slow success."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import zardine


@pytest.mark.skipif(shutil.which("cargo") is None, reason="no Rust toolchain, so the kernel is optional")
def test_the_kernel_is_built_where_cargo_is():
    script = "import zardine; print(zardine.__kernel__)"
    environment = {**os.environ, "ZARDINE_KERNEL": "1"}
    found = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    assert found.stdout.strip() == zardine.__version__


def test_the_environment_turns_it_off():
    script = "import zardine; print(zardine.__kernel__); zardine.print_debug_info()"
    environment = {**os.environ, "ZARDINE_KERNEL": "0"}
    found = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    assert found.stdout.startswith("None\n")
    assert "kernel: not in use" in found.stdout
    command = [sys.executable, "-m", "zardine", "--version"]
    version = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    assert version.startswith(
        f"zardine {zardine.__version__}, no native kernel (turned off by ZARDINE_KERNEL=0), so that"
    )


def test_it_says_why_there_is_none(tmp_path):
    """In a copy of the package, without the kernel, and with something that is none."""
    copy = tmp_path / "zardine"
    shutil.copytree(Path(zardine.__file__).parent, copy, ignore=shutil.ignore_patterns("_kernel*.so", "__pycache__"))
    environment = {**os.environ, "ZARDINE_KERNEL": "1", "PYTHONPATH": str(tmp_path)}
    command = [sys.executable, "-m", "zardine", "--version"]
    for content, reason in (
        (None, "it was not built: that takes Rust"),
        (b"\x7fELF nonsense", "it cannot be loaded: "),
    ):
        if content is not None:
            (copy / "_kernel.abi3.so").write_bytes(content)
        run = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, cwd=tmp_path)
        assert run.stdout.startswith(f"zardine {zardine.__version__}, no native kernel ({reason}")
        assert run.stdout.endswith("many small chunks are read and written several times slower\n")
