"""Graphs, skeletons and lines as graphs of GEFF: nodes and edges some rows at a time, the document last."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from zardine.api.open import open_group
from zardine.buffers import Ints
from zardine.errors import NodeExistsError
from zardine.nodes.array import Array
from zardine.nodes.group import Group
from zardine.stores.resolve import StoreLike
from zardine.tools.progress import Progress, Shares
from zardine.vectors.exchange.distinct import Distinct
from zardine.vectors.exchange.geff import CHUNK, KEPT, KEY, NODE_ID, VERSION, are_ids
from zardine.vectors.exchange.level_parts import OBJECT_ID, LevelParts, SeenColumns, numbers_of, own
from zardine.vectors.exchange.losses import LINES, check_store, numbers, warn_kind, warn_names
from zardine.vectors.format.ragged import row_numbers
from zardine.vectors.results import Graph, Mesh, Polylines, Skeleton
from zardine.vectors.storing.store import VectorStore

_TYPES: Final = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64")
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


def geff_out(
    path: StoreLike,
    target: StoreLike,
    level: int = 0,
    *,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> None:
    """Write a graph, skeletons or lines as nodes and edges; what it is comes last. ``progress`` counts thousandths.

    Nodes are called as their attribute ``node_id`` says, where that is a whole number of each; edges of skeletons go
    from child to parent, those of lines along them, and the object of each node is its tracklet, ``object_id``.
    Attributes of lines are left out. Raises :class:`NodeExistsError` where something is stored, without ``overwrite``.
    """
    kinds = ("graph", "skeleton", *LINES)
    name = str(target)
    kind = check_store(path, name, level, kinds, ("vertex_attributes", "link_attributes"))
    warn_kind(kind, "graph", name)
    root = VectorStore.open(path).root
    parts: Any = LevelParts[Any](path, level, Shares(progress, 1).part())
    make: Callable[[Any, int], _Nodes] = _of_lines if kind in LINES else _of_graph
    of_nodes, of_edges, distinct = SeenColumns(_Look), SeenColumns(_Look), Distinct(parts.count)
    low, high = np.full(parts.rank, np.inf), np.full(parts.rank, -np.inf)
    nodes = edges = 0
    are_tracked = False
    for part in parts:
        found = make(part, nodes)
        mine = _own(found)
        of_nodes.look(mine)
        of_edges.look(found.of_edges)
        if NODE_ID in mine and are_ids(mine[NODE_ID]):
            distinct.add(mine[NODE_ID])
        nodes, edges = nodes + found.own, edges + len(found.edges)
        low = np.minimum(low, found.positions[: found.own].min(axis=0, initial=np.inf))
        high = np.maximum(high, found.positions[: found.own].max(axis=0, initial=-np.inf))
        are_tracked = are_tracked or (found.owners is not None and bool((found.owners[: found.own] != 0).any()))
        dtype = found.positions.dtype
    looks = of_nodes.found(name)
    are_named = NODE_ID in looks and looks[NODE_ID].are_ids and distinct.are()
    if looks.pop(NODE_ID, None) is not None and not are_named:
        warn_names([NODE_ID], name, "ids of nodes are called so, whole numbers from 0 on, each there once")
    axis_names = [str(axis["name"]) for axis in root.axes]
    warn_names([each for each in axis_names if looks.pop(each, None) is not None], name, "axes are called so")
    about = (root.block.get("crs") or {}).get(KEY)
    about = about if isinstance(about, Mapping) else {}
    tracks = dict(about.get("track_node_props") or {})
    if not (tracks and all(each in looks for each in tracks.values())):
        tracks = {}
        if are_tracked and OBJECT_ID not in looks:
            looks[OBJECT_ID] = _Look(OBJECT_ID, np.zeros(0, np.int64))
            tracks = {"tracklet": OBJECT_ID} if kind in LINES else {}
    axes = [
        {
            **{key: axis[key] for key in ("name", "type", "unit") if axis.get(key)},
            **({"min": float(low[number]), "max": float(high[number])} if nodes else {}),
        }
        for number, axis in enumerate(root.axes)
    ]
    for each in axis_names:
        looks[each] = _Look(each, np.zeros(0, dtype))
    kept, kept_edges = _storable(looks, name), _storable(of_edges.found(name), name)
    group = _new_group(target, overwrite, name)
    ids = _Rows(group, "nodes/ids", nodes, np.zeros(0, np.uint64))
    ends = _Rows(group, "edges/ids", edges, np.zeros((0, 2), np.uint64))
    properties = {
        place: {each: _Property(group, f"{place}s/props/{each}", count, look) for each, look in table.items()}
        for place, count, table in (("node", nodes, kept), ("edge", edges, kept_edges))
    }
    nodes = 0
    for part in parts:
        found = make(part, nodes)
        mine = _own(found)
        mine |= {each: found.positions[: found.own, number] for number, each in enumerate(axis_names)}
        if found.owners is not None:
            mine.setdefault(OBJECT_ID, found.owners[: found.own])
        called = (found.columns[NODE_ID] if are_named else found.numbers).astype(np.uint64)
        nodes += found.own
        ids.add(called[: found.own])
        ends.add(called[found.edges].reshape(-1, 2))
        for place, columns in (("node", mine), ("edge", dict(found.of_edges))):
            for each, column in properties[place].items():
                column.add(columns[each])
    ids.end()
    ends.end()
    props = {}
    for place, table in properties.items():
        group.require_group(f"{place}s/props")
        for column in table.values():
            column.end()
        props[f"{place}_props_metadata"] = {each: column.about(each) for each, column in table.items()}
    more = {key: about[key] for key in KEPT if key in about and key not in ("directed", "track_node_props")}
    facts = {"geff_version": VERSION, "directed": bool(about.get("directed", kind != "graph")), "axes": axes, **props}
    group.attrs[KEY] = {**facts, **more, **({"track_node_props": tracks} if tracks else {})}


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


def _new_group(target: StoreLike, overwrite: bool, name: str) -> Group:
    try:
        return open_group(target, mode="w" if overwrite else "w-", zarr_format=3)
    except NodeExistsError as error:
        raise NodeExistsError(f"something is stored at {name} already: overwrite=True replaces it") from error


class _Rows:
    """An array that is filled from its first row to the last one, whole shards at a time."""

    def __init__(self, group: Group, path: str, count: int, like: npt.NDArray[Any]) -> None:
        chunks = (max(1, min(CHUNK, count)), *(max(1, length) for length in like.shape[1:]))
        self._shard = min(_SHARD, -(-count // CHUNK)) * CHUNK if count > CHUNK else max(1, count)
        shards = (self._shard, *chunks[1:]) if count > CHUNK else None
        whole = {"write_empty_chunks": True}  # so that a chunk that is missing is one that was lost
        shape = (count, *like.shape[1:])
        self._array: Array = group.create_array(
            path, shape=shape, dtype=like.dtype, chunks=chunks, shards=shards, config=whole
        )
        self._waiting: list[npt.NDArray[Any]] = []
        self._at = self._waits = 0

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


class _Property:
    """A property of nodes or edges: its values, and of text which are missing."""

    def __init__(self, group: Group, path: str, count: int, look: _Look) -> None:
        self._is_text = look.like.dtype.kind not in "iufb"
        like = look.like if look.like.dtype.name in _TYPES else look.like.astype(np.float32)
        if self._is_text:  # the format has no other text
            like = np.zeros(0, f"U{max(1, look.longest)}")
        self._values, self._kind = _Rows(group, f"{path}/values", count, like), like.dtype.name
        missing = look.some_are_missing
        self._missing = _Rows(group, f"{path}/missing", count, np.zeros(0, np.bool_)) if missing else None

    def add(self, values: npt.NDArray[Any]) -> None:
        """Add the next rows."""
        if not self._is_text:
            self._values.add(values)
            return
        texts = values.tolist()
        self._values.add(np.array(["" if each is None else str(each) for each in texts], np.str_))
        if self._missing is not None:
            self._missing.add(np.array([each is None for each in texts], np.bool_))

    def end(self) -> None:
        """Store what waits."""
        self._values.end()
        if self._missing is not None:
            self._missing.end()

    def about(self, name: str) -> dict[str, Any]:
        """Return what the document says of it."""
        return {"identifier": name, "dtype": "str" if self._is_text else self._kind, "varlength": False}


__all__ = ["geff_out"]
