"""What files of other programs hold and a store does not, or the other way round: kept, an error, or a warning."""

from __future__ import annotations

import json
import struct
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from vectors.geometry_samples import links, rows
from zardine import vectors
from zardine.errors import DataError, ZarrUserWarning
from zardine.vectors.exchange.formats import export_vectors, import_vectors

POINTS = np.array([[0, 0, 0], [9, 0, 0], [9, 9, 0], [0, 9, 0], [4, 4, 0.5]])


def feature(kind: str, coordinates: Any, **properties: Any) -> dict[str, Any]:
    return {"type": "Feature", "properties": properties, "geometry": {"type": kind, "coordinates": coordinates}}


def geojson(folder: Path, *features: Any) -> Path:
    path = folder / "in.geojson"
    path.write_text(json.dumps({"type": "FeatureCollection", "features": list(features)}))
    return path


def told(recorded: Any) -> str:
    return "\n".join(str(each.message) for each in recorded if each.category is ZarrUserWarning)


RING = [[0, 0], [9, 0], [9, 9], [0, 0]]
HOLE = [[5, 1], [6, 1], [6, 2], [5, 1]]
LINE = [[0, 0], [5, 5], [7, 1]]


def test_polygons_with_holes_beside_lines(tmp_path: Path) -> None:
    source = geojson(
        tmp_path,
        feature("Polygon", [RING, HOLE], name="donut"),
        feature("LineString", LINE, name="way"),
        feature("MultiLineString", [LINE[:2], LINE[1:]], name="ways"),
    )
    with pytest.warns(ZarrUserWarning, match="outlines"):
        import_vectors(source, str(tmp_path / "a.zv"), chunk_shape=4)
    found = vectors.read_polylines(str(tmp_path / "a.zv"))
    assert [line.tolist() for line in found.lines] == [RING, HOLE, LINE, LINE[:2], LINE[1:]]
    assert found.object_attributes["name"].tolist() == ["donut", "donut", "way", "ways", "ways"]
    assert found.object_attributes["feature"].tolist() == [0, 0, 1, 2, 2]


def test_points_beside_lines(tmp_path: Path) -> None:
    source = geojson(tmp_path, feature("Point", [1, 2]), feature("LineString", LINE))
    with pytest.raises(DataError, match="LineString, Point"):
        import_vectors(source, str(tmp_path / "a.zv"))
    assert not (tmp_path / "a.zv").exists()


def test_positions_of_two_and_three_coordinates(tmp_path: Path) -> None:
    source = geojson(tmp_path, feature("Point", [1, 2]), feature("Point", [1, 2, 3]))
    with pytest.raises(DataError, match="two and of three coordinates"):
        import_vectors(source, str(tmp_path / "a.zv"))


def test_missing_values_dates_and_odd_values(tmp_path: Path) -> None:
    source = geojson(
        tmp_path,
        feature("Point", [1, 2], name="a", day="2020-01-02", yes=True, count=3, parts=[1, 2], **{"a/b": 1}),
        feature("Point", [3, 4], name=None, day=None, yes=None, count=None, parts=None, **{"a/b": 2}),
        {"type": "Feature", "properties": {"name": "nowhere"}, "geometry": None},
    )
    with warnings.catch_warnings(record=True) as recorded:
        warnings.simplefilter("always")
        import_vectors(source, str(tmp_path / "a.zv"))
    text = told(recorded)
    assert "1 features without a geometry" in text
    assert "'parts' is left out" in text
    assert "'a/b' is called '_a_b'" in text
    found = vectors.read_points(str(tmp_path / "a.zv"))
    order = np.argsort(found.positions[:, 0])
    assert found.attributes["name"][order].tolist() == ["a", None]
    assert found.attributes["day"][order].tolist() == ["2020-01-02T00:00:00", None]
    assert np.array_equal(found.attributes["yes"][order], [1, np.nan], equal_nan=True)
    assert np.array_equal(found.attributes["count"][order], [3, np.nan], equal_nan=True)
    assert found.attributes["_a_b"][order].tolist() == [1, 2]
    assert "parts" not in found.attributes


