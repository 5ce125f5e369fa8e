"""A small store of each geometry, in memory, with everything that it can have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from zardine import vectors
from zardine.storage import MemoryStore
from zardine.stores.attempts import Patience

COUNT = 40
LINKS = 16  # each between two chunks of others is an array of its own


def positions(rank: int = 3) -> np.ndarray[Any, Any]:
    return np.random.default_rng(5).uniform(-30, 30, (COUNT, rank))


def _vertex_attributes() -> dict[str, Any]:
    number = np.arange(COUNT)
    return {
        "n": number,
        "rgb": np.stack([number] * 3, axis=1).astype("u1"),
        "kind": [f"k{i % 3}" for i in range(COUNT)],
    }


def _objects() -> dict[str, Any]:
    return {
        "object_ids": 10 + np.arange(COUNT) % 4,
        "object_attributes": {"size": [1.5, 2, 3, 4], "name": ["a", "b", "c", "d"]},
        "groups": [[10, 12], [11]],
        "group_attributes": {"label": ["x", "y"]},
    }


def points(store: Any, **layout: Any) -> None:
    vectors.write_points(store, positions(), vertex_attributes=_vertex_attributes(), **layout)
    ball = vectors.ParametricObject("sphere", np.arange(1.0, 5), "ball")
    vectors.write_parametric_objects(store, [ball, vectors.ParametricObject("line", np.arange(6.0))], groups=[[0]])


def points_of_objects(store: Any, **layout: Any) -> None:
    vectors.write_points(store, positions(), vertex_attributes=_vertex_attributes(), **_objects(), **layout)


def polylines(store: Any, **layout: Any) -> None:
    lines = np.split(positions(), 4)
    attributes = {name: np.asarray(values) for name, values in _vertex_attributes().items()}
    objects = {**_objects(), "object_ids": [10, 11, 12, 13]}
    vectors.write_polylines(store, lines, vertex_attributes=attributes, **objects, **layout)


def graph(store: Any, **layout: Any) -> None:
    edges = np.random.default_rng(6).integers(0, COUNT, (LINKS, 2))
    weights = {"w": np.arange(float(LINKS)), "t": [f"t{i % 2}" for i in range(LINKS)]}
    more = {"vertex_attributes": _vertex_attributes(), "edge_attributes": weights, **_objects()}
    vectors.write_graph(store, positions(), edges, **more, **layout)


def skeleton(store: Any, **layout: Any) -> None:
    parents = np.arange(COUNT) - 4
    parents[:4] = -1
    more = {"vertex_attributes": _vertex_attributes(), **_objects()}
    vectors.write_skeleton(store, positions(), parents, **more, **layout)


def mesh(store: Any, **layout: Any) -> None:
    faces = np.random.default_rng(7).integers(0, COUNT, (LINKS, 3))
    more = {"vertex_attributes": _vertex_attributes(), "face_attributes": {"w": np.arange(LINKS)}, **_objects()}
    vectors.write_mesh(store, positions(), faces, **more, **layout)


def at_once(monkeypatch: Any) -> None:
    """Let readers not wait for writers that may be at work: what is wrong in these tests stays wrong."""
    for module in ("storing.steady", "reading.rereading", "validation.validate", "parametric"):
        monkeypatch.setattr(f"zardine.vectors.{module}.CHANGES", Patience(most=2, first_wait=0.0))


WRITERS: dict[str, Callable[..., None]] = {
    each.__name__: each for each in (points, points_of_objects, polylines, graph, skeleton, mesh)
}


def store_of(kind: str, **layout: Any) -> MemoryStore:
    """A store of one of :data:`WRITERS`; without checksums, so that what is behind them is tested."""
    store = MemoryStore()
    WRITERS[kind](store, **{"chunk_shape": 20, "checksum": False, **layout})
    return store


def read_all(store: Any, kind: str, **query: Any) -> dict[str, list[Any]]:
    """Everything that the readers give for a store, in lists."""
    found: dict[str, Any] = {}
    if kind.startswith("points"):
        found["points"] = vectors.read_points(store, **query)
    elif kind == "polylines":
        found["lines"] = vectors.read_polylines(store, **query)
    elif kind == "graph":
        found["graph"] = vectors.read_graph(store, **query)
    elif kind == "skeleton":
        found["skeleton"] = vectors.read_skeleton(store, **query)
    else:
        found["mesh"] = vectors.read_mesh(store, **query)
    if not query:
        found["objects"] = vectors.read_objects(store)
        found["groups"] = vectors.read_groups(store)
        found["fragments"] = vectors.read_fragments(store)
        found |= {f"parametric {n}": each for n, each in enumerate(vectors.read_parametric_objects(store))}
    return {name: _lists(value) for name, value in found.items()}


def _lists(result: Any) -> list[Any]:
    parts: list[Any] = []
    for name in result.__dataclass_fields__:
        value = getattr(result, name)
        if isinstance(value, dict):
            parts.append({key: np.asarray(each).tolist() for key, each in value.items()})
        elif isinstance(value, tuple):
            parts.append([np.asarray(each).tolist() for each in value])
        else:
            parts.append(None if value is None else np.asarray(value).tolist())
    return parts
