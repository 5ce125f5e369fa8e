"""Exports part by part: the files, and what is told, are those of an export at once; memory is that of a part."""

from __future__ import annotations

import tracemalloc
import warnings
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import geopandas
import laspy
import numpy as np
import pytest

import zardine
from zardine import vectors
from zardine.errors import ArrayChangedError, DataError, NodeExistsError, PlanError, ZarrUserWarning
from zardine.jobs import Plan
from zardine.vectors.content.polygons import triangles
from zardine.vectors.exchange import geff_out, geff_work, level_parts, object_files, swc
from zardine.vectors.exchange.formats import export_vectors
from zardine.vectors.exchange.level_parts import LevelParts
from zardine.vectors.results import Polylines

PART = 250
AFFINE = [[-2.0, 0, 0, 90], [0, 1.5, 0.25, -126], [0, -0.25, 3, -72], [0, 0, 0, 1]]
SPACE = {"voxel_to_rasmm": AFFINE, "dimensions": [91, 109, 61], "voxel_sizes": [2.0, 1.5, 3.0], "voxel_order": "LAS"}


def columns(count: int) -> dict[str, Any]:
    """Attributes of many types, some of which only the last rows show to be too large for a smaller type."""
    rng = np.random.default_rng(2)
    values = {
        "fa": rng.uniform(0, 1, count),
        "pair": rng.uniform(0, 1, (count, 2)).astype("f4"),
        "n": np.arange(count),
        "large": np.where(np.arange(count) == count - 1, 2**62, 5),
        "intensity": np.where(np.arange(count) == count - 1, 2**16, 5),
        "red": np.arange(count) % 256,
        "yes": np.arange(count) % 3 == 0,
    }
    return {**values, "text": np.array(["é" * (number % 7) for number in range(count)], object)}


def points(path: str, count: int) -> None:
    rng = np.random.default_rng(1)
    places = rng.uniform(0, 100, (count, 3))
    vectors.write_points(path, places, chunk_shape=60, vertex_attributes=columns(count))


