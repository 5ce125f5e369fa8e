"""``zardine reshard``."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import click

from zardine.cli.base import Command
from zardine.cli.errors import FAULTS, FINE, ArgumentError, arguments, print_error
from zardine.cli.options import (
    ShapeType,
    decorated,
    json_option,
    node_option,
    path_argument,
    quiet_option,
    storage_option,
)
from zardine.cli.output import counted, say
from zardine.cli.paths import missing
from zardine.cli.running import plan_progress, resumable, run_options, workers_of
from zardine.cli.signals import interruptible

if TYPE_CHECKING:
    from zardine.tools.reshard import Resharding


def reshard_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the argument and options of :func:`zardine.plan_reshard`; see :func:`request_of`."""
    return decorated(
        command,
        path_argument(),
        node_option(),
        click.option(
            "--shards",
            type=ShapeType("auto", "none"),
            metavar="SHAPE",
            help="The new shape, such as 512,512, or auto, or none. Needed.",
        ),
        click.option(
            "--chunks",
            type=ShapeType("auto"),
            metavar="SHAPE",
            help="Another shape of (inner) chunks, or auto; without, it stays.",
        ),
        click.option(
            "--codecs", metavar="JSON", help="Another chain of codecs of each chunk, a list as documents have it."
        ),
        click.option(
            "--to",
            "target",
            metavar="PATH",
            help="Write the array there, where nothing is, and leave the old one as it is.",
        ),
        click.option(
            "--grace",
            type=click.FloatRange(min=0),
            metavar="SECONDS",
            help="Wait so long, twice, for programs that have the array open; 0 if there are none. Without: 2.5 where "
            "the store cannot tell who is writing, which local folders can.",
        ),
        click.option(
            "--max-memory",
            metavar="SIZE",
            help="Memory of each worker, such as '256 MiB' (default: 1 GiB, or as much as one new object takes).",
        ),
        storage_option(),
    )


def request_of(
    *,
    path: str,
    node: str | None,
    shards: Any,
    chunks: Any,
    codecs: str | None,
    target: str | None,
    grace: float | None,
    max_memory: str | None,
    storage_options: dict[str, Any],
) -> dict[str, Any]:
    """Return what the options ask for, as keywords of :func:`zardine.reshard` and :func:`zardine.plan_reshard`."""
    request: dict[str, Any] = {"store": path, "path": node, "target": target, "grace": grace, "max_memory": max_memory}
    if shards is not None:
        request["shards"] = None if shards == "none" else shards
    if chunks is not None:
        request["chunks"] = chunks
    if codecs is not None:
        request["codecs"] = _codecs(codecs)
    return {**request, "storage_options": storage_options or None}


def check_shards(asked: Mapping[str, Any]) -> None:
    """Refuse to go on without ``--shards``."""
    if asked["shards"] is None:
        raise ArgumentError("Give --shards: a shape such as 512,512, or auto, or none.")


@click.command(cls=Command)
@reshard_options
@click.option("--restart", is_flag=True, help="Forget what an interrupted run has begun, and begin as asked now.")
@click.option("--cancel", is_flag=True, help="Take back what an interrupted run has begun, and do nothing else.")
@run_options
@quiet_option()
@json_option()
def reshard(
    restart: bool,
    cancel: bool,
    workers: int | None,
    dask: str | None,
    quiet: bool,
    as_json: bool,
    **asked: Any,
) -> int:
    """Give the array at PATH other shards, in place.

    At any moment, also after being killed, the array reads as before or as after. The same command goes on where an
    interrupted one was; --cancel takes back what that has begun. Inner chunks that keep shape and codecs are moved
    without decoding. Programs other than zardine must not write meanwhile, and have to open the array again. Of a store
    of Zarr Vectors all arrays of cells get these shards, as by 'zardine vectors reshard'.
    """
    import zardine
    from zardine.cli.vectors_stores import reshard_vectors, vectors_at

    if not cancel:
        check_shards(asked)
    vectors = vectors_at(asked["path"], asked["node"], asked["storage_options"])
    if vectors is not None:
        more = {"restart": restart, "cancel": cancel, "workers": workers, "dask": dask}
        return reshard_vectors(vectors, {**asked, **more}, quiet=quiet, as_json=as_json)
    request = request_of(**asked)
    bar = plan_progress(quiet or as_json, "Resharding")
    with (
        arguments(),
        missing(asked["path"]),
        resumable(),
        interruptible(),
        workers_of(dask) as executor,
        bar as advance,
    ):
        try:
            done = zardine.reshard(
                **request,
                restart=restart,
                cancel=cancel,
                executor=executor,
                workers=workers,
                progress=advance.report,
            )
        except KeyboardInterrupt:
            advance.close()
            click.echo(_INTERRUPTED, err=True)
            raise
    if as_json:
        from zardine.cli.output import print_json

        print_json(done.to_dict())
    elif not quiet:
        say(_summary(done))
    if done.late:
        print_error(f"others wrote too late, and what they wrote is in no chunk now: {', '.join(done.late)}")
    return FINE if done else FAULTS


_INTERRUPTED = "The array reads as before, or as after, and can be written. --cancel takes back what was begun."


def _summary(done: Resharding) -> str:
    match done.outcome:
        case "unchanged":
            return "nothing to do: the array is stored so already"
        case "finished":
            return "an earlier run had written all objects; what it had left to do is done"
        case "cancelled":
            return "taken back: all is as before"
        case "nothing":
            return "nothing to take back: no resharding was begun"
    how = ", of chunks as they were encoded" if done.encoded and done.objects else ""
    return f"{counted(done.objects, 'object')} written{how}"


def _codecs(text: str) -> Any:
    from zardine.codecs.registry import codec_from
    from zardine.errors import MetadataError

    example = '["bytes", "zstd", "crc32c"]'
    try:
        codecs = json.loads(text)
    except ValueError as error:
        raise ArgumentError(f"--codecs is a list in JSON, such as '{example}', not {text!r}: {error}") from None
    if not isinstance(codecs, list):
        raise ArgumentError(f"--codecs is a list in JSON, such as '{example}', not {text}")
    for each in codecs:
        try:
            codec_from(each)
        except (MetadataError, TypeError) as error:
            raise ArgumentError(f"--codecs: {error}") from None
    return codecs
