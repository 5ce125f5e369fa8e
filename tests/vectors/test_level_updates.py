"""Levels that are made anew only where what is below them was changed: the same as made from the beginning."""

from __future__ import annotations

import json
import multiprocessing
import time
import warnings
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from zarr_vectors.validate import validate as their_validate

from effort import SOAK, some
from vectors.geometry_samples import Killed, MortalStore, copy_of
from zardine import vectors
from zardine.errors import SelectionError, ZarrUserWarning
from zardine.storage import CountingStore, LocalStore, MemoryStore
from zardine.vectors import pyramid
from zardine.vectors.changing import level_updates
from zardine.vectors.storing import touched

KINDS = ["points", "points in bins", "owned points", "lines", "graph", "mesh", "skeleton"]
COUNT = 120 if SOAK else 40
PATIENCE = 240
"""Seconds for which others are waited for, where the machine is busy with other things."""
FACTORS = {"two": [(2, 1), (2, 1)], "three": [(3, 1), (1.5, 1)]}


def made(kind: str, rng: np.random.Generator, **layout: Any) -> MemoryStore:
    """A store with something in it."""
    store, points = MemoryStore(), rng.uniform(-20, 20, (COUNT, 3))
    options: dict[str, Any] = {"chunk_shape": 4, "bounds": ([-24] * 3, [24] * 3), **layout}
    ids, groups = np.arange(COUNT) // 10 * 2, [[2, 6], [4]]
    match kind:
        case "points":
            vectors.write_points(store, points, vertex_attributes={"n": np.arange(COUNT)}, **options)
        case "points in bins":
            vectors.write_points(store, points, bin_shape=2, **options)
        case "owned points":
            tables = {
                "object_attributes": {"w": np.arange(COUNT / 10), "t": [f"t{n}" for n in range(COUNT // 10)]},
                "groups": groups,
            }
            vectors.write_points(store, points, object_ids=ids, **tables, **options)
        case "lines":
            lines = [
                (points[10 * n] + rng.normal(0, 1, (10, 3)).cumsum(axis=0)).clip(-24, 24) for n in range(COUNT // 10)
            ]
            tables = {"object_attributes": {"w": np.arange(COUNT / 10)}, "groups": groups, "object_ids": ids[::10]}
            vectors.write_polylines(store, lines, **tables, **options)
        case "graph":
            vectors.write_graph(store, points, rng.integers(0, COUNT, (COUNT, 2)), object_ids=0 * ids, **options)
        case "mesh":
            vectors.write_mesh(store, points, rng.integers(0, COUNT, (COUNT, 3)), object_ids=0 * ids, **options)
        case "skeleton":
            parents = np.where(np.arange(COUNT) % 10 == 0, -1, np.arange(COUNT) - 1)
            vectors.write_skeleton(store, points, parents, object_ids=ids, **options)
    return store


def change(kind: str, store: Any, rng: np.random.Generator) -> str:
    """Change something; tells what."""
    what = str(rng.choice(["append", "append", "delete", "box", "move", "set"]))
    spot = rng.uniform(-18, 16, 3)
    count = len(vectors.open(store))
    match what:
        case "append":
            points = spot + rng.uniform(0, 3, (5, 3))
            if kind in ("points", "points in bins"):
                extra = {"vertex_attributes": {"n": np.arange(5)}} if kind == "points" else {}
                vectors.append_points(store, points, **extra)
            elif kind == "owned points":
                there, going_on = vectors.read_objects(store).ids, rng.random() < 0.5
                ids = np.repeat(there[0] if going_on else there.max() + 1, 5)
                tables = {} if going_on else {"object_attributes": {"w": [9.0], "t": ["new"]}}
                vectors.append_points(store, points, object_ids=ids, **tables)
            elif kind == "lines":
                vectors.append_polylines(store, [points, points + 2], object_attributes={"w": [7.0, 8.0]})
            elif kind == "graph":
                vectors.append_graph(store, points, [[0, 1], [1, 4]])
            elif kind == "mesh":
                vectors.append_mesh(store, points, [[0, 1, 2]])
            else:
                vectors.append_skeleton(store, points, [-1, 0, 1, 2, 2])
        case "delete":
            ids = vectors.read_objects(store).ids
            if len(ids) > 2:
                vectors.delete(store, object_ids=[int(rng.choice(ids))])
        case "box":
            vectors.delete(store, bbox=(spot, spot + 3))
        case "move":
            vectors.move_vertices(store, rng.choice(count, 2, replace=False), spot + rng.uniform(0, 2, (2, 3)))
        case "set":
            ids = vectors.read_objects(store).ids
            if kind in ("lines", "owned points"):
                vectors.set_attribute(store, "w", rng.uniform(0, 9, len(ids)), kind="object")
    return what


def elements(store: Any) -> dict[str, Any]:
    """What the levels of a store hold, their links and their tables."""
    found: dict[str, Any] = {}
    facts = vectors.describe_store(store)
    for level in facts["levels"]:
        number = level["level"]
        if number:
            read = vectors.read_points(store, level=number)
            objects, groups = vectors.read_objects(store, level=number), vectors.read_groups(store, level=number)
            found[f"{number}"] = {
                "positions": read.positions.tolist(),
                "ids": objects.ids.tolist(),
                "counts": objects.fragment_counts.tolist(),
                "attributes": {name: each.tolist() for name, each in objects.attributes.items()},
                "groups": [each.tolist() for each in groups.members],
                "vertex_count": level["vertex_count"],
                "objects": level["objects"],
                "older": level["older"],
            }
            if len(objects.ids):
                paths = [vectors.read_points(store, level=number, object_ids=[each]) for each in objects.ids.tolist()]
                found[f"{number}"]["paths"] = [each.positions.tolist() for each in paths]
            if facts["geometry_types"][0] == "polyline":
                lines = vectors.read_polylines(store, level=number)
                found[f"{number}"]["lines"] = [each.tolist() for each in lines.lines]
            for own, delta in ((number - 1, 1), (number, -1)):
                try:
                    links = sorted(map(tuple, vectors.read_cross_level_links(store, own, delta).tolist()))
                except SelectionError:
                    links = None
                found[f"{own} {delta}"] = links
    return found


def check_same(store: Any) -> None:
    """The levels are what they would be if they were made anew, and everything fits."""
    assert vectors.validate(store).findings == ()
    other = copy_of(store)
    vectors.build_pyramid(other, anew=True)
    assert elements(store) == elements(other)


@pytest.mark.parametrize(("kind", "factors"), list(some(product(KINDS, FACTORS), 3)))
def test_levels_are_the_same_as_made_anew(kind: str, factors: str, monkeypatch: pytest.MonkeyPatch) -> None:
    updated: list[bool] = []
    update = level_updates.update_level

    def counted(*args: Any) -> bool:
        updated.append(update(*args))
        return updated[-1]

    monkeypatch.setattr(pyramid, "update_level", counted)
    for seed in range(8) if SOAK else [list(FACTORS).index(factors)]:  # with shards, or without
        rng = np.random.default_rng([seed, KINDS.index(kind), len(factors)])
        layout = {"shard_shape": 2} if seed % 2 else {}
        store = made(kind, rng, **layout)
        vectors.build_pyramid(store, factors=FACTORS[factors], cross_level_links=seed % 4 != 3)
        for _ in range(8 if SOAK else 2):
            for _ in range(int(rng.integers(1, 3))):
                change(kind, store, rng)
            assert not [each for each in vectors.validate(store).findings if each.severity == "error"]
            assert vectors.build_pyramid(store) == [1, 2]
            check_same(store)
    assert sum(updated) > len(updated) * 0.6, updated


@pytest.mark.parametrize("kind", ["points", "lines"])
def test_killed_anywhere_levels_are_old_or_new(kind: str) -> None:
    rng = np.random.default_rng(5)
    start = made(kind, rng)
    vectors.build_pyramid(start, factors=[(2, 1), (2, 1)])
    before = elements(start)
    change_all(kind, start)
    new = copy_of(start)
    vectors.build_pyramid(new)
    after = elements(new)
    changes, done = 0, False
    while not done:
        store = copy_of(start)
        try:
            vectors.build_pyramid(MortalStore(store, changes))
            done = True
        except Killed:
            pass
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ZarrUserWarning)  # they are older
            found = elements(store)
        for number in ("1", "2"):
            told = {name: each for name, each in found[number].items() if name != "older"}
            states = [
                {name: each for name, each in state[number].items() if name != "older"} for state in (before, after)
            ]
            assert told in states
        assert {each.kind for each in vectors.validate(store).findings} <= {"levels-older", "change-unfinished"}
        for name in ("0 1", "1 -1", "1 1", "2 -1"):
            assert found[name] in (None, before[name], after[name])
        assert vectors.build_pyramid(store) == [1, 2]
        assert elements(store) == after
        assert vectors.validate(store).findings == ()
        assert not [key for key in store.list() if "zardine_log" in key]
        changes += 1 if SOAK else 37
    assert changes > 20


def change_all(kind: str, store: Any) -> None:
    """Append, remove, move and give values."""
    if kind == "points":
        vectors.append_points(store, [[3.0, 3, 3], [-7, 4, 4]], vertex_attributes={"n": [1, 2]})
        vectors.delete(store, bbox=([-20, -20, -20], [-8, 0, 0]))
        vectors.move_vertices(store, [5], [[19.0, 19, 19]])
    else:
        vectors.append_polylines(store, [[[0.0, 0, 0], [9, 9, 9]]], object_attributes={"w": [4.0]})
        vectors.delete(store, object_ids=[4])
        vectors.set_attribute(store, "w", [70.0], kind="object", object_ids=[6])


def test_making_levels_anew_costs_what_was_changed() -> None:
    told = []
    for side in (6, 12):
        store = CountingStore(MemoryStore())
        points = np.stack(np.meshgrid(*[np.arange(side) * 10.0 + 5] * 3), axis=-1).reshape(-1, 3)
        vectors.write_points(store, np.concatenate([points, points + 1]), chunk_shape=10)
        vectors.build_pyramid(store, factors=[(2, 1), (2, 1)])
        vectors.append_points(store, [[12.0, 12, 12]])
        store.reset()
        assert vectors.build_pyramid(store) == [1, 2]
        told.append(store.counts.requests)
        store.reset()
        assert vectors.build_pyramid(store) == [1, 2]
        told.append(store.counts.requests)
    assert told[0] == told[2]
    assert told[0] < 300
    assert told[1] == told[3] < 40


def test_links_to_what_is_older_are_none_until_they_are_made(tmp_path: Path) -> None:
    path = str(tmp_path / "a.zv")
    points = np.random.default_rng(2).uniform(0, 60, (120, 3))
    vectors.write_polylines(path, np.split(points, 12), chunk_shape=20)
    vectors.build_pyramid(path, factors=[(2, 1), (2, 1)])
    for step in range(3):
        if step == 0:
            vectors.append_polylines(path, [[[1.0, 1, 1], [55, 2, 2]]])
        elif step == 1:
            vectors.delete(path, object_ids=[3, 7])
        else:
            vectors.move_vertices(path, [0, 3], [[5.0, 5, 5], [45, 45, 45]])
        for own, delta in ((0, 1), (1, -1)):
            with pytest.warns(ZarrUserWarning, match="older"), pytest.raises(SelectionError, match="no links"):
                vectors.read_cross_level_links(path, own, delta)
        if SOAK or step == 2:
            report = their_validate(path, level=5)
            assert report.ok, report.errors
        assert [each.kind for each in vectors.validate(path).findings] == ["levels-older"]
    assert vectors.build_pyramid(path) == [1, 2]
    report = their_validate(path, level=5)
    assert report.ok, report.errors
    assert len(vectors.read_cross_level_links(path, 0, 1)) == len(vectors.open(path))


def test_options_are_remembered_also_without_the_levels() -> None:
    store = MemoryStore()
    points = np.random.default_rng(3).uniform(0, 60, (300, 3))
    vectors.write_points(store, points, chunk_shape=10)
    options: dict[str, Any] = {"factors": [(3, 1), (2, 1)], "chunk_scale_factors": [6, 4], "cross_level_links": False}
    vectors.build_pyramid(store, sparsity_seed=4, **options)
    shapes = [each["chunk_shape"] for each in vectors.describe_store(store)["levels"]]
    vectors.append_points(store, points[:5] / 2)
    assert vectors.build_pyramid(store) == [1, 2]
    assert [each["chunk_shape"] for each in vectors.describe_store(store)["levels"]] == shapes
    vectors.delete(store, bbox=([0, 0, 0], [59.9, 59.9, 59.9]))  # fewer than the levels have, which go
    assert vectors.open(store).levels == [0]
    vectors.append_points(store, points)
    assert vectors.build_pyramid(store) == [1, 2]
    assert [each["chunk_shape"] for each in vectors.describe_store(store)["levels"]] == shapes
    with pytest.raises(SelectionError, match="no links"):
        vectors.read_cross_level_links(store, 0, 1)
    check_same(store)
    assert vectors.build_pyramid(store, factors=[]) == []
    assert vectors.build_pyramid(store) == [1]


def test_options_that_are_given_count_beside_those_remembered() -> None:
    store = made("lines", np.random.default_rng(1))
    vectors.build_pyramid(store, factors=[(2, 1), (2, 2)], sparsity_seed=7, cross_level_links=False)
    one, other = copy_of(store), copy_of(store)
    assert vectors.build_pyramid(one, sparsity_seed=8) == [1, 2]
    vectors.build_pyramid(other, factors=[(2, 1), (2, 2)], sparsity_seed=8, cross_level_links=False)
    found, wanted, before = (vectors.read_polylines(each, level=2).positions.tolist() for each in (one, other, store))
    assert found == wanted != before
    assert vectors.build_pyramid(one, chunk_scale_factors=[4, 4]) == [1, 2]
    vectors.build_pyramid(one, cross_level_links=True)
    facts = vectors.describe_store(one)
    assert [each["chunk_shape"][0] for each in facts["levels"]] == [4, 16, 64]


def test_changes_that_nobody_told_of_are_found_where_they_can_be() -> None:
    store = MemoryStore()
    points = np.random.default_rng(4).uniform(0, 60, (60, 3))
    vectors.write_points(store, points, chunk_shape=20)
    vectors.build_pyramid(store)
    document = json.loads(bytes(store.get("0/zarr.json") or b""))
    vectors.append_points(store, [[3.0, 3, 3]])
    told = json.loads(bytes(store.get("0/zarr.json") or b""))
    assert told["attributes"]["zardine_touched"]["chunks"] == ["0.0.0"]
    told["attributes"] = {**document["attributes"], "zarr_vectors_level": told["attributes"]["zarr_vectors_level"]}
    store.set("0/zarr.json", json.dumps(told).encode())  # as a program leaves it that does not know of levels
    assert vectors.build_pyramid(store) == [1]
    check_same(store)
    vectors.append_points(store, [[3.0, 3, 3]])
    for damaged in ("3", "[]", "{}", '{"revision":1,"chunks":[["a"]]}', '{"chunks":"0.0.0"}', '["0.0.0"]'):
        other = copy_of(store)
        document = json.loads(bytes(other.get("0/zarr.json") or b""))
        document["attributes"]["zardine_touched"] = json.loads(damaged)
        other.set("0/zarr.json", json.dumps(document).encode())
        assert vectors.build_pyramid(other) == [1]
        check_same(other)
    for damaged in ("3", "{}", '{"factors":3}', '{"factors":[3],"of":300}', '{"factors":[["a","b"]]}'):
        other = copy_of(store)
        document = json.loads(bytes(other.get("1/zarr.json") or b""))
        document["attributes"]["zardine_made"] = json.loads(damaged)
        other.set("1/zarr.json", json.dumps(document).encode())
        assert vectors.build_pyramid(other, factors=[(2, 1)]) == [1]
        check_same(other)


def test_many_changes_are_remembered_in_bounded_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(touched, "_MOST", 2**8)
    store = MemoryStore()
    points = np.stack(np.meshgrid(np.arange(18) + 0.5, np.arange(18) + 0.5), axis=-1).reshape(-1, 2)
    vectors.write_points(store, points, chunk_shape=1)
    vectors.build_pyramid(store)
    for part in np.split(points, 4):
        vectors.append_points(store, part)
    assert len(store.get("0/zarr.json") or b"") < 2000  # all would take more than twice that
    assert vectors.build_pyramid(store) == [1]
    check_same(store)


def _move_to_and_fro(path: str, stop: Any) -> None:
    while not stop.is_set():
        for place in ([1.0, 1, 1], [51.0, 51, 51]):
            vectors.move_vertices(path, [0, 1, 2], [place] * 3, object_ids=[0])
            vectors.build_pyramid(path)


@pytest.mark.parametrize("shards", [None, 2])
def test_readers_of_levels_see_one_state(shards: int | None, tmp_path: Path) -> None:
    path = str(tmp_path / "a.zv")
    points = np.random.default_rng(6).uniform(0, 59, (200, 3))
    layout = {"shard_shape": shards} if shards else {}
    vectors.write_points(path, points, chunk_shape=10, object_ids=np.minimum(np.arange(200) // 3, 60), **layout)
    vectors.build_pyramid(path, factors=[(2, 1), (2, 1)])
    states: dict[int, list[Any]] = {1: [], 2: []}

    def state(level: int) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ZarrUserWarning)
            read = vectors.read_points(path, level=level)
            own = vectors.read_points(path, level=level, object_ids=[0])
        return sorted(map(tuple, read.positions.tolist())), len(own)

    for place in ([1.0, 1, 1], [51.0, 51, 51]):
        vectors.move_vertices(path, [0, 1, 2], [place] * 3, object_ids=[0])
        vectors.build_pyramid(path)
        for level, seen in states.items():
            seen.append(state(level))
    context = multiprocessing.get_context("fork")
    stop = context.Event()
    other = context.Process(target=_move_to_and_fro, args=(path, stop))
    other.start()
    try:
        ends = time.monotonic() + (20 if SOAK else 0.3)
        found = [0, 0]
        while time.monotonic() < ends or (not min(found) and time.monotonic() < ends + PATIENCE):
            for level, seen in states.items():
                found[seen.index(state(level))] += 1
    finally:
        stop.set()
        other.join(PATIENCE)
    assert other.exitcode == 0
    assert min(found) > 0
    assert vectors.build_pyramid(path) == [1, 2]
    check_same(copy_of(LocalStore(path)))


@pytest.mark.parametrize("kind", ["points", "lines"])
def test_levels_that_are_damaged_are_made_anew(kind: str) -> None:
    rng = np.random.default_rng(7)
    start = made(kind, rng)
    vectors.build_pyramid(start, factors=[(2, 1), (2, 1)])
    change_all(kind, start)
    whole = copy_of(start)
    vectors.build_pyramid(whole)
    wanted = elements(whole)
    keys = [key for key in start.list() if key.startswith(("1/", "2/"))]
    chosen = rng.choice(keys, len(keys) if SOAK else 3, replace=False).tolist()
    for number, key in enumerate(dict.fromkeys(["1/zarr.json", "2/zarr.json", "1/vertices/zarr.json", *chosen])):
        of_levels = key in ("1/zarr.json", "2/zarr.json")  # which repair tells of, and every writer
        damaged = [None] if of_levels else [b"{}", bytes(start.get(key) or b"")[:-9], None]
        for value in damaged if SOAK or of_levels else damaged[number % 3 :][:1]:
            store = copy_of(start)
            store.erase(key) if value is None else store.set(key, value)
            if (
                vectors.build_pyramid(store, factors=[(2, 1), (2, 1)]) == [1, 2]
                and not vectors.validate(store).findings
            ):
                assert elements(store) == wanted, key
            assert vectors.build_pyramid(store, factors=[(2, 1), (2, 1)], anew=True) == [1, 2]
            assert elements(store) == wanted, key


def test_objects_whose_paths_are_as_before_are_not_stored_again(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore()
    places = np.stack(np.meshgrid(*[np.arange(4) * 10.0 + 2] * 3), axis=-1).reshape(-1, 3)
    lines = [place + np.array([[0, 0, 0], [3, 3, 3], [12, 2, 2]]) for place in places]
    vectors.write_polylines(store, lines, chunk_shape=20, bin_shape=10, object_attributes={"n": np.arange(64)})
    vectors.build_pyramid(store, factors=[(2, 1), (2, 1)])
    stored: dict[str, list[int]] = {}
    put_rows = level_updates.put_rows

    def noted(patch: Any, table: Any, path: str, rows: Any, *rest: Any) -> None:
        stored.setdefault(path, []).append(len(rows))
        put_rows(patch, table, path, rows, *rest)

    monkeypatch.setattr(level_updates, "put_rows", noted)
    vectors.append_polylines(store, [lines[7] + 1, lines[40] + 1], object_attributes={"n": [1, 2]})
    assert vectors.build_pyramid(store) == [1, 2]
    assert stored == {"object_index/manifests": [2, 2], "object_index/object_ids": [2, 2]}
    check_same(store)


@pytest.mark.parametrize("shards", [None, 2])
@pytest.mark.parametrize("kind", ["points", "lines"])
def test_a_grid_that_grows_together_with_links_in_a_new_direction(kind: str, shards: int | None) -> None:
    """The array of links, which is new, has the grid that the level gets by the same change."""
    store = MemoryStore()
    near, far = np.array([[5.0, 5], [7, 7]]), np.array([[45.0, 15], [46, 16]])
    if kind == "points":
        vectors.write_points(store, near, chunk_shape=10, shard_shape=shards)
        vectors.build_pyramid(store, factors=[(2, 1)])
        vectors.append_points(store, far)
    else:
        vectors.write_polylines(store, [near], chunk_shape=10, shard_shape=shards)
        vectors.build_pyramid(store, factors=[(2, 1)])
        vectors.append_polylines(store, [far])
    assert vectors.build_pyramid(store) == [1]
    assert vectors.describe_store(store)["levels"][1]["vertex_count"] == len(vectors.read_points(store, level=1))
    check_same(store)
