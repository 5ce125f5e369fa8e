"""Stores that zarr-vectors 0.9.2 wrote or changed in ways of its own, and what other programs believe of ours."""

from __future__ import annotations

import json
import shutil
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zardine
from zardine import vectors
from zardine.errors import CorruptionError, SelectionError, UnsupportedError
from zardine.storage import MemoryStore
from zardine.tools.report import Repairs

P = np.arange(12, dtype="f4").reshape(4, 3)
RGB = np.arange(1, 13, dtype="u1").reshape(4, 3)


def theirs(path: str, **columns: Any) -> None:
    write = pytest.importorskip("zarr_vectors.types.graphs").write_graph
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        write(path, P, np.array([[0, 1], [1, 3]]), chunk_shape=(100.0,) * 3, vertex_attributes=columns)


def document(path: str, node: str) -> Any:
    return json.loads(Path(path, node, "zarr.json").read_text())


def set_document(path: str, node: str, changed: Any) -> None:
    Path(path, node, "zarr.json").write_text(json.dumps(changed))


def test_colours_of_graphs_are_read_though_their_document_says_one_value_a_row(tmp_path: Path) -> None:
    path = str(tmp_path / "g.zv")
    theirs(path, rgb=RGB)
    assert document(path, "0/vertex_attributes/rgb")["attributes"]["row_shape"] == []
    assert vectors.read_graph(path).attributes["rgb"].tolist() == RGB.tolist()
    assert vectors.validate(path).errors == ()
    vectors.delete(path, bbox=(P[0], P[0]))
    assert vectors.read_graph(path).attributes["rgb"].tolist() == RGB[1:].tolist()
    assert document(path, "0/vertex_attributes/rgb")["attributes"]["row_shape"] == [3]


def test_more_values_than_rows_are_an_error() -> None:
    store = MemoryStore()
    vectors.write_points(store, P, chunk_shape=100, vertex_attributes={"n": np.arange(4)}, checksum=False)
    (key,) = (key for key in store.list() if key.startswith("0/vertex_attributes/n/c/"))
    data = bytes(store.get(key) or b"")
    for more in (b"\0" * 8, b"\0" * 24):
        longer = data[8:] + more
        store.set(key, (1).to_bytes(4, "little") + len(longer).to_bytes(4, "little") + longer)
        with pytest.raises(CorruptionError, match="no longer belong together"):
            vectors.read_points(store)
        with pytest.raises(CorruptionError, match="no longer belong together"):
            vectors.append_points(store, P)


def test_text_of_a_fixed_length_is_read_and_kept(tmp_path: Path) -> None:
    path = str(tmp_path / "g.zv")
    texts = ["a", "bc", "", "dé"]
    theirs(path, t=np.array(texts))
    assert document(path, "0/vertex_attributes/t")["attributes"]["dtype"].startswith("<U")
    assert vectors.read_graph(path).attributes["t"].tolist() == texts
    assert vectors.validate(path).errors == ()
    assert vectors.repair(path) == Repairs((), (), dry_run=False)
    assert len(vectors.read_graph(path, where={"t": ["bc", "dé"]})) == 2
    vectors.append_graph(path, [[1, 1, 1]], np.zeros((0, 2), int), vertex_attributes={"t": ["new"]})
    assert sorted(vectors.read_graph(path).attributes["t"].tolist()) == sorted([*texts, "new"])


@pytest.mark.parametrize("values", [np.arange(4).astype("M8[s]"), np.arange(4) * 1j])
def test_what_cannot_be_read_is_named_and_hides_nothing_else(tmp_path: Path, values: np.ndarray[Any, Any]) -> None:
    path = str(tmp_path / "g.zv")
    theirs(path, odd=values)
    with pytest.raises(UnsupportedError, match="odd"):
        vectors.read_graph(path)
    assert len(vectors.read_graph(path, attributes=None)) == 4


def test_fixed_text_that_is_damaged(tmp_path: Path) -> None:
    path = str(tmp_path / "g.zv")
    theirs(path, t=np.array(["a", "bc", "d", "e"]))
    node = document(path, "0/vertex_attributes/t")
    for dtype in ("<U0", "<U999999999", ">q3", "<S3"):
        set_document(path, "0/vertex_attributes/t", {**node, "attributes": {**node["attributes"], "dtype": dtype}})
        with pytest.raises(CorruptionError):
            vectors.read_graph(path)
    (cell,) = (each for each in Path(path, "0/vertex_attributes/t/c").rglob("*") if each.is_file())
    cell.write_bytes(cell.read_bytes()[:8] + b"\xff" * (len(cell.read_bytes()) - 8))
    set_document(path, "0/vertex_attributes/t", node)
    with pytest.raises(CorruptionError):
        vectors.read_graph(path)


def test_an_object_that_was_added_without_values_has_none_after_repair(tmp_path: Path) -> None:
    path = str(tmp_path / "g.zv")
    vectors.write_points(path, P, chunk_shape=5, object_ids=[0, 1, 2, 2], object_attributes={"w": [1.0, 2, 3]})
    table = zardine.open_array(f"{path}/0/object_attributes/w")
    table.resize((2,))
    with pytest.raises(CorruptionError, match="2"):
        vectors.read_objects(path)
    assert "object-attribute" in vectors.validate(path).codes
    (done,) = vectors.repair(path).actions
    assert str(done) == "0: repaired: object_attributes/w: filled up 1 missing rows"
    assert np.isnan(vectors.read_objects(path).attributes["w"]).tolist() == [False, False, True]


