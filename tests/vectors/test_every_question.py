"""Any geometry, and everything that can be asked of it at once: the answer is that of NumPy.

Geometries are those of objects, with numbers and text (some of it missing), in one to four dimensions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import examples
from vectors.geometry_samples import links
from vectors.test_properties import LAYOUTS, SEEDS, a_box, inside, sample
from zardine import vectors
from zardine.storage import MemoryStore

ASKED = st.sets(st.sampled_from(["bbox", "object_ids", "group_ids", "chunks", "number", "text"]), max_size=4)


class Sample:
    """Vertices with ids and attributes, and questions with the vertices for which they hold."""

    def __init__(self, seed: int, rank: int, count: int, layout: dict[str, Any]) -> None:
        self.rng = np.random.default_rng(seed)
        self.size = layout["chunk_shape"] = max(layout["chunk_shape"], 3.0)
        self.positions = sample(seed, rank, count, "f8")
        self.known = np.unique(self.rng.integers(-(2**62), 2**62, 4))
        self.ids = np.sort(self.rng.choice(self.known, count))
        self.distinct = np.unique(self.ids)
        self.number = np.arange(count)
        self.text = [None if self.rng.random() < 0.2 else f"t{i % 5}" for i in range(count)]
        self.attributes = {"n": self.number, "text": self.text}
        self.groups = [self.distinct[::2], [], self.distinct]
        self.cells = np.floor(self.positions / self.size).astype(int)

    def question(self, seed: int, asked: set[str]) -> tuple[dict[str, Any], np.ndarray[Any, Any], Any]:
        """The arguments, and for which vertices they hold: those that choose objects, and all the others."""
        query: dict[str, Any] = {}
        where: dict[str, Any] = {}
        of_objects = np.ones(len(self.number), np.bool_)
        mask = of_objects.copy()
        if "bbox" in asked:
            query["bbox"] = a_box(seed, self.positions)
            mask &= inside(self.positions, query["bbox"])
        if "object_ids" in asked:
            query["object_ids"] = self.distinct[self.rng.random(len(self.distinct)) < 0.6].tolist()
            of_objects &= np.isin(self.ids, query["object_ids"])
        if "group_ids" in asked:
            query["group_ids"] = [[0], [1], [0, 2]][self.rng.integers(3)]
            members = np.concatenate([np.zeros(0, np.int64), *(self.groups[n] for n in query["group_ids"])])
            of_objects &= np.isin(self.ids, members.astype(np.int64))
        if "chunks" in asked:
            some = self.cells[self.rng.integers(0, len(self.cells), 5)]
            query["chunks"] = [*map(tuple, some.tolist()), (99,) * self.cells.shape[1]]
            mask &= (self.cells[:, None] == some[None]).all(axis=2).any(axis=1)
        if "number" in asked:
            low, high = sorted(self.rng.integers(0, len(self.number) + 1, 2).tolist())
            conditions: list[tuple[Any, Any]] = [
                (slice(low, high), (self.number >= low) & (self.number <= high)),
                (range(low, high, 2), np.isin(self.number, range(low, high, 2))),
                (lambda values: values % 3 == 0, self.number % 3 == 0),
            ]
            where["n"], holds = conditions[self.rng.integers(3)]
            mask &= holds
        if "text" in asked:
            conditions = [
                ("t1", np.array([each == "t1" for each in self.text])),
                (["t2", None], np.array([each in ("t2", None) for each in self.text])),
                (slice("t1", "t3"), np.array([each is not None and "t1" <= each <= "t3" for each in self.text])),
            ]
            where["text"], holds = conditions[self.rng.integers(3)]
            mask &= holds
        if where:
            query["where"] = where
        return query, mask, of_objects

    def options(self, layout: dict[str, Any]) -> dict[str, Any]:
        return {"groups": self.groups, "vertex_attributes": self.attributes, **layout}


@pytest.mark.parametrize("kind", ["points", "graph", "mesh", "skeleton"])
@settings(max_examples=examples(7), deadline=None)
@given(SEEDS, st.integers(1, 4), st.integers(1, 40), LAYOUTS, ASKED)
def test_vertices(kind: str, seed: int, rank: int, count: int, layout: dict[str, Any], asked: set[str]) -> None:
    layout = dict(layout)
    given_rows = Sample(seed, rank, count, layout)
    ids, number, positions = given_rows.ids, given_rows.number, given_rows.positions
    store, options = MemoryStore(), given_rows.options(layout)
    ends = given_rows.rng.integers(0, count, (30, 3 if kind == "mesh" else 2))
    first = np.searchsorted(ids, ids)  # the first vertex of its object is the root
    parents = np.where(first == number, -1, given_rows.rng.integers(first, np.maximum(number, first + 1)))
    weight = np.arange(30)
    if kind == "points":
        vectors.write_points(store, positions, object_ids=ids, **options)
    elif kind == "graph":
        vectors.write_graph(store, positions, ends, object_ids=ids, edge_attributes={"w": weight}, **options)
    elif kind == "mesh":
        vectors.write_mesh(store, positions, ends, object_ids=ids, face_attributes={"w": weight}, **options)
    else:
        vectors.write_skeleton(store, positions, parents, object_ids=ids, **options)
    query, mask, of_objects = given_rows.question(seed, asked)
    mask = mask & of_objects
    read: Callable[..., Any] = getattr(vectors, f"read_{kind}")
    found = read(store, **query)
    stored = found.attributes["n"]
    assert sorted(stored.tolist()) == number[mask].tolist()
    assert np.array_equal(found.positions, positions[stored])
    assert found.object_ids.tolist() == ids[stored].tolist()
    assert found.attributes["text"].tolist() == [given_rows.text[n] for n in stored]
    kept = mask[ends].all(axis=1)
    if kind == "graph":
        assert links(found.positions, found.edges, found.edge_attributes["w"]) == links(
            positions, ends[kept], weight[kept]
        )
    elif kind == "mesh":
        assert links(found.positions, found.faces, found.face_attributes["w"]) == links(
            positions, ends[kept], weight[kept]
        )
    elif kind == "skeleton":
        told = np.where(found.parents >= 0, stored[found.parents], -1) if len(stored) else found.parents
        wanted = [parents[n] if parents[n] >= 0 and mask[parents[n]] else -1 for n in stored]
        assert told.tolist() == wanted


@settings(max_examples=examples(12), deadline=None)
@given(SEEDS, st.integers(1, 4), st.integers(1, 40), LAYOUTS, ASKED)
def test_whole_lines(seed: int, rank: int, count: int, layout: dict[str, Any], asked: set[str]) -> None:
    layout = dict(layout)
    lines = Sample(seed, rank, count, layout)
    starts = np.searchsorted(lines.ids, lines.distinct)
    store = MemoryStore()
    parts = np.split(lines.positions, starts[1:])
    vectors.write_polylines(store, parts, object_ids=lines.distinct, **lines.options(layout))
    query, mask, of_objects = lines.question(seed, asked)
    found = vectors.read_polylines(store, **query)
    hit = np.unique(lines.ids[mask & of_objects])
    wanted = [i for i, each in enumerate(lines.distinct) if each in hit]
    assert found.object_ids.tolist() == lines.distinct[wanted].tolist()
    assert [each.tolist() for each in found.lines] == [parts[i].tolist() for i in wanted]
    rows_of = np.isin(lines.ids, hit)
    assert found.attributes["n"].tolist() == lines.number[rows_of].tolist()
    assert found.attributes["text"].tolist() == [lines.text[n] for n in lines.number[rows_of]]


@settings(max_examples=examples(8), deadline=None)
@given(SEEDS, st.integers(1, 4), st.integers(1, 40), LAYOUTS, ASKED)
def test_coarser_levels(seed: int, rank: int, count: int, layout: dict[str, Any], asked: set[str]) -> None:
    layout = dict(layout)
    fine = Sample(seed, rank, count, layout)
    store = MemoryStore()
    vectors.write_points(store, fine.positions, object_ids=fine.ids, **fine.options(layout))
    vectors.build_pyramid(store, factors=[(2, 1)])
    below, whole = vectors.read_points(store), vectors.read_points(store, level=1)
    assert below.object_ids is not None
    ends = vectors.read_cross_level_links(store, 0, 1)
    query, _, _ = fine.question(seed, asked & {"bbox", "object_ids"})
    mask = np.ones(len(whole), np.bool_)
    if "bbox" in query:
        mask &= inside(whole.positions, query["bbox"])
    if "object_ids" in query:
        mask &= np.isin(np.arange(len(whole)), ends[np.isin(below.object_ids[ends[:, 0]], query["object_ids"]), 1])
    found = vectors.read_points(store, level=np.int64(1), **query)
    asked_for = np.isin(below.object_ids[ends[:, 0]], query.get("object_ids", fine.distinct))
    owner = np.full(len(whole), 2**63 - 1)  # of the objects that share a vertex and were asked for, the first
    np.minimum.at(owner, ends[asked_for, 1], below.object_ids[ends[asked_for, 0]])
    assert found.object_ids is not None
    assert found.object_ids.tolist() == owner[mask].tolist()
    assert found.positions.tolist() == whole.positions[mask].tolist()