def lines(path: str, count: int) -> None:
    rng = np.random.default_rng(1)
    lengths = rng.integers(0, 100, count // 50)
    given = [rng.uniform(0, 100, 3) + rng.normal(0, 0.3, (int(each), 3)).cumsum(axis=0) for each in lengths]
    of_lines = {"size": rng.uniform(0, 1, len(given)), "label": ["a"] * len(given)}
    ids = rng.permutation(2 * len(given))[: len(given)]
    kept = {name: each for name, each in columns(int(lengths.sum())).items() if name != "large"}
    options: dict[str, Any] = {"vertex_attributes": kept, "object_attributes": of_lines, "object_ids": ids}
    vectors.write_polylines(
        path,
        given,
        chunk_shape=60,
        geometry_type="streamline",
        crs={"trk": SPACE},
        groups=[ids[:2], ids[5:9]],
        **options,
    )


def meshes(path: str, count: int) -> None:
    """Grids of squares, each an object."""
    side, rng = 20, np.random.default_rng(1)
    number = max(1, count // side**2)
    plain = np.stack(np.meshgrid(range(side), range(side), indexing="ij"), axis=-1).reshape(-1, 2)
    corner = np.flatnonzero((plain < side - 1).all(axis=1))
    square = np.stack([corner, corner + side, corner + side + 1, corner + 1], axis=1)
    places = [np.insert(plain, 2, 0, axis=1) + rng.uniform(0, 100, 3) for _ in range(number)]
    shades = {name: rng.integers(0, 255, number * side**2, "u1") for name in ("red", "green", "blue", "alpha")}
    faces = np.concatenate([square + each * side**2 for each in range(number)])
    vectors.write_mesh(
        path,
        np.concatenate(places),
        faces,
        chunk_shape=40,
        vertex_attributes={**columns(number * side**2), **shades},
        link_attributes={"part": np.arange(len(faces), dtype=np.int32), "text": ["a"] * len(faces)},
        object_ids=np.repeat(np.arange(number), side**2),
    )


def graphs(path: str, count: int) -> None:
    """Rings, each an object, with more edges between them."""
    rng = np.random.default_rng(1)
    size = 50
    number = count // size
    turn = np.arange(size) * (2 * np.pi / size)
    ring = np.stack([np.cos(turn), np.sin(turn), turn], axis=1)
    places = [ring * 9 + rng.uniform(0, 100, 3) for _ in range(number)]
    along = np.stack([np.arange(size), (np.arange(size) + 1) % size], axis=1)
    edges = np.concatenate([along + each * size for each in range(number)])
    vectors.write_graph(
        path,
        np.concatenate(places),
        edges,
        chunk_shape=50,
        vertex_attributes={**columns(number * size), "node_id": rng.permutation(number * size) + 7},
        link_attributes={"part": np.arange(len(edges)), "text": ["a", None] * (len(edges) // 2)},
        object_ids=np.repeat(np.arange(number), size),
        object_attributes={"of": ["x"] * number},
    )


def skeletons(path: str, count: int) -> None:
    """Trees whose branches go on from anywhere, some objects with several of them."""
    rng = np.random.default_rng(1)
    size = 100
    number = count // size
    places, parents = [], []
    for tree in range(number):
        above = np.arange(size) - 1
        branch = rng.integers(2, size, size // 20)
        above[branch] = rng.integers(0, branch - 1)
        step = rng.normal(0, 1, (size, 3))
        place = np.empty((size, 3))
        for row in range(size):
            place[row] = step[row] + (place[above[row]] if row else rng.uniform(0, 60, 3))
        places.append(place)
        parents.append(np.where(above >= 0, above + tree * size, -1))
    values = {"type": np.arange(number * size) % 5, "radius": rng.uniform(0, 1, number * size)}
    order = {"object_ids": np.repeat(np.arange(number) // 2, size)}
    chosen = {"vertex_attributes": {**columns(number * size), **values}, **order}
    vectors.write_skeleton(path, np.concatenate(places), np.concatenate(parents), chunk_shape=20, **chosen)


KINDS: dict[str, Any] = {
    "swc": skeletons,
    "geff": graphs,
    "ply": meshes,
    "stl": meshes,
    "obj": meshes,
    "las": points,
    "laz": points,
    "trk": lines,
    "tck": lines,
    "trx": lines,
    **dict.fromkeys(("geojson", "gpkg", "shp", "parquet"), points),
}


def memory_of_jobs(plan: Plan) -> int:
    """The most bytes that are held at a time while the jobs of a plan run, one after the other."""
    plan.begin()
    tracemalloc.start()
    try:
        for number in range(len(plan)):
            plan.job(number)()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def recorded(call: Any, *arguments: Any, **options: Any) -> str:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        call(*arguments, **options)
    return "\n".join(str(each.message) for each in found if each.category is ZarrUserWarning)


def content(target: Path) -> Any:
    """What is to be the same of two files."""
    if target.suffix in (".las", ".laz"):  # laspy notes the first value of each part as the least one of an attribute
        scan = laspy.read(str(target))
        header = scan.header
        corners = header.mins.tolist(), header.maxs.tolist(), header.scales.tolist(), header.offsets.tolist()
        return str(header.version), header.point_format, corners, scan.points.array.tobytes()
    if target.suffix in (".gpkg", ".parquet"):
        found = (geopandas.read_parquet if target.suffix == ".parquet" else geopandas.read_file)(target)
        return found.to_json(), list(map(str, found.dtypes)), found.index.tolist(), found.crs
    if target.suffix == ".shp":
        return {each.suffix: each.read_bytes() for each in target.parent.iterdir()}
    if target.suffix == ".trx":
        with zipfile.ZipFile(target) as archive:
            return {name: archive.read(name) for name in archive.namelist()}
    if target.suffix == ".geff":
        root = zardine.open_group(str(target), mode="r")
        tables = {place: [*root[f"{place}/props"].group_keys()] for place in ("nodes", "edges")}
        values = {
            f"{place}/{name}": root[f"{place}/props/{name}/values"][:] for place in tables for name in tables[place]
        }
        ids = root["nodes/ids"][:], root["edges/ids"][:]
        order = {"nodes": slice(None), "edges": np.lexsort(ids[1].T)}
        sorted_values = {name: each[order[name.partition("/")[0]]].tolist() for name, each in values.items()}
        missing = root["edges/props/text/missing"][:][order["edges"]].tolist()
        attributes = root.attrs.asdict()
        assert attributes.pop("zardine_export")
        return attributes, ids[0].tolist(), ids[1][order["edges"]].tolist(), sorted_values, missing
    data = target.read_bytes()
    if target.suffix == ".obj":  # faces between parts are filed with one of them
        text = data.decode().splitlines()
        return [each for each in text if each[0] != "f"], sorted(each for each in text if each[0] == "f")
    if target.suffix == ".stl":
        return data[:84], sorted(data[at : at + 50] for at in range(84, len(data), 50))
    if target.suffix == ".ply":
        faces = int(data.partition(b"element face ")[2].split()[0])
        row = 1 + 3 * 4 + 4  # corners, and the attribute "part"
        start = len(data) - faces * row
        return data[:start], sorted(data[at : at + row] for at in range(start, len(data), row))
    return data


@pytest.mark.parametrize("suffix", KINDS)
def test_files_are_those_of_an_export_at_once(tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = str(tmp_path / "a.zv")
    whole, parts = tmp_path / "whole" / f"a.{suffix}", tmp_path / "parts" / f"a.{suffix}"
    whole.parent.mkdir()
    parts.parent.mkdir()
    KINDS[suffix](path, 2500)
    told = recorded(export_vectors, path, whole)
    monkeypatch.setattr(level_parts, "AT_ONCE", PART)
    monkeypatch.setattr(geff_work, "AT_ONCE", PART)
    monkeypatch.setattr(geff_out, "CHUNK", 300)
    monkeypatch.setattr(swc, "_AT_ONCE", 300)
    seen: list[int] = []
    again = recorded(export_vectors, path, parts, progress=lambda done, total: seen.append(done))
    assert again.replace(str(parts), str(whole)) == told
    assert content(parts) == content(whole)
    assert len(seen) > 10
    assert (seen, seen[0], seen[-1]) == (sorted(seen), 0, 1000)


@contextmanager
def peak(found: list[int]) -> Iterator[None]:
    tracemalloc.start()
    try:
        yield
        found.append(tracemalloc.get_traced_memory()[1])
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("suffix", [each for each in KINDS if each not in ("laz", "tck", "obj")])  # as their kin
def test_memory_is_that_of_a_part(tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """More vertices take less than half of what they take at once, which is 180 bytes for each."""
    monkeypatch.setattr(level_parts, "AT_ONCE", 1000)
    monkeypatch.setattr(geff_work, "AT_ONCE", 1000)
    monkeypatch.setattr(geff_out, "CHUNK", 500)
    monkeypatch.setattr(swc, "_AT_ONCE", 300)
    peaks: list[int] = []
    most = 6000 if suffix == "geff" else 4000
    for count in (500, most // 2, most):
        path = str(tmp_path / f"{count}.zv")
        KINDS[suffix](path, count)
        with peak(peaks):
            recorded(export_vectors, path, tmp_path / f"{count}.{suffix}")
    of_chunks = 70 if suffix == "geff" else 0  # of documents, in which edges have many lists of chunks, and of jobs
    assert peaks[2] - peaks[1] < (80 + of_chunks) * most // 2, peaks


def test_a_level_that_changes_between_the_ways_through(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = str(tmp_path / "a.zv")
    lines(path, 1000)
    monkeypatch.setattr(level_parts, "AT_ONCE", 100)
    parts = LevelParts[Polylines](path, 0, lambda share: None)
    list(parts)
    vectors.delete(path, object_ids=vectors.read_objects(path).ids[:1].tolist())
    with pytest.raises(ArrayChangedError, match="was changed while it was exported"):
        list(parts)


def of_objects(path: str) -> dict[str, Any]:
    """What is in a store of skeletons or meshes, by the names of objects."""
    kind = vectors.open(path).kind
    found: Any = (vectors.read_skeleton if kind == "skeleton" else vectors.read_mesh)(path)
    objects = vectors.read_objects(path)
    content = {}
    for number, name in zip(objects.ids.tolist(), objects.attributes["name"].tolist(), strict=True):
        corners = found.edges if kind == "skeleton" else triangles(found.faces, found.positions)[0]
        corners = corners[found.object_ids[corners[:, 0]] == number]
        where = found.positions.astype("f4").tolist()
        content[name] = sorted([where[each] for each in row] for row in corners.tolist())
    return content


def files_in(folder: Path) -> list[str]:
    """The files of a folder that is complete."""
    names = sorted(each.name for each in folder.iterdir())
    names.remove("_parts.json")
    return names


@pytest.mark.parametrize("suffix", ["swc", "ply", "obj", "stl"])
def test_a_folder_has_a_file_for_each_object(tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path, folder = str(tmp_path / "a.zv"), tmp_path / "files"
    (skeletons if suffix == "swc" else meshes)(path, 2000)
    count = len(vectors.read_objects(path).ids)
    names = [f"n {number}" for number in range(count)]
    vectors.set_attribute(path, "name", names, kind="object")
    monkeypatch.setattr(level_parts, "AT_ONCE", PART)
    monkeypatch.setattr(object_files, "_FRAGMENTS", 7)
    seen: list[int] = []
    options: Any = {} if suffix == "swc" else {"format": suffix}
    told = recorded(export_vectors, path, f"{folder}/", progress=lambda done, total: seen.append(done), **options)
    assert "objects cannot be kept" not in told
    assert files_in(folder) == sorted(f"{name}.{suffix}" for name in names)
    assert (seen, seen[0], seen[-1]) == (sorted(seen), 0, 1000)
    assert len(seen) > 5
    recorded(vectors.import_vectors, folder, str(tmp_path / "b.zv"), chunk_shape=30)
    assert of_objects(str(tmp_path / "b.zv")) == of_objects(path)
    with pytest.raises(NodeExistsError, match="is not empty"):
        export_vectors(path, folder, **options)
    (folder / "mine.txt").write_text("x")
    with pytest.raises(NodeExistsError, match=r"it holds 'mine\.txt'"):
        recorded(export_vectors, path, folder, overwrite=True, **options)
    (folder / "mine.txt").unlink()
    vectors.delete(path, object_ids=[1])
    recorded(export_vectors, path, folder, overwrite=True, **options)
    assert files_in(folder) == sorted(f"{each}.{suffix}" for each in names if each != "n 1")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["a.zv", "b.zv", "files"]


def test_names_that_no_files_can_have(tmp_path: Path) -> None:
    path = str(tmp_path / "a.zv")
    skeletons(path, 400)
    vectors.set_attribute(path, "name", ["../a", "b"], kind="object")
    (tmp_path / "files").mkdir()
    told = recorded(export_vectors, path, tmp_path / "files")
    assert "files are called by the ids of objects" in told
    assert files_in(tmp_path / "files") == ["0.swc", "1.swc"]


def test_after_an_error_a_folder_is_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, folder = str(tmp_path / "a.zv"), tmp_path / "files"
    skeletons(path, 400)
    folder.mkdir()
    (folder / "7.swc").write_text("old")

    def fail(*given: Any) -> None:
        raise OSError("no space")

    monkeypatch.setattr(object_files, "write_swc", fail)
    with pytest.raises(OSError, match="no space"):
        recorded(export_vectors, path, folder, overwrite=True)
    assert sorted(each.name for each in folder.iterdir()) == ["7.swc", "__zardine"]  # from where it can go on
    assert (folder / "7.swc").read_text() == "old"
    monkeypatch.undo()
    recorded(export_vectors, path, folder, overwrite=True)
    assert files_in(folder) == ["0.swc", "1.swc"]
    assert sorted(each.name for each in tmp_path.iterdir()) == ["a.zv", "files"]


@pytest.mark.parametrize("suffix", KINDS)
def test_a_level_that_changes_while_it_is_written(tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path, target = str(tmp_path / "a.zv"), tmp_path / f"a.{suffix}"
    KINDS[suffix](path, 2000)
    monkeypatch.setattr(level_parts, "AT_ONCE", 300)
    monkeypatch.setattr(geff_work, "AT_ONCE", 300)
    changed: list[int] = []

    def change(done: int, total: int) -> None:
        if done > 550 and not changed:
            changed.append(done)
            vectors.set_attribute(path, "new", np.zeros(len(vectors.read_points(path))), new=True)

    with pytest.raises((ArrayChangedError, PlanError), match=r"was changed while it was|has changed since"):
        recorded(export_vectors, path, target, progress=change)
    assert changed
    if suffix == "geff":
        assert not (target / "zarr.json").exists() or "geff" not in zardine.open_group(str(target), mode="r").attrs
    else:
        assert [each.name for each in tmp_path.iterdir()] == ["a.zv"]


def test_types_of_samples_that_are_too_large(tmp_path: Path) -> None:
    path, target = str(tmp_path / "a.zv"), tmp_path / "a.swc"
    kinds = np.array([1, 2**63], np.uint64)
    vectors.write_skeleton(path, np.eye(3)[:2], [-1, 0], vertex_attributes={"type": kinds})
    with pytest.raises(DataError, match="types of samples are whole numbers"):
        export_vectors(path, target)
    assert not target.exists()


def test_an_attribute_of_faces_may_have_any_name(tmp_path: Path) -> None:
    mesh = vectors.Mesh(np.eye(3, dtype="f4"), np.array([[0, 1, 2]]), {}, {"f0": np.array([7])})
    vectors.write(tmp_path / "a.zv", mesh)
    vectors.export_vectors(tmp_path / "a.zv", tmp_path / "a.ply")
    vectors.import_vectors(tmp_path / "a.ply", tmp_path / "b.zv")
    assert vectors.open(tmp_path / "b.zv").read().face_attributes["f0"].tolist() == [7]
