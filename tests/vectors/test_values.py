"""Values of results: made, checked, given to ``write``, and in the forms of other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import trimesh
from nibabel.streamlines import TckFile

from vectors.stores_of_all_kinds import WRITERS, read_all, store_of
from zardine import vectors
from zardine.errors import DataError
from zardine.storage import MemoryStore
from zardine.vectors import Graph, Layout, Mesh, Points, Polylines, Skeleton, Space

LINES = [np.arange(6.0).reshape(2, 3), np.arange(9.0).reshape(3, 3) + 20]


@pytest.mark.parametrize("kind", sorted(WRITERS))
def test_what_is_read_can_be_written(kind: str) -> None:
    store, copy = store_of(kind), MemoryStore()
    readers: dict[str, Any] = {
        "polylines": vectors.read_polylines,
        "graph": vectors.read_graph,
        "skeleton": vectors.read_skeleton,
        "mesh": vectors.read_mesh,
    }
    read = readers.get(kind, vectors.read_points)
    vectors.write(copy, read(store), layout=Layout(chunk_shape=20, shard_shape=2), space=Space(axes=["a", "b", "c"]))
    again = read(copy)
    assert np.array_equal(np.sort(again.positions, axis=0), np.sort(read(store).positions, axis=0))
    assert sorted(again.attributes["n"].tolist()) == sorted(read(store).attributes["n"].tolist())
    assert again.attributes.keys() == read(store).attributes.keys()
    if kind == "polylines":
        assert read_all(copy, kind)["lines"] == read_all(store, kind)["lines"]
    assert vectors.describe_store(copy)["axes"][0]["name"] == "a"
    assert vectors.is_sharded(copy)
    assert vectors.validate(copy).findings == ()


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (Points(np.zeros((2, 3)), {"a": np.zeros(3)}), "one row for each of the 2 points"),
        (Points(np.zeros((2, 3)), {}, np.array([4, -1])), "row 1 is part of no object"),
        (Polylines(np.zeros((4, 3)), np.array([0, 3]), np.array([1])), "ascend from 0 to 4"),
        (Polylines(np.zeros((4, 3)), np.array([0, 2, 4]), np.array([1, 1])), "each id can be there once"),
        (Graph(np.zeros((2, 3)), np.array([[0, 2]])), "edges name rows 0 to 2; there are 2"),
        (Mesh(np.zeros((2, 3)), np.array([[0, 1, -1]])), "faces name rows -1 to 1"),
        (Skeleton(np.zeros((2, 3)), np.array([-1, 2])), "parents are rows of the 2 vertices"),
        (np.zeros((2, 3)), "not ndarray: write_points"),
    ],
)
def test_what_does_not_fit_is_refused_before_anything_is_written(value: Any, told: str) -> None:
    store = MemoryStore()
    with pytest.raises(DataError, match=told):
        vectors.write(store, value)
    assert list(store.list_prefix("")) == []


def test_what_belongs_to_no_such_geometry_is_refused() -> None:
    lines = Polylines.from_lines(LINES)
    with pytest.raises(DataError, match="is line or polyline or streamline, not mesh"):
        vectors.write(MemoryStore(), lines, kind="meshes")
    with pytest.raises(DataError, match="kind is one of"):
        vectors.write(MemoryStore(), lines, kind="lump")
    with pytest.raises(DataError, match="evenly"):
        vectors.write(MemoryStore(), lines, layout=Layout(chunk_shape=3, bin_shape=2))
    with pytest.raises(DataError, match="part of the Polylines"):
        vectors.write(MemoryStore(), lines, object_attributes={"a": [1, 2]})
    store = MemoryStore()
    vectors.write(store, lines, kind="polylines", groups=[[0]])
    assert vectors.describe_store(store)["geometry_types"] == ["polyline"]


def test_points_and_data_frames() -> None:
    points = Points(np.arange(6.0).reshape(2, 3), {"rgb": np.array([[1, 2], [3, 4]]), "k": np.array(["a", None])})
    table = points.to_pandas()
    assert list(table.columns) == ["x", "y", "z", "rgb_0", "rgb_1", "k"]
    back = Points.from_pandas(table)
    assert back.positions.tolist() == points.positions.tolist()
    assert back.attributes["rgb_1"].tolist() == [2, 4]
    assert back.attributes["k"].tolist() == ["a", None]
    store = MemoryStore()
    vectors.write(store, back)
    assert vectors.read_points(store).attributes["k"].tolist() == ["a", None]
    with pytest.raises(DataError, match="no column 'w'"):
        Points.from_pandas(table, axes=("x", "w"))
    with pytest.raises(DataError, match="a data frame is needed, not dict"):
        Points.from_pandas({"x": [1]})
    places = points.to_geopandas("EPSG:4326")
    assert [place.z for place in places.geometry] == [2, 5]


def test_streamlines_and_tractograms() -> None:
    lines = Polylines.from_lines(LINES, attributes={"fa": np.arange(5.0)}, object_attributes={"w": [1.5, 2.5]})
    affine = np.diag([2.0, 4.0, 8.0, 1.0])
    affine[:3, 3] = 5, 6, 7
    tracts = lines.to_tractogram(affine)
    assert tracts.streamlines[0][0].tolist() == pytest.approx(((LINES[0][0] - [5, 6, 7]) / [2, 4, 8]).tolist())
    back = Polylines.from_tractogram(tracts)
    assert np.allclose(back.positions, lines.positions)
    assert back.starts.tolist() == [0, 2, 5]
    assert back.attributes["fa"].tolist() == [0, 1, 2, 3, 4]
    assert back.object_attributes["w"].tolist() == [1.5, 2.5]
    with pytest.raises(DataError, match="shape"):
        lines.to_tractogram(np.eye(3))
    with pytest.raises(DataError, match="no inverse"):
        lines.to_tractogram(np.zeros((4, 4)))
    read = Polylines.from_tractogram(TckFile(tracts))  # what nibabel.streamlines.load gives
    assert np.allclose(read.positions, lines.positions)
    with pytest.raises(DataError, match="a tractogram of nibabel is needed, not str"):
        Polylines.from_tractogram("a.trk")
    assert [shape.length > 0 for shape in lines.to_geopandas().geometry] == [True, True]
    assert lines.to_pandas()["object_id"].tolist() == [0, 0, 1, 1, 1]


def test_skeletons_and_swc(tmp_path: Path) -> None:
    tree = Skeleton(np.arange(9.0).reshape(3, 3), np.array([-1, 0, 0]), {"radius": np.array([3.0, 2, 1])})
    tree.to_swc(tmp_path / "a.swc")
    back = Skeleton.from_swc(tmp_path / "a.swc")
    assert back.positions.tolist() == tree.positions.tolist()
    assert back.parents.tolist() == tree.parents.tolist()
    assert back.attributes["radius"].tolist() == [3, 2, 1]
    assert tree.to_pandas()["parent_id"].tolist() == [-1, 1, 1]


def test_meshes_and_trimesh() -> None:
    square = np.array([[0.0, 0, 0], [2, 0, 0], [2, 2, 0], [0, 2, 0]])
    mesh = Mesh(square, np.array([[0, 1, 2, 3]]), face_attributes={"c": np.array([7])})
    other = mesh.to_trimesh()
    assert other.area == pytest.approx(4)
    back = Mesh.from_trimesh(other)
    assert back.faces.tolist() == [[0, 1, 2], [0, 2, 3]]
    assert back.face_attributes["c"].tolist() == [7, 7]
    both = Mesh.from_trimesh(trimesh.Scene([other, other.copy().apply_translation([5, 0, 0])]))
    assert (len(both), len(both.faces)) == (8, 4)
    with pytest.raises(DataError, match="a mesh of trimesh is needed, not ndarray"):
        Mesh.from_trimesh(square)


def test_a_box_is_also_a_row_of_numbers() -> None:
    store = store_of("points")
    box = [-10, -12, -14, 10, 12, 14]
    found = vectors.read_points(store, bbox=box)
    assert len(found)
    assert found.positions.tolist() == vectors.read_points(store, bbox=(box[:3], box[3:])).positions.tolist()
    flat = MemoryStore()
    vectors.write(flat, Points(np.ones((3, 2))), space=Space(bounds=[0, 0, 5, 6]))
    assert vectors.describe_store(flat)["bounds"] == [[0, 0], [5, 6]]


def test_values_are_drawn() -> None:
    import matplotlib

    matplotlib.use("Agg")
    corners = np.array([[0.0, 0, 0], [2, 0, 0], [2, 2, 0]])
    mesh = Mesh(corners, np.array([[0, 1, 2]]))
    sides = mesh.plot().lines[0].get_data_3d()[0].reshape(-1, 3)  # two ends, and a gap
    assert sorted(map(tuple, sides[:, :2].tolist())) == [(0, 2), (0, 2), (2, 2)]
    assert np.isnan(sides[:, 2]).all()
    assert len(Polylines.from_lines(LINES).plot().lines) == 2
    assert len(Points(corners[:, :2]).plot().collections) == 1
    assert len(Skeleton(corners, np.array([-1, 0, 1])).plot().lines[0].get_data_3d()[0]) == 6
    assert len(Graph(corners, np.array([[0, 2]])).plot().lines) == 1


def test_a_value_shows_shapes_and_no_values() -> None:
    points = Points(np.zeros((10**6, 3), "f4"), {"kind": np.zeros((10**6, 2), "u1")})
    assert repr(points) == "<Points: positions (1000000, 3) float32, attributes {kind: (1000000, 2) uint8}>"
    shown = repr(Polylines.from_lines(LINES, object_ids=[5, 6]))
    assert shown == "<Polylines: positions (5, 3) float64, starts (3,) int64, object_ids (2,) int64>"
    assert repr(Points([[1, 2], [3]])) == "<Points: positions list>"  # type: ignore[arg-type]


@pytest.mark.parametrize("method", ["to_pandas", "to_geopandas", "plot", "to_tractogram", "to_trimesh", "edges"])
def test_values_made_of_lists_are_as_those_of_arrays(method: str) -> None:
    places, values = [[0, 0, 0], [1, 2, 3], [4, 5, 6.5]], {"a": [1, 2, 3], "t": ["x", "y", "z"]}
    made: list[Any] = [
        vectors.Points(places, values, [1, 1, 2]),  # type: ignore[arg-type]
        vectors.Polylines(places, [0, 3], [4], values, {"q": [1]}),  # type: ignore[arg-type]
        vectors.Graph(places, [[0, 1], [1, 2]], values, {"w": [1, 2]}),  # type: ignore[arg-type]
        vectors.Skeleton(places, [-1, 0, 1], values),  # type: ignore[arg-type]
        vectors.Mesh(places, [[0, 1, 2]], {"a": [1, 2, 3]}),  # type: ignore[arg-type]
    ]
    found = [getattr(each, method) for each in made if hasattr(type(each), method)]
    assert found
    assert all(each() is not None for each in found if callable(each))
    with pytest.raises(DataError, match="positions"):
        vectors.Points([[0, 0], [1]]).checked()  # type: ignore[arg-type]
