"""Stores of vectors that several change at the same time, and are killed over: each sees its own changes, whole."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from effort import SOAK
from meddling import Stage, let_play
from zardine import vectors
from zardine.errors import SelectionError
from zardine.storage import MemoryStore
from zardine.vectors.storing.claims import OvertakenError

FOUND = [77, 102, 111]
"""Seeds that have once found something: links in a new direction, off the grid of a level that grew."""

FOUND_FAR = [41, 45, 57, 134, 191, 454]
"""Seeds that have once found something: changes that took the place of others' before these were carried out."""

FOUND_ANEW = [59, 60, 272]
"""Seeds that have once found something: arrays that several stored anew, claims that were left or changed beside."""

State = dict[int, tuple[int, int]]
"""Of each object, by its number, the value of its vertices, and in which of its places it is."""


class Geometry:
    """Objects of one vertex, or of three, whose numbers say where they are."""

    def __init__(self, kind: str) -> None:
        self.kind, self.size = kind, 1 if kind == "points" else 3

    def places(self, number: int, place: int = 0) -> npt.NDArray[np.float64]:
        n = 3.0 * number + np.arange(self.size) + 7 * place
        wide = 1 if number >= 9000 else 3  # so that the grid grows by what is appended
        return np.stack([n * 37.3 % (wide * 97), n * 11.7 % (wide * 59)], axis=-1)

    def given(self, numbers: list[int]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        of_vertices = np.repeat(np.asarray(numbers, np.int64), self.size)
        values = {"vertex_attributes": {"n": of_vertices, "v": np.zeros(len(of_vertices), np.int64)}}
        where = [self.places(each) for each in numbers]
        if self.kind == "lines":
            return (where,), {"object_ids": numbers, **values}
        both = np.concatenate(where)
        firsts = 3 * np.arange(len(numbers)).reshape(-1, 1)
        if self.kind == "mesh":
            return (both, firsts + np.arange(3)), {"object_ids": of_vertices, **values}
        if self.kind == "skeleton":
            parents = np.where(np.arange(3), firsts + np.arange(-1, 2), -1).ravel()
            return (both, parents), {"object_ids": of_vertices, **values}
        edges = np.concatenate([firsts + np.array([0, 1]), firsts + np.array([1, 2])])
        return (both, *([edges] if self.kind == "graph" else [])), {"object_ids": of_vertices, **values}

    def write(self, store: Any, numbers: list[int], **how: Any) -> None:
        write = {"points": vectors.write_points, "lines": vectors.write_polylines, "graph": vectors.write_graph}
        write |= {"mesh": vectors.write_mesh, "skeleton": vectors.write_skeleton}
        positional, named = self.given(numbers)
        write[self.kind](store, *positional, **named, dtype="f8", **how)  # type: ignore[operator]

    def append(self, store: Any, numbers: list[int]) -> None:
        append = {"points": vectors.append_points, "lines": vectors.append_polylines, "graph": vectors.append_graph}
        append |= {"mesh": vectors.append_mesh, "skeleton": vectors.append_skeleton}
        positional, named = self.given(numbers)
        append[self.kind](store, *positional, **named)  # type: ignore[operator]

    def read(self, store: Any, bbox: Any = None) -> State:
        """Return what there is, if it fits together."""
        if self.kind == "lines":
            lines = vectors.read_polylines(store, bbox=bbox)
            assert all(len(each) == self.size for each in lines.lines)
            positions, attributes = np.concatenate([np.zeros((0, 2)), *lines.lines]), lines.attributes
        elif self.kind == "graph":
            graph = vectors.read_graph(store, bbox=bbox)
            positions, attributes = graph.positions, graph.attributes
            ends = attributes["n"][graph.edges]
            assert (ends[:, 0] == ends[:, 1]).all()
            assert (np.unique(ends[:, 0], return_counts=True)[1] == 2).all()
            assert len(ends) * 3 == len(positions) * 2
        elif self.kind == "mesh":
            mesh = vectors.read_mesh(store, bbox=bbox)
            positions, attributes = mesh.positions, mesh.attributes
            corners = attributes["n"][mesh.faces]
            assert (corners == corners[:, :1]).all()
            assert len(np.unique(corners[:, 0])) * 3 == len(corners) * 3 == len(positions)
        elif self.kind == "skeleton":
            skeleton = vectors.read_skeleton(store, bbox=bbox)
            positions, attributes, parents = skeleton.positions, skeleton.attributes, skeleton.parents
            held = np.flatnonzero(parents >= 0)
            assert (attributes["n"][held] == attributes["n"][parents[held]]).all()
            assert len(held) * 3 == len(positions) * 2
        else:
            points = vectors.read_points(store, bbox=bbox)
            positions, attributes = points.positions, points.attributes
        found: State = {}
        for number in np.unique(attributes["n"]).tolist():
            mine = attributes["n"] == number
            (value,) = np.unique(attributes["v"][mine])
            places = [np.sort(self.places(number, each), axis=0) for each in (0, 1)]
            here = [each.tolist() for each in places].index(np.sort(positions[mine], axis=0).tolist())
            found[number] = int(value), here
        return found


class Worker:
    """Changes objects whose numbers are its own, of which it knows all."""

    does = ("append", "append", "delete", "give", "move")

    def __init__(self, stage: Stage, chosen: random.Random, geometry: Geometry, number: int, first: list[int]) -> None:
        self.stage, self.chosen, self.geometry, self.number = stage, random.Random(chosen.random()), geometry, number
        self.state: State = dict.fromkeys(first, (0, 0))
        self.history = [self.state]
        self.times = chosen.randint(0, 4)
        self.next = number * 1000 + 500

    def run(self) -> None:
        for _ in range(self.times):
            new, change = getattr(self, self.chosen.choice(self.does))()
            self.history.append(new)
            self.until_done(lambda change=change, new=new: self.made(change, new))  # type: ignore[misc]
            self.state = new

    def made(self, change: Callable[[Any], object], new: State) -> None:
        while True:
            store = self.stage.store(kills=True)
            now = self.mine(self.geometry.read(store))
            assert now in (self.state, new)  # where a change was killed
            if now == new:
                return
            try:
                change(store)
                return
            except OvertakenError:
                assert self.stage.far  # elsewhere nobody comes between
                self.stage.sleep(0.5)

    def until_done(self, work: Callable[[], object]) -> None:
        self.stage.until_done(work)()

    def mine(self, state: State) -> State:
        return {each: told for each, told in state.items() if each // 1000 == self.number}

    def some(self) -> list[int]:
        return self.chosen.sample(sorted(self.state), self.chosen.randint(min(1, len(self.state)), len(self.state)))

    def append(self) -> tuple[State, Callable[[Any], object]]:
        count = self.chosen.randint(1, 3)
        self.next += count
        numbers = list(range(self.next - count, self.next))
        return {**self.state, **dict.fromkeys(numbers, (0, 0))}, lambda store: self.geometry.append(store, numbers)

    def delete(self) -> tuple[State, Callable[[Any], object]]:
        gone = self.some()
        left = {each: told for each, told in self.state.items() if each not in gone}
        return left, lambda store: vectors.delete(store, object_ids=gone) if gone else None

    def give(self) -> tuple[State, Callable[[Any], object]]:
        some, value = self.some(), self.chosen.randint(1, 9)
        new = {each: (value, told[1]) if each in some else told for each, told in self.state.items()}
        values = [value] * (len(some) * self.geometry.size)
        return new, lambda store: vectors.set_attribute(store, "v", values, object_ids=some) if some else None

    def move(self) -> tuple[State, Callable[[Any], object]]:
        some = self.some()[:1]
        new = {each: (told[0], 1 - told[1]) if each in some else told for each, told in self.state.items()}

        def change(store: Any) -> None:
            for each in some:
                vectors.move_vertices(store, self.geometry.places(each, new[each][1]), object_ids=[each])

        return new, change


class FarWorker(Worker):
    """Changes what needs nothing to be stored anew but cells and rows, so that nobody ever waits."""

    does = ("append", "append", "give", "move")


@pytest.mark.filterwarnings("ignore::zardine.errors.ZarrUserWarning")
@pytest.mark.parametrize("seed", [*range(4000 if SOAK else 60), *FOUND])
def test_a_store_that_several_change(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    several_change(monkeypatch, seed, ["points", "lines", "graph"])


@pytest.mark.filterwarnings("ignore::zardine.errors.ZarrUserWarning")
@pytest.mark.parametrize("seed", range(4000 if SOAK else 12))
def test_surfaces_and_trees_that_several_change(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    several_change(monkeypatch, seed, ["mesh", "skeleton"], bbox=([-1, -1], [1000, 1000]))


def several_change(
    monkeypatch: pytest.MonkeyPatch, seed: int, kinds: list[str], bbox: Any = None, *, far: bool = False
) -> None:
    chosen = random.Random(seed)
    inner = MemoryStore()
    geometry = Geometry(chosen.choice(kinds))
    how: dict[str, Any] = {"chunk_shape": chosen.choice([20, 50, 100]), "shard_shape": chosen.choice([None, 2, 4])}
    first = list(range(9000, 9000 + chosen.randint(1, 5)))
    geometry.write(inner, first, **how)
    if chosen.random() < 0.5:
        vectors.build_pyramid(inner, factors=[(2, 1)])
    stage = Stage(seed, inner, kills=chosen.choice([0, 0, 1, 3, 6]), far=far)
    let_play(monkeypatch, stage)
    workers = [Worker(stage, chosen, geometry, number, first if number == 9 else []) for number in (1, 2, 9)]
    shards = chosen.choice([2, 3])
    tools: list[Callable[[Any], object]] = [
        lambda store: vectors.shard_store(store, shards),
        vectors.unshard_store,
        lambda store: vectors.build_pyramid(store, factors=[(2, 1)]),
        lambda store: vectors.build_pyramid(store, factors=[(2, 1)]),
        vectors.validate,
        vectors.repair,
    ]

    def maintenance() -> None:
        for _ in range(chosen.randint(0, 4)):
            tool = chosen.choice(tools)
            stage.until_done(lambda tool=tool: again_if_overtaken(tool))()  # type: ignore[misc]

    def again_if_overtaken(tool: Callable[[Any], object]) -> None:
        while True:
            try:
                tool(stage.store(kills=True))
                return
            except OvertakenError:
                assert far
                stage.sleep(0.5)

    def reader() -> None:
        store = stage.store()
        for _ in range(3):
            known = [len(each.history) for each in workers]
            found = geometry.read(store, bbox)
            for worker, count in zip(workers, known, strict=True):
                assert worker.mine(found) in worker.history[max(0, count - 2) :]
            with suppress(SelectionError):  # there is no such level at present
                vectors.read_points(store, level=1)

    stage.run(*(each.run for each in workers), maintenance, reader)
    wanted = {number: told for each in workers for number, told in each.state.items()}
    assert geometry.read(inner) == wanted
    if stage.has_killed:
        vectors.repair(inner)
    found = [each for each in vectors.validate(inner).findings if each.kind != "levels-older"]
    assert not found, found
    geometry.append(inner, [8999])
    vectors.build_pyramid(inner)
    assert vectors.validate(inner).findings == ()
    assert geometry.read(inner) == {**wanted, 8999: (0, 0)}


@pytest.mark.filterwarnings("ignore::zardine.errors.ZarrUserWarning")
@pytest.mark.parametrize("seed", [*range(4000 if SOAK else 25), *FOUND_ANEW])
def test_an_object_store_on_which_arrays_are_stored_anew(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    several_change(monkeypatch, seed, ["points", "lines", "graph"], far=True)


@pytest.mark.filterwarnings("ignore::zardine.errors.ZarrUserWarning")
@pytest.mark.parametrize("seed", range(2000 if SOAK else 6))
def test_surfaces_and_trees_on_an_object_store(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    several_change(monkeypatch, seed, ["mesh", "skeleton"], bbox=([-1, -1], [1000, 1000]), far=True)


@pytest.mark.parametrize("seed", [*range(4000 if SOAK else 30), *FOUND_FAR])
def test_an_object_store_that_several_change(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """Points within the bounds that the store has, changed from several machines, of which no lock keeps any out."""
    chosen = random.Random(seed)
    inner = MemoryStore()
    geometry = Geometry("points")
    first = list(range(9000, 9000 + chosen.randint(1, 5)))
    shape, shards = chosen.choice([20, 50, 100]), chosen.choice([None, 2, 4])
    geometry.write(inner, first, bounds=(0, 0, 300, 200), chunk_shape=shape, shard_shape=shards)
    stage = Stage(seed, inner, kills=chosen.choice([0, 0, 1, 3]), far=True)
    let_play(monkeypatch, stage)
    workers = [FarWorker(stage, chosen, geometry, number, first if number == 9 else []) for number in (1, 2, 9)]

    def reader() -> None:
        store = stage.store()
        for _ in range(3):
            known = [len(each.history) for each in workers]
            found = geometry.read(store)
            for worker, count in zip(workers, known, strict=True):
                assert worker.mine(found) in worker.history[max(0, count - 2) :]

    stage.run(*(each.run for each in workers), reader)
    wanted = {number: told for each in workers for number, told in each.state.items()}
    assert geometry.read(inner) == wanted
    if stage.has_killed:
        vectors.repair(inner)
    assert vectors.validate(inner).findings == ()
