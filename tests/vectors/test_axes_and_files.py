"""Names, order and units of axes, and reference systems, in files that have no place for them: told, and x means x."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import laspy
import nibabel.streamlines as streamlines
import numpy as np
import pytest
import trimesh

from vectors.geometry_samples import rows
from zardine import vectors
from zardine.errors import ZarrUserWarning
from zardine.vectors import Graph, Layout, Mesh, Points, Polylines, Skeleton, Space, export_vectors, import_vectors

X, Y, Z = (np.arange(24.0) + shift for shift in (0, 100, 200))
BACKWARDS = np.stack((Z, Y, X), axis=1)
BALL = trimesh.creation.icosphere(1, 40.0)
VALUES: dict[str, Any] = {
    "points": Points(BACKWARDS),
    "lines": Polylines.from_lines(list(BACKWARDS.reshape(4, 6, 3))),
    "graph": Graph(BACKWARDS, np.array([[0, 1], [1, 2]]), object_ids=np.zeros(24, np.int64)),
    "skeleton": Skeleton(BACKWARDS, np.arange(-1, 23), {}, np.zeros(24, np.int64)),
    "mesh": Mesh(np.add(BALL.vertices, (300, 200, 100)), BALL.faces, object_ids=np.zeros(42, np.int64)),
}
PLAIN = [
    *(("points", each) for each in ("ply", "las", "geojson", "gpkg", "shp", "parquet")),
    *(("lines", each) for each in ("trk", "tck", "trx", "geojson", "parquet", "precomputed")),
    *(("mesh", each) for each in ("ply", "obj", "stl", "precomputed")),
    *(("graph", "precomputed"), ("skeleton", "swc"), ("skeleton", "precomputed")),
]
"""Formats that do not name axes."""
NAMED = [("points", "precomputed"), ("lines", "geff"), ("graph", "geff"), ("skeleton", "geff")]


def stored(folder: Path, kind: str, axes: Any, crs: Any = None) -> str:
    path = str(folder / "a.zv")
    vectors.write(path, VALUES[kind], layout=Layout(chunk_shape=100), space=Space(axes=axes, crs=crs))
    return path


def told_by(path: str, target: Path) -> str:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        export_vectors(path, target)
    return "\n".join(str(each.message) for each in told if each.category is ZarrUserWarning)


def expected(kind: str) -> np.ndarray[Any, Any]:
    return np.asarray(VALUES[kind].positions)[:, ::-1]


@pytest.mark.parametrize(("kind", "name"), PLAIN)
def test_axes_in_another_order_are_put_in_that_of_the_format(tmp_path: Path, kind: str, name: str) -> None:
    unit = {"unit": "nanometer"} if name == "precomputed" else {"unit": "micrometer"}
    path, target = stored(tmp_path, kind, [{"name": each, **unit} for each in "zyx"]), tmp_path / f"a.{name}"
    text = told_by(path, target)
    assert "coordinates are written in the order x, y, z, and come back so: the store has axes z, y, x" in text
    assert ("units of axes cannot be kept: micrometer" in text) == (name != "precomputed")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ZarrUserWarning)
        import_vectors(target, str(tmp_path / "b.zv"), chunk_shape=100)
    back = vectors.open(str(tmp_path / "b.zv"))
    assert [each["name"] for each in back.axes] == ["x", "y", "z"]
    found = np.unique(back.read().positions, axis=0)
    assert np.allclose(found, rows(expected(kind).astype(np.float32)), atol=1e-4)


def test_what_other_programs_see(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ZarrUserWarning)
        for kind, name in (("points", "las"), ("lines", "trk"), ("points", "geojson"), ("skeleton", "swc")):
            (tmp_path / kind).mkdir(exist_ok=True)
            path = str(tmp_path / f"{kind}.{name}.zv")
            vectors.write(path, VALUES[kind], layout=Layout(chunk_shape=100), space=Space(axes=("z", "y", "x")))
            export_vectors(path, tmp_path / f"a.{name}")
    assert sorted(laspy.read(tmp_path / "a.las").x) == pytest.approx(X)
    assert streamlines.load(tmp_path / "a.trk").streamlines[0][0].tolist() == [0, 100, 200]
    places = json.loads((tmp_path / "a.geojson").read_text())["features"]
    assert [0, 100, 200] in [each["geometry"]["coordinates"] for each in places]
    assert (tmp_path / "a.swc").read_text().splitlines()[1].split()[2:5] == ["0.0", "100.0", "200.0"]


@pytest.mark.parametrize("name", ["ply", "obj", "stl", "precomputed", "folder"])
@pytest.mark.parametrize("axes", ["zyx", "yzx"])
def test_meshes_keep_their_outside(tmp_path: Path, name: str, axes: str) -> None:
    path = stored(tmp_path, "mesh", [{"name": each, "unit": "nanometer"} for each in axes])
    target = tmp_path / f"a.{name}"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ZarrUserWarning)
        if name == "folder":
            target.mkdir()
            export_vectors(path, target, format="ply")
        else:
            export_vectors(path, target)
        import_vectors(target, str(tmp_path / "b.zv"), chunk_shape=200)
    found = vectors.open(str(tmp_path / "b.zv")).read()
    assert found.to_trimesh().volume == pytest.approx(BALL.volume, rel=1e-4)
    order = [axes.index(each) for each in "xyz"]
    assert np.allclose(
        np.unique(found.positions, axis=0), rows(VALUES["mesh"].positions[:, order].astype("f4")), atol=1e-4
    )


@pytest.mark.parametrize(("kind", "name"), [("mesh", "ply"), ("skeleton", "swc")])
def test_folders_of_objects_have_the_order_too(tmp_path: Path, kind: str, name: str) -> None:
    path, target = stored(tmp_path, kind, ("z", "y", "x")), tmp_path / "files"
    target.mkdir()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        export_vectors(path, target, format=name)
    assert "coordinates are written in the order x, y, z" in str([each.message for each in told])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ZarrUserWarning)
        import_vectors(target, str(tmp_path / "b.zv"), chunk_shape=100)
    found = vectors.open(str(tmp_path / "b.zv")).read().positions
    assert np.allclose(np.unique(found, axis=0), rows(expected(kind).astype(np.float32)), atol=1e-4)


@pytest.mark.parametrize(("kind", "name"), NAMED)
def test_formats_that_name_axes_keep_them(tmp_path: Path, kind: str, name: str) -> None:
    path = stored(tmp_path, kind, [{"name": each, "unit": "micrometer"} for each in "zyx"])
    text = told_by(path, tmp_path / f"a.{name}")
    assert "of axes" not in text
    assert "the order" not in text
    import_vectors(tmp_path / f"a.{name}", str(tmp_path / "b.zv"), chunk_shape=100)
    back = vectors.open(str(tmp_path / "b.zv"))
    assert [(each["name"], each["unit"]) for each in back.axes] == [(each, "micrometer") for each in "zyx"]
    assert np.allclose(rows(back.read().positions), rows(BACKWARDS))


def test_axes_with_other_names_are_told_and_stay_where_they_are(tmp_path: Path) -> None:
    text = told_by(stored(tmp_path, "points", ("depth", "row", "column")), tmp_path / "a.ply")
    assert "the names of axes cannot be kept: depth, row, column come back as x, y, z" in text
    import_vectors(tmp_path / "a.ply", str(tmp_path / "b.zv"), chunk_shape=100)
    assert np.array_equal(rows(vectors.read_points(str(tmp_path / "b.zv")).positions), rows(BACKWARDS))


def test_of_usual_axes_nothing_is_told(tmp_path: Path) -> None:
    for kind, name in (("points", "ply"), ("skeleton", "swc"), ("mesh", "obj"), ("points", "gpkg")):
        (tmp_path / kind / name).mkdir(parents=True)
        path = stored(tmp_path / kind / name, kind, [{"name": each, "type": "space"} for each in "xyz"])
        told = told_by(path, tmp_path / f"a.{name}").splitlines()
        assert [each for each in told if "there is no attribute" not in each] == []  # of SWC: types and radii


@pytest.mark.parametrize(
    ("kind", "name"),
    [("points", "ply"), ("mesh", "obj"), ("mesh", "stl"), ("skeleton", "swc"), ("lines", "tck"), *NAMED]
    + [(kind, "precomputed") for kind in ("lines", "graph", "skeleton", "mesh")],
)
def test_a_reference_system_without_a_place_is_told(tmp_path: Path, kind: str, name: str) -> None:
    path = stored(tmp_path, kind, None, {"epsg": 25832})
    assert "the store's reference system cannot be kept" in told_by(path, tmp_path / f"a.{name}")


def test_what_formats_say_of_themselves_is_no_loss(tmp_path: Path) -> None:
    path = stored(tmp_path, "graph", None, {"geff": {"directed": True}})
    assert "reference system" not in told_by(path, tmp_path / "a.geff")


def test_geojson_without_a_reference_system_is_wgs_84(tmp_path: Path) -> None:
    text = told_by(stored(tmp_path, "points", None), tmp_path / "a.geojson")
    assert "it will be read as longitudes and latitudes of WGS 84" in text
    import_vectors(tmp_path / "a.geojson", str(tmp_path / "b.zv"))
    assert "WGS 84" in str(vectors.open(str(tmp_path / "b.zv")).crs)
    for name, crs in (("b.geojson", {"epsg": 25832}), ("a.parquet", None)):
        (tmp_path / name[:1]).mkdir(exist_ok=True)
        again = str(tmp_path / f"{name}.zv")
        vectors.write(again, VALUES["points"], space=Space(crs=crs))
        assert "WGS" not in told_by(again, tmp_path / name)


@pytest.mark.parametrize("kind", ["skeleton", "mesh"])
def test_axes_without_units_are_nanometres_to_neuroglancer(tmp_path: Path, kind: str) -> None:
    path = stored(tmp_path, kind, ("x", {"name": "y", "unit": "micrometer"}, "z"))
    text = told_by(path, tmp_path / "a.precomputed")
    assert "axes without a unit of length, x, z, will be read as nanometres" in text
    import_vectors(tmp_path / "a.precomputed", str(tmp_path / "b.zv"), chunk_shape=10**5)
    units = [each["unit"] for each in vectors.open(str(tmp_path / "b.zv")).axes]
    assert units == ["nanometer", "nanometer" if kind == "mesh" else "micrometer", "nanometer"]
