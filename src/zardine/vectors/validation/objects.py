"""Checking objects, their attributes, and groups."""

from __future__ import annotations

from functools import partial

import numpy as np

from zardine.engine.side_by_side import begun, each_begun
from zardine.errors import UnsupportedError
from zardine.nodes.array import Array
from zardine.vectors.content.content import Content
from zardine.vectors.findings import Finding, error, found_by, guarded, warning
from zardine.vectors.reading.loading_objects import (
    load_groups,
    load_manifests,
    load_tables,
    with_objects,
)
from zardine.vectors.reading.manifests import Manifests
from zardine.vectors.storing.cell_bytes import find_cells
from zardine.vectors.storing.store import Level


def check_objects(level: Level, content: Content, findings: list[Finding]) -> None:
    """The object index, what it says of itself, attributes and groups; ``content`` may have no positions."""
    number = level.document.level
    place = f"{number}/object_index"
    guarded(findings, "object-index", place, partial(_with_objects, level, content))
    manifests = guarded(findings, "object-index", place, partial(load_manifests, level, trust_count=False))
    if manifests is None:
        return
    guarded(findings, "object-index", place, partial(_check_index, level, manifests, findings))
    count = manifests.row_count
    family, code = "object_attributes", "object-attribute"
    names = guarded(findings, code, f"{number}/{family}", partial(level.names, family)) or ()

    def look(relative: str, own: list[Finding]) -> None:
        place = f"{number}/{relative}"
        values, chunks = begun(
            level.owner.store,
            [
                partial(found_by, lambda own: guarded(own, code, place, partial(_check_table, level, relative, count))),
                partial(
                    found_by,
                    lambda own: guarded(own, code, place, partial(_check_chunks, level, relative, own, manifests)),
                ),
            ],
        )
        own += [*values(), *chunks()]

    def looked(name: str) -> list[Finding]:
        return found_by(partial(look, f"{family}/{name}"))

    for _, found in each_begun(level.owner.store, looked, names):
        findings += found()
    guarded(findings, "group", f"{number}/groups", partial(_check_groups, level, manifests, findings))


def _with_objects(level: Level, content: Content) -> Content:
    return with_objects(level, content, load_manifests(level))


def _check_index(level: Level, manifests: Manifests, findings: list[Finding]) -> None:
    place, ids = f"{level.document.level}/object_index", manifests.ids
    about = level.attributes("object_index") or {}
    if about.get("object_ids_sorted") and (np.diff(ids) < 0).any():
        findings.append(error("object-ids", place, "object_ids_sorted is claimed, and ids do not ascend"))
    present = int((np.diff(manifests.starts) > 0).sum())
    for name, count in (("num_objects", manifests.row_count), ("num_present", present)):
        if about.get(name) is not None and about[name] != count:
            findings.append(error("object-count", place, f"{name} is {about[name]}; there are {count}"))


def _check_table(level: Level, relative: str, count: int) -> None:
    family, _, name = relative.rpartition("/")
    load_tables(level, family, count, [name])[name].decoded()


def _check_chunks(level: Level, relative: str, findings: list[Finding], manifests: Manifests | None = None) -> None:
    """Chunks of a table that are not stored: all of their rows are absent, or they are lost.

    ``manifests``: those of the objects that have the rows; of removed ones nothing is stored.
    """
    table = level.table(relative)
    if table is None or not table.size or table.shards is not None:
        return
    counts = [-(-size // each) for size, each in zip(table.shape, table.chunks, strict=True)]
    wanted = np.arange(counts[0])
    if manifests is not None and manifests.rows is not None:
        wanted = np.unique(manifests.rows // table.chunks[0])
    chunks = len(wanted) * int(np.prod(counts[1:]))
    try:
        missing = chunks - int(np.isin(find_cells(table)[:, 0], wanted).sum())
    except UnsupportedError:  # the store cannot tell
        return
    if missing > 0 and not _is_plain(table):
        reason = f"{missing} of {chunks} chunks are not stored: their rows have no values, or these are lost"
        findings.append(warning("values-absent", f"{level.document.level}/{relative}", reason))


def _is_plain(table: Array) -> bool:
    """Whether the value that chunks of nothing else are not stored for is an everyday one: then it says nothing."""
    return table.dtype.kind in "iub" and not np.any(table.fill_value)


def _check_groups(level: Level, manifests: Manifests, findings: list[Finding]) -> None:
    groups, place = load_groups(level), f"{level.document.level}/groups"
    if groups is None:
        return
    for number, members in enumerate(groups.members):
        if not np.isin(members, manifests.ids).all():
            findings.append(warning("group", place, f"group {number} names objects that do not exist"))
    named = (level.attributes("groups") or {}).get("num_groups")
    if named is not None and named != len(groups.members):
        findings.append(error("group", place, f"num_groups is {named}; there are {len(groups.members)}"))
    for column in groups.attributes.values():
        column.decoded()
    _check_chunks(level, "groups", findings)
    for name in groups.attributes:
        _check_chunks(level, f"group_attributes/{name}", findings)
