"""``zardine jobs``: plans as files, run by batch systems or by hand."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, Final, Unpack

import click

from zardine.cli.base import Command, LazyCommand, LazyGroup
from zardine.cli.convert import convert_options, in_words_of_the_command, options_of
from zardine.cli.errors import FAULTS, FINE, ArgumentError, arguments, print_error
from zardine.cli.options import (
    decorated,
    json_option,
    path_argument,
    quiet_option,
    storage_option,
    traceback_option,
)
from zardine.cli.output import print_json, say
from zardine.cli.paths import missing, store_at
from zardine.cli.rechunk import plan_of, rechunk_options
from zardine.cli.reshard import check_shards, request_of, reshard_options
from zardine.cli.running import plan_progress, resumable, run_options, workers_of
from zardine.cli.signals import interruptible
from zardine.cli.vectors_files import (
    ExportWords,
    StoreWords,
    check_file,
    export_options,
    export_request,
    import_options,
    packages,
    writer_options,
)
from zardine.cli.verify import print_report, verify_options

if TYPE_CHECKING:
    from zardine.jobs.plan import Plan, PlanStatus

COMMANDS = {
    "plan": LazyCommand("zardine.cli.jobs:plan", "Write the plan of a long work to a file."),
    "run": LazyCommand("zardine.cli.jobs:run", "Run jobs of the plan in FILE."),
    "status": LazyCommand("zardine.cli.jobs:status", "Tell how far the plan in FILE is."),
    "finish": LazyCommand("zardine.cli.jobs:finish", "Make the result of the plan in FILE count."),
    "cancel": LazyCommand("zardine.cli.jobs:cancel", "Remove what the jobs of the plan in FILE have written."),
}
PLANS = {
    "convert": LazyCommand(
        "zardine.cli.jobs:plan_convert", "Plan to store what is at SRC in another version of Zarr at DST."
    ),
    "reshard": LazyCommand("zardine.cli.jobs:plan_reshard", "Plan to give the array at PATH other shards."),
    "export": LazyCommand("zardine.cli.jobs:plan_export", "Plan to write the vectors at PATH to the folder FILE."),
    "import": LazyCommand(
        "zardine.cli.jobs:plan_import", "Plan to write what is in FILE to a new store of vectors at PATH."
    ),
    "rechunk": LazyCommand("zardine.cli.jobs:plan_rechunk", "Plan to store the array at SRC in other chunks at DST."),
    "verify": LazyCommand("zardine.cli.jobs:plan_verify", "Plan to find every fault of what is stored at PATH."),
}

_PAUSE: Final = 5.0
"""Seconds between two looks of ``--wait``."""


@click.group("jobs", cls=LazyGroup, lazy_commands=COMMANDS)
@traceback_option(hidden=True)
def jobs() -> None:
    """Plan a long work as independent jobs, and run them.

    A plan is a file that every machine can read which reaches the same stores. Its jobs are in stages: those of one
    need all of the stage before. They may run in any order, at the same time, again, and be killed.
    """


@click.group("plan", cls=LazyGroup, lazy_commands=PLANS)
@traceback_option(hidden=True)
def plan() -> None:
    """Write the plan of a long work to a file."""


def _plan_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command that makes a plan what all of them have."""
    out = click.option(
        "--out",
        type=click.Path(dir_okay=False),
        metavar="FILE",
        required=True,
        help="Where the plan goes: a file that is not there yet.",
    )
    return decorated(command, out, quiet_option(), json_option())


def _refuse_taken(out: str) -> None:
    if os.path.exists(out):
        raise _taken(out)


def _taken(out: str) -> ArgumentError:
    return ArgumentError(f"{out} is there already, and may be the plan of jobs that run: give another --out")


def _write(made: Plan, out: str, *, quiet: bool, as_json: bool) -> int:
    try:
        made.save(out, overwrite=False)
    except FileExistsError:
        raise _taken(out) from None
    _show(made, quiet=quiet, as_json=as_json)
    return FINE


