"""Folders of neuroglancer that were made to be misread: too many, too large, somewhere else, twice."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from vectors.source_files import precomputed
from vectors.test_import_plans import told
from zardine import vectors
from zardine.errors import CorruptionError, DataError, ZardineError
from zardine.storage import LocalStore, MemoryStore, Store, StorePath
from zardine.vectors.exchange.formats import import_vectors, plan_import
from zardine.vectors.exchange.precomputed import portions, reading
from zardine.vectors.exchange.precomputed.annotations import AnnotationInfo, Annotations

POINTS: dict[str, Any] = {
    "@type": "neuroglancer_annotations_v1",
    "dimensions": {"x": [1e-9, "m"], "y": [1e-9, "m"], "z": [1e-9, "m"]},
    "lower_bound": [0, 0, 0],
    "upper_bound": [9, 9, 9],
    "annotation_type": "point",
    "properties": [],
    "relationships": [],
    "by_id": {"key": "by_id"},
    "spatial": [{"key": "spatial0", "grid_shape": [1, 1, 1], "chunk_size": [9, 9, 9], "limit": 9}],
}
SHARDING = {
    "@type": "neuroglancer_uint64_sharded_v1",
    "preshift_bits": 0,
    "hash": "identity",
    "minishard_bits": 0,
    "shard_bits": 0,
}


def cell(ids: list[int], changes: dict[str, Any], values: dict[str, Any] | None = None) -> dict[str, bytes]:
    """A folder with one cell."""
    document = {**POINTS, **changes}
    info = AnnotationInfo.parse(document, "here")
    geometry = np.arange(3 * len(ids), dtype="f4").reshape(-1, 1, 3)
    found = Annotations(np.array(ids, np.uint64), geometry, values or {})
    listed = len(ids).to_bytes(8, "little") + found.records(info).tobytes() + found.ids.tobytes()
    return {"info": json.dumps(document).encode(), "spatial0/0_0_0": listed}


def stored(values: dict[str, bytes], prefix: str = "") -> MemoryStore:
    store = MemoryStore()
    for key, value in values.items():
        store.set(prefix + key, value)
    return store


@pytest.mark.parametrize(
    "key", ["\ud800", "a\nb", "a" * 5000, "..\\..\\x", "C:", "%2e%2e/x", "/etc", "~", "a//b", ".", "...", " ", "info"]
)
@pytest.mark.parametrize("what", ["by_id", "spatial", "segment_properties", "fragments"])
def test_keys_that_name_something_else(key: str, what: str, tmp_path: Path) -> None:
    """Whatever a key is, nothing outside of the folder is read, and what is wrong is one of our errors."""
    outside, path = tmp_path / "x", tmp_path / "in" / "deep"
    outside.mkdir()
    (outside / "info").write_text('{"@type": "neuroglancer_segment_properties", "inline": {"ids": ["7"]}}')
    values = cell([7], {})
    if what == "by_id":
        values["info"] = json.dumps({**POINTS, "spatial": [], "by_id": {"key": key}}).encode()
    elif what == "spatial":
        values["info"] = json.dumps({**POINTS, "spatial": [{**POINTS["spatial"][0], "key": key}]}).encode()
    else:
        about = {"@type": "neuroglancer_legacy_mesh"}
        about |= {"segment_properties": key} if what == "segment_properties" else {}
        mesh = (3).to_bytes(4, "little") + np.eye(3, dtype="<f4").tobytes() + np.arange(3, dtype="<u4").tobytes()
        values = {"info": json.dumps(about).encode(), "7:0:0": mesh}
        values["7:0"] = json.dumps({"fragments": [key if what == "fragments" else "7:0:0"]}).encode()
    for name, value in values.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(value)
    folders: list[Store | StorePath | str] = [str(path), StorePath(LocalStore(tmp_path), "in/deep"), stored(values)]
    for folder in folders:
        made = MemoryStore()
        try:
            import_vectors(folder, made, chunk_shape=5)
        except ZardineError:
            assert not list(made.list())


@pytest.mark.parametrize("key", ["../../x", "..", "../../../../../../../../etc", "\0"])
def test_keys_that_lead_out(key: str) -> None:
    about = {"@type": "neuroglancer_legacy_mesh", "segment_properties": key}
    with pytest.raises(DataError, match="leads out of"):
        import_vectors(stored({"info": json.dumps(about).encode()}), MemoryStore(), chunk_shape=5)


def test_numbers_with_zeros_before_them(tmp_path: Path) -> None:
    """A file that only looks like the one of an id is none: no object is there twice."""
    source = precomputed(tmp_path / "in.precomputed", "skeletons", 5)
    number = next(each.name for each in source.iterdir() if each.name.isdecimal())
    (source / f"00{number}").write_bytes((source / number).read_bytes())
    (source / ("9" * 30)).write_bytes(b"")
    import_vectors(source, str(tmp_path / "a.zv"), chunk_shape=100)
    assert len(vectors.read_objects(str(tmp_path / "a.zv")).ids) == 5


def mesh_folder(manifests: dict[int, list[str]], fragments: list[str]) -> dict[str, bytes]:
    mesh = (3).to_bytes(4, "little") + np.eye(3, dtype="<f4").tobytes() + np.arange(3, dtype="<u4").tobytes()
    values = {"info": b'{"@type": "neuroglancer_legacy_mesh"}', **dict.fromkeys(fragments, mesh)}
    return values | {f"{each}:0": json.dumps({"fragments": names}).encode() for each, names in manifests.items()}


@pytest.mark.parametrize(
    ("manifests", "text"),
    [
        ({1: ["a", "./a"]}, "names one part of the mesh twice"),
        ({1: ["a", "b/../a"]}, "names one part of the mesh twice"),
        ({1: ["a"], 2: ["b"], 3: ["./a"]}, "is a part of segment 3 and of another one"),
    ],
)
def test_parts_of_meshes_that_are_read_many_times(manifests: dict[int, list[str]], text: str) -> None:
    """However they are called: a few bytes do not become many meshes."""
    with pytest.raises(CorruptionError, match=text):
        import_vectors(stored(mesh_folder(manifests, ["a", "b"])), MemoryStore(), chunk_shape=5)


def test_parts_of_meshes_with_names_of_their_own(tmp_path: Path) -> None:
    """Names that do not tell of which segment they are do not make all of it one part."""
    names = [f"{number}.ngmesh" for number in range(40)]
    for name, value in mesh_folder({number: [names[number]] for number in range(40)}, names).items():
        (tmp_path / name).write_bytes(value)
    parts = reading.precomputed_parts(tmp_path, {}, 10)
    assert 8 <= parts.count <= 40
    assert sum(len(parts.read(number).positions) for number in range(parts.count)) == 120
    import_vectors(tmp_path, str(tmp_path / "a.zv"), chunk_shape=5)
    assert vectors.read_objects(str(tmp_path / "a.zv")).ids.tolist() == list(range(40))


def test_levels_in_one_folder() -> None:
    level = POINTS["spatial"][0]
    store = stored(cell([7], {"spatial": [level, {**level, "key": "./spatial0"}]}))
    with pytest.raises(DataError, match="levels of the spatial index are in one folder"):
        import_vectors(store, MemoryStore(), chunk_shape=5)


def test_shards_that_are_said_to_be_endless(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The index of a shard is compared with its size, and a size that cannot be is refused before any plan is made."""
    level = {**POINTS["spatial"][0], "sharding": {**SHARDING, "minishard_bits": 32}}
    (tmp_path / "info").write_text(json.dumps({**POINTS, "spatial": [level]}))
    (tmp_path / "spatial0").mkdir()
    with (tmp_path / "spatial0/0.shard").open("wb") as file:
        file.truncate(2**30)
    with pytest.raises(CorruptionError, match="fewer than its index of 68719476736"):
        import_vectors(tmp_path, str(tmp_path / "a.zv"), chunk_shape=5)
    monkeypatch.setattr(portions, "_MOST", 50)
    with pytest.raises(DataError, match=r"too many bytes to be read: 1073741824"):
        plan_import(tmp_path, str(tmp_path / "a.zv"))


