"""Walking through a hierarchy without stopping at what is broken."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TypeAlias

from zardine.errors import NodeNotFoundError, ZardineError
from zardine.hierarchy.find import child_names

if TYPE_CHECKING:
    from zardine.nodes.array import Array
    from zardine.nodes.group import Group

Child: TypeAlias = "Array | Group | ZardineError"


def children(group: Group) -> Iterator[tuple[str, Child]]:
    """Yield names and nodes directly below, sorted; an error in the place of a node that cannot be opened."""
    try:
        members = list(group.items())
    except ZardineError:
        yield from _one_by_one(group)
    else:
        yield from members


def children_ahead(group: Group, level: int | None = None) -> Callable[[Group], list[tuple[str, Child]]]:
    """Return what gives :func:`children` of a group, and of those below it, down to ``level`` levels.

    Where the store is far away they are asked for ahead, depth after depth.
    """
    from zardine.engine.side_by_side import Descent
    from zardine.nodes.group import Group

    def groups(place: tuple[int, Group], found: list[tuple[str, Child]]) -> Iterator[tuple[int, Group]]:
        if level is None or place[0] < level:
            yield from ((place[0] + 1, node) for _, node in found if isinstance(node, Group))

    below: Descent[tuple[int, Group], list[tuple[str, Child]]] = Descent(
        group.store,
        (1, group),
        lambda place: list(children(place[1])),
        groups,
        name=lambda place: place[1].path,
        size=len,
    )
    return lambda found: below.of((0, found))


def nodes_below(group: Group) -> Iterator[tuple[str, Child]]:
    """Yield absolute paths and nodes on all levels below; an error in the place of a node that cannot be opened."""
    from zardine.nodes.group import Group

    below, waiting = children_ahead(group), [group]
    while waiting:
        parent = waiting.pop()
        for name, node in below(parent):
            yield f"{parent.name.rstrip('/')}/{name}", node
            if isinstance(node, Group):
                waiting.append(node)


def _one_by_one(group: Group) -> Iterator[tuple[str, Child]]:
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
