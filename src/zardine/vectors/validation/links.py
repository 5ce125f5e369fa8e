"""Checking links: families, their arrays, counts, and the fragment index of links within chunks."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from zardine.buffers import Ints
from zardine.errors import CorruptionError, DataError
from zardine.vectors.content.content import Content, Links
from zardine.vectors.findings import Finding, error, guarded
from zardine.vectors.format.documents import KINDS
from zardine.vectors.format.fragment_index import decode_index
from zardine.vectors.format.links import decode_links, parse_segment, segment_of, signed
from zardine.vectors.format.ragged import find_rows, unique_rows
from zardine.vectors.reading.loading import dtype_of, load_cells
from zardine.vectors.reading.loading_links import deltas_of, load_cross_links, load_links
from zardine.vectors.reading.presence import stored_chunks
from zardine.vectors.reading.query import ALL
from zardine.vectors.storing.cells import CellArray
from zardine.vectors.storing.store import Level


def check_links(level: Level, content: Content, findings: list[Finding]) -> None:
    """Everything below ``links`` and ``link_attributes``."""
    place, root = f"{level.document.level}/links", level.owner.root
    needs = [name for name in root.geometry_types if name in KINDS and KINDS[name].links]
    lacks = needs and level.document.level == 0
    if lacks and guarded(findings, "links", f"{place}/0", lambda: level.node("links/0") is None):
        findings.append(error("links-missing", place, f"a {needs[0]} has links, and none are there"))
    for delta in guarded(findings, "links", place, partial(deltas_of, level)) or ():
        where = f"{place}/{signed(delta)}"
        guarded(findings, "links", where, partial(_check_family, level, content, delta, findings))
    if guarded(findings, "links", f"{place}/0", lambda: level.node("links/0") is not None):
        where = f"{level.document.level}/link_fragments"
        guarded(findings, "link-fragments", where, partial(_check_link_fragments, level))


def _check_family(level: Level, content: Content, delta: int, findings: list[Finding]) -> None:
    where = f"{level.document.level}/links/{signed(delta)}"
    about = level.attributes(f"links/{signed(delta)}") or {}
    links: Links | None
    if delta == 0:
        width = about.get("link_width")
        if "mesh" in level.owner.root.geometry_types and isinstance(width, int) and width < 3:
            findings.append(error("links", where, f"faces of {width} corners"))
        if not about.get("directed") and about.get("store", "canonical") == "canonical":
            _check_canonical(level, where, findings)
        links = load_links(level, content, attributes=ALL)
    else:
        other = level.owner.level(level.document.level + delta)
        links = load_cross_links(level, content, load_cells(other), other, delta)
    if links is None:
        raise CorruptionError("there is no document for this family of links", array=where)
    for column in links.attributes.values():
        column.decoded()
    count = len(links.endpoints)
    if (links.endpoints < 0).any():
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
    for chunk, cell, blob in zip(chunks, links.read(chunks), index.read(chunks), strict=True):
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
