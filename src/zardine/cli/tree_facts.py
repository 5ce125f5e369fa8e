"""A hierarchy as nested facts: what ``zardine tree`` shows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from zardine.cli.facts import broken_facts, short_facts
from zardine.cli.walk import children

if TYPE_CHECKING:
    from zardine.cli.progress import Advance
    from zardine.nodes.array import Array
    from zardine.nodes.group import Group


def tree_facts(node: Array | Group, *, level: int | None, attributes: bool, advance: Advance) -> dict[str, Any]:
    """The facts of a node; those of a group have ``children``, down to ``level`` levels below ``node``."""
    from zardine.nodes.group import Group

    advance()
    facts = short_facts(node)
    if attributes:
        facts["attributes"] = node.attrs.asdict()
    if isinstance(node, Group) and level != 0:
        below = None if level is None else level - 1
        facts["children"] = [
            broken_facts(f"{node.name.rstrip('/')}/{name}", child)
            if isinstance(child, Exception)
            else tree_facts(child, level=below, attributes=attributes, advance=advance)
            for name, child in children(node)
        ]
    return facts


def broken_paths(facts: Mapping[str, Any]) -> list[str]:
    """Paths of the nodes that could not be opened."""
    if facts["kind"] == "broken":
        return [facts["path"]]
    return [path for child in facts.get("children", ()) for path in broken_paths(child)]
