"""Making a new store: everything is worked out and checked first, and the root document is written last.

What a writer that was killed leaves has no root document, and is erased by the next one.

Another store in the place of one that is there, so that one of both can always be had: the new arrays are stored beside
the old ones, as in an edit (:mod:`zardine.vectors.storing.transactions`). One write of level 0's document agrees on the
change: it says that the level has no vertices, and under ``zardine_next`` all that is to become of the store. Then what
lies beside the level goes, the root document is replaced, and the level is filled. Who is killed in between leaves a
store that cannot be read until the next writer, or ``repair``, brings that to an end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, TypedDict

import numpy as np
import numpy.typing as npt

from zardine.buffers import Ints
from zardine.errors import ContainsGroupError, DataError, ZardineError
from zardine.hierarchy.create import create_ancestors, erase_node
from zardine.hierarchy.find import child_names, describe, find_node, taken
from zardine.hierarchy.place import find_place
from zardine.metadata.documents import GroupMetadata
from zardine.metadata.formats import parse_node_json
from zardine.stores.base import Store
from zardine.stores.path import StorePath
from zardine.stores.resolve import StoreLike
from zardine.vectors.changing.levels import erase_levels
from zardine.vectors.content.arguments import (
    Attributes,
    Box,
    GroupsLike,
    Lengths,
    as_corners,
    checked_ids,
    checked_positions,
    checked_shapes,
    plain_array,
    shown,
)
from zardine.vectors.content.columns import checked_mapping, columns_of
from zardine.vectors.content.content import Content, Groups, Links, Objects
from zardine.vectors.content.plan import Grid, Node, grid_of, group, level_attributes, plan_level
from zardine.vectors.content.point_content import by_object, groups_of
from zardine.vectors.content.run_content import inverse
from zardine.vectors.format.documents import KINDS, LEVEL, new_level, new_root, plain_axes
from zardine.vectors.format.grids import chunks_of
from zardine.vectors.format.layouts import SHARDED_NOTE, CodecsLike, Layout, Shards, layout_from
from zardine.vectors.format.ragged import bounds_of, unique_rows
from zardine.vectors.storing.cells import child
from zardine.vectors.storing.level_nodes import nodes_below
from zardine.vectors.storing.node_writing import write_document, write_nodes
from zardine.vectors.storing.store import NEXT, PENDING, UNFINISHED, VectorStore
from zardine.vectors.storing.transactions import carry_out, finish, replace_below

_Corners = tuple[tuple[float, ...], tuple[float, ...]]


class StoreOptions(TypedDict, total=False):
    """Options of every writer; see :func:`zardine.vectors.write_points`."""

    chunk_shape: Lengths
    shard_shape: Shards
    codec_config: CodecsLike
    compressor: CodecsLike
    checksum: bool | None
    bounds: Box
    axes: Sequence[str | Mapping[str, Any]] | None
    crs: Mapping[str, Any] | None
    overwrite: bool


@dataclass(frozen=True, slots=True)
class GivenObjects:
    """What a user says of the objects of a new store, or of new objects; see :func:`zardine.vectors.write_points`."""

    ids: npt.ArrayLike | None = None
    attributes: Attributes = None
    groups: GroupsLike = None
    group_attributes: Attributes = None


@dataclass(frozen=True, slots=True)
class Prepared:
    """Options, checked against the positions."""

    chunk_shape: tuple[float, ...]
    bounds: _Corners
    layout: Layout
    axes: list[dict[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class NewStore:
    """What a new store is to be, beside its content."""

    kind: str
    chunk_shape: tuple[float, ...]
    bin_shape: tuple[float, ...] | None
    bounds: tuple[tuple[float, ...], tuple[float, ...]]
    grid: Grid
    axes: Sequence[Mapping[str, Any]]
    crs: Mapping[str, Any] | None = None


def check_options(options: StoreOptions) -> None:
    """Raise ``TypeError``, as for any argument that a function does not have, for names that are no options."""
    known = StoreOptions.__annotations__
    unknown = sorted(set(options) - set(known))
    if unknown:
        raise TypeError(f"unexpected argument {unknown[0]!r}; there are {', '.join(known)}")


def rank_of(options: StoreOptions) -> int | None:
    """Return how many axes space has, where the options tell."""
    bounds = options.get("bounds")
    return None if bounds is None else np.atleast_2d(as_corners(plain_array(bounds, "bounds"))).shape[-1]


def prepare(positions: npt.NDArray[Any], options: StoreOptions) -> Prepared:
    """Check the options. Raises :class:`~zardine.errors.DataError`."""
    rank = positions.shape[1]
    bounds, _ = checked_bounds(options.get("bounds"), positions, "raise")
    chunks, _ = checked_shapes(options.get("chunk_shape"), None, bounds, len(positions))
    codecs = options.get("compressor"), options.get("codec_config"), options.get("checksum")
    layout = layout_from(options.get("shard_shape"), *codecs, rank)
    return Prepared(chunks, bounds, layout, plain_axes(options.get("axes"), rank))


def checked_bounds(
    bounds: Any, positions: Any, out_of_bounds: str
) -> tuple[tuple[tuple[float, ...], tuple[float, ...]], Any]:
    """The bounds of a new store, and which positions are to be stored (``None``: all).

    ``out_of_bounds`` says what happens to positions outside of ``bounds``: ``"raise"``, ``"ignore"`` (they are left
    out) or ``"expand"`` (the bounds grow). Raises :class:`~zardine.errors.DataError`.
    """
    if out_of_bounds not in ("raise", "ignore", "expand"):
        raise DataError(f"out_of_bounds is 'raise', 'ignore' or 'expand', not {out_of_bounds!r}")
    rank = positions.shape[1]
    low = high = None
    if len(positions):
        low, high = (corner.astype(np.float64) for corner in bounds_of(positions))
    if bounds is None:
        if low is None or high is None:
            raise DataError("there are no positions: give bounds=(lowest, highest corner) for an empty store")
        return (tuple(low.tolist()), tuple(high.tolist())), None
    try:
        corners = as_corners(plain_array(bounds, "bounds").astype(np.float64))
    except (TypeError, ValueError, OverflowError):
        corners = np.zeros(0)
    if corners.shape != (2, rank) or not np.isfinite(corners).all() or (corners[0] > corners[1]).any():
        raise DataError(f"bounds {shown(bounds)} are no lowest and highest corner of {rank} coordinates each")
    kept = None
    if low is not None and high is not None and ((low < corners[0]).any() or (high > corners[1]).any()):
        if out_of_bounds == "raise":
            raise DataError(f"positions from {low} to {high} are outside of the bounds {corners.tolist()}")
        if out_of_bounds == "ignore":
            kept = ((positions >= corners[0]) & (positions <= corners[1])).all(axis=1)
        else:
            corners = np.array([np.minimum(low, corners[0]), np.maximum(high, corners[1])])
    return (tuple(corners[0].tolist()), tuple(corners[1].tolist())), kept


def new_objects(given: GivenObjects, count: int) -> tuple[Objects, Groups | None]:
    """Make ``count`` objects without fragments (without ids: numbered from 0), and groups.

    Raises :class:`~zardine.errors.DataError`.
    """
    found = np.arange(count) if given.ids is None else checked_ids(given.ids, count, "object_ids")
    if len(np.unique(found)) != count:
        raise DataError("object_ids: each id can be there once")
    none = np.zeros(0, np.int64)
    objects = Objects(found, none, none, columns_of(given.attributes, count, "objects"))
    return objects, groups_of(given.groups, given.group_attributes, found)


def object_rows(given: GivenObjects, count: int) -> tuple[Objects, Ints, Groups | None]:
    """Make objects for ``count`` vertices with ids (without: all are object 0); gives the row of each vertex's object.

    Attributes have a row for each distinct id, ascending. Raises :class:`~zardine.errors.DataError`.
    """
    ids = np.zeros(count, np.int64) if given.ids is None else checked_ids(given.ids, count, "object_ids")
    distinct, row = np.unique(ids, return_inverse=True)
    if count == 0 and given.ids is None and not checked_mapping(given.attributes):
        distinct = np.zeros(1, np.int64)
    objects, found = new_objects(replace(given, ids=distinct), len(distinct))
    return objects, row.reshape(-1).astype(np.int64), found


def write_linked(
    path: StoreLike,
    kind: str,
    positions: npt.ArrayLike,
    links: Ints,
    given: GivenObjects,
    vertex_attributes: Attributes,
    link_attributes: Attributes,
    dtype: npt.DTypeLike | None,
    options: StoreOptions,
) -> None:
    """Write vertices and ``links`` ``(M, width)`` between them (rows of vertices), a graph or a mesh, to a new store.

    Raises :class:`~zardine.errors.DataError`, and ``TypeError`` for names that are no options.
    """
    check_options(options)
    points = checked_positions(positions, dtype)
    what = "edges" if kind == "graph" else "faces"
    if len(links) and (links.min() < 0 or links.max() >= len(points)):
        raise DataError(f"{what} name rows {int(links.min())} to {int(links.max())}; there are {len(points)} vertices")
    objects, row, groups = object_rows(given, len(points))
    columns = columns_of(vertex_attributes, len(points), "vertices")
    of_links = columns_of(link_attributes, len(links), what)
    chosen = prepare(points, options)
    keys, cell = unique_rows(chunks_of(points, chosen.chunk_shape))
    content, order = by_object(points, columns, keys, cell, row, objects)
    endpoints = inverse(order)[links] if len(links) else links
    content = replace(content, links={0: Links(endpoints, of_links)}, groups=groups)
    store_content(path, content, kind, chosen, options)


def store_content(path: StoreLike, content: Content, kind: str, prepared: Prepared, options: StoreOptions) -> None:
    """Write a new store of one level."""
    new = NewStore(
        kind=kind,
        chunk_shape=prepared.chunk_shape,
        bin_shape=None,
        bounds=prepared.bounds,
        grid=grid_of(content.keys, prepared.bounds, prepared.chunk_shape, prepared.layout),
        axes=prepared.axes,
        crs=options.get("crs"),
    )
    write_store(path, content, new, overwrite=options.get("overwrite", False))


def write_store(path: StoreLike, content: Content, new: NewStore, *, overwrite: bool = False) -> None:
    """Write a store of one level; others that write here wait.

    With ``overwrite`` an old store is there until one write changes to the new one.

    Raises :class:`~zardine.errors.NodeExistsError` where something is stored at ``path`` and ``overwrite`` is false.
    After an error nothing is left behind.
    """
    store, inner = find_place(path, mode="a")
    kind = KINDS[new.kind]
    nodes = list(plan_level(content, new.grid, always_links=kind.links))
    attributes, root = level_attributes(content, 0, nodes), _root(store, inner, new)
    if overwrite and replace_store(store, inner, nodes, attributes, root):
        return
    level = child(inner, "0")
    with store.lock(child(level, "zarr.json")):  # who writes here now is no writer that was killed
        _make_room(store, inner, overwrite)
        try:
            write_document(store, level, group({UNFINISHED: True}))
            write_nodes(store, level, nodes)
            write_document(store, level, group(attributes))
            create_ancestors(store, inner)
            write_document(store, inner, group(root))
        except BaseException:
            with suppress(Exception):
                store.erase_prefix(f"{level}/")
            raise


def _root(store: Store, path: str, new: NewStore) -> dict[str, Any]:
    place = describe(store, path).rstrip("/")
    name = place.rpartition("/")[2] if path or store.gives_files else "vectors"
    return new_root(
        name=name.removesuffix(".zv").removesuffix(".zarrvectors"),
        chunk_shape=new.chunk_shape,
        bin_shape=new.bin_shape,
        bounds=new.bounds,
        kind=new.kind,
        convention=KINDS[new.kind].conventions[0],
        axes=new.axes,
        crs=new.crs,
        notes=SHARDED_NOTE if new.grid.layout.shard_shape else None,
    )


def _make_room(store: Store, path: str, overwrite: bool) -> None:
    node = find_node(store, path)
    prefix = f"{path}/" if path else ""
    if node is not None:
        if not overwrite:
            raise taken(store, path, node)
        store.erase(child(path, "zarr.json"))
        store.erase_prefix(prefix)
        return
    leftover = find_node(store, child(path, "0"), 3)
    if leftover is None:
        return
    if isinstance(leftover, GroupMetadata) and (UNFINISHED in leftover.attributes or LEVEL in leftover.attributes):
        store.erase_prefix(f"{prefix}0/")
    else:
        raise ContainsGroupError(f"something that is no Zarr Vectors store is at {describe(store, child(path, '0'))}")


def replace_store(
    store: Store, path: str, nodes: Sequence[Node], attributes: Mapping[str, Any], root: Mapping[str, Any]
) -> bool:
    """Put a store of one level in the place of the one at ``path``; ``False`` where none is that can be opened."""
    place = child(path, "0")
    with store.lock(child(place, "zarr.json")):
        try:
            complete(store, path)
            owner = VectorStore.open(StorePath(store, path), writable=True)
            finish(owner.level(0))
            level = owner.level(0)
        except ZardineError:
            return False
        erase_levels(owner, [number for number in owner.level_numbers() if number > 0])
        level = owner.level(0)
        there = {node.path for node in nodes}
        removed = [name for name in nodes_below(level) if name not in there]

        def agreed(pending: Mapping[str, Any]) -> dict[str, Any]:
            nothing = dict.fromkeys(["vertices", *pending])
            block = new_level(0, 0, [])[LEVEL]
            to_come = {"root": group(root).to_dict(), "attributes": dict(attributes), "pending": dict(pending)}
            return {LEVEL: block, PENDING: nothing, NEXT: to_come}

        replace_below(store, place, nodes, removed, agreed, level.document.attributes, afresh=True)
        complete(store, path)
    return True


def complete(store: Store, path: str) -> None:
    """Bring to an end what :func:`replace_store` agreed on."""
    place = child(path, "0")
    level = find_node(store, place, 3)
    if not isinstance(level, GroupMetadata) or NEXT not in level.attributes:
        return
    to_come: Mapping[str, Any] = level.attributes[NEXT]
    for name in list(child_names(store, path)):
        if name != "0":
            erase_node(store, child(path, name), is_owned=True)
    write_document(store, path, parse_node_json(to_come["root"], "the next root document"))
    write_document(store, place, group({**to_come["attributes"], PENDING: to_come["pending"]}))
    carry_out(store, place)
