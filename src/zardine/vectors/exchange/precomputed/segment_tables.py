"""Skeletons, graphs, lines and meshes of a store, an object a value: read when they are asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from zardine.buffers import BytesLike, Ints
from zardine.errors import DataError
from zardine.stores.resolve import StoreLike
from zardine.vectors.exchange.precomputed import segments
from zardine.vectors.exchange.precomputed.annotations import Index
from zardine.vectors.exchange.precomputed.columns import as_vertex_attributes, of_segments
from zardine.vectors.exchange.precomputed.skeletons import (
    MESH_TYPE,
    SkeletonInfo,
    encode_mesh,
    encode_skeleton,
)
from zardine.vectors.exchange.precomputed.space import scale_of
from zardine.vectors.exchange.precomputed.tables import Contents, Table, Tell, as_bytes
from zardine.vectors.graph import read_graph
from zardine.vectors.inspecting import ObjectTable, describe_store, read_objects
from zardine.vectors.mesh import read_mesh
from zardine.vectors.points import read_points
from zardine.vectors.polylines import read_polylines
from zardine.vectors.results import triangles
from zardine.vectors.skeleton import read_skeleton

Array: TypeAlias = npt.NDArray[Any]
Piece: TypeAlias = tuple[Array, Array, Mapping[str, Array]]
"""Of one object: positions, edges or triangles as rows of these, attributes of vertices."""

PROPERTIES: Final = "segment_properties"
_NANOMETRES: Final = 1e9


def skeleton_contents(path: StoreLike, level: int, tell: Tell) -> Contents:
    """Return the objects of a level of skeletons, a graph or lines as skeletons. Raises :class:`DataError`."""
    facts, objects, ids = _objects(path, level)
    kind = facts["geometry_types"][0]
    attributes = as_vertex_attributes(_samples(path, level, objects), tell)
    scales = [_nanometres(axis) for axis in facts["axes"]]
    transform = np.hstack((np.diag(scales), np.zeros((3, 1)))).reshape(-1)
    properties = of_segments({name: each[ids] for name, each in objects.attributes.items()}, tell)
    info = SkeletonInfo(
        transform=tuple(transform.tolist()),
        vertex_attributes=attributes,
        segment_properties=PROPERTIES,
    )
    _tell_of_rounding(facts, level, tell)
    if kind == "graph":
        _tell_of_crossing(path, level, tell)

    def values(rows: Ints) -> Iterator[BytesLike]:
        for positions, edges, columns in _pieces(path, level, kind, wanted[rows], [each.id for each in attributes]):
            yield encode_skeleton(positions, edges, columns, info)

    wanted = objects.ids[ids]
    share = len(ids) / max(1, len(objects.ids))
    of_vertex = 20 + sum(np.dtype(each.data_type).itemsize * each.num_components for each in attributes)
    nbytes = int(facts["levels"][level]["vertex_count"] * of_vertex * share)
    table = Table(Index("."), wanted.astype(np.uint64), values, nbytes)

    def document(stored: Sequence[Table]) -> Mapping[str, Any]:
        return replace(info, sharding=stored[0].index.sharding).document()

    return Contents(document, (table,), _others(table, properties))


def mesh_contents(path: StoreLike, level: int, tell: Tell) -> Contents:
    """Return the objects of a level of meshes, in nanometres. Raises :class:`DataError`."""
    facts, objects, ids = _objects(path, level)
    scales = np.array([_nanometres(axis) for axis in facts["axes"]])
    properties = of_segments({name: each[ids] for name, each in objects.attributes.items()}, tell)
    if (scales != 1).any():
        tell(f"positions are written in nanometres, {scales.tolist()} times as large: the format has no other unit")
    _tell_of_rounding(facts, level, tell)

    def values(rows: Ints) -> Iterator[BytesLike]:
        for positions, faces, _ in _pieces(path, level, "mesh", wanted[rows], []):
            yield encode_mesh(positions.astype(np.float64) * scales, triangles(faces)[0])

    def manifests(rows: Ints) -> Iterator[BytesLike]:
        for number in wanted[rows].tolist():
            yield as_bytes({"fragments": [f"{number}{_FRAGMENT}"]})

    wanted = objects.ids[ids]
    numbers = wanted.astype(np.uint64)
    nbytes = int(facts["levels"][level]["vertex_count"] * 36)
    tables = (
        Table(Index("."), numbers, values, nbytes, ending=_FRAGMENT),
        Table(Index("."), numbers, manifests, 40 * len(ids), ending=":0"),
    )

    def document(stored: Sequence[Table]) -> Mapping[str, Any]:
        return {"@type": MESH_TYPE, "segment_properties": PROPERTIES}

    return Contents(document, tables, _others(tables[0], properties), may_shard=False)


_FRAGMENT: Final = ":0:0"
"""The ending of the name of the only part of a mesh."""


def _objects(path: StoreLike, level: int) -> tuple[dict[str, Any], ObjectTable, Ints]:
    """What a store says of itself, its objects, and which of them there are, by their ids."""
    facts = describe_store(path)
    objects = read_objects(path, level=level)
    rank = len(facts["axes"])
    if rank != 3:
        raise DataError(f"the store has {rank} axes; positions of this format have 3")
    if len(objects.ids) and int(objects.ids.min()) < 0:
        raise DataError(f"ids of segments are numbers from 0 on; there is an object {int(objects.ids.min())}")
    there = np.flatnonzero(objects.fragment_counts > 0)
    numbered = [each["level"] for each in facts["levels"]]
    facts["levels"] = dict(zip(numbered, facts["levels"], strict=True))
    return facts, objects, there[np.argsort(objects.ids[there])]


def _samples(path: StoreLike, level: int, objects: ObjectTable) -> dict[str, Array]:
    """Attributes of vertices of one object; those of integers of 64 bits of all, to see how large they are."""
    there = objects.ids[objects.fragment_counts > 0]
    found: dict[str, Array] = dict(read_points(path, level=level, object_ids=there[:1]).attributes)
    wide = [name for name, values in found.items() if values.dtype.kind in "iu" and values.dtype.itemsize == 8]
    return {**found, **(read_points(path, level=level, attributes=wide).attributes if wide else {})}


def _pieces(path: StoreLike, level: int, kind: str, ids: Ints, names: Sequence[str]) -> Iterator[Piece]:
    """The objects of ``ids``, in that order."""
    options: Any = {"level": level, "object_ids": ids.tolist(), "attributes": list(names) or None}
    if kind in ("line", "polyline", "streamline"):
        lines = read_polylines(path, **options)
        place = {number: row for row, number in enumerate(lines.object_ids.tolist())}
        for number in ids.tolist():
            start, stop = (int(each) for each in lines.starts[place[number] : place[number] + 2])
            steps = np.arange(max(0, stop - start - 1))
            columns = {name: values[start:stop] for name, values in lines.attributes.items()}
            yield lines.positions[start:stop], np.stack((steps, steps + 1), axis=1), columns
        return
    found: Any
    if kind == "mesh":
        found = read_mesh(path, **options, face_attributes=None)
        links = found.faces
    else:
        found = (
            read_skeleton(path, **options) if kind == "skeleton" else read_graph(path, **options, edge_attributes=None)
        )
        links = found.edges
    owners = found.object_ids if found.object_ids is not None else np.zeros(len(found.positions), np.int64)
    order = np.argsort(owners, kind="stable")
    number = np.empty(len(order), np.int64)
    number[order] = np.arange(len(order))
    links = number[links]
    by_owner = np.argsort(links[:, 0], kind="stable") if len(links) else np.zeros(0, np.int64)
    links = links[by_owner]
    sorted_owners = owners[order]
    for each in ids.tolist():
        start, stop = np.searchsorted(sorted_owners, [each, each + 1]).tolist()
        first, last = np.searchsorted(links[:, 0], [start, stop]).tolist()
        own = links[first:last] - start
        own = own[((own >= 0) & (own < stop - start)).all(axis=1)]
        rows = order[start:stop]
        yield found.positions[rows], own, {name: values[rows] for name, values in found.attributes.items()}


def _tell_of_rounding(facts: Mapping[str, Any], level: int, tell: Tell) -> None:
    if facts["levels"][level]["dtype"] not in ("float32", "<f4"):
        tell("positions are written as float32, which is all that this format has")


def _tell_of_crossing(path: StoreLike, level: int, tell: Tell) -> None:
    found = read_graph(path, level=level, attributes=None, edge_attributes=None)
    if found.object_ids is not None:
        crossing = int((found.object_ids[found.edges[:, 0]] != found.object_ids[found.edges[:, 1]]).sum())
        if crossing:
            tell(f"{crossing} edges between different objects cannot be kept")


def _nanometres(axis: Mapping[str, Any]) -> float:
    scale, unit = scale_of(axis)
    return float(f"{scale * _NANOMETRES:.12g}") if unit == "m" else 1.0


def _others(table: Table, properties: Mapping[str, Array]) -> Mapping[str, Mapping[str, Any]]:
    return {f"{PROPERTIES}/info": segments.document(table.ids, properties)}


__all__ = ["PROPERTIES", "mesh_contents", "skeleton_contents"]
