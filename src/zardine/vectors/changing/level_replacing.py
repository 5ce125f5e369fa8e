"""Level 0 as a whole: all that it holds in memory, and something else stored in its place at one moment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from zardine.errors import DataError
from zardine.hierarchy.find import load_group
from zardine.hierarchy.update import update_node
from zardine.metadata.documents import GroupMetadata
from zardine.stores.resolve import StoreLike
from zardine.vectors.changing.creating import FAMILIES, grid_of, level_attributes
from zardine.vectors.changing.levels import erase_levels
from zardine.vectors.content.content import Content
from zardine.vectors.content.plan import Node, plan_level
from zardine.vectors.format.documents import LEVEL, ROOT
from zardine.vectors.format.kinds import KINDS
from zardine.vectors.format.ragged import bounds_of
from zardine.vectors.reading.loading import load_cells
from zardine.vectors.reading.loading_links import load_links
from zardine.vectors.reading.loading_objects import load_groups, load_manifests, with_objects
from zardine.vectors.reading.query import ALL
from zardine.vectors.storing.level_nodes import replaced_nodes
from zardine.vectors.storing.store import Level, VectorStore
from zardine.vectors.storing.transactions import finish, replace_nodes


def open_to_change(path: StoreLike) -> Level:
    """Level 0 of a store, without changes that are not carried out yet. Raises :class:`~zardine.errors.DataError`."""
    owner = VectorStore.open(path, writable=True)
    finish(owner.level(0))
    level = owner.level(0)
    if level.document.block.get("chunk_attribute_name") is not None:
        raise DataError(f"{owner.name} is divided by an attribute: such stores can be read, not changed")
    return level


def kind_of(level: Level) -> str:
    """The geometry of a store."""
    kinds = level.owner.root.geometry_types
    return kinds[0] if kinds else "point_cloud"


def load_whole(level: Level) -> Content:
    """Everything that a level holds, but links to other levels."""
    content = load_cells(level, vertex_attributes=ALL, fragment_attributes=ALL)
    content = with_objects(level, content, load_manifests(level), attributes=ALL)
    links = load_links(level, content, attributes=ALL)
    return content.changed(links={} if links is None else {0: links}, groups=load_groups(level))


def plan_whole(level: Level, content: Content, bounds: Any = None) -> list[Node]:
    """Every node of the layout for ``content``, stored as the level is."""
    vertices = level.cells("vertices")
    assert vertices is not None
    kind = KINDS.get(kind_of(level))
    corners = level.owner.root.bounds if bounds is None else bounds
    grid = grid_of(content, corners, level.document.chunk_shape, vertices.layout)
    return list(plan_level(content, grid, always_links=kind is not None and kind.links))


def replace_level(level: Level, content: Content) -> None:
    """Store ``content`` in the place of what level 0 holds. Coarser levels go: they would no longer agree.

    An error while the new is stored leaves everything as it was.
    """
    owner, root = level.owner, level.owner.root
    low, high = np.asarray(root.bounds[0]), np.asarray(root.bounds[1])
    if len(content.positions):
        lowest, highest = bounds_of(content.positions)
        low, high = np.minimum(low, lowest), np.maximum(high, highest)
    bounds = (tuple(low.tolist()), tuple(high.tolist()))
    nodes = plan_whole(level, content, bounds)
    coarser = [number for number in owner.level_numbers() if number > 0]

    def before() -> None:
        erase_levels(owner, coarser, links=False)
        if bounds != root.bounds:
            _set_bounds(owner, bounds)

    removed = replaced_nodes(level, {node.path for node in nodes}, other_levels=True)
    replace_nodes(level, nodes, removed, attributes_for(level, content, nodes), before=before)


def attributes_for(level: Level, content: Content, nodes: Sequence[Node]) -> dict[str, Any]:
    """The attributes of a level that ``nodes`` are all of; what they do not say stays."""
    fresh = level_attributes(content, level.document.level, nodes)[LEVEL]
    theirs = [name for name in level.document.block.get("arrays_present", ()) if name not in FAMILIES]
    block = {**level.document.block, **fresh, "arrays_present": [*fresh["arrays_present"], *theirs]}
    if "fragments_tile" not in fresh:
        block.pop("fragments_tile", None)
    return {**level.document.attributes, LEVEL: block}


def _set_bounds(owner: VectorStore, bounds: tuple[Sequence[float], Sequence[float]]) -> None:
    def change(old: GroupMetadata) -> GroupMetadata:
        block: Mapping[str, Any] = {**old.attributes[ROOT], "bounds": [list(corner) for corner in bounds]}
        return old.with_attributes({**old.attributes, ROOT: block})

    update_node(owner.store, owner.path, load_group(owner.store, owner.path, 3), change)
