"""Checking links: families, their arrays, counts, and the fragment index of links within chunks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, Final, TypeAlias

import numpy as np

from zardine.buffers import Ints
from zardine.errors import CorruptionError, DataError, ZardineError
from zardine.vectors.content.content import Content, Links
from zardine.vectors.findings import Finding, error, guarded
from zardine.vectors.format.documents import KINDS
from zardine.vectors.format.fragment_index import decode_index
from zardine.vectors.format.links import decode_links, parse_segment, segment_of, signed
from zardine.vectors.format.ragged import find_rows, unique_rows
from zardine.vectors.reading.kept import KeptLevel
from zardine.vectors.reading.loading import dtype_of
from zardine.vectors.reading.loading_links import deltas_of, load_cross_links, load_links
from zardine.vectors.reading.presence import stored_chunks
from zardine.vectors.reading.query import ALL
from zardine.vectors.storing.cells import CellArray
from zardine.vectors.storing.store import UNFINISHED, Level
from zardine.vectors.storing.store_states import NOT_ON_PURPOSE
from zardine.vectors.validation.rows import parts_of

Levels: TypeAlias = Mapping[int, tuple[Level, Content]]
"""Levels that can be read, by number, with their cells."""

_CELLS: Final = 1024
"""Cells whose links are in memory together with what is said of them."""


def check_links(level: Level, content: Content, findings: list[Finding]) -> None:
    """Everything below ``links`` and ``link_attributes`` that stays within the level; ``content`` has no positions."""
    place, root = f"{level.document.level}/links", level.owner.root
    needs = [name for name in root.geometry_types if name in KINDS and KINDS[name].links]
    lacks = needs and level.document.level == 0
    if lacks and guarded(findings, "links", f"{place}/0", lambda: level.node("links/0") is None):
        findings.append(error("links-missing", place, f"a {needs[0]} has links, and none are there"))
    deltas = guarded(findings, "links", place, partial(deltas_of, level)) or ()
    if 0 in deltas:
        guarded(findings, "links", f"{place}/0", partial(_check_own, level, content, findings))
    if guarded(findings, "links", f"{place}/0", lambda: level.node("links/0") is not None):
        where = f"{level.document.level}/link_fragments"
        guarded(findings, "link-fragments", where, partial(_check_link_fragments, level))


def checks_between(level: Level, others: Levels) -> list[Callable[[list[Finding]], object]]:
    """Return checks of everything below ``links`` that leads to other levels, one for each difference of levels.

    ``others`` are the levels that can be read, and this one.
    """
    with suppress(ZardineError, *NOT_ON_PURPOSE):  # that was said already
        return [partial(_guarded_between, level, others, delta) for delta in deltas_of(level) if delta]
    return []


def _guarded_between(level: Level, others: Levels, delta: int, findings: list[Finding]) -> None:
    where = f"{level.document.level}/links/{signed(delta)}"
    guarded(findings, "links", where, partial(_check_between, level, others, delta, findings))


def _check_own(level: Level, content: Content, findings: list[Finding]) -> None:
    where = f"{level.document.level}/links/{signed(0)}"
    about = level.attributes(f"links/{signed(0)}") or {}
    width = about.get("link_width")
    if "mesh" in level.owner.root.geometry_types and isinstance(width, int) and width < 3:
        findings.append(error("links", where, f"faces of {width} corners"))
    if not about.get("directed") and about.get("store", "canonical") == "canonical":
        _check_canonical(level, where, findings)
    kept = KeptLevel.of(level)
    parts = (load_links(kept, part, attributes=ALL, ends=content) for part in parts_of(content))
    _check_family(level, 0, parts, findings)


def _check_between(level: Level, others: Levels, delta: int, findings: list[Finding]) -> None:
    number = level.document.level + delta
    if UNFINISHED in level.owner.level(number).document.attributes:
        return  # that was said already
    if number not in others:
        raise CorruptionError(f"the links lead to level {number}, which cannot be read")
    content, (other, its) = others[level.document.level][1], others[number]
    kept = KeptLevel.of(level)
    parts = (load_cross_links(kept, part, its, other, delta) for part in parts_of(content))
    _check_family(level, delta, parts, findings)


def _check_family(level: Level, delta: int, parts: Iterable[Links | None], findings: list[Finding]) -> None:
    where = f"{level.document.level}/links/{signed(delta)}"
    about = level.attributes(f"links/{signed(delta)}")
    if about is None:
        raise CorruptionError("there is no document for this family of links", array=where)
    count, is_lost = 0, False
    for links in parts:
        assert links is not None
        for column in links.attributes.values():
            column.decoded()
        count += len(links.endpoints)
        is_lost |= bool((links.endpoints < 0).any())
    if is_lost:
        findings.append(error("links", where, "links refer to chunks that hold nothing"))
    if about.get("store") != "duplicate" and about.get("num_links") not in (None, count):
        findings.append(error("link-count", where, f"num_links is {about['num_links']}; there are {count}"))


def _check_canonical(level: Level, place: str, findings: list[Finding]) -> None:
    for segment in level.names("links/0"):
        offsets = parse_segment(segment, level.rank)
        if list(offsets) != sorted(offsets) or any(offset < (0,) * level.rank for offset in offsets):
            reason = f"undirected links are filed under their first chunk; {segment!r} says otherwise"
            findings.append(error("link-order", f"{place}/{segment}", reason))


def _check_link_fragments(level: Level) -> None:
    """Raise where the index of links within chunks, without which other readers fail, does not fit them."""
    about: Mapping[str, Any] = level.attributes("links/0") or {}
    width = about.get("link_width")
    if not isinstance(width, int) or not 1 <= width <= 12:
        return  # that was said already
    links = level.cells(f"links/0/{segment_of(((0,) * level.rank,) * (width - 1))}")
    if links is None:
        return
    index = level.cells("link_fragments")
    if index is None:
        raise CorruptionError("links within chunks are there, and no fragment index of them")
    chunks, others = (_known_chunks(each, level.rank) for each in (links, index))
    more = others[find_rows(chunks, others) < 0]  # an index of nothing may be there without any links
    chunks = np.concatenate([chunks, more])
    dtype = dtype_of(links, "int64")
    for start in range(0, len(chunks), _CELLS):
        part = chunks[start : start + _CELLS]
        for chunk, cell, blob in zip(part, links.read(part), index.read(part), strict=True):
            try:
                rows = decode_index(blob, len(decode_links(cell, dtype, width, grouped=False))).rows
            except DataError as fault:
                raise fault.at(array=index.array.path, chunk=tuple(chunk.tolist())) from None
            if len(np.unique(rows)) * dtype.itemsize * width != len(cell):
                reason = "the fragments do not name all links of the chunk"
                raise CorruptionError(reason, array=index.array.path, chunk=tuple(chunk.tolist()))


def _known_chunks(array: CellArray, rank: int) -> Ints:
    """The chunks that are stored; where the store cannot tell, those that are listed."""
    found = stored_chunks(array)
    if found is None:
        found = array.listed()
    chunks: Ints = np.zeros((0, rank), np.int64) if found is None else unique_rows(found)[0]
    return chunks
