"""``info`` counts the links that reading gives, whichever chunks cut the objects in pieces."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from zardine import vectors
from zardine.cli.commands import root

COUNT = 500
PARENTS = np.array([-1, *(max(0, i - 1 - i % 3) for i in range(1, COUNT))])
PARENTS[300] = -1
POSITIONS = np.cumsum(np.random.default_rng(1).normal(size=(COUNT, 3)), axis=0)


def write(kind: str, path: str, size: float) -> int:
    """Write a store and return how many links reading gives."""
    chunks = (size,) * 3
    if kind == "skeleton":
        vectors.write_skeleton(path, POSITIONS, PARENTS, chunk_shape=chunks)
        return int((vectors.read_skeleton(path).parents >= 0).sum())
    if kind == "polylines":
        vectors.write_polylines(path, [POSITIONS[:200], POSITIONS[200:]], chunk_shape=chunks)
        return int((np.diff(vectors.read_polylines(path).starts) - 1).sum())
    vectors.write_graph(path, POSITIONS, np.stack([np.arange(1, COUNT), np.arange(COUNT - 1)], 1), chunk_shape=chunks)
    return len(vectors.read_graph(path).edges)


@pytest.mark.parametrize("kind", ["skeleton", "polylines", "graph"])
def test_links_are_those_that_reading_gives(tmp_path: Path, kind: str) -> None:
    found = []
    for size in (3, 20, 1000):
        path = str(tmp_path / f"{size}.zv")
        links = write(kind, path, size)
        [level] = vectors.describe_store(path)["levels"]
        assert (level["links"], level["links_counted"]) == (links, True)
        assert vectors.describe_store(path, sizes=True)["levels"][0]["links"] == links
        found.append(links)
    assert len(set(found)) == 1


def test_info_says_so(tmp_path: Path) -> None:
    path = str(tmp_path / "a.zv")
    write("skeleton", path, 3)
    assert "498 links" in CliRunner().invoke(root, ["info", str(path)]).stdout


def test_a_damaged_index_leaves_an_estimate(tmp_path: Path) -> None:
    path = tmp_path / "a.zv"
    write("skeleton", str(path), 3)
    for file in (path / "0/vertex_fragments").rglob("*"):
        if file.is_file() and file.name != "zarr.json":
            file.write_bytes(b"damaged")
    [level] = vectors.describe_store(str(path))["levels"]
    assert level["links_counted"] is False
    assert abs(level["links"] - 498) <= 2
    assert f"about {level['links']} links" in CliRunner().invoke(root, ["info", str(path)]).stdout