@click.command("convert", cls=Command)
@path_argument("src")
@path_argument("dst")
@convert_options
@click.option("--overwrite", is_flag=True, help="Erase what is stored at DST, now.")
@_plan_options
def plan_convert(
    src: str,
    dst: str,
    node: str | None,
    target_path: str | None,
    leave_out: bool,
    verify: bool,
    max_memory: str | None,
    storage_options: dict[str, Any],
    target_options: dict[str, Any],
    overwrite: bool,
    out: str,
    quiet: bool,
    as_json: bool,
    **how: Any,
) -> int:
    """Plan to store what is at SRC in another version of Zarr at DST.

    Nothing may be stored at DST, unless it is to be erased, and nothing is written but FILE. Prints how many jobs there
    are, what a job needs and what all of them take.
    """
    import zardine

    _refuse_taken(out)
    with arguments(), missing(src), in_words_of_the_command():
        made = zardine.plan_convert(
            src,
            dst,
            source_path=node,
            target_path=target_path,
            leave_out=leave_out,
            verify=verify,
            overwrite=overwrite,
            max_memory=max_memory,
            storage_options=storage_options or None,
            target_options=target_options or None,
            **options_of(**how),
        )
        return _write(made, out, quiet=quiet, as_json=as_json)


@click.command("reshard", cls=Command)
@reshard_options
@_plan_options
def plan_reshard(out: str, quiet: bool, as_json: bool, **asked: Any) -> int:
    """Plan to give the array at PATH other shards.

    That is in place, or with --to elsewhere. Nothing is written but FILE. Prints how many jobs there are, what a job
    needs and what all of them take. Others may write while the jobs run; 'zardine jobs finish' copies that, keeps them
    away for a moment, and switches.
    """
    import zardine

    check_shards(asked)
    with arguments(), missing(asked["path"]):
        return _write(zardine.plan_reshard(**request_of(**asked)), out, quiet=quiet, as_json=as_json)


@click.command("rechunk", cls=Command)
@rechunk_options
@_plan_options
def plan_rechunk(out: str, quiet: bool, as_json: bool, **asked: Any) -> int:
    """Plan to store the array at SRC in other chunks at DST.

    Nothing is written but FILE. Prints how many jobs there are, what a job needs and what all of them take.
    """
    with arguments():
        return _write(plan_of(**asked, silent=quiet or as_json), out, quiet=quiet, as_json=as_json)


@click.command("import", cls=Command)
@import_options
@_plan_options
def plan_import(
    file: str,
    path: str,
    node: str | None,
    name: str | None,
    storage_options: dict[str, Any],
    source_options: dict[str, Any],
    out: str,
    quiet: bool,
    as_json: bool,
    **words: Unpack[StoreWords],
) -> int:
    """Plan to write what is in FILE to a new store of vectors at PATH.

    FILE is what 'zardine vectors import' takes. Jobs read parts of it: half a million vertices of .las, .laz, .tck,
    .trk, .trx, .geff and neuroglancer, 16 MiB of .csv, batches of .feather, row groups of .parquet, some features of
    .gpkg and .shp, some files of a directory; other files are one part. 'zardine jobs finish' writes the store. Nothing
    is written but the plan. Prints how many jobs there are, what a job needs and what all of them take.
    """
    from zardine.vectors import plan_import

    check_file(file)
    with arguments(), packages():
        made = plan_import(
            file,
            path,
            format=name,
            target_path=node,
            storage_options=source_options or None,
            target_options=storage_options or None,
            **writer_options(words),
        )
        return _write(made, out, quiet=quiet, as_json=as_json)


@click.command("export", cls=Command)
@export_options
@_plan_options
def plan_export(
    path: str,
    file: str,
    node: str | None,
    storage_options: dict[str, Any],
    out: str,
    quiet: bool,
    as_json: bool,
    **words: Unpack[ExportWords],
) -> int:
    """Plan to write the vectors at PATH to the folder FILE.

    FILE is a folder, or ends in /, and --format is csv, feather, las, laz, parquet, trk, tck or trx: each job writes a
    file. Or it is swc, ply, obj or stl: each job writes the files of some objects. 'zardine jobs finish' puts them
    there. Or --format is precomputed or geff: then jobs write values there, and 'zardine jobs finish' the document. The
    first job goes through the level. Nothing is written but the plan. Prints how many jobs there are, what a job needs
    and what all of them take.
    """
    from zardine.vectors import plan_export

    with arguments(), missing(path), packages():
        request = export_request(store_at(path, storage_options, node=node), file, words)
        made = plan_export(path, file, source_path=node, storage_options=storage_options or None, **request)
        return _write(made, out, quiet=quiet, as_json=as_json)


