"""``zardine vectors shard``, ``unshard``, ``reshard`` and ``pyramid``."""

from __future__ import annotations

from typing import Any

import click

from zardine.cli.base import Command
from zardine.cli.errors import arguments
from zardine.cli.missing_paths import missing
from zardine.cli.options import json_option, path_argument, quiet_option, storage_option
from zardine.cli.vectors_options import FactorType, counted, parse_cells, place


@click.command("shard", cls=Command)
@path_argument()
@click.option(
    "--shape", default="8", callback=parse_cells, metavar="CELLS", help="Cells of a shard: 8, or 4,4,16 (default: 8)."
)
@storage_option()
@quiet_option()
@json_option()
def shard(path: str, shape: int | tuple[int, ...], storage_options: dict[str, Any], quiet: bool, as_json: bool) -> None:
    """Pack the cells of the store at PATH into shards.

    Every array of every level. What is stored so already stays untouched; an interrupted run leaves a store that reads
    complete, and the next one goes on.
    """
    _convert(path, shape, storage_options, quiet, as_json)


@click.command("unshard", cls=Command)
@path_argument()
@storage_option()
@quiet_option()
@json_option()
def unshard(path: str, storage_options: dict[str, Any], quiet: bool, as_json: bool) -> None:
    """Store each cell of the store at PATH as a file of its own.

    An interrupted run leaves a store that reads complete, and the next one goes on.
    """
    _convert(path, None, storage_options, quiet, as_json)


def _cells_or_none(ctx: click.Context, param: click.Parameter, value: str) -> Any:
    return None if value.lower() == "none" else parse_cells(ctx, param, value)


@click.command("reshard", cls=Command)
@path_argument()
@click.argument("shape", callback=_cells_or_none)
@storage_option()
@quiet_option()
@json_option()
def reshard(
    path: str, shape: int | tuple[int, ...] | None, storage_options: dict[str, Any], quiet: bool, as_json: bool
) -> None:
    """Change the shards of the store at PATH.

    SHAPE is the number of cells of a shard: 8, or 4,4,16; 'none' for no shards.
    """
    _convert(path, shape, storage_options, quiet, as_json)


@click.command("pyramid", cls=Command)
@path_argument()
@click.option("--levels", type=click.IntRange(min=1), default=1, help="How many levels (default: 1).")
@click.option("--factor", type=FactorType(), default=2.0, help="How many times as large bins become (default: 2).")
@click.option("--sparsity", type=FactorType(), default=1.0, help="Keep one object in so many (default: 1, all).")
@storage_option()
@quiet_option()
@json_option()
def pyramid(
    path: str,
    levels: int,
    factor: float,
    sparsity: float,
    storage_options: dict[str, Any],
    quiet: bool,
    as_json: bool,
) -> None:
    """Make coarser levels in the store at PATH.

    All vertices of a bin become one, their mean. Levels that are there are made anew.
    """
    from zardine.cli.output import print_json
    from zardine.cli.progress import progress
    from zardine.vectors import build_pyramid, describe_store

    with arguments(), missing(path), progress("Making levels", show=not (as_json or quiet)) as advance:
        store = place(path, storage_options, "r+")
        made = build_pyramid(store, factors=[(factor, sparsity)] * levels, progress=advance.report)
    counts = {each["level"]: each["vertex_count"] for each in describe_store(store)["levels"]}
    if as_json:
        print_json({"levels": made, "vertex_counts": counts})
    elif not quiet:
        for level in made:
            print(f"Level {level}: {counted(counts[level], 'vertex', 'vertices')}")


def _convert(
    path: str, shape: int | tuple[int, ...] | None, storage_options: dict[str, Any], quiet: bool, as_json: bool
) -> None:
    from zardine.cli.output import print_json
    from zardine.cli.progress import progress
    from zardine.vectors import reshard

    with arguments(), missing(path), progress("Converting arrays", show=not (as_json or quiet)) as advance:
        done = reshard(place(path, storage_options, "r+"), shape, progress=advance.report)
    arrays, cells = (value for name, value in done.items() if name != "shard_shape")
    if as_json:
        print_json({"arrays": arrays, "cells": cells, "shard_shape": shape})
    elif not quiet:
        print(f"{counted(arrays, 'array')} converted, {counted(cells, 'cell')}")
