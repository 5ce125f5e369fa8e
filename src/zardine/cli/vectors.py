"""``zardine vectors``: stores of points, lines, graphs and meshes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from zardine.cli.base import Command, LazyCommand, LazyGroup
from zardine.cli.errors import FAULTS, FINE, arguments
from zardine.cli.options import json_option, path_argument, quiet_option, traceback_option

COMMANDS = {
    "info": LazyCommand("zardine.cli.vectors:info", "Describe the Zarr Vectors store at PATH."),
    "validate": LazyCommand("zardine.cli.vectors:validate", "Find every fault of the Zarr Vectors store at PATH."),
    "repair": LazyCommand("zardine.cli.vectors:repair", "Put right what can be put right in the store at PATH."),
    "shard": LazyCommand("zardine.cli.vectors:shard", "Pack the cells of the store at PATH into shards."),
    "unshard": LazyCommand("zardine.cli.vectors:unshard", "Store each cell of the store at PATH as a file of its own."),
    "reshard": LazyCommand("zardine.cli.vectors:reshard", "Change the shards of the store at PATH."),
    "pyramid": LazyCommand("zardine.cli.vectors:pyramid", "Make coarser levels in the store at PATH."),
}


@click.group("vectors", cls=LazyGroup, lazy_commands=COMMANDS)
@traceback_option(hidden=True)
def vectors() -> None:
    """Look at Zarr Vectors stores, and work on them.

    PATH is a directory or a URL. 'zardine vectors COMMAND --help' explains a command.
    """


@click.command("info", cls=Command)
@path_argument()
@json_option()
def info(path: str, as_json: bool) -> None:
    """Describe the Zarr Vectors store at PATH.

    Shows geometry, axes, bounds and chunks, and for each level how many vertices, objects and links it has and how it
    is stored. Cells are not read.
    """
    from zardine.cli.output import print_facts, print_json
    from zardine.vectors import describe_store

    with arguments():
        facts = describe_store(path)
    if as_json:
        print_json(facts)
    else:
        print_facts(_rows(facts))


@click.command("validate", cls=Command)
@path_argument()
@quiet_option()
@json_option()
def validate(path: str, quiet: bool, as_json: bool) -> int:
    """Find every fault of the Zarr Vectors store at PATH.

    Reads everything. The exit code is 1 if there are errors; warnings are what readers get along with.
    """
    from zardine.cli.output import clean, print_json
    from zardine.cli.progress import progress
    from zardine.vectors import validate

    with arguments(), progress("Checking levels", show=not (as_json or quiet)) as advance:
        report = validate(path, progress=advance.report)
    if as_json:
        names = ("severity", "code", "place", "message")
        found = [{name: getattr(each, name) for name in names} for each in report.findings]
        print_json({"ok": report.ok, "findings": found, "vertex_counts": report.vertex_counts})
    else:
        for each in report.errors if quiet else report.findings:
            print(clean(str(each)))
        if not quiet:
            print(f"{_count(len(report.errors), 'error')}, {_count(len(report.warnings), 'warning')}")
    return FINE if report.ok else FAULTS


@click.command("repair", cls=Command)
@path_argument()
@click.option("--drop-lost", is_flag=True, help="Forget what refers to lost data, so that the rest can be read.")
@quiet_option()
@json_option()
def repair(path: str, drop_lost: bool, quiet: bool, as_json: bool) -> None:
    """Put right what can be put right in the store at PATH.

    Brings interrupted changes to an end, lists chunks that are stored, fills up attributes that lack rows, and counts
    vertices anew. Values that are lost become fill values: 0, NaN, missing text. With --drop-lost, chunks whose
    vertices are lost go, and what refers to them; the count of vertices is then of those that are left, which may be
    0. What is lost stays lost: take a copy first. 'zardine vectors validate' shows what is left.
    """
    from zardine.cli.output import clean, print_json
    from zardine.vectors import repair

    with arguments():
        lines = repair(path, drop_lost=drop_lost)
    if as_json:
        print_json({"done": lines})
    elif not quiet:
        print("\n".join(map(clean, lines)) or "Nothing to do")


def _shape(text: str) -> int | tuple[int, ...]:
    parts = text.replace("x", ",").split(",")
    try:
        numbers = tuple(int(part) for part in parts)
    except ValueError:
        raise click.BadParameter(f"{text!r} is no number of cells such as 8, and no shape such as 4,4,16") from None
    return numbers[0] if len(numbers) == 1 else numbers


@click.command("shard", cls=Command)
@path_argument()
@click.option("--shape", default="8", metavar="CELLS", help="Cells of a shard: 8, or 4,4,16 (default: 8).")
@quiet_option()
@json_option()
def shard(path: str, shape: str, quiet: bool, as_json: bool) -> None:
    """Pack the cells of the store at PATH into shards.

    Every array of every level. What is stored so already stays untouched; an interrupted run leaves a store that reads
    complete, and the next one goes on.
    """
    _convert(path, _shape(shape), quiet, as_json)


@click.command("unshard", cls=Command)
@path_argument()
@quiet_option()
@json_option()
def unshard(path: str, quiet: bool, as_json: bool) -> None:
    """Store each cell of the store at PATH as a file of its own.

    An interrupted run leaves a store that reads complete, and the next one goes on.
    """
    _convert(path, None, quiet, as_json)


@click.command("reshard", cls=Command)
@path_argument()
@click.argument("shape")
@quiet_option()
@json_option()
def reshard(path: str, shape: str, quiet: bool, as_json: bool) -> None:
    """Change the shards of the store at PATH.

    SHAPE is the number of cells of a shard: 8, or 4,4,16; 'none' for no shards.
    """
    _convert(path, None if shape.lower() == "none" else _shape(shape), quiet, as_json)


@click.command("pyramid", cls=Command)
@path_argument()
@click.option("--levels", type=click.IntRange(min=1), default=1, help="How many levels (default: 1).")
@click.option("--factor", type=float, default=2.0, help="How many times as large bins become (default: 2).")
@click.option("--sparsity", type=float, default=1.0, help="Keep one object in so many (default: 1, all).")
@quiet_option()
@json_option()
def pyramid(path: str, levels: int, factor: float, sparsity: float, quiet: bool, as_json: bool) -> None:
    """Make coarser levels in the store at PATH.

    All vertices of a bin become one, their mean. Levels that are there are made anew.
    """
    from zardine.cli.output import print_json
    from zardine.cli.progress import progress
    from zardine.vectors import build_pyramid, describe_store

    with arguments(), progress("Making levels", show=not (as_json or quiet)) as advance:
        made = build_pyramid(path, factors=[(factor, sparsity)] * levels, progress=advance.report)
    counts = {each["level"]: each["vertex_count"] for each in describe_store(path)["levels"]}
    if as_json:
        print_json({"levels": made, "vertex_counts": counts})
    elif not quiet:
        for level in made:
            print(f"Level {level}: {_count(counts[level], 'vertex', 'vertices')}")


def _convert(path: str, shape: int | tuple[int, ...] | None, quiet: bool, as_json: bool) -> None:
    from zardine.cli.output import print_json
    from zardine.cli.progress import progress
    from zardine.vectors import reshard

    with arguments(), progress("Converting arrays", show=not (as_json or quiet)) as advance:
        done = reshard(path, shape, progress=advance.report)
    if as_json:
        print_json(done)
    elif not quiet:
        arrays, cells = (value for name, value in done.items() if name != "shard_shape")
        print(f"{_count(arrays, 'array')} converted, {_count(cells, 'cell')}")


def _rows(facts: Mapping[str, Any]) -> list[tuple[str, str]]:
    from zardine.cli.output import clean

    low, high = facts["bounds"]
    names = [str(axis.get("name")) for axis in facts["axes"]]
    rows = [
        ("Geometry", ", ".join(facts["geometry_types"])),
        ("Path", facts["path"]),
        ("Format", f"Zarr Vectors {facts['format_version']}"),
        ("Bounds", ", ".join(f"{name} {a:g} to {b:g}" for name, a, b in zip(names, low, high, strict=True))),
        ("Chunks", " × ".join(f"{size:g}" for size in facts["chunk_shape"])),
        ("Bins", " × ".join(f"{size:g}" for size in facts["bin_shape"])),
    ]
    for level in facts["levels"]:
        told = [_count(level["vertex_count"], "vertex", "vertices"), f"{level['dtype']}"]
        told += [_count(level[what], what[:-1]) for what in ("objects", "groups", "links") if level[what] is not None]
        rows.append((f"Level {level['level']}", ", ".join(told)))
        grid = " × ".join(map(str, level["grid_shape"] or ()))
        shards = level["shard_shape"]
        packed = f"shards of {' × '.join(map(str, shards))} cells" if shards else "no shards"
        codecs = ", ".join(level["compressors"]) or "no compression"
        rows.append(("", f"{_count(level['chunks'] or 0, 'chunk')} in a grid of {grid}; {packed}; {codecs}"))
        for kind in ("vertex", "fragment", "link", "object"):
            if level[f"{kind}_attributes"]:
                rows.append(
                    ("", f"attributes of {kind}s: {', '.join(level[f'{kind}_attributes'])}".replace("exs", "ices"))
                )
    return [(label, clean(value)) for label, value in rows]


def _count(number: int, one: str, many: str | None = None) -> str:
    return f"{number:,} {one if number == 1 else many or one + 's'}"