def test_what_features_do_not_have(tmp_path: Path) -> None:
    path = str(tmp_path / "a.zv")
    lines = [POINTS[:2], POINTS[:1], POINTS[1:]]
    vectors.write_polylines(
        path,
        lines,
        chunk_shape=20,
        object_ids=[5, 2**40, 7],
        vertex_attributes={"depth": np.arange(7)},
        object_attributes={"rgb": [[1, 2, 3], [4, 5, 6], [7, 8, 9]]},
        groups=[[5, 7]],
    )
    with warnings.catch_warnings(record=True) as recorded:
        warnings.simplefilter("always")
        export_vectors(path, tmp_path / "a.geojson")
    text = told(recorded)
    assert "vertex attributes cannot be kept: depth" in text
    assert "groups cannot be kept" in text
    assert "the attribute 'rgb' of several values becomes columns: 'rgb_0' to 'rgb_2'" in text
    assert "1 lines of less than two vertices" in text
    made = json.loads((tmp_path / "a.geojson").read_text())["features"]
    assert [each["properties"] for each in made] == [
        {"rgb_0": 1, "rgb_1": 2, "rgb_2": 3, "object_id": 5},
        {"rgb_0": 7, "rgb_1": 8, "rgb_2": 9, "object_id": 7},
    ]


PLY = """ply
format ascii 1.0
element vertex 5
property float x
property float y
property float z
property float quality
property uchar red
property uchar green
property uchar blue
element face 2
property list uchar int vertex_indices
property int part
end_header
"""
VERTICES = "".join(f"{x} {y} {z} {x / 2} {row} 20 30\n" for row, (x, y, z) in enumerate(POINTS.tolist()))


def test_ply_with_quads_and_colours(tmp_path: Path) -> None:
    source, path = tmp_path / "a.ply", str(tmp_path / "a.zv")
    source.write_text(PLY + VERTICES + "4 0 1 2 3 7\n4 0 1 4 3 8\n")
    import_vectors(source, path, chunk_shape=5)
    mesh = vectors.read_mesh(path)
    wanted = links(POINTS, np.array([[0, 1, 2, 3], [0, 1, 4, 3]]), [7, 8])
    assert links(mesh.positions.astype("f8"), mesh.faces, mesh.face_attributes["part"]) == wanted
    names = ("quality", "red", "green", "blue")
    assert rows(mesh.positions, *(mesh.attributes[name] for name in names)) == rows(
        POINTS, POINTS[:, 0] / 2, np.arange(5), [20] * 5, [30] * 5
    )
    with pytest.warns(ZarrUserWarning, match="faces of 4 corners are written as triangles"):
        export_vectors(path, tmp_path / "b.ply")
    import_vectors(tmp_path / "b.ply", str(tmp_path / "b.zv"), chunk_shape=5)
    again = vectors.read_mesh(str(tmp_path / "b.zv"))
    assert rows(again.positions, *(again.attributes[name] for name in names)) == rows(
        mesh.positions, *(mesh.attributes[name] for name in names)
    )
    assert sorted(again.face_attributes["part"].tolist()) == [7, 7, 8, 8]
    with pytest.warns(ZarrUserWarning, match="'quality'"):
        export_vectors(path, tmp_path / "b.obj")
    import_vectors(tmp_path / "b.obj", str(tmp_path / "c.zv"), chunk_shape=5)
    assert len(vectors.read_mesh(str(tmp_path / "c.zv")).faces) == 4
    with pytest.warns(ZarrUserWarning, match="vertex attributes cannot be kept: .*red"):
        export_vectors(path, tmp_path / "b.stl")


