"""Files and folders of other programs, made of random numbers."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import trimesh

import zardine
from zardine import vectors
from zardine.storage import MemoryStore
from zardine.vectors.exchange.precomputed import entries
from zardine.vectors.exchange.precomputed.sharding import Sharding


def swc(folder: Path, count: int = 40, most: int = 200) -> Path:
    """A folder of files, each a tree that branches, with numbers in no order."""
    rng = np.random.default_rng(4)
    folder.mkdir()
    for number in range(count):
        nodes = int(rng.integers(1, most))
        parents = [-1, *(max(0, row - int(rng.integers(1, 9))) for row in range(1, nodes))]
        places = np.zeros((nodes, 3))
        for row, parent in enumerate(parents[1:], 1):
            places[row] = places[parent] + rng.normal(0, 9, 3)
        places += rng.uniform(0, 500, 3)
        names = rng.permutation(nodes) + 1
        rows = [
            f"{names[row]} {row % 4} {x:.3f} {y:.3f} {z:.3f} 0.5 {names[parents[row]] if row else -1}"
            for row, (x, y, z) in enumerate(places)
        ]
        (folder / f"neuron {number}.swc").write_text("\n".join(rows) + "\n")
    return folder


def meshes(folder: Path, count: int = 30, ending: str = "ply") -> Path:
    """A folder of files of triangles, called by numbers that are ids."""
    rng = np.random.default_rng(5)
    folder.mkdir()
    for number in range(count):
        shape = trimesh.creation.icosphere(subdivisions=int(rng.integers(0, 3)), radius=20)
        shape.apply_translation(rng.uniform(0, 500, 3))
        shape.export(str(folder / f"{number * 7 + 10**12}.{ending}"))
    return folder


def geff(path: Path, count: int = 2000) -> Path:
    """A graph of tracks, with text, missing values, and ids in no order."""
    rng, ids = np.random.default_rng(6), np.random.default_rng(7).permutation(2 * count)[:count]
    root = zardine.open_group(str(path), mode="w", zarr_format=3)
    lineage = np.arange(count) % 40
    columns: dict[str, Any] = {
        **{name: rng.uniform(0, 900, 40)[lineage] + rng.normal(0, 20, count) for name in "xyz"},
        "lineage": lineage,
        "n": np.arange(count),
        "kind": np.array([f"kind {number % 5}" for number in range(count)], np.str_),
    }
    rows = max(1, count // 9)
    root.create_array("nodes/ids", data=ids.astype("u8"), chunks=(rows,))
    for name, values in columns.items():
        root.create_array(f"nodes/props/{name}/values", data=values, chunks=(rows,))
    root.create_array("nodes/props/n/missing", data=rng.uniform(0, 1, count) < 0.1, chunks=(rows,))
    starts = rng.integers(0, count, 2 * count)
    ends = np.stack([starts, (starts + 40 * rng.integers(0, 9, 2 * count)) % (count // 40 * 40)], axis=1)
    root.create_array("edges/ids", data=ids[ends].astype("u8"), chunks=(rows, 2))
    root.create_array("edges/props/w/values", data=rng.uniform(0, 1, 2 * count), chunks=(rows,))
    texts = np.array([f"edge {number % 3}" for number in range(2 * count)], np.str_)
    root.create_array("edges/props/t/values", data=texts, chunks=(rows,))
    axes = [{"name": name, "unit": "micrometer"} for name in "xyz"]
    root.attrs["geff"] = {"directed": True, "axes": axes, "track_node_props": {"lineage": "lineage"}}
    return path


def precomputed(path: Path, kind: str, count: int = 300, *, sharded: bool = False) -> Path:
    """A folder of neuroglancer with ``points``, ``related`` ones, ``boxes``, ``skeletons``, ``loops`` or ``meshes``."""
    shutil.copytree(_exported(kind, count, sharded), path)
    return path


@cache
def _exported(kind: str, count: int, sharded: bool) -> Path:
    """The same somewhere, made once."""
    path = Path(tempfile.mkdtemp(prefix="zardine-sources-")) / "in.precomputed"
    atexit.register(shutil.rmtree, path.parent, True)
    rng, made = np.random.default_rng(8), MemoryStore()
    ids, lengths = rng.permutation(10 * count)[:count], rng.integers(2, 40, count)
    options: dict[str, Any] = {"chunk_shape": 100, "object_attributes": {"size": np.arange(count)}}
    owners = np.repeat(ids, lengths)
    places = rng.uniform(0, 500, (len(owners), 3)).astype("f4")
    if kind in ("loops", "meshes", "skeletons"):  # each in a place of its own
        places = (rng.uniform(50, 450, (count, 3)).repeat(lengths, axis=0) + places / 10).astype("f4")
    columns = {"n": np.arange(len(owners), dtype="i4"), "pair": rng.normal(0, 1, (len(owners), 2)).astype("f4")}
    own, first = np.arange(len(owners)), np.repeat(np.cumsum(lengths) - lengths, lengths)
    if kind == "points":
        vectors.write_points(made, places, chunk_shape=100, vertex_attributes={"n": columns["n"]})
    elif kind == "related":
        groups = {"groups": [ids[:7], ids[3:90]], "group_attributes": {"relationship": ["a", "b"], "segment": [5, 2]}}
        points = places[:count]
        vectors.write_points(made, points, chunk_shape=100, object_ids=ids, vertex_attributes={"n": ids}, **groups)
    elif kind == "boxes":
        vectors.write_lines(made, places[: 2 * count].reshape(-1, 2, 3), object_ids=ids, **options)
    elif kind == "meshes":
        faces = np.stack([first, own, np.maximum(own - 1, first)], axis=1)
        vectors.write_mesh(made, places, faces, object_ids=owners, **options)
    elif kind == "loops":
        ends = np.cumsum(lengths) - 1
        edges = np.concatenate([np.stack([own, own - 1], 1)[own > first], np.stack([first[ends], ends], 1)[::3]])
        vectors.write_graph(made, places, edges, object_ids=owners, vertex_attributes=columns, **options)
    else:
        parents = np.where(own > first, own - 1 - rng.integers(0, 3, len(own)) % np.maximum(own - first, 1), -1)
        vectors.write_skeleton(made, places, parents, object_ids=owners, vertex_attributes=columns, **options)
    more: dict[str, Any] = {"annotation_type": "axis_aligned_bounding_box"} if kind == "boxes" else {}
    more |= {} if kind == "meshes" else {"sharded": sharded}
    with patch.object(entries, "sharding_for", lambda *_: Sharding(minishard_bits=3, shard_bits=1)):
        vectors.export_vectors(made, path, format="precomputed", **more)
    return path
