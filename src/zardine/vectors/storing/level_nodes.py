"""Which nodes of a level are parts of its layout, and which are somebody's own and stay as they are."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from functools import cache, partial
from typing import Final

from zardine.engine.freshness import is_far
from zardine.engine.side_by_side import begun
from zardine.metadata.documents import ArrayMetadata, GroupMetadata
from zardine.metadata.formats import NodeMetadata
from zardine.vectors.format.cell_documents import NONEMPTY
from zardine.vectors.format.links import signed
from zardine.vectors.storing.cells import CellArray, child
from zardine.vectors.storing.store import Level
from zardine.vectors.storing.transactions import reopened

_COLUMNS = ("vertex_attributes", "fragment_attributes", "object_attributes", "group_attributes")

_SINGLE = ("vertices", "vertex_fragments", "link_fragments", "object_index", "groups")

_OBJECT_INDEX = ("manifests", "object_ids")

NO_CELLS = ("object_index", "object_attributes", "groups", "group_attributes")

_FAMILIES = (
    *("vertices", "vertex_attributes", "vertex_fragments", "fragment_attributes"),
    *("links", "link_attributes", "link_fragments", "cross_chunk_links", "cross_chunk_link_attributes"),
)


_DEPTHS: Final = {**dict.fromkeys((*_COLUMNS, "object_index"), 1), "links": 2, "link_attributes": 3}
"""Of families of nodes, how deep below the level they have groups."""


class Survey:
    """Names and documents of all that is below a level: where the store is far away those of a depth wait together.

    Elsewhere each is asked for when it is wanted. What a request raises is raised then, so that who goes from node to
    node, and stops at what is damaged, meets the same as if nothing had been asked for ahead.
    """

    def __init__(
        self,
        level: Level,
        look: Callable[[str], NodeMetadata | None] | None = None,
        *,
        names: Iterable[str] = (),
        nodes: Iterable[str] = (),
        left_out: Collection[str] = (),
    ) -> None:
        """Ask for all, if the store is far away.

        ``look`` gives a node by its path; ``names`` below these, and ``nodes``, are wanted in any case; nodes that are
        ``left_out`` are not, nor what is below them.
        """
        self._level, self._look = level, level.node if look is None else look
        self._names: dict[str, Callable[[], list[str]]] = {}
        self._nodes: dict[str, Callable[[], NodeMetadata | None]] = {}
        if is_far(level.owner.store):
            self._ask(["", *names], nodes)
            self._go_through(left_out)

    def names(self, relative: str) -> list[str]:
        """See :meth:`Level.names`."""
        return self._names.get(relative, partial(self._level.names, relative))()

    def node(self, relative: str) -> NodeMetadata | None:
        """See :meth:`Level.node`."""
        return self._nodes.get(relative, partial(self._look, relative))()

    def _go_through(self, left_out: Collection[str]) -> None:
        groups = [""]
        while groups:
            below: list[str] = []
            for group in groups:  # it grows: the names below some groups are here before their documents
                with suppress(Exception):  # it is raised to who asks for it
                    paths = [path for path in _paths(group, self.names(group)) if path not in left_out]
                    below += paths
                    groups += [path for path in paths if path in self._names]
            self._ask([path for path in below if _is_group_as_a_rule(path)], below)
            known, groups = set(groups), []
            for path in below:
                with suppress(Exception):
                    groups += [path] if path not in known and isinstance(self.node(path), GroupMetadata) else []
            self._ask(groups, ())

    def _ask(self, names: Iterable[str], nodes: Iterable[str]) -> None:
        """Ask for what was not asked for yet, all at the same time."""
        lists = [each for each in dict.fromkeys(names) if each not in self._names]
        documents = [each for each in dict.fromkeys(nodes) if each not in self._nodes]
        calls = [partial(self._level.names, each) for each in lists]
        looks = [partial(self._look, each) for each in documents]
        found = [cache(each) for each in begun(self._level.owner.store, [*calls, *looks])]
        self._names |= zip(lists, found[: len(lists)], strict=True)
        self._nodes |= zip(documents, found[len(lists) :], strict=True)


def _paths(group: str, names: Iterable[str]) -> list[str]:
    return [f"{group}/{name}" if group else name for name in names]


def _is_group_as_a_rule(path: str) -> bool:
    family, *others = path.split("/")
    return len(others) < _DEPTHS.get(family, 0)


def nodes_below(level: Level, look: Callable[[str], NodeMetadata | None] | None = None) -> list[str]:
    """Paths of all nodes below a level; what is in a group comes before the group. ``look`` gives one by its path."""
    look = level.node if look is None else look
    return _listed(Survey(level, partial(_without_attributes, look) if is_far(level.owner.store) else look), "")


def _listed(survey: Survey, relative: str) -> list[str]:
    found = []
    for path in _paths(relative, survey.names(relative)):
        node = survey.node(path)
        if isinstance(node, GroupMetadata):
            found += [*_listed(survey, path), path]
        elif isinstance(node, ArrayMetadata):
            found.append(path)
    return found


def _without_attributes(look: Callable[[str], NodeMetadata | None], path: str) -> NodeMetadata | None:
    """A node, as of many that are in memory together: without lists of chunks."""
    node = look(path)
    return node.with_attributes({}) if isinstance(node, ArrayMetadata) else node


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


def cell_arrays(level: Level) -> Iterator[tuple[str, CellArray]]:
    """Go through every array of a level with one cell for each chunk, by its path below the level."""
    return _cell_arrays(level, Survey(level, left_out=NO_CELLS), "")


def _cell_arrays(level: Level, survey: Survey, below: str) -> Iterator[tuple[str, CellArray]]:
    for relative in _paths(below, survey.names(below)):
        if relative in NO_CELLS:
            continue
        node = survey.node(relative)
        if isinstance(node, GroupMetadata):
            yield from _cell_arrays(level, survey, relative)
        elif isinstance(node, ArrayMetadata) and has_cells(relative, node):
            yield relative, reopened(level.owner.store, child(level.path, relative), node)


def has_cells(relative: str, node: ArrayMetadata) -> bool:
    """Tell whether an array below a level is one with a cell for each chunk, and not one of somebody's own."""
    family = relative.split("/")[0]
    ours = family in _FAMILIES or "zv_array" in node.attributes or NONEMPTY in node.attributes
    return ours and family not in NO_CELLS and node.data_type.name in ("bytes", "variable_length_bytes")
