"""``zardine convert``."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from zardine.cli.base import Command
from zardine.cli.errors import ArgumentError, arguments
from zardine.cli.options import ShapeType, decorated, json_option, path_argument, quiet_option, storage_option
from zardine.cli.output import counted, say
from zardine.cli.paths import missing
from zardine.cli.running import plan_progress, resumable, run_options, workers_of
from zardine.shown_text import printable

if TYPE_CHECKING:
    from zardine.cli.output import Row
    from zardine.metadata.formats import NodeMetadata
    from zardine.tools.convert import Conversion
    from zardine.tools.converting.in_place import InPlace
    from zardine.tools.converting.plan import NodePlan


def _sizes_option(name: str, words: tuple[str, ...], default: str, explained: str) -> Callable[[Any], Any]:
    """Return ``--chunks 100,100`` and its like: lengths, or a word."""
    text = f"{explained}: lengths such as 100,100 for the arrays of two dimensions, or a word (usually '{default}')."
    return click.option(f"--{name}", default=default, metavar="SIZES", type=ShapeType(*words), help=text)


def _codecs_option(word: str, name: str) -> Callable[[Any], Any]:
    """Return ``--compressor zstd`` and its like: a name, JSON, or ``keep``, ``auto`` or ``none``; may be repeated."""

    def parse(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> Any:
        if len(values) == 1 and values[0] in ("keep", "auto", "none"):
            return None if values[0] == "none" else values[0]
        codecs = []
        for value in values:
            if value in ("keep", "auto", "none"):
                raise click.BadParameter(f"{value!r} stands alone", ctx, param)
            try:
                codecs.append(json.loads(value) if value.startswith("{") else value)
            except ValueError as error:
                raise click.BadParameter(f"{value!r} is neither a name nor JSON: {error}", ctx, param) from None
        return codecs or "auto"

    text = (
        f"A {word} of the new arrays: a codec's name or its JSON object; may be repeated. 'none' for none, 'keep' for "
        "all that SRC has."
    )
    return click.option(f"--{word}", name, multiple=True, metavar="CODEC", callback=parse, help=text)


def convert_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options of :func:`zardine.plan_convert`; see :func:`options_of`."""
    return decorated(
        command,
        click.option("--path", "node", metavar="NODE", help="The node inside of SRC, such as 'group/array'."),
        click.option("--target-path", metavar="NODE", help="The node inside of DST that is made."),
        click.option(
            "--zarr-format", type=int, default=3, metavar="N", help="The version of Zarr to be made: 3 or 2, or 1."
        ),
        _sizes_option("chunks", ("auto", "keep"), "keep", "Of the new arrays, within their shards"),
        _sizes_option("shards", ("auto", "none"), "auto", "Of the new arrays; 'none' for none"),
        _codecs_option("compressor", "compressors"),
        _codecs_option("filter", "filters"),
        click.option(
            "--checksum/--no-checksum", default=None, help="End every chunk of v3 with a crc32c (as a rule, yes)."
        ),
        click.option("--objects-as-text", is_flag=True, help="Make text of Python objects, which all have to be text."),
        click.option("--leave-out", is_flag=True, help="Convert the rest of a file of HDF5 that Zarr has no form for."),
        click.option("--verify", is_flag=True, help="Compare every element before DST becomes visible."),
        click.option(
            "--max-memory",
            metavar="SIZE",
            help="Memory of each worker, such as '256 MiB' (default: 1 GiB, or as much as one new object takes).",
        ),
        storage_option(store="the store of SRC"),
        storage_option("target", "the store of DST"),
    )


def options_of(*, objects_as_text: bool, shards: Any, **how: Any) -> dict[str, Any]:
    """Return what the options ask for, as keywords of :class:`ConvertOptions`."""
    return {**how, "shards": None if shards == "none" else shards, "objects": "string" if objects_as_text else None}


