"""Faces of more than three corners are cut into triangles that cover them once, concave ones too."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zardine import vectors

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
    from zardine.vectors.exchange.polygons import triangles_of

    angles = np.arange(len(radii)) * 2 * np.pi / len(radii)
    flat = np.stack([np.cos(angles), np.sin(angles)], axis=1) * np.array(radii)[:, None]
    cut = triangles_of(np.insert(flat, 1, 0.0, axis=1)[:, [0, 2, 1]])
    areas = [area(flat[list(each)]) for each in cut]
    assert len(cut) == len(radii) - 2
    assert sum(areas) == pytest.approx(area(flat))
    assert min(areas) >= -1e-12


def test_sides_that_cross_and_corners_that_coincide_end(tmp_path: Path) -> None:
    for corners in (
        [(0, 0, 0), (1, 1, 0), (1, 0, 0), (0, 1, 0)],
        [(0, 0, 0)] * 5,
        [(0, 0, 0), (1, 0, 0), (2, 0, 0), (3, 0, 0)],
    ):
        assert imported(tmp_path, np.array(corners, float)).shape == (len(corners) - 2, 3, 3)
