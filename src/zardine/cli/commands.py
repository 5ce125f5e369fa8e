"""The command ``zardine`` itself, and the table of all commands below it."""

from __future__ import annotations

import click

import zardine
from zardine.cli.base import LazyCommand, LazyGroup
from zardine.cli.options import traceback_option
from zardine.kernel import describe_kernel

COMMANDS = {
    "info": LazyCommand("zardine.cli.info:info", "Describe the array or group at PATH."),
    "tree": LazyCommand("zardine.cli.tree:tree", "Draw what is stored at PATH as a tree."),
    "convert": LazyCommand("zardine.cli.convert:convert", "Store what is at SRC in another version of Zarr at DST."),
    "verify": LazyCommand("zardine.cli.verify:verify", "Find every fault of what is stored at PATH."),
    "repair": LazyCommand("zardine.cli.repair:repair", "Put damaged shards at PATH in order, as far as possible."),
    "compact": LazyCommand("zardine.cli.compact:compact", "Drop unused space in the shards at PATH."),
    "reshard": LazyCommand("zardine.cli.reshard:reshard", "Give the array at PATH other shards, in place."),
    "rechunk": LazyCommand(
        "zardine.cli.rechunk:rechunk", "Store the array at SRC anew at DST, in other chunks and shards."
    ),
    "advise": LazyCommand("zardine.cli.advise:advise", "Propose chunks and shards for an array."),
    "jobs": LazyCommand("zardine.cli.jobs:jobs", "Plan a long work as independent jobs, and run them."),
    "serve": LazyCommand("zardine.cli.serve:serve", "Serve what is at PATHS over HTTP, read-only, until Ctrl-C."),
    "view": LazyCommand("zardine.cli.view:view", "Show what is at PATHS in a browser, until Ctrl-C."),
    "vectors": LazyCommand("zardine.cli.vectors:vectors", "Look at Zarr Vectors stores, and work on them."),
}
"""By name, in the order of the help: where each command is, and the first sentence of its help."""


@click.group(
    "zardine",
    cls=LazyGroup,
    lazy_commands=COMMANDS,
    epilog="Exit codes: 0 fine, 1 faults found or unusable data, 2 wrong usage, 130 interrupted.",
)
@traceback_option(hidden=False)
@click.version_option(
    zardine.__version__, prog_name="zardine", message=f"%(prog)s %(version)s, {describe_kernel().replace('%', '%%')}"
)
def root() -> None:
    """Look at Zarr arrays and groups, and work on them.

    PATH is a directory or a URL. 'zardine COMMAND --help' explains a command.
    """
