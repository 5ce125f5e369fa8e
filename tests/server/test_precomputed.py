"""What neuroglancer asks a server for: Zarr Vectors as annotations, skeletons and meshes, made while it asks."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zardine
from zardine import vectors
from zardine.vectors.exchange.formats import export_vectors, import_vectors


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "all"
    zardine.create_group(root)
    rng = np.random.default_rng(0)
    positions = rng.uniform(0, 100, (1200, 3)).astype("f4")
    vectors.write_points(str(root / "points"), positions, object_ids=np.arange(1200) + 5, chunk_shape=50)
    above = np.arange(60) - 1
    above[::20] = -1
    owners = np.repeat([3, 4, 5], 20)
    vectors.write_skeleton(str(root / "deep/trees"), positions[:60], above, object_ids=owners, chunk_shape=50)
    vectors.write_mesh(str(root / "mesh"), positions[:6], [[0, 1, 2], [3, 4, 5]], chunk_shape=50)
    return root


@pytest.fixture
def server(folder: Path) -> Iterator[Any]:
    with zardine.serve(folder) as running:
        yield running


def ask(server: Any, path: str) -> bytes:
    with urllib.request.urlopen(f"{server.url}precomputed/all/{path}", timeout=20) as answer:
        found: bytes = answer.read()
        return found


@pytest.mark.parametrize("name", ["points", "deep/trees", "mesh"])
def test_the_same_as_an_export(server: Any, folder: Path, tmp_path: Path, name: str) -> None:
    out = tmp_path / "out"
    export_vectors(str(folder / name), out, format="precomputed", sharded=None if name == "mesh" else False)
    files = [each for each in out.rglob("*") if each.is_file()]
    for each in files[:: max(1, len(files) // 40)]:
        found = ask(server, f"{name}/{each.relative_to(out)}")
        if each.name == "info":
            document = json.loads(each.read_text())
            document.pop("zardine_export", None)  # says of an export of which plan it is
            assert json.loads(found) == document
        else:
            assert found == each.read_bytes()
    import_vectors(f"precomputed://{server.url}precomputed/all/{name}", str(tmp_path / "again.zv"))
    assert len(vectors.open(str(tmp_path / "again.zv"))) == len(vectors.open(str(folder / name)))


def test_what_is_not_there(server: Any) -> None:
    for path in (
        *("", "info", "points", "points/", "points/by_id/4", "points/by_id/+5", "points/by_id/05", "points/by_id/5/6"),
        *(
            "points/by_id/99999999999999999999999",
            "points/spatial0/0",
            "points/spatial0/9_9_9",
            "points/../points/info",
        ),
        *("deep/info", "deep/trees/7", "mesh/0", "mesh/0:1", "nothing/info", "points/zarr.json"),
    ):
        with pytest.raises(urllib.error.HTTPError) as found:
            ask(server, path)
        assert found.value.code == 404, path
        found.value.close()


@pytest.mark.parametrize("kind", ["polylines", "mesh"])
def test_what_neuroglancer_has_no_form_for(tmp_path: Path, kind: str) -> None:
    """The reason is told, as of no fault of the server."""
    flat = np.random.default_rng(0).uniform(0, 9, (6, 2))
    if kind == "mesh":
        vectors.write_mesh(str(tmp_path / "all"), flat, [[0, 1, 2], [3, 4, 5]], chunk_shape=5)
    else:
        vectors.write_polylines(str(tmp_path / "all"), [flat], chunk_shape=5)
    with zardine.serve(tmp_path / "all") as server, pytest.raises(urllib.error.HTTPError) as found:
        ask(server, "info")
    assert found.value.code == 422
    assert b"info has no form for neuroglancer: the store has 2 axes" in found.value.read()
    found.value.close()


def test_a_store_that_changes(server: Any, folder: Path) -> None:
    assert len(ask(server, "points/by_id/5")) == 12
    vectors.append_points(str(folder / "points"), [[1, 2, 3]], object_ids=[7000])
    assert np.frombuffer(ask(server, "points/by_id/7000"), "<f4").tolist() == [1, 2, 3]
    vectors.delete(str(folder / "deep/trees"), object_ids=[4])
    ids = json.loads(ask(server, "deep/trees/segment_properties/info"))["inline"]["ids"]
    assert ids == ["3", "5"]


def test_damage_is_told(server: Any, folder: Path) -> None:
    for each in (folder / "points/0/vertices/c").rglob("*"):
        if each.is_file():
            each.write_bytes(bytes(each.stat().st_size))
    with pytest.raises(urllib.error.HTTPError) as found:
        ask(server, "points/info")
    assert found.value.code == 500
    assert b"Error" in found.value.read()
    found.value.close()
