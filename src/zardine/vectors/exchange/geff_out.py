"""Graphs, skeletons and lines as graphs of GEFF: what is to be known of all nodes and edges, and rows of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from zardine.buffers import Ints
from zardine.nodes.array import Array
from zardine.nodes.group import Group
from zardine.stores.resolve import StoreLike
from zardine.vectors.exchange.distinct import Distinct
from zardine.vectors.exchange.file_parts import Step
from zardine.vectors.exchange.geff import (
    CHUNK,
    KEPT,
    KEY,
    NODE_ID,
    OF_AXES,
    OF_PROPS,
    PROPS,
    VERSION,
    are_ids,
)
from zardine.vectors.exchange.level_parts import OBJECT_ID, SeenColumns, numbers_of, own
from zardine.vectors.exchange.losses import LINES, warn_crs
from zardine.vectors.format.ragged import row_numbers
from zardine.vectors.outside import numbers, warn, warn_names
from zardine.vectors.reading.kept import kind_of
from zardine.vectors.results import Graph, Mesh, Polylines, Skeleton
from zardine.vectors.storing.store import VectorStore

_TYPES: Final = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64")
KINDS: Final = ("graph", "skeleton", *LINES)
"""The geometries that it is for."""
_SHARD: Final = 4
"""Chunks of a shard."""

Columns = dict[str, npt.NDArray[Any]]


@dataclass(frozen=True, slots=True, eq=False)
class _Nodes:
    """Some nodes, and the edges that are filed with them; of these some lead to nodes of others."""

    positions: npt.NDArray[Any]
    columns: Mapping[str, npt.NDArray[Any]]
    numbers: Ints
    """Of each among all nodes."""
    own: int
    """How many of them are these nodes. Others come after them."""
    edges: Ints
    """``(E, 2)``: rows of these."""
    of_edges: Mapping[str, npt.NDArray[Any]]
    owners: Ints | None


class _Look:
    """What is known of the values of a column: how long text is, whether some is missing; whether they can be ids."""

    def __init__(self, name: str, like: npt.NDArray[Any]) -> None:
        self.like = like
        self.longest, self.some_are_missing = 0, False
        self.are_ids = True

    def look(self, values: npt.NDArray[Any]) -> None:
        """Look at some more."""
        self.are_ids = self.are_ids and are_ids(values)
        if values.dtype.kind not in "iufb":
            for each in values.reshape(-1).tolist():
                self.some_are_missing |= each is None
                self.longest = max(self.longest, 0 if each is None else len(str(each)))


@dataclass(frozen=True, slots=True)
class _Column:
    """A property: its type, how many values a row has, and of text how long it is, and whether some is missing."""

    dtype: str
    row_shape: tuple[int, ...]
    is_text: bool
    some_are_missing: bool

    @classmethod
    def of(cls, look: _Look) -> _Column:
        like = look.like if look.like.dtype.name in _TYPES else look.like.astype(np.float32)
        if look.like.dtype.kind not in "iufb":  # the format has no other text
            return cls(f"U{max(1, look.longest)}", (), True, look.some_are_missing)
        return cls(like.dtype.name, tuple(like.shape[1:]), False, False)

    def arrays(self, values: npt.NDArray[Any]) -> dict[str, npt.NDArray[Any]]:
        """Return what arrays have of some values."""
        if not self.is_text:
            return {"values": values}
        texts = values.tolist()
        found = {"values": np.array(["" if each is None else str(each) for each in texts], np.str_)}
        if self.some_are_missing:
            found["missing"] = np.array([each is None for each in texts], np.bool_)
        return found

    def about(self, name: str) -> dict[str, Any]:
        """Return what the document says of it."""
        return {"identifier": name, "dtype": "str" if self.is_text else self.dtype, "varlength": False}


@dataclass(frozen=True, slots=True)
class GeffLayout:
    """What is to be known of all nodes and edges of a level to write some of them."""

    nodes: tuple[int, ...]
    """The first node of each part, and how many there are in all."""
    edges: tuple[int, ...]
    are_named: bool
    """Whether nodes are called as their attribute says; else they are numbered."""
    of_nodes: dict[str, _Column]
    of_edges: dict[str, _Column]
    document: dict[str, Any]

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON."""
        return asdict(self)

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> GeffLayout:
        """Return what :meth:`to_json` wrote."""
        of_nodes, of_edges = (
            {name: _Column(**{**each, "row_shape": tuple(each["row_shape"])}) for name, each in table.items()}
            for table in (told["of_nodes"], told["of_edges"])
        )
        numbers = tuple(told["nodes"]), tuple(told["edges"])
        return cls(*numbers, told["are_named"], of_nodes, of_edges, told["document"])

    def arrays(self) -> dict[str, tuple[int, np.dtype[Any], tuple[int, ...]]]:
        """Return how many rows each array has, of which type and shape, by its path."""
        found: dict[str, tuple[int, np.dtype[Any], tuple[int, ...]]] = {
            "nodes/ids": (self.nodes[-1], np.dtype(np.uint64), ()),
            "edges/ids": (self.edges[-1], np.dtype(np.uint64), (2,)),
        }
        for kind, count, table in (("nodes", self.nodes[-1], self.of_nodes), ("edges", self.edges[-1], self.of_edges)):
            for name, each in table.items():
                found[f"{kind}/props/{name}/values"] = count, np.dtype(each.dtype), each.row_shape
                if each.some_are_missing:
                    found[f"{kind}/props/{name}/missing"] = count, np.dtype(np.bool_), ()
        return found

    def create(self, group: Group) -> None:
        """Create all arrays."""
        for kind in ("nodes", "edges"):
            group.require_group(f"{kind}/props")
        for path, (count, dtype, row) in self.arrays().items():
            chunks = (max(1, min(CHUNK, count)), *(max(1, length) for length in row))
            shards = (rows_of_shard(count), *chunks[1:]) if count > CHUNK else None
            group.create_array(path, shape=(count, *row), dtype=dtype, chunks=chunks, shards=shards)


