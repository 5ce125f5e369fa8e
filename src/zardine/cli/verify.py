"""``zardine verify``."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import click

from zardine.cli.base import Command
from zardine.cli.errors import FAULTS, FINE, arguments
from zardine.cli.options import decorated, json_option, node_option, path_argument, quiet_option, storage_option
from zardine.cli.output import say
from zardine.cli.paths import hint_of_part, missing
from zardine.cli.running import plan_progress, resumable, run_options, workers_of

if TYPE_CHECKING:
    from zardine.tools.verify import Verification


def verify_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the argument and options of :func:`zardine.plan_verify`."""
    return decorated(
        command,
        path_argument(),
        node_option(),
        click.option(
            "--deep/--no-deep",
            default=True,
            show_default=True,
            help="Decode every chunk; else only sizes, indexes and outermost checksums are checked.",
        ),
        click.option(
            "--records",
            metavar="PATH",
            help="A folder or URL for what is done and found, so that an interrupted run goes on.",
        ),
        storage_option(),
    )


@click.command(cls=Command)
@verify_options
@run_options
@quiet_option()
@json_option()
def verify(
    path: str,
    node: str | None,
    deep: bool,
    records: str | None,
    storage_options: dict[str, Any],
    workers: int | None,
    dask: str | None,
    quiet: bool,
    as_json: bool,
) -> int:
    """Find every fault of what is stored at PATH.

    Looks at documents, consolidated metadata, keys that belong to nothing, shard indexes, and every chunk. Prints a
    line for each fault and each note; the exit code is 1 if there are faults. Notes tell what is allowed, and perhaps
    not wanted, such as unused space. Nothing is changed. Of a store of Zarr Vectors it is also checked what the chunks
    mean, as by 'zardine vectors validate'; not with --no-deep.
    """
    import zardine
    from zardine.cli.vectors_stores import check_vectors, print_checked, vectors_at

    bar = plan_progress(quiet or as_json, "Looking at what is stored")
    goes_on = nullcontext() if records is None else resumable()
    with goes_on, arguments(), missing(path), workers_of(dask) as executor, bar as advance:
        report = zardine.verify(
            path,
            path=node,
            deep=deep,
            records=records,
            executor=executor,
            workers=workers,
            progress=advance.report,
            storage_options=storage_options or None,
        )
    vectors = vectors_at(path, node, storage_options) if deep else None
    meant = None if vectors is None else check_vectors(vectors, show=not (quiet or as_json))
    if as_json:
        from zardine.cli.output import print_json

        print_json(report.to_dict() if meant is None else {**report.to_dict(), "vectors": meant.to_dict()})
    else:
        print_report(report, quiet=quiet)
        if not report.nodes:
            hint_of_part(path)
        if meant is not None:
            print_checked(meant, quiet=quiet)
    return FINE if report and (meant is None or meant) else FAULTS


def print_report(report: Verification, *, quiet: bool) -> None:
    """Print a line for each fault and note, and one of what was looked at."""
    from zardine.cli.output import print_faults

    print_faults(report.faults, () if quiet else report.notes)
    if not quiet:
        say(report.summary)
