"""zardine.vectors and zarr-vectors 0.9.2 read and check each other's stores.

Run by hand, in an environment that has both::

    pip install zarr-vectors==0.9.2
    PYTHONPATH=src python benchmarks/vectors_interop.py

Prints a line for each store and exits with 1 where the two do not agree.
"""

from __future__ import annotations

import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from zarr_vectors.multiresolution.coarsen import build_pyramid as their_pyramid
from zarr_vectors.types.graphs import read_graph as their_read_graph
from zarr_vectors.types.graphs import write_graph as their_write_graph
from zarr_vectors.types.meshes import read_mesh as their_read_mesh
from zarr_vectors.types.meshes import write_mesh as their_write_mesh
from zarr_vectors.types.points import read_points as their_read_points
from zarr_vectors.types.points import write_points as their_write_points
from zarr_vectors.types.polylines import read_polylines as their_read_polylines
from zarr_vectors.types.polylines import write_polylines as their_write_polylines
from zarr_vectors.validate import validate as their_validate

from zardine import vectors

Array = np.ndarray[Any, Any]


def rows(*columns: Any) -> list[tuple[float, ...]]:
    """Rows of several arrays side by side, sorted."""
    parts = [np.asarray(each, np.float64).reshape(len(each), -1) for each in columns]
    return sorted(map(tuple, np.concatenate(parts, axis=1).tolist()))


def links(positions: Array, ends: Any, *columns: Any) -> list[tuple[float, ...]]:
    """Links as the coordinates of their ends, sorted."""
    ends = np.asarray(ends, np.int64)
    return rows(positions[ends].reshape(len(ends), -1), *columns) if len(ends) else []


def make_data(rank: int, dtype: str) -> dict[str, Any]:
    """Random geometry in a box that reaches below zero."""
    rng = np.random.default_rng(rank)
    points = rng.uniform(-40, 90, (300, rank)).astype(dtype)
    lines = [rng.normal(0, 9, (n, rank)).cumsum(axis=0).astype(dtype) for n in (1, 2, 40, 17)]
    edges = rng.integers(0, 300, (400, 2))
    edges = edges[edges[:, 0] != edges[:, 1]]
    faces = np.array([rng.choice(300, 3, replace=False) for _ in range(200)])
    parents = np.array([-1, *(rng.integers(0, i) for i in range(1, 300))])
    return {"points": points, "lines": lines, "edges": edges, "faces": faces, "parents": parents}


def ours(folder: Path, data: dict[str, Any], **layout: Any) -> dict[str, Callable[[], Any]]:
    """Stores that zardine writes, and what zarr-vectors must find in them."""
    points, value = data["points"], np.arange(300.0)
    layout = {"chunk_shape": 25, "dtype": points.dtype, **layout}
    checks: dict[str, Callable[[], Any]] = {}

    def same(found: Any, wanted: Any) -> None:
        if found != wanted:
            raise AssertionError("other values")

    def check_points(path: str) -> None:
        found = their_read_points(path, attribute_names=["v"])
        same(rows(found["positions"], found["vertex_attributes"]["v"]), rows(points, value))
        low, high = np.full(points.shape[1], -20.0), np.full(points.shape[1], 40.0)
        inside = ((points >= low) & (points <= high)).all(axis=1)
        same(rows(their_read_points(path, bbox=(low, high))["positions"]), rows(points[inside]))

    for name, bins in (("points", None), ("bins", 5)):
        path = str(folder / name)
        vectors.write_points(path, points, bin_shape=bins, vertex_attributes={"v": value}, **layout)
        checks[name] = lambda path=path: check_points(path)

    ids = np.random.default_rng(5).integers(0, 2**40, 12)[np.arange(300) % 12]
    path = str(folder / "ids")
    vectors.write_points(path, points, object_ids=ids, vertex_attributes={"v": value}, groups=[ids[:3]], **layout)

    def check_ids(path: str = path) -> None:
        found = their_read_points(path, attribute_names=["v"])
        same(rows(found["positions"], found["vertex_attributes"]["v"]), rows(points, value))
        one = their_read_points(path, object_ids=[int(ids[0])])
        same(rows(one["positions"]), rows(points[ids == ids[0]]))
        group = their_read_points(path, group_ids=[0])
        same(rows(group["positions"]), rows(points[np.isin(ids, ids[:3])]))

    checks["ids"] = check_ids
    path_of_lines = str(folder / "lines")
    vectors.write_polylines(path_of_lines, data["lines"], **layout)

    def check_lines() -> None:
        found = their_read_polylines(path_of_lines)["polylines"]
        joined = [np.concatenate([np.atleast_2d(part) for part in parts]) for parts in found]
        same([line.tolist() for line in joined], [line.tolist() for line in data["lines"]])

    checks["lines"] = check_lines
    path_of_graph = str(folder / "graph")
    weight = np.arange(len(data["edges"]), dtype="f4")
    vectors.write_graph(path_of_graph, points, data["edges"], edge_attributes={"w": weight}, **layout)

    def check_graph() -> None:
        found = their_read_graph(path_of_graph)
        same(rows(found["positions"]), rows(points))
        same(links(found["positions"], found["edges"]), links(points, data["edges"]))

    checks["graph"] = check_graph
    path_of_skeleton = str(folder / "skeleton")
    vectors.write_skeleton(path_of_skeleton, points, data["parents"], **layout)

    def check_skeleton() -> None:
        found = their_read_graph(path_of_skeleton)
        child = np.flatnonzero(data["parents"] >= 0)
        wanted = links(points, np.stack([child, data["parents"][child]], axis=1))
        same(links(found["positions"], found["edges"]), wanted)

    checks["skeleton"] = check_skeleton
    path_of_mesh = str(folder / "mesh")
    vectors.write_mesh(path_of_mesh, points, data["faces"], **layout)

    def check_mesh() -> None:
        found = their_read_mesh(path_of_mesh)
        same(links(found["vertices"], found["faces"]), links(points, data["faces"]))

    checks["mesh"] = check_mesh
    return checks


