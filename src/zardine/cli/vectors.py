"""``zardine vectors``: stores of points, lines, graphs and meshes."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

import click

from zardine.cli.base import Command, LazyCommand, LazyGroup
from zardine.cli.errors import FAULTS, FINE, arguments
from zardine.cli.options import (
    ShapeType,
    complete_option,
    json_option,
    node_option,
    path_argument,
    quiet_option,
    storage_option,
    traceback_option,
)
from zardine.cli.output import counted, print_faults, say
from zardine.cli.paths import missing, store_at
from zardine.cli.vectors_stores import convert, summary
from zardine.shown_text import printable

if TYPE_CHECKING:
    from zardine.cli.output import Row

_IMPORT = "Write what is in FILE to a new Zarr Vectors store at PATH."
_EXPORT = "Write a level of the Zarr Vectors store at PATH to FILE."
COMMANDS = {
    "info": LazyCommand("zardine.cli.vectors:info", "Describe the Zarr Vectors store at PATH."),
    "validate": LazyCommand("zardine.cli.vectors:validate", "Find every fault of the Zarr Vectors store at PATH."),
    "repair": LazyCommand("zardine.cli.vectors:repair", "Put right what can be put right in the store at PATH."),
    "shard": LazyCommand("zardine.cli.vectors:shard", "Pack the cells of the store at PATH into shards."),
    "unshard": LazyCommand("zardine.cli.vectors:unshard", "Store each cell of the store at PATH as a file of its own."),
    "reshard": LazyCommand("zardine.cli.vectors:reshard", "Change the shards of the store at PATH."),
    "pyramid": LazyCommand("zardine.cli.vectors:pyramid", "Make coarser levels in the store at PATH."),
    "import": LazyCommand("zardine.cli.vectors_files:import_file", _IMPORT),
    "export": LazyCommand("zardine.cli.vectors_files:export_file", _EXPORT),
}

_LONGEST: Final = 200

CELLS: Final = ShapeType(above=0, example="8, or 4,4,16")
"""Cells of a shard."""

_WORDS: Final = {"error": "error", "warning": "warning", "action": "action"}


@click.group("vectors", cls=LazyGroup, lazy_commands=COMMANDS)
@traceback_option(hidden=True)
def vectors() -> None:
    """Look at Zarr Vectors stores, and work on them.

    PATH is a directory or a URL. 'zardine vectors COMMAND --help' explains a command.
    """


@click.command("info", cls=Command)
@path_argument()
@node_option()
@complete_option()
@storage_option()
@json_option()
def info(path: str, node: str | None, complete: bool, storage_options: dict[str, Any], as_json: bool) -> None:
    """Describe the Zarr Vectors store at PATH.

    Shows geometry, bounds with the units of axes, the reference system and chunks, and for each level how many
    vertices, objects and links it has and how it is stored; with --complete also how many stored objects, and bytes,
    each array of it has. Cells are not read.
    """
    from zardine.cli.output import print_facts, print_json
    from zardine.vectors import describe_store

    with arguments(), missing(path):
        facts = describe_store(store_at(path, storage_options, node=node), sizes=complete)
    if as_json:
        print_json(facts)
    else:
        print_facts(vectors_rows(facts))


@click.command("validate", cls=Command)
@path_argument()
@node_option()
@storage_option()
@quiet_option()
@json_option()
def validate(path: str, node: str | None, storage_options: dict[str, Any], quiet: bool, as_json: bool) -> int:
    """Find every fault of the Zarr Vectors store at PATH.

    Reads everything. The exit code is 1 if there are errors; warnings are what readers get along with.
    """
    from zardine.cli.output import print_json
    from zardine.cli.progress import progress
    from zardine.vectors import validate

    with arguments(), missing(path), progress("Checking levels", show=not (as_json or quiet)) as advance:
        report = validate(store_at(path, storage_options, node=node), progress=advance.report)
    if as_json:
        print_json(report.to_dict())
    else:
        print_faults(report.faults, () if quiet else report.notes, words=_WORDS)
        if not quiet:
            say(summary(report))
    return FINE if report.ok else FAULTS


@click.command("repair", cls=Command)
@path_argument()
@node_option()
@click.option(
    "--drop-lost",
    "--drop-unreadable",
    is_flag=True,
    help="Forget what refers to lost data, so that the rest can be read.",
)
@click.option("--dry-run", is_flag=True, help="Tell what would be done; change nothing.")
@storage_option()
@quiet_option()
@json_option()
def repair(
    path: str,
    node: str | None,
    drop_lost: bool,
    dry_run: bool,
    storage_options: dict[str, Any],
    quiet: bool,
    as_json: bool,
) -> int:
    """Put right what can be put right in the store at PATH.

    Brings interrupted changes to an end, lists chunks that are stored, fills up attributes that lack rows, and counts
    vertices anew. Values that are lost become fill values: 0, NaN, missing text. With --drop-lost, chunks whose
    vertices are lost go, and what refers to them; the count of vertices is then of those that are left, which may be
    0. What is lost stays lost: take a copy first. What is left is shown as by 'zardine vectors validate', and then the
    exit code is 1.
    """
    from zardine.cli.output import print_json
    from zardine.cli.progress import progress
    from zardine.vectors import repair, validate
    from zardine.vectors.findings import finding_dict
    from zardine.vectors.repairing import trial

    with arguments(), missing(path):
        target = (
            trial(store_at(path, storage_options, node=node))
            if dry_run
            else store_at(path, storage_options, "r+", node=node)
        )
        with progress("Repairing levels", show=not (as_json or quiet)) as advance:
            done = repair(target, drop_lost=drop_lost, progress=advance.report)
        with progress("Checking levels", show=not (as_json or quiet)) as advance:
            left = validate(target, progress=advance.report).faults
    if as_json:
        lines = [_line(each.place, each.message) for each in done.actions]
        lines += [_line(each.place, f"left as it is: {each.message}") for each in done.left]
        print_json({"done": lines, "left": [finding_dict(each) for each in left], "dry_run": dry_run})
    else:
        print_faults(() if quiet else (*done.actions, *done.left), left, words=_WORDS)
        if not quiet and not (done.actions or done.left or left):
            say("Nothing to do")
        elif not quiet:
            verb = "to do" if dry_run else "done"
            say(f"{counted(len(done.actions), 'action')} {verb}, {counted(len(left), 'fault')} left")
    return FAULTS if left else FINE


@click.command("shard", cls=Command)
@path_argument()
@node_option()
@click.option("--shards", default="8", type=CELLS, metavar="CELLS", help="Cells of a shard: 8, or 4,4,16 (default: 8).")
@storage_option()
@quiet_option()
@json_option()
def shard(
    path: str,
    node: str | None,
    shards: int | tuple[int, ...],
    storage_options: dict[str, Any],
    quiet: bool,
    as_json: bool,
) -> None:
    """Pack the cells of the store at PATH into shards.

    Every array of every level. What is stored so already stays untouched; an interrupted run leaves a store that reads
    complete, and the next one goes on.
    """
    _convert(path, node, shards, storage_options, quiet, as_json)


@click.command("unshard", cls=Command)
@path_argument()
@node_option()
@storage_option()
@quiet_option()
@json_option()
def unshard(path: str, node: str | None, storage_options: dict[str, Any], quiet: bool, as_json: bool) -> None:
    """Store each cell of the store at PATH as a file of its own.

    An interrupted run leaves a store that reads complete, and the next one goes on.
    """
    _convert(path, node, None, storage_options, quiet, as_json)


@click.command("reshard", cls=Command)
@path_argument()
@node_option()
@click.option(
    "--shards",
    type=ShapeType("auto", "none", above=0, example="8, or 4,4,16"),
    metavar="SHAPE",
    required=True,
    help="Cells of a shard: 8, or 4,4,16; auto for 8, none for no shards. Needed.",
)
@storage_option()
@quiet_option()
@json_option()
def reshard(
    path: str,
    node: str | None,
    shards: int | tuple[int, ...] | str,
    storage_options: dict[str, Any],
    quiet: bool,
    as_json: bool,
) -> None:
    """Change the shards of the store at PATH.

    Of every array of every level. An interrupted run leaves a store that reads complete, and the next one goes on.
    """
    wanted = {"auto": 8, "none": None}[shards] if isinstance(shards, str) else shards
    _convert(path, node, wanted, storage_options, quiet, as_json)


class _FactorType(click.FloatRange):
    """A finite number from 1 on."""

    def __init__(self) -> None:
        super().__init__(min=1)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the number."""
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{value!r} is no finite number.", param, ctx)
        return number


