"""Adding, removing, moving: attributes, links and objects stay with their vertices, also where the writer is killed."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
import pytest

import zardine
from effort import SOAK
from vectors.geometry_samples import Killed, MortalStore, copy_of, links, rows, values
from zardine import vectors
from zardine.errors import CorruptionError, DataError, NodeExistsError, SelectionError
from zardine.storage import MemoryStore
from zardine.vectors.content.plan import Node
from zardine.vectors.format.documents import LEVEL
from zardine.vectors.format.fragment_index import encode_indexes
from zardine.vectors.storing.store import VectorStore
from zardine.vectors.storing.transactions import rebuild, replace_nodes

RNG = np.random.default_rng(3)
OLD, NEW = RNG.uniform(0, 50, (80, 3)), RNG.uniform(-90, 120, (40, 3))


@pytest.mark.parametrize("layout", [{}, {"bin_shape": 5}, {"shard_shape": 2, "compressor": "zstd"}])
def test_points_are_added_and_none_is_lost(layout: dict[str, Any]) -> None:
    store = MemoryStore()
    number, label = np.arange(120), np.array([f"t{i % 7}" for i in range(120)])
    first = {"n": number[:80], "label": label[:80]}
    vectors.write_points(store, OLD, chunk_shape=20, vertex_attributes=first, **layout)
    with pytest.raises(NodeExistsError):
        vectors.write_points(store, NEW, chunk_shape=20)
    vectors.append_points(store, NEW, vertex_attributes={"n": number[80:], "label": label[80:]})
    found = vectors.read_points(store)
    whole = np.concatenate([OLD, NEW])
    assert rows(found.positions, found.attributes["n"], found.attributes["label"]) == rows(whole, number, label)
    assert vectors.validate(store).findings == ()
    vectors.append_points(store, NEW[:1])
    found = vectors.read_points(store)
    assert len(found.attributes["n"]) == len(found) == 121
    assert [each for each in found.attributes["label"].tolist() if each is None] == [None]
    assert vectors.validate(store).findings == ()


@pytest.mark.parametrize("rank", [1, 2, 4])
@pytest.mark.parametrize("width", [2, 3])
def test_links_are_added_with_any_number_of_axes(rank: int, width: int) -> None:
    store, ends = MemoryStore(), np.arange(60).reshape(-1, width)
    write, append = (
        (vectors.write_graph, vectors.append_graph) if width == 2 else (vectors.write_mesh, vectors.append_mesh)
    )
    points, more = (np.linspace(low, high, 60 * rank).reshape(60, rank) for low, high in ((0, 50), (-60, 90)))
    write(store, points, ends, chunk_shape=20, link_attributes={"0": ends[:, 0]})
    append(store, more, ends, link_attributes={"0": ends[:, 0] + 60})
    found: Any = vectors.open(store).read()
    given = found.edge_attributes if width == 2 else found.face_attributes
    ends_found = found.edges if width == 2 else found.faces
    whole, both = np.concatenate([points, more]), np.concatenate([ends, ends + 60])
    assert rows(found.positions[ends_found[:, 0]], given["0"]) == rows(whole[both[:, 0]], both[:, 0])
    assert vectors.validate(store).findings == ()


def test_points_are_added_to_objects() -> None:
    store = MemoryStore()
    ids = np.arange(80) % 4 * 10
    vectors.write_points(
        store, OLD, chunk_shape=20, object_ids=ids, object_attributes={"w": np.arange(4.0)}, groups=[[10]]
    )
    more = np.array([10, 99] * 20)
    vectors.append_points(store, NEW, object_ids=more, object_attributes={"w": [7.0]})
    found = vectors.read_points(store)
    assert found.object_ids is not None
    assert rows(found.positions, found.object_ids) == rows(np.concatenate([OLD, NEW]), np.concatenate([ids, more]))
    assert rows(vectors.read_points(store, group_ids=[0]).positions) == rows(np.concatenate([OLD[ids == 10], NEW[::2]]))
    assert vectors.validate(store).findings == ()
    with pytest.raises(DataError, match="object_ids"):
        vectors.append_points(store, NEW)


def test_lines_graphs_and_meshes_grow() -> None:
    store = MemoryStore()
    lines = [RNG.normal(0, 9, (n, 2)).cumsum(axis=0) for n in (5, 1, 30)]
    vectors.write_polylines(store, lines[:2], chunk_shape=20, object_ids=[3, 9])
    vectors.append_polylines(store, lines[2:])
    found = vectors.read_polylines(store)
    assert [each.tolist() for each in found.lines] == [each.tolist() for each in lines]
    assert found.object_ids.tolist() == [3, 9, 10]
    assert vectors.validate(store).findings == ()
    store = MemoryStore()
    edges = RNG.integers(0, 40, (60, 2))
    vectors.write_graph(store, OLD[:40], edges, chunk_shape=20, edge_attributes={"w": np.arange(60)})
    vectors.append_graph(store, NEW, edges[:30], link_attributes={"w": np.arange(100, 130)})
    graph = vectors.read_graph(store)
    wanted = links(OLD, edges, np.arange(60)) + links(NEW, edges[:30], np.arange(100, 130))
    assert links(graph.positions, graph.edges, graph.edge_attributes["w"]) == sorted(wanted)
    assert vectors.validate(store).findings == ()


def test_vertices_are_deleted_with_what_belongs_to_them() -> None:
    store = MemoryStore()
    edges = RNG.integers(0, 80, (200, 2))
    number = np.arange(80)
    ids = number % 5
    vectors.write_graph(
        store, OLD, edges, chunk_shape=20, vertex_attributes={"n": number}, object_ids=ids, groups=[[1, 2], [3]]
    )
    box = ([10, 10, 10], [40, 40, 40])
    gone = ((box[0] <= OLD) & (box[1] >= OLD)).all(axis=1) | (ids == 1)
    assert vectors.delete(store, bbox=box) + vectors.delete(store, object_ids=[1]) == gone.sum()
    graph = vectors.read_graph(store)
    assert rows(graph.positions, graph.attributes["n"]) == rows(OLD[~gone], number[~gone])
    assert links(graph.positions, graph.edges) == links(OLD, edges[~gone[edges].any(axis=1)])
    assert vectors.validate(store).findings == ()
    with pytest.raises(SelectionError, match="what to delete"):
        vectors.delete(store)


@pytest.mark.parametrize("kind", ["points", "bins", "lines", "graph", "skeleton", "mesh"])
def test_moved_vertices_take_everything_along(kind: str) -> None:
    store = MemoryStore()
    number = np.arange(80)
    ends = RNG.integers(0, 80, (100, 3 if kind == "mesh" else 2))
    parents = np.array([-1, *(RNG.integers(0, i) for i in range(1, 80))])
    options: dict[str, Any] = {"chunk_shape": 20, "vertex_attributes": {"n": number}}
    if kind in ("points", "bins"):
        vectors.write_points(store, OLD, bin_shape=5 if kind == "bins" else None, **options)
    elif kind == "lines":
        vectors.write_polylines(store, [OLD[:50], OLD[50:]], **options)
    elif kind == "graph":
        vectors.write_graph(store, OLD, ends, **options)
    elif kind == "mesh":
        vectors.write_mesh(store, OLD, ends, **options)
    else:
        vectors.write_skeleton(store, OLD, parents, **options)
    before: Any = vectors.open(store).read()
    order = before.attributes["n"]
    moved = RNG.choice(80, 30, replace=False)
    to = RNG.uniform(-30, 90, (30, 3))
    vectors.move_vertices(store, moved, to)
    wanted = OLD.copy()
    wanted[order[moved]] = to
    found = vectors.read_points(store)
    assert rows(found.positions, found.attributes["n"]) == rows(wanted, number)
    if kind == "lines":
        assert vectors.read_polylines(store)[0].tolist() == wanted[:50].tolist()
    elif kind == "graph":
        graph = vectors.read_graph(store)
        assert links(graph.positions, graph.edges) == links(wanted, ends)
    elif kind == "mesh":
        mesh = vectors.read_mesh(store)
        assert links(mesh.positions, mesh.faces) == links(wanted, ends)
    elif kind == "skeleton":
        tree = vectors.read_skeleton(store)
        assert links(tree.positions, tree.edges) == links(wanted, np.stack([number[1:], parents[1:]], axis=1))
    assert vectors.validate(store).findings == ()


def test_attributes_are_set_and_removed() -> None:
    store = MemoryStore()
    vectors.write_points(store, OLD, chunk_shape=20, object_ids=np.arange(80))
    found = vectors.read_points(store)
    vectors.set_attribute(store, "height", found.positions[:, 2])
    vectors.set_attribute(store, "name", [str(i) for i in range(80)], kind="object")
    again = vectors.read_points(store)
    assert again.attributes["height"].tolist() == again.positions[:, 2].tolist()
    vectors.set_attribute(store, "height", None)
    assert vectors.read_points(store).attributes == {}
    assert vectors.validate(store).findings == ()
    with pytest.raises(DataError, match="one row for each"):
        vectors.set_attribute(store, "height", [1, 2])


def test_killed_anywhere_all_or_nothing_is_added() -> None:
    whole = MemoryStore()
    vectors.write_points(whole, OLD, chunk_shape=20, vertex_attributes={"n": np.arange(80)})
    before, after = rows(OLD, np.arange(80)), rows(np.concatenate([OLD, NEW]), np.arange(120))
    seen = set()
    for changes in range(0, 400, 1 if SOAK else 31):
        store = copy_of(whole)
        mortal = MortalStore(store, changes)
        with suppress(Killed):
            vectors.append_points(mortal, NEW, vertex_attributes={"n": np.arange(80, 120)})
        found = vectors.read_points(store)
        told = rows(found.positions, found.attributes["n"])
        assert told in (before, after)
        seen.add(told == after)
        vectors.repair(store)
        found = vectors.read_points(store)
        assert rows(found.positions, found.attributes["n"]) == told
        assert vectors.validate(store).ok
    assert seen == {True, False}


def test_a_new_store_is_there_whole_or_not_at_all() -> None:
    full = MemoryStore()
    vectors.write_points(full, OLD, chunk_shape=20)
    for changes in range(0, len(values(full)), 7):
        store = MemoryStore()
        with pytest.raises(Killed):
            vectors.write_points(MortalStore(store, changes), OLD, chunk_shape=20)
        assert "zarr.json" not in values(store)
        vectors.write_points(store, OLD, chunk_shape=20)
        assert values(store) == values(full)


def test_attributes_of_every_kind() -> None:
    store = MemoryStore()
    edges = RNG.integers(0, 80, (90, 2))
    vectors.write_graph(store, OLD, edges, chunk_shape=20, object_ids=np.arange(80) % 3, groups=[[0, 1], [2]])
    fragments, objects = vectors.read_fragments(store), vectors.read_objects(store)
    vectors.set_attribute(store, "part", fragments.vertex_counts * 10, kind="fragment")
    vectors.set_attribute(store, "name", ["a", "b", None], kind="object")
    vectors.set_attribute(store, "size", [[2, 3], [1, 4]], kind="group")
    graph = vectors.read_graph(store)
    vectors.set_attribute(store, "length", graph.positions[graph.edges[:, 0], 0], kind="link")
    graph, fragments = vectors.read_graph(store), vectors.read_fragments(store)
    assert graph.edge_attributes["length"].tolist() == graph.positions[graph.edges[:, 0], 0].tolist()
    assert fragments.attributes["part"].tolist() == (fragments.vertex_counts * 10).tolist()
    assert objects.fragment_counts.sum() == len(fragments.chunks)
    assert vectors.read_objects(store).attributes["name"].tolist()[:2] == ["a", "b"]
    assert vectors.read_groups(store).attributes["size"].tolist() == [[2, 3], [1, 4]]
    assert [each.tolist() for each in vectors.read_groups(store).members] == [[0, 1], [2]]
    assert vectors.validate(store).findings == ()
    with pytest.raises(DataError, match="nothing of the kind"):
        vectors.set_attribute(store, "a", [], kind="teapot")


def test_no_condition_deletes_nothing() -> None:
    store = MemoryStore()
    vectors.write_points(store, OLD, chunk_shape=20)
    with pytest.raises(SelectionError, match="what to delete"):
        vectors.delete(store, where={})
    assert len(vectors.read_points(store)) == 80


WRITERS: dict[str, Any] = {
    "points": lambda s: vectors.write_points(s, OLD, chunk_shape=20),
    "polylines": lambda s: vectors.write_polylines(s, [OLD], chunk_shape=20),
    "graph": lambda s: vectors.write_graph(s, OLD, [[0, 1]], chunk_shape=20),
    "mesh": lambda s: vectors.write_mesh(s, OLD, [[0, 1, 2]], chunk_shape=20),
    "skeleton": lambda s: vectors.write_skeleton(s, OLD, np.arange(80) - 1, chunk_shape=20),
}
APPENDERS: dict[str, Any] = {
    "points": lambda s: vectors.append_points(s, NEW[:3]),
    "polylines": lambda s: vectors.append_polylines(s, [NEW[:3]]),
    "graph": lambda s: vectors.append_graph(s, NEW[:3], [[2, 0]]),
    "mesh": lambda s: vectors.append_mesh(s, NEW[:3], [[2, 0, 1]]),
    "skeleton": lambda s: vectors.append_skeleton(s, NEW[:3], [2, -1, 1]),
}


@pytest.mark.parametrize("append", APPENDERS)
@pytest.mark.parametrize("write", WRITERS)
def test_each_geometry_takes_its_own_kind(write: str, append: str) -> None:
    store = MemoryStore()
    WRITERS[write](store)
    before = values(store)
    if write == append:
        APPENDERS[append](store)
        assert len(vectors.read_points(store)) == 83
    else:
        with pytest.raises(DataError, match=r"append_|corners"):
            APPENDERS[append](store)
        assert values(store) == before
    assert vectors.validate(store).findings == ()


def test_trees_and_straight_lines_are_added_as_they_are() -> None:
    store = MemoryStore()
    vectors.write_skeleton(store, [[0, 0, 0], [1, 0, 0]], [-1, 0], chunk_shape=3)
    vectors.append_skeleton(store, [[5, 0, 0], [6, 0, 0], [7, 0, 0]], [-1, 0, 0], object_ids=[7, 7, 7])
    tree = vectors.read_skeleton(store)
    number = tree.positions[:, 0].astype(int)
    above = np.where(tree.parents >= 0, number[tree.parents], -1)
    assert dict(zip(number.tolist(), above.tolist(), strict=True)) == {0: -1, 1: 0, 5: -1, 6: 5, 7: 5}
    assert vectors.validate(store).findings == ()
    store = MemoryStore()
    vectors.write_lines(store, OLD[:4].reshape(2, 2, 3), chunk_shape=20)
    with pytest.raises(DataError, match="straight lines"):
        vectors.append_polylines(store, [NEW[:3]])
    vectors.append_polylines(store, [NEW[:2]])
    assert vectors.read_lines(store)[2].tolist() == NEW[:2].tolist()


def hidden_rows() -> MemoryStore:
    """Five points of which a fragment names three."""
    store = MemoryStore()
    vectors.write_points(store, OLD[:5] / 50, chunk_shape=20, vertex_attributes={"n": np.arange(5)})
    level = VectorStore.open(store).level(0)
    array = level.cells("vertex_fragments")
    assert array is not None
    blobs = encode_indexes(np.array([0, 1]), np.array([3]), np.array([0, 2, 4]))
    node = Node("", array.array.metadata, np.zeros((1, 3), np.int64), blobs)
    rebuild(store, level.path + "/vertex_fragments", array.array.metadata, node)
    block = {name: value for name, value in level.document.block.items() if name != "fragments_tile"}
    replace_nodes(level, [], [], {**level.document.attributes, LEVEL: block})
    assert vectors.read_points(store).attributes["n"].tolist() == [0, 2, 4]
    return store


def test_rows_that_no_fragment_names_do_not_come_back() -> None:
    store = hidden_rows()
    vectors.append_points(store, NEW[:1], vertex_attributes={"n": [9]})
    assert sorted(vectors.read_points(store).attributes["n"].tolist()) == [0, 2, 4, 9]
    store = hidden_rows()
    vectors.move_vertices(store, [0], NEW[:1])
    assert sorted(vectors.read_points(store).attributes["n"].tolist()) == [0, 2, 4]
    store = hidden_rows()
    assert vectors.delete(store, where={"n": 0}) == 1
    assert vectors.read_points(store).attributes["n"].tolist() == [2, 4]
    assert vectors.validate(store).findings == ()


def test_nodes_and_attributes_of_others_stay() -> None:
    store = MemoryStore()
    vectors.write_points(
        store, OLD, chunk_shape=20, object_ids=np.arange(80) % 3, object_attributes={"w": [1.0, 2.0, 3.0]}
    )
    zardine.create_array(store, name="0/my_density", shape=(3,), dtype="i4", chunks=(3,))[...] = [1, 2, 3]
    zardine.create_group(store, path="0/geometry_index", attributes={"theirs": 1})
    for name in ("0/vertices", "0/object_attributes/w", "0/object_index"):
        zardine.open(store, path=name, mode="r+").attrs["unit"] = "mm"
    vectors.set_attribute(store, "q", np.arange(80))
    vectors.set_attribute(store, "w", [4.0, 5.0, 6.0], kind="object")
    vectors.append_points(store, NEW, object_ids=np.arange(40))
    vectors.delete(store, object_ids=[1])
    assert zardine.open_array(store, path="0/my_density")[...].tolist() == [1, 2, 3]
    assert zardine.open_group(store, path="0/geometry_index").attrs["theirs"] == 1
    for name in ("0/vertices", "0/object_attributes/w", "0/object_index"):
        assert zardine.open(store, path=name, mode="r").attrs["unit"] == "mm"


def test_what_new_objects_are_not_given_is_absent() -> None:
    """Not zero, which would be a value."""
    store, line = MemoryStore(), np.zeros((2, 3))
    given = {"count": [4, 0], "size": [1.5, 2.5], "name": ["a", "b"], "flag": np.array([1, 2], "u1")}
    vectors.write_polylines(store, [line, line + 1], chunk_shape=5, object_attributes=given)
    vectors.append_polylines(store, [line + 2])
    vectors.append_polylines(store, [line + 3], object_attributes={"new": [7], "count": [0]})
    found = vectors.read_objects(store)
    assert {name: each.tolist() for name, each in found.present.items()} == {
        "count": [True, True, False, True],
        "size": [True, True, False, False],
        "name": [True, True, False, False],
        "flag": [True, True, False, False],
        "new": [False, False, False, True],
    }
    store = MemoryStore()
    vectors.write_points(store, line, chunk_shape=5, object_ids=[1, 2])
    vectors.append_points(store, line, object_ids=[2, 3], object_attributes={"count": [0]})
    assert vectors.read_objects(store).present["count"].tolist() == [False, False, True]


def test_attributes_of_appended_links_have_both_names() -> None:
    for name in ("link_attributes", "edge_attributes"):
        store = MemoryStore()
        vectors.write_graph(store, np.eye(3), [[0, 1]], chunk_shape=5, edge_attributes={"w": [1]})
        vectors.append_graph(store, np.eye(3), [[0, 1]], **{name: {"w": [2]}})
        assert sorted(vectors.read_graph(store).edge_attributes["w"].tolist()) == [1, 2]
    for name in ("link_attributes", "face_attributes"):
        store = MemoryStore()
        vectors.write_mesh(store, np.eye(3), [[0, 1, 2]], chunk_shape=5, face_attributes={"w": [1]})
        vectors.append_mesh(store, np.eye(3), [[0, 1, 2]], **{name: {"w": [2]}})
        assert sorted(vectors.read_mesh(store).face_attributes["w"].tolist()) == [1, 2]
    with pytest.raises(DataError, match="give one of them"):
        vectors.append_mesh(store, np.eye(3), [[0, 1, 2]], face_attributes={"w": [2]}, link_attributes={"w": [2]})


@pytest.mark.parametrize("object_ids", [None, [1]])
def test_a_vertex_is_moved_to_one_place(object_ids: list[int] | None) -> None:
    store = MemoryStore()
    vectors.write_points(store, np.eye(3), chunk_shape=5, object_ids=[1, 1, 2])
    with pytest.raises(SelectionError, match="row 1 is named more than once"):
        vectors.move_vertices(store, [1, 0, 1], np.zeros((3, 3)), object_ids=object_ids)
    np.testing.assert_array_equal(vectors.read_points(store).positions, np.eye(3))


def with_objects_of(names: Any) -> MemoryStore:
    """Three objects, whose names are in a table of that data type."""
    store = MemoryStore()
    points = np.arange(18.0).reshape(6, 3)
    vectors.write_points(
        store, points, object_ids=[0, 0, 1, 1, 2, 2], object_attributes={"name": ["a", "b", "c"]}, chunk_shape=10
    )
    path = "0/object_attributes/name"
    attributes = dict(zardine.open(store, path=path).attrs)
    zardine.create_array(store, name=path, data=names, overwrite=True, attributes=attributes)
    return store


def test_values_that_a_table_of_objects_cannot_hold_are_told() -> None:
    store = with_objects_of(np.array(["a", "b", "c"], "U2"))
    vectors.set_attribute(store, "name", ["bb"], kind="object", object_ids=[1])
    with pytest.raises(DataError, match=r"table of 'name' cannot hold these values .*shorter text.*without ids"):
        vectors.set_attribute(store, "name", ["longer"], kind="object", object_ids=[1])
    assert vectors.read_objects(store).attributes["name"].tolist() == ["a", "bb", "c"]


def test_values_of_a_table_with_other_rows_are_damage() -> None:
    store = with_objects_of(np.array(["a", "b", "c", "d"], "U2"))
    with pytest.raises(CorruptionError, match="attribute values for 3 rows"):
        vectors.set_attribute(store, "name", ["x"], kind="object", object_ids=[1])
