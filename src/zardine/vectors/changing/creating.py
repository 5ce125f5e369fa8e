"""Making a new store: everything is worked out and checked first, and the root document is written last.

What a writer that was killed leaves has no root document, and is erased by the next one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from zardine.errors import ContainsGroupError, DataError
from zardine.hierarchy.find import create_ancestors, describe, find_node, taken
from zardine.hierarchy.place import find_place
from zardine.metadata.documents import GroupMetadata
from zardine.stores.base import Store
from zardine.stores.resolve import StoreLike
from zardine.vectors.content.arguments import plain_array, shown
from zardine.vectors.content.content import Content
from zardine.vectors.content.plan import Grid, Node, group, plan_level
from zardine.vectors.format.documents import LEVEL, new_level, new_root
from zardine.vectors.format.kinds import KINDS
from zardine.vectors.format.layouts import SHARDED_NOTE, Layout
from zardine.vectors.format.ragged import bounds_of
from zardine.vectors.storing.cells import child
from zardine.vectors.storing.node_writing import write_document, write_nodes
from zardine.vectors.storing.store import UNFINISHED

FAMILIES = (
    "vertices",
    "links",
    "object_index",
    "vertex_attributes",
    "fragment_attributes",
    "link_attributes",
    "groups",
)
"""What ``arrays_present`` of a level names, where it is there."""


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
    convention: str | None = None
    level_more: Mapping[str, Any] = field(default_factory=dict)


def write_store(path: StoreLike, content: Content, new: NewStore, *, overwrite: bool = False) -> None:
    """Write a store of one level; others that write here wait.

    With ``overwrite`` an old store is there until one write changes to the new one.

    Raises :class:`~zardine.errors.NodeExistsError` where something is stored at ``path`` and ``overwrite`` is false.
    After an error nothing is left behind.
    """
    from zardine.vectors.changing.overwriting import replace_store

    store, inner = find_place(path, mode="a")
    kind = KINDS[new.kind]
    nodes = list(plan_level(content, new.grid, always_links=kind.links))
    attributes, root = level_attributes(content, 0, nodes, **new.level_more), _root(store, inner, new)
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
        convention=new.convention or KINDS[new.kind].conventions[0],
        axes=new.axes,
        crs=new.crs,
        notes=SHARDED_NOTE if new.grid.layout.shard_shape else None,
    )


def level_attributes(content: Content, level: int, nodes: Sequence[Node], **more: Any) -> dict[str, Any]:
    """The attributes of the group of a level that is made of ``nodes``."""
    paths = {node.path for node in nodes}
    present = [name for name in FAMILIES if name in paths]
    tiles = True if content.fragments.tile and len(content.positions) else None
    return new_level(level, len(content.positions), present, **{"fragments_tile": tiles, **more})


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
        corners = plain_array(bounds, "bounds").astype(np.float64)
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


def grid_of(content: Content, bounds: tuple[Sequence[float], Sequence[float]], shape: Any, layout: Layout) -> Grid:
    """The grid that holds ``bounds`` and every cell of ``content``; ``shape`` is that of chunks."""
    from zardine.vectors.format.grids import grid_for

    origin, extent = grid_for(bounds[0], bounds[1], shape)
    low, high = np.asarray(origin), np.asarray(origin) + extent
    if len(content.keys):
        low = np.minimum(low, content.keys.min(axis=0))
        high = np.maximum(high, content.keys.max(axis=0) + 1)
    return Grid(tuple(low.tolist()), tuple((high - low).tolist()), layout)


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