@click.command(cls=Command)
@path_argument("src")
@click.argument("dst", required=False)
@convert_options
@click.option("--metadata-only", is_flag=True, help="Write documents of v3 beside the old ones in SRC; no DST.")
@click.option("--remove-old", is_flag=True, help="With --metadata-only: remove the old documents then.")
@click.option("--overwrite", is_flag=True, help="Erase what is stored at DST first.")
@click.option("--no-resume", is_flag=True, help="Do not continue an earlier run that was cut off.")
@click.option("--dry-run", is_flag=True, help="Show what every array becomes, and write nothing.")
@run_options
@quiet_option()
@json_option()
def convert(
    src: str,
    dst: str | None,
    node: str | None,
    target_path: str | None,
    leave_out: bool,
    metadata_only: bool,
    remove_old: bool,
    verify: bool,
    max_memory: str | None,
    overwrite: bool,
    no_resume: bool,
    dry_run: bool,
    storage_options: dict[str, Any],
    target_options: dict[str, Any],
    workers: int | None,
    dask: str | None,
    quiet: bool,
    as_json: bool,
    **how: Any,
) -> None:
    """Store what is at SRC in another version of Zarr at DST.

    Arrays and whole hierarchies of any version become sharded arrays of v3, or of v2 where that can say it; so do
    files of HDF5 and NetCDF. SRC is not changed, except by --metadata-only, which adds documents to it. Nothing is
    written if anything cannot be converted; all reasons are listed. The same command again continues a run that was
    cut off.
    """
    from zardine.cli.progress import progress
    from zardine.tools.convert import Conversion, check_in_place, prepare_conversion, prepare_metadata, warn_of_remarks
    from zardine.tools.converting.options import ConvertOptions

    if (dst is None) != metadata_only:
        raise ArgumentError("Give DST, or --metadata-only, which works in SRC." if dst is None else _NO_TARGET)
    if remove_old and not metadata_only:
        raise ArgumentError("--remove-old is for --metadata-only: a source that is copied stays as it is.")
    done: dict[str, Any] = {"dry_run": dry_run, "resumed": False}
    with arguments(), missing(src):
        options = ConvertOptions(**options_of(**how))
        conversion: Conversion | InPlace
        if metadata_only:
            check_in_place(options)
            conversion = prepare_metadata(src, node, overwrite=overwrite, storage_options=storage_options or None)
        else:
            conversion = prepare_conversion(
                src,
                dst,
                options,
                source_path=node,
                target_path=target_path,
                leave_out=leave_out,
                max_memory=max_memory,
                storage_options=storage_options or None,
                target_options=target_options or None,
            )
    with in_words_of_the_command():
        if dry_run and isinstance(conversion, Conversion):
            done["resumed"] = conversion.target.look(overwrite=overwrite, resume=not no_resume)
        elif not dry_run:
            if not quiet:
                warn_of_remarks(conversion.plans)
            if isinstance(conversion, Conversion):
                bar = plan_progress(as_json or quiet, "Converting")
                with resumable(), workers_of(dask) as executor, bar as advance:
                    done |= conversion.run(
                        verify=verify,
                        overwrite=overwrite,
                        resume=not no_resume,
                        executor=executor,
                        workers=workers,
                        report=advance.report,
                    )
            else:
                with progress("Writing documents", show=not (as_json or quiet)) as advance:
                    done |= conversion.run(verify=verify, remove_old=remove_old, report=advance.report)
    _print(conversion, done, quiet=quiet, as_json=as_json)


@contextmanager
def in_words_of_the_command() -> Iterator[None]:
    """Say of a conversion that is not to be continued which options differ, as they are typed."""
    from zardine.errors import NodeExistsError
    from zardine.tools.copying.new_place import OtherConversionError

    try:
        yield
    except OtherConversionError as error:
        text = error.in_words(_as_typed, again="the command as it was", anew="--overwrite")
        raise NodeExistsError(text) from None


def _as_typed(name: str, value: str) -> str:
    """Return an option of :func:`zardine.convert`, whose value Python wrote so, as somebody types it."""
    if name == "checksum":
        return {"True": "--checksum", "False": "--no-checksum"}.get(value, "neither --checksum nor --no-checksum")
    if name == "objects":
        return "no --objects-as-text" if value == "None" else "--objects-as-text"
    option = {"compressors": "compressor", "filters": "filter"}.get(name, name.replace("_", "-"))
    if name in ("compressors", "filters") and value.startswith("["):
        from ast import literal_eval

        parts = literal_eval(value)
        return " ".join(f"--{option} {part if isinstance(part, str) else json.dumps(part)}" for part in parts)
    plain = "none" if value == "None" else value.strip("'()[]").replace(", ", ",").rstrip(",")
    return f"--{option} {plain}"


_NO_TARGET = "--metadata-only works in SRC: leave out DST."


