"""What is built from the folder: wheels that say what they hold, and nothing that an earlier build has left."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import zardine

ROOT = Path(__file__).parents[1]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the repository in which a kernel and a module of before are left over."""
    copy = tmp_path / "zardine"
    copy.mkdir()
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, copy / name)
    shutil.copytree(ROOT / "src", copy / "src", ignore=shutil.ignore_patterns("__pycache__", "*.so", "*.egg-info"))
    (copy / "rust").mkdir()
    for name in ("Cargo.toml", "Cargo.lock"):
        shutil.copy(ROOT / "rust" / name, copy / "rust" / name)
    python = f"cpython-{sys.version_info[0]}{sys.version_info[1]}"
    for place in ("build/lib", f"build/lib.linux-{os.uname().machine}-{python}"):
        (copy / place / "zardine").mkdir(parents=True)
        (copy / place / "zardine" / "left_over.py").touch()
        (copy / place / "zardine" / "_kernel.abi3.so").touch()
    (copy / "src/zardine/_kernel.abi3.so").write_bytes(b"an old kernel")
    return copy


def build(folder: Path, what: str, programs: dict[str, str]) -> tuple[Path, str]:
    """The wheel that ``what`` of the build backend makes where only ``programs`` can be run, and what it printed."""
    commands = folder.parent / "commands"
    commands.mkdir()
    for name, script in programs.items():
        (commands / name).write_text(f"#!/bin/sh\n{script}\n")
        (commands / name).chmod(0o755)
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("CARGO", "RUST"))}
    code = f"from setuptools import build_meta; build_meta.{what}({str(folder.parent)!r})"
    run = subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        env={**environment, "PATH": f"{commands}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    (wheel,) = folder.parent.glob("*.whl")
    return wheel, run.stdout + run.stderr


BROKEN = {"cargo": "exit 1", "rustc": "echo rustc 1.95.0"}


@pytest.mark.parametrize(
    ("programs", "reason"), [({}, "cargo was not found"), (BROKEN, "it could not be compiled")], ids=["none", "broken"]
)
def test_a_wheel_without_the_kernel_is_pure_python(folder: Path, programs: dict[str, str], reason: str) -> None:
    if not programs and any(Path(place, "cargo").exists() for place in ("/usr/bin", "/bin")):
        pytest.skip("cargo is among the programs of the system")
    wheel, output = build(folder, "build_wheel", programs)
    assert wheel.name == f"zardine-{zardine.__version__}-py3-none-any.whl"
    assert f"zardine is built without its native kernel: {reason}" in output
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        about = archive.read(f"zardine-{zardine.__version__}.dist-info/WHEEL").decode()
    assert "Root-Is-Purelib: true" in about
    assert "Tag: py3-none-any" in about
    assert "zardine/nodes/array.py" in names
    page = "zardine/server/viewer/page"
    assert {f"{page}/index.html", f"{page}/main.js", f"{page}/vendor/uPlot.LICENSE.txt"} <= set(names)
    assert not [name for name in names if name.endswith(".so") or "left_over" in name]


@pytest.mark.parametrize("programs", [{}, BROKEN], ids=["none", "broken"])
def test_an_old_kernel_beside_the_sources_goes(folder: Path, programs: dict[str, str]) -> None:
    build(folder, "build_editable", programs)
    assert not list((folder / "src/zardine").glob("*.so"))
