"""``zardine verify``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from zardine.cli.base import Command
from zardine.cli.errors import FAULTS, FINE, arguments
from zardine.cli.options import json_option, node_option, path_argument, quiet_option, storage_option
from zardine.cli.output import counted
from zardine.cli.paths import missing

if TYPE_CHECKING:
    from zardine.tools.verify import Verification


@click.command(cls=Command)
@path_argument()
@node_option()
@click.option(
    "--deep/--no-deep",
    default=True,
    show_default=True,
    help="Decode every chunk; else only sizes, indexes and outermost checksums are checked.",
)
@storage_option()
@quiet_option()
@json_option()
def verify(path: str, node: str | None, deep: bool, storage_options: dict[str, Any], quiet: bool, as_json: bool) -> int:
    """Find every fault of what is stored at PATH.

    Looks at documents, consolidated metadata, keys that belong to nothing, shard indexes, and every chunk. Prints a
    line for each fault and each note; the exit code is 1 if there are faults. Notes tell what is allowed, and perhaps
    not wanted, such as unused space. Nothing is changed.
    """
    import zardine
    from zardine.cli.progress import progress

    with arguments(), missing(path), progress("Looking at stored objects", show=not (as_json or quiet)) as advance:
        report = zardine.verify(
            path, path=node, deep=deep, progress=advance.report, storage_options=storage_options or None
        )
    if as_json:
        from zardine.cli.output import print_json

        print_json(report.to_dict())
    else:
        _print(report, quiet=quiet)
    return FINE if report else FAULTS


def _print(report: Verification, *, quiet: bool) -> None:
    from zardine.cli.output import print_faults

    print_faults(report.faults, () if quiet else report.notes)
    if not quiet:
        found = counted(len(report.faults), "fault") if report.faults else "no faults"
        parts = {"node": report.nodes, "object": report.objects, "chunk": report.chunks, "byte": report.nbytes}
        looked_at = ", ".join(counted(number, what) for what, number in parts.items())
        print(f"{found}: {looked_at}{'' if report.deep else ' (chunks were not decoded)'}")
