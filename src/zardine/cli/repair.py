"""``zardine repair``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from zardine.cli.base import Command
from zardine.cli.errors import FAULTS, FINE, arguments
from zardine.cli.options import json_option, node_option, path_argument, quiet_option, storage_option
from zardine.cli.output import counted, say
from zardine.cli.paths import missing

if TYPE_CHECKING:
    from zardine.tools.report import Repairs


@click.command(cls=Command)
@path_argument()
@node_option()
@click.option("--drop-unreadable", is_flag=True, help="Make chunks empty that cannot be read; they are listed.")
@click.option(
    "--keep-damaged/--discard-damaged",
    default=True,
    show_default=True,
    help="Keep objects as they were, below __zardine/damaged/ of their array.",
)
@click.option(
    "--older-than",
    type=float,
    default=3600.0,
    show_default=True,
    metavar="SECONDS",
    help="Remove unfinished files of writers that died, if so old.",
)
@click.option("--dry-run", is_flag=True, help="Tell what would be done; change nothing.")
@storage_option()
@quiet_option()
@json_option()
def repair(
    path: str,
    node: str | None,
    drop_unreadable: bool,
    keep_damaged: bool,
    older_than: float,
    dry_run: bool,
    storage_options: dict[str, Any],
    quiet: bool,
    as_json: bool,
) -> int:
    """Put damaged shards at PATH in order, as far as possible.

    A shard whose index is damaged gets back the last valid one that is in it, so that its readable inner chunks can be
    read again. Chunks that cannot be read stay so unless --drop-unreadable is given. The exit code is 1 if faults are
    left. A store of Zarr Vectors is put in order as by 'zardine vectors repair', too; --drop-unreadable is its
    --drop-lost then.
    """
    import zardine
    from zardine.cli.progress import progress
    from zardine.cli.vectors_stores import repair_vectors, vectors_at

    vectors = vectors_at(path, node, storage_options)
    if vectors is not None:
        options = {"keep_damaged": keep_damaged, "dry_run": dry_run, "older_than": older_than}
        return repair_vectors(vectors, drop_lost=drop_unreadable, options=options, quiet=quiet, as_json=as_json)

    with arguments(), missing(path), progress("Looking at stored objects", show=not (as_json or quiet)) as advance:
        done = zardine.repair(
            path,
            path=node,
            drop_unreadable=drop_unreadable,
            keep_damaged=keep_damaged,
            dry_run=dry_run,
            older_than=older_than,
            progress=advance.report,
            storage_options=storage_options or None,
        )
    if as_json:
        from zardine.cli.output import print_json

        print_json(done.to_dict())
    else:
        _print(done, quiet=quiet)
    return FINE if done else FAULTS


def _print(done: Repairs, *, quiet: bool) -> None:
    from zardine.cli.output import print_faults

    print_faults(() if quiet else done.actions, done.left)
    if not quiet:
        verb = "to do" if done.dry_run else "done"
        say(f"{counted(len(done.actions), 'action')} {verb}, {counted(len(done.left), 'fault')} left")
