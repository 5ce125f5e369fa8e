"""``zardine advise``."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

from zardine.cli.base import Command
from zardine.cli.errors import FINE, ArgumentError, arguments, error_text
from zardine.cli.options import json_option, node_option, parse_lengths, path_argument, whole_number
from zardine.cli.output import counted, say
from zardine.cli.paths import missing
from zardine.cli.rechunk import plan_of, run
from zardine.cli.running import run_options

if TYPE_CHECKING:
    from zardine.tools.advise import Advice


@click.command(cls=Command)
@path_argument("place")
@click.argument("dtype", required=False)
@node_option()
@click.option(
    "--access", multiple=True, metavar="KIND[=WEIGHT]", help="A read that counts: see above. May be repeated."
)
@click.option("--store", "where", default="local", show_default=True, metavar="KIND", help="local or s3.")
@click.option("--ratio", type=float, metavar="R", help="Stored bytes for each byte in memory, such as 0.5.")
@click.option(
    "--then",
    type=click.Choice(["rechunk"]),
    help="Do what is proposed: store the array anew at --to, as 'zardine rechunk' does.",
)
@click.option("--to", metavar="PATH", help="Where --then stores the array: nothing may be there.")
@click.option("--max-memory", metavar="SIZE", help="Memory of each worker of --then (default: 1 GiB).")
@run_options
@json_option()
def advise(
    place: str,
    dtype: str | None,
    node: str | None,
    access: tuple[str, ...],
    where: str,
    ratio: float | None,
    then: str | None,
    to: str | None,
    max_memory: str | None,
    workers: int | None,
    dask: str | None,
    as_json: bool,
) -> int:
    """Propose chunks and shards for an array.

    PLACE is a shape such as 365,180,360, with a DTYPE, or the path of a stored array, without one. Numbers alone are a
    shape: write ./2024 for a folder of that name. Reads are point, all, plane:AXIS (one index of that axis, all of the
    others), line:AXIS (all of that axis, one index of the others) and box:64,64,64. The table tells for each layout
    what a read costs on average: objects touched, requests, bytes, milliseconds. With --then rechunk --to PATH the
    stored array is stored anew in the first of them; in place, zardine reshard does that.
    """
    import zardine

    lengths = parse_lengths(place.removesuffix(","), whole_number)
    is_shape = lengths is not None and min(lengths) >= 0
    shape: Any = lengths if is_shape else place
    if is_shape and dtype is None:
        raise ArgumentError(f"The shape {place} needs a DTYPE, too. A folder of that name is ./{place}.")
    if not is_shape and dtype is not None and not _exists(place):
        raise ArgumentError(f"{place!r} is neither a shape, such as 10,10, nor a stored array.")
    _check_then(then, to, is_shape=is_shape, others=(to, max_memory, workers, dask))
    if is_shape:
        _check_dtype(dtype)
    with arguments(), missing(place):
        advice = zardine.advise(
            shape, dtype, path=node, access=_weights(access) if access else None, store=where, ratio=ratio
        )
    if as_json:
        from zardine.cli.output import print_json

        print_json(advice.to_dict())
    else:
        _print(advice)
    if then is None:
        return FINE
    plan = plan_of(
        src=place,
        dst=to or "",
        node=node,
        target_path=None,
        chunks=advice.chunks,
        shards=advice.shards or "none",
        max_memory=max_memory or "1 GiB",
        between=None,
        storage_options={},
        target_options={},
    )
    return run(plan, workers=workers, dask=dask, quiet=as_json, as_json=False)


def _check_then(then: str | None, to: str | None, *, is_shape: bool, others: tuple[object, ...]) -> None:
    """Refuse options that go with ``--then`` and miss it, and what it misses."""
    if then is None and any(each is not None for each in others):
        raise ArgumentError("--to, --max-memory, --workers and --dask go with --then rechunk")
    if then is not None and is_shape:
        raise ArgumentError("--then rechunk takes a stored array, not a shape")
    if then is not None and to is None:
        raise ArgumentError("--then rechunk needs a place for the new array: --to PATH")


def _exists(place: str) -> bool:
    """Whether something may be stored there: of other than local paths that is not asked."""
    return "://" in place or place.lower().startswith("file:/") or os.path.exists(place)


def _check_dtype(dtype: str | None) -> None:
    from zardine.data_types import data_type_for
    from zardine.errors import MetadataError

    try:
        data_type_for(dtype)
    except MetadataError as error:
        raise ArgumentError(error_text(error)) from None


def _weights(access: tuple[str, ...]) -> dict[str, float]:
    found: dict[str, float] = {}
    for text in access:
        name, equals, weight = text.partition("=")
        name = _with_commas(name)
        if name in found:
            raise ArgumentError(f"--access {name!r} is given twice")
        try:
            found[name] = float(weight) if equals else 1.0
        except ValueError:
            raise ArgumentError(f"--access {text!r}: {weight!r} is not a number") from None
    return found


def _with_commas(access: str) -> str:
    """Return a read as the library takes it, which has commas between the lengths of a box."""
    kind, _, text = access.partition(":")
    lengths = parse_lengths(text, whole_number) if kind == "box" else None
    return access if lengths is None else f"box:{','.join(map(str, lengths))}"


def _print(advice: Advice) -> None:
    for choice in advice.choices:
        shards = "no shards" if choice.shards is None else f"shards {choice.shards}"
        say(f"{choice.name}: chunks {choice.chunks}, {shards}: {counted(choice.objects, 'object')}")
        say(f"  {'read':<20}{'objects':>10}{'requests':>10}{'bytes':>16}{'ms':>12}")
        for read in choice.reads:
            say(
                f"  {read.access:<20}{read.objects:>10,.1f}{read.requests:>10,.1f}{read.nbytes:>16,.0f}"
                f"{read.seconds * 1e3:>12,.2f}"
            )
        say()
    for reason in advice.reasons:
        say(reason)
