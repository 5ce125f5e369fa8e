"""``zardine reshard``."""

from __future__ import annotations

import json
from typing import Any

import click

from zardine.cli.base import Command
from zardine.cli.errors import FAULTS, FINE, ArgumentError, arguments
from zardine.cli.options import json_option, node_option, path_argument, quiet_option, storage_option


@click.command(cls=Command)
@path_argument()
@node_option()
@click.option("--shards", required=True, metavar="SHAPE", help="The new shape, such as 512,512, or auto, or none.")
@click.option("--chunks", metavar="SHAPE", help="Another shape of (inner) chunks; without, it stays.")
@click.option("--codecs", metavar="JSON", help="Another chain of codecs of each chunk, as documents have it.")
@click.option("--to", "target", metavar="PATH", help="Write the array there, and leave the old one as it is.")
@click.option(
    "--grace",
    type=click.FloatRange(min=0),
    default=2.5,
    show_default=True,
    metavar="SECONDS",
    help="Wait so long, twice, for programs that have the array open; 0 if there are none.",
)
@click.option("--restart", is_flag=True, help="Forget what an interrupted run has begun.")
@storage_option()
@quiet_option()
@json_option()
def reshard(
    path: str,
    node: str | None,
    shards: str,
    chunks: str | None,
    codecs: str | None,
    target: str | None,
    grace: float,
    restart: bool,
    storage_options: dict[str, Any],
    quiet: bool,
    as_json: bool,
) -> int:
    """Give the array at PATH other shards, in place.

    At any moment, also after being killed, the array reads as before or as after. The same command goes on where an
    interrupted one was. Inner chunks that keep shape and codecs are moved without decoding. Programs other than
    zardine must not write meanwhile, and have to open the array again.
    """
    import zardine
    from zardine.cli.progress import progress

    with arguments(), progress("Writing objects", show=not (as_json or quiet)) as advance:
        done = zardine.reshard(
            path,
            path=node,
            shards=_shape(shards, "--shards"),
            chunks=None if chunks is None else _shape(chunks, "--chunks"),
            codecs=None if codecs is None else json.loads(codecs),
            target=target,
            grace=grace,
            restart=restart,
            progress=advance.report,
            storage_options=storage_options or None,
        )
    if as_json:
        from zardine.cli.output import print_json

        print_json(done.to_dict())
    elif not quiet:
        print(f"{done.objects:,} objects written{', of chunks as they were encoded' if done.encoded else ''}")
    if done.late:
        from zardine.cli.errors import print_error

        print_error(f"others wrote too late, and what they wrote is in no chunk now: {', '.join(done.late)}")
    return FINE if done else FAULTS


def _shape(text: str, option: str) -> Any:
    if text in ("none", "auto"):
        return None if text == "none" else "auto"
    try:
        return tuple(int(each) for each in text.split(","))
    except ValueError:
        raise ArgumentError(f"{option} is a shape such as 512,512, not {text!r}") from None
