"""The object to hold: facts, reading and changing, of every geometry."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from vectors.stores_of_all_kinds import COUNT, WRITERS, store_of
from zardine import vectors
from zardine.errors import DataError, ReadOnlyError, SelectionError
from zardine.storage import CountingStore, LocalStore, MemoryStore
from zardine.vectors import Polylines


@pytest.mark.parametrize("kind", sorted(WRITERS))
def test_every_geometry(kind: str) -> None:
    store = store_of(kind, shard_shape=2)
    held = vectors.open(store, mode="r+")
    assert len(held) == COUNT
    assert f"{COUNT} vertices" in repr(held)
    assert held.levels == [0]
    assert len(held.axes) == 3
    found = held.read(attributes=None, object_ids=[11] if kind != "points" else None)
    assert len(found.positions) == (COUNT if kind == "points" else COUNT // 4)
    more = held.read(attributes=None, bbox=[0, 0, 0, 30, 30, 30])
    if isinstance(more, Polylines):
        more = Polylines.from_lines(more.lines, object_ids=np.arange(100, 100 + len(more)))
    held.append(more)
    assert len(held) == COUNT + len(more.positions)
    assert held.delete(bbox=[-30] * 3 + [30] * 3) == len(more.positions) + COUNT
    assert held.validate().ok


def test_what_was_opened_to_be_read_is_not_changed() -> None:
    held = vectors.open(store_of("points"))
    with pytest.raises(ReadOnlyError, match="mode='r\\+'"):
        held.delete(bbox=[0, 0, 0, 1, 1, 1])
    with pytest.raises(DataError, match="mode is"):
        vectors.open(store_of("points"), mode="w")  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", sorted(set(WRITERS) - {"points"}))
def test_objects_and_groups(kind: str) -> None:
    held = vectors.open(store_of(kind), mode="r+")
    assert list(held.objects) == held.objects.ids.tolist() == [10, 11, 12, 13]
    assert len(held.objects) == 4
    assert 12 in held.objects
    assert 2 not in held.objects
    assert "12" not in held.objects
    assert held.objects.attributes["name"].tolist() == ["a", "b", "c", "d"]
    one = held.objects[11]
    assert len(one.positions) == COUNT // 4
    assert set(np.asarray(one.object_ids).tolist()) == {11}
    for wanted, ids in ((slice(11, 13), {11, 12}), (slice(None), {10, 11, 12, 13}), (slice(10, None, 2), {10, 12})):
        assert set(np.asarray(held.objects[wanted].object_ids).tolist()) == ids
    assert set(np.asarray(held.objects[[10, 13]].object_ids).tolist()) == {10, 13}
    assert len(held.objects[20:30].positions) == 0
    assert [(number, len(each.positions)) for number, each in held.objects.items()] == [(n, 10) for n in range(10, 14)]
    assert held.groups.names == ["x", "y"]
    assert held.groups.members("y").tolist() == [11]
    assert held.groups["x"].positions.tolist() == held.read(group_ids=[0]).positions.tolist()
    assert held.groups[1].positions.tolist() == one.positions.tolist()
    assert list(held.groups) == [0, 1]
    assert ["x" in held.groups, 1 in held.groups, "z" in held.groups, 2 in held.groups] == [True, True, False, False]
    assert repr(held.groups) == "<2 groups: ['x', 'y']>"
    for wrong in (99, "11", slice("a", None), slice(None, None, -1)):
        with pytest.raises(SelectionError):
            held.objects[wrong]  # type: ignore[index]
    for wrong in (2, -1, "z", 0.5):
        with pytest.raises(SelectionError):
            held.groups[wrong]  # type: ignore[index]
    assert held.attributes["object"] == ["name", "size"]
    assert held.attributes["group"] == ["label"]


def test_where_groups_have_no_names() -> None:
    held = vectors.open(store_of("graph"), mode="r+")
    held.set_attribute("code", [3, 4], kind="group")
    held.set_attribute("label", None, kind="group")
    assert held.groups.names == []
    with pytest.raises(SelectionError, match="only numbers from 0 to 1"):
        held.groups["x"]
    held.set_attribute("label", ["x", "x"], kind="group")
    with pytest.raises(SelectionError, match="2 groups have the name 'x'"):
        held.groups["x"]
    assert "1 objects" not in repr(vectors.open(store_of("points")).objects)
    assert len(vectors.open(store_of("points")).groups) == 0
    with pytest.raises(SelectionError, match="the store has no groups"):
        vectors.open(store_of("points")).groups["x"]


def test_groups_are_given_by_their_names() -> None:
    lines, store = [np.eye(3), np.eye(3) + 1, np.eye(3) + 2], MemoryStore()
    groups = {"left": [0, 2], "right": [1]}
    vectors.write_polylines(store, lines, chunk_shape=9, groups=groups, group_attributes={"w": [1, 2]})
    held = vectors.open(store)
    assert held.groups.names == ["left", "right"]
    assert held.groups["left"].object_ids.tolist() == [0, 2]  # type: ignore[union-attr]
    assert held.groups.attributes["w"].tolist() == [1, 2]
    with pytest.raises(DataError, match="give one of them"):
        vectors.write(MemoryStore(), held.read(), groups=groups, group_attributes={"name": ["a", "b"]})
    with pytest.raises(DataError, match="one line is given as"):
        vectors.open(store, "r+").append(np.eye(3))


def test_changes() -> None:
    held = vectors.open(store_of("points"), mode="r+")
    held.set_attribute("n", np.arange(COUNT)[::-1])
    row = int(np.flatnonzero(held.read().attributes["n"] == 7)[0])
    held.move([row], [[500, 0, 0]])
    assert held.read(where={"n": 7}).positions.tolist() == [[500, 0, 0]]
    assert held.bounds[1][0] == 500
    assert held.build_pyramid(factors=[(2, 1)]) == [1]
    assert held.repair(dry_run=True).ok
    assert held.repair().actions == ()
    for change in (
        lambda each: each.repair(),
        lambda each: each.move([0], [[0, 0, 0]]),
        lambda each: each.set_attribute("n", None),
        lambda each: each.append([[0, 0, 0]]),
    ):
        with pytest.raises(ReadOnlyError):
            change(vectors.open(held.path))
    assert vectors.open(held.path).repair(dry_run=True).ok
    for kind, wanted in (("graph", "a Graph can"), ("polylines", "Polylines, or a list of arrays,")):
        with pytest.raises(DataError, match=wanted):
            vectors.open(store_of(kind), mode="r+").append("text")
    with pytest.raises(DataError, match="one row for each of the 0 new objects"):
        vectors.open(store_of("mesh"), mode="r+").append(
            vectors.read_mesh(store_of("mesh")), object_attributes={"a": [1]}
        )


@pytest.mark.parametrize(
    ("method", "function"),
    [
        ("set_attribute", "set_attribute"),
        ("move", "move_vertices"),
        ("validate", "validate"),
        ("repair", "repair"),
        ("info", "describe_store"),
    ],
)
def test_methods_take_what_the_functions_take(method: str, function: str) -> None:
    taken = list(inspect.signature(getattr(vectors.Vectors, method)).parameters.values())[1:]
    assert taken == list(inspect.signature(getattr(vectors, function)).parameters.values())[1:]


def test_values_of_some_objects() -> None:
    held = vectors.open(store_of("polylines"), mode="r+")
    held.set_attribute("n", np.full(len(held.objects[11].positions), -5), object_ids=[11])
    found = held.read()
    assert isinstance(found, Polylines)
    owner = np.repeat(found.object_ids, np.diff(found.starts))
    assert ((found.attributes["n"] == -5) == (owner == 11)).all()


@pytest.mark.parametrize("local", [False, True])
def test_facts_take_one_look_until_somebody_changes_the_store(local: bool, tmp_path: Path) -> None:
    place = str(tmp_path / "a.zv") if local else MemoryStore()
    store = CountingStore(LocalStore(place) if isinstance(place, str) else place)
    points = np.random.default_rng(0).uniform(0, 90, (400, 3))
    vectors.write_points(place, points, chunk_shape=10, vertex_attributes={"n": np.arange(400)})
    v = vectors.open(store)
    assert len(v) == 400
    asked: dict[str, Callable[[], Any]] = {
        "len": lambda: len(v),
        "bounds": lambda: v.bounds,
        "axes": lambda: v.axes,
        "crs": lambda: v.crs,
        "levels": lambda: v.levels,
        "attributes": lambda: v.attributes,
    }
    for name, ask in asked.items():
        store.reset()
        ask()
        assert (store.counts.requests, store.counts.bytes_read) <= (1, 0), name
    store.reset()
    repr(v)
    assert (store.counts.requests, store.counts.bytes_read) <= (3, 0)
    vectors.append_points(place, points[:10] + 100, vertex_attributes={"n": np.arange(10)})
    assert len(v) == 410
    assert v.bounds[1][0] > 90
    vectors.set_attribute(place, "m", np.arange(410))
    assert v.attributes == {"vertex": ["m", "n"]}
    vectors.build_pyramid(place, cross_level_links=False)
    assert v.levels == [0, 1]
    assert "older" not in repr(v)
    vectors.delete(place, bbox=([0, 0, 0], [5, 50, 50]))
    assert "[1] are older" in repr(v)
    vectors.build_pyramid(place)
    assert "older" not in repr(v)
    assert "shards" not in repr(v)
    vectors.shard_store(place, shard_shape=4)
    assert "shards" in repr(v)
    vectors.build_pyramid(place, factors=[])
    assert v.levels == [0]
    v.bounds[0][0] = v.axes[0]["name"] = "mine"
    assert (v.bounds[0][0], v.axes[0]["name"]) != ("mine", "mine")
    vectors.write_points(place, points[:5], chunk_shape=10, overwrite=True)
    assert (len(v), v.attributes) == (5, {})
