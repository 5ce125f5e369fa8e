"""Programs on top of zarr-python do their main job with zardine as ``zarr``; each runs in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

HERE = Path(__file__).parent
NEEDED = {
    "xarray": ("xarray", "dask", "pandas"),
    "dask": ("dask",),
    "anndata": ("anndata", "zarr"),
    "ome_zarr": ("ome_zarr", "dask"),
    "bioio": ("bioio_ome_zarr",),
    "napari": ("napari_ome_zarr",),
    "spatialdata": ("spatialdata",),
}
"""Packages without which a program cannot run; anndata asks for the version of the installed zarr-python."""


@pytest.mark.parametrize("program", NEEDED)
def test_program(program: str, tmp_path: Path) -> None:
    missing = [name for name in (*NEEDED[program], "packaging") if find_spec(name) is None]
    if missing:
        pytest.skip(f"{', '.join(missing)} not installed")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE), *filter(None, sys.path)])}
    command = [sys.executable, "-W", "ignore", str(HERE / f"{program}_program.py"), str(tmp_path)]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr[-4000:]
