"""Skeletons, graphs, lines and meshes of a store, an object a value: read when they are asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from zardine.buffers import BytesLike, Ints
from zardine.errors import DataError
from zardine.stores.resolve import StoreLike
from zardine.vectors.content.polygons import triangles
from zardine.vectors.exchange.file_parts import Step
from zardine.vectors.exchange.level_parts import LevelParts, faces_in_columns
from zardine.vectors.exchange.losses import columns_in_order
from zardine.vectors.exchange.precomputed import segments
from zardine.vectors.exchange.precomputed.annotations import Index
from zardine.vectors.exchange.precomputed.columns import ValuesLook, as_vertex_attributes, of_segments
from zardine.vectors.exchange.precomputed.entries import Entries, Layout
from zardine.vectors.exchange.precomputed.skeletons import (
    MESH_TYPE,
    SkeletonInfo,
    VertexAttribute,
    encode_mesh,
    encode_skeleton,
)
from zardine.vectors.exchange.precomputed.space import scale_of
from zardine.vectors.exchange.precomputed.tables import Contents, Table, Tell, as_bytes, silent
from zardine.vectors.graph import read_graph
from zardine.vectors.inspecting import ObjectTable, describe_store, read_objects
from zardine.vectors.mesh import read_mesh
from zardine.vectors.points import read_points
from zardine.vectors.polylines import read_polylines
from zardine.vectors.reading.query import QueryOptions
from zardine.vectors.results import Graph
from zardine.vectors.skeleton import read_skeleton

Array: TypeAlias = npt.NDArray[Any]
Piece: TypeAlias = tuple[Array, Array, Mapping[str, Array]]
"""Of one object: positions, edges or triangles as rows of these, attributes of vertices."""

PROPERTIES: Final = "segment_properties"
_NANOMETRES: Final = 1e9


@dataclass(frozen=True, slots=True)
class SegmentLayout:
    """What is to be known of all objects of a level to write some of them."""

    attributes: tuple[VertexAttribute, ...]
    tables: tuple[Layout, ...]

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON."""
        attributes = [[each.id, each.data_type, each.num_components] for each in self.attributes]
        return {"attributes": attributes, "tables": [each.to_json() for each in self.tables]}

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> SegmentLayout:
        """Return what :meth:`to_json` wrote."""
        attributes = tuple(VertexAttribute(*each) for each in told["attributes"])
        return cls(attributes, tuple(map(Layout.from_json, told["tables"])))