@click.command("verify", cls=Command)
@verify_options
@_plan_options
def plan_verify(
    path: str,
    node: str | None,
    deep: bool,
    records: str | None,
    storage_options: dict[str, Any],
    out: str,
    quiet: bool,
    as_json: bool,
) -> int:
    """Plan to find every fault of what is stored at PATH.

    What jobs find goes to the folder of --records, by default FILE.records; 'zardine jobs finish' prints it.
    """
    import zardine

    with arguments(), missing(path):
        made = zardine.plan_verify(
            path, path=node, deep=deep, records=records or f"{out}.records", storage_options=storage_options or None
        )
        return _write(made, out, quiet=quiet, as_json=as_json)


def _show(made: Plan, *, quiet: bool, as_json: bool) -> None:
    facts = {
        "stages": [
            {"name": stage.name, "jobs": len(stage), "memory": stage.memory, "number": number}
            for number, stage in enumerate(made.work.stages, 1)
        ],
        "objects": made.objects,
        "requests": made.requests,
        "bytes_read": made.bytes_read,
        "bytes_written": made.bytes_written,
    }
    if as_json:
        print_json(facts)
    elif not quiet:
        say(made.work.describe())
        for number, stage in enumerate(made.work.stages, 1):
            say(f"stage {number}, {stage.name}: {len(stage):,} jobs of at most {stage.memory / 2**20:,.0f} MiB")
        say(f"{made.objects:,} objects written, about {made.requests:,} requests")
        say(f"about {made.bytes_read / 2**20:,.1f} MiB read and {made.bytes_written / 2**20:,.1f} MiB written")


