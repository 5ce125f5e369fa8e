"""``zardine convert``, ``info`` and ``tree`` of files of other formats, and what is said where h5py is missing."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest

import zardine


@pytest.fixture
def file(tmp_path: Path) -> Path:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("g/a", data=np.arange(60).reshape(6, 10), chunks=(3, 5), compression="gzip")
        file.create_dataset("sequences", (3,), h5py.vlen_dtype("i4"))
    return tmp_path / "a.h5"


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "zardine", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_looking(file: Path) -> None:
    assert "a (6, 10)" in " ".join(run("tree", file).stdout.split()).replace("int64 ", "")
    facts = json.loads(run("info", file, "--path", "g/a", "--json").stdout)
    assert facts["shape"] == [6, 10]
    assert facts["left_out"] == {}
    said = "its elements are sequences of any length"
    for command in ("info", "tree"):
        assert json.loads(run(command, file, "--json").stdout)["left_out"]["/sequences"].startswith(said)
        text = " ".join(run(command, file).stdout.split())
        assert f"/sequences: {said}" in text
        assert "eft out" in text


def test_converting(file: Path, tmp_path: Path) -> None:
    refused = run("convert", file, tmp_path / "made")
    assert refused.returncode != 0
    assert "/sequences: its elements are sequences of any length" in refused.stderr
    assert not (tmp_path / "made").exists()
    made = run(
        "convert", file, tmp_path / "made", "--leave-out", "--verify", "--filter", "keep", "--compressor", "keep"
    )
    assert made.returncode == 0, made.stderr
    assert "/sequences is left out" in made.stderr
    assert zardine.open_array(tmp_path / "made" / "g" / "a")[5, 9] == 59


def test_without_h5py(file: Path) -> None:
    code = "import sys; sys.modules['h5py'] = None; import zardine; zardine.sources.open(sys.argv[1])"
    run = subprocess.run([sys.executable, "-c", code, str(file)], capture_output=True, text=True, check=False)
    text = (
        "reading HDF5 and NetCDF 4 needs the package 'h5py', which is not installed: run pip install 'zardine[sources]'"
    )
    assert text in run.stderr