def test_ply_in_binary_with_colours_of_faces(tmp_path: Path) -> None:
    head = PLY.replace("ascii", "binary_little_endian").replace("property int part", "property uchar red")
    body = b"".join(struct.pack("<4f3B", *each, each[0], 1, 2, 3) for each in POINTS.tolist())
    faces = [struct.pack("<B4iB", 4, 0, 1, 2, 3, 9), struct.pack("<B4iB", 4, 0, 1, 4, 3, 8)]
    (tmp_path / "a.ply").write_bytes(head.encode() + body + b"".join(faces))
    import_vectors(tmp_path / "a.ply", str(tmp_path / "a.zv"), chunk_shape=5)
    mesh = vectors.read_mesh(str(tmp_path / "a.zv"))
    assert mesh.faces.shape == (2, 4)
    assert sorted(mesh.face_attributes["red"].tolist()) == [8, 9]
    (tmp_path / "b.ply").write_bytes(head.encode() + body + faces[0])
    with pytest.raises(DataError, match=r"b\.ply"):
        import_vectors(tmp_path / "b.ply", str(tmp_path / "b.zv"))


def test_ply_with_faces_of_several_kinds(tmp_path: Path) -> None:
    (tmp_path / "a.ply").write_text(PLY + VERTICES + "4 0 1 2 3 7\n3 0 1 4 8\n")
    with warnings.catch_warnings(record=True) as recorded:
        warnings.simplefilter("always")
        import_vectors(tmp_path / "a.ply", str(tmp_path / "a.zv"), chunk_shape=5)
    assert "different numbers of corners" in told(recorded)
    assert vectors.read_mesh(str(tmp_path / "a.zv")).faces.shape == (3, 3)


def test_obj_with_more_than_triangles(tmp_path: Path) -> None:
    (tmp_path / "a.obj").write_text(
        "".join(f"v {x} {y} {z}\n" for x, y, z in POINTS.tolist()) + "f 1 2 3 4\nf 1 2 5\nl 1 3\n"
    )
    with warnings.catch_warnings(record=True) as recorded:
        warnings.simplefilter("always")
        import_vectors(tmp_path / "a.obj", str(tmp_path / "a.zv"), chunk_shape=5)
    assert "left out: lines" in told(recorded)
    assert "stored as triangles" in told(recorded)


@pytest.mark.parametrize("extent", [3000.0, 1e7, 1e-3, 0.0])
def test_scans_of_any_extent(tmp_path: Path, extent: float) -> None:
    points = np.array([[0, 5, 5], [extent, 5, 5], [extent / 3, 5, 6]])
    vectors.write_points(str(tmp_path / "a.zv"), points, chunk_shape=max(1, extent / 4))
    export_vectors(str(tmp_path / "a.zv"), tmp_path / "a.las")
    import_vectors(tmp_path / "a.las", str(tmp_path / "b.zv"), chunk_shape=max(1, extent / 4))
    found = vectors.read_points(str(tmp_path / "b.zv")).positions
    assert np.allclose(np.sort(found, axis=0), np.sort(points, axis=0), rtol=0, atol=max(1e-6, extent * 2**-29))


def test_what_scans_do_not_have(tmp_path: Path) -> None:
    path = str(tmp_path / "a.zv")
    values = {"intensity": [1.0, 2.5, 7e9], "name": ["a", "b", "c"], "rgb": np.zeros((3, 4)), "x" * 40: [1, 2, 3]}
    values |= {"big": np.array([1, 2, 2**60]), "ok": [True, False, True], "return_number": [1, 2, 300]}
    vectors.write_points(path, POINTS[:3], vertex_attributes=values, object_ids=[7, 2**40, 7])
    with warnings.catch_warnings(record=True) as recorded:
        warnings.simplefilter("always")
        export_vectors(path, tmp_path / "a.las")
    text = told(recorded)
    for name in ("intensity", "name", "rgb", "x" * 40, "return_number"):
        assert repr(name) in text
    import_vectors(tmp_path / "a.las", str(tmp_path / "b.zv"))
    found = vectors.read_points(str(tmp_path / "b.zv")).attributes
    assert sorted(found["object_id"].tolist()) == [7, 7, 2**40]
    assert sorted(found["big"].tolist()) == [1, 2, 2**60]
    assert sorted(found["ok"].tolist()) == [0, 1, 1]


