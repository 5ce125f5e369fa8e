"""``zardine tree``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import click

from zardine.cli.base import Command
from zardine.cli.errors import FAULTS, FINE, print_error
from zardine.cli.options import json_option, node_option, path_argument, storage_option, zarr_format_option
from zardine.cli.output import say

if TYPE_CHECKING:
    from zardine.cli.progress import Advance
    from zardine.cli.walk import Child
    from zardine.nodes.array import Array
    from zardine.nodes.group import Group

    Below: TypeAlias = Callable[[Group], list[tuple[str, Child]]]


@click.command(cls=Command)
@path_argument()
@node_option()
@click.option("-L", "--level", type=click.IntRange(min=0), metavar="N", help="Go N levels down; 0 shows PATH alone.")
@click.option("--attributes", is_flag=True, help="Show the attributes of every node.")
@zarr_format_option()
@storage_option()
@json_option()
def tree(
    path: str,
    node: str | None,
    level: int | None,
    attributes: bool,
    zarr_format: int | None,
    storage_options: dict[str, Any],
    as_json: bool,
) -> int:
    """Draw what is stored at PATH as a tree.

    Arrays are shown with data type, shape, chunks and shards. A node whose metadata cannot be read is marked, and the
    exit code is 1.
    """
    from zardine.cli.facts import foreign_facts
    from zardine.cli.paths import open_node
    from zardine.cli.progress import progress
    from zardine.cli.walk import children_ahead
    from zardine.errors import UnsupportedError
    from zardine.nodes.group import Group
    from zardine.shown_text import without_secrets

    found = open_node(path, node, storage_options=storage_options, zarr_format=zarr_format)
    try:
        with progress("Looking at nodes", show=not as_json) as advance:
            below = children_ahead(found, level) if isinstance(found, Group) and level != 0 else None
            facts = _tree_facts(found, below, level=level, attributes=attributes, advance=advance) | foreign_facts(
                found
            )
        _print(facts, without_secrets(path), as_json=as_json)
        broken = _broken_paths(facts)
    except RecursionError:
        raise UnsupportedError(
            f"{path!r} is nested too deeply to be shown whole: --level N goes N levels down"
        ) from None
    if broken:
        print_error(f"{len(broken):,} of the nodes cannot be read: {', '.join(broken[:5])}")
    return FAULTS if broken else FINE


def _print(facts: dict[str, Any], path: str, *, as_json: bool) -> None:
    if as_json:
        from zardine.cli.output import print_json

        print_json(facts)
    else:
        from zardine.cli.console import make_console
        from zardine.cli.describe import foreign_rows
        from zardine.cli.drawing import draw

        console = make_console()
        console.print(draw(facts, path, console.width))
        for label, lines in foreign_rows(facts):
            for line in lines:
                say(f"{label.lower()}: {line}")


def _tree_facts(
    node: Array | Group, below: Below | None, *, level: int | None, attributes: bool, advance: Advance
) -> dict[str, Any]:
    """Return the facts of a node; those of a group have ``children``, down to ``level`` levels below ``node``.

    ``below`` gives them, if there are any.
    """
    from zardine.cli.facts import broken_facts, short_facts
    from zardine.nodes.group import Group

    advance()
    facts = short_facts(node)
    if attributes:
        facts["attributes"] = node.attrs.asdict()
    if isinstance(node, Group) and below is not None and level != 0:
        deeper = None if level is None else level - 1
        facts["children"] = [
            broken_facts(f"{node.name.rstrip('/')}/{name}", child)
            if isinstance(child, Exception)
            else _tree_facts(child, below, level=deeper, attributes=attributes, advance=advance)
            for name, child in below(node)
        ]
    return facts


def _broken_paths(facts: Mapping[str, Any]) -> list[str]:
    """Return paths of the nodes that could not be opened."""
    if facts["kind"] == "broken":
        return [facts["path"]]
    return [path for child in facts.get("children", ()) for path in _broken_paths(child)]
