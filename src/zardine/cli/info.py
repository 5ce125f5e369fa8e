"""``zardine info``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from zardine.cli.base import Command
from zardine.cli.errors import FAULTS, FINE, print_error
from zardine.cli.options import (
    complete_option,
    json_option,
    node_option,
    path_argument,
    storage_option,
    zarr_format_option,
)

if TYPE_CHECKING:
    from zardine.nodes.array import Array
    from zardine.nodes.group import Group


@click.command(cls=Command)
@path_argument()
@node_option()
@complete_option()
@click.option("--attributes", is_flag=True, help="Print all attributes in full.")
@click.option("--requests", is_flag=True, help="Tell what this command asked of the store.")
@zarr_format_option()
@storage_option()
@json_option()
def info(
    path: str,
    node: str | None,
    complete: bool,
    attributes: bool,
    requests: bool,
    zarr_format: int | None,
    storage_options: dict[str, Any],
    as_json: bool,
) -> int:
    """Describe the array or group at PATH.

    Shows type, shape, chunks, shards and codecs of an array, and how many nodes are below a group. Chunks are not
    read, and without --complete not looked for either. Of a store of Zarr Vectors it is told what that holds.
    """
    from zardine.cli.facts import request_facts
    from zardine.cli.paths import open_node
    from zardine.storage import CountingStore

    found = open_node(path, node, storage_options=storage_options, zarr_format=zarr_format, counted=requests)
    facts = _facts(found, complete=complete, watched=not as_json)
    if isinstance(found.store, CountingStore):
        facts["requests"] = request_facts(found.store.counts)
    if as_json:
        from zardine.cli.output import print_json

        print_json(facts)
    else:
        _print(facts, found, whole=attributes)
    if "broken_vectors" in facts:
        print_error(f"what the store of Zarr Vectors holds cannot be told: {facts['broken_vectors']}")
    return FAULTS if facts.get("broken_below") or "broken_vectors" in facts else FINE


def _facts(node: Array | Group, *, complete: bool, watched: bool) -> dict[str, Any]:
    from zardine.cli.facts import array_facts, foreign_facts, group_facts, stored_facts
    from zardine.cli.progress import progress
    from zardine.cli.vectors_stores import is_vectors
    from zardine.errors import ZardineError
    from zardine.nodes.array import Array
    from zardine.stores.path import StorePath
    from zardine.vectors import describe_store

    with progress("Looking at nodes", show=watched) as advance:
        facts = array_facts(node) if isinstance(node, Array) else group_facts(node, advance)
    facts.update(foreign_facts(node))
    if facts["kind"] == "group" and is_vectors(facts["attributes"]):
        try:
            facts["vectors"] = describe_store(StorePath(node.store, node.path), sizes=complete)
        except ZardineError as error:
            facts["broken_vectors"] = str(error)
    if complete:
        with progress("Looking at stored objects of arrays", show=watched) as advance:
            facts["stored"] = stored_facts(node, advance)
    return facts


def _print(facts: dict[str, Any], node: Array | Group, *, whole: bool) -> None:
    from zardine.cli.describe import array_rows, attribute_row, foreign_rows, group_rows, request_rows, stored_rows
    from zardine.cli.output import print_facts
    from zardine.nodes.array import Array

    if "vectors" in facts:
        from zardine.cli.vectors import vectors_rows

        rows = vectors_rows(facts["vectors"])
    else:
        rows = array_rows(facts, node) if isinstance(node, Array) else group_rows(facts)
    if "stored" in facts:
        rows += stored_rows(facts["stored"], sharded=facts.get("index_codecs") is not None)
    rows += foreign_rows(facts)
    if whole or "vectors" not in facts:  # whose attributes say what was told already
        rows.append(attribute_row(facts["attributes"], whole=whole))
    if "requests" in facts:
        rows += request_rows(facts["requests"])
    print_facts(rows)
