"""Which nodes of a level are parts of its layout, and which are somebody's own and stay as they are."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from zardine.metadata.documents import ArrayMetadata, GroupMetadata
from zardine.vectors.format.cell_documents import NONEMPTY
from zardine.vectors.format.links import signed
from zardine.vectors.storing.cells import CellArray, child
from zardine.vectors.storing.store import Level
from zardine.vectors.storing.transactions import reopened

_COLUMNS = ("vertex_attributes", "fragment_attributes", "object_attributes", "group_attributes")

_SINGLE = ("vertices", "vertex_fragments", "link_fragments", "object_index", "groups")

_OBJECT_INDEX = ("manifests", "object_ids")

_NO_CELLS = ("object_index", "object_attributes", "groups", "group_attributes")

_FAMILIES = (
    *("vertices", "vertex_attributes", "vertex_fragments", "fragment_attributes"),
    *("links", "link_attributes", "link_fragments", "cross_chunk_links", "cross_chunk_link_attributes"),
)


def nodes_below(level: Level, relative: str = "") -> list[str]:
    """Paths of all nodes below a level; what is in a group comes before the group."""
    found = []
    for name in level.names(relative):
        path = f"{relative}/{name}" if relative else name
        node = level.node(path)
        if isinstance(node, GroupMetadata):
            found += [*nodes_below(level, path), path]
        elif isinstance(node, ArrayMetadata):
            found.append(path)
    return found


def replaced_nodes(level: Level, planned: Collection[str], *, other_levels: bool = False) -> list[str]:
    """The nodes that go when those at the paths ``planned`` are stored as all that level 0 holds.

    Parts of the layout only; nodes that the layout does not know stay, and links to other levels unless these go too.
    """
    there = [path for path in nodes_below(level) if path not in planned]
    gone = [path for path in there if _is_part(path) or (other_levels and links_to_levels(path))]
    return with_empty_groups(level, gone, planned)


def with_empty_groups(level: Level, gone: Iterable[str], planned: Collection[str] = ()) -> list[str]:
    """``gone``, and the groups of families that have nothing left when they are gone."""
    away = dict.fromkeys(gone)
    there = nodes_below(level)
    for path in there:  # groups come after what is in them
        parts = path.split("/")
        family = parts[0] in (*_COLUMNS, "links", "link_attributes") and path not in planned
        below = [each for each in (*there, *planned) if each.startswith(f"{path}/")]
        if family and path not in away and below and all(each in away for each in below):
            away[path] = None
    return list(away)


def links_to_levels(path: str) -> bool:
    """Whether a node is part of links to another level, or of their attributes."""
    return _delta_of(path) not in (None, signed(0))


def links_between(path: str, delta: int) -> bool:
    """Whether a node is part of the links of one level difference, or of their attributes."""
    return _delta_of(path) == signed(delta)


def _delta_of(path: str) -> str | None:
    """The level difference of links in a path, as it stands there; ``None`` for other nodes, and for all links."""
    parts = path.split("/")
    place = {"links": 1, "link_attributes": 2}.get(parts[0], len(parts))
    return parts[place] if place < len(parts) else None


def _is_part(path: str) -> bool:
    parts = path.split("/")
    if len(parts) == 1:
        return path in _SINGLE
    if parts[0] in _COLUMNS:
        return len(parts) == 2
    if parts[0] == "object_index":
        return len(parts) == 2 and parts[1] in _OBJECT_INDEX
    return links_between(path, 0)


def cell_arrays(level: Level, below: str = "") -> Iterator[tuple[str, CellArray]]:
    """Go through every array of a level with one cell for each chunk, by its path below the level."""
    for name in level.names(below):
        relative = f"{below}/{name}" if below else name
        if relative in _NO_CELLS:
            continue
        node = level.node(relative)
        if isinstance(node, GroupMetadata):
            yield from cell_arrays(level, relative)
        elif isinstance(node, ArrayMetadata) and has_cells(relative, node):
            yield relative, reopened(level.owner.store, child(level.path, relative), node)


def has_cells(relative: str, node: ArrayMetadata) -> bool:
    """Tell whether an array below a level is one with a cell for each chunk, and not one of somebody's own."""
    family = relative.split("/")[0]
    ours = family in _FAMILIES or "zv_array" in node.attributes or NONEMPTY in node.attributes
    return ours and family not in _NO_CELLS and node.data_type.name in ("bytes", "variable_length_bytes")
