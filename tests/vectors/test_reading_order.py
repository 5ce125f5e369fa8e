"""Values and positions are taken in the order in which reading gives vertices, of every kind and any selection."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import zardine
from effort import SOAK, examples
from vectors.geometry_samples import rows
from vectors.stores_of_all_kinds import WRITERS, store_of
from zardine import vectors
from zardine.errors import DataError, SelectionError
from zardine.storage import MemoryStore
from zardine.vectors import Graph, Layout, Mesh, Points, Polylines, Skeleton

KINDS = ("points", "objects", "graph", "mesh", "skeleton", "streamlines", "polylines", "lines")


def random_value(rng: np.random.Generator, kind: str) -> Any:
    """Some objects that cross many cells and come back into those that they were in."""
    ids = np.sort(rng.choice(100, int(rng.integers(1, 7)), replace=False))
    lengths = np.full(len(ids), 2) if kind == "lines" else rng.integers(1, 20 if SOAK else 9, len(ids))
    positions = rng.uniform(-12, 12, (int(lengths.sum()), 2))
    owner = np.repeat(ids, lengths)
    columns = {"n": np.arange(len(positions)), "q": np.zeros(len(positions)), "t": np.full(len(positions), "a")}
    if kind in ("streamlines", "polylines", "lines"):
        ids = rng.permutation(ids)
        return Polylines(positions, np.append(0, lengths.cumsum()), ids, columns)
    if kind == "points":
        return Points(positions, columns)
    mixed = rng.permutation(len(positions))
    if kind == "objects":
        return Points(positions, columns, owner[mixed])
    width = 3 if kind == "mesh" else 2
    links = rng.integers(0, len(positions), (len(positions), width))
    if kind == "skeleton":
        parents = np.arange(len(positions)) - 1
        parents[np.append(0, lengths.cumsum()[:-1])] = -1
        return Skeleton(positions, parents, columns, owner)
    if kind == "graph":
        return Graph(positions, links, columns, {}, owner[mixed])
    return Mesh(positions, links, columns, {}, owner[mixed])


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=examples(2), deadline=None)
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from([4.0, 11.0, 100.0]),
    st.sampled_from([None, 2]),
    st.booleans(),
    st.booleans(),
)
def test_what_was_read_is_given_back_in_the_same_order(
    kind: str, seed: int, chunk: float, shards: int | None, whole: bool, removed: bool
) -> None:
    rng, store = np.random.default_rng(seed), MemoryStore()
    value = random_value(rng, kind)
    layout = Layout(chunk_shape=chunk, shard_shape=shards)
    vectors.write(store, value, kind=kind if kind in ("polylines", "lines") else None, layout=layout)
    v = vectors.open(store, mode="r+")
    if removed and kind != "points" and len(v.objects) > 2:  # rows of tables are no numbers of objects then
        v.delete(object_ids=[v.objects.ids[1]])
    some: dict[str, Any] = {}
    if not whole and kind != "points":
        known = v.objects.ids
        some = {"object_ids": rng.permutation(known)[: int(rng.integers(1, len(known) + 1))].tolist()}
    before, x = v.read(), v.read(**some)

    values = x.positions @ [3.0, 5.0]
    v.set_attribute("q", values, **some)
    found = v.read(**some)
    assert found.attributes["q"].tolist() == values.tolist()
    assert found.positions.tolist() == x.positions.tolist()
    assert v.read().attributes["q"].astype(bool).sum() == len(values)

    texts = [f"at {n}" for n in x.attributes["n"].tolist()]
    v.set_attribute("t", texts, **some)
    assert v.read(**some).attributes["t"].tolist() == texts
    assert set(v.read().attributes["t"].tolist()) == {*texts, *(["a"] if len(texts) < len(before.positions) else [])}

    if not some:
        v.set_attribute("new", values)
        assert v.read().attributes["new"].tolist() == values.tolist()
    far = rng.random() < 0.5
    to = x.positions + (rng.uniform(-9, 9, 2) if far else 1e-3)
    v.move(to, **some)
    moved = v.read(**some)
    place = dict(zip(x.attributes["n"].tolist(), to.tolist(), strict=True))
    assert [place[n] for n in moved.attributes["n"].tolist()] == moved.positions.tolist()
    if isinstance(moved, Polylines):
        assert moved.positions.tolist() == to.tolist()
        assert moved.attributes["n"].tolist() == x.attributes["n"].tolist()
    others = ~np.isin(before.attributes["n"], x.attributes["n"])
    after = v.read()
    left = ~np.isin(after.attributes["n"], x.attributes["n"])
    assert rows(after.positions[left], after.attributes["n"][left]) == rows(
        before.positions[others], before.attributes["n"][others]
    )

    which = rng.permutation(len(moved.positions))[: len(moved.positions) // 2 + 1]
    v.move(which, moved.positions[which] - 1, **some)
    again = v.read(**some)
    place = dict(zip(moved.attributes["n"].tolist(), moved.positions.tolist(), strict=True))
    place |= dict(zip(moved.attributes["n"][which].tolist(), (moved.positions[which] - 1).tolist(), strict=True))
    assert [place[n] for n in again.attributes["n"].tolist()] == again.positions.tolist()
    assert v.validate().ok


def test_lines_that_come_back_into_a_cell_in_parts_of_the_store(monkeypatch: Any) -> None:
    monkeypatch.setattr("zardine.vectors.changing.whole_columns._ROWS_AT_ONCE", 50)
    monkeypatch.setattr("zardine.vectors.changing.moving._ROWS_AT_ONCE", 50)
    turns = np.linspace(0, 12 * np.pi, 400)
    circle = np.stack([np.cos(turns), np.sin(turns)], axis=1) * 30
    store = MemoryStore()
    vectors.write_polylines(store, [circle, circle[::-1] / 2, circle[:3]], chunk_shape=9, object_ids=[5, 3, 4])
    v = vectors.open(store, mode="r+")
    along = np.arange(803)
    v.set_attribute("along", along)
    assert v.read().attributes["along"].tolist() == along.tolist()
    assert v.objects[3].attributes["along"].tolist() == list(range(400, 800))
    v.move([0, 401, 802], [[0, 0], [1, 1], [2, 2]])
    assert v.read().positions[[0, 401, 802]].tolist() == [[0, 0], [1, 1], [2, 2]]
    assert v.objects[5].positions[1:].tolist() == circle[1:].tolist()
    with pytest.raises(DataError, match="needs one row for each of the 803 vertices"):
        v.set_attribute("along", along[:-1])
    with pytest.raises(DataError, match="802 positions for 803 vertices"):
        v.move(np.zeros((802, 2)))
    with pytest.raises(SelectionError, match="there are 803 vertices"):
        v.move([803], [[0, 0]])
    with pytest.raises(DataError, match="say where"):
        v.move()


@pytest.mark.parametrize("kind", sorted(WRITERS))
def test_a_single_value_for_all_says_what_is_needed(kind: str) -> None:
    v = vectors.open(store_of(kind), mode="r+")
    for things in ("vertex", "fragment", "object", "group"):
        if kind == "points" and things in ("object", "group"):
            continue
        with pytest.raises(DataError, match=r"'w' is a single int64 value.*np.full"):
            v.set_attribute("w", 3, kind=things)


@pytest.mark.parametrize("kind", ["streamlines", "graph"])
def test_text_of_an_object_that_needs_wider_codes_where_others_were_removed(kind: str) -> None:
    rng, store = np.random.default_rng(3), MemoryStore()
    ids, n = np.repeat(np.arange(4), 100), np.arange(400)
    positions = rng.uniform(0, 50, (400, 2))
    columns: dict[str, Any] = {"n": n, "t": np.array([f"t{each % 200}" for each in n])}
    value = Polylines(positions, np.arange(0, 401, 100), np.arange(4), columns)
    graph = Graph(positions, np.zeros((0, 2), np.int64), columns, {}, ids)
    vectors.write(store, graph if kind == "graph" else value, layout=Layout(chunk_shape=10))
    v = vectors.open(store, mode="r+")
    v.delete(object_ids=[0])
    x = v.read(object_ids=[2])
    v.set_attribute("t", [f"new {each}" for each in x.attributes["n"].tolist()], object_ids=[2])
    found = v.read()
    wanted = [f"new {each}" if 200 <= each < 300 else f"t{each % 200}" for each in found.attributes["n"].tolist()]
    assert found.attributes["t"].tolist() == wanted


def test_vertices_that_no_line_has_get_no_value() -> None:
    store = MemoryStore()
    lines = [np.arange(8.0).reshape(4, 2), np.arange(6.0).reshape(3, 2) + 20, np.arange(4.0).reshape(2, 2) + 40]
    vectors.write_polylines(store, lines, chunk_shape=9)
    manifests = zardine.open_array(store, path="0/object_index/manifests", mode="r+")
    manifests[1:2] = np.array([b""], object)  # as other programs may leave it
    index = zardine.open_group(store, path="0/object_index", mode="r+")
    index.attrs["num_present"] = 2
    del index.attrs["zardine_sole_owners"]
    v = vectors.open(store, mode="r+")
    whole = np.concatenate([lines[0], lines[2]])
    assert v.read().positions.tolist() == whole.tolist()
    v.set_attribute("t", [f"at {n}" for n in range(6)])
    v.set_attribute("q", whole[:, 0])
    assert v.read().attributes["t"].tolist() == [f"at {n}" for n in range(6)]
    assert v.read().attributes["q"].tolist() == whole[:, 0].tolist()
    points = vectors.read_points(store)
    loose = np.isin(points.positions, lines[1]).all(axis=1)
    assert points.attributes["t"][loose].tolist() == [None] * 3
    assert np.isnan(points.attributes["q"][loose]).all()
    v.move(whole + 1)
    assert v.read().positions.tolist() == (whole + 1).tolist()
    assert rows(vectors.read_points(store).positions[np.isnan(vectors.read_points(store).attributes["q"])]) == rows(
        lines[1]
    )
    v.set_attribute("q", [7.0, 8.0], object_ids=[2])
    assert v.read().attributes["q"][4:].tolist() == [7, 8]
