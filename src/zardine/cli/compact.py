"""``zardine compact``."""

from __future__ import annotations

from typing import Any

import click

from zardine.cli.base import Command
from zardine.cli.errors import FAULTS, FINE, arguments
from zardine.cli.options import json_option, node_option, path_argument, quiet_option, storage_option
from zardine.cli.output import counted, say
from zardine.cli.paths import missing


@click.command(cls=Command)
@path_argument()
@node_option()
@click.option("--order", metavar="ORDER", help="Put inner chunks into this order: c, f or morton.")
@storage_option()
@quiet_option()
@json_option()
def compact(
    path: str, node: str | None, order: str | None, storage_options: dict[str, Any], quiet: bool, as_json: bool
) -> int:
    """Drop unused space in the shards at PATH.

    Inner chunks are moved as the encoded bytes they are. Damaged shards are left as they are and listed; the exit code
    is 1 then.
    """
    import zardine
    from zardine.cli.progress import progress

    with arguments(), missing(path), progress("Looking at shards", show=not (as_json or quiet)) as advance:
        done = zardine.compact(
            path, path=node, order=order, progress=advance.report, storage_options=storage_options or None
        )
    if as_json:
        from zardine.cli.output import print_json

        print_json(done.to_dict())
    else:
        from zardine.cli.output import print_faults

        print_faults(done.faults)
        if not quiet:
            shards = f"{done.rewritten:,} of {counted(done.shards, 'shard')} rewritten"
            say(f"{done.bytes_won:,} of {counted(done.bytes_before, 'byte')} won: {shards}")
    return FINE if done else FAULTS