def _print(conversion: Conversion | InPlace, done: Mapping[str, Any], *, quiet: bool, as_json: bool) -> None:
    facts = {**_facts(conversion), **done}
    if as_json:
        from zardine.cli.output import print_json

        print_json(facts)
    elif done["dry_run"]:
        from zardine.cli.output import print_facts

        print_facts(_rows(facts))
    elif not quiet:
        say(_summary(facts))


def _facts(conversion: Conversion | InPlace) -> dict[str, Any]:
    """Return where from, where to, and every node before and after."""
    from zardine.hierarchy.find import describe
    from zardine.tools.convert import Conversion

    if isinstance(conversion, Conversion):
        source, target = str(conversion.source), str(conversion.target)
    else:
        source = target = describe(conversion.store, conversion.path)
    return {
        "source": source,
        "target": target,
        "metadata_only": not isinstance(conversion, Conversion),
        "nodes": [_plan_facts(plan) for plan in conversion.plans],
    }


def _rows(facts: Mapping[str, Any]) -> list[Row]:
    """Return every array before and after, and everything else to remark."""
    rows: list[Row] = [("From", printable(facts["source"])), ("To", printable(facts["target"]))]
    for node in facts["nodes"]:
        remarks = [f"  {printable(remark)}" for remark in node["remarks"]]
        if node["kind"] == "array":
            before, after = (_line(node[side]) for side in ("from", "to"))
            lines = [f"{_shape(node)}: {before}", "  stays as it is" if node["from"] == node["to"] else f"  → {after}"]
            rows.append((printable(node["path"]), lines + remarks))
        elif remarks:
            rows.append((printable(node["path"]), ["group", *remarks]))
    return rows


def _summary(facts: Mapping[str, Any]) -> str:
    """Return what was done, in a line."""
    arrays = sum(node["kind"] == "array" for node in facts["nodes"])
    what = f"{counted(arrays, 'array')} and {counted(len(facts['nodes']) - arrays, 'group')}"
    if facts["metadata_only"]:
        text = f"{what}: {counted(facts['documents'], 'document')} written"
        text += f", {counted(facts['removed'], 'old one')} removed" if facts["removed"] else ""
    else:
        text = f"{what}, {counted(facts['objects'], 'object')}{', continued' if facts['resumed'] else ''}"
    return f"{text}{', compared' if facts['compared'] else ''}: {printable(facts['target'])}"


def _plan_facts(plan: NodePlan) -> dict[str, Any]:
    return {
        "path": f"/{plan.path}",
        "kind": plan.source.node_type,
        "shape": getattr(plan.source, "shape", None),
        "from": _side(plan.source),
        "to": _side(plan.target),
        "remarks": plan.remarks,
    }


def _side(metadata: NodeMetadata) -> dict[str, Any]:
    from zardine.cli.facts import regular, sharding_of
    from zardine.metadata.documents import ArrayMetadata
    from zardine.nodes.array import Array
    from zardine.storage import MemoryStore

    if not isinstance(metadata, ArrayMetadata):
        return {"zarr_format": metadata.zarr_format, "consolidated": metadata.consolidated_metadata is not None}
    array = Array(MemoryStore(), "", metadata)
    inner = array.codecs if sharding_of(array) is None else array._inner_codecs()
    return {
        "zarr_format": metadata.zarr_format,
        "data_type": metadata.data_type.to_json(),
        "dimension_names": metadata.axis_names,
        "fill_value": metadata.data_type.fill_to_json(metadata.fill)
        if metadata.zarr_format == 3
        else _stored(metadata),
        "chunks": regular(array, "chunks"),
        "shards": regular(array, "shards"),
        "codecs": [codec.to_json() for codec in inner],
        "chunk_key_encoding": metadata.chunk_key_encoding.to_json(),
    }


def _stored(metadata: Any) -> Any:
    return metadata.older.fill_value


def _line(side: Mapping[str, Any]) -> str:
    chunks = "chunks of differing lengths" if side["chunks"] is None else f"chunks {side['chunks']}"
    if side["shards"] is not None:
        chunks = f"shards {side['shards']} of {side['chunks']}"
    names = [codec["name"] for codec in side["codecs"] if codec["name"] != "bytes"]
    return printable(f"v{side['zarr_format']} {chunks}, {', '.join(names) or 'no codecs'}")


def _shape(node: Mapping[str, Any]) -> str:
    from zardine.cli.describe import extension_text
    from zardine.nodes.display import named_shape

    after = node["to"]
    return f"{printable(named_shape(node['shape'], after['dimension_names']))} {extension_text(after['data_type'])}"
