"""Faces of more than three corners are cut into triangles that cover them once, concave ones too."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zardine import vectors
from zardine.errors import DataError

SHAPES = {
    "L": [(0, 0), (2, 0), (2, 1), (1, 1), (1, 2), (0, 2)],
    "arrow": [(0, 0), (2, 1), (0, 2), (1, 1)],
    "comb": [(0, 0), (5, 0), (5, 3), (4, 1), (3, 3), (2, 1), (1, 3), (0, 1)],
    "square": [(0, 0), (1, 0), (1, 1), (0, 1)],
}


def area(flat: np.ndarray) -> float:
    x, y = flat.T
    return 0.5 * float(np.sum(x * np.roll(y, -1) - y * np.roll(x, -1)))


def imported(tmp_path: Path, corners: np.ndarray) -> np.ndarray:
    """The triangles, ``(F, 3, 3)``, of a face in an OBJ file."""
    lines = ["v {} {} {}".format(*map(float, each)) for each in corners]
    lines.append("f " + " ".join(str(at + 1) for at in range(len(corners))))
    (tmp_path / "a.obj").write_text("\n".join(lines) + "\n")
    with pytest.warns(UserWarning, match="stored as triangles"):
        vectors.import_vectors(tmp_path / "a.obj", tmp_path / "a.zv", overwrite=True)
    mesh = vectors.read_mesh(tmp_path / "a.zv")
    return mesh.positions[mesh.faces]


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("first", [0, 1, 3])
@pytest.mark.parametrize("shape", SHAPES)
def test_triangles_cover_a_face_once(tmp_path: Path, shape: str, axis: int, first: int, turned: bool) -> None:
    flat = np.roll(np.array(SHAPES[shape], float), first, axis=0)
    flat = flat[::-1] if turned else flat
    corners = np.insert(flat, axis, 3.0, axis=1)
    found = np.delete(imported(tmp_path, corners), axis, axis=2)
    assert len(found) == len(flat) - 2
    areas = [area(each) for each in found]
    assert sum(areas) == pytest.approx(area(flat))
    assert all(each * area(flat) > 0 for each in areas)  # all go round as the face does: none covers another


@settings(max_examples=200, deadline=None)
@given(st.lists(st.floats(0.2, 1), min_size=4, max_size=30))
def test_any_star(radii: list[float]) -> None:
    from zardine.vectors.content.polygons import cuts_of

    angles = np.arange(len(radii)) * 2 * np.pi / len(radii)
    flat = np.stack([np.cos(angles), np.sin(angles)], axis=1) * np.array(radii)[:, None]
    cut = cuts_of(np.insert(flat, 1, 0.0, axis=1)[None, :, [0, 2, 1]])[0]
    areas = [area(flat[each]) for each in cut]
    assert len(cut) == len(radii) - 2
    assert sum(areas) == pytest.approx(area(flat))
    assert min(areas) >= -1e-12


ARROWS = np.array([[0, 0, 0], [2, 1, 0], [0, 2, 0], [1, 1, 0], [4, 0, 0], [4, 1, 0]], "f4")
"""An arrow whose fan covers more than it, and a convex quad that has a corner and a side of it."""
QUADS = [[0, 1, 2, 3], [0, 4, 5, 1]]
AREAS = [1.0, 3.0]


@pytest.mark.parametrize("name", ["trimesh", "obj", "ply", "stl", "precomputed"])
@pytest.mark.filterwarnings("ignore::zardine.errors.ZarrUserWarning")
def test_faces_of_a_store_become_triangles_that_cover_them_once(tmp_path: Path, name: str) -> None:
    store = str(tmp_path / "a.zv")
    vectors.write_mesh(store, ARROWS, QUADS, face_attributes={"part": [7, 8]}, chunk_shape=2)
    if name == "trimesh":
        made = vectors.read_mesh(store).to_trimesh()
        corners, part = made.triangles, made.face_attributes["part"]
    else:
        vectors.export_vectors(store, tmp_path / f"a.{name}")
        vectors.import_vectors(tmp_path / f"a.{name}", tmp_path / "b.zv")
        mesh = vectors.read_mesh(tmp_path / "b.zv")
        corners, part = mesh.positions[mesh.faces], mesh.face_attributes.get("part")
    areas = np.array([area(each[:, :2]) for each in corners])
    assert (areas > 0).all()  # a fan covers the arrow's notch, and goes back over it
    assert areas.sum() == pytest.approx(sum(AREAS))
    if part is not None:
        assert [areas[part == each].sum() for each in (7, 8)] == pytest.approx(AREAS)


def test_faces_of_different_numbers_of_corners_in_a_ply_file(tmp_path: Path) -> None:
    head = "ply\nformat ascii 1.0\nelement vertex 6\nproperty float x\nproperty float y\nproperty float z\n"
    head += "element face 2\nproperty list uchar int vertex_indices\nproperty int part\nend_header\n"
    rows = "".join("{} {} {}\n".format(*map(float, each)) for each in ARROWS)
    (tmp_path / "a.ply").write_text(f"{head}{rows}3 0 4 1 8\n4 0 1 2 3 7\n")
    with pytest.warns(UserWarning, match="different numbers of corners") as told:
        vectors.import_vectors(tmp_path / "a.ply", tmp_path / "a.zv", chunk_shape=9)
    assert len(told) == 1
    mesh = vectors.read_mesh(tmp_path / "a.zv")
    areas = np.array([area(each[:, :2]) for each in mesh.positions[mesh.faces]])
    part = mesh.face_attributes["part"]
    assert [areas[part == each].tolist() for each in (7, 8)] == [[0.5, 0.5], [2.0]]
    (tmp_path / "a.ply").write_text(f"{head}{rows}3 0 4 1 8\n4 0 1 2 6 7\n")
    with pytest.raises(DataError, match="face 1 names vertices"):
        vectors.import_vectors(tmp_path / "a.ply", tmp_path / "b.zv")
    (tmp_path / "a.ply").write_text(f"{head}{rows}3 0 4 1 8\n2 0 1 7\n")
    with pytest.raises(DataError, match="face 1 has 2 corners"):
        vectors.import_vectors(tmp_path / "a.ply", tmp_path / "b.zv")


def test_sides_that_cross_and_corners_that_coincide_end(tmp_path: Path) -> None:
    for corners in (
        [(0, 0, 0), (1, 1, 0), (1, 0, 0), (0, 1, 0)],
        [(0, 0, 0)] * 5,
        [(0, 0, 0), (1, 0, 0), (2, 0, 0), (3, 0, 0)],
    ):
        assert imported(tmp_path, np.array(corners, float)).shape == (len(corners) - 2, 3, 3)