def test_names_that_are_taken(tmp_path: Path) -> None:
    """Ids of 64 bits, and labels, beside properties of the same names and forms."""
    properties = [
        {"id": "annotation_id", "type": "uint8"},
        {"id": "hue", "type": "rgb", "enum_values": [1], "enum_labels": ["red"]},
    ]
    values = {"annotation_id": np.array([4, 5], "u1"), "hue": np.array([[1, 1, 1], [0, 1, 0]], "u1")}
    store, path = stored(cell([3, 2**64 - 1], {"properties": properties}, values)), str(tmp_path / "a.zv")
    text = told(lambda: import_vectors(store, path, chunk_shape=5))
    assert "kept as the attribute 'annotation_id_'" in text
    assert "labels of 'hue' are left out: it is a colour" in text
    found = vectors.read_points(path).attributes
    assert sorted(found["annotation_id"].tolist()) == [4, 5]
    assert sorted(found["annotation_id_"].tolist()) == [3, 2**64 - 1]
    assert found["hue"].shape == (2, 3)


def test_vertices_of_very_many_bytes(tmp_path: Path) -> None:
    """Parts are of so many vertices, or of so many bytes, whichever is less."""
    about = {"@type": "neuroglancer_skeletons", "vertex_attributes": []}
    attribute = {"id": "a", "data_type": "float32", "num_components": 2**16}
    about["vertex_attributes"] = [{**attribute, "id": f"a{number}"} for number in range(20)]
    values = {"info": json.dumps(about).encode(), "7": bytes(8)}
    for name, value in values.items():
        (tmp_path / name).write_bytes(value)
    assert plan_import(StorePath(stored(values)), str(tmp_path / "a.zv")).memory < 2**30


def test_meshes_that_no_segment_names(tmp_path: Path) -> None:
    """As navis writes them by default: they are not read as nothing."""
    values = {"info": b'{"@type": "neuroglancer_legacy_mesh"}', "17": bytes(4), "18": bytes(4)}
    with pytest.raises(DataError, match=r"holds no mesh.*'17:0'.*none of the 2 files"):
        import_vectors(stored(values), tmp_path / "a.zv")
    assert not (tmp_path / "a.zv").exists()
