"""Edits whose writer is killed, or fails: everything is as before or as after, and the next one goes on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from effort import SOAK
from vectors.geometry_samples import Killed, MortalStore, copy_of, links, rows, values
from zardine import vectors
from zardine.errors import CorruptionError, StoreError
from zardine.storage import MemoryStore, Store, WrapperStore

RNG = np.random.default_rng(11)
P = RNG.uniform(0, 100, (12, 2))
MORE = RNG.uniform(0, 120, (4, 2))
EDGES = RNG.integers(0, 12, (15, 2))
INSIDE = np.array([[i, j] for i in range(12) for j in range(i) if (np.floor(P[i] / 50) == np.floor(P[j] / 50)).all()])
TREE = np.array([-1, *(RNG.integers(0, i) for i in range(1, 12))])

Write = Callable[[Store], object]


def points(store: Store) -> None:
    vectors.write_points(store, P, chunk_shape=50, vertex_attributes={"n": np.arange(12)})


def objects(store: Store) -> None:
    vectors.write_points(store, P, chunk_shape=50, shard_shape=2, object_ids=np.arange(12) % 3, groups=[[0], [1, 2]])


def lines(store: Store) -> None:
    vectors.write_polylines(store, [P[:6], P[6:]], chunk_shape=50)


def graph(store: Store) -> None:
    vectors.write_graph(store, P, EDGES, chunk_shape=50, edge_attributes={"w": np.arange(15)})


def inner_graph(store: Store) -> None:
    vectors.write_graph(store, P, INSIDE, chunk_shape=50)


def skeleton(store: Store) -> None:
    vectors.write_skeleton(store, P, TREE, chunk_shape=50)


def valued(store: Store) -> None:
    values = {"vertex_attributes": {"n": np.arange(12)}, "object_attributes": {"w": [1.0, 2, 3]}}
    vectors.write_points(store, P, chunk_shape=50, shard_shape=2, object_ids=np.arange(12) % 3, **values)


def pyramid(store: Store) -> None:
    points(store)
    vectors.build_pyramid(store, factors=[(2, 1)])


EDITS: dict[str, tuple[Write, Write]] = {
    "new attribute": (points, lambda s: vectors.set_attribute(s, "q", np.arange(12))),
    "other values": (points, lambda s: vectors.set_attribute(s, "n", np.arange(12) * 2)),
    "no attribute": (points, lambda s: vectors.set_attribute(s, "n", None)),
    "points with a new attribute": (
        points,
        lambda s: vectors.append_points(s, MORE, vertex_attributes={"n": np.arange(4), "text": ["a"] * 4}),
    ),
    "points of objects": (
        objects,
        lambda s: vectors.append_points(s, MORE, object_ids=np.arange(4), object_attributes={"w": np.arange(1)}),
    ),
    "attribute of objects": (objects, lambda s: vectors.set_attribute(s, "w", [1, 2, 3], kind="object")),
    "some values": (valued, lambda s: vectors.set_attribute(s, "n", [7] * 8, object_ids=[0, 2])),
    "values of some objects": (
        valued,
        lambda s: vectors.set_attribute(s, "w", [7, 8], kind="object", object_ids=[2, 0]),
    ),
    "attribute of groups": (objects, lambda s: vectors.set_attribute(s, "w", [1, 2], kind="group")),
    "fewer objects": (objects, lambda s: vectors.delete(s, object_ids=[1])),
    "lines": (lines, lambda s: vectors.append_polylines(s, [MORE])),
    "first edges between chunks": (inner_graph, lambda s: vectors.append_graph(s, P, EDGES)),
    "attribute of edges": (inner_graph, lambda s: vectors.set_attribute(s, "w", np.arange(len(INSIDE)), kind="link")),
    "fewer edges": (graph, lambda s: vectors.delete(s, bbox=([0, 0], [50, 60]))),
    "moved": (graph, lambda s: vectors.move_vertices(s, [1, 2], MORE[:2])),
    "trees": (skeleton, lambda s: vectors.append_skeleton(s, MORE, np.arange(4) - 1)),
    "older levels": (pyramid, lambda s: vectors.append_points(s, MORE)),
    "levels that go": (pyramid, lambda s: vectors.delete(s, where={"n": list(range(11))})),
    "one line less": (lines, lambda s: vectors.delete(s, object_ids=[0])),
    "lines that are cut": (lines, lambda s: vectors.delete(s, bbox=([20, 20], [80, 80]))),
    "trees that are cut": (skeleton, lambda s: vectors.delete(s, bbox=([0, 0], [50, 50]))),
    "fewer points": (points, lambda s: vectors.delete(s, where={"n": [1, 2, 5]})),
    "moved points": (points, lambda s: vectors.move_vertices(s, [1, 2], P[:2] / 2)),
    "moved a little": (
        graph,
        lambda s: vectors.move_vertices(s, [1], vectors.read_points(s).positions[1] + [[0, 1e-6]]),
    ),
    "moved lines": (lines, lambda s: vectors.move_vertices(s, [0, 3], P[:2] / 2, object_ids=[1])),
    "moved trees": (skeleton, lambda s: vectors.move_vertices(s, [1, 2], P[:2] / 2)),
    "attribute with coarser levels": (pyramid, lambda s: vectors.set_attribute(s, "q", np.arange(12))),
}


EVERY = ("new attribute", "first edges between chunks")
"""Killed at every third of their changes; the others at every 29th; in a soak run at each."""


def faults(store: Store) -> list[str]:
    """What is wrong with a store, but that levels above may be older."""
    return [each.kind for each in vectors.validate(store).findings if each.kind != "levels-older"]


def told(store: Store) -> Any:
    """All that a store says."""
    found = vectors.read_points(store)
    ids = np.zeros(len(found)) if found.object_ids is None else found.object_ids
    columns = {name: rows(found.positions, ids, each) for name, each in found.attributes.items()}
    kind = vectors.describe_store(store)["geometry_types"][0]
    edges: Any = []
    weights, tables = {}, list[Any]()
    if kind == "streamline":
        edges = [line.tolist() for line in vectors.read_polylines(store).lines]
    elif kind == "mesh":
        mesh = vectors.read_mesh(store)
        edges = links(mesh.positions, mesh.faces)
        weights = {name: links(mesh.positions, mesh.faces, each) for name, each in mesh.face_attributes.items()}
    else:
        net = vectors.read_graph(store)
        edges = links(net.positions, net.edges)
        weights = {name: links(net.positions, net.edges, each) for name, each in net.edge_attributes.items()}
    if found.object_ids is not None:
        table = vectors.read_objects(store)
        tables.append((table.ids.tolist(), {name: each.tolist() for name, each in table.attributes.items()}))
        groups = vectors.read_groups(store)
        members = [each.tolist() for each in groups.members]
        tables.append((members, {name: each.tolist() for name, each in groups.attributes.items()}))
    return rows(found.positions, ids), columns, edges, weights, repr(tables)


@pytest.mark.parametrize("name", EDITS)
def test_killed_anywhere_it_is_done_or_not(name: str) -> None:
    write, edit = EDITS[name]
    whole, after = MemoryStore(), MemoryStore()
    write(whole)
    write(after)
    edit(after)
    states = [told(whole), told(after)]
    assert states[0] != states[1]
    seen, changes, done = set(), 0, False
    while not done:
        store = copy_of(whole)
        try:
            edit(MortalStore(store, changes))
            done = True
        except Killed:
            pass
        state = told(store)
        assert state in states
        seen.add(states.index(state))
        vectors.describe_store(store)
        vectors.is_sharded(store)
        left = copy_of(store)
        vectors.repair(left)
        assert told(left) == state
        assert faults(left) == []
        if state == states[0]:
            edit(store)
            assert told(store) == states[1]
            vectors.repair(store)
            assert faults(store) == []
        changes += 1 if SOAK else 3 if name in EVERY else 29
    assert seen == {0, 1}


class FullStore(WrapperStore):
    """Has room for so many values, and then for none; removing works."""

    def __init__(self, store: Store, room: int, error: type[BaseException]) -> None:
        super().__init__(store)
        self.room = room
        self.error = error

    def set(self, key: str, value: Any, *, condition: Any = None) -> Any:
        self.room -= 1
        if self.room == -1:
            raise self.error("no room")
        return super().set(key, value, condition=condition)


@pytest.mark.parametrize(
    ("name", "error"), [*((name, StoreError) for name in EDITS), *((name, KeyboardInterrupt) for name in EVERY)]
)
def test_an_error_leaves_nothing_behind(name: str, error: type[BaseException]) -> None:
    write, edit = EDITS[name]
    whole, after = MemoryStore(), MemoryStore()
    write(whole)
    write(after)
    edit(after)
    states, room = [told(whole), told(after)], 0
    while True:
        store = copy_of(whole)
        try:
            edit(FullStore(store, room, error))
            break
        except error:
            pass
        state = told(store)
        assert state in states
        if state == states[0] and write is not pyramid:
            before, now = values(whole), values(store)
            before.pop("zarr.json"), now.pop("zarr.json")  # bounds may have grown
            assert before == now
        edit(store) if state == states[0] else vectors.repair(store)
        assert told(store) == states[1]
        assert faults(store) == []
        room += 1 if SOAK else 3 if name in EVERY else 23


def test_readers_meanwhile_see_what_was_or_what_is() -> None:
    class Watched(WrapperStore):
        def set(self, key: str, value: Any, *, condition: Any = None) -> Any:
            given = super().set(key, value, condition=condition)
            assert told(store) in states
            return given

    for name in ("new attribute", "first edges between chunks", "points with a new attribute"):
        write, edit = EDITS[name]
        after, store = MemoryStore(), MemoryStore()
        write(after)
        write(store)
        states = [told(store)]
        edit(after)
        states.append(told(after))
        edit(Watched(store))
        assert told(store) == states[1]


BALL = vectors.ParametricObject("sphere", np.array([1.0, 2, 3, 4]), "ball")
PLANE = vectors.ParametricObject("plane", np.array([1.0, 0, 0, 2]), "floor")


@pytest.mark.parametrize("before", [[], [BALL], [BALL, PLANE, BALL]])
def test_parametric_objects_are_the_old_or_the_new_ones(before: list[vectors.ParametricObject]) -> None:
    whole = MemoryStore()
    points(whole)
    if before:
        vectors.write_parametric_objects(whole, before, groups=[[0]])
    seen, changes, done = set(), 0, False
    while not done:
        store = copy_of(whole)
        try:
            vectors.write_parametric_objects(MortalStore(store, changes), [PLANE, BALL])
            done = True
        except Killed:
            pass
        names = tuple(each.name for each in vectors.read_parametric_objects(store))
        assert names in (tuple(each.name for each in before), ("floor", "ball"))
        seen.add(names)
        assert vectors.validate(store).ok
        vectors.write_parametric_objects(store, [PLANE])
        assert [each.name for each in vectors.read_parametric_objects(store)] == ["floor"]
        assert not [key for key in values(store) if key.startswith(("parametric/groups", "parametric/objects/c."))]
        changes += 1 if SOAK else 3
    assert len(seen) == 2


def test_an_overwritten_store_is_the_old_or_the_new_one() -> None:
    def replace(store: Store) -> None:
        vectors.write_graph(store, MORE + 500, [[0, 1]], chunk_shape=70, shard_shape=2, overwrite=True)

    whole, fresh = MemoryStore(), MemoryStore()
    pyramid(whole)
    vectors.write_parametric_objects(whole, [BALL])
    old, unreadable, seen = rows(P), 0, set()
    replace(fresh)
    new, changes, done = rows(MORE + 500), 0, False
    while not done:
        store = copy_of(whole)
        try:
            replace(MortalStore(store, changes))
            done = True
        except Killed:
            pass
        try:
            state = rows(vectors.read_points(store).positions)
        except CorruptionError:
            unreadable += 1
            vectors.repair(store)
            state = rows(vectors.read_points(store).positions)
            assert state == new
        assert state in (old, new)
        seen.add(state == new)
        vectors.repair(store)
        assert vectors.validate(store).findings == ()
        assert (vectors.read_parametric_objects(store) == []) == (state == new)
        if state == new:
            assert values(store) == values(fresh)
        changes += 1 if SOAK else 3
    assert seen == {True, False}
    assert unreadable
