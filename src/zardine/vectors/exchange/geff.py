"""GEFF: graphs and tracks as a group of Zarr arrays, which need no other package than this one."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cached_property
from math import prod
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from zardine.api.open import open_group
from zardine.errors import (
    ChunkNotFoundError,
    CorruptionError,
    DataError,
    UnsupportedError,
    ZardineError,
)
from zardine.limits import check_size
from zardine.nodes.array import Array
from zardine.nodes.group import Group
from zardine.stores.resolve import StoreLike
from zardine.vectors.content.columns import Column, column_of, columns_of
from zardine.vectors.content.content import Columns
from zardine.vectors.content.parts import AT_ONCE, ENDS, OWNER
from zardine.vectors.exchange.file_parts import Piece, Step, Whole
from zardine.vectors.exchange.format_features import fates
from zardine.vectors.exchange.listing import Seen, listed
from zardine.vectors.exchange.losses import storable, tell_of_metadata, tell_of_missing
from zardine.vectors.graph import write_spooled_graph
from zardine.vectors.outside import warn

KEY: Final = "geff"
"""The attribute of the group, and the table in ``crs``, that say what the graph is."""
VERSION: Final = "1.1"
NODE_ID: Final = "node_id"
KEPT: Final = ("directed", "track_node_props", "sphere", "ellipsoid", "related_objects", "display_hints", "extra")
"""What is said of a graph that the store keeps as it is."""
OF_AXES: Final = ("scale", "scaled_unit", "offset")
"""What is said of an axis that stays true of coordinates in the same unit, which are stored as they are."""
OF_PROPS: Final = ("name", "description", "unit")
"""What is said of a property beside its type."""
PROPS: Final = {"node": "node_props_metadata", "edge": "edge_props_metadata"}
"""The tables of properties in the document."""
_KNOWN: Final = {*KEPT, *PROPS.values(), "geff_version", "axes"}
CHUNK: Final = 2**17
"""Rows of a chunk."""
_TEXT: Final = 120
"""Bytes of a text in memory, about."""
_FIXED: Final = 16 * 2**20


FATES = fates(
    two_axes="kept/kept",
    four_axes="kept/kept",
    axis_names="kept/kept",
    units="kept/kept",
    scales="kept/kept: as the table 'geff' of crs; positions stay as they are",
    precision="kept/kept",
    integers="kept/kept",
    floats="kept/kept",
    booleans="kept/kept",
    text="kept/kept",
    several_values="kept/kept",
    missing_integers="told/-: as float64 and NaN",
    missing_booleans="told/-: as 1.0, 0.0 and NaN",
    missing_text="kept/kept",
    vertex_attributes="kept/kept",
    object_attributes="-/told",
    link_attributes="kept/kept: of edges",
    ids="kept/kept: as the attribute 'node_id'; of objects as tracklets",
    groups="-/told",
    crs="-/told",
    bounds="-/told",
    metadata="kept/told: as the table 'geff' of crs; attributes of the store are told",
    comments="kept/-: names, descriptions and units of properties",
)


class GeffParts:
    """A graph of GEFF as :class:`~zardine.vectors.exchange.file_parts.FolderParts`: about ``at_once`` nodes each.

    Axes are coordinates, other properties of nodes and edges attributes, ids of nodes the attribute ``node_id``. Where
    each node has a lineage, or a tracklet, that is its object. Edges are read when the store is written. Raises
    :class:`DataError` for a group that is none, or whose parts do not fit together.
    """

    outline: None = None

    def __init__(self, source: StoreLike, options: Mapping[str, Any], at_once: int, outline: None = None) -> None:
        self._root = root = open_group(source, mode="r")
        self._name = name = f"{root.store}/{root.path}".rstrip("/")
        about = root.attrs.get(KEY)
        if not isinstance(about, Mapping):
            raise DataError(f"{name} is no graph of GEFF: it has no table {KEY!r} in its attributes")
        axes = about.get("axes") or []
        if not isinstance(axes, list | tuple) or not 1 <= len(axes) <= 4 or not all(_is_axis(each) for each in axes):
            raise DataError(f"{name}: axes are 1 to 4 tables, each with the name of a property, not {axes!r}")
        self._about, self._axes = about, axes
        self._ids, self._edges = _Table(root, "nodes/ids", None, name), _Table(root, "edges/ids", None, name)
        ids, edges = self._ids.values, self._edges.values
        if ids.ndim != 1 or ids.dtype.kind not in "iu":
            raise DataError(f"{name}: nodes/ids are whole numbers, each there once")
        if edges.shape[1:] != (2,) or edges.dtype.kind not in "iu":
            raise DataError(f"{name}: edges/ids are pairs of ids of nodes, not {edges.dtype} of shape {edges.shape}")
        check_size(f"{name}: ids and places of {len(ids)} nodes", 24 * len(ids))  # all of them when it is stored
        check_size(f"{name}: {len(edges)} edges", 16 * len(edges))
        self._left_out = list[str]()
        self._of_nodes = self._props(root, "nodes", len(ids))
        self._of_edges = self._props(root, "edges", len(edges))
        missing = [each["name"] for each in axes if each["name"] not in self._of_nodes]
        if missing:
            raise DataError(f"{name}: the axis {missing[0]!r} is no property of nodes with a number for each")
        self._coordinates = [self._of_nodes.pop(each["name"]) for each in axes]
        if any(each.values.ndim != 1 or each.values.dtype.kind not in "iuf" for each in self._coordinates):
            raise DataError(f"{name}: axes are properties of one finite number for each node")
        self._owner = self._find_owner()
        if self._of_nodes.pop(NODE_ID, None) is not None:
            self._left_out.append(f"the property 'nodes/props/{NODE_ID}' is left out: ids of nodes are called so")
        self.vertices = len(ids)
        self._rows = max(1, -(-at_once // ids.chunks[0])) * ids.chunks[0]

    def _props(self, root: Group, kind: str, count: int) -> dict[str, _Table]:
        found = {}
        for each in sorted(_props(root, kind)):
            path = f"{kind}/props/{each}"
            if f"{path}/data" in root:
                self._left_out.append(f"the property {path!r} is left out: its values have several lengths")
                continue
            table = _Table(root, path, count, self._name)
            if table.values.ndim > 2:
                axes = table.values.ndim - 1
                self._left_out.append(f"the property {path!r} is left out: its values have {axes} axes")
            else:
                found[each] = table
        return found

    def _find_owner(self) -> _Table | None:
        """The property that says which object each node is of: its lineage, or else its tracklet."""
        tracks = self._about.get("track_node_props")
        for kind in ("lineage", "tracklet"):
            found = self._of_nodes.get(str(tracks.get(kind))) if isinstance(tracks, Mapping) else None
            if found is not None and len(self._ids.values) and found.are_ids():
                return found
        return None

    @property
    def count(self) -> int:
        """How many parts there are."""
        return max(1, -(-self.vertices // self._rows))

    @property
    def nbytes(self) -> int:
        """Bytes of all rows of nodes, as they are read."""
        tables = [self._ids, *self._coordinates, *self._of_nodes.values()]
        return self.vertices * sum(each.row_bytes for each in tables)

    @cached_property
    def seen(self) -> str:
        """A digest of all that is stored; where nothing can be listed, of the documents."""
        seen, root = Seen(), self._root
        try:
            for key, version in listed(root.store, f"{root.path}/" if root.path else ""):
                seen.add(key, version)
        except UnsupportedError:
            tables = [self._ids, self._edges, *self._coordinates, *self._of_nodes.values(), *self._of_edges.values()]
            documents = [root.attrs.asdict(), *(each.values.metadata.to_dict() for each in tables)]
            seen.add(json.dumps(documents, sort_keys=True, default=str))
        return str(seen)

    @property
    def memory(self) -> int:
        """Bytes that it takes to read one: its rows as they are in chunks, as read, as attributes and as bytes."""
        tables = [self._ids, *self._coordinates, *self._of_nodes.values()]
        return sum(each.chunk_bytes + 5 * each.row_bytes * self._rows for each in tables) + _FIXED

    def read(self, number: int) -> Piece:
        """Return some of the nodes."""
        rows = slice(number * self._rows, min(self.vertices, (number + 1) * self._rows))
        axes = [each.read(rows) for each in self._coordinates]
        if any(not np.isfinite(each).all() for each in axes):
            raise DataError(f"{self._name}: axes are properties of one finite number for each node")
        exact = all(each.dtype in (np.float32, np.int8, np.uint8, np.int16, np.uint16) for each in axes)
        positions = np.stack(axes, axis=1).astype(np.float32 if exact else np.float64)
        values = {name: each.read(rows) for name, each in self._of_nodes.items()}
        owner = np.zeros(len(positions), np.int64) if self._owner is None else self._owner.read(rows).astype(np.int64)
        return Piece(positions, {OWNER: owner, **values, NODE_ID: self._ids.read(rows)})

    def store(self, path: StoreLike, whole: Whole, options: Mapping[str, Any], step: Step, origin: str | None) -> None:
        """Write all nodes and edges, and warn of properties that the store cannot hold."""
        for text in self._left_out:
            warn(self._name, text)
        others = [repr(name) for name in self._root.attrs if name != KEY and not name.startswith("zardine_")]
        others += [
            f"{name!r} of {KEY!r}" for name, each in self._about.items() if each is not None and name not in _KNOWN
        ]
        tell_of_metadata(self._name, others)
        for each in (*self._coordinates, *self._of_nodes.values(), *self._of_edges.values()):
            each.tell_missing()
        ids = np.concatenate([values[NODE_ID] for _, values in whole.parts()] or [self._ids.read(slice(0, 0))])
        order = np.argsort(ids, kind="stable")
        ids = ids[order]
        if (ids[1:] == ids[:-1]).any():
            raise DataError(f"{self._name}: nodes/ids are whole numbers, each there once")
        whole.rename({OWNER: OWNER, **storable({name: name for name in whole.columns if name != OWNER}, self._name)})
        self._tell_of_missing()
        given: dict[str, Any] = {
            "axes": [{key: each[key] for key in ("name", "type", "unit") if each.get(key)} for each in self._axes],
            "crs": {KEY: self._kept()},
        }
        if not len(ids):
            given["bounds"] = (np.zeros(len(self._axes)), np.ones(len(self._axes)))
        links = _Edges(self._edges, storable(self._of_edges, self._name), ids, order, self._name)
        write_spooled_graph(path, whole, links, {**given, **options}, step, origin)

    def _kept(self) -> dict[str, Any]:
        """What the store keeps of the document, so that an export says it again."""
        kept = {key: self._about[key] for key in KEPT if self._about.get(key) is not None}
        axes = [
            {key: each[key] for key in ("name", "unit", *OF_AXES) if each.get(key) is not None}
            for each in self._axes
            if any(each.get(key) is not None for key in OF_AXES)
        ]
        if axes:
            kept["axes"] = axes
        for table in PROPS.values():
            given = self._about.get(table)
            told = {
                str(name): {key: about[key] for key in OF_PROPS if about.get(key) is not None}
                for name, about in (given.items() if isinstance(given, Mapping) else ())
                if isinstance(about, Mapping)
            }
            told = {name: about for name, about in told.items() if about and about != {"name": name}}
            if told:
                kept[table] = told
        return kept

    def _tell_of_missing(self) -> None:
        """Warn of integers and truth values that are float64 in the store, since some are missing."""
        tables = [*self._of_nodes.items(), *self._of_edges.items()]
        integers, flags = (
            [name for name, each in tables if each.misses and each.values.dtype.kind in kinds] for kinds in ("iu", "b")
        )
        tell_of_missing(self._name, integers, flags)

    def close(self) -> None:
        """Nothing is kept open."""


class _Table:
    """An array with a row for each node or edge: ids, or a property with what is missing of it."""

    def __init__(self, root: Group, path: str, count: int | None, name: str) -> None:
        self._path, self._name, self._are_of_all = path, name, count is None
        self.values = _array(root, path if count is None else f"{path}/values", count, name)
        self._missing: Array | None = None
        if count is not None and f"{path}/missing" in root:
            self._missing = _array(root, f"{path}/missing", count, name)
            if self._missing.shape != (count,):
                raise DataError(f"{name}: {path}/missing is a truth value for each of {count} rows")
        self.misses = self._missing is not None and any(
            self._taken(self._missing, rows).astype(np.bool_).any() for rows in _slices(len(self._missing), CHUNK)
        )

    @property
    def is_text(self) -> bool:
        """Whether values are no numbers."""
        return self.values.dtype.kind not in "iufb"

    @property
    def row_bytes(self) -> int:
        """Bytes of a row, about, where it is text."""
        return _TEXT if self.is_text else max(8, self.values.dtype.itemsize) * prod(self.values.shape[1:])

    @property
    def chunk_bytes(self) -> int:
        """Bytes of a chunk, which is decoded as a whole."""
        return prod(self.values.chunks) * (_TEXT if self.is_text else self.values.dtype.itemsize)

    def are_ids(self) -> bool:
        """Whether values are a whole number below 2**63 from 0 on for each row."""
        values = self.values
        return (
            values.ndim == 1
            and values.dtype.kind in "iu"
            and not self.misses
            and all(
                are_ids(each) and int(each.max(initial=0)) < 2**63
                for each in (self._taken(values, rows) for rows in _slices(len(values), CHUNK))
            )
        )

    def read(self, rows: slice) -> npt.NDArray[Any]:
        """Return some rows: missing numbers are NaN, missing text ``None``."""
        values = self._taken(self.values, rows)
        if self.is_text:
            values = np.array([str(each) for each in values.reshape(-1).tolist()], object).reshape(values.shape)
        if not self.misses:
            return values
        assert self._missing is not None
        missing = self._taken(self._missing, rows).astype(np.bool_)
        if values.dtype.kind == "O":
            values[missing] = None
            return values
        wide = values.astype(np.float64)
        if values.dtype.kind in "iu" and (wide.astype(object) != values.astype(object))[~missing].any():
            warn(self._name, f"the property {self._path!r} is rounded to float64: some values are missing")
        wide[missing] = np.nan
        return wide.astype(np.float32) if values.dtype == np.float32 else wide

    def tell_missing(self) -> None:
        """Warn where chunks of values are not stored: what was lost looks like what other programs leave out."""
        array = self.values
        try:
            lacking = array.nchunks - array.nchunks_initialized
        except UnsupportedError:  # nothing can be listed
            return
        if lacking:
            told = f"{lacking} of {array.nchunks} chunks of {array.path} are not stored and read as {array.fill_value}"
            more = "many programs leave out chunks of nothing else; if they were lost, get the whole graph"
            warn(self._name, f"{told}: {more}")

    def _taken(self, array: Array, rows: slice) -> npt.NDArray[Any]:
        count = len(range(*rows.indices(len(array))))
        check_size(f"{array.path} of {self._name}", count * (array.nbytes // max(1, len(array))))
        try:
            if self._are_of_all:
                return _ids(array, rows, self._name)
            return np.asarray(array[rows])
        except CorruptionError as error:
            raise CorruptionError(f"{self._name}/{array.path} cannot be read: {error}") from error


def _ids(array: Array, rows: slice, name: str) -> npt.NDArray[Any]:
    """Some ids of nodes, or of the ends of edges.

    A chunk that is not stored may be one of the fill value, which a single node or edge can have. Raises
    :class:`CorruptionError` where more would have it.
    """
    try:
        return np.asarray(array.with_config({"read_missing_chunks": False})[rows])
    except ChunkNotFoundError as error:
        values = np.asarray(array[rows])
        filled = values == array.fill_value
        if np.count_nonzero(filled.all(axis=1) if filled.ndim > 1 else filled) > 1:
            raise CorruptionError(
                f"{name}: chunks of {array.path}, without which it is no graph, are lost: {error}"
            ) from None
        return values


class _Edges:
    """Edges as :class:`~zardine.vectors.content.parts.LinksInParts`, read when they are gone through.

    ``ids`` are those of nodes, ascending, and ``order`` says at which row each is. Text is held in memory.
    """

    def __init__(self, edges: _Table, props: Mapping[str, _Table], ids: Any, order: Any, name: str) -> None:
        self._edges, self._ids, self._order, self._name = edges, ids, order, name
        self._props = props
        self._texts = columns_of(
            {each: table.read(slice(None)) for each, table in props.items() if table.is_text},
            len(edges.values),
            "edges",
        )

    @property
    def link_columns(self) -> Columns:
        """What the columns are like."""
        return self._columns(slice(0, 0))

    def links(self) -> Iterator[Columns]:
        """Give all columns, some rows at a time."""
        for rows in _slices(len(self._edges.values), AT_ONCE):
            yield self._columns(rows)

    def _columns(self, rows: slice) -> Columns:
        found = {ENDS: Column(_rows(self._ids, self._order, self._edges.read(rows), self._name))}
        for name, table in self._props.items():
            text = self._texts.get(name)
            column = column_of(name, table.read(rows), len(found[ENDS].values), "edges") if text is None else text
            found[name] = column if text is None else column.take(rows)
        return found


def _slices(count: int, at_once: int) -> Iterator[slice]:
    return (slice(start, min(count, start + at_once)) for start in range(0, count, at_once))


def is_geff(source: StoreLike) -> bool:
    """Return whether a folder is a graph of GEFF."""
    try:
        return KEY in open_group(source, mode="r").attrs
    except (ZardineError, OSError, TypeError, ValueError):
        return False


def _is_axis(axis: Any) -> bool:
    return isinstance(axis, Mapping) and isinstance(axis.get("name"), str) and bool(axis["name"])


def _props(root: Group, kind: str) -> list[str]:
    found = root.get(f"{kind}/props")
    return list(found.group_keys()) if isinstance(found, Group) else []


def _array(root: Group, path: str, count: int | None, name: str) -> Array:
    """An array, if it has ``count`` rows."""
    found = root.get(path)
    if not isinstance(found, Array) or found.ndim == 0:
        told = "is missing" if found is None else "is no array with a row for each"
        raise DataError(f"{name} is no whole graph of GEFF: {path} {told}")
    if count is not None and found.shape[0] != count:
        raise DataError(f"{name}: {path} has {found.shape[0]} rows, not {count}")
    return found


def are_ids(values: npt.NDArray[Any]) -> bool:
    """Return whether values are a whole number from 0 on for each row."""
    return values.ndim == 1 and values.dtype.kind in "iu" and int(values.min(initial=0)) >= 0


def _rows(ids: npt.NDArray[Any], order: npt.NDArray[Any], edges: npt.NDArray[Any], name: str) -> npt.NDArray[np.int64]:
    """Edges as rows of nodes, whose ``ids`` are ascending when they are taken in ``order``."""
    place = np.minimum(np.searchsorted(ids, edges), max(0, len(ids) - 1))
    if len(edges) and (not len(ids) or (ids[place] != edges).any()):
        raise DataError(f"{name}: edges/ids name nodes that are not among nodes/ids")
    return order[place] if len(edges) else np.zeros((0, 2), np.int64)


__all__ = [
    "CHUNK",
    "KEPT",
    "KEY",
    "NODE_ID",
    "OF_AXES",
    "OF_PROPS",
    "PROPS",
    "VERSION",
    "GeffParts",
    "are_ids",
    "is_geff",
]
