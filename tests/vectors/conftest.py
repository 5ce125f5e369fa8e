"""Stores that zarr-vectors 0.9.2 wrote, unpacked; and stores that break off."""

from __future__ import annotations

import hashlib
import json
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

DATA = Path(__file__).parent / "data"


@pytest.fixture(scope="session")
def golden(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the unpacked stores. Not to be changed."""
    manifest = json.loads((DATA / "manifest.json").read_text())
    archive = DATA / manifest["file"]
    assert hashlib.sha256(archive.read_bytes()).hexdigest() == manifest["sha256"]
    folder = tmp_path_factory.mktemp("zvf")
    with zipfile.ZipFile(archive) as file:
        file.extractall(folder)
    assert {path.name for path in folder.iterdir()} == set(manifest["stores"])
    return folder


@pytest.fixture
def copy_of(golden: Path, tmp_path: Path) -> Callable[[str], str]:
    """Make a copy of one of the stores, to be changed."""

    def copy(name: str) -> str:
        target = tmp_path / f"{name}.zv"
        shutil.copytree(golden / f"{name}.zv", target)
        return str(target)

    return copy
