"""The virtual environment of the benchmark: the newest Python found, the peers from PyPI, zardine from this checkout.

With it goes an S3 server in Go, built from modules of Go where go is. Only the standard library is needed here. The
checkout is built from a copy, as ``pip install`` of a release would build it (native kernel optimised, if cargo is
there), and again whenever one of its files changes.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / ".bench-venv"
PEERS = ("tensorstore", "zarrs", "zarrista", "zarr")
TOOLS = ("numcodecs", "zstandard", "deflate", "psutil", "matplotlib")
"""``deflate`` binds libdeflate: the codec library of the limit for gzip."""
VECTORS = ("zarr-vectors==0.9.2", "trx-python", "geopandas", "pyarrow", "laspy[lazrs]", "obstore", "s3fs")
"""Programs of vectors, and what reads from buckets."""
SERVER = ("moto[s3,server]", "pytest")
"""A bucket, and what starts it for the tests."""
GATEWAY, GATEWAY_VERSION = "versitygw", "1.8.0"
"""An S3 server that is fast enough for what is measured far away."""
GATEWAY_SUM = "h1:au+wI+aybno/STsQiSm35Uu6Q6iK5MWReQxgO6SEMFc="
"""Of its module, as Go gives it; the sums of all that it needs are in the module, and Go compares them as it builds."""
PARTS = ("pyproject.toml", "setup.py", "setup.cfg", "README.md", "LICENSE", "src", "rust")
"""What a build of zardine needs."""


def prepare(folder: Path = FOLDER, *, upgrade: bool = False) -> Path:
    """The interpreter of an environment that has everything; makes it or brings it up to date."""
    python = folder / "bin" / "python"
    if not python.exists():
        newest = newest_python()
        print(f"making {folder.name} with {newest}", flush=True)
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run([newest, "-m", "venv", str(folder)], check=True)
        upgrade = True
    peers, packages = folder / ".peers", (*PEERS, *TOOLS, *VECTORS, *SERVER)
    if upgrade or not peers.exists() or peers.read_text() != "\n".join(packages):
        _pip(python, "install", "--upgrade", "pip", *packages)
        peers.write_text("\n".join(packages))
    stamp, now = folder / ".zardine", _fingerprint()
    if upgrade or not stamp.exists() or stamp.read_text() != now:
        print("installing zardine from this checkout", flush=True)
        _install(python, folder)
        stamp.write_text(now)
    if gateway(folder) is None and (failure := _build_gateway(folder)):
        print(f"{GATEWAY} could not be built, far away is measured with moto: {failure}", file=sys.stderr, flush=True)
    return python


def gateway(folder: Path = FOLDER) -> Path | None:
    """The program of the S3 server, if this version of it was built."""
    program, stamp = folder / "bin" / GATEWAY, folder / ".gateway"
    return program if program.exists() and stamp.exists() and stamp.read_text() == GATEWAY_SUM else None


def _build_gateway(folder: Path) -> str:
    """Why the S3 server could not be built; empty if it was."""
    if shutil.which("go") is None:
        return "there is no go"
    module, place = f"github.com/versity/{GATEWAY}@v{GATEWAY_VERSION}", (folder / "bin").resolve() / GATEWAY
    print(f"building {GATEWAY} {GATEWAY_VERSION}", flush=True)
    settings = os.environ | {"CGO_ENABLED": "0", "GOFLAGS": "-mod=readonly -buildvcs=false", "GOWORK": "off"}
    until = time.monotonic() + _FETCHING
    try:
        about = _go(settings, until, str(folder), "mod", "download", "-json", module)
        found = json.loads(about)
        if found.get("Sum") != GATEWAY_SUM:
            return "the sum of its module is another one"
        # within the module its go.sum counts, which is a part of what was summed just now
        _go(settings, until, found["Dir"], "list", "-deps", f"./cmd/{GATEWAY}")
        _go(settings, time.monotonic() + _BUILDING, found["Dir"], "build", "-o", str(place), f"./cmd/{GATEWAY}")
    except subprocess.CalledProcessError as error:
        return (error.stderr or error.stdout).strip()[-300:] or str(error)
    except (OSError, ValueError, KeyError, subprocess.TimeoutExpired) as error:
        return str(error)
    (folder / ".gateway").write_text(GATEWAY_SUM)
    return ""


_FETCHING, _BUILDING = 120, 1200
"""Seconds in which the modules have to come, and the program has to be built of them."""


def _go(settings: dict[str, str], until: float, where: str, *command: str) -> str:
    """What go says; ``subprocess.SubprocessError`` where it fails, or is not done in time."""
    how = {"env": settings, "cwd": where, "capture_output": True, "text": True, "check": True}
    return subprocess.run(["go", *command], **how, timeout=max(1.0, until - time.monotonic())).stdout


def build(folder: Path = FOLDER) -> str:
    """Tells the installed zardine from one made of other sources."""
    return (folder / ".zardine").read_text()[:12]


def newest_python() -> str:
    """The newest interpreter from 3.11 on: named ``python3.x`` on the PATH, in pyenv's folder, or this one."""
    found: dict[tuple[int, ...], str] = {tuple(sys.version_info[:3]): sys.executable}
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    candidates = [shutil.which(f"python3.{minor}") for minor in range(11, 16)]
    for candidate in (*candidates, *(str(path) for path in sorted(pyenv.glob("*/bin/python3")))):
        if candidate is None:
            continue
        try:
            call = subprocess.run([candidate, "-c", "import sys, venv, ensurepip; print(sys.version)"], **_QUIET)
        except OSError:
            continue
        match = re.match(r"(\d+)\.(\d+)\.(\d+) ", call.stdout)  # a release: a pre-release has a letter here
        if call.returncode == 0 and match:
            found[tuple(map(int, match.groups()))] = candidate
    return found[max(version for version in found if version[:2] >= (3, 11))]


