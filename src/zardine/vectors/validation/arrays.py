"""Checking arrays of cells one by one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from zardine.errors import UnsupportedError, ZardineError
from zardine.metadata.documents import ArrayMetadata, GroupMetadata
from zardine.vectors.findings import Finding, error, guarded, warning
from zardine.vectors.format.cell_documents import NONEMPTY, key_texts
from zardine.vectors.format.ragged import find_rows, unique_rows
from zardine.vectors.storing.cell_bytes import objects_off_grid
from zardine.vectors.storing.cells import CellArray
from zardine.vectors.storing.level_nodes import has_cells
from zardine.vectors.storing.store import Level
from zardine.vectors.storing.transactions import is_unedited


def check_arrays(level: Level, findings: list[Finding]) -> None:
    """Lists of chunks, the grid, shards, and what a conversion that was killed left."""
    number = level.document.level
    kinds: dict[tuple[str, ...], str] = {}
    for name, array in _arrays(level, "", findings):
        place = f"{number}/{name}"
        guarded(findings, "array", place, lambda: findings.extend(_check_array(place, array, level.rank)))  # noqa: B023
        if array.attributes.get(NONEMPTY):
            kinds.setdefault(tuple(codec.name for codec in array.array.compressors), place)
    if len(kinds) > 1:
        told = "; ".join(f"{', '.join(codecs) or 'none'} ({place})" for codecs, place in kinds.items())
        findings.append(
            warning("compression-differs", str(number), f"the arrays are compressed in different ways: {told}")
        )


def _arrays(level: Level, below: str, findings: list[Finding]) -> Iterator[tuple[str, CellArray]]:
    """As :func:`~zardine.vectors.sharding.cell_arrays`, and what cannot be opened is found."""
    number = level.document.level
    for name in guarded(findings, "array", f"{number}/{below}", lambda: level.names(below)) or ():
        relative = f"{below}/{name}" if below else name
        if relative in ("object_index", "object_attributes", "groups", "group_attributes"):
            continue
        place = f"{number}/{relative}"
        node = guarded(findings, "array", place, lambda: level.node(relative))  # noqa: B023
        if isinstance(node, GroupMetadata):
            yield from _arrays(level, relative, findings)
        elif isinstance(node, ArrayMetadata) and has_cells(relative, node):
            array = guarded(findings, "array", place, lambda: level.cells(relative))  # noqa: B023
            if array is not None:
                yield relative, array


def _check_array(place: str, array: CellArray, rank: int) -> Iterator[Finding]:
    if array.rank != rank:
        yield error("grid-rank", place, f"an array of {array.rank} axes; the chunks of the level have {rank}")
        return
    yield from _check_document(place, array.attributes)
    if not _is_settled(array):
        reason = "a conversion is under way, or was interrupted: then repair brings it to an end"
        yield warning("conversion-unfinished", place, reason)
    try:
        found = array.found()
    except UnsupportedError:
        yield warning("not-listed", place, "the store cannot tell what is stored: only chunks listed are read")
        return
    except ZardineError as fault:
        yield error("shard-index", place, str(fault))
        return
    strays = list(objects_off_grid(array.array)) if array.array.shards is not None else []
    if strays:
        reason = f"{len(strays)} stored shards are outside of the grid, such as {strays[0]}: no reader sees them"
        yield warning("shards-off-grid", place, reason)
    raw, listed = array.attributes.get(NONEMPTY), array.listed()
    if raw is None:
        if len(found):
            yield error("manifest-missing", place, f"there is no {NONEMPTY}; {len(found)} chunks are stored")
        return
    if listed is None:
        yield error("manifest-damaged", place, f"{NONEMPTY} is no list of keys of {rank} numbers")
        return
    inside = array.inside(listed)
    if not inside.all():
        key = listed[~inside][0].tolist()
        yield error("manifest-off-grid", place, f"{NONEMPTY} names {key}, which is off the grid")
    unlisted = found[find_rows(listed, found) < 0]
    if len(unlisted):
        first = unlisted[0].tolist()
        yield error(
            "manifest-incomplete", place, f"{len(unlisted)} stored chunks are not in {NONEMPTY}, such as {first}"
        )
    lost = listed[inside][find_rows(found, listed[inside]) < 0]
    if len(lost):
        yield error("chunk-lost", place, f"{len(lost)} chunks of {NONEMPTY} are not stored, such as {lost[0].tolist()}")
    if len(unique_rows(listed)[0]) != len(listed) or list(raw) != key_texts(listed):
        yield warning("manifest-order", place, f"{NONEMPTY} is not sorted as text, without repetitions")


def _check_document(place: str, attributes: Mapping[str, Any]) -> Iterator[Finding]:
    """What readers would have to guess of the values of an attribute."""
    if "attributes/" not in place:
        return
    for name in ("dtype", "row_shape"):
        if name not in attributes:
            yield error("array-document", place, f"{name} is missing: the values cannot be told")
    if "categories" in attributes and attributes.get("encoding") != "dictionary":
        yield error("array-document", place, "there are categories, and encoding does not say that they are used")


def _is_settled(array: CellArray) -> bool:
    try:
        return is_unedited(array.array.store, array.array.path, array.array.metadata)
    except UnsupportedError:
        return True
