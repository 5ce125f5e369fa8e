"""Any geometry, any layout, any edits one after the other, in memory and files: all reads are those of plain NumPy."""

from __future__ import annotations

from dataclasses import dataclass
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import examples
from vectors.geometry_samples import links, rows
from zardine import vectors
from zardine.storage import MemoryStore
from zardine.stores.resolve import StoreLike

KINDS = ("points", "objects", "graph", "mesh", "skeleton", "lines")


@dataclass
class Model:
    """What a store should hold; each vertex has a number of its own, ``n``."""

    positions: np.ndarray[Any, Any]
    n: np.ndarray[Any, Any]
    owner: np.ndarray[Any, Any]
    ends: np.ndarray[Any, Any]
    """Links, by ``n``; of skeletons child and parent, of lines neighbours."""
    group: tuple[int, ...] = ()
    """The objects of the only group; of points without objects none."""
    older: bool = False
    """Whether there are levels above that are older."""


def fresh(rng: np.random.Generator, kind: str, rank: int, first: int, id_: int) -> Model:
    """Some vertices of ``rank`` coordinates, all of one new object, and links between them as ``kind`` has them."""
    count = int(rng.integers(3, 12))
    points = rng.uniform(-20, 20, (count, rank))
    n = np.arange(first, first + count)
    width = 3 if kind == "mesh" else 2
    if kind in ("graph", "mesh"):
        ends = n[rng.integers(0, count, (int(rng.integers(0, 9)), width))]
    elif kind == "skeleton":
        above = np.array([0, *(rng.integers(0, i) for i in range(1, count))])
        ends = np.stack([n[1:], n[above[1:]]], axis=1)
    elif kind == "lines":
        ends = np.stack([n[:-1], n[1:]], axis=1)
    else:
        ends = np.zeros((0, 2), np.int64)
    return Model(points, n, np.full(count, id_), ends)


def store_it(store: StoreLike, kind: str, new: Model, layout: dict[str, Any] | None) -> None:
    """Write a new store, or (``layout`` is None) add to one."""
    local = new.ends - new.n[0]
    options: dict[str, Any] = {"vertex_attributes": {"n": new.n}, **(layout or {})}
    above = np.full(len(new.n), -1)
    if kind == "skeleton":
        above[local[:, 0]] = local[:, 1]
    ids = {} if kind in ("points", "lines") else {"object_ids": new.owner}
    one: dict[str, Any] = {"object_ids": new.owner[:1]}
    if kind != "points":
        if layout is not None:
            groups = {"groups": [[0]]}
            ids |= groups
            one |= groups
        if layout is not None or kind in ("objects", "lines"):
            weights = {"object_attributes": {"w": [new.owner[0] * 1.5]}}
            ids |= weights
            one |= weights
    calls: dict[str, Any] = {
        "points": (vectors.write_points, vectors.append_points, (), ids),
        "objects": (vectors.write_points, vectors.append_points, (), ids),
        "graph": (vectors.write_graph, vectors.append_graph, (local,), ids),
        "mesh": (vectors.write_mesh, vectors.append_mesh, (local,), ids),
        "skeleton": (vectors.write_skeleton, vectors.append_skeleton, (above,), ids),
        "lines": (vectors.write_polylines, vectors.append_polylines, (), one),
    }
    write, append, more, named = calls[kind]
    positions: Any = [new.positions] if kind == "lines" else new.positions
    (append if layout is None else write)(store, positions, *more, **named, **options)


def without(kind: str, model: Model, gone: np.ndarray[Any, Any]) -> Model:
    """The vertices that are not ``gone``; neighbours of one that goes become neighbours in lines."""
    kept = ~gone
    ends = model.ends[np.isin(model.ends, model.n[kept]).all(axis=1)]
    group = tuple(each for each in model.group if each in model.owner[kept])
    left = Model(model.positions[kept], model.n[kept], model.owner[kept], ends, group, model.older)
    if kind == "lines":
        same = left.owner[1:] == left.owner[:-1]
        left.ends = np.stack([left.n[:-1], left.n[1:]], axis=1)[same]
    return left


def check(store: StoreLike, kind: str, model: Model) -> None:
    found = vectors.read_points(store)
    assert rows(found.positions, found.attributes["n"]) == rows(model.positions, model.n)
    if kind != "points":
        assert rows(found.attributes["n"], found.object_ids) == rows(model.n, model.owner)
    if "twice" in found.attributes:
        assert np.isin(found.attributes["twice"] - 2 * found.attributes["n"], [0, *(-2 * model.n)]).all()
    rank = model.positions.shape[1]
    box = ([-7, -20, -15][:rank], [12, 9, 20][:rank])
    some = ((model.positions >= box[0]) & (model.positions <= box[1])).all(axis=1)
    assert rows(vectors.read_points(store, bbox=box).attributes["n"]) == rows(model.n[some])
    place = np.zeros(int(model.n.max(initial=0)) + 1, np.int64)
    place[model.n] = np.arange(len(model.n))
    wanted = links(model.positions, place[model.ends])
    if kind in ("graph", "skeleton"):
        graph = vectors.read_graph(store)
        assert links(graph.positions, graph.edges) == wanted
    elif kind == "mesh":
        mesh = vectors.read_mesh(store)
        assert links(mesh.positions, mesh.faces) == wanted
    elif kind == "lines":
        lines = vectors.read_polylines(store)
        assert lines.object_ids.tolist() == list(dict.fromkeys(model.owner.tolist()))
        assert lines.attributes["n"].tolist() == model.n.tolist()
        assert lines.positions.tolist() == model.positions.tolist()
    if kind != "points":
        table = vectors.read_objects(store)
        assert sorted(table.ids.tolist()) == sorted(set(model.owner.tolist()))
        of = dict(zip(table.ids.tolist(), table.attributes["w"].tolist(), strict=True))
        assert all(value == id_ * 1.5 or np.isnan(value) for id_, value in of.items())
        assert kind not in ("objects", "lines") or not np.isnan(list(of.values())).any()
        assert [tuple(each.tolist()) for each in vectors.read_groups(store).members] == [model.group]
        assert vectors.describe_store(store)["levels"][0]["objects"] == len(table.ids)
        some = table.ids[:2].tolist()
        found = vectors.read_points(store, object_ids=some)
        assert rows(found.attributes["n"]) == rows(model.n[np.isin(model.owner, some)])
    kinds = [each.kind for each in vectors.validate(store).findings if each.kind != "values-absent"]
    assert kinds == (["levels-older"] if model.older and len(vectors.describe_store(store)["levels"]) > 1 else [])


