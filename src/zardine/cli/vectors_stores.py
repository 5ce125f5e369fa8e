"""Stores of Zarr Vectors among what the general commands are given: telling them, and doing to them what is asked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from zardine.cli.errors import FAULTS, FINE, ArgumentError, arguments
from zardine.cli.output import counted, print_faults, print_json, say
from zardine.cli.paths import missing
from zardine.cli.progress import progress

if TYPE_CHECKING:
    from zardine.stores.path import StorePath
    from zardine.tools.report import Repairs
    from zardine.vectors import Report


def is_vectors(attributes: Mapping[str, Any]) -> bool:
    """Whether a group with these attributes is the root of a store of Zarr Vectors."""
    from zardine.vectors.format.documents import ROOT

    return isinstance(attributes.get(ROOT), Mapping)


def vectors_at(path: str, node: str | None, storage_options: Mapping[str, Any]) -> StorePath | None:
    """Return the place of the store of Zarr Vectors at ``node`` in ``path``; ``None`` where there is none.

    What is wrong there is for the command to find out.
    """
    from zardine.errors import ZardineError
    from zardine.hierarchy.find import find_node
    from zardine.hierarchy.place import find_place
    from zardine.metadata.documents import GroupMetadata
    from zardine.sources.opening import is_foreign_file
    from zardine.stores.path import StorePath

    with arguments(), missing(path):
        if is_foreign_file(path):
            return None
        try:
            store, inner = find_place(path, node, storage_options=storage_options or None)
            found = find_node(store, inner, 3)
        except ZardineError:
            return None
    return StorePath(store, inner) if isinstance(found, GroupMetadata) and is_vectors(found.attributes) else None


def check_vectors(store: StorePath, *, show: bool) -> Report:
    """Look at what the cells of a store mean."""
    from zardine.vectors import validate

    with progress("Checking levels", show=show) as advance:
        return validate(store, progress=advance.report)


def print_checked(report: Report, *, quiet: bool) -> None:
    """Print what that found, behind what the general command found."""
    print_faults(report.faults, () if quiet else report.notes)
    if not quiet:
        say(f"vectors: {summary(report)}")


def summary(report: Report) -> str:
    """Return in a line what checking has found, and how much was looked at."""
    faults = counted(len(report.faults), "fault") if report.faults else "no faults"
    notes = f", {counted(len(report.notes), 'warning')}" if report.notes else ""
    vertices = counted(sum(report.vertex_counts[:1]), "vertex", "vertices")
    return f"{faults}{notes}: {vertices}, {counted(len(report.vertex_counts), 'level')}"


def repair_vectors(store: StorePath, *, drop_lost: bool, options: dict[str, Any], quiet: bool, as_json: bool) -> int:
    """Repair a store of vectors: changes that were cut off, then shards, then what refers to what is lost."""
    import zardine
    from zardine.stores.path import StorePath
    from zardine.vectors import repair
    from zardine.vectors.repairing import trial

    dry_run = options["dry_run"]
    target = trial(store) if dry_run else StorePath(store.store, store.path)
    options = {**options, "dry_run": False}  # what is done to a trial never reaches the store
    show = not (as_json or quiet)
    steps: list[Repairs] = []

    def of_vectors(*, drop: bool) -> None:
        with progress("Repairing levels", show=show) as advance:
            steps.append(repair(target, drop_lost=drop, progress=advance.report))

    of_vectors(drop=False)  # brings to an end what was agreed on: until then keys of it look as if they were left over
    if not _has_agreed_changes(target):
        with progress("Looking at stored objects", show=show) as advance:
            steps.append(zardine.repair(target, drop_unreadable=drop_lost, progress=advance.report, **options))
        of_vectors(drop=drop_lost)
    actions = [each for step in steps for each in step.actions]
    report = check_vectors(target, show=show)
    left = [each for step in steps[1:2] for each in step.left]
    if as_json:
        document = {
            "actions": [each.to_dict() for each in actions],
            "left": [each.to_dict() for each in left],
            "dry_run": dry_run,
            "vectors": report.to_dict(),
        }
        print_json(document)
    else:
        print_faults(() if quiet else actions, left, report.faults)
        if not quiet:
            verb = "to do" if dry_run else "done"
            faults = counted(len(left) + len(report.faults), "fault")
            say(f"{counted(len(actions), 'action')} {verb}, {faults} left")
    return FAULTS if left or report.faults else FINE


def _has_agreed_changes(store: StorePath) -> bool:
    from zardine.errors import ZardineError
    from zardine.vectors.storing.store import VectorStore

    try:
        owner = VectorStore.open(store)
        return any(owner.level(number).pending for number in owner.level_numbers())
    except ZardineError:
        return True  # what cannot be read may be anything


def reshard_vectors(store: StorePath, asked: Mapping[str, Any], *, quiet: bool, as_json: bool) -> int:
    """Give every array of cells other shards. Refuses what has no meaning for cells."""
    for option in ("chunks", "codecs", "target", "grace", "restart", "cancel", "workers", "dask"):
        if asked.get(option) is not None and asked[option] is not False:
            name = {"target": "to"}.get(option, option)
            raise ArgumentError(f"--{name} has no meaning for a store of Zarr Vectors, only --shards has.")
    shards: Any = asked["shards"]
    if isinstance(shards, str):
        shards = {"auto": 8, "none": None}[shards]
    convert(store, shards, quiet=quiet, as_json=as_json)
    return FINE


def convert(store: Any, shards: int | tuple[int, ...] | None, *, quiet: bool, as_json: bool) -> None:
    """Change the shards of a store, and print how many arrays and cells that were."""
    from zardine.vectors.sharding import convert_store

    with arguments(), progress("Converting arrays", show=not (as_json or quiet)) as advance:
        arrays, cells = convert_store(store, shards, progress=advance.report)
    if as_json:
        print_json({"arrays": arrays, "cells": cells, "shard_shape": shards})
    elif not quiet:
        click.echo(f"{counted(arrays, 'array')} converted, {counted(cells, 'cell')}")


__all__ = ["check_vectors", "convert", "is_vectors", "print_checked", "repair_vectors", "reshard_vectors", "vectors_at"]