@click.command("pyramid", cls=Command)
@path_argument()
@node_option()
@click.option("--levels", type=click.IntRange(min=1), help="How many levels (default: 1, or as there are).")
@click.option("--factor", type=_FactorType(), help="How many times as large bins become (default: 2).")
@click.option("--sparsity", type=_FactorType(), help="Keep one object in so many (default: 1, all).")
@click.option("--anew", is_flag=True, help="Make all anew, as after changes by programs that do not tell of them.")
@storage_option()
@quiet_option()
@json_option()
def pyramid(
    path: str,
    node: str | None,
    levels: int | None,
    factor: float | None,
    sparsity: float | None,
    anew: bool,
    storage_options: dict[str, Any],
    quiet: bool,
    as_json: bool,
) -> None:
    """Make coarser levels in the store at PATH.

    All vertices of a bin become one, their mean. Without --levels, --factor and --sparsity the levels that there are
    are made with the options that they were made with. Where these are the same only what was changed is made anew.
    """
    from zardine.cli.output import print_json
    from zardine.cli.progress import progress
    from zardine.vectors import build_pyramid, describe_store

    with arguments(), missing(path), progress("Making levels", show=not (as_json or quiet)) as advance:
        store = store_at(path, storage_options, "r+", node=node)
        as_before = levels is None and factor is None and sparsity is None
        factors = None if as_before else [(factor or 2, sparsity or 1)] * (levels or 1)
        made = build_pyramid(store, factors=factors, anew=anew, progress=advance.report)
    counts = {each["level"]: each["vertex_count"] for each in describe_store(store)["levels"]}
    if as_json:
        print_json({"levels": made, "vertex_counts": counts})
    elif not quiet:
        for level in made:
            say(f"Level {level}: {counted(counts[level], 'vertex', 'vertices')}")


