"""Stores that zarr-vectors 0.9.2 wrote read as their bytes, decoded by hand, say."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from vectors.geometry_samples import links
from zardine import vectors
from zardine.errors import CorruptionError


def test_points_with_bins_and_attributes(golden: Path) -> None:
    found = vectors.read_points(str(golden / "p1.zv"), chunks=[(0, 0, 0)])
    assert found.attributes["intensity"].tolist() == [0, 10, 20, 30, 70]
    assert found.attributes["rgb"].tolist() == [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9, 10, 11], [21, 22, 23]]
    assert found.positions.dtype == np.float32
    assert len(vectors.read_points(str(golden / "p1.zv"))) == 8


def test_points_of_objects_in_float64_with_text_and_groups(golden: Path) -> None:
    path = str(golden / "po.zv")
    found = vectors.read_points(path)
    assert found.positions.dtype == np.float64
    assert vectors.read_points(path, chunks=[(1, 0, 0)]).positions.tolist() == [[12, 2, 3], [13, 3, 3]]
    assert vectors.read_points(path, chunks=[(-1, 0, 0)]).attributes["cls"].tolist() == ["b", "b"]
    assert found.object_ids is not None
    assert found.object_ids.tolist() == [7, 7, 3, 5000000000, 7]
    assert vectors.read_points(path, object_ids=[5000000000]).positions.tolist() == [[13, 3, 3]]
    assert len(vectors.read_points(path, group_ids=[0])) == 4


@pytest.mark.parametrize(("name", "positions"), [("d2", [[1, 5], [5, 25]]), ("d1", [[1], [5]])])
def test_one_and_two_axes(golden: Path, name: str, positions: list[list[float]]) -> None:
    found = vectors.read_points(str(golden / f"{name}.zv")).positions
    assert found.shape[1] == len(positions[0])
    if name == "d2":
        assert vectors.read_points(str(golden / "d2.zv"), chunks=[(0, 2)]).positions.tolist() == [[5, 25]]


def test_explicit_fragments_name_rows_more_than_once(golden: Path) -> None:
    assert len(vectors.read_points(str(golden / "ex.zv"))) == 5


def test_polylines(golden: Path) -> None:
    found = vectors.read_polylines(str(golden / "pl.zv"))
    assert found[0].tolist() == [[1, 1, 1], [5, 5, 5], [12, 5, 5], [18, 5, 5], [5, 6, 6]]
    assert found[1].tolist() == [[2, 2, 2], [3, 3, 3]]
    assert found.attributes["fa"].tolist() == [0, 1, 2, 3, 4, 9, 8]
    assert found.object_attributes["len"].tolist() == [5, 2]
    sharded = vectors.read_polylines(str(golden / "pls.zv"))
    assert sharded[0].tolist() == [[1, 1, 1], [12, 1, 1], [25, 1, 1]]
    assert vectors.read_lines(str(golden / "l.zv")).tolist() == [[[1, 1, 1], [2, 2, 2]], [[3, 3, 3], [13, 3, 3]]]


def test_graph_with_edge_attribute(golden: Path) -> None:
    found = vectors.read_graph(str(golden / "g.zv"))
    told = links(found.positions, found.edges, found.edge_attributes["weight"].round(3))
    assert (1, 1, 1, 2, 2, 2) in [each[:6] for each in told]
    assert sorted(round(each[6], 2) for each in told) == [0.1, 0.2, 0.3, 0.4, 0.5]
    joined = {frozenset({each[:3], each[3:6]}): round(each[6], 2) for each in told}
    assert joined[frozenset({(1, 1, 1), (11, 1, 1)})] == 0.2


def test_directed_links_in_several_groups(golden: Path) -> None:
    found = vectors.read_graph(str(golden / "lk2.zv"))
    assert sorted(map(tuple, found.edges.tolist())) == [(0, 2), (1, 2), (2, 1)]


def test_mesh_keeps_the_order_of_corners(golden: Path) -> None:
    found = vectors.read_mesh(str(golden / "m.zv"))
    faces = [found.positions[face].tolist() for face in found.faces]
    assert [[12, 1, 1], [5, 1, 1], [1, 1, 1]] in faces
    assert len(faces) == 3


def test_skeletons_are_connected_across_chunks(golden: Path) -> None:
    found = vectors.read_skeleton(str(golden / "sk.zv"))
    assert found.parents.tolist() == [-1, 0, 1, 1, 2]
    pieces = vectors.read_skeleton(str(golden / "ss.zv"))
    assert pieces.parents.tolist() == [-1, 0, 1, 1, -1, 4, 2]
    world = vectors.read_skeleton(str(golden / "ss.zv"), world=True).positions
    assert np.array_equal(world, pieces.positions + np.array([100.0, 0, 0]))


def test_levels_and_links_between_them(golden: Path) -> None:
    path = str(golden / "ps.zv")
    points = [vectors.read_points(path, level=level) for level in (0, 1, 2)]
    assert [len(each) for each in points] == [2000, 429, 64]
    for level, delta, size in ((0, 1, 100), (0, 2, 200), (1, 1, 200), (1, -1, 100), (2, -1, 200), (2, -2, 200)):
        ends = vectors.read_cross_level_links(path, level, delta)
        apart = points[level].positions[ends[:, 0]] - points[level + delta].positions[ends[:, 1]]
        assert np.abs(apart).max() <= size
    assert len(vectors.read_cross_level_links(path, 0, 1)) == 1857


def test_parametric_objects(golden: Path) -> None:
    plane, sphere = vectors.read_parametric_objects(str(golden / "par.zv"))
    assert (plane.type, plane.coefficients.tolist()) == ("plane", [1, 0, 0, -5])
    assert (sphere.type, sphere.name, sphere.coefficients.tolist()) == ("sphere", "S", [1, 2, 3, 4])


def test_what_a_conversion_lost_is_not_passed_over(golden: Path) -> None:
    with pytest.raises(CorruptionError, match="lost"):
        vectors.read_points(str(golden / "st.zv"))


@pytest.mark.parametrize("name", ["p1", "po", "d1", "d2", "g", "l", "lk2", "m", "pl", "pls", "sk", "ss", "ps", "par"])
def test_validate_finds_no_fault(golden: Path, name: str) -> None:
    report = vectors.validate(str(golden / f"{name}.zv"))
    assert report.ok, report.findings
