"""Selections: counted, and read in batches whose union is what is read at once."""

from __future__ import annotations

from collections import Counter
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from effort import SOAK, some
from vectors.stores_of_all_kinds import COUNT, WRITERS, at_once, store_of
from zardine import vectors
from zardine.errors import ArrayChangedError, CorruptionError, SelectionError
from zardine.storage import MemoryStore
from zardine.vectors import Graph, Layout, Mesh, Points, Polylines, Skeleton
from zardine.vectors.reading import portions, walk

BOX = [-12.0] * 3 + [25.0] * 3
QUERIES: dict[str, dict[str, Any]] = {
    "all": {},
    "box": {"bbox": BOX},
    "no attributes": {"attributes": None},
    "values": {"where": {"n": slice(5, 30)}, "attributes": ["kind"]},
    "text": {"where": {"kind": "k1"}},
    "chunks": {"chunks": [[0, 0, 0], [0, -1, 0], [-1, 0, 1], [9, 9, 9]]},
    "objects": {"object_ids": [12, 10]},
    "groups": {"group_ids": [0], "bbox": BOX},
    "nothing": {"bbox": [500, 500, 500, 501, 501, 501]},
}


def union_is_read(held: vectors.Vectors, most: int, query: dict[str, Any]) -> None:
    """Compare the batches of a query with what is read at once."""
    selection = held.select(**query)
    whole, parts = selection.read(), list(selection.batches(most))
    assert selection.count() == len(whole.positions)
    for each in parts:
        each.checked()
        assert type(each) is type(whole)
        assert each.attributes.keys() == whole.attributes.keys()
    if isinstance(whole, Points):
        assert [len(each) for each in parts[:-1]] == [most] * (len(parts) - 1)
        assert all(0 < len(each) <= most for each in parts)
        together(parts, whole, [slice(None)] * len(parts))
    elif isinstance(whole, Polylines):
        assert all(len(each.positions) <= most or len(each) == 1 for each in parts)
        together(parts, whole, [slice(None)] * len(parts))
        assert [line.tolist() for each in parts for line in each.lines] == [line.tolist() for line in whole.lines]
        for name, values in whole.object_attributes.items():
            assert [one for each in parts for one in each.object_attributes[name].tolist()] == values.tolist()
    else:
        linked(parts, whole)


def together(parts: list[Any], whole: Any, own: list[slice]) -> None:
    """Compare vertices, one batch behind the other."""
    pairs = list(zip(parts, own, strict=True))
    for name in ("positions", "object_ids"):
        wanted = getattr(whole, name)
        if wanted is None:
            assert all(getattr(each, name) is None for each in parts)
        else:
            assert [one for each, rows in pairs for one in getattr(each, name)[rows].tolist()] == wanted.tolist()
            assert all(getattr(each, name).dtype == wanted.dtype for each in parts)
    for name, values in whole.attributes.items():
        found = [one for each, rows in pairs for one in each.attributes[name][rows].tolist()]
        assert found == values.tolist()


def linked(parts: list[Any], whole: Any) -> None:
    """Compare graphs, meshes and skeletons: every vertex is the own one of one batch, every link in one batch."""
    start, own = 0, []
    for each in parts:
        own.append(slice(0, each.own))
        assert each.rows[: each.own].tolist() == list(range(start, start + each.own))
        start += each.own
        assert whole.positions[each.rows].tolist() == each.positions.tolist()
        assert len(np.unique(each.rows)) == len(each.rows)
        for name, values in whole.attributes.items():
            assert each.attributes[name].tolist() == values[each.rows].tolist()
    assert start == len(whole.positions)
    together(parts, whole, own)
    if isinstance(whole, Skeleton):
        parents = np.full(len(whole), -1)
        for each, rows in zip(parts, own, strict=True):
            above = each.parents[rows]
            parents[each.rows[rows]] = np.where(above >= 0, each.rows[above], -1)
            assert (each.parents[rows.stop :] == -1).all()
        assert parents.tolist() == whole.parents.tolist()
        return
    links, columns = ("edges", "edge_attributes") if isinstance(whole, Graph) else ("faces", "face_attributes")
    found = [
        (*each.rows[link].tolist(), *(values[row] for values in getattr(each, columns).values()))
        for each in parts
        for row, link in enumerate(getattr(each, links))
    ]
    wanted = [
        (*link.tolist(), *(values[row] for values in getattr(whole, columns).values()))
        for row, link in enumerate(getattr(whole, links))
    ]
    assert sorted(found) == sorted(wanted)
    assert all(getattr(each, columns).keys() == getattr(whole, columns).keys() for each in parts)


