"""Points that are added to cells that are there, as bytes behind bytes: the same store as when all is worked out."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from zardine import vectors
from zardine.kernel import KERNEL
from zardine.vectors import points
from zardine.vectors.changing import points_behind

RNG = np.random.default_rng(8)
P = RNG.uniform(0, 100, (600, 2)).astype("f4")
COLUMNS: dict[str, Any] = {"n": np.arange(600, dtype="u2"), "rgb": np.arange(1800).reshape(-1, 3).astype("u1")}
MORE = RNG.uniform(20, 60, (50, 2)).astype("f4")
GIVEN: dict[str, Any] = {"n": np.arange(50, dtype="u2"), "rgb": np.zeros((50, 3), "u1")}


def write(path: Path, **options: Any) -> Path:
    options = {"chunk_shape": 10, "shard_shape": 4, "vertex_attributes": COLUMNS} | options
    vectors.write_points(str(path), P, **options)
    return path


def files(path: Path) -> dict[str, bytes]:
    return {str(each.relative_to(path)): each.read_bytes() for each in path.rglob("*") if each.is_file()}


@pytest.fixture
def used(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each addition was made so."""
    told: list[bool] = []
    real = points_behind.points_behind

    def noted(*args: Any) -> Any:
        found = real(*args)
        told.append(found is not None)
        return found

    monkeypatch.setattr(points, "points_behind", noted)
    return told


Case = tuple[dict[str, Any], Any, dict[str, Any]]
USUAL: dict[str, Case] = {
    "many cells": ({}, MORE, GIVEN),
    "one point": ({}, MORE[:1], {name: values[:1] for name, values in GIVEN.items()}),
    "no attributes": ({"vertex_attributes": None}, MORE, {}),
    "no checksums": ({"checksum": False}, MORE, GIVEN),
    "wider": ({"dtype": "f8"}, MORE.astype("f8"), GIVEN),
}
UNUSUAL: dict[str, Case] = {
    "bins": ({"bin_shape": 5}, MORE, GIVEN),
    "no shards": ({"shard_shape": None}, MORE, GIVEN),
    "compressed": ({"compressor": "zstd"}, MORE, GIVEN),
    "a new chunk": (
        {},
        np.concatenate([MORE, [[105.0, 5.0]]]),
        {n: np.concatenate([v, v[:1]]) for n, v in GIVEN.items()},
    ),
    "an attribute left out": ({}, MORE, {"n": GIVEN["n"]}),
    "other numbers": ({}, MORE, GIVEN | {"n": GIVEN["n"].astype("f4")}),
    "text": ({"vertex_attributes": {"t": np.array(["a", "b"])[np.arange(600) % 2]}}, MORE, {"t": ["b"] * 50}),
    "a new attribute": ({}, MORE, GIVEN | {"m": np.arange(50)}),
}


@pytest.mark.parametrize(("options", "more", "given"), (USUAL | UNUSUAL).values(), ids=USUAL | UNUSUAL)
def test_the_store_is_the_same(
    tmp_path: Path,
    options: dict[str, Any],
    more: Any,
    given: dict[str, Any],
    used: list[bool],
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = write(tmp_path / "a", **options)
    shutil.copytree(path, tmp_path / "b")
    for _ in range(2):
        vectors.append_points(str(path), more, vertex_attributes=given)
    expected = KERNEL is not None and request.node.callspec.id in USUAL
    assert used[:1] == [expected]
    monkeypatch.setattr(points, "points_behind", lambda *_: None)
    for _ in range(2):
        vectors.append_points(str(tmp_path / "b"), more, vertex_attributes=given)
    assert files(path) == files(tmp_path / "b")
    assert vectors.validate(str(path)).ok
    assert len(vectors.read_points(str(path)).positions) == 600 + 2 * len(more)


def test_cells_of_more_fragments_are_left_to_others(tmp_path: Path, used: list[bool]) -> None:
    path = str(write(tmp_path, bin_shape=5))
    vectors.append_points(path, MORE, vertex_attributes=GIVEN)
    assert used == [False]
    assert vectors.validate(path).ok


def test_chunks_that_no_list_names_are_left_to_others(tmp_path: Path, used: list[bool]) -> None:
    document = write(tmp_path) / "0/vertices/zarr.json"
    document.write_text(document.read_text().replace("nonempty_chunks", "other_chunks"))
    vectors.append_points(str(tmp_path), MORE, vertex_attributes=GIVEN)
    assert used == [False]
    assert vectors.validate(str(tmp_path)).ok
