"""``zardine rechunk``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from zardine.cli.base import Command
from zardine.cli.errors import FINE, arguments
from zardine.cli.options import ShapeType, decorated, json_option, path_argument, quiet_option, storage_option
from zardine.cli.output import print_json, say
from zardine.cli.paths import missing
from zardine.cli.running import plan_progress, resumable, run_options, workers_of
from zardine.cli.signals import interruptible


def rechunk_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the arguments and options of :func:`zardine.plan_rechunk`; see :func:`plan_of`."""
    return decorated(
        command,
        path_argument("src"),
        path_argument("dst"),
        click.option("--path", "node", metavar="NODE", help="The array inside of SRC, such as 'group/array'."),
        click.option("--target-path", metavar="NODE", help="The array inside of DST that is made."),
        click.option(
            "--chunks",
            type=ShapeType("auto"),
            metavar="SHAPE",
            required=True,
            help="The new chunks, such as 512,512, within their shards.",
        ),
        click.option(
            "--shards",
            type=ShapeType("auto", "none"),
            metavar="SHAPE",
            help="The new shards, such as 4096,4096, or auto, or none. Without this option, chunks below 1 MB get the "
            "shards that 'zardine advise' proposes for them, and others none.",
        ),
        click.option("--max-memory", default="1 GiB", metavar="SIZE", help="Memory of each worker, such as '256 MiB'."),
        click.option(
            "--between",
            metavar="PATH",
            help="Where the array between goes, as large as SRC is in memory (default: in DST, hidden).",
        ),
        storage_option(store="the store of SRC"),
        storage_option("target", "the store of DST"),
    )


def plan_of(
    *,
    src: str,
    dst: str,
    node: str | None,
    target_path: str | None,
    chunks: Any,
    shards: Any,
    max_memory: str,
    between: str | None,
    storage_options: dict[str, Any],
    target_options: dict[str, Any],
    silent: bool = False,
) -> Any:
    """Return the plan that the options of a command ask for."""
    import zardine
    from zardine.tools.rechunk import shards_of_small_chunks

    def planned(shards: Any) -> Any:
        return zardine.plan_rechunk(
            src,
            dst,
            path=node,
            target_path=target_path,
            chunks=chunks,
            shards=shards,
            max_memory=max_memory,
            between=between,
            storage_options=storage_options or None,
            target_options=target_options or None,
        )

    with arguments(), missing(src):
        plan = planned(None if shards in (None, "none") else shards)
        if shards is None:
            advised = shards_of_small_chunks(plan)
            if advised is not None:
                plan = planned(advised)
                if not silent:
                    say(f"chunks below 1 MB: shards {','.join(map(str, advised))} hold them; --shards none for none")
    return plan


@click.command("rechunk", cls=Command)
@rechunk_options
@run_options
@quiet_option()
@json_option()
def rechunk(workers: int | None, dask: str | None, quiet: bool, as_json: bool, **asked: Any) -> int:
    """Store the array at SRC anew at DST, in other chunks and shards.

    However the chunks lie to each other, no worker needs more than --max-memory and a tenth. Nothing is seen at DST
    before all of it is there. The same command goes on where an interrupted one was.
    """
    return run(plan_of(**asked, silent=quiet or as_json), workers=workers, dask=dask, quiet=quiet, as_json=as_json)


def run(plan: Any, *, workers: int | None, dask: str | None, quiet: bool, as_json: bool) -> int:
    """Run a plan of rechunking, and say how it stands then."""
    from zardine.tools.rechunk import run_rechunk

    bar = plan_progress(quiet or as_json)
    with arguments(), resumable(), interruptible(), workers_of(dask) as executor, bar as advance:
        status = run_rechunk(plan, executor, workers=workers, progress=advance.report)
    if as_json:
        print_json({"state": status.state, "stages": {each.name: each.jobs for each in status.stages}})
    elif not quiet:
        say(status)
    return FINE