@pytest.mark.parametrize(("query", "kind"), list(some(product(QUERIES, sorted(WRITERS)), 4)))
def test_the_union_of_batches_is_what_is_read(kind: str, query: str) -> None:
    if kind == "points" and query in ("objects", "groups"):
        return
    turn = (sorted(WRITERS).index(kind) + list(QUERIES).index(query)) % 2
    if SOAK or turn:
        union_is_read(vectors.open(store_of(kind)), 9, QUERIES[query])
    if SOAK or not turn:
        union_is_read(vectors.open(store_of(kind, shard_shape=2, compressor="zstd")), 16, QUERIES[query])


@pytest.mark.parametrize("kind", sorted(WRITERS))
def test_batches_of_every_size(kind: str) -> None:
    for most in (1, 5, 1000):
        union_is_read(vectors.open(store_of(kind, chunk_shape=35)), most, {})


def test_stores_of_others(golden: Path) -> None:
    """Objects that share fragments, directed links, copies of links, rows of no fragment, attributes that lack rows."""
    compared = 0
    for path in sorted(golden.iterdir()):
        held = vectors.open(str(path))
        most = len(held) // 3 + 1
        for level in held.levels:
            if path.name == "st.zv":  # some of it is lost
                with pytest.raises(CorruptionError):
                    list(held.select(level=level).batches(most))
                continue
            union_is_read(held, most, {"level": level})
            compared += 1
    assert compared == 17


def test_levels_and_empty_stores() -> None:
    for kind in sorted(WRITERS):
        held = vectors.open(store_of(kind), mode="r+")
        held.build_pyramid(factors=[(2, 1)])
        union_is_read(held, 4, {"level": 1})
        new = vectors.create(MemoryStore(), held.kind, bounds=BOX, layout=Layout(chunk_shape=9))
        assert list(new.select().batches(5)) == []
        assert new.select().count() == 0


def test_text_of_which_some_is_missing() -> None:
    store = MemoryStore()
    values = np.array([None, "a", "b", None], object)
    vectors.write_points(store, np.arange(12.0).reshape(4, 3) * 9, chunk_shape=5, vertex_attributes={"t": values})
    union_is_read(vectors.open(store), 2, {})
    union_is_read(vectors.open(store), 3, {})


@pytest.mark.parametrize("layout", [{}, {"shard_shape": 4, "compressor": "zstd"}])
def test_no_more_is_held_than_was_asked_for(monkeypatch: pytest.MonkeyPatch, layout: dict[str, Any]) -> None:
    """Cells of very different fullness, the full ones last."""
    rng = np.random.default_rng(0)
    sparse, dense = rng.uniform(-50, 0, (100, 3)), rng.uniform(1, 39, (4000, 3))
    store = MemoryStore()
    vectors.write_points(store, np.concatenate([sparse, dense]), chunk_shape=10, **layout)
    fullest = max(len(vectors.read_points(store, chunks=[[0, y, z]])) for y in range(4) for z in range(4))
    held: list[int] = []
    load = walk.load_asked

    def watched(*args: Any) -> Any:
        found = load(*args)
        held.append(len(found.positions))
        return found

    monkeypatch.setattr(walk, "load_asked", watched)
    assert sum(len(each) for each in vectors.open(store).select().batches(500)) == 4100
    assert max(held) <= (2 if layout else 1) * max(500, fullest)
    assert len(held) < 30
    monkeypatch.setattr(MemoryStore, "has_cheap_looks", False)  # as far away: sizes are not asked for
    monkeypatch.setattr(portions, "_UNKNOWN", 3)
    held.clear()
    assert sum(len(each) for each in vectors.open(store).select().batches(500)) == 4100
    assert max(held) <= max(500, 3 * fullest)