def _convert(
    path: str,
    node: str | None,
    shards: int | tuple[int, ...] | None,
    storage_options: dict[str, Any],
    quiet: bool,
    as_json: bool,
) -> None:
    with arguments(), missing(path):
        convert(store_at(path, storage_options, "r+", node=node), shards, quiet=quiet, as_json=as_json)


def _line(place: str, message: str) -> str:
    from zardine.tools.report import one_line

    return f"{place}: {one_line(message)}" if place else one_line(message)


def level_counts(level: Mapping[str, Any], *names: str) -> list[str]:
    """Return in words how many vertices, and of each of ``names``, a level has that ``describe_store`` tells of."""
    told = [counted(level["vertex_count"], "vertex", "vertices")]
    for name in names:
        if level[name] is not None:
            about = "" if name != "links" or level["links_counted"] else "about "
            told.append(about + counted(level[name], name[:-1]))
    return told


def vectors_rows(facts: Mapping[str, Any]) -> list[Row]:
    """Return what is known of a store, in lines: what :func:`zardine.vectors.describe_store` gives."""
    low, high = facts["bounds"]
    extents = [
        f"{axis.get('name')} {a:g} to {b:g} {axis.get('unit') or ''}".rstrip()
        for axis, a, b in zip(facts["axes"], low, high, strict=True)
    ]
    rows = [
        ("Geometry", ", ".join(facts["geometry_types"])),
        ("Path", facts["path"]),
        ("Format", f"Zarr Vectors {facts['format_version']}"),
        ("Bounds", ", ".join(extents)),
        *([("Reference", _reference(facts["crs"]))] if facts["crs"] else []),
        ("Chunks", " × ".join(f"{size:g}" for size in facts["chunk_shape"])),
        ("Bins", " × ".join(f"{size:g}" for size in facts["bin_shape"])),
        *([("Claimed", "a writer stores arrays anew, or was killed over that")] if facts["claimed"] else []),
    ]
    for level in facts["levels"]:
        vertices, *parts = level_counts(level, "objects", "groups", "links")
        told = [vertices, f"{level['dtype']}", *parts]
        told += ["older than level 0"] if level["older"] else []
        rows.append((f"Level {level['level']}", ", ".join(told)))
        grid = " × ".join(map(str, level["grid_shape"] or ()))
        shards = level["shard_shape"]
        packed = f"shards of {' × '.join(map(str, shards))} cells" if shards else "no shards"
        others = {name: each for name, each in level["shard_shapes"].items() if each != shards}
        codecs = ", ".join(level["compressors"]) or "no compression"
        rows.append(("", f"{counted(level['chunks'] or 0, 'chunk')} in a grid of {grid}; {packed}; {codecs}"))
        if others:
            differing = [f"{name} {' × '.join(map(str, each)) if each else 'none'}" for name, each in others.items()]
            rows.append(("", f"shards of other arrays: {', '.join(differing)}"))
        for kind in ("vertex", "fragment", "link", "object"):
            if level[f"{kind}_attributes"]:
                rows.append(
                    ("", f"attributes of {kind}s: {', '.join(level[f'{kind}_attributes'])}".replace("exs", "ices"))
                )
        if "stored" in level:
            rows += _stored_rows(level["stored"])
    return [(label, printable(value)) for label, value in rows]


def _stored_rows(stored: Mapping[str, Mapping[str, int]]) -> Iterator[tuple[str, str]]:
    """Yield how much is stored of a level, and of each array of it, those with most bytes first."""
    from zardine.nodes.display import byte_text

    whole = [sum(each[what] for each in stored.values()) for what in ("objects", "nbytes")]
    parts = sorted(stored.items(), key=lambda pair: (-pair[1]["nbytes"], pair[0]))
    for name, (objects, nbytes) in (("all", whole), *((path, each.values()) for path, each in parts)):
        yield "", f"{name}: {counted(objects, 'stored object')}, bytes: {byte_text(nbytes)}"


def _reference(crs: Any) -> str:
    """Return a stored reference system in a line: its name, where it is well-known text."""
    from zardine.cli.output import cut, json_text

    text = crs.get("wkt") if isinstance(crs, Mapping) else crs
    if isinstance(text, str):
        name = re.match(r'\s*\w+\s*\[\s*"([^"]+)"', text)
        return cut(name[1] if name else text, _LONGEST)
    return cut(json_text(crs), _LONGEST)
