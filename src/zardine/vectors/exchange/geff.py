"""GEFF: graphs and tracks as a group of Zarr arrays, which need no other package than this one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from zardine.api.open import open_group
from zardine.errors import CorruptionError, DataError, NodeExistsError, ZardineError
from zardine.limits import check_size
from zardine.nodes.array import Array
from zardine.nodes.group import Group
from zardine.stores.resolve import StoreLike
from zardine.tools.progress import Progress, Steps
from zardine.vectors.exchange.losses import LINES, check_store, numbers, storable, warn_kind
from zardine.vectors.format.ragged import row_numbers
from zardine.vectors.graph import read_graph, write_graph
from zardine.vectors.outside import warn
from zardine.vectors.polylines import read_polylines
from zardine.vectors.results import Graph
from zardine.vectors.storing.store import VectorStore

_KEY: Final = "geff"
"""The attribute of the group, and the table in ``crs``, that say what the graph is."""
_VERSION: Final = "1.1"
_NODE_ID: Final = "node_id"
_OBJECT_ID: Final = "object_id"
_KEPT: Final = ("directed", "track_node_props", "sphere", "ellipsoid", "related_objects", "display_hints", "extra")
"""What is said of a graph that the store keeps as it is."""
_TYPES: Final = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64")
_CHUNK: Final = 2**17
"""Rows of a chunk."""


def geff_in(source: StoreLike, path: StoreLike, options: Mapping[str, Any], progress: Progress | None = None) -> None:
    """Write nodes and edges to a new store as a graph; axes are coordinates, other properties attributes.

    Ids of nodes become the attribute ``node_id``. Where each node has a lineage, or a tracklet, that is its object.
    ``progress`` counts arrays. Raises :class:`DataError` for a group that is none, or whose parts do not fit together.
    """
    root = open_group(source, mode="r")
    name = f"{root.store}/{root.path}".rstrip("/")
    about = root.attrs.get(_KEY)
    if not isinstance(about, Mapping):
        raise DataError(f"{name} is no graph of GEFF: it has no table {_KEY!r} in its attributes")
    axes = about.get("axes") or []
    if not isinstance(axes, list | tuple) or not 1 <= len(axes) <= 4 or not all(_is_axis(each) for each in axes):
        raise DataError(f"{name}: axes are 1 to 4 tables, each with the name of a property, not {axes!r}")
    known = [sorted(_props(root, kind)) for kind in ("nodes", "edges")]
    steps = Steps(progress, 2 + sum(map(len, known)))
    ids = _values(root, "nodes/ids", None, name)
    edges = _values(root, "edges/ids", None, name)
    steps(2)
    if ids.ndim != 1 or ids.dtype.kind not in "iu" or len(np.unique(ids)) != len(ids):
        raise DataError(f"{name}: nodes/ids are whole numbers, each there once")
    if edges.shape[1:] != (2,) or edges.dtype.kind not in "iu":
        raise DataError(f"{name}: edges/ids are pairs of ids of nodes, not {edges.dtype} of shape {edges.shape}")
    of_nodes: dict[str, npt.NDArray[Any]] = {}
    of_edges: dict[str, npt.NDArray[Any]] = {}
    for kind, names, columns, count in (
        ("nodes", known[0], of_nodes, len(ids)),
        ("edges", known[1], of_edges, len(edges)),
    ):
        for each in names:
            values = _property(root, f"{kind}/props/{each}", count, name)
            if values is not None:
                columns[each] = values
            steps()
    missing = [each["name"] for each in axes if each["name"] not in of_nodes]
    if missing:
        raise DataError(f"{name}: the axis {missing[0]!r} is no property of nodes with a number for each")
    coordinates = [of_nodes.pop(each["name"]) for each in axes]
    if any(each.ndim != 1 or each.dtype.kind not in "iuf" or not np.isfinite(each).all() for each in coordinates):
        raise DataError(f"{name}: axes are properties of one finite number for each node")
    exact = all(each.dtype in (np.float32, np.int8, np.uint8, np.int16, np.uint16) for each in coordinates)
    positions = np.stack(coordinates, axis=1).astype(np.float32 if exact else np.float64)
    objects = _objects(about.get("track_node_props"), of_nodes)
    of_nodes[_NODE_ID] = ids
    given: dict[str, Any] = {
        "vertex_attributes": storable(of_nodes, name),
        "link_attributes": storable(of_edges, name),
        "object_ids": objects,
        "axes": [{key: each[key] for key in ("name", "type", "unit") if each.get(key)} for each in axes],
        "crs": {_KEY: {key: about[key] for key in _KEPT if about.get(key) is not None}},
    }
    if not len(ids):
        given["bounds"] = (np.zeros(len(axes)), np.ones(len(axes)))
    write_graph(path, positions, _rows(ids, edges, name), **{**given, **options})


def geff_out(
    path: StoreLike,
    target: StoreLike,
    level: int = 0,
    *,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> None:
    """Write a graph, skeletons or lines as nodes and edges; what it is comes last. ``progress`` counts arrays.

    Nodes are called as their attribute ``node_id`` says, where that is a whole number of each; edges of skeletons go
    from child to parent, those of lines along them, and the object of each node is its tracklet, ``object_id``.
    Attributes of lines are left out. Raises :class:`NodeExistsError` where something is stored, without ``overwrite``.
    """
    kinds = ("graph", "skeleton", *LINES)
    name = str(target)
    kind = check_store(path, name, level, kinds, ("vertex_attributes", "link_attributes"))
    warn_kind(kind, "graph", name)
    root = VectorStore.open(path).root
    found = _lines(path, level) if kind in LINES else read_graph(path, level=level)
    columns = dict(found.attributes)
    about = (root.block.get("crs") or {}).get(_KEY)
    about = about if isinstance(about, Mapping) else {}
    ids = np.arange(len(found), dtype=np.uint64)
    given = columns.get(_NODE_ID)
    if given is not None and _are_ids(given) and len(np.unique(given)) == len(given):
        ids = columns.pop(_NODE_ID).astype(np.uint64)
    tracks = dict(about.get("track_node_props") or {})
    told = [each in columns for each in tracks.values()]
    if not (tracks and all(told)):
        tracks = {}
        if found.object_ids is not None and _OBJECT_ID not in columns and (found.object_ids != 0).any():
            columns[_OBJECT_ID] = found.object_ids
            tracks = {"tracklet": _OBJECT_ID} if kind in LINES else {}
    axes = []
    for number, axis in enumerate(root.axes):
        values = found.positions[:, number]
        columns[str(axis["name"])] = values
        table = {key: axis[key] for key in ("name", "type", "unit") if axis.get(key)}
        axes.append({**table, "min": float(values.min()), "max": float(values.max())} if len(values) else table)
    of_nodes, of_edges = _storable(columns, name), _storable(found.edge_attributes, name)
    group = _new_group(target, overwrite, name)
    steps = Steps(progress, 2 + len(of_nodes) + len(of_edges))
    _write(group, "nodes/ids", ids)
    _write(group, "edges/ids", ids[found.edges].reshape(-1, 2))
    steps(2)
    props: dict[str, dict[str, Any]] = {}
    for place, table in (("node", of_nodes), ("edge", of_edges)):
        group.require_group(f"{place}s/props")
        props[f"{place}_props_metadata"] = {}
        for each, values in table.items():
            props[f"{place}_props_metadata"][each] = _write_property(group, f"{place}s/props/{each}", each, values)
            steps()
    kept = {key: about[key] for key in _KEPT if key in about and key not in ("directed", "track_node_props")}
    facts = {"geff_version": _VERSION, "directed": bool(about.get("directed", kind != "graph")), "axes": axes, **props}
    group.attrs[_KEY] = {**facts, **kept, **({"track_node_props": tracks} if tracks else {})}


def is_geff(source: StoreLike) -> bool:
    """Return whether a folder is a graph of GEFF."""
    try:
        return _KEY in open_group(source, mode="r").attrs
    except (ZardineError, OSError, TypeError, ValueError):
        return False


def _is_axis(axis: Any) -> bool:
    return isinstance(axis, Mapping) and isinstance(axis.get("name"), str) and bool(axis["name"])


def _props(root: Group, kind: str) -> list[str]:
    found = root.get(f"{kind}/props")
    return list(found.group_keys()) if isinstance(found, Group) else []


def _values(root: Group, path: str, count: int | None, name: str) -> npt.NDArray[Any]:
    """An array, if it has ``count`` rows."""
    found = root.get(path)
    if not isinstance(found, Array) or found.ndim == 0:
        told = "is missing" if found is None else "is no array with a row for each"
        raise DataError(f"{name} is no whole graph of GEFF: {path} {told}")
    if count is not None and found.shape[0] != count:
        raise DataError(f"{name}: {path} has {found.shape[0]} rows, not {count}")
    check_size(f"{path} of {name}", found.nbytes)
    try:
        return np.asarray(found[:])
    except CorruptionError as error:
        raise CorruptionError(f"{name}/{path} cannot be read: {error}") from error


def _property(root: Group, path: str, count: int, name: str) -> npt.NDArray[Any] | None:
    """A property; missing numbers are NaN, missing text ``None``. ``None``, with a warning, for what is no column."""
    if f"{path}/data" in root:
        warn(name, f"the property {path!r} is left out: its values have several lengths")
        return None
    values = _values(root, f"{path}/values", count, name)
    if values.ndim > 2:
        warn(name, f"the property {path!r} is left out: its values have {values.ndim - 1} axes")
        return None
    if values.dtype.kind not in "iufb":
        values = np.array([str(each) for each in values.reshape(-1).tolist()], object).reshape(values.shape)
    if f"{path}/missing" not in root:
        return values
    missing = _values(root, f"{path}/missing", count, name).astype(np.bool_)
    if missing.shape != (count,):
        raise DataError(f"{name}: {path}/missing is a truth value for each of {count} rows")
    if not missing.any():
        return values
    if values.dtype.kind == "O":
        values[missing] = None
        return values
    wide = values.astype(np.float64)
    if values.dtype.kind in "iu" and (wide.astype(object) != values.astype(object))[~missing].any():
        warn(name, f"the property {path!r} is rounded to float64: some values are missing")
    wide[missing] = np.nan
    return wide.astype(np.float32) if values.dtype == np.float32 else wide


def _objects(tracks: Any, columns: Mapping[str, npt.NDArray[Any]]) -> npt.NDArray[np.int64] | None:
    """The object of each node: its lineage, or else its tracklet."""
    for kind in ("lineage", "tracklet"):
        values = columns.get(str(tracks.get(kind))) if isinstance(tracks, Mapping) else None
        if values is not None and len(values) and _are_ids(values) and int(values.max()) < 2**63:
            return values.astype(np.int64)
    return None


def _are_ids(values: npt.NDArray[Any]) -> bool:
    """Whether values are a whole number from 0 on for each row."""
    return values.ndim == 1 and values.dtype.kind in "iu" and int(values.min(initial=0)) >= 0


def _rows(ids: npt.NDArray[Any], edges: npt.NDArray[Any], name: str) -> npt.NDArray[np.int64]:
    """Edges as rows of nodes."""
    order = np.argsort(ids)
    place = np.minimum(np.searchsorted(ids[order], edges), max(0, len(ids) - 1))
    if len(edges) and (not len(ids) or (ids[order][place] != edges).any()):
        raise DataError(f"{name}: edges/ids name nodes that are not among nodes/ids")
    return order[place] if len(edges) else np.zeros((0, 2), np.int64)


def _lines(path: StoreLike, level: int) -> Graph:
    """Lines as a graph."""
    lines = read_polylines(path, level=level, object_attributes=None)
    lengths = np.diff(lines.starts)
    ends = np.ones(len(lines.positions), np.bool_)
    ends[lines.starts[1:][lengths > 0] - 1] = False
    first = np.flatnonzero(ends)
    owners = lines.object_ids[row_numbers(lengths)]
    return Graph(lines.positions, np.stack((first, first + 1), axis=1), lines.attributes, {}, owners)


def _storable(columns: Mapping[str, npt.NDArray[Any]], name: str) -> dict[str, npt.NDArray[Any]]:
    """Columns of types that the format has."""
    texts = {each: values for each, values in columns.items() if values.dtype.kind not in "iufb" and values.ndim == 1}
    found = numbers({each: values for each, values in columns.items() if each not in texts}, name)
    plain = {
        each: values if values.dtype.name in _TYPES else values.astype(np.float32) for each, values in found.items()
    }
    return {each: {**texts, **plain}[each] for each in columns if each in texts or each in plain}


def _new_group(target: StoreLike, overwrite: bool, name: str) -> Group:
    try:
        return open_group(target, mode="w" if overwrite else "w-", zarr_format=3)
    except NodeExistsError as error:
        raise NodeExistsError(f"something is stored at {name} already: overwrite=True replaces it") from error


def _write(group: Group, path: str, values: npt.NDArray[Any]) -> None:
    """Store an array; of many rows in one shard."""
    chunks = (max(1, min(_CHUNK, len(values))), *(max(1, length) for length in values.shape[1:]))
    shards = None
    if len(values) > _CHUNK:
        shards = (-(-len(values) // _CHUNK) * _CHUNK, *chunks[1:])
    group.create_array(path, data=values, chunks=chunks, shards=shards)


def _write_property(group: Group, path: str, name: str, values: npt.NDArray[Any]) -> dict[str, Any]:
    """Store a property, and return what the document says of it."""
    if values.dtype.kind in "iufb":
        _write(group, f"{path}/values", values)
        return {"identifier": name, "dtype": values.dtype.name, "varlength": False}
    texts: Sequence[Any] = values.tolist()
    missing = np.array([each is None for each in texts], np.bool_)
    plain = np.array(["" if each is None else str(each) for each in texts], np.str_)  # the format has no other text
    _write(group, f"{path}/values", plain)
    if missing.any():
        _write(group, f"{path}/missing", missing)
    return {"identifier": name, "dtype": "str", "varlength": False}


__all__ = ["geff_in", "geff_out", "is_geff"]
