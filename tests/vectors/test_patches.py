"""Removing and moving by cells: what that costs, what zarr-vectors sees, and levels that are older."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from zarr_vectors.core.arrays import patch_object_manifests, read_object_manifest_rows
from zarr_vectors.core.store import get_resolution_level, open_store
from zarr_vectors.types.polylines import read_polylines as their_polylines
from zarr_vectors.validate import validate as their_validate

from vectors.geometry_samples import Unlocked, copy_of, document, links, rows, set_document, values
from vectors.with_zarr_vectors import agree
from zardine import vectors
from zardine.errors import CorruptionError, SelectionError, ZarrUserWarning
from zardine.storage import CountingStore, LocalStore, MemoryStore
from zardine.vectors.changing.levels import replace_level

RNG = np.random.default_rng(8)
OPTIONS: dict[str, Any] = {"chunk_shape": 10, "bounds": ([0, 0, 0], [99, 9, 9])}


def lines_in(cells: int, count: int) -> list[np.ndarray[Any, Any]]:
    """Lines of three vertices, each from one of so many cells of 10 into the next one."""
    number = np.arange(count)
    starts = np.stack([number % cells * 10.0 + 9, number % 7, number % 5], axis=1)
    return [start + np.array([[0, 0, 0], [1, 0, 0], [1, 1, 0]]) for start in starts]


CHANGES: dict[str, Any] = {
    "delete": lambda store, id_: vectors.delete(store, object_ids=[id_]),
    "move": lambda store, id_: vectors.move_vertices(store, [0], [[1.0, 2, 3]], object_ids=[id_]),
    "move a little": lambda store, id_: vectors.move_vertices(store, [0], [[9.5, 2, 3]], object_ids=[id_]),
}


@pytest.mark.parametrize(("change", "requests"), [("delete", 49), ("move", 40), ("move a little", 30)])
def test_changes_of_an_object_ask_as_much_of_a_store_of_any_size(change: str, requests: int) -> None:
    told = []
    for count in (50, 400):
        store = CountingStore(MemoryStore())
        attributes = {"object_attributes": {"w": np.arange(count)}, "groups": [[1, 9, 18], [27]]}
        vectors.write_polylines(store, lines_in(9, count), shard_shape=8, **attributes, **OPTIONS)
        asked = []
        for id_ in (9, 18, 27):  # all in the same cells
            store.reset()
            CHANGES[change](store, id_)
            asked.append(store.counts.requests)
        told.append(asked)
        assert vectors.validate(store).findings == ()
    assert told[0] == told[1]
    assert max(told[0]) <= requests


VALUES = {
    "": {},
    "w": {"object_attributes": lambda count: {"w": np.arange(count)}},
    "q": {"vertex_attributes": lambda count: {"q": np.arange(2 * count)}},
}
VALUES["w q"] = VALUES["w"] | VALUES["q"]

TEN_CELLS = {
    (None, ""): 60,  # of these 40 read and store ten cells of two arrays; 20 more for those of another
    (None, "w"): 65,  # names of attributes, a document and rows, read and stored
    (None, "q"): 82,
    **{(8, values): 60 for values in VALUES},
    **{(4, values): 60 for values in VALUES},
}


@pytest.mark.parametrize("kind", [MemoryStore, Unlocked], ids=["locks", "no locks"])
@pytest.mark.parametrize(("shards", "given"), TEN_CELLS, ids=str)
def test_ten_lines_over_ten_cells(shards: int | None, given: str, kind: type[MemoryStore]) -> None:
    """Where locks keep nobody out, one look tells who has come first, another which logs are left over."""
    told = []
    for count in (300, 900):
        store = CountingStore(kind())
        layout: dict[str, Any] = {"shard_shape": shards} if shards else {}
        options: dict[str, Any] = {"chunk_shape": 10, "bounds": ([0, 0, 0], [99, 99, 9])}
        cells = np.stack([np.arange(count) % 10, np.arange(count) // 10 % 10, np.zeros(count)], axis=1)
        lines = [cell * 10 + np.array([[1.0, 1, 1], [2, 3, 4]]) for cell in cells]
        columns = {family: values(count) for family, values in VALUES[given].items()}
        vectors.write_polylines(store, lines, **layout, **columns, **options)
        for _ in range(2):
            store.reset()
            more = [lines[11 * number] + 1 for number in range(10)]
            vectors.append_polylines(store, more, **{family: values(10) for family, values in VALUES[given].items()})
            told.append(store.counts.requests)
        assert vectors.validate(store).findings == ()
    assert len(set(told)) == 1
    assert told[0] <= TEN_CELLS[shards, given] + (5 if kind is Unlocked else 0)


@pytest.mark.parametrize("kind", ["files", "no locks"])
def test_ten_lines_anywhere(kind: str, tmp_path: Path) -> None:
    """In 1,000 cells in eight shards, some from one cell into the next, each vertex with a value.

    Documents of links change, too, where new cells have some.
    """

    def lines(count: int, seed: int) -> list[np.ndarray[Any, Any]]:
        random = np.random.default_rng(seed)
        starts = random.uniform(0, 100, (count, 1, 3))
        return list((starts + np.cumsum(random.normal(0, 0.2, (count, 5, 3)), axis=1)).astype("f4"))

    store = CountingStore(LocalStore(tmp_path) if kind == "files" else Unlocked())
    columns = {"w": np.zeros(40_000, "f4")}
    bounds = ([-10, -10, -10], [110, 110, 110])
    vectors.write_polylines(
        store, lines(8000, 0), chunk_shape=10, shard_shape=8, bounds=bounds, vertex_attributes=columns
    )
    told = []
    for number in range(8):
        store.reset()
        vectors.append_polylines(store, lines(10, number + 1), vertex_attributes={"w": np.ones(50, "f4")})
        told.append(store.counts.requests)
    assert vectors.validate(store).findings == ()
    assert np.median(told) <= 60


def test_only_the_cells_of_what_goes_are_stored() -> None:
    store = CountingStore(MemoryStore())
    vectors.write_polylines(store, lines_in(9, 90), groups=[[4, 5], [5]], **OPTIONS)
    store.reset()
    assert vectors.delete(store, object_ids=[5]) == 3
    changed = {key for key in store.counts.keys if "/c/" in key and key.startswith("0/vert")}
    assert {key.rsplit("/c/")[1] for key in changed} == {"5/0/0", "6/0/0"}
    found = vectors.read_polylines(store)
    assert found.object_ids.tolist() == [*range(5), *range(6, 90)]
    assert np.array_equal(found[5], lines_in(9, 90)[6])
    assert [each.tolist() for each in vectors.read_groups(store).members] == [[4], []]
    assert vectors.describe_store(store)["levels"][0]["objects"] == 89
    for question in (vectors.read_polylines, vectors.delete):
        with pytest.raises(SelectionError, match="no object with the id 5"):
            question(store, object_ids=[5])
    vectors.append_polylines(store, [lines_in(9, 90)[5] + 1])
    assert vectors.read_objects(store).ids.tolist() == [*range(5), *range(6, 91)]
    vectors.append_polylines(store, [lines_in(9, 90)[5]], object_ids=[5])
    assert vectors.read_polylines(store).object_ids.tolist() == list(range(91))
    assert vectors.validate(store).findings == ()


def changed_cells(before: dict[str, bytes], store: MemoryStore) -> set[str]:
    """Where cells are not what they were."""
    after = values(store)
    return {
        key.rsplit("/c/")[1]
        for key in before.keys() | after.keys()
        if "/c/" in key and before.get(key) != after.get(key)
    }


def test_points_of_a_box_go_with_their_cells() -> None:
    store = MemoryStore()
    points = RNG.uniform(0, 100, (400, 2))
    vectors.write_points(store, points, chunk_shape=10, bin_shape=5, vertex_attributes={"n": np.arange(400)})
    before = values(store)
    count = vectors.delete(store, bbox=([20, 20], [40, 29.9]))
    assert changed_cells(before, store) <= {"2/2", "3/2", "4/2"}
    inside = ((points >= [20, 20]) & (points <= [40, 29.9])).all(axis=1)
    found = vectors.read_points(store)
    assert count == inside.sum()
    assert rows(found.positions, found.attributes["n"]) == rows(points[~inside], np.arange(400)[~inside])
    before = values(store)
    vectors.move_vertices(store, [0], [[25.0, 25]])
    assert changed_cells(before, store) == {"0/0", "2/2"}
    assert vectors.validate(store).findings == ()


def test_links_across_cells_follow_their_vertices() -> None:
    store = MemoryStore()
    points, faces = RNG.uniform(0, 30, (60, 3)), RNG.integers(0, 60, (200, 3))
    ids = np.arange(60) % 6
    weights = [f"t{number % 5}" for number in range(200)]
    vectors.write_mesh(store, points, faces, chunk_shape=10, face_attributes={"w": weights}, object_ids=ids)
    order = RNG.permutation(60)[:20]
    at = vectors.read_points(store)
    to = RNG.uniform(0, 30, (20, 3))
    vectors.move_vertices(store, order, to)
    where = {tuple(each): number for number, each in enumerate(points.tolist())}
    points = points.copy()
    points[[where[tuple(each)] for each in at.positions[order].tolist()]] = to
    kept = (ids[faces] != 2).all(axis=1)
    vectors.delete(store, object_ids=[2])
    mesh = vectors.read_mesh(store)
    expected = links(points, faces[kept], np.array(weights)[kept])
    assert links(mesh.positions, mesh.faces, mesh.face_attributes["w"]) == expected
    assert vectors.validate(store).findings == ()


def test_zarr_vectors_reads_what_is_left(tmp_path: Path) -> None:
    path = str(tmp_path / "a.zv")
    lines = [RNG.uniform(0, 9, (4, 3)) + 10 * RNG.integers(0, 3, 3) for _ in range(12)]
    vectors.write_polylines(path, lines, object_ids=np.arange(12) * 3, chunk_shape=6)
    vectors.delete(path, object_ids=[3, 9])
    vectors.delete(path, bbox=([0, 0, 0], [12, 12, 12]))
    vectors.move_vertices(path, [0, 5, 6], RNG.uniform(0, 30, (3, 3)))
    report = their_validate(path, level=5)
    assert report.ok, report.errors
    ids, manifests = read_object_manifest_rows(get_resolution_level(open_store(path), 0))
    assert [each for each, manifest in zip(ids.tolist(), manifests, strict=True) if not manifest][:1] == [3]
    left = vectors.read_polylines(path)
    theirs = their_polylines(path, object_ids=left.object_ids.tolist())
    for own, other in zip(left.lines, theirs["polylines"], strict=True):
        assert np.array_equal(own.astype("f4"), np.concatenate(other).astype("f4"))


def test_objects_that_share_fragments_lose_them_together(tmp_path: Path) -> None:
    """As edits of zarr-vectors leave them: a copy of an object is made of the same fragments."""
    path = str(tmp_path / "a.zv")
    vectors.write_polylines(path, lines_in(9, 20), **OPTIONS)
    level = get_resolution_level(open_store(path, mode="r+"), 0)
    manifests = read_object_manifest_rows(level)[1]
    patch_object_manifests(level, {50: [*manifests[3], *manifests[4]]}, 3)
    assert [len(line) for line in vectors.read_polylines(path, object_ids=[3, 4, 50]).lines] == [3, 3, 6]
    vectors.delete(path, object_ids=[3])
    assert [len(line) for line in vectors.read_polylines(path, object_ids=[4, 50]).lines] == [3, 3]
    assert [each.kind for each in vectors.validate(path).findings if each.severity == "error"] == []


def test_what_says_which_objects_are_removed_is_checked() -> None:
    whole = MemoryStore()
    vectors.write_polylines(whole, lines_in(9, 20), **OPTIONS)
    vectors.delete(whole, object_ids=[3])
    held = bytes(whole.get("0/object_index/zarr.json") or b"")
    assert b'"zardine_removed"' in held
    for damaged in (
        "3",
        "[3]",
        "[[3]]",
        "[[4,3]]",
        "[[3,4.5]]",
        "[[3,4],[2,9]]",
        "[[0,99999999999999999999]]",
        '["34"]',
    ):
        store = copy_of(whole)
        import json

        document = json.loads(held)
        document["attributes"]["zardine_removed"] = json.loads(damaged)
        store.set("0/object_index/zarr.json", json.dumps(document).encode())
        with pytest.raises(CorruptionError, match="zardine_removed"):
            vectors.read_polylines(store)
        assert not vectors.validate(store).ok


def test_levels_above_are_older_until_they_are_made_anew(tmp_path: Path) -> None:
    path = str(tmp_path / "a.zv")
    points = RNG.uniform(0, 40, (300, 3))
    vectors.write_points(path, points, chunk_shape=10, object_ids=np.arange(300) % 4)
    vectors.build_pyramid(path, factors=[(2, 1), (2, 1)])
    vectors.set_attribute(path, "w", [1.0, 2, 3, 4], kind="object")
    assert [each["older"] for each in vectors.describe_store(path)["levels"]] == [False, True, True]
    assert len(vectors.read_cross_level_links(path, 0, 1)) == 300
    with pytest.warns(ZarrUserWarning, match="level 2 .* is older than level 0"):
        before = vectors.read_points(path, level=2)
    vectors.delete(path, object_ids=[1])
    assert "[1, 2] are older" in repr(vectors.open(path))
    with pytest.warns(ZarrUserWarning, match="older"):
        assert np.array_equal(vectors.read_points(path, level=2).positions, before.positions)
    for level, delta in ((0, 1), (1, -1)):
        with pytest.raises(SelectionError, match="no links"):
            vectors.read_cross_level_links(path, level, delta)
    report = vectors.validate(path)
    assert report.ok
    assert [each.kind for each in report.findings] == ["levels-older"]
    assert their_validate(path, level=5).ok
    assert vectors.build_pyramid(path, factors=[(2, 1)]) == [1]
    assert vectors.validate(path).findings == ()
    count = len(vectors.read_points(path, level=1))
    vectors.append_points(path, [[1.0, 1, 1]], object_ids=[7], object_attributes={"w": [5.0]})
    vectors.delete(path, object_ids=[0, 2, 3])  # fewer than the level above has, which zarr-vectors takes for a fault
    assert count > 1
    assert vectors.open(path).levels == [0]
    assert vectors.validate(path).findings == ()


def grow_down(path: str, kind: str, times: int) -> None:
    """Make a store, and let it grow to lower coordinates by one chunk at a time."""
    start = np.array([[3.0, 3.0], [15.0, 15.0]])
    steps = [np.array([[3.0 - 10 * number, 4.0], [4.0 - 10 * number, 14.0]]) for number in range(times)]
    if kind == "points":
        vectors.write_points(path, start, chunk_shape=10, vertex_attributes={"n": [1.0, 2.0]})
        for each in steps:
            vectors.append_points(path, each, vertex_attributes={"n": each[:, 0]})
    elif kind == "lines":
        vectors.write_polylines(path, [start], chunk_shape=10)
        for each in steps:
            vectors.append_polylines(path, [each])
    else:
        vectors.write_graph(path, start, [[0, 1]], chunk_shape=10, shard_shape=2)
        for each in steps:
            vectors.append_graph(path, each, [[0, 1]])


@pytest.mark.parametrize("kind", ["points", "lines", "graph"])
def test_growing_to_lower_chunks_stores_the_level_anew_a_few_times(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, begins = str(tmp_path / "a.zv"), []

    def counted(level: Any, content: Any) -> None:
        replace_level(level, content)
        begins.append(document(path, "0/vertices")["attributes"]["chunk_grid_origin"][0])

    monkeypatch.setattr("zardine.vectors.changing.appending.replace_level", counted)
    grow_down(path, kind, 30)
    assert 1 <= len(begins) <= 6
    assert begins == sorted(set(begins), reverse=True)
    assert begins[-1] < -28
    agree(path)
    found = vectors.read_points(path)
    assert len(found) == 62
    assert found.positions[:, 0].min() == 3 - 290
    vectors.append_points(path, [[1.0, 1.0]], vertex_attributes={"n": [0.0]}) if kind == "points" else vectors.delete(
        path, object_ids=[0]
    )
    vectors.set_attribute(path, "new", np.arange(len(vectors.read_points(path))))
    assert document(path, "0/vertices")["attributes"]["chunk_grid_origin"][0] == begins[-1]
    assert vectors.validate(path).findings == ()


def test_a_box_over_the_bounds_is_all_where_the_grid_has_room(tmp_path: Path) -> None:
    path = str(tmp_path / "a.zv")
    grow_down(path, "points", 50)
    low, high = vectors.describe_store(path)["bounds"]
    assert len(vectors.read_points(path, bbox=(low, high))) == 102
    for name in ("vertices", "vertex_fragments", "vertex_attributes/n"):
        changed = document(path, f"0/{name}")
        changed["attributes"]["nonempty_chunks"].remove("-3.0")
        set_document(path, f"0/{name}", changed)
        column, row = np.array([-3, 0]) - changed["attributes"]["chunk_grid_origin"]
        Path(path, "0", name, "c", str(column), str(row)).unlink()
    with pytest.raises(CorruptionError):
        vectors.read_points(path, bbox=(low, high))
    assert len(vectors.read_points(path, bbox=((low[0] + 10, low[1]), high))) == 99  # believes two lists that agree