def test_streamlines_keep_what_they_can(tmp_path: Path) -> None:
    path = str(tmp_path / "a.zv")
    lines = [POINTS[:3].astype("f4"), POINTS[2:].astype("f4")]
    vectors.write_polylines(
        path,
        lines,
        chunk_shape=20,
        object_ids=[4, 9],
        vertex_attributes={"fa": np.arange(6.0), "dir": np.arange(18.0).reshape(6, 3), "text": list("abcdef")},
        object_attributes={"length": [2.0, 3.0], "exact": [2**53 + 1, 1], "n" * 25: [1, 2]},
    )
    with warnings.catch_warnings(record=True) as recorded:
        warnings.simplefilter("always")
        export_vectors(path, tmp_path / "a.trk")
    text = told(recorded)
    for name in ("text", "exact", "n" * 25):
        assert repr(name) in text
    import_vectors(tmp_path / "a.trk", str(tmp_path / "b.zv"), chunk_shape=20)
    found = vectors.read_polylines(str(tmp_path / "b.zv"))
    assert found.attributes["fa"].tolist() == list(range(6))
    assert found.attributes["dir"].shape == (6, 3)
    assert found.object_attributes["length"].tolist() == [2, 3]
    assert found.object_attributes["object_id"].tolist() == [4, 9]
    with pytest.warns(ZarrUserWarning, match="vertex attributes cannot be kept: dir, fa, text"):
        export_vectors(path, tmp_path / "a.tck")


@pytest.mark.parametrize("suffix", ["trk", "tck", "swc", "ply", "obj", "stl", "las"])
def test_two_axes(tmp_path: Path, suffix: str) -> None:
    path, flat = str(tmp_path / "a.zv"), POINTS[:, :2]
    if suffix in ("trk", "tck"):
        vectors.write_polylines(path, [flat], chunk_shape=20)
    elif suffix == "swc":
        vectors.write_skeleton(path, flat, [-1, 0, 1, 2, 3], chunk_shape=20)
    elif suffix == "las":
        vectors.write_points(path, flat, chunk_shape=20)
    else:
        vectors.write_mesh(path, flat, [[0, 1, 2]], chunk_shape=20)
    with pytest.raises(DataError, match="2 axes"):
        export_vectors(path, tmp_path / f"a.{suffix}")
    assert not (tmp_path / f"a.{suffix}").exists()


@pytest.mark.parametrize("suffix", ["trk", "swc", "ply", "las", "geojson", "parquet"])
def test_geometries_that_a_format_does_not_have(tmp_path: Path, suffix: str) -> None:
    path = str(tmp_path / "a.zv")
    vectors.write_graph(path, POINTS, [[0, 1]], chunk_shape=20)
    with pytest.raises(DataError, match="holds a graph"):
        export_vectors(path, tmp_path / f"a.{suffix}")


def test_skeletons_with_more_than_swc_has(tmp_path: Path) -> None:
    path = str(tmp_path / "a.zv")
    given = {"type": [1, 2, 3], "label": ["a", "b", "c"]}
    vectors.write_skeleton(path, POINTS[:3], [-1, 0, -1], object_ids=[1, 1, 2], chunk_shape=20, vertex_attributes=given)
    with warnings.catch_warnings(record=True) as recorded:
        warnings.simplefilter("always")
        export_vectors(path, tmp_path / "a.swc")
    assert "'label'" in told(recorded)
    assert "2 objects" in told(recorded)
    vectors.set_attribute(path, "type", ["x", "y", "z"])
    with pytest.raises(DataError, match="'type'"):
        export_vectors(path, tmp_path / "b.swc")
    (tmp_path / "c.swc").write_text("1 1.5 0 0 0 5 -1")
    with pytest.raises(DataError, match="whole numbers"):
        import_vectors(tmp_path / "c.swc", str(tmp_path / "c.zv"))


@pytest.mark.parametrize("suffix", ["trk", "tck", "ply", "las", "laz", "geojson", "gpkg", "parquet"])
def test_files_that_are_damaged(tmp_path: Path, suffix: str) -> None:
    source = tmp_path / f"a.{suffix}"
    source.write_bytes(b"this is no such file" * 50)
    with pytest.raises((DataError, OSError)):
        import_vectors(source, str(tmp_path / "a.zv"))
    assert not (tmp_path / "a.zv").exists()
