"""Values and names that cannot be stored, or not be read again: errors before anything is written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from zardine import vectors
from zardine.errors import DataError
from zardine.storage import MemoryStore

POINTS = np.arange(12.0).reshape(4, 3)


@pytest.mark.parametrize("name", ["", ".", "..", "c", "zarr.json", ".zattrs", "a/b", "__x", "a\0b", "\ud800", 3])
def test_names_of_attributes(tmp_path: Path, name: Any) -> None:
    for store in (str(tmp_path / "a.zv"), MemoryStore()):
        with pytest.raises(DataError, match="no name for an attribute"):
            vectors.write_points(store, POINTS, vertex_attributes={name: np.arange(4)})
    with pytest.raises(DataError, match="no name for an attribute"):
        vectors.write_points(str(tmp_path / "a.zv"), POINTS, object_attributes={name: np.arange(4)})
    assert not (tmp_path / "a.zv").exists()


@pytest.mark.parametrize(
    "values",
    [
        np.zeros((4, 0)),
        ["\ud800", "a", "b", "c"],
        [b"\xff", b"a", b"b", b"c"],
        [[1], [1, 2], [1], [1]],
        np.zeros(4, np.longdouble),
        np.zeros(4, complex),
    ],
    ids=["no columns", "surrogate", "bytes", "ragged", "long double", "complex"],
)
def test_values_of_attributes(values: Any) -> None:
    store = MemoryStore()
    for kind in ("vertex_attributes", "object_attributes"):
        with pytest.raises(DataError, match="'v'"):
            vectors.write_points(store, POINTS, **{kind: {"v": values}})
    assert list(store.list()) == []
    vectors.write_points(store, POINTS)
    with pytest.raises(DataError, match="'v'"):
        vectors.set_attribute(store, "v", values)
    assert len(vectors.read_points(store)) == 4


def test_an_extent_that_overflows() -> None:
    store = MemoryStore()
    with pytest.raises(DataError, match="farther than float64"):
        vectors.write_points(store, [[1e308, -1e308], [-1e308, 1e308]])
    assert list(store.list()) == []


@pytest.mark.parametrize(
    "points",
    [
        [[1e308, 0.0], [1e307, 1e300]],
        [[-1e200, 1e200, 0.0], [1e200, 1e150, 1e250]],
        [[1.0, 0.0], [1.0, 5e-324]],
        [[1e-300, 1e-310, 0], [0, 0, 1e-200]],
    ],
)
def test_extents_that_nearly_do(points: Any) -> None:
    store = MemoryStore()
    vectors.write_points(store, points)
    assert sorted(vectors.read_points(store).positions.tolist()) == sorted(points)
    assert vectors.validate(store).ok


def test_appended_values_that_overflow() -> None:
    store = MemoryStore()
    vectors.write_points(store, POINTS, vertex_attributes={"v": np.zeros(4, "f4"), "h": np.zeros((4, 2), "f2")})
    with pytest.raises(DataError, match="float32, which cannot hold"):
        vectors.append_points(store, [[1, 2, 3]], vertex_attributes={"v": [1e300]})
    with pytest.raises(DataError, match="float16, which cannot hold"):
        vectors.append_points(store, [[1, 2, 3]], vertex_attributes={"h": [[1.0, -1e30]]})
    assert len(vectors.read_points(store)) == 4
    vectors.append_points(store, [[1, 2, 3]], vertex_attributes={"v": [-np.inf], "h": [[np.nan, np.inf]]})
    assert vectors.read_points(store).attributes["v"].min() == -np.inf


def test_points_too_far_away_to_append() -> None:
    store = MemoryStore()
    vectors.write_points(store, POINTS, chunk_shape=1)
    with pytest.raises(DataError, match="chosen when a store is written"):
        vectors.append_points(store, [[1e6, 1e6, 1e6]])
    assert len(vectors.read_points(store)) == 4