_QUIET = {"capture_output": True, "text": True, "timeout": 30}


def _fingerprint() -> str:
    digest = hashlib.sha256()
    for path in _files():
        digest.update(str(path.relative_to(ROOT)).encode() + b"\0" + path.read_bytes())
    return f"{digest.hexdigest()} {'with' if _cargo() else 'without'} cargo"


def _files() -> list[Path]:
    found: list[Path] = []
    for part in PARTS:
        path = ROOT / part
        found += [path] if path.is_file() else sorted(each for each in path.rglob("*") if each.is_file())
    passed_over = ("__pycache__", "target")
    kept = (each for each in found if not any(name in each.relative_to(ROOT).parts for name in passed_over))
    return [each for each in kept if each.suffix not in (".so", ".pyd") and ".egg-info" not in str(each)]


def _install(python: Path, folder: Path) -> None:
    with tempfile.TemporaryDirectory() as copy:
        for path in _files():
            place = Path(copy) / path.relative_to(ROOT)
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, place)
        search = os.pathsep.join([*([str(Path(_cargo()).parent)] if _cargo() else []), os.environ.get("PATH", "")])
        settings = os.environ | {"PATH": search, "CARGO_TARGET_DIR": str((folder / "cargo").resolve())}
        _pip(python, "install", "--force-reinstall", "--no-deps", copy, env=settings)
        _pip(python, "install", copy, env=settings)  # its dependencies, where one is missing


def _cargo() -> str | None:
    home = Path(os.environ.get("CARGO_HOME") or Path.home() / ".cargo") / "bin" / "cargo"
    return shutil.which("cargo") or (str(home) if home.exists() else None)


def _pip(python: Path, *arguments: str, env: dict[str, str] | None = None) -> None:
    subprocess.run(
        [str(python), "-m", "pip", "--disable-pip-version-check", "--quiet", *arguments], check=True, env=env
    )
