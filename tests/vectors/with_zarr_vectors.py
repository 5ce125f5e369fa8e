"""One store, read and checked by zarr-vectors 0.9.2 and by zardine: both must say the same."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import zarr_vectors
from zarr_vectors.core.arrays import read_link_attributes
from zarr_vectors.core.store import open_store
from zarr_vectors.types.graphs import read_graph
from zarr_vectors.types.meshes import read_mesh
from zarr_vectors.types.points import read_points
from zarr_vectors.types.polylines import read_polylines
from zarr_vectors.validate import validate

from vectors.geometry_samples import links, rows
from zardine import vectors

assert zarr_vectors.__version__ == "0.9.2"

BOX = np.array([-20.0] * 4), np.array([33.0] * 4)


def agree(path: str) -> None:
    """Compare every level, and what the two validators find: nothing."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert [str(each) for each in validate(path, level=5).errors] == []
        assert [str(each) for each in vectors.validate(path).errors] == []
        facts = vectors.describe_store(path)
        for level in facts["levels"]:
            _COMPARE[facts["geometry_types"][0]](path, level["level"])


def _points(path: str, level: int) -> None:
    ours = vectors.read_points(path, level=level)
    names = sorted(ours.attributes)
    theirs = read_points(path, level=level, attribute_names=names)
    found = theirs["vertex_attributes"]
    if len(ours) == 0:
        assert len(theirs["positions"]) == 0
        return
    assert theirs["positions"].dtype == ours.positions.dtype
    assert sorted(found) == names
    assert rows(theirs["positions"], *(_plain(found[name]) for name in names)) == rows(
        ours.positions, *(_plain(ours.attributes[name]) for name in names)
    )
    low, high = (corner[: ours.positions.shape[1]] for corner in BOX)
    if ours.object_ids is None and level == 0:
        box = read_points(path, bbox=(low, high), attribute_names=names)
        again = vectors.read_points(path, bbox=(low, high))
        assert rows(box["positions"]) == rows(again.positions)
        for name in names if len(again) else ():
            assert rows(_plain(box["vertex_attributes"][name])) == rows(_plain(again.attributes[name]))
    for number in np.unique([] if ours.object_ids is None else ours.object_ids)[:5].tolist():
        one = read_points(path, level=level, object_ids=[number])
        found_rows = rows(vectors.read_points(path, level=level, object_ids=[number]).positions)
        # the path of an object through a coarser level may come by a vertex twice
        assert (rows(one["positions"]) if level == 0 else sorted(set(rows(one["positions"])))) == found_rows
    for group in range(len(vectors.read_groups(path).members) if level == 0 else 0):
        part = read_points(path, group_ids=[group])
        assert rows(part["positions"]) == rows(vectors.read_points(path, group_ids=[group]).positions)


def _lines(path: str, level: int) -> None:
    ours = vectors.read_polylines(path, level=level)
    full = np.flatnonzero(np.diff(ours.starts))
    theirs = read_polylines(path, level=level, object_ids=ours.object_ids.tolist())
    assert theirs["object_ids"] == ours.object_ids[full].tolist()
    joined = [np.concatenate(parts) for parts in theirs["polylines"]]
    assert [each.tolist() for each in joined] == [ours[number].tolist() for number in full.tolist()]
    for name, values in ours.attributes.items() if level == 0 and len(full) else ():
        if values.dtype.kind in "iuf":
            assert np.array_equal(theirs["vertex_attributes"][name].reshape(values.shape), values, equal_nan=True)


def _graph(path: str, level: int) -> None:
    ours, theirs = vectors.read_graph(path, level=level), read_graph(path, level=level)
    assert rows(theirs["positions"]) == rows(ours.positions)
    if level == 0:
        assert links(theirs["positions"], np.asarray(theirs["edges"])) == links(ours.positions, ours.edges)
        _link_columns(path, ours.edge_attributes)


def _mesh(path: str, level: int) -> None:
    ours, theirs = vectors.read_mesh(path, level=level), read_mesh(path, level=level)
    assert rows(theirs["vertices"]) == rows(ours.positions)
    if level == 0:
        assert links(theirs["vertices"], np.asarray(theirs["faces"])) == links(ours.positions, ours.faces)
        _link_columns(path, ours.face_attributes)


def _link_columns(path: str, columns: Any) -> None:
    level = open_store(path)["0"]
    for name, values in columns.items():
        found = np.asarray(read_link_attributes(level, name, delta=0))
        assert np.array_equal(np.sort(found.reshape(-1)), np.sort(values.reshape(-1)), equal_nan=True)


def _plain(values: Any) -> Any:
    """Missing text as a word, so that rows can be sorted."""
    array = np.asarray(values)
    if array.dtype.kind not in "TOU":
        return array
    words = ["-" if each is None else str(each) for each in array.reshape(-1).tolist()]
    return np.array(words, object).reshape(array.shape)


_COMPARE = {
    "point_cloud": _points,
    "line": _lines,
    "polyline": _lines,
    "streamline": _lines,
    "graph": _graph,
    "skeleton": _graph,
    "mesh": _mesh,
}