def _on_plan(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the plan in FILE, as ``made``."""

    @wraps(command)
    def with_plan(
        file: str,
        storage_options: dict[str, Any],
        target_options: dict[str, Any],
        urls: tuple[str, ...],
        functions: tuple[str, ...] = (),
        **rest: Any,
    ) -> Any:
        from zardine.jobs.plan import Plan

        if functions and os.getcwd() not in sys.path:
            sys.path.insert(0, os.getcwd())  # as for a program that is run from here
        with arguments():
            made = Plan.load(
                file,
                storage_options=storage_options or None,
                target_options=target_options or None,
                functions=functions,
                urls=urls,
            )
            return command(made=made, **rest)

    return decorated(
        with_plan,
        click.argument("file", type=click.Path(exists=True, dir_okay=False)),
        storage_option(store="the store of SRC"),
        storage_option("target", "the store of DST"),
        click.option(
            "--url",
            "urls",
            multiple=True,
            envvar="ZARDINE_URLS",
            metavar="URL",
            help="A URL of the plan, with the password or token that its file has not. May be repeated. Other users of "
            "the machine see it here, and not in the environment variable ZARDINE_URLS (with spaces between URLs).",
        ),
    )


def _part(text: str | None) -> tuple[int, int] | None:
    from zardine.jobs.batch import part_of

    if text is None:
        return part_of(os.environ)
    number, slash, count = (each.strip() for each in text.partition("/"))
    if not slash or not (number.isdigit() or not number) or not count.isdigit():
        raise ArgumentError(f"--part is a number from 1 on and how many there are, such as 3/64 or /64, not {text!r}")
    if number:
        return int(number), int(count)
    part = part_of(os.environ, int(count))
    if part is None:
        raise ArgumentError(f"--part {text} takes the number from a batch system, and this is no job of an array")
    return part


@click.command("run", cls=Command)
@_on_plan
@click.option("--stage", type=click.IntRange(min=1), metavar="N", help="Of this stage (default: all, one by one).")
@click.option(
    "--part",
    metavar="I/N",
    help="This part of N equal ones of a stage, counted from 1. Without I it is the number of this job in its array.",
)
@click.option("--wait", is_flag=True, help="Wait for the stage before, if it is not complete.")
@click.option(
    "--function",
    "functions",
    multiple=True,
    metavar="MODULE:NAME",
    help="Let jobs run this function, which the plan names (of writing cells of vectors); modules are looked for in "
    "this folder, too. May be repeated.",
)
@run_options
@quiet_option()
@json_option()
def run(
    made: Plan,
    stage: int | None,
    part: str | None,
    wait: bool,
    workers: int | None,
    dask: str | None,
    quiet: bool,
    as_json: bool,
) -> int:
    """Run jobs of the plan in FILE.

    Without --stage and --part all stages are run and the plan is finished. In a job array of Slurm, Grid Engine, LSF or
    AWS Batch the part is this job's, of the first stage that is not complete unless --stage says another; then 'zardine
    jobs finish' comes last. PBS does not say how many jobs an array has: --part /64 does, also for lists of jobs.
    What is done already is not done again.
    """
    from zardine.errors import PlanError

    mine = _part(part)
    bar = plan_progress(quiet or as_json)
    with resumable(), interruptible(), workers_of(dask) as executor, bar as advance:
        if stage is None and mine is None:
            reached = made.run(executor, workers=workers, progress=advance.report)
        else:
            while True:
                try:
                    reached = made.run_part(
                        stage=stage, part=mine or (1, 1), executor=executor, workers=workers, progress=advance.report
                    )
                    break
                except PlanError as error:
                    if not wait or "has to wait" not in str(error):
                        raise
                    time.sleep(_PAUSE)
    if reached:
        return _tell_result(made, reached, quiet=quiet, as_json=as_json)
    _tell(reached, quiet=quiet, as_json=as_json)
    return FINE


@click.command("status", cls=Command)
@_on_plan
@json_option()
def status(made: Plan, as_json: bool) -> int:
    """Tell how far the plan in FILE is.

    The exit code is 0 once it is finished, else 1.
    """
    reached = made.status()
    _tell(reached, quiet=False, as_json=as_json)
    if not as_json:
        for number, stage in enumerate(reached.stages, 1):
            if stage.missing and stage.done:
                say(f"missing of stage {number}: {stage.missing}")
    return FINE if reached else FAULTS


def _tell(reached: PlanStatus, *, quiet: bool, as_json: bool) -> None:
    if as_json:
        print_json(_as_json(reached))
    elif not quiet:
        say(reached)


def _as_json(reached: PlanStatus) -> dict[str, Any]:
    stages = [
        {"name": each.name, "jobs": each.jobs, "done": each.done, "missing": each.missing} for each in reached.stages
    ]
    return {"state": reached.state, "stages": stages}


@click.command("finish", cls=Command)
@_on_plan
@run_options
@quiet_option()
@json_option()
def finish(
    made: Plan,
    workers: int | None,
    dask: str | None,
    quiet: bool,
    as_json: bool,
) -> int:
    """Make the result of the plan in FILE count.

    Jobs whose source others have changed meanwhile run again before. What lay in between is removed.
    """
    bar = plan_progress(quiet or as_json, "Finishing")
    with resumable(), interruptible(), workers_of(dask) as executor, bar as advance:
        reached = made.finish(executor, workers=workers, progress=advance.report)
    return _tell_result(made, reached, quiet=quiet, as_json=as_json)


def _tell_result(made: Plan, reached: PlanStatus, *, quiet: bool, as_json: bool) -> int:
    """Print what a finished plan gives: of verifying the faults."""
    from zardine.tools.report import Outcome
    from zardine.tools.verify import Verification

    found = made.result()
    if isinstance(found, Verification):
        if as_json:
            print_json({**_as_json(reached), "report": found.to_dict()})
        else:
            print_report(found, quiet=quiet)
        return FINE if found else FAULTS
    if isinstance(reached.result, Outcome) and not reached.result:
        print_error(str(reached.result))
        return FAULTS
    _tell(reached, quiet=quiet, as_json=as_json)
    return FINE


@click.command("cancel", cls=Command)
@_on_plan
@json_option()
def cancel(made: Plan, as_json: bool) -> int:
    """Remove what the jobs of the plan in FILE have written.

    End jobs that are running before. Nothing can be taken back once the plan is finished.
    """
    before = None if as_json else made.status()
    made.cancel()
    if before is None:
        _tell(made.status(), quiet=False, as_json=True)
    else:
        say(f"cancelled; it was {before}")
    return FINE