def rows_of_shard(count: int) -> int:
    """Return how many rows a shard has, or a chunk that is none, of an array of ``count``."""
    return min(_SHARD, -(-count // CHUNK)) * CHUNK if count > CHUNK else max(1, count)


class GeffValues:
    """A level as nodes and edges, in parts that are read by themselves."""

    def __init__(self, path: StoreLike, level: int, parts: Callable[[int], Iterator[Any]], count: int) -> None:
        """``parts`` gives what is in a part of a number, of ``count``, some vertices at a time."""
        self._path, self._level, self._parts, self._count = path, level, parts, count
        self._root = VectorStore.open(path).root
        self._kind = kind_of(self._root)
        self._axes = [str(axis["name"]) for axis in self._root.axes]

    def _found(self, part: int, before: int) -> Iterator[_Nodes]:
        for each in self._parts(part):
            found = (_of_lines if self._kind in LINES else _of_graph)(each, before)
            yield found
            before += found.own

    def look(self, name: str, step: Step) -> GeffLayout:
        """Go through all parts; warns of what ``name`` cannot hold."""
        of_nodes, of_edges = SeenColumns(_Look), SeenColumns(_Look)
        distinct = Distinct(VectorStore.open(self._path).level(self._level).document.vertex_count)
        rank = len(self._axes)
        low, high, dtype = np.full(rank, np.inf), np.full(rank, -np.inf), np.dtype(np.float32)
        nodes, edges = [0], [0]
        are_tracked = False
        for number in range(self._count):
            nodes.append(nodes[-1])
            edges.append(edges[-1])
            for found in self._found(number, nodes[-1]):
                mine = _own(found)
                of_nodes.look(mine)
                of_edges.look(found.of_edges)
                if NODE_ID in mine and are_ids(mine[NODE_ID]):
                    distinct.add(mine[NODE_ID])
                nodes[-1], edges[-1] = nodes[-1] + found.own, edges[-1] + len(found.edges)
                low = np.minimum(low, found.positions[: found.own].min(axis=0, initial=np.inf))
                high = np.maximum(high, found.positions[: found.own].max(axis=0, initial=-np.inf))
                owners = found.owners
                are_tracked = are_tracked or (owners is not None and bool((owners[: found.own] != 0).any()))
                dtype = found.positions.dtype
            step((number + 1) / self._count)
        looks = of_nodes.found(name)
        are_named = NODE_ID in looks and looks[NODE_ID].are_ids and distinct.are()
        if looks.pop(NODE_ID, None) is not None and not are_named:
            warn_names([NODE_ID], name, "ids of nodes are called so, whole numbers from 0 on, each there once")
        warn_names([each for each in self._axes if looks.pop(each, None) is not None], name, "axes are called so")
        crs = self._root.block.get("crs") or {}
        about = crs.get(KEY)
        about = about if isinstance(about, Mapping) else {}
        if set(crs) - {KEY}:
            warn_crs(name, f"of {', '.join(map(repr, sorted(crs)))} the format has a place for {KEY!r} alone")
        tracks = dict(about.get("track_node_props") or {})
        if not (tracks and all(each in looks for each in tracks.values())):
            tracks = {}
            if are_tracked and OBJECT_ID not in looks:
                looks[OBJECT_ID] = _Look(OBJECT_ID, np.zeros(0, np.int64))
                tracks = {"tracklet": OBJECT_ID} if self._kind in LINES else {}
        bounds = np.asarray(self._root.block["bounds"], np.float64).astype(dtype)
        if self._level == 0 and nodes[-1] and not np.array_equal(bounds, np.stack([low, high]).astype(dtype)):
            warn(
                name, f"the bounds of the store, {bounds.tolist()}, cannot be kept: min and max are those of positions"
            )
        axes = [
            {
                **{key: axis[key] for key in ("name", "type", "unit") if axis.get(key)},
                **_scaled(axis, about),
                **({"min": float(low[number]), "max": float(high[number])} if nodes[-1] else {}),
            }
            for number, axis in enumerate(self._root.axes)
        ]
        for each in self._axes:
            looks[each] = _Look(each, np.zeros(0, dtype))
        kept = {each: _Column.of(look) for each, look in _storable(looks, name).items()}
        kept_edges = {each: _Column.of(look) for each, look in _storable(of_edges.found(name), name).items()}
        props = {
            PROPS[kind]: {
                each: column.about(each) | _described(each, about.get(PROPS[kind])) for each, column in table.items()
            }
            for kind, table in (("node", kept), ("edge", kept_edges))
        }
        directed = bool(about.get("directed", self._kind != "graph"))
        facts = {"geff_version": VERSION, "directed": directed, "axes": axes, **props}
        more = {key: about[key] for key in KEPT if key in about and key not in ("directed", "track_node_props")}
        document = {**facts, **more, **({"track_node_props": tracks} if tracks else {})}
        return GeffLayout(tuple(nodes), tuple(edges), are_named, kept, kept_edges, document)

    def write(self, group: Group, layout: GeffLayout, job: int, step: Step) -> tuple[int, int]:
        """Write the shards that are those of a job, of as many as there are parts; gives how many nodes and edges.

        It reads the parts that have some of their rows.
        """
        shares = {kind: self._share(getattr(layout, kind)[-1], job) for kind in ("nodes", "edges")}
        writers = {path: _Rows(group[path], *shares[path.partition("/")[0]]) for path in layout.arrays()}
        wanted = [
            part
            for part in range(self._count)
            if any(_meet(getattr(layout, kind)[part : part + 2], share) for kind, share in shares.items())
        ]
        for done, part in enumerate(wanted, 1):
            at = {"nodes": layout.nodes[part], "edges": layout.edges[part]}
            for found in self._found(part, at["nodes"]):
                for kind, table in (("nodes", self._of_nodes(found, layout)), ("edges", _of_edges(found, layout))):
                    first, end = (each - at[kind] for each in shares[kind])
                    rows = slice(max(0, first), max(0, end))
                    for path, values in table.items():
                        writers[path].add(values[rows])
                    at[kind] += len(table[f"{kind}/ids"])
            step(done / len(wanted))
        for each in writers.values():
            each.end()
        return shares["nodes"][1] - shares["nodes"][0], shares["edges"][1] - shares["edges"][0]

    def _share(self, count: int, job: int) -> tuple[int, int]:
        """The rows that a job writes, of ``count``: whole shards."""
        shard = rows_of_shard(count)
        shards = -(-count // shard)
        first, end = (each * shards // self._count * shard for each in (job, job + 1))
        return min(count, first), min(count, end)

    def _of_nodes(self, found: _Nodes, layout: GeffLayout) -> Columns:
        mine = _own(found)
        mine |= {each: found.positions[: found.own, number] for number, each in enumerate(self._axes)}
        if found.owners is not None:
            mine.setdefault(OBJECT_ID, found.owners[: found.own])
        called = _called(found, layout)[: found.own]
        return {"nodes/ids": called, **_arrays("nodes", layout.of_nodes, mine)}


def _scaled(axis: Mapping[str, Any], about: Mapping[str, Any]) -> dict[str, Any]:
    """What the graph that the store was made of said of the scale of an axis, if that has the same unit still."""
    told = about.get("axes")
    for each in told if isinstance(told, list | tuple) else ():
        if isinstance(each, Mapping) and (each.get("name"), each.get("unit")) == (axis["name"], axis.get("unit")):
            return {key: each[key] for key in OF_AXES if each.get(key) is not None}
    return {}


def _described(name: str, told: Any) -> dict[str, Any]:
    """What that graph said of a property, beside its type."""
    about = told.get(name) if isinstance(told, Mapping) else None
    return {key: about[key] for key in OF_PROPS if key in about} if isinstance(about, Mapping) else {}


def _called(found: _Nodes, layout: GeffLayout) -> npt.NDArray[np.uint64]:
    named: npt.NDArray[Any] = found.columns[NODE_ID] if layout.are_named else found.numbers
    return named.astype(np.uint64)


def _of_edges(found: _Nodes, layout: GeffLayout) -> Columns:
    ends = _called(found, layout)[found.edges].reshape(-1, 2)
    return {"edges/ids": ends, **_arrays("edges", layout.of_edges, found.of_edges)}


def _arrays(kind: str, table: Mapping[str, _Column], columns: Mapping[str, npt.NDArray[Any]]) -> Columns:
    return {
        f"{kind}/props/{name}/{each}": values
        for name, column in table.items()
        for each, values in column.arrays(columns[name]).items()
    }


def _meet(one: Sequence[int], other: Sequence[int]) -> bool:
    return max(one[0], other[0]) < min(one[1], other[1])


def _own(found: _Nodes) -> Columns:
    return {name: each[: found.own] for name, each in found.columns.items()}


def _of_graph(part: Graph | Skeleton, before: int) -> _Nodes:
    assert not isinstance(part, Mesh)
    of_edges = part.edge_attributes if isinstance(part, Graph) else {}
    return _Nodes(part.positions, part.attributes, numbers_of(part), own(part), part.edges, of_edges, part.object_ids)


def _of_lines(part: Polylines, before: int) -> _Nodes:
    lengths, count = np.diff(part.starts), len(part.positions)
    ends = np.ones(count, np.bool_)
    ends[part.starts[1:][lengths > 0] - 1] = False
    first = np.flatnonzero(ends)
    owners = part.object_ids[row_numbers(lengths)]
    edges = np.stack((first, first + 1), axis=1)
    return _Nodes(part.positions, part.attributes, np.arange(before, before + count), count, edges, {}, owners)


def _storable(looks: Mapping[str, _Look], name: str) -> dict[str, _Look]:
    """Columns of types that the format has; warns of others."""
    texts = {each for each, look in looks.items() if look.like.dtype.kind not in "iufb" and look.like.ndim == 1}
    found = numbers({each: look.like for each, look in looks.items() if each not in texts}, name)
    return {each: look for each, look in looks.items() if each in texts or each in found}


class _Rows:
    """Some rows of an array, which is filled from the first one to the last, whole shards at a time."""

    def __init__(self, array: Any, start: int, end: int) -> None:
        self._array: Array = array.with_config({"write_empty_chunks": True})  # so that one that is missing was lost
        self._shard = rows_of_shard(array.shape[0])
        self._waiting: list[npt.NDArray[Any]] = []
        self._at, self._waits = start, 0

    def add(self, values: npt.NDArray[Any]) -> None:
        """Add the next rows."""
        self._waiting.append(values.astype(self._array.dtype))
        self._waits += len(values)
        if self._waits >= self._shard:
            rows = np.concatenate(self._waiting)
            full = len(rows) // self._shard * self._shard
            self._store(rows[:full])
            self._waiting, self._waits = [rows[full:].copy()], len(rows) - full

    def end(self) -> None:
        """Store what waits."""
        if self._waits:
            self._store(np.concatenate(self._waiting))
        self._waiting, self._waits = [], 0

    def _store(self, rows: npt.NDArray[Any]) -> None:
        self._array[self._at : self._at + len(rows)] = rows
        self._at += len(rows)


__all__ = ["KINDS", "GeffLayout", "GeffValues"]
