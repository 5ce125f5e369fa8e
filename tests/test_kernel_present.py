"""Where the kernel can be built it has to be there: a build that failed quietly must not pass for a slow success."""

import os
import shutil
import subprocess
import sys

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
