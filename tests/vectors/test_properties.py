"""Any geometry, any chunks, any shards, any question: the answer is that of NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import examples
from vectors.geometry_samples import links, rows
from zardine import vectors
from zardine.storage import MemoryStore

LAYOUTS = st.fixed_dictionaries(
    {
        "chunk_shape": st.sampled_from([0.3, 1.0, 7.0, 50.0]),
        "shard_shape": st.sampled_from([None, 1, 2, 5]),
        "compressor": st.sampled_from([None, "zstd"]),
    }
)
SEEDS = st.integers(0, 2**32 - 1)


def sample(seed: int, rank: int, count: int, dtype: str) -> np.ndarray[Any, Any]:
    """Positions, some of them on the faces of chunks and bins."""
    rng = np.random.default_rng(seed)
    free = rng.uniform(-9, 9, (count, rank))
    stepped = np.round(free / 0.1) * 0.1
    return np.where(rng.random((count, 1)) < 0.5, free, stepped).astype(dtype)


def a_box(seed: int, positions: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """A box, some of whose faces go through positions."""
    rng = np.random.default_rng(seed)
    corners = np.sort(rng.uniform(-10, 10, (2, positions.shape[1])), axis=0)
    if len(positions):
        exact = positions[rng.integers(0, len(positions), 2)].astype(np.float64)
        corners = np.where(rng.random(corners.shape) < 0.5, np.sort(exact, axis=0), corners)
    return np.minimum(*corners), np.maximum(*corners)


def inside(positions: np.ndarray[Any, Any], box: Any) -> np.ndarray[Any, Any]:
    return np.asarray(((positions >= box[0]) & (positions <= box[1])).all(axis=1))


@settings(max_examples=examples(15), deadline=None)
@given(SEEDS, st.integers(1, 4), st.integers(1, 60), st.sampled_from(["f4", "f8"]), LAYOUTS, st.booleans())
def test_points(seed: int, rank: int, count: int, dtype: str, layout: dict[str, Any], bins: bool) -> None:
    positions, number = sample(seed, rank, count, dtype), np.arange(count)
    if layout["chunk_shape"] == 0.3 and rank > 2:
        layout = {**layout, "chunk_shape": 3.0}
    store = MemoryStore()
    more = {"bin_shape": layout["chunk_shape"] / 3} if bins else {}
    vectors.write_points(store, positions, vertex_attributes={"n": number}, **more, **layout)
    found = vectors.read_points(store)
    assert rows(found.positions, found.attributes["n"]) == rows(positions, number)
    box = a_box(seed, positions)
    some = inside(positions, box)
    found = vectors.read_points(store, bbox=box)
    assert rows(found.positions, found.attributes["n"]) == rows(positions[some], number[some])
    found = vectors.read_points(store, bbox=box, where={"n": slice(3, 20)})
    both = some & (number >= 3) & (number <= 20)
    assert found.attributes["n"].tolist() == [n for n in found.attributes["n"].tolist() if both[n]]
    assert len(found) == both.sum()
    assert vectors.validate(store).findings == ()


@settings(max_examples=examples(12), deadline=None)
@given(SEEDS, st.integers(2, 3), st.integers(1, 60), LAYOUTS, st.booleans())
def test_points_of_objects(seed: int, rank: int, count: int, layout: dict[str, Any], bins: bool) -> None:
    positions, number = sample(seed, rank, count, "f8"), np.arange(count)
    if layout["chunk_shape"] == 0.3:
        layout = {**layout, "chunk_shape": 3.0}
    rng = np.random.default_rng(seed)
    ids = rng.choice(rng.integers(-(2**62), 2**62, 5), count)
    distinct = np.unique(ids)
    store = MemoryStore()
    vectors.write_points(
        store,
        positions,
        object_ids=ids,
        vertex_attributes={"n": number},
        object_attributes={"size": np.arange(len(distinct))},
        groups=[distinct[:2], []],
        bin_shape=layout["chunk_shape"] / 2 if bins else None,
        **layout,
    )
    box = a_box(seed, positions)
    some = inside(positions, box)
    found = vectors.read_points(store, bbox=box)
    assert found.object_ids is not None
    assert rows(found.positions, found.object_ids) == rows(positions[some], ids[some])
    one = vectors.read_points(store, object_ids=[int(distinct[-1])], bbox=box)
    assert sorted(one.attributes["n"].tolist()) == number[some & (ids == distinct[-1])].tolist()
    group = vectors.read_points(store, group_ids=[0])
    assert sorted(group.attributes["n"].tolist()) == number[np.isin(ids, distinct[:2])].tolist()
    assert len(vectors.read_points(store, group_ids=[1])) == 0
    assert vectors.validate(store).findings == ()


@settings(max_examples=examples(12), deadline=None)
@given(SEEDS, st.integers(2, 3), st.lists(st.integers(0, 12), min_size=1, max_size=6), LAYOUTS)
def test_polylines(seed: int, rank: int, lengths: list[int], layout: dict[str, Any]) -> None:
    if layout["chunk_shape"] == 0.3:
        layout = {**layout, "chunk_shape": 3.0}
    positions = sample(seed, rank, sum(lengths) + 1, "f4")[:-1]
    lines = np.split(positions, np.cumsum(lengths)[:-1])
    store = MemoryStore()
    number = np.arange(len(positions))
    options = {"bounds": ([-20] * rank, [20] * rank), "vertex_attributes": {"n": number}, **layout}
    vectors.write_polylines(store, lines, dtype="f4", **options)
    found = vectors.read_polylines(store)
    assert [each.tolist() for each in found.lines] == [each.tolist() for each in lines]
    assert found.attributes["n"].tolist() == number.tolist()
    box = a_box(seed, positions)
    wanted = [i for i, line in enumerate(lines) if inside(line.reshape(-1, rank), box).any()]
    found = vectors.read_polylines(store, bbox=box)
    assert found.object_ids.tolist() == wanted
    assert [each.tolist() for each in found.lines] == [lines[i].tolist() for i in wanted]
    assert vectors.validate(store).findings == ()


@settings(max_examples=examples(12), deadline=None)
@given(SEEDS, st.integers(2, 3), st.integers(3, 40), st.integers(0, 60), st.integers(2, 4), LAYOUTS)
def test_graphs_and_meshes(seed: int, rank: int, count: int, ends: int, width: int, layout: dict[str, Any]) -> None:
    if layout["chunk_shape"] == 0.3:
        layout = {**layout, "chunk_shape": 3.0}
    positions = sample(seed, rank, count, "f8")
    rng = np.random.default_rng(seed)
    table = rng.integers(0, count, (ends, width))
    weight = rng.random(ends).astype("f4")
    store = MemoryStore()
    if width == 2:
        vectors.write_graph(store, positions, table, edge_attributes={"w": weight}, **layout)
    else:
        vectors.write_mesh(store, positions, table, face_attributes={"w": weight}, **layout)
    box = a_box(seed, positions)
    for some, query in ((np.ones(count, np.bool_), {}), (inside(positions, box), {"bbox": box})):
        kept = some[table].all(axis=1) if ends else np.zeros(0, np.bool_)
        wanted = links(positions, table[kept], weight[kept])
        if width == 2:
            graph = vectors.read_graph(store, **query)
            assert rows(graph.positions) == rows(positions[some])
            assert links(graph.positions, graph.edges, graph.edge_attributes["w"]) == wanted
        else:
            mesh = vectors.read_mesh(store, **query)
            assert links(mesh.positions, mesh.faces, mesh.face_attributes["w"]) == wanted
    assert vectors.validate(store).findings == ()


@settings(max_examples=examples(12), deadline=None)
@given(SEEDS, st.integers(1, 50), st.integers(1, 3), LAYOUTS)
def test_skeletons(seed: int, count: int, trees: int, layout: dict[str, Any]) -> None:
    positions = sample(seed, 3, count, "f4")
    layout = {**layout, "chunk_shape": 3.0}
    rng = np.random.default_rng(seed)
    parents = np.array([-1 if i < trees else rng.integers(0, i) for i in range(count)])
    names = rng.permutation(count)
    shuffled = np.empty_like(positions)
    shuffled[names] = positions
    above = np.full(count, -1)
    above[names] = np.where(parents >= 0, names[parents], -1)
    store = MemoryStore()
    vectors.write_skeleton(store, shuffled, above, vertex_attributes={"n": np.arange(count)}, **layout)
    found = vectors.read_skeleton(store)
    number = found.attributes["n"]
    told = np.full(count, -1)
    told[number] = np.where(found.parents >= 0, number[found.parents], -1)
    assert told.tolist() == above.tolist()
    assert vectors.validate(store).findings == ()