@pytest.mark.parametrize(("query", "times"), [({}, 1), ({"object_ids": [12, 10]}, 1), ({"bbox": BOX}, 2)])
def test_lines_are_read_once(query: dict[str, Any], times: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many parts they come in; what a box chooses among once more."""
    held, load, loaded = vectors.open(store_of("polylines")), walk.load_asked, Counter[tuple[int, ...]]()

    def watched(level: Any, keys: Any, *more: Any) -> Any:
        loaded.update(map(tuple, keys.tolist()))
        return load(level, keys, *more)

    monkeypatch.setattr(walk, "load_asked", watched)
    assert len(list(held.select(**query).batches(3))) > 1
    assert set(loaded.values()) <= {1, times}
    assert max(loaded.values()) == times


def test_a_change_meanwhile_is_told() -> None:
    held = vectors.open(store_of("points"), mode="r+")
    parts = held.select().batches(5)
    next(parts)
    held.append([[0.0, 0, 0]])
    with pytest.raises(ArrayChangedError, match="begin again"):
        list(parts)
    parts = held.select().batches(5)
    next(parts)
    vectors.shard_store(held.path, 2)  # the same cells, stored otherwise
    assert sum(len(each) for each in parts) == COUNT + 1 - 5


@pytest.mark.parametrize("kind", sorted(WRITERS))
def test_what_is_lost_is_no_end(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    at_once(monkeypatch)
    store = store_of(kind)
    key = sorted(each for each in store.list_prefix("0/vertices/c/"))[-1]
    store.erase(key)
    for look in (lambda each: list(each.batches(5)), lambda each: each.read()):
        with pytest.raises(CorruptionError):
            look(vectors.open(store).select())


def test_links_that_are_lost_are_no_end(monkeypatch: pytest.MonkeyPatch) -> None:
    at_once(monkeypatch)
    store = store_of("graph")
    store.erase(next(key for key in store.list_prefix("0/links/0/") if "/c/" in key))
    for look in (lambda each: list(each.batches(5)), lambda each: each.read()):
        with pytest.raises(CorruptionError):
            look(vectors.open(store).select())


@pytest.mark.parametrize("most", [0, -1, 2.5, True, None, "7"])
def test_wrong_numbers(most: Any) -> None:
    with pytest.raises(SelectionError, match="batches have a number of vertices"):
        vectors.open(store_of("points")).select().batches(most)


@pytest.mark.parametrize(
    "query", [{"object_ids": [99]}, {"group_ids": [7]}, {"where": {"x": 1}}, {"level": 3}, {"attributes": ["x"]}]
)
def test_what_the_store_does_not_have(query: dict[str, Any]) -> None:
    for kind in ("points_of_objects", "polylines", "graph", "skeleton"):
        held = vectors.open(store_of(kind))
        for look in (lambda each: list(each.batches(5)), lambda each: each.read()):
            with pytest.raises(SelectionError):
                look(held.select(**query))


def test_a_selection_says_what_it_is() -> None:
    held = vectors.open(store_of("mesh"))
    assert repr(held.select()) == "<Selection of mesh>"
    assert repr(held.select(bbox=BOX, object_ids=[3])).startswith("<Selection of mesh: bbox=[-12.0, ")
    assert isinstance(held.select().read(), Mesh)
    with pytest.raises(SelectionError):
        held.select(object_ids="7")  # type: ignore[arg-type]
