"""Values as those of other programs, and back: none, lazy ones, and attributes that are called as something else."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

import nibabel.streamlines as streamlines
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from zardine import vectors
from zardine.errors import DataError, ZarrUserWarning
from zardine.storage import MemoryStore
from zardine.vectors import Graph, Mesh, Points, Polylines, Skeleton
from zardine.vectors.results import Geometry

NOTHING: Mapping[str, Any] = {
    "numbers": np.zeros(0),
    "integers": np.zeros(0, np.uint8),
    "colours": np.zeros((0, 3), np.uint8),
    "text": np.zeros(0, np.dtypes.StringDType(na_object=None)),
}
NONE = np.zeros((0, 3), np.float32)
NO_IDS = np.zeros(0, np.int64)
EMPTY: list[Geometry] = [
    Points(NONE, NOTHING, NO_IDS),
    Polylines(NONE, np.zeros(1, np.int64), NO_IDS, NOTHING, NOTHING),
    Graph(NONE, np.zeros((0, 2), np.int64), NOTHING, NOTHING, NO_IDS),
    Skeleton(NONE, NO_IDS, NOTHING, NO_IDS),
    Mesh(NONE, np.zeros((0, 3), np.int64), NOTHING, NOTHING, NO_IDS),
]


@pytest.mark.filterwarnings("ignore::zardine.errors.ZarrUserWarning")
@pytest.mark.parametrize("value", EMPTY, ids=lambda value: type(value).__name__)
def test_nothing_becomes_nothing(value: Geometry, tmp_path: Path) -> None:
    found = [
        getattr(value, name) for name in dir(value) if name.startswith("to_") and name not in ("to_swc", "to_navis")
    ]
    assert found
    for method in found:
        made = method()
        for each in made if isinstance(made, tuple) else (made,):
            assert len(getattr(each, "vertices", each)) == 0
    assert value.plot() is not None
    if isinstance(value, Skeleton):
        value.to_swc(tmp_path / "a.swc")
        assert len(Skeleton.from_swc(tmp_path / "a.swc")) == 0


def test_a_tractogram_of_nothing_has_its_attributes() -> None:
    none = Polylines(NONE, np.zeros(1, np.int64), NO_IDS, {}, {"w": np.zeros(0), "rgb": np.zeros((0, 3))})
    made = none.to_tractogram()
    assert {name: each.shape for name, each in made.data_per_streamline.items()} == {"w": (0, 1), "rgb": (0, 3)}
    back = Polylines.from_tractogram(made)
    assert {name: each.shape for name, each in back.object_attributes.items()} == {"w": (0,), "rgb": (0, 3)}
    assert len(back.checked()) == 0


def test_what_a_tractogram_does_not_hold_is_told() -> None:
    lines = Polylines(
        np.arange(9.0).reshape(3, 3),
        np.array([0, 0, 2, 2, 3]),
        np.arange(4),
        {"fa": np.arange(3.0), "of": np.array(["a", "b", "c"], object)},
        {"w": np.arange(4.0), "name": np.array(list("abcd"), object)},
    )
    with pytest.warns(ZarrUserWarning) as told:
        made = lines.to_tractogram()
    text = "\n".join(str(each.message) for each in told)
    assert "2 lines without vertices are left out" in text
    assert "the attribute 'name' cannot be kept: it is text" in text
    assert "the attribute 'of' cannot be kept: it is text" in text
    assert [len(each) for each in made.streamlines] == [2, 1]
    assert made.data_per_streamline["w"].tolist() == made.data_per_streamline["object_id"].tolist() == [[1], [3]]
    assert [each.ravel().tolist() for each in made.data_per_point["fa"]] == [[0, 1], [2]]


def test_lines_that_are_loaded_lazily(tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    lines = [rng.random((count, 3), np.float32) for count in (4, 2, 7)]
    given = Polylines.from_lines(
        lines,
        attributes={"fa": [np.arange(len(each), dtype="f4") for each in lines]},
        object_attributes={"w": np.array([1, 2, 3], "f4"), "rgb": np.arange(9, dtype="f4").reshape(3, 3)},
    )
    affine = np.diag([2.0, 3.0, 4.0, 1.0])
    affine[:3, 3] = 7, -8, 9
    place = str(tmp_path / "a.trk")
    header = {"voxel_sizes": (2, 3, 4), "dimensions": (20, 20, 20), "voxel_to_rasmm": affine}
    streamlines.save(given.to_tractogram(), place, header=header)
    whole = Polylines.from_tractogram(streamlines.load(place))
    for lazy in (streamlines.load(place, lazy_load=True), streamlines.load(place, lazy_load=True).tractogram):
        found = Polylines.from_tractogram(lazy).checked()
        assert np.allclose(found.positions, given.positions, atol=1e-5)
        assert found.starts.tolist() == whole.starts.tolist() == [0, 4, 6, 13]
        assert found.attributes["fa"].tolist() == given.attributes["fa"].tolist()
        assert sorted(found.object_attributes) == ["rgb", "w"]
        for name, values in given.object_attributes.items():
            assert found.object_attributes[name].tolist() == values.tolist()
    lazy = streamlines.LazyTractogram.from_tractogram(given.to_tractogram(affine))
    assert np.allclose(Polylines.from_tractogram(lazy).positions, given.positions, atol=1e-4)
    file = BytesIO()
    streamlines.TckFile(streamlines.Tractogram([], affine_to_rasmm=np.eye(4))).save(file)
    file.seek(0)
    assert len(Polylines.from_tractogram(streamlines.load(file, lazy_load=True))) == 0


def test_whole_numbers_are_moved_as_what_they_become() -> None:
    lines = Polylines(np.array([[1, 2, 3], [4, 5, 6]]), np.array([0, 2]), np.array([0]))
    moved = lines.to_tractogram(np.diag([2.0, 2.0, 2.0, 1.0]))
    assert moved.streamlines[0].tolist() == [[0.5, 1, 1.5], [2, 2.5, 3]]
    back = streamlines.Tractogram([np.array([[1, 2, 3]])], affine_to_rasmm=np.diag([0.5, 0.5, 0.5, 1]))
    assert Polylines.from_tractogram(back).positions.tolist() == [[0.5, 1, 1.5]]


CORNERS = np.array([[1.0, 2, 3], [4, 5, 6]])
OF_TWO = {"x": np.array([100, 200]), "object_id": np.array([7, 7]), "rgb": np.eye(2), "rgb_0": np.array([5, 6])}
LINE = Polylines(
    CORNERS, np.array([0, 2]), np.array([3]), OF_TWO, {"object_id": np.array([9]), "geometry": np.array([1])}
)
TREE = Skeleton(
    CORNERS, np.array([-1, 0]), {"node_id": np.array([50, 51]), "parent_id": np.array([1, 2]), "y": CORNERS[:, 0]}
)


def test_attributes_that_are_called_as_coordinates_or_ids() -> None:
    points = Points(CORNERS, OF_TWO, np.array([3, 4]))
    with pytest.warns(ZarrUserWarning) as told:
        table = points.to_pandas()
    assert list(table.columns) == ["x", "y", "z", "object_id", "x_", "object_id_", "rgb_0_", "rgb_1", "rgb_0"]
    assert "Points.to_pandas: the attribute 'x' is called 'x_': another column has that name" in str(told[0].message)
    back = Points.from_pandas(table)
    assert back.positions.tolist() == CORNERS.tolist()
    assert back.object_ids is not None
    assert back.object_ids.tolist() == [3, 4]
    assert back.attributes["x_"].tolist() == [100, 200]
    assert back.attributes["object_id_"].tolist() == [7, 7]
    with pytest.warns(ZarrUserWarning, match="'object_id' is called 'object_id_'"):
        lines = LINE.to_pandas()
    assert lines["object_id"].tolist() == [3, 3]
    assert lines["x"].tolist() == [1, 4]
    with pytest.warns(ZarrUserWarning):
        vertices, edges = Graph(CORNERS, [[0, 1]], OF_TWO, {"source": [8], "w": [2]}).to_pandas()  # type: ignore[arg-type, dict-item]
    assert vertices["x"].tolist() == [1, 4]
    assert edges.to_dict("list") == {"source": [0], "target": [1], "source_": [8], "w": [2]}


def test_attributes_that_are_called_as_columns_of_swc() -> None:
    with pytest.warns(ZarrUserWarning, match="'node_id' is called 'node_id_'"):
        table = TREE.to_pandas()
    assert table["node_id"].tolist() == [1, 2]
    assert table["parent_id"].tolist() == [-1, 1]
    assert table["y"].tolist() == [2, 5]
    assert table[["node_id_", "parent_id_", "y_"]].to_numpy().tolist() == [[50, 1, 1], [51, 2, 4]]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        own = Skeleton(CORNERS, np.array([-1, 0]), {"radius": np.array([2.0, 3]), "type": np.array([1, 2])}).to_pandas()
    assert own["radius"].tolist() == [2, 3]
    assert own["type"].tolist() == [1, 2]


def test_attributes_that_are_called_geometry() -> None:
    with pytest.warns(ZarrUserWarning, match="'geometry' is called 'geometry_'"):
        table = LINE.to_geopandas()
    assert [each.coords[1] for each in table.geometry] == [(4, 5, 6)]
    assert table["geometry_"].tolist() == [1]
    assert table["object_id"].tolist() == [3]
    assert table["object_id_"].tolist() == [9]
    with pytest.warns(ZarrUserWarning, match="'geometry' is called 'geometry_'"):
        places = Points(CORNERS, {"geometry": np.array([1, 2])}).to_geopandas()
    assert [each.z for each in places.geometry] == [3, 6]


@pytest.mark.parametrize("axes", [None, "xyz", "zyx", ("lon", "lat")])
def test_tables_as_positions_lose_no_names(axes: Any) -> None:
    """Columns of a table in another order, or called otherwise, are not taken for x, y and z."""
    axes = axes and list(axes)
    flat = CORNERS[:, : len(axes or "xyz")]
    frame = pd.DataFrame(flat, columns=axes)
    tables = [frame] if axes is None else [frame, pa.table(frame)]
    for table in tables:
        writers: list[Callable[[Any], None]] = [
            lambda store, table=table: vectors.write_points(store, table),
            lambda store, table=table: vectors.write_polylines(store, [table]),
            lambda store, table=table: vectors.write_graph(store, table, [[0, 1]]),
            lambda store, table=table: vectors.write(store, Points(table)),
        ]
        for write in writers:
            store = MemoryStore()
            if axes in (None, ["x", "y", "z"]):
                write(store)
                assert vectors.open(store).read().positions.tolist() == flat.tolist()
            else:
                with pytest.raises(DataError, match=f"columns would be lost: '{axes[0]}', '{axes[1]}'"):
                    write(store)
                assert list(store.list_prefix("")) == []
    if axes == ["z", "y", "x"]:
        vectors.write_points(store, CORNERS)
        with pytest.raises(DataError, match="columns would be lost"):
            vectors.append_points(store, frame)
        with pytest.raises(DataError, match="attribute 'rgb': the names of the table's columns"):
            vectors.write_points(MemoryStore(), CORNERS, vertex_attributes={"rgb": frame})


def test_edges_of_a_table() -> None:
    vertices, edges = Graph(CORNERS, np.array([[0, 1]])).to_pandas()
    store = MemoryStore()
    vectors.write_graph(store, vertices[["x", "y", "z"]], edges)
    assert vectors.read_graph(store).edges.tolist() == [[0, 1]]
    with pytest.raises(DataError, match="'target', 'source'"):
        vectors.write_graph(MemoryStore(), CORNERS, edges[["target", "source"]])


@pytest.mark.parametrize("axes", [("x", "x", "y"), ("x", "y", "object_id"), ("x", "y")])
def test_names_of_axes_that_would_hide_a_column(axes: tuple[str, ...]) -> None:
    for value in (Points(CORNERS, {}, np.array([3, 4])), LINE):
        with pytest.raises(DataError, match="each another one"):
            value.to_pandas(axes)


def test_ids_of_a_table_that_are_none() -> None:
    frame = pd.DataFrame({"x": [1.0], "y": [2.0], "z": [3.0], "object_id": [1.5]})
    for wrong in (1.5, "a", None, float("nan")):
        frame["object_id"] = [wrong]
        with pytest.raises(DataError, match="'object_id' holds ids"):
            Points.from_pandas(frame)
    frame["object_id"] = [4.0]
    ids = Points.from_pandas(frame).object_ids
    assert ids is not None
    assert ids.tolist() == [4]


def test_ids_of_lines_go_along() -> None:
    lines = Polylines(CORNERS, np.array([0, 1, 2]), np.array([7, 2**40]))
    back = Polylines.from_tractogram(lines.to_tractogram())
    assert back.object_attributes["object_id"].tolist() == [7, 2**40]
    numbered = Polylines(CORNERS, np.array([0, 1, 2]), np.array([0, 1]))
    assert dict(numbered.to_tractogram().data_per_streamline) == {}


def test_what_swc_files_and_meshes_of_trimesh_do_not_hold_is_told(tmp_path: Path) -> None:
    parents, owners = np.array([-1, -1]), np.array([3, 4])
    tree = Skeleton(CORNERS, parents, {"kind": np.array([1, 2])}, owners)
    with pytest.warns(ZarrUserWarning) as told:
        tree.to_swc(tmp_path / "a.swc")
    text = "\n".join(str(each.message) for each in told)
    assert "a.swc: attributes cannot be kept: 'kind'" in text
    assert "a.swc: that vertices belong to 2 objects cannot be kept" in text
    with pytest.raises(DataError, match="'radius' is a column of numbers"):
        Skeleton(CORNERS, parents, {"radius": CORNERS}).to_swc(tmp_path / "b.swc")
    assert not (tmp_path / "b.swc").exists()
    mesh = Mesh(np.eye(3), np.array([[0, 1, 2]]), object_ids=np.array([5, 5, 5]))
    with pytest.warns(ZarrUserWarning, match="to_trimesh: the id of the object, 5, cannot be kept"):
        mesh.to_trimesh()
