"""``zardine convert``."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from zardine.cli.base import Command
from zardine.cli.convert_options import codecs_option, sizes_option
from zardine.cli.errors import ArgumentError, arguments
from zardine.cli.missing_paths import missing
from zardine.cli.options import json_option, path_argument, quiet_option, storage_option

if TYPE_CHECKING:
    from zardine.tools.convert import Conversion
    from zardine.tools.converting.in_place import InPlace


@click.command(cls=Command)
@path_argument("src")
@click.argument("dst", required=False)
@click.option("--path", "node", metavar="NODE", help="The node inside of SRC, such as 'group/array'.")
@click.option("--target-path", metavar="NODE", help="The node inside of DST that is made.")
@click.option("--zarr-format", type=int, default=3, metavar="N", help="The version of Zarr to be made: 3 or 2, or 1.")
@sizes_option("chunks", "keep", "Of the new arrays, within their shards")
@sizes_option("shards", "auto", "Of the new arrays; 'none' for none")
@codecs_option("compressor", "compressors")
@codecs_option("filter", "filters")
@click.option("--checksum/--no-checksum", default=None, help="End every chunk of v3 with a crc32c (as a rule, yes).")
@click.option("--objects-as-text", is_flag=True, help="Make text of Python objects, which all have to be text.")
@click.option("--metadata-only", is_flag=True, help="Write documents of v3 beside the old ones in SRC; no DST.")
@click.option("--remove-old", is_flag=True, help="With --metadata-only: remove the old documents then.")
@click.option("--verify", is_flag=True, help="Compare every element before DST becomes visible.")
@click.option("--overwrite", is_flag=True, help="Erase what is stored at DST first.")
@click.option("--no-resume", is_flag=True, help="Do not continue an earlier run that was cut off.")
@click.option("--dry-run", is_flag=True, help="Show what every array becomes, and write nothing.")
@storage_option(store="the store of SRC")
@storage_option("target", "the store of DST")
@quiet_option()
@json_option()
def convert(
    src: str,
    dst: str | None,
    node: str | None,
    target_path: str | None,
    objects_as_text: bool,
    metadata_only: bool,
    remove_old: bool,
    verify: bool,
    overwrite: bool,
    no_resume: bool,
    dry_run: bool,
    storage_options: dict[str, Any],
    target_options: dict[str, Any],
    quiet: bool,
    as_json: bool,
    **how: Any,
) -> None:
    """Store what is at SRC in another version of Zarr at DST.

    Arrays and whole hierarchies of any version become sharded arrays of v3, or of v2 where that can say it. SRC is
    not changed, except by --metadata-only, which adds documents to it. Nothing is written if anything cannot be
    converted; all reasons are listed. The same command again continues a run that was cut off.
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
        options = ConvertOptions(**how, objects="string" if objects_as_text else None)
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
                storage_options=storage_options or None,
                target_options=target_options or None,
            )
    with _in_words_of_the_command():
        if dry_run and isinstance(conversion, Conversion):
            done["resumed"] = conversion.target.look(overwrite=overwrite, resume=not no_resume)
        elif not dry_run:
            if not quiet:
                warn_of_remarks(conversion.plans)
            again = {"remove_old": remove_old} if metadata_only else {"overwrite": overwrite, "resume": not no_resume}
            with progress("Converting objects", show=not (as_json or quiet)) as advance:
                done |= conversion.run(verify=verify, report=advance.report, **again)
    _print(conversion, done, quiet=quiet, as_json=as_json)


@contextmanager
def _in_words_of_the_command() -> Iterator[None]:
    """Say of a conversion that is not to be continued which options differ, as they are typed."""
    from zardine.errors import NodeExistsError
    from zardine.tools.converting.target import OtherConversionError

    try:
        yield
    except OtherConversionError as error:
        text = error.in_words(_as_typed, again="the command as it was", anew="--overwrite")
        raise NodeExistsError(text) from None


def _as_typed(name: str, value: str) -> str:
    """An option of :func:`zardine.convert`, whose value Python wrote so, as somebody types it."""
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
    from zardine.cli.convert_facts import conversion_facts, plan_rows, summary

    facts = {**conversion_facts(conversion), **done}
    if as_json:
        from zardine.cli.output import print_json

        print_json(facts)
    elif done["dry_run"]:
        from zardine.cli.output import print_facts

        print_facts(plan_rows(facts))
    elif not quiet:
        print(summary(facts))
