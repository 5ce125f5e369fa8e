"""zarr-vectors 0.9.2 itself reads and checks what zardine writes, edits and converts, and the other way round."""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from zarr_vectors.core.arrays import read_object_attribute_present_mask
from zarr_vectors.core.store import open_store
from zarr_vectors.multiresolution.coarsen import build_pyramid as their_pyramid
from zarr_vectors.sharding import shard_store as their_shard_store
from zarr_vectors.sharding import unshard_store as their_unshard_store
from zarr_vectors.types.graphs import write_graph
from zarr_vectors.types.lines import write_lines
from zarr_vectors.types.meshes import write_mesh
from zarr_vectors.types.points import read_points, write_points
from zarr_vectors.types.polylines import read_polylines, write_polylines

from effort import SOAK, some
from vectors.geometry_samples import links, rows
from vectors.with_zarr_vectors import agree
from zardine import vectors

COUNT = 36
LAYOUTS: dict[str, dict[str, Any]] = {"flat": {}, "sharded": {"shard_shape": 3, "compressor": "zstd"}}
SHAPES = {"3-D float32": (3, "float32"), "2-D float64": (2, "float64")}


class Sample:
    """Random geometry in a box that reaches below zero."""

    def __init__(self, rank: int, dtype: str) -> None:
        rng = np.random.default_rng(rank)
        self.points = rng.uniform(-40, 60, (COUNT, rank)).astype(dtype)
        self.lines = [rng.normal(0, 9, (n, rank)).cumsum(axis=0).astype(dtype) for n in (1, 2, 25, 12)]
        edges = rng.integers(0, COUNT, (COUNT, 2))
        self.edges = edges[edges[:, 0] != edges[:, 1]]
        self.weights = np.arange(len(self.edges), dtype="f4")
        self.faces = np.array([rng.choice(COUNT, 3, replace=False) for _ in range(COUNT // 2)])
        self.parents = np.array([-1, *(rng.integers(0, i) for i in range(1, COUNT))])
        child = np.arange(1, COUNT)
        self.branches = np.stack([child, self.parents[1:]], axis=1)
        self.ids = np.array([3, 7, 2**40, 5])[np.arange(COUNT) % 4]
        self.columns = {
            "v": np.arange(float(COUNT)),
            "rgb": np.arange(3 * COUNT, dtype="u1").reshape(-1, 3),
            "kind": np.array(["tree", "house"])[np.arange(COUNT) % 2],
        }
        self.gaps = np.array(["tree", None], object)[np.arange(COUNT) % 2]


OURS: dict[str, Callable[[str, Sample, dict[str, Any]], None]] = {
    "points": lambda path, s, o: vectors.write_points(
        path, s.points, vertex_attributes={**s.columns, "gaps": s.gaps}, **o
    ),
    "bins": lambda path, s, o: vectors.write_points(path, s.points, bin_shape=5, vertex_attributes=s.columns, **o),
    "ids": lambda path, s, o: vectors.write_points(
        path,
        s.points,
        object_ids=s.ids,
        vertex_attributes=s.columns,
        object_attributes={"size": [1, 2, 3, 4], "name": list("abcd")},
        groups=[[3, 2**40], [], [5]],
        group_attributes={"name": ["a", "b", "c"]},
        **o,
    ),
    "polylines": lambda path, s, o: vectors.write_polylines(
        path,
        s.lines,
        vertex_attributes={"v": np.arange(40.0), "rgb": np.arange(120).reshape(-1, 3)},
        object_ids=[9, 2**40, 4, 11],
        object_attributes={"length": [1, 2, 25, 12]},
        groups=[[9, 4]],
        **o,
    ),
    "lines": lambda path, s, o: vectors.write_lines(path, s.points.reshape(COUNT // 2, 2, -1), **o),
    "graph": lambda path, s, o: vectors.write_graph(
        path,
        s.points,
        s.edges,
        vertex_attributes=s.columns,
        edge_attributes={"w": s.weights},
        object_attributes={"name": ["one"]},
        **o,
    ),
    "skeleton": lambda path, s, o: vectors.write_skeleton(path, s.points, s.parents, vertex_attributes=s.columns, **o),
    "mesh": lambda path, s, o: vectors.write_mesh(
        path, s.points, s.faces, vertex_attributes=s.columns, face_attributes={"w": np.arange(COUNT // 2)}, **o
    ),
}

THEIRS: dict[str, Callable[[str, Sample, dict[str, Any]], Any]] = {
    "points": lambda path, s, o: write_points(path, s.points, vertex_attributes=s.columns, **o),
    "bins": lambda path, s, o: write_points(
        path, s.points, bin_shape=(5.0,) * s.points.shape[1], vertex_attributes=s.columns, **o
    ),
    "ids": lambda path, s, o: write_points(
        path,
        s.points,
        object_ids=s.ids,
        vertex_attributes=s.columns,
        object_attributes={"size": np.arange(4)},
        groups={0: [3, 2**40], 1: [5]},
        **o,
    ),
    "polylines": lambda path, s, o: write_polylines(
        path, s.lines, object_attributes={"length": np.array([1, 2, 25, 12])}, groups={0: [0, 2]}, **o
    ),
    "lines": lambda path, s, o: write_lines(path, s.points.reshape(COUNT // 2, 2, -1), **o),
    "graph": lambda path, s, o: write_graph(
        path, s.points, s.edges, vertex_attributes={"v": s.columns["v"]}, link_attributes={"w": s.weights}, **o
    ),
    "skeleton": lambda path, s, o: write_graph(path, s.points, s.branches, kind="skeleton", **o),
    "mesh": lambda path, s, o: write_mesh(path, s.points, s.faces, vertex_attributes={"v": s.columns["v"]}, **o),
}


def make(who: str, kind: str, path: Path, shape: str = "3-D float32", layout: str = "flat") -> tuple[str, Sample]:
    """A store that one of the two wrote."""
    rank, dtype = SHAPES[shape]
    sample, place = Sample(rank, dtype), str(path / f"{kind}.zv")
    options = {"chunk_shape": (40.0,) * rank, "dtype": dtype, **LAYOUTS[layout]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        (OURS if who == "ours" else THEIRS)[kind](place, sample, options)
    return place, sample


def check_raw(kind: str, path: str, sample: Sample) -> None:
    """What was given is what zardine reads; :func:`agree` says that the other one does, too."""
    points = sample.points
    if kind in ("points", "bins", "ids"):
        found = vectors.read_points(path)
        assert rows(found.positions, *(found.attributes[name] for name in sample.columns)) == rows(
            points, *sample.columns.values()
        )
    elif kind == "polylines":
        assert [line.tolist() for line in vectors.read_polylines(path).lines] == [x.tolist() for x in sample.lines]
    elif kind == "lines":
        assert rows(vectors.read_lines(path)[:, 0], vectors.read_lines(path)[:, 1]) == rows(points[::2], points[1::2])
    elif kind == "mesh":
        mesh = vectors.read_mesh(path)
        assert links(mesh.positions, mesh.faces) == links(points, sample.faces)
    else:
        graph = vectors.read_graph(path)
        wanted = sample.edges if kind == "graph" else sample.branches
        assert links(graph.positions, graph.edges) == links(points, wanted)


BOTH = pytest.mark.parametrize("who", ["ours", "theirs"])
MADE = list(product(OURS, ("ours", "theirs")))
FORMS = [("3-D float32", "flat"), ("3-D float32", "sharded"), ("2-D float64", "sharded")]
WRITTEN = [(who, kind, *form) for (kind, who), form in product(MADE, FORMS)]


@pytest.mark.parametrize(("who", "kind", "shape", "layout"), list(some(WRITTEN, 6)))
def test_written(tmp_path: Path, who: str, kind: str, shape: str, layout: str) -> None:
    path, sample = make(who, kind, tmp_path, shape, layout)
    check_raw(kind, path, sample)
    agree(path)


@pytest.mark.parametrize(("kind", "who"), list(some(MADE, 6)))
def test_converted(tmp_path: Path, who: str, kind: str) -> None:
    path, sample = make(who, kind, tmp_path)
    for number, change in enumerate(
        (
            lambda: vectors.shard_store(path, 3),
            lambda: vectors.reshard(path, (2, 4, 1)),
            lambda: their_unshard_store(path),
            lambda: their_shard_store(path, shard_shape=2),
            lambda: vectors.unshard_store(path),
        )
    ):
        change()
        check_raw(kind, path, sample)
        if SOAK or number in (1, 4):
            agree(path)


PYRAMIDS = [
    pytest.param(who, kind, builder, id=f"{who}-{kind}-{name}")
    for kind in OURS
    for who in ("ours", "theirs")
    for name, builder in (("ours", vectors.build_pyramid), ("theirs", their_pyramid))
    if name == who or kind in ("ids", "polylines")
]


@pytest.mark.parametrize(("who", "kind", "builder"), list(some(PYRAMIDS, 8)))
def test_pyramids(tmp_path: Path, who: str, kind: str, builder: Any) -> None:
    path, sample = make(who, kind, tmp_path, layout="sharded" if who == "ours" else "flat")
    if builder is their_pyramid and "name" in vectors.read_objects(path).attributes:
        vectors.set_attribute(path, "name", None, kind="object")  # it has no fill value for text of any length
    builder(path, factors=[(2, 1), (2, 2)])
    check_raw(kind, path, sample)
    if SOAK or who == "theirs":
        agree(path)
    vectors.shard_store(path, 2)
    if SOAK or who == "ours":
        agree(path)


def append(kind: str, path: str) -> None:
    """Something far outside, with attributes."""
    more = np.array([[70.0, 70, 70], [71, 70, 70], [120, 70, 70]])
    if kind in ("points", "bins"):
        vectors.append_points(path, more, vertex_attributes={"v": [1, 2, 3]})
    elif kind == "ids":
        vectors.append_points(path, more, object_ids=[3, 2**41, 2**41], vertex_attributes={"v": [1, 2, 3]})
    elif kind == "polylines":
        vectors.append_polylines(path, [more, more[:1]])
    elif kind == "lines":
        vectors.append_polylines(path, [more[:2]])
    elif kind in ("graph", "mesh"):
        vectors.append_graph(path, more, [[0, 1]] if kind == "graph" else [[0, 1, 2]])


EDITS: dict[str, Callable[[str, str], Any]] = {
    "append": append,
    "delete box": lambda kind, path: vectors.delete(path, bbox=([-5] * 3, [30] * 3)),
    "delete everything": lambda kind, path: vectors.delete(path, bbox=([-500] * 3, [500] * 3)),
    "move": lambda kind, path: vectors.move_vertices(path, [0, 3, 11], [[88, 1, 2], [-70, 1, 2], [3, 4, 5]]),
    "set": lambda kind, path: vectors.set_attribute(
        path, "new", np.arange(2.0 * len(vectors.read_points(path, attributes=None))).reshape(-1, 2)
    ),
    "take away": lambda kind, path: vectors.set_attribute(path, "v", None),
}


EDITED = [
    pytest.param(who, kind, edit, id=f"{who}-{kind}-{edit}")
    for edit in EDITS
    for kind in OURS
    for who in (("ours", "theirs") if kind in ("bins", "ids", "polylines", "mesh") else ("ours",))
    if (edit, kind) != ("append", "skeleton")  # nothing appends to skeletons
]


@pytest.mark.parametrize(("who", "kind", "edit"), list(some(EDITED, 8)))
def test_edited(tmp_path: Path, who: str, kind: str, edit: str) -> None:
    path, _ = make(who, kind, tmp_path, layout="sharded" if who == "ours" else "flat")
    EDITS[edit](kind, path)
    agree(path)


def test_lines_with_ids_that_have_gaps(tmp_path: Path) -> None:
    """Without ids, ``read_polylines`` of zarr-vectors looks for the ids from 0 on: also in its own stores."""
    sample = Sample(3, "float32")
    lines = [sample.points[:5], sample.points[5:20], sample.points[20:30], sample.points[30:]]
    for name, write in (("ours", vectors.write_polylines), ("theirs", write_polylines)):
        place = str(tmp_path / f"{name}.zv")
        write(place, lines, chunk_shape=(25.0,) * 3)
        vectors.delete(place, object_ids=[0])
        assert vectors.read_polylines(place).object_ids.tolist() == [1, 2, 3]
        assert read_polylines(place)["object_ids"] == [1, 2, 3]
        found = read_polylines(place, object_ids=[1, 2, 3])
        assert [np.concatenate(each).tolist() for each in found["polylines"]] == [each.tolist() for each in lines[1:]]
        agree(place)


@BOTH
def test_objects_without_a_value(tmp_path: Path, who: str) -> None:
    points, path = np.arange(9.0).reshape(3, 3), str(tmp_path / "a.zv")
    columns = {
        "int": np.array([0, 1, 2]),
        "unsigned": np.array([0, 1, 2], "u2"),
        "float": np.array([0.0, 1.0, 2.0], "f4"),
        "two": np.array([[0, 0], [0, 1], [2, 2]], "i2"),
    }
    if who == "ours":
        vectors.write_points(path, points, chunk_shape=10, object_ids=[4, 5, 6], object_attributes=columns)
    else:
        write_points(path, points, chunk_shape=(10.0,) * 3, object_ids=np.arange(4, 7), object_attributes=columns)
    for name in columns:
        assert read_object_attribute_present_mask(open_store(path)["0"], name) is None
        assert vectors.read_objects(path).present[name].all()
    their_pyramid(path, factors=[(2, 3)])
    found = vectors.read_objects(path, level=1)
    for name in columns:
        mask = read_object_attribute_present_mask(open_store(path)["1"], name)
        assert mask is not None
        assert found.present[name].tolist() == mask.astype(bool).tolist() == (found.fragment_counts > 0).tolist()
    vectors.append_points(
        path, [[1, 2, 3]], object_ids=[9], object_attributes={name: c[:1] for name, c in columns.items()}
    )
    for name in columns:
        assert read_object_attribute_present_mask(open_store(path)["0"], name) is None


@pytest.mark.parametrize(
    ("chunk", "size"), list(some([(0.3, 0.1), (0.6, 0.2), (1.0, 0.1), (1.0, 1 / 3), (0.7, 0.1), (25, 5)], 2))
)
def test_points_on_the_faces_of_bins(tmp_path: Path, chunk: float, size: float) -> None:
    steps = np.arange(-28, 56) * size
    points = np.stack([steps, steps[::-1], np.abs(steps)], axis=1)
    ours, theirs = str(tmp_path / "ours.zv"), str(tmp_path / "theirs.zv")
    vectors.write_points(ours, points, chunk_shape=chunk, bin_shape=size)
    write_points(theirs, points, chunk_shape=(chunk,) * 3, bin_shape=(size,) * 3, dtype="float64")
    missed = {
        path: sum(len(read_points(path, bbox=(point, point))["positions"]) == 0 for point in points)
        for path in (ours, theirs)
    }
    assert missed[ours] <= missed[theirs]
    for path in (ours, theirs):
        assert all(len(vectors.read_points(path, bbox=(point, point))) == 1 for point in points)
    assert vectors.validate(ours).findings == ()


def test_speed_is_in_order(tmp_path: Path) -> None:
    """Far below what benchmarks/VECTORS.md shows, so that a busy machine passes."""
    points = np.random.default_rng(0).uniform(0, 100, (5000, 3)).astype("f4")

    def seconds(call: Callable[[], Any]) -> float:
        best = 1e9
        for _ in range(2):
            start = time.perf_counter()
            call()
            best = min(best, time.perf_counter() - start)
        return best

    options: dict[str, Any] = {"chunk_shape": (20.0,) * 3, "shard_shape": 8}
    ours, theirs = str(tmp_path / "ours.zv"), str(tmp_path / "theirs.zv")
    write = seconds(lambda: vectors.write_points(ours, points, overwrite=True, **options))
    assert write < seconds(lambda: write_points(theirs, points, **options))
    vectors.write_points(theirs, points, overwrite=True, **options)
    read = seconds(lambda: vectors.read_points(ours))
    assert read < seconds(lambda: read_points(ours))


def test_a_store_that_is_claimed(tmp_path: Path) -> None:
    """On object stores a writer who was killed leaves its claim, of which zarr-vectors knows nothing."""
    path = str(tmp_path / "a.zv")
    vectors.write_points(path, np.arange(30.0).reshape(-1, 3), chunk_shape=10, object_ids=np.arange(10))
    level = tmp_path / "a.zv/0/zarr.json"
    document = json.loads(level.read_text())
    document["attributes"]["zardine_claim"] = {"writer": "0123456789abcdef", "beat": 3}
    document["attributes"]["zardine_helped"] = True
    level.write_text(json.dumps(document))
    agree(path)