def test_points_in_the_wrong_chunk_are_told_of_by_repair() -> None:
    store = MemoryStore()
    vectors.write_points(store, P, chunk_shape=6, checksum=False)
    key, other = sorted(key for key in store.list() if key.startswith("0/vertices/c/"))[:2]
    first, second = bytes(store.get(key) or b""), bytes(store.get(other) or b"")
    store.set(key, second)
    store.set(other, first)
    assert "outside-chunk" in vectors.validate(store).codes
    assert any("boxes may miss them" in each.message for each in vectors.repair(store).left)


@pytest.mark.parametrize("family", ["vertex_attributes", "object_attributes"])
def test_the_last_attribute_that_is_lost_is_missed(tmp_path: Path, family: str) -> None:
    path = str(tmp_path / "a.zv")
    vectors.write_points(
        path,
        P,
        chunk_shape=5,
        vertex_attributes={"a": np.arange(4)},
        object_ids=[0, 1, 2, 3],
        object_attributes={"a": P},
    )
    assert vectors.validate(path).findings == ()
    shutil.rmtree(f"{path}/0/{family}/a")
    assert "attributes-lost" in vectors.validate(path).codes


def test_arrays_of_others_are_left_alone(tmp_path: Path) -> None:
    path = str(tmp_path / "a.zv")
    vectors.write_points(path, P, chunk_shape=5)
    for name, chunks in (("extra", (1,)), ("more", (3,))):
        array = zardine.create_array(f"{path}/0/{name}", shape=(6,), chunks=chunks, dtype="variable_length_bytes")
        array[:] = np.array([b"x"] * 6, object)
    before = {name: document(path, f"0/{name}") for name in ("extra", "more")}
    assert vectors.shard_store(path, 4)["arrays_sharded"] == 2
    assert sorted(vectors.get_shard_info(path)) == ["0/vertex_fragments", "0/vertices"]
    assert vectors.repair(path) == Repairs((), (), dry_run=False)
    assert vectors.validate(path).findings == ()
    assert {name: document(path, f"0/{name}") for name in ("extra", "more")} == before


CHANGES: dict[str, Any] = {
    "shard": lambda path: vectors.shard_store(path, 4),
    "append": lambda path: vectors.append_points(path, P + 1),
    "pyramid": lambda path: vectors.build_pyramid(path),
    "parametric": lambda path: vectors.write_parametric_objects(path, []),
    "delete": lambda path: vectors.delete(path, bbox=(P[0], P[0])),
}


@pytest.mark.parametrize("change", CHANGES)
def test_consolidated_metadata_goes_before_it_becomes_false(tmp_path: Path, change: str) -> None:
    path = str(tmp_path / "a.zv")
    vectors.write_points(path, P, chunk_shape=5)
    zardine.consolidate_metadata(path)
    assert vectors.repair(path) == Repairs((), (), dry_run=False)
    assert vectors.validate(path).findings == ()
    assert document(path, "")["consolidated_metadata"]
    CHANGES[change](path)
    assert document(path, "").get("consolidated_metadata") is None
    assert vectors.validate(path).findings == ()


def test_consolidated_metadata_that_is_false_is_found_and_removed(tmp_path: Path) -> None:
    path = str(tmp_path / "a.zv")
    vectors.write_points(path, P, chunk_shape=5)
    zardine.consolidate_metadata(path)
    node = document(path, "0/vertices")
    node["attributes"]["mine"] = 1
    set_document(path, "0/vertices", node)
    assert vectors.validate(path).codes == {"consolidated"}
    (done,) = vectors.repair(path).actions
    assert "removed consolidated metadata" in done.message
    assert vectors.validate(path).findings == ()


def test_readers_refuse_stores_of_another_geometry() -> None:
    write: dict[str, Any] = {
        "point_cloud": lambda store: vectors.write_points(store, P, chunk_shape=5),
        "streamline": lambda store: vectors.write_polylines(store, [P], chunk_shape=5),
        "graph": lambda store: vectors.write_graph(store, P, [[0, 1]], chunk_shape=5),
        "skeleton": lambda store: vectors.write_skeleton(store, P, [-1, 0, 1, 2], chunk_shape=5),
        "mesh": lambda store: vectors.write_mesh(store, P, [[0, 1, 2]], chunk_shape=5),
    }
    readers: dict[str, Any] = {
        "streamline": vectors.read_polylines,
        "graph": vectors.read_graph,
        "skeleton": vectors.read_skeleton,
        "mesh": vectors.read_mesh,
    }
    for held, make in write.items():
        store = MemoryStore()
        make(store)
        assert len(vectors.read_points(store)) == 4
        for wanted, read in readers.items():
            if wanted == held or (wanted, held) in (("graph", "skeleton"), ("graph", "point_cloud")):
                read(store)
            else:
                with pytest.raises(SelectionError, match=f"holds a {held}: see read_"):
                    read(store)