def theirs(folder: Path, data: dict[str, Any], **layout: Any) -> dict[str, Callable[[], Any]]:
    """Stores that zarr-vectors writes, and what zardine must find in them."""
    points, value = data["points"], np.arange(300.0)
    rank = points.shape[1]
    layout = {"chunk_shape": (25.0,) * rank, "dtype": points.dtype.name, **layout}
    checks: dict[str, Callable[[], Any]] = {}

    def same(found: Any, wanted: Any) -> None:
        if found != wanted:
            raise AssertionError("other values")

    def check_points(path: str) -> None:
        found = vectors.read_points(path)
        same(rows(found.positions, found.attributes["v"]), rows(points, value))
        low, high = np.full(rank, -20.0), np.full(rank, 40.0)
        inside = ((points >= low) & (points <= high)).all(axis=1)
        same(rows(vectors.read_points(path, bbox=(low, high)).positions), rows(points[inside]))

    for name, bins in (("points", None), ("bins", (5.0,) * rank)):
        path = str(folder / name)
        their_write_points(path, points, bin_shape=bins, vertex_attributes={"v": value}, **layout)
        checks[name] = lambda path=path: check_points(path)
    ids = np.arange(300) % 12 * 7
    path = str(folder / "ids")
    their_write_points(path, points, object_ids=ids, vertex_attributes={"v": value}, **layout)
    checks["ids"] = lambda path=path: (
        check_points(path),
        same(rows(vectors.read_points(path, object_ids=[7]).positions), rows(points[ids == 7])),
    )
    their_write_polylines(str(folder / "lines"), data["lines"], **layout)
    checks["lines"] = lambda: same(
        [line.tolist() for line in vectors.read_polylines(str(folder / "lines")).lines],
        [line.tolist() for line in data["lines"]],
    )

    def check_graph() -> None:
        found = vectors.read_graph(str(folder / "graph"))
        same(links(found.positions, found.edges), links(points, data["edges"]))

    their_write_graph(str(folder / "graph"), points, data["edges"], **layout)
    checks["graph"] = check_graph

    def check_skeleton() -> None:
        found = vectors.read_skeleton(str(folder / "skeleton"))
        child = np.flatnonzero(data["parents"] >= 0)
        wanted = links(points, np.stack([child, data["parents"][child]], axis=1))
        same(links(found.positions, found.edges), wanted)

    child = np.flatnonzero(data["parents"] >= 0)
    edges = np.stack([child, data["parents"][child]], axis=1)
    their_write_graph(str(folder / "skeleton"), points, edges, kind="skeleton", **layout)
    checks["skeleton"] = check_skeleton

    def check_mesh() -> None:
        found = vectors.read_mesh(str(folder / "mesh"))
        same(links(found.positions, found.faces), links(points, data["faces"]))

    their_write_mesh(str(folder / "mesh"), points, data["faces"], **layout)
    checks["mesh"] = check_mesh
    return checks


def main() -> int:
    """Write, read and check everything; gives the exit code."""
    bad = total = 0
    for rank in (2, 3):
        for dtype in ("float32", "float64"):
            data = make_data(rank, dtype)
            warnings.simplefilter("ignore")
            for layout in ({}, {"shard_shape": 3, "compressor": "zstd"}):
                for who, make in (("zardine", ours), ("zarr-vectors", theirs)):
                    with tempfile.TemporaryDirectory() as name:
                        folder = Path(name)
                        for store, check in make(folder, data, **layout).items():
                            path = str(folder / store)
                            told = [f"{who} wrote {store}, {rank}-D {dtype} {layout or 'flat'}:"]
                            for pyramid in (False, True)[: 1 + (rank == 3 and dtype == "float32")]:
                                if pyramid and (who == "zardine"):
                                    vectors.build_pyramid(path, factors=[(2, 1), (2, 1)])
                                elif pyramid:
                                    their_pyramid(path, factors=[(2, 1), (2, 1)])
                                try:
                                    check()
                                except Exception as error:
                                    told.append(f"{type(error).__name__}: {error}")
                                report = their_validate(path, level=5)
                                told += [f"zarr-vectors finds {each}" for each in report.errors]
                                told += [f"zardine finds {each}" for each in vectors.validate(path).errors]
                            total += 1
                            bad += len(told) > 1
                            if len(told) > 1:
                                print("\n    ".join(told)[:1500])
    print(f"{total - bad} of {total} stores: both agree")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
