"""Stores that are made empty, and filled in parts."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from zarr_vectors.validate import validate as validate_of_others

from vectors.with_zarr_vectors import agree
from zardine import vectors
from zardine.errors import DataError, NodeExistsError
from zardine.storage import MemoryStore
from zardine.vectors import Graph, Layout, Mesh, Points, Polylines, Skeleton, Space

PLACES = np.random.default_rng(3).uniform(0, 110, (24, 3)).astype("f4")
RING = np.stack([np.arange(24), np.roll(np.arange(24), 1)], axis=1)
VALUES: dict[str, Any] = {
    "points": Points(PLACES, {"n": np.arange(24)}),
    "lines": Polylines(PLACES, np.arange(0, 25, 2), np.arange(12)),
    "polylines": Polylines(PLACES, np.array([0, 5, 24]), np.arange(2)),
    "streamlines": Polylines(PLACES, np.array([0, 5, 24]), np.arange(2), {}, {"w": np.array([1.5, 2])}),
    "graphs": Graph(PLACES, RING, {}, {"w": np.arange(24)}),
    "skeletons": Skeleton(PLACES, np.arange(24) - 1),
    "meshes": Mesh(PLACES, np.stack([np.arange(20), np.arange(20) + 1, np.arange(20) + 3, np.arange(20) + 4], axis=1)),
}


@pytest.mark.parametrize("kind", VALUES)
def test_an_empty_store_is_filled_in_parts(kind: str, tmp_path: Path) -> None:
    path = str(tmp_path / "new.zv")
    layout = Layout(chunk_shape=50, shard_shape=2, compressor="zstd")
    made = vectors.create(path, kind, bounds=[0, 0, 0, 100, 100, 100], layout=layout, corners=4)
    assert len(made) == 0
    assert len(made.read()) == 0
    assert made.validate().findings == ()
    assert [str(each) for each in validate_of_others(path, level=5).errors] == []
    value = VALUES[kind]
    made.append(value)
    agree(path)
    more = value
    if isinstance(value, Polylines):
        more = Polylines(value.positions, value.starts, value.object_ids + 100, {}, value.object_attributes)
    made.append(more)
    assert len(made) == 48
    assert made.read().positions.dtype == np.float32
    assert sorted(made.read().positions.tolist()) == sorted(2 * PLACES.tolist())
    assert made.bounds[1] == [max(100, each) for each in PLACES.max(axis=0).tolist()]
    assert made.validate().findings == ()


def test_points_of_objects_and_arrays() -> None:
    made = vectors.create(MemoryStore(), "point_cloud", layout=Layout(chunk_shape=9), space=Space(bounds=[0, 0, 5, 6]))
    made.append([[1, 2], [7, 8]])
    assert made.read().positions.tolist() == [[1, 2], [7, 8]]
    box = ([0, 0], [5, 5])
    made = vectors.create(MemoryStore(), "points", bounds=box, layout=Layout(chunk_shape=9), objects=True, dtype="f8")
    made.append(Points(np.ones((2, 2)), {}, np.array([4, 7])), object_attributes={"name": ["a", "b"]})
    assert made.objects.ids.tolist() == [4, 7]
    assert made.objects.attributes["name"].tolist() == ["a", "b"]
    made = vectors.create(MemoryStore(), "polylines", bounds=box, layout=Layout(chunk_shape=9))
    made.append([np.ones((2, 2)), np.zeros((3, 2))])
    made.append([np.ones((4, 2))])
    assert made.objects.ids.tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"kind": "lumps"}, "kind is one of points"),
        ({"bounds": None}, "give bounds="),
        ({"space": Space(bounds=[0, 0, 5, 5])}, "bounds are given twice"),
        ({"layout": Layout()}, "give layout=Layout(chunk_shape=...)"),
        ({"layout": {"chunk_shape": 3}}, "give layout=Layout(chunk_shape=...)"),
        ({"layout": Layout(chunk_shape=(1, 2, 3))}, "a length above 0 for each of 2 axes"),
        ({"bounds": [0, 0, 0]}, "no lowest and highest corner"),
        ({"bounds": [5, 5, 0, 0]}, "no lowest and highest corner"),
        ({"dtype": "int16"}, "float32 or float64"),
        ({"kind": "meshes", "corners": 2}, "faces have from 3 to 12 corners, not 2"),
    ],
)
def test_what_does_not_fit_is_refused_before_anything_is_written(changed: dict[str, Any], told: str) -> None:
    store = MemoryStore()
    arguments: dict[str, Any] = {"kind": "points", "bounds": [0, 0, 5, 5], "layout": Layout(chunk_shape=4), **changed}
    with pytest.raises(DataError, match=re.escape(told)):
        vectors.create(store, **arguments)
    assert list(store.list_prefix("")) == []


def test_what_is_there_stays_unless_it_is_to_go() -> None:
    store, bounds, layout = MemoryStore(), [0, 0, 5, 5], Layout(chunk_shape=4)
    vectors.create(store, "points", bounds=bounds, layout=layout).append([[1, 1]])
    with pytest.raises(NodeExistsError):
        vectors.create(store, "points", bounds=bounds, layout=layout)
    assert len(vectors.create(store, "graphs", bounds=bounds, layout=layout, overwrite=True)) == 0
    assert vectors.open(store).kind == "graph"
