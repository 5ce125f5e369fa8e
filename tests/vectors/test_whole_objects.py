"""Lines by id, of which the rows alone leave their cells: the same as out of whole cells, and never more trusting."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from zardine import vectors
from zardine.errors import CorruptionError, SelectionError
from zardine.kernel import KERNEL
from zardine.vectors import polylines
from zardine.vectors.reading import whole_objects

RNG = np.random.default_rng(5)
LINES = [np.clip(np.cumsum(RNG.normal(0, 3, (n, 2)), axis=0) + 50, 0, 99).astype("f4") for n in RNG.integers(2, 60, 80)]
COUNT = sum(map(len, LINES))
COLUMNS: dict[str, Any] = {"v": np.arange(COUNT, dtype="f8"), "rgb": np.arange(3 * COUNT).reshape(-1, 3).astype("u1")}
TEXT = {"name": np.array(["a", "b", "c", None], object)[np.arange(COUNT) % 4]}


def write(path: Path, columns: dict[str, Any] = COLUMNS, **options: Any) -> str:
    about = {"lines": {"length": np.arange(80.0)}}
    options = {"chunk_shape": 10, "shard_shape": 4, "bounds": ((0, 0), (100, 100))} | options
    ids = np.arange(80) * 3
    vectors.write_polylines(
        str(path), LINES, object_ids=ids, vertex_attributes=columns, object_attributes=about["lines"], **options
    )
    return str(path)


@pytest.fixture
def used(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each answer was made so."""
    told: list[bool] = []
    real = whole_objects.read_whole

    def noted(asked: Any) -> Any:
        found = real(asked)
        told.append(found is not None)
        return found

    monkeypatch.setattr(polylines, "read_whole", noted)
    return told


QUERIES: dict[str, dict[str, Any]] = {
    "one": {"object_ids": [9]},
    "some": {"object_ids": [237, 0, 9, 9, 120]},
    "one attribute": {"object_ids": [30, 60], "attributes": "rgb"},
    "no attributes": {"object_ids": [30, 60], "attributes": None, "object_attributes": None},
    "all": {"object_ids": range(0, 240, 3), "attributes": ["v", "rgb"]},
    "in a group": {"group_ids": [0]},
}


@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
@pytest.mark.parametrize("checksum", [True, False])
def test_they_are_those_out_of_whole_cells(
    tmp_path: Path, query: dict[str, Any], checksum: bool, used: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "a", checksum=checksum, groups=[[6, 3], [9]])
    found = vectors.read_polylines(path, **query)
    assert used == [KERNEL is not None]
    monkeypatch.setattr(polylines, "read_whole", lambda _: None)
    wanted = vectors.read_polylines(path, **query)
    assert found.positions.dtype == wanted.positions.dtype
    assert found.positions.flags.writeable
    for name in ("positions", "starts", "object_ids"):
        assert getattr(found, name).tolist() == getattr(wanted, name).tolist()
    for name in ("attributes", "object_attributes"):
        a, b = getattr(found, name), getattr(wanted, name)
        assert list(a) == list(b)
        assert all(a[each].dtype == b[each].dtype and a[each].tolist() == b[each].tolist() for each in a)


def test_text_comes_as_ever(tmp_path: Path, used: list[bool]) -> None:
    path = write(tmp_path, TEXT)
    found = vectors.read_polylines(path, object_ids=[3])
    assert used == [KERNEL is not None]
    start = len(LINES[0])
    assert found.attributes["name"].tolist() == TEXT["name"][start : start + len(LINES[1])].tolist()


UNUSUAL: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "no shards": ({"shard_shape": None}, {"object_ids": [9]}),
    "compressed": ({"compressor": "zstd"}, {"object_ids": [9]}),
    "a box": ({}, {"object_ids": [9], "bbox": ((0, 0), (100, 100))}),
    "a condition": ({}, {"object_ids": [9], "where": {"v": slice(None, None)}}),
    "all": ({}, {}),
    "none": ({}, {"object_ids": []}),
}


@pytest.mark.parametrize(("layout", "query"), UNUSUAL.values(), ids=UNUSUAL)
def test_all_else_is_left_to_others(
    tmp_path: Path, layout: dict[str, Any], query: dict[str, Any], used: list[bool]
) -> None:
    found = vectors.read_polylines(write(tmp_path, **layout), **query)
    assert used == [False]
    if query.get("object_ids") == [9]:
        assert found.positions.tolist() == LINES[3].tolist()


def test_what_is_not_there_is_told_as_ever(tmp_path: Path) -> None:
    path = write(tmp_path)
    for query in ({"object_ids": [1]}, {"object_ids": [9], "attributes": "x"}):
        with pytest.raises(SelectionError):
            vectors.read_polylines(path, **query)  # type: ignore[arg-type]


@pytest.mark.parametrize("family", ["vertices", "vertex_fragments", "vertex_attributes/v"])
def test_damage_anywhere_in_the_cells_is_found(tmp_path: Path, family: str) -> None:
    path = write(tmp_path, shard_shape=100)
    (shard,) = (file for file in (tmp_path / "0" / family / "c").rglob("*") if file.is_file())
    good = shard.read_bytes()
    for at in np.random.default_rng(0).integers(0, len(good), 20).tolist():
        bad = bytearray(good)
        bad[at] ^= 1
        shard.write_bytes(bad)
        with pytest.raises(CorruptionError):
            vectors.read_polylines(path, object_ids=range(0, 240, 3))
    shard.write_bytes(good)
    assert len(vectors.read_polylines(path, object_ids=range(0, 240, 3)).positions) == COUNT


def test_values_of_cells_with_other_numbers_of_rows_are_damage(tmp_path: Path) -> None:
    path, other = write(tmp_path / "a"), tmp_path / "b"
    vectors.write_polylines(
        str(other),
        LINES[1:],
        chunk_shape=10,
        shard_shape=4,
        bounds=((0, 0), (100, 100)),
        vertex_attributes={"v": np.arange(float(COUNT - len(LINES[0])))},
    )
    for file in (other / "0/vertex_attributes/v/c").rglob("*"):
        if file.is_file():
            (tmp_path / "a" / file.relative_to(other)).write_bytes(file.read_bytes())
    with pytest.raises(CorruptionError, match=r"attribute values|is lost|are lost"):
        vectors.read_polylines(path, object_ids=range(0, 240, 3))
