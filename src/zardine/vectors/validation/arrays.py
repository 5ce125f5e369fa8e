"""Checking arrays of cells one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from zardine.engine.side_by_side import begun, each_begun
from zardine.errors import UnsupportedError, ZardineError
from zardine.metadata.documents import ArrayMetadata, GroupMetadata
from zardine.vectors.findings import Finding, error, guarded, warning
from zardine.vectors.format.cell_documents import NONEMPTY, key_texts
from zardine.vectors.format.ragged import find_rows, unique_rows
from zardine.vectors.storing.cell_bytes import objects_off_grid
from zardine.vectors.storing.cells import CellArray
from zardine.vectors.storing.level_nodes import NO_CELLS, Survey, has_cells
from zardine.vectors.storing.store import Level
from zardine.vectors.storing.transactions import is_unedited


@dataclass(frozen=True, slots=True)
class _Checked:
    """What was found of an array, or in its place."""

    findings: list[Finding]
    place: str = ""
    codecs: tuple[str, ...] | None = None
    """How its cells are compressed, if it has any."""


def check_arrays(level: Level, below: Survey, findings: list[Finding]) -> None:
    """Lists of chunks, the grid, shards, and what a conversion that was killed left. ``below``: what the level has.

    Of a store far away arrays are checked at the same time.
    """
    number = level.document.level
    kinds: dict[tuple[str, ...], str] = {}
    for _, checked in each_begun(level.owner.store, _made, _checks(level, below, "")):
        array = checked()
        findings += array.findings
        if array.codecs is not None:
            kinds.setdefault(array.codecs, array.place)
    if len(kinds) > 1:
        told = "; ".join(f"{', '.join(codecs) or 'none'} ({place})" for codecs, place in kinds.items())
        findings.append(
            warning("compression-differs", str(number), f"the arrays are compressed in different ways: {told}")
        )


def _made(check: Callable[[], _Checked]) -> _Checked:
    return check()


def _checks(level: Level, below: Survey, group: str) -> Iterator[Callable[[], _Checked]]:
    """Go through the arrays that :func:`~zardine.vectors.storing.level_nodes.cell_arrays` gives: checks of each.

    What cannot be opened is found, in its place.
    """
    number = level.document.level
    found: list[Finding] = []
    names = guarded(found, "array", f"{number}/{group}", partial(below.names, group)) or ()
    if found:
        yield partial(_Checked, found)
    for name in names:
        relative = f"{group}/{name}" if group else name
        if relative in NO_CELLS:
            continue
        lost: list[Finding] = []
        node = guarded(lost, "array", f"{number}/{relative}", partial(below.node, relative))
        if lost:
            yield partial(_Checked, lost)
        elif isinstance(node, GroupMetadata):
            yield from _checks(level, below, relative)
        elif isinstance(node, ArrayMetadata) and has_cells(relative, node):
            yield partial(_checked, level, relative)


def _checked(level: Level, relative: str) -> _Checked:
    place = f"{level.document.level}/{relative}"
    findings: list[Finding] = []
    array = guarded(findings, "array", place, partial(level.cells, relative))
    if array is None:
        return _Checked(findings)
    guarded(findings, "array", place, lambda: findings.extend(_check_array(place, array, level.rank)))
    codecs = tuple(codec.name for codec in array.array.compressors)
    return _Checked(findings, place, codecs if array.attributes.get(NONEMPTY) else None)


def _check_array(place: str, array: CellArray, rank: int) -> Iterator[Finding]:
    if array.rank != rank:
        yield error("grid-rank", place, f"an array of {array.rank} axes; the chunks of the level have {rank}")
        return
    yield from _check_document(place, array.attributes)
    looks: list[Callable[[], Any]] = [partial(_is_settled, array), array.found, partial(_strays, array)]
    is_settled, look, *others = begun(array.array.store, looks[: 2 if array.array.shards is None else 3])
    if not is_settled():
        reason = "a conversion is under way, or was interrupted: then repair brings it to an end"
        yield warning("conversion-unfinished", place, reason)
    try:
        found = look()
    except UnsupportedError:
        yield warning("not-listed", place, "the store cannot tell what is stored: only chunks listed are read")
        return
    except ZardineError as fault:
        yield error("shard-index", place, str(fault))
        return
    strays = others[0]() if others else []
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


def _strays(array: CellArray) -> list[str]:
    return list(objects_off_grid(array.array))


def _is_settled(array: CellArray) -> bool:
    try:
        return is_unedited(array.array.store, array.array.path, array.array.metadata)
    except UnsupportedError:
        return True