class SegmentValues:
    """The objects of a level of skeletons, a graph, lines or meshes."""

    def __init__(self, path: StoreLike, level: int) -> None:
        """Raise :class:`DataError` for other than three axes, and for ids below 0."""
        self._path, self._level = path, level
        self._facts, self._objects, there = _objects(path, level)
        self._kind = self._facts["geometry_types"][0]
        self._there = there
        self.ids = self._objects.ids[there]
        """Those that have vertices, ascending."""
        self._order = columns_in_order(self._facts["axes"])
        """The columns that are x, y and z, which the format means; ``None``: as they are stored."""
        axes = self._facts["axes"] if self._order is None else [self._facts["axes"][each] for each in self._order]
        self._scales = np.array([_nanometres(axis) for axis in axes])

    def part(self, chosen: QueryOptions) -> Ints:
        """Return which of the objects that are asked for there are."""
        asked = chosen.get("object_ids")
        if asked is None:
            return self.ids
        found: Ints = np.intersect1d(np.array(list(asked), np.int64), self.ids)
        return found

    def look(self, pieces: Sequence[QueryOptions], step: Step, tell: Tell) -> SegmentLayout:
        """Go through what has to be seen of all pieces; tells of what cannot be kept."""
        attributes: tuple[VertexAttribute, ...] = ()
        if self._kind == "mesh":
            if (self._scales != 1).any():
                told = f"positions are written in nanometres, {self._scales.tolist()} times as large"
                tell(f"{told}: the format has no other unit")
        else:
            attributes = as_vertex_attributes(self._looks(pieces, step), tell)
        unnamed = [str(axis.get("name")) for axis in self._facts["axes"] if scale_of(axis)[1] != "m"]
        if unnamed:
            told = f"axes without a unit of length, {', '.join(unnamed)}, will be read as nanometres"
            tell(f"{told}, which the format means")
        of_segments(self._of_objects, tell)
        if self._facts["levels"][self._level]["dtype"] not in ("float32", "<f4"):
            tell("positions are written as float32, which is all that this format has")
        if self._kind == "graph":
            self._tell_of_crossing(step, tell)
        count = len(self.ids)
        vertices = int(self._facts["levels"][self._level]["vertex_count"] * count / max(1, len(self._objects.ids)))
        if self._kind == "mesh":
            tables = [Layout(Index("."), count, 36 * vertices, ending=_FRAGMENT)]
            tables.append(Layout(Index("."), count, 40 * count, ending=":0"))
        else:
            widths = [np.dtype(each.data_type).itemsize * each.num_components for each in attributes]
            tables = [Layout(Index("."), count, vertices * (20 + sum(widths)))]
        return SegmentLayout(attributes, tuple(tables))

    def entries(self, part: Ints, number: int, layout: SegmentLayout) -> Iterator[tuple[int, Entries]]:
        """Yield what tables get of some objects."""
        keys = part.astype(np.uint64)
        for table in range(len(layout.tables)):
            yield table, Entries(keys, keys, list(self.values(part, layout, table)))

    def values(self, ids: Ints, layout: SegmentLayout, table: int = 0) -> Iterator[bytes]:
        """Yield the values of some objects."""
        if table:
            yield from (as_bytes({"fragments": [f"{number}{_FRAGMENT}"]}) for number in ids.tolist())
            return
        names = [each.id for each in layout.attributes]
        info = self._info(layout)
        for positions, links, columns in _pieces(self._path, self._level, self._kind, ids, names):
            if self._order is not None:
                positions = positions[:, self._order]
            if self._kind == "mesh":
                faces = faces_in_columns(triangles(links, positions)[0], self._order)
                yield encode_mesh(positions.astype(np.float64) * self._scales, faces)
            else:
                yield encode_skeleton(positions, links, columns, info)

    def _info(self, layout: SegmentLayout) -> SkeletonInfo:
        transform = np.hstack((np.diag(self._scales), np.zeros((3, 1)))).reshape(-1)
        return SkeletonInfo(
            transform=tuple(transform.tolist()),
            vertex_attributes=layout.attributes,
            segment_properties=PROPERTIES,
            sharding=layout.tables[0].index.sharding,
        )

    def documents(self, layout: SegmentLayout) -> dict[str, dict[str, Any]]:
        """Return all documents by their names, that of the folder last."""
        properties = of_segments(self._of_objects, silent)
        own = {"@type": MESH_TYPE, "segment_properties": PROPERTIES}
        info = own if self._kind == "mesh" else self._info(layout).document()
        return {f"{PROPERTIES}/info": segments.document(self.ids.astype(np.uint64), properties), "info": info}

    @property
    def _of_objects(self) -> dict[str, Array]:
        return {name: each[self._there] for name, each in self._objects.attributes.items()}

    def _looks(self, pieces: Sequence[QueryOptions], step: Step) -> dict[str, ValuesLook]:
        """What attributes of vertices are like; of integers of 64 bits how large they are, for which all are read."""
        options: Any = {"level": self._level, "object_ids": self.ids[:1]}
        looks = {name: ValuesLook(each) for name, each in read_points(self._path, **options).attributes.items()}
        wide = [name for name, each in looks.items() if each.like.dtype.kind in "iu" and each.like.dtype.itemsize == 8]
        for number, piece in enumerate(pieces if wide else ()):
            options = {"level": self._level, "object_ids": self.part(piece), "attributes": wide}
            for name, each in read_points(self._path, **options).attributes.items():
                looks[name].look(each)
            step((number + 1) / len(pieces))
        return looks

    def _tell_of_crossing(self, step: Step, tell: Tell) -> None:
        crossing = 0
        for part in LevelParts[Graph](self._path, self._level, step, ways=1).through(None):
            if part.object_ids is not None:
                owners = part.object_ids[part.edges]
                crossing += int((owners[:, 0] != owners[:, 1]).sum())
        if crossing:
            tell(f"{crossing} edges between different objects cannot be kept")


def segment_contents(path: StoreLike, level: int, tell: Tell) -> Contents:
    """Return the objects of a level, each of which is read when it is asked for. Raises as :class:`SegmentValues`."""
    values = SegmentValues(path, level)
    layout = values.look([{}], lambda share: None, tell)
    numbers = values.ids.astype(np.uint64)
    documents = values.documents(layout)
    info = documents.pop("info")

    def table(number: int, about: Layout) -> Table:
        def of_rows(rows: Ints) -> Iterator[BytesLike]:
            return values.values(values.ids[rows], layout, number)

        return Table(about.index, numbers, of_rows, about.nbytes, ending=about.ending)

    return Contents(lambda tables: info, tuple(table(*each) for each in enumerate(layout.tables)), documents)


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


def _nanometres(axis: Mapping[str, Any]) -> float:
    scale, unit = scale_of(axis)
    return float(f"{scale * _NANOMETRES:.12g}") if unit == "m" else 1.0


__all__ = ["PROPERTIES", "SegmentLayout", "SegmentValues", "segment_contents"]
