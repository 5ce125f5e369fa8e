"""Other programs pass over what zardine stores besides the standard, as ``docs/internals/stored.md`` says."""

from __future__ import annotations

import contextlib
import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorstore
import zarr

import zardine
from zardine.engine.freshness import CLOSING, GENERATION
from zardine.hierarchy.find import UNFINISHED, UNFINISHED_NODE
from zardine.stores.local.beside import edit_record_name, temporary_name
from zardine.tools.hidden_keys import JOURNAL, damaged_key

VALUES = np.arange(8, dtype="i4")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    group = zardine.create_group(tmp_path)
    group.create_array("a", shape=(8,), chunks=(2,), shards=(4,), dtype="i4")[:] = VALUES
    return tmp_path


def add_member(document: Path, name: str, value: dict[str, Any]) -> None:
    document.write_text(json.dumps({**json.loads(document.read_text()), name: {"must_understand": False, **value}}))


def check_readable(path: Path) -> None:
    assert zarr.open_array(path, mode="r")[:].tolist() == VALUES.tolist()
    spec = {"driver": "zarr3", "kvstore": {"driver": "file", "path": str(path)}}
    assert tensorstore.open(spec).result().read().result().tolist() == VALUES.tolist()


def test_members_of_arrays(place: Path) -> None:
    document = place / "a/zarr.json"
    add_member(document, GENERATION, {"id": 16 * "ab"})
    add_member(document, CLOSING, {})
    add_member(document, UNFINISHED_NODE, {"by": "x", "since": "2026-01-01T00:00:00+00:00", "id": 16 * "cd"})
    check_readable(place / "a")
    zarr.open_array(place / "a", mode="r+").update_attributes({"k": 1})
    assert {GENERATION, CLOSING, UNFINISHED_NODE} <= json.loads(document.read_text()).keys()


def test_a_member_of_a_group(place: Path) -> None:
    """zarr-python 3.1 opens no such group; later releases do."""
    add_member(place / "zarr.json", UNFINISHED_NODE, {"by": "x", "since": "2026-01-01T00:00:00+00:00", "id": 16 * "cd"})
    with contextlib.suppress(TypeError):
        assert [name for name, _ in zarr.open_group(place, mode="r").members()] == ["a"]
    check_readable(place / "a")


def test_files_and_keys(place: Path) -> None:
    names = (
        *(temporary_name(), f"a/c/{temporary_name()}", f"a/c/{edit_record_name('0')}"),
        *(f"a/{JOURNAL}", damaged_key("a", "a/c/0"), "__zardine/jobs/x/plan.json", UNFINISHED),
    )
    for each in names:
        (place / each).parent.mkdir(parents=True, exist_ok=True)
        (place / each).write_text("{}")
    check_readable(place / "a")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert [name for name, _ in zarr.open_group(place, mode="r").members(max_depth=None)] == ["a"]
    assert [name for name, _ in zardine.open_group(place).members(max_depth=None)] == ["a"]
