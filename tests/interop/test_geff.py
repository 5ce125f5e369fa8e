"""Graphs of GEFF, beside the package that defines the format (where it can be installed)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from zardine import vectors
from zardine.vectors.exchange.formats import export_vectors, import_vectors

geff = pytest.importorskip("geff")
networkx = pytest.importorskip("networkx")


def test_what_we_write_is_valid_and_read(tmp_path: Path) -> None:
    path, out = str(tmp_path / "a.zv"), tmp_path / "out.geff"
    rng = np.random.default_rng(0)
    positions = rng.uniform(0, 10, (50, 3))
    edges = np.stack((np.arange(49), np.arange(1, 50)), axis=1)
    vectors.write_graph(
        path,
        positions,
        edges,
        chunk_shape=4,
        vertex_attributes={"score": np.arange(50), "kind": ["a", "b"] * 25, "vector": rng.normal(0, 1, (50, 2))},
        edge_attributes={"w": np.arange(49) / 7},
        axes=[{"name": name, "unit": "micrometer"} for name in "zyx"],
    )
    export_vectors(path, out)
    geff.validate_structure(str(out))
    graph, metadata = geff.read(str(out), backend="networkx")
    assert (len(graph.nodes), len(graph.edges)) == (50, 49)
    assert [axis.name for axis in metadata.axes] == ["z", "y", "x"]
    found = vectors.read_graph(path)
    for number in (0, 17, 49):
        node = graph.nodes[number]
        assert [node[name] for name in "zyx"] == found.positions[number].tolist()
        assert node["score"] == found.attributes["score"][number]
        assert node["kind"] == found.attributes["kind"][number]
    first, second = (int(each) for each in found.edges[5])
    assert graph.edges[first, second]["w"] == found.edge_attributes["w"][5]


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_we_read_what_it_writes(tmp_path: Path, zarr_format: int) -> None:
    graph = networkx.DiGraph()
    for number in range(20):
        graph.add_node(number + 100, t=number // 4, y=number * 1.5, x=-number / 2.0, label=f"cell {number}")
    graph.add_edges_from(((number + 100, number + 101) for number in range(19)), weight=0.5)
    geff.write(
        graph,
        str(tmp_path / "in.geff"),
        axis_names=["t", "y", "x"],
        axis_units=["second", "micrometer", "micrometer"],
        axis_types=["time", "space", "space"],
        zarr_format=zarr_format,
    )
    path = str(tmp_path / "a.zv")
    import_vectors(tmp_path / "in.geff", path, chunk_shape=5)
    found = vectors.read_graph(path)
    assert sorted(found.attributes["node_id"].tolist()) == list(range(100, 120))
    assert sorted(found.attributes["node_id"][found.edges].tolist()) == [[n, n + 1] for n in range(100, 119)]
    row = int(np.flatnonzero(found.attributes["node_id"] == 107)[0])
    assert found.positions[row].tolist() == [1, 10.5, -3.5]
    assert found.attributes["label"][row] == "cell 7"
    assert vectors.open(path).axes[1]["unit"] == "micrometer"