STEPS = (
    *("append", "delete", "delete objects", "delete box", "move", "nudge", "move objects", "set", "set objects"),
    *("pyramid", "reshard", "again"),
)


@settings(max_examples=examples(16), deadline=None)
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from(KINDS),
    st.sampled_from([1, 2, 2, 3]),
    st.sampled_from([7.0, 50.0]),
    st.sampled_from([None, 2]),
    st.lists(st.sampled_from(STEPS), min_size=1, max_size=6),
    st.booleans(),
)
def test_edits(
    seed: int, kind: str, rank: int, chunk: float, shards: int | None, steps: list[str], in_files: bool
) -> None:
    with TemporaryDirectory() as folder:
        store = f"{folder}/a.zv" if in_files else MemoryStore()
        edit(store, np.random.default_rng(seed), kind, rank, {"chunk_shape": chunk, "shard_shape": shards}, steps)


def edit(
    store: StoreLike, rng: np.random.Generator, kind: str, rank: int, layout: dict[str, Any], steps: list[str]
) -> None:
    """Change a new store step by step, and look after each whether it holds what it should."""
    model = fresh(rng, kind, rank, 0, 0)
    model.group = () if kind == "points" else (0,)
    store_it(store, kind, model, layout)
    for number, step in enumerate(steps, 1):
        before = len(model.n), model.positions.tolist()
        if step in ("append", "again"):
            gone = sorted(set(range(number)) - set(model.owner.tolist()))
            id_ = gone[0] if step == "again" and gone else number
            new = fresh(rng, kind, rank, number * 100, id_)
            store_it(store, kind, new, None)
            parts = zip(list(vars(model).values())[:4], list(vars(new).values())[:4], strict=True)
            model = Model(*(np.concatenate([a, b]) for a, b in parts), model.group, model.older)
            if kind == "lines":  # who comes back has its old place
                order = np.argsort(model.owner, kind="stable")
                model.positions, model.n, model.owner = model.positions[order], model.n[order], model.owner[order]
        elif step == "delete objects" and kind != "points":
            which = rng.choice(np.unique(model.owner), 1) if len(model.owner) else []
            mine = np.isin(model.owner, which)
            assert vectors.delete(store, object_ids=which) == mine.sum()
            model = without(kind, model, mine)
        elif step in ("delete box", "delete objects"):
            box = np.sort(rng.uniform(-20, 20, (2, rank)), axis=0)
            inside = ((model.positions >= box[0]) & (model.positions <= box[1])).all(axis=1)
            assert vectors.delete(store, bbox=box) == inside.sum()
            model = without(kind, model, inside)
        elif step == "delete":
            wanted = rng.choice(model.n, len(model.n) // 3, replace=False)
            assert vectors.delete(store, where={"n": wanted.tolist()}) == len(wanted)
            model = without(kind, model, np.isin(model.n, wanted))
        elif step in ("move", "nudge", "move objects"):
            some = {}
            if step == "move objects" and kind != "points" and len(model.owner):
                some = {"object_ids": np.unique(model.owner)[:2].tolist()}
            found: Any = vectors.open(store).read(**some)
            order = found.attributes["n"]
            which = rng.choice(len(order), len(order) // 2, replace=False)
            to = rng.uniform(-30, 30, (len(which), rank))
            if step == "nudge":  # most stay in their chunks
                to = found.positions[which] + rng.uniform(-0.2, 0.2, to.shape)
            vectors.move_vertices(store, which, to, **some)
            place = {n: i for i, n in enumerate(model.n.tolist())}
            model.positions = model.positions.copy()
            model.positions[[place[n] for n in order[which].tolist()]] = to
        elif step == "set":
            vectors.set_attribute(store, "twice", vectors.open(store).read().attributes["n"] * 2)
        elif step == "set objects":
            if kind != "points" and len(model.owner):
                vectors.set_attribute(store, "w", model.owner[:1] * 1.5, kind="object", object_ids=model.owner[:1])
                model.older = True
        elif step == "pyramid":
            vectors.build_pyramid(store)
            model.older = False
        else:
            vectors.reshard(store, None if vectors.is_sharded(store) else 3)
        model.older |= before != (len(model.n), model.positions.tolist())
        check(store, kind, model)
