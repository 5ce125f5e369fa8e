"""Files of other formats: there and back."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from vectors.geometry_samples import links, rows
from zardine import vectors
from zardine.errors import DataError, UnsupportedError
from zardine.vectors.exchange.formats import export_vectors, import_vectors

CRS = (
    'GEOGCS["WGS 84",DATUM["WGS_1984",SPHEROID["WGS 84",6378137,298.257223563]],PRIMEM["Greenwich",0],'
    'UNIT["degree",0.0174532925199433]]'
)
SWC = """# a neuron
 1 1 0 0 0 5 -1
 2 3 1 0 0 1 1
 7 3 12 0 0 1 2  # far
 8 2 1 1 0 0.5 2
"""


def test_swc(tmp_path: Path) -> None:
    (tmp_path / "a.swc").write_text(SWC)
    import_vectors(tmp_path / "a.swc", str(tmp_path / "a.zv"), chunk_shape=5)
    found = vectors.read_skeleton(str(tmp_path / "a.zv"))
    assert rows(found.positions, found.attributes["type"], found.attributes["radius"]) == [
        (0, 0, 0, 1, 5),
        (1, 0, 0, 3, 1),
        (1, 1, 0, 2, 0.5),
        (12, 0, 0, 3, 1),
    ]
    export_vectors(str(tmp_path / "a.zv"), tmp_path / "b.swc")
    import_vectors(tmp_path / "b.swc", str(tmp_path / "b.zv"), chunk_shape=5)
    again = vectors.read_skeleton(str(tmp_path / "b.zv"))
    assert links(again.positions, again.edges) == links(found.positions, found.edges)
    for text in ("1 1 0 0 0 5", "1 1 0 0 0 5 9", "1 1 0 0 x 5 -1", "1 1 0 0 0 5 -1\n1 1 0 0 0 5 -1"):
        (tmp_path / "bad.swc").write_text(text)
        with pytest.raises(DataError):
            import_vectors(tmp_path / "bad.swc", str(tmp_path / "c.zv"))
    assert not (tmp_path / "c.zv").exists()


@pytest.mark.parametrize("suffix", ["trk", "tck"])
def test_streamlines(tmp_path: Path, suffix: str) -> None:
    rng = np.random.default_rng(0)
    lines = [rng.normal(0, 9, (n, 3)).cumsum(axis=0).astype("f4") for n in (5, 40)]
    vectors.write_polylines(str(tmp_path / "a.zv"), lines, chunk_shape=10, object_attributes={"w": [1.0, 2.0]})
    export_vectors(str(tmp_path / "a.zv"), tmp_path / f"a.{suffix}")
    import_vectors(tmp_path / f"a.{suffix}", str(tmp_path / "b.zv"), chunk_shape=10)
    found = vectors.read_polylines(str(tmp_path / "b.zv"))
    assert [len(each) for each in found.lines] == [5, 40]
    assert np.allclose(found.positions, np.concatenate(lines), atol=1e-4)


@pytest.mark.parametrize("suffix", ["ply", "obj", "stl"])
def test_meshes(tmp_path: Path, suffix: str) -> None:
    corners = np.array([[0, 0, 0], [9, 0, 0], [9, 9, 0], [0, 9, 0]], "f8")
    faces = np.array([[0, 1, 2], [0, 2, 3]])
    vectors.write_mesh(str(tmp_path / "a.zv"), corners, faces, chunk_shape=5)
    export_vectors(str(tmp_path / "a.zv"), tmp_path / f"a.{suffix}")
    import_vectors(tmp_path / f"a.{suffix}", str(tmp_path / "b.zv"), chunk_shape=5)
    mesh = vectors.read_mesh(str(tmp_path / "b.zv"))
    told = {frozenset(map(tuple, mesh.positions[face].tolist())) for face in mesh.faces}
    assert told == {frozenset(map(tuple, corners[face].tolist())) for face in faces}


@pytest.mark.parametrize("suffix", ["las", "laz"])
def test_points(tmp_path: Path, suffix: str) -> None:
    points = np.random.default_rng(0).uniform(0, 100, (50, 3))
    number = np.arange(50, dtype="u2")
    attributes = {"intensity": number, "extra": np.arange(50.0)}
    vectors.write_points(str(tmp_path / "a.zv"), points, chunk_shape=20, vertex_attributes=attributes)
    export_vectors(str(tmp_path / "a.zv"), tmp_path / f"a.{suffix}")
    import_vectors(tmp_path / f"a.{suffix}", str(tmp_path / "b.zv"), chunk_shape=20)
    found = vectors.read_points(str(tmp_path / "b.zv"))
    order = np.argsort(found.attributes["intensity"])
    assert np.allclose(found.positions[order], points, atol=1e-5)
    assert found.attributes["extra"][order].tolist() == list(range(50))


FEATURES = pytest.mark.parametrize("suffix", ["geojson", "gpkg", "shp", "parquet"])


@FEATURES
def test_feature_points(tmp_path: Path, suffix: str) -> None:
    points = np.random.default_rng(0).integers(-200, 200, (30, 2)) / 4  # which GeoJSON does not round
    about = {"height": np.arange(30.0), "kind": np.array(["tree", "house", "ö"] * 10)}
    made, back = str(tmp_path / "a.zv"), str(tmp_path / "b.zv")
    vectors.write_points(made, points, chunk_shape=20, vertex_attributes=about, crs={"wkt": CRS})
    export_vectors(made, tmp_path / f"a.{suffix}")
    import_vectors(tmp_path / f"a.{suffix}", back, chunk_shape=20)
    first, second = vectors.read_points(made), vectors.read_points(back)
    assert rows(first.positions, *(first.attributes[name] for name in about)) == rows(
        second.positions, *(second.attributes[name] for name in about)
    )


@FEATURES
def test_features(tmp_path: Path, suffix: str) -> None:
    lines = [np.array([[0, 0], [5, 5], [20, 5]], "f8"), np.array([[1, 1], [2, 2]], "f8")]
    vectors.write_polylines(
        str(tmp_path / "a.zv"), lines, chunk_shape=10, geometry_type="polyline", object_attributes={"name": ["a", "b"]}
    )
    export_vectors(str(tmp_path / "a.zv"), tmp_path / f"a.{suffix}")
    import_vectors(tmp_path / f"a.{suffix}", str(tmp_path / "b.zv"), chunk_shape=10)
    found = vectors.read_polylines(str(tmp_path / "b.zv"))
    assert [each.tolist() for each in found.lines] == [each.tolist() for each in lines]
    assert found.object_attributes["name"].tolist() == ["a", "b"]


def test_unknown_endings(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match=r"\.swc"):
        import_vectors("a.docx", str(tmp_path / "a.zv"))
    with pytest.raises(UnsupportedError):
        export_vectors(str(tmp_path / "a.zv"), "a.docx")
