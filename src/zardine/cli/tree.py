"""``zardine tree``."""

from __future__ import annotations

from typing import Any

import click

from zardine.cli.base import Command
from zardine.cli.errors import FAULTS, FINE, print_error
from zardine.cli.options import json_option, node_option, path_argument, storage_option, zarr_format_option


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
    from zardine.cli.open_node import open_node
    from zardine.cli.progress import progress
    from zardine.cli.tree_facts import broken_paths, tree_facts
    from zardine.errors import UnsupportedError
    from zardine.stores.url_text import without_password

    found = open_node(path, node, storage_options=storage_options, zarr_format=zarr_format)
    try:
        with progress("Looking at nodes", show=not as_json) as advance:
            facts = tree_facts(found, level=level, attributes=attributes, advance=advance)
        _print(facts, without_password(path), as_json=as_json)
        broken = broken_paths(facts)
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
        from zardine.cli.drawing import draw

        console = make_console()
        console.print(draw(facts, path, console.width))
