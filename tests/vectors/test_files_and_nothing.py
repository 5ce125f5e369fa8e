"""Files of other formats: none is overwritten unasked, empty stores come back, and damage is told with its place."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from vectors.geometry_samples import rows
from vectors.source_files import geff
from zardine import vectors
from zardine.errors import DataError, NodeExistsError, UnsupportedError, ZardineError, ZarrUserWarning
from zardine.storage import MemoryStore
from zardine.vectors import Layout, Points, export_vectors, import_vectors

RNG = np.random.default_rng(12)
LINES = [RNG.uniform(0, 50, (n, 3)).astype("f4") for n in (5, 2, 30)]


def streamlines() -> MemoryStore:
    store = MemoryStore()
    vectors.write_polylines(store, LINES, chunk_shape=20)
    return store


@pytest.mark.parametrize("name", ["a.trk", "a.tck", "a.trx", "a.geojson", "a.shp", "a.parquet", "a.geff"])
def test_no_file_is_overwritten_unasked(tmp_path: Path, name: str) -> None:
    store, target = streamlines(), tmp_path / name
    export_vectors(store, target)
    before = {each: each.read_bytes() for each in tmp_path.rglob("*") if each.is_file()}
    with pytest.raises(NodeExistsError, match="overwrite=True replaces it"):
        export_vectors(store, target)
    assert {each: each.read_bytes() for each in tmp_path.rglob("*") if each.is_file()} == before
    export_vectors(store, target, overwrite=True)
    back = MemoryStore()
    import_vectors(target, back, chunk_shape=20)
    assert np.allclose(rows(vectors.read_points(back).positions), rows(np.concatenate(LINES)), atol=1e-4)


def test_after_an_error_files_are_as_they_were(tmp_path: Path) -> None:
    for name, kind in (("a.tck", "graph"), ("a.ply", "streamline")):
        target = tmp_path / name
        target.write_bytes(b"mine")
        store = MemoryStore()
        if kind == "graph":
            vectors.write_graph(store, LINES[0], [[0, 1]])
        else:
            store = streamlines()
        with pytest.raises(DataError, match="this format is for"):
            export_vectors(store, target, overwrite=True)
        assert target.read_bytes() == b"mine"
        assert [each.name for each in tmp_path.iterdir() if each.name.startswith(".")] == []
    (tmp_path / "d.tck").mkdir()
    with pytest.raises(NodeExistsError, match="is a directory"):
        export_vectors(streamlines(), tmp_path / "d.tck", overwrite=True)


@pytest.mark.parametrize(
    ("kind", "name", "comes_back"),
    [
        *(("points", name, "point_cloud") for name in ("ply", "las", "laz", "precomputed")),
        *(("streamlines", name, "streamline") for name in ("trk", "tck", "trx")),
        *(("meshes", name, "mesh") for name in ("ply", "stl", "precomputed")),
        ("lines", "precomputed", "line"),
        ("graphs", "geff", "graph"),
        ("skeletons", "precomputed", "skeleton"),
        ("skeletons", "swc", "skeleton"),
        ("meshes", "obj", "mesh"),
    ],
)
def test_stores_that_hold_nothing_come_back(tmp_path: Path, kind: str, name: str, comes_back: str) -> None:
    store, target = MemoryStore(), tmp_path / f"a.{name}"
    vectors.create(store, kind, bounds=(0, 0, 0, 9, 9, 9), layout=Layout(chunk_shape=5))
    export_vectors(store, target)
    for bounds in (None, (2, 2, 2, 3, 3, 3)):
        back = MemoryStore()
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            import_vectors(target, back, **({} if bounds is None else {"bounds": bounds}))
        found = vectors.open(back)
        assert (found.kind, len(found)) == (comes_back, 0)
        assert found.validate().ok
        if bounds is None:
            assert len(told) == 1 or name == "geff" or kind in ("points", "lines")
        else:
            assert found.bounds == [[2, 2, 2], [3, 3, 3]]
            assert told == []


@pytest.mark.parametrize("name", ["geojson", "gpkg", "parquet"])
def test_files_that_do_not_tell_what_is_not_in_them(tmp_path: Path, name: str) -> None:
    store, target = MemoryStore(), tmp_path / f"a.{name}"
    vectors.create(store, "points", bounds=(0, 0, 0, 9, 9, 9), layout=Layout(chunk_shape=5))
    with pytest.warns(ZarrUserWarning, match=r"will hold nothing, and cannot be imported: .*vectors\.create"):
        export_vectors(store, target)
    with pytest.raises(DataError, match=r"holds no .*vectors\.create"):
        import_vectors(target, MemoryStore())


@pytest.mark.parametrize("name", ["swc", "obj"])
@pytest.mark.parametrize("text", ["", "# only a remark\n"])
def test_files_without_a_word_are_taken_for_ones_that_are_cut_off(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / f"a.{name}").write_text(text)
    with pytest.raises(DataError, match=r"holds no .*vectors\.create"):
        import_vectors(tmp_path / f"a.{name}", MemoryStore())


def test_formats_for_a_geometry_are_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="A streamline can be exported to trk, tck, trx, "):
        export_vectors(streamlines(), tmp_path / "a.ply")


@pytest.mark.parametrize(("name", "becomes"), [("trk", "streamline"), ("tck", "streamline"), ("trx", "streamline")])
def test_kinds_of_lines_and_rounded_attributes_are_told(tmp_path: Path, name: str, becomes: str) -> None:
    store, target = MemoryStore(), tmp_path / f"a.{name}"
    columns = {"of_lines": np.array([0.1, 0.5, 1]), "exact": np.array([0.5, np.nan, 1])}
    vectors.write_polylines(store, LINES, chunk_shape=20, geometry_type="polyline", object_attributes=columns)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        export_vectors(store, target)
    told = "\n".join(str(each.message) for each in found)
    assert f"each polyline becomes a {becomes}, and is read back as one" in told
    assert ("the attribute 'of_lines' is rounded to float32" in told) == (name == "trk")
    assert "'exact' is rounded" not in told
    with pytest.warns(ZarrUserWarning, match="each streamline becomes a polyline"):
        export_vectors(streamlines(), tmp_path / "a.geojson")


@pytest.mark.parametrize("path", ["nodes/ids", "edges/ids", "nodes/props/n/values", "edges/props/w/values"])
def test_chunks_of_geff_that_are_lost(tmp_path: Path, path: str) -> None:
    """Ids are told to be damaged; of properties other programs leave out what is nothing but fill values."""
    source = geff(tmp_path / "a.geff", 90)
    chunk = source / path / "c" / ("2/0" if path == "edges/ids" else "2")
    chunk.unlink()
    if path.endswith("ids"):
        with pytest.raises(DataError, match=rf"a\.geff: chunks of {path}, without which it is no graph, are lost"):
            import_vectors(source, MemoryStore())
    else:
        with pytest.warns(ZarrUserWarning, match=rf"1 of \d+ chunks of {path} are not stored and read as 0"):
            import_vectors(source, MemoryStore())


def test_geff_graphs_of_ours_are_whole(tmp_path: Path) -> None:
    store = MemoryStore()
    vectors.write_graph(store, np.zeros((3, 3)), [[0, 1]], vertex_attributes={"n": [0, 0, 0]})
    export_vectors(store, tmp_path / "a.geff")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        import_vectors(tmp_path / "a.geff", MemoryStore())
    vectors.write_graph(store, np.zeros((1, 3)), np.zeros((0, 2), int), overwrite=True)
    export_vectors(store, tmp_path / "b.geff")
    (tmp_path / "b.geff/nodes/ids/c/0").unlink()  # a single node may be number 0
    import_vectors(tmp_path / "b.geff", back := MemoryStore())
    assert vectors.open(back).read().attributes["node_id"].tolist() == [0]


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_points_in_ply_files(tmp_path: Path, dtype: str) -> None:
    store, back, target = MemoryStore(), MemoryStore(), tmp_path / "a.ply"
    places = RNG.uniform(0, 1e6, (50, 3)).astype(dtype)
    given: dict[str, Any] = {"i": np.arange(50), "r": np.arange(50, dtype="u1"), "w": RNG.random(50), "t": ["x"] * 50}
    vectors.write_points(store, places, vertex_attributes=given, object_ids=np.arange(50) % 3)
    with pytest.warns(ZarrUserWarning, match="'t' cannot be kept: it is text"):
        export_vectors(store, target)
    import_vectors(target, back)
    found, wanted = vectors.read_points(back), vectors.read_points(store)
    columns = ("i", "r", "w")
    ids = found.attributes["object_id"]
    assert rows(found.positions, *(found.attributes[name] for name in columns), ids) == rows(
        wanted.positions, *(wanted.attributes[name] for name in columns), wanted.object_ids
    )
    assert found.attributes["r"].dtype == np.uint8
    trimesh = pytest.importorskip("trimesh")
    assert np.asarray(trimesh.load(target).vertices).shape == (50, 3)
    vectors.write_points(flat := MemoryStore(), places[:, :2])
    with pytest.raises(DataError, match="the store has 2 axes"):
        export_vectors(flat, tmp_path / "b.ply")


def test_stl_files_bring_no_attribute_that_says_nothing(tmp_path: Path) -> None:
    store, back, target = MemoryStore(), MemoryStore(), tmp_path / "a.stl"
    vectors.write_mesh(store, np.eye(3), [[0, 1, 2]])
    export_vectors(store, target)
    import_vectors(target, back)
    assert vectors.open(back).attributes == {}
    coloured = bytearray(target.read_bytes())
    coloured[-2:] = b"\x1f\x00"
    target.write_bytes(coloured)
    import_vectors(target, back, overwrite=True)
    assert vectors.read_mesh(back).face_attributes["stl"].tolist() == [31]


def damaged(target: Path) -> dict[str, tuple[bytes, str]]:
    data = target.read_bytes()
    head = data.index(b"END\n") + 4
    nan = data[: head + 12] + np.array([np.nan, 1, 1], "<f4").tobytes() + data[head + 24 :]
    return {
        "nothing": (b"", "is no TCK file: .* it is empty"),
        "another file": (b"\x1f\x8b\x08" * 40, "is no TCK file: it does not begin with 'mrtrix tracks'"),
        "header": (data[:30], "header has no line END in the first 30 bytes"),
        "in a point": (data[:-7], f"is cut short: it ends at byte {len(data) - 7} without the mark"),
        "between points": (data[:-24], f"is cut short: it ends at byte {len(data) - 24} without the mark"),
        "place": (nan, r"part 0: positions must be finite; row 1 is \[nan, 1\.0, 1\.0\]"),
    }


def test_tck_files_that_are_damaged_are_told_with_the_place(tmp_path: Path) -> None:
    export_vectors(streamlines(), tmp_path / "a.tck")
    for data, told in damaged(tmp_path / "a.tck").values():
        (tmp_path / "bad.tck").write_bytes(data)
        with pytest.raises(DataError, match=rf"bad\.tck.*{told}"):
            import_vectors(tmp_path / "bad.tck", tmp_path / "b.zv")
        assert not (tmp_path / "b.zv").exists()


def test_geff_graphs_that_are_damaged_are_told_with_the_place(tmp_path: Path) -> None:
    store, target = MemoryStore(), tmp_path / "bad.geff"
    vectors.write_graph(store, LINES[2], [[0, 1], [1, 2]], vertex_attributes={"n": np.arange(30)})
    ruin: dict[str, Callable[[Path], object]] = {
        r"bad\.geff.*nodes/ids is missing": lambda path: (path / "nodes/ids/zarr.json").unlink(),
        r"bad\.geff/nodes/props/n/values cannot be read: .*checksum": lambda path: cut(
            path / "nodes/props/n/values/c/0"
        ),
        r"bad\.geff is invalid\n.*not a JSON document": lambda path: cut(path / "zarr.json"),
        r"bad\.geff.*no table 'geff'": lambda path: (path / "zarr.json").unlink(),
    }
    for told, change in ruin.items():
        export_vectors(store, target, overwrite=True)
        change(target)
        with pytest.raises(ZardineError, match=re.compile(told, re.DOTALL)):
            import_vectors(target, tmp_path / "b.zv", format="geff")
        assert not (tmp_path / "b.zv").exists()


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-9])


@pytest.mark.parametrize(
    ("kind", "name", "becomes"),
    [
        ("skeleton", "geff", "graph"),
        ("streamline", "geff", "graph"),
        ("streamline", "precomputed", "skeleton"),
        ("graph", "precomputed", "skeleton"),
    ],
)
def test_that_a_geometry_becomes_another_is_told_before(tmp_path: Path, kind: str, name: str, becomes: str) -> None:
    store, target = streamlines(), tmp_path / f"a.{name}"
    if kind == "skeleton":
        vectors.write_skeleton(store, LINES[0], [-1, 0, 1, 2, 3], overwrite=True)
    elif kind == "graph":
        vectors.write_graph(store, LINES[0], [[0, 1]], overwrite=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ZarrUserWarning, match=f"each {kind} becomes a {becomes}"):
            export_vectors(store, target)
    assert not target.exists()
    with pytest.warns(ZarrUserWarning, match=f"each {kind} becomes"):
        export_vectors(store, target)
    import_vectors(target, back := MemoryStore())
    assert vectors.open(back).kind == becomes


def test_unknown_formats_are_told_before_anything_is_looked_at(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match="the ending is none of"):
        export_vectors(Points(np.eye(3)), tmp_path / "a.xyz")  # type: ignore[arg-type]


@pytest.mark.parametrize(("name", "comes_back"), [("trx", "streamline"), ("trk", "streamline"), ("geff", "graph")])
def test_lines_that_were_all_deleted_come_back_as_none(tmp_path: Path, name: str, comes_back: str) -> None:
    lines = vectors.Polylines.from_lines(
        LINES,
        attributes={"fa": [each[:, 0] for each in LINES], "rgb": LINES},
        object_attributes={"w": np.arange(3.0), "v": np.eye(3)},
    )
    path, target = str(tmp_path / "a.zv"), tmp_path / f"a.{name}"
    vectors.write(path, lines, layout=Layout(chunk_shape=20), groups={"left": [0, 1]})
    vectors.open(path, "r+").delete(object_ids=[0, 1, 2])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ZarrUserWarning)
        export_vectors(path, target)
        import_vectors(target, str(tmp_path / "b.zv"))
    found = vectors.open(tmp_path / "b.zv")
    assert (found.kind, len(found)) == (comes_back, 0)
    assert vectors.describe_store(str(tmp_path / "b.zv"))["levels"][0]["objects"] == 0
    assert found.validate().ok
