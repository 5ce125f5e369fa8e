"""GEFF: graphs and tracks in and out, as the specification has them, and what is told of the rest."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

from zardine import vectors
from zardine.errors import DataError, NodeExistsError, ZarrUserWarning
from zardine.vectors.exchange.formats import export_vectors, import_vectors

AXES = [{"name": "t", "type": "time", "unit": "second"}, {"name": "y", "type": "space", "unit": "micrometer"}]


def recorded(call: Any, *arguments: Any, **options: Any) -> str:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        call(*arguments, **options)
    return "\n".join(str(each.message) for each in found if each.category is ZarrUserWarning)


def written(path: Path, zarr_format: Any = 2, **changes: Any) -> Path:
    """A graph of four nodes and three edges, by zarr-python; ``changes`` are arrays by their paths."""
    arrays: dict[str, Any] = {
        "nodes/ids": np.array([10, 7, 99, 4], "u8"),
        "nodes/props/t/values": np.array([0, 1, 1, 2], "i4"),
        "nodes/props/y/values": np.array([0.5, 1.5, 2.5, 3.5]),
        "nodes/props/score/values": np.array([1, 2, 3, 4], "i4"),
        "nodes/props/score/missing": np.array([False, True, False, False]),
        "nodes/props/line/values": np.array([1, 1, 2, 1], "i8"),
        "nodes/props/shape/values": np.zeros((4, 2), "u8"),
        "nodes/props/shape/data": np.zeros(3),
        "edges/ids": np.array([[10, 7], [10, 99], [7, 4]], "u8"),
        "edges/props/w/values": np.array([0.1, 0.2, 0.3], "f4"),
        **changes,
    }
    root = zarr.open_group(str(path), mode="w", zarr_format=zarr_format)
    for name, values in arrays.items():
        if values is not None:
            root.create_array(name, data=values)
    root.attrs["geff"] = {
        "geff_version": "1.1",
        "directed": True,
        "axes": AXES,
        "track_node_props": {"lineage": "line"},
        "node_props_metadata": {},
        "edge_props_metadata": {},
        "extra": {"made": "by hand"},
    }
    return path


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_in_and_out(tmp_path: Path, zarr_format: int) -> None:
    source, path = written(tmp_path / "in.zarr", zarr_format), str(tmp_path / "a.zv")
    seen: list[tuple[int, int]] = []
    text = recorded(import_vectors, source, path, chunk_shape=2, progress=lambda *step: seen.append(step))
    assert "'nodes/props/shape' is left out" in text
    assert seen[-1] == (2000, 2000)
    found = vectors.read_graph(path)
    by_id = {int(number): row for row, number in enumerate(found.attributes["node_id"].tolist())}
    assert found.positions[[by_id[10], by_id[99]]].tolist() == [[0, 0.5], [1, 2.5]]
    pairs = list(map(tuple, found.attributes["node_id"][found.edges].tolist()))
    weights = dict(zip(pairs, found.edge_attributes["w"].tolist(), strict=True))
    assert weights == dict(zip([(10, 7), (10, 99), (7, 4)], np.array([0.1, 0.2, 0.3], "f4").tolist(), strict=True))
    assert np.isnan(found.attributes["score"][by_id[7]])
    assert found.object_ids is not None
    assert found.object_ids[by_id[99]] == 2
    assert vectors.open(path).axes == AXES
    out, again = tmp_path / "out.geff", str(tmp_path / "b.zv")
    assert recorded(export_vectors, path, out, progress=lambda *step: seen.append(step)) == ""
    assert seen[-1][0] == seen[-1][1]
    about = zarr.open_group(str(out), mode="r").attrs["geff"]
    assert about["directed"] is True
    assert about["track_node_props"] == {"lineage": "line"}
    assert about["extra"] == {"made": "by hand"}
    assert about["axes"][1] == {**AXES[1], "min": 0.5, "max": 3.5}
    assert about["node_props_metadata"]["line"]["dtype"] == "int64"
    import_vectors(out, again, chunk_shape=2)
    same = vectors.read_graph(again)
    assert (same.positions == found.positions).all()
    assert (same.edges == found.edges).all()
    assert set(same.attributes) == set(found.attributes)
    with pytest.raises(NodeExistsError, match="overwrite=True"):
        export_vectors(path, out)
    export_vectors(path, out, overwrite=True)


def test_attributes_that_are_called_as_axes_and_ids(tmp_path: Path) -> None:
    points, path = np.arange(12.0).reshape(4, 3), str(tmp_path / "a.zv")
    values = {"z": ["a", "b", "c", "d"], "node_id": [-1, 2, 2, 7], "q": [1, 2, 3, 4]}
    vectors.write_graph(path, points, [[0, 1]], chunk_shape=50, vertex_attributes=values)
    text = recorded(export_vectors, path, tmp_path / "a.geff")
    assert "attributes cannot be kept: 'node_id': ids of nodes" in text
    assert "attributes cannot be kept: 'z': axes are called so" in text
    assert recorded(import_vectors, tmp_path / "a.geff", str(tmp_path / "b.zv"), chunk_shape=50) == ""
    assert sorted(vectors.read_graph(str(tmp_path / "b.zv")).attributes) == ["node_id", "q"]
    other = written(tmp_path / "b.geff", **{"nodes/props/node_id/values": np.arange(4)})
    text = recorded(import_vectors, other, str(tmp_path / "c.zv"), chunk_shape=50)
    assert "'nodes/props/node_id' is left out: ids of nodes are called so" in text


def test_text_lines_and_skeletons(tmp_path: Path) -> None:
    path, out = str(tmp_path / "a.zv"), tmp_path / "out.geff"
    lines = [np.arange(6.0).reshape(3, 2), np.ones((1, 2)), np.arange(8.0).reshape(4, 2)]
    words = ["a", None, "b", "c", "d", "e", "f", "g"]
    vectors.write_polylines(path, lines, chunk_shape=20, object_ids=[5, 8, 6], vertex_attributes={"word": words})
    export_vectors(path, out)
    root = zarr.open_group(str(out), mode="r")
    assert root["nodes/ids"].shape == (8,)  # type: ignore[union-attr]
    assert root["edges/ids"][:].tolist() == [[0, 1], [1, 2], [4, 5], [5, 6], [6, 7]]  # type: ignore[index, union-attr]
    assert root["nodes/props/object_id/values"][:].tolist() == [5, 5, 5, 8, 6, 6, 6, 6]  # type: ignore[index, union-attr]
    assert root.attrs["geff"]["track_node_props"] == {"tracklet": "object_id"}  # type: ignore[index, call-overload]
    import_vectors(out, str(tmp_path / "b.zv"), chunk_shape=20)
    found = vectors.read_graph(str(tmp_path / "b.zv"))
    assert sorted(map(str, found.attributes["word"].tolist())) == sorted(map(str, words))
    assert found.object_ids is not None
    assert sorted(found.object_ids.tolist()) == [5, 5, 5, 6, 6, 6, 6, 8]
    vectors.write_skeleton(path, np.eye(3), [-1, 0, 1], chunk_shape=2, overwrite=True)
    export_vectors(path, out, overwrite=True)
    assert zarr.open_group(str(out), mode="r")["edges/ids"].shape == (2, 2)  # type: ignore[union-attr]
    vectors.write_points(path, np.eye(3), chunk_shape=2, overwrite=True)
    with pytest.raises(DataError, match="holds a point_cloud"):
        export_vectors(path, out, overwrite=True)


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"nodes/ids": np.array([1, 1, 2, 3])}, "each there once"),
        ({"nodes/ids": np.array([1.0, 2, 3, 4])}, "whole numbers"),
        ({"nodes/ids": None}, "nodes/ids is missing"),
        ({"edges/ids": np.array([[10, 7], [10, 99], [7, 5]])}, "name nodes that are not among nodes/ids"),
        ({"edges/ids": np.arange(3)}, "pairs of ids"),
        ({"nodes/props/y/values": np.arange(3.0)}, "has 3 rows, not 4"),
        ({"nodes/props/y/values": np.array([0, np.nan, 1, 2])}, "one finite number for each node"),
        ({"nodes/props/y/values": np.zeros((4, 2))}, "one finite number for each node"),
        ({"nodes/props/score/missing": np.zeros((4, 2), "?")}, "a truth value for each of 4 rows"),
        ({"edges/props/w/values": np.zeros(9)}, "has 9 rows, not 3"),
    ],
)
def test_graphs_that_are_none(tmp_path: Path, changes: dict[str, Any], text: str) -> None:
    source = written(tmp_path / "in.geff", **changes)
    with pytest.raises(DataError, match=text):
        recorded(import_vectors, source, str(tmp_path / "a.zv"), chunk_shape=2)
    assert not (tmp_path / "a.zv").exists()


def test_groups_that_are_none(tmp_path: Path) -> None:
    root = zarr.open_group(str(tmp_path / "in.geff"), mode="w")
    with pytest.raises(DataError, match="no graph of GEFF"):
        import_vectors(tmp_path / "in.geff", str(tmp_path / "a.zv"))
    root.attrs["geff"] = {"axes": [{}]}
    with pytest.raises(DataError, match="axes are 1 to 4 tables"):
        import_vectors(tmp_path / "in.geff", str(tmp_path / "a.zv"))
    huge = written(tmp_path / "huge.geff", **{"nodes/ids": None})
    zarr.open_group(str(huge)).create_array("nodes/ids", shape=(2**50,), chunks=(2**20,), dtype="u8")
    with pytest.raises(DataError, match="more than the"):
        import_vectors(huge, str(tmp_path / "a.zv"))


def test_what_a_group_says_beside_the_graph_is_told(tmp_path: Path) -> None:
    path = written(tmp_path / "a.geff")
    root = zarr.open_group(str(path), mode="r+")
    root.attrs["licence"] = "CC0"
    root.attrs["geff"] = {**root.attrs["geff"], "mood": "good", "polygon": None}
    told = recorded(import_vectors, str(path), str(tmp_path / "a.zv"), chunk_shape=9)
    assert "no place for it: 'licence', 'mood' of 'geff'\n" in f"{told}\n"
