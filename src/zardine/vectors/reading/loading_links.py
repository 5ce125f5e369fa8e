"""Reading the links of loaded cells."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np

from zardine.buffers import Ints
from zardine.engine.freshness import is_far
from zardine.engine.side_by_side import begun
from zardine.errors import CorruptionError, DataError
from zardine.vectors.content.columns import Column, column_of
from zardine.vectors.content.content import Content, Links
from zardine.vectors.content.link_placement import anchors_for, restore_order
from zardine.vectors.format.links import decode_links, parse_delta, parse_segment, signed
from zardine.vectors.format.ragged import find_rows, row_numbers, unique_rows
from zardine.vectors.reading.ahead import ask_on
from zardine.vectors.reading.loading import column_of_cells, dtype_of
from zardine.vectors.reading.missing import missing_attribute
from zardine.vectors.reading.presence import lost_cell, present_chunks
from zardine.vectors.reading.query import ALL, Names
from zardine.vectors.storing.cells import CellArray, child
from zardine.vectors.storing.cells_together import Cells
from zardine.vectors.storing.store import Level

_OF_A_VALUE: Final = 8
"""Bytes of a number in a cell, at most as a rule."""


@dataclass(frozen=True, slots=True, eq=False)
class _Part:
    """The links of one array, endpoints in the order that they were given in."""

    cells: Ints
    """Chunk of each endpoint: ``(M, L, K)``."""
    rows: Ints
    columns: dict[str, Column]
    whole: bool = False
    """Whether it has all links of the array."""
    filed: Ints | None = None
    """The chunk that each link is filed under: ``(M, K)``."""


def deltas_of(level: Level) -> list[int]:
    """The level differences that a level has links for."""
    return sorted(parse_delta(name) for name in level.names("links"))


def load_links(
    level: Level, content: Content, delta: int = 0, *, attributes: Names = None, ends: Content | None = None
) -> Links | None:
    """The links filed under the loaded cells; ``None`` where there is no such family.

    For ``delta`` 0, endpoints are rows of ``content``, or of ``ends``, whose cells these are among. Raises
    :class:`~zardine.errors.CorruptionError` for links to rows that are not there.
    """
    about = level.attributes(f"links/{signed(delta)}")
    if about is None:
        return None
    width = width_of(about, level, delta)
    parts = _parts(level, content, delta, width, about, attributes)
    _check_count(level, delta, about, parts)
    ends = content if ends is None else ends
    endpoints = [_to_rows(level, ends, part) for part in parts]
    directed = bool(about.get("directed"))
    joined = np.concatenate([np.zeros((0, width), np.int64), *endpoints])
    columns = _joined(level, delta, parts)
    if about.get("store") == "duplicate":  # one copy for each chunk: that of the first chunk stays
        chunks = np.concatenate([np.zeros((0, width, level.rank), np.int64), *(part.cells for part in parts)])
        filed = np.concatenate([np.zeros(0, np.int64), *(_filed(ends, part) for part in parts)])
        lowest = find_rows(ends.keys, chunks.reshape(-1, level.rank)).reshape(-1, width)
        kept = filed == np.where(lowest < 0, len(ends.keys), lowest).min(axis=1, initial=len(ends.keys))
        joined, columns = joined[kept], {name: column.take(kept) for name, column in columns.items()}
    return Links(joined, columns, directed)


def expect_links(level: Level, delta: int = 0, *, attributes: Names = None) -> None:
    """Ask for the documents that :func:`load_links` will want, where the level is read ahead."""
    if is_far(level.owner.store) and level.attributes(f"links/{signed(delta)}") is not None:
        segments, names = level.names(f"links/{signed(delta)}"), _attribute_names(level, attributes)
        paths = [f"links/{signed(delta)}/{each}" for each in segments]
        ask_on(level, [*paths, *(f"link_attributes/{name}/{path[6:]}" for name in names for path in paths)])


def stored_links(level: Level, content: Content, delta: int) -> int:
    """How many links of a family are stored, copies included, whatever it says."""
    about = level.attributes(f"links/{signed(delta)}") or {}
    width = width_of(about, level, delta)
    root = np.ones(level.rank, np.int64)
    return sum(len(part.rows) for part in _parts(level, content, delta, width, about, None, (root, root)))


def load_cross_links(level: Level, content: Content, other: Content, other_level: Level, delta: int) -> Links | None:
    """Links to another level: rows of ``content`` and rows of ``other``."""
    about = level.attributes(f"links/{signed(delta)}")
    if about is None:
        return None
    width = width_of(about, level, delta)
    root = np.asarray(level.owner.root.chunk_shape)
    own, its = (np.rint(np.asarray(each.document.chunk_shape) / root).astype(np.int64) for each in (level, other_level))
    pad = np.ones(level.rank - len(own), np.int64)
    ratios = np.concatenate([pad, own]), np.concatenate([pad, its])
    found = [np.zeros((0, width), np.int64)]
    parts = _parts(level, content, delta, width, about, None, ratios)
    _check_count(level, delta, about, parts)
    for part in parts:
        first = _to_rows(level, content, _Part(part.cells[:, :1], part.rows[:, :1], {}))
        rest = _to_rows(other_level, other, _Part(part.cells[:, 1:], part.rows[:, 1:], {}))
        found.append(np.concatenate([first, rest], axis=1))
    return Links(np.concatenate(found), {}, True)


def width_of(about: Mapping[str, Any], level: Level, delta: int) -> int:
    """How many endpoints the links of a family have. Raises :class:`~zardine.errors.CorruptionError`."""
    width = about.get("link_width")
    if isinstance(width, bool) or not isinstance(width, int) or not 1 <= width <= 12:
        place = child(level.path, f"links/{signed(delta)}")
        raise CorruptionError(f"link_width is {width!r}: a number from 1 on is needed", array=place)
    return width


def _parts(
    level: Level,
    content: Content,
    delta: int,
    width: int,
    about: Mapping[str, Any],
    attributes: Names,
    ratios: tuple[Ints, Ints] | None = None,
) -> list[_Part]:
    names = _attribute_names(level, attributes)

    def part_of(segment: str) -> _Part:
        place = f"links/{signed(delta)}/{segment}"
        array = level.cells(place)
        if array is None:
            raise CorruptionError("there is no document for these links", array=child(level.path, place))
        offsets = parse_segment(segment, level.rank)
        if len(offsets) != width - 1:
            raise CorruptionError(f"the name of {segment!r} is none for links of {width}", array=array.array.path)
        return _part(level, content.keys, array, (delta, segment), offsets, names, about, ratios)

    segments = [partial(part_of, segment) for segment in level.names(f"links/{signed(delta)}")]
    return [part() for part in begun(level.owner.store, segments)]


def _attribute_names(level: Level, attributes: Names) -> list[str]:
    if attributes == ALL:
        return level.names("link_attributes")
    return [attributes] if isinstance(attributes, str) else list(attributes or ())


@dataclass(frozen=True, slots=True, eq=False)
class NearLinks:
    """The links within a level that have an end in some chunks, and others filed with them."""

    chunks: Ints
    """Chunk of each endpoint, in the order that they were given in: ``(M, L, K)``."""
    rows: Ints
    """``(M, L)``: row numbers within chunks."""
    columns: dict[str, Column]
    segment: Ints
    """The number of the array that each is in, among the sorted names of the family: ``(M,)``."""
    filed: Ints
    """``(M, K)``."""


def links_near(level: Level, chunks: Ints) -> NearLinks:
    """All links of the cells in which one may have an end in ``chunks``, in every array of level difference 0."""
    about = level.attributes("links/0") or {}
    width, names = width_of(about, level, 0), level.names("link_attributes")

    def part_of(segment: str) -> _Part:
        array, offsets = level.cells(f"links/0/{segment}"), parse_segment(segment, level.rank)
        if array is None or len(offsets) != width - 1:
            raise CorruptionError("there is no array of these links", array=child(level.path, f"links/0/{segment}"))
        near = unique_rows(np.concatenate([chunks, *(chunks - np.asarray(offset) for offset in offsets)]))[0]
        own = [name for name in names if level.node(f"link_attributes/{name}/0") is not None]
        return _part(level, near, array, (0, segment), offsets, own, about, None)

    segments = [partial(part_of, segment) for segment in level.names("links/0")]
    parts = [part() for part in begun(level.owner.store, segments)]
    none = np.zeros((0, width, level.rank), np.int64)
    return NearLinks(
        np.concatenate([none, *(part.cells for part in parts)]),
        np.concatenate([none[:, :, 0], *(part.rows for part in parts)]),
        _joined(level, 0, parts),
        row_numbers([len(part.rows) for part in parts]),
        np.concatenate([none[:, 0], *(part.filed for part in parts if part.filed is not None)]),
    )


def _part(
    level: Level,
    chunks: Ints,
    array: CellArray,
    name: tuple[int, str],
    offsets: tuple[tuple[int, ...], ...],
    names: list[str],
    about: Mapping[str, Any],
    ratios: tuple[Ints, Ints] | None,
) -> _Part:
    delta, segment = name
    width, rank = len(offsets) + 1, level.rank
    has_order = _has_order(array, delta, offsets, about)
    present = present_chunks(array, None)
    keys = present[find_rows(chunks, present) >= 0]
    store, suffix = level.owner.store, f"{signed(delta)}/{segment}"
    read = partial(_sized(level, array, about, (width + 1) * _OF_A_VALUE).read, keys)
    others = [partial(_column, level, f"{each}/{suffix}", keys, about) for each in names]
    of_tables, *of_columns = begun(store, [read, *others])
    tables = _tables(array, keys, of_tables(), width + has_order, plain=_is_plain(delta, offsets))
    counts = np.array([len(each) for each in tables], np.int64)
    stored = np.concatenate([np.zeros((0, width + has_order), np.int64), *tables])
    try:
        order = restore_order(stored, has_order)
    except DataError as error:
        raise error.at(array=array.array.path) from None
    source = np.repeat(keys, counts, axis=0)
    anchor = source if ratios is None else anchors_for(source, *ratios)
    cells = np.empty((len(stored), width, rank), np.int64)
    cells[:, 0] = source
    for place, offset in enumerate(offsets, 1):
        cells[:, place] = anchor + np.asarray(offset)
    rows = np.take_along_axis(stored[:, has_order:], order, axis=1)
    cells = np.take_along_axis(cells, order[:, :, None], axis=1)
    columns = {}
    for each, of_column in zip(names, of_columns, strict=True):
        column = of_column()
        if column is None:
            _check_absent(level, each, delta, segment, len(keys))
            continue
        columns[each] = column_of_cells(column[0], column[1], keys, counts, counts)
    return _Part(cells, rows, columns, len(keys) == len(present), source)


def _sized(level: Level, array: CellArray, about: Mapping[str, Any], nbytes: int) -> CellArray:
    """The array, with what its cells take at most as a rule: as if all links were in it, of so many bytes each."""
    listed, count = array.listed(), about.get("num_physical_records", about.get("num_links"))
    if not is_far(level.owner.store) or listed is None or not len(listed) or type(count) is not int or count < 0:
        return array
    return array.expecting(min(count, 2**40) * nbytes / len(listed))


def _column(level: Level, relative: str, keys: Ints, about: Mapping[str, Any]) -> tuple[CellArray, Cells] | None:
    """The array of an attribute of links, and its cells; ``None`` where there is none."""
    array = level.cells(f"link_attributes/{relative}")
    return None if array is None else (array, _sized(level, array, about, _OF_A_VALUE).read_together(keys))


def rows_of_links(level: Level, delta: int, segment: str) -> tuple[Ints, Ints]:
    """The chunks with links in an array of a family, and how many each has."""
    about = level.attributes(f"links/{signed(delta)}") or {}
    array, offsets = level.cells(f"links/{signed(delta)}/{segment}"), parse_segment(segment, level.rank)
    if array is None:
        return np.zeros((0, level.rank), np.int64), np.zeros(0, np.int64)
    keys = present_chunks(array, None)
    width = len(offsets) + 1 + _has_order(array, delta, offsets, about)
    tables = _tables(array, keys, array.read(keys), width, plain=_is_plain(delta, offsets))
    return keys, np.array([len(each) for each in tables], np.int64)


def _is_plain(delta: int, offsets: tuple[tuple[int, ...], ...]) -> bool:
    """Whether an array holds links within chunks, which are stored without groups."""
    return delta == 0 and not any(map(any, offsets))


def _has_order(array: CellArray, delta: int, offsets: tuple[tuple[int, ...], ...], about: Mapping[str, Any]) -> bool:
    """Whether rows start with a number that says in which order endpoints were given."""
    kept = about.get("store") == "duplicate" or not about.get("directed")
    usual = not _is_plain(delta, offsets) and delta == 0 and kept
    return bool(array.attributes.get("has_perm", usual))


def _tables(array: CellArray, keys: Ints, blobs: list[bytes], width: int, *, plain: bool) -> list[Ints]:
    """The rows of numbers in each cell. Raises :class:`~zardine.errors.CorruptionError`."""
    dtype = dtype_of(array, "int64")
    if dtype.kind not in "iu":
        raise CorruptionError(f"dtype {dtype} is none that links can have", array=array.array.path)
    tables = []
    for chunk, blob in zip(keys, blobs, strict=True):
        if not blob:
            raise lost_cell(array, chunk)
        try:
            tables.append(decode_links(blob, dtype, width, grouped=not plain))
        except DataError as error:
            raise error.at(array=array.array.path, chunk=tuple(chunk.tolist())) from None
    return tables


def check_all_links(level: Level, count: int) -> None:
    """Raise where fewer links within the level were found, cell after cell, than it says; copies are not counted."""
    about = level.attributes("links/0") or {}
    if about.get("store") != "duplicate":
        _check_number(level, 0, about, count)


def _check_count(level: Level, delta: int, about: Mapping[str, Any], parts: list[_Part]) -> None:
    """Raise where a family of links, all of which were read, has fewer of them than it says."""
    if all(part.whole for part in parts):
        _check_number(level, delta, about, sum(len(part.rows) for part in parts))


def _check_number(level: Level, delta: int, about: Mapping[str, Any], count: int) -> None:
    named = about.get("num_physical_records", about.get("num_links"))
    if isinstance(named, int) and count < named:
        reason = f"{count} of {named} links are stored: the others are lost"
        reason += "; repair(drop_lost=True) makes do with what is left"
        raise CorruptionError(reason, array=child(level.path, f"links/{signed(delta)}"))


def _to_rows(level: Level, content: Content, part: _Part) -> Ints:
    """Row numbers of endpoints; -1 for those in cells that are not loaded."""
    count, width, rank = part.cells.shape
    cell = find_rows(content.keys, part.cells.reshape(-1, rank)).reshape(count, width)
    if len(content.keys) == 0:
        return np.full((count, width), -1, np.int64)
    wrong = (part.rows < 0) | ((cell >= 0) & (part.rows >= np.diff(content.row_starts)[cell]))
    if wrong.any():
        chunk = tuple(part.cells[wrong][0].tolist())
        reason = f"a link refers to row {int(part.rows[wrong][0])}, which its chunk does not have"
        raise CorruptionError(reason, array=child(level.path, "links"), chunk=chunk)
    return np.where(cell >= 0, content.row_starts[cell] + part.rows, -1)


def _filed(content: Content, part: _Part) -> Ints:
    """For copies of links the number of the cell that each is filed under: that of the first given endpoint."""
    return find_rows(content.keys, part.cells[:, 0])


def _check_absent(level: Level, name: str, delta: int, segment: str, cells: int) -> None:
    """Raise where an attribute should have an array beside that of links, in which it has values for some cells."""
    family = f"link_attributes/{name}"
    if level.node(family) is None:
        raise missing_attribute(level, family)
    if cells and level.node(f"{family}/{signed(delta)}") is not None:
        place = child(level.path, f"{family}/{signed(delta)}/{segment}")
        raise CorruptionError("the values of an attribute of these links are missing", array=place)


def _joined(level: Level, delta: int, parts: list[_Part]) -> dict[str, Column]:
    """The attributes of the links of all arrays, one after the other."""
    joined = {}
    for name in dict.fromkeys(name for part in parts for name in part.columns):
        own = [part.columns[name] for part in parts if name in part.columns]
        first = own[0]
        if len({each.row_shape for each in own}) > 1 or len({each.categories is None for each in own}) > 1:
            place = child(level.path, f"link_attributes/{name}/{signed(delta)}")
            raise CorruptionError("the arrays of an attribute hold values of different kinds", array=place)
        if len({(each.categories, each.missing) for each in own}) > 1:
            values = np.concatenate([each.decoded().astype(object) for each in own])
            joined[name] = column_of(name, values, len(values), "links")
            continue
        values = np.concatenate([each.values for each in own])
        joined[name] = Column(values, first.categories, first.missing, dict(first.details))
    return joined
