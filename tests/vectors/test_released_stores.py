"""Stores that released versions wrote: they are read, validated and changed by this one, whatever it writes itself."""

from __future__ import annotations

import json
import shutil
import tarfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from vectors.geometry_samples import rows
from vectors.make_released_stores import DATA, STORES, held
from vectors.stores_of_all_kinds import COUNT
from zardine import vectors

RELEASES = sorted(DATA.glob("zardine_*.tar.xz"))
USES = [(release.name.partition(".")[0], name) for release in RELEASES for name in (*STORES, "killed")]


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with those of each release. Not to be changed."""
    folder = tmp_path_factory.mktemp("released")
    for release in RELEASES:
        with tarfile.open(release) as file:
            file.extractall(folder / release.name.partition(".")[0], filter="data")
    return folder


@pytest.fixture
def store(request: pytest.FixtureRequest, unpacked: Path, tmp_path: Path) -> tuple[str, str, list[Any]]:
    """A copy of one, its kind, and what its levels hold."""
    release, name = request.param
    expected = json.loads((unpacked / release / "expected.json").read_text())
    shutil.copytree(unpacked / release / name, tmp_path / "a.zv")
    return str(tmp_path / "a.zv"), expected[name]["kind"], expected[name]["levels"]


every = pytest.mark.parametrize("store", USES, indirect=True, ids=lambda use: " ".join(use))


def test_there_are_some() -> None:
    assert [release.name for release in RELEASES][:1] == ["zardine_0_1_0.tar.xz"]


@every
def test_they_are_read_and_sound(store: tuple[str, str, list[Any]]) -> None:
    path, kind, levels = store
    assert held(path, kind) == levels
    told = ["change-unfinished"] if [*Path(path, "0/vertices").glob("zardine_log.*")] else []
    assert [each.kind for each in vectors.validate(path).findings] == told
    assert held(path, kind) == levels


@pytest.mark.parametrize("store", [use for use in USES if use[1] == "killed"], indirect=True, ids=lambda use: use[0])
def test_a_change_that_was_agreed_on_is_seen_and_carried_out(store: tuple[str, str, list[Any]]) -> None:
    path, _, _ = store
    assert [*Path(path, "0/vertices").glob("zardine_log.*")]
    assert len(vectors.read_points(path)) == COUNT + 5
    assert vectors.repair(path).actions
    assert not [*Path(path, "0/vertices").glob("zardine_log.*")]
    assert len(vectors.read_points(path)) == COUNT + 5
    assert vectors.validate(path).findings == ()


@every
def test_they_are_changed(store: tuple[str, str, list[Any]]) -> None:
    path, kind, _ = store
    opened = vectors.open(path, "r+")
    before = opened.read()
    count = len(before.positions)
    if kind == "points_of_objects" or not kind.startswith("points"):
        opened.delete(object_ids=[11])
        assert 11 not in vectors.read_objects(path).ids
    else:
        opened.delete(bbox=(before.positions.min(axis=0), [0, 0, 0]))
        assert not (vectors.read_points(path).positions <= 0).all(axis=1).any()
    left = opened.read()
    assert 0 < len(left.positions) < count
    twice = np.arange(len(left.positions)) * 2
    moved = (left.positions + 1).astype(left.positions.dtype)
    opened.set_attribute("n", twice, new="n" not in left.attributes)
    opened.move(moved)
    after = vectors.open(path).read()
    assert rows(after.positions, after.attributes["n"]) == rows(moved, twice)
    for shape in (4, None, 2):
        vectors.reshard(path, shape)
        found = vectors.open(path).read()
        assert rows(found.positions, found.attributes["n"]) == rows(moved, twice)
    owned = getattr(after, "object_ids", None)
    opened = vectors.open(path, "r+")
    opened.append(after if owned is None else replace(after, object_ids=owned + 100))
    assert rows(opened.read().positions) == rows(np.concatenate([moved, moved]))
    opened.build_pyramid()
    assert vectors.validate(path).findings == ()
