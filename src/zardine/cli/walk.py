"""Walking through a hierarchy without stopping at what is broken."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from zardine.errors import NodeNotFoundError, ZardineError
from zardine.hierarchy.find import child_names

if TYPE_CHECKING:
    from zardine.nodes.array import Array
    from zardine.nodes.group import Group


def children(group: Group) -> Iterator[tuple[str, Array | Group | ZardineError]]:
    """Yield names and nodes directly below, sorted; an error in the place of a node that cannot be opened."""
    try:
        members = list(group.items())
    except ZardineError:
        yield from _one_by_one(group)
    else:
        yield from members


def nodes_below(group: Group) -> Iterator[tuple[str, Array | Group | ZardineError]]:
    """Yield absolute paths and nodes on all levels below; an error in the place of a node that cannot be opened."""
    from zardine.nodes.group import Group

    waiting = [group]
    while waiting:
        parent = waiting.pop()
        for name, node in children(parent):
            yield f"{parent.name.rstrip('/')}/{name}", node
            if isinstance(node, Group):
                waiting.append(node)


def _one_by_one(group: Group) -> Iterator[tuple[str, Array | Group | ZardineError]]:
    consolidated = group.metadata.consolidated_metadata
    if consolidated is None:
        names = list(child_names(group.store, group.path, group.metadata.zarr_format))
    else:
        names = [name for name in consolidated if "/" not in name]
    for name in sorted(names):
        try:
            yield name, group[name]
        except NodeNotFoundError:
            pass  # a folder of something else
        except ZardineError as error:
            yield name, error
