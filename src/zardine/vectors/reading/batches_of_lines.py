"""Whole lines in batches, in the order of the object index.

Each cell is read once: its vertices are put into temporary files, those of a few cells at a time in the order of lines,
so that the vertices of some lines that follow each other are a run of rows for each time. Where boxes, chunks or values
choose, it is looked up before which lines are asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from zardine.buffers import Ints
from zardine.errors import SelectionError
from zardine.vectors.content.columns import Column
from zardine.vectors.content.content import Content
from zardine.vectors.content.run_content import inverse
from zardine.vectors.format.ragged import find_rows, ranges, rows_at, starts_of, take_rows, unique_rows
from zardine.vectors.reading.answer import check_geometry, crs_of, resolve
from zardine.vectors.reading.batches import join_values
from zardine.vectors.reading.loading_objects import load_object_tables, with_objects
from zardine.vectors.reading.manifests import Manifests
from zardine.vectors.reading.presence import check_objects
from zardine.vectors.reading.query import ALL, Names, Query
from zardine.vectors.reading.walk import Walk
from zardine.vectors.results import Polylines
from zardine.vectors.storing.spools import Spool
from zardine.vectors.storing.store import Level


@dataclass(frozen=True, slots=True, eq=False)
class _Lines:
    """The lines that were asked for, and where their vertices are to be."""

    objects: Ints
    """Rows of the object index, ascending."""
    entry_starts: Ints
    """Where the entries of each line start."""
    entries: Ints
    """Numbers of entries of the manifests."""
    starts: Ints
    """Where the vertices of each entry start, among those of all lines."""


@dataclass(frozen=True, slots=True, eq=False)
class PlacesInLines:
    """Where the vertices of each entry of the manifests are among those that reading all lines gives."""

    manifests: Manifests
    starts: Ints
    """``(entries + 1,)``."""

    def of_rows(self, level: Level, content: Content) -> tuple[Ints, Ints]:
        """Return the rows of some loaded cells that lines have, and the place of each."""
        of_cells = self.manifests.by_chunk
        found = with_objects(level, content, of_cells.within(content.keys), asked=content.keys)
        entries = of_cells.entries(content.keys)
        return found.rows_of_objects()[1], ranges(self.starts[entries], np.diff(self.starts)[entries])

    def rows_at(self, content: Content, places: Ints) -> tuple[Ints, Ints]:
        """Return the cell and the row in it of the vertices at some places; all their cells are loaded."""
        entry = self._entries_at(places)
        cell = find_rows(content.keys, self.manifests.chunks[entry])
        fragment = content.fragments.before[cell] + self.manifests.fragments[entry]
        row = content.fragments.rows[content.fragments.starts[fragment] + places - self.starts[entry]]
        return cell, row - content.row_starts[cell]

    def chunks_at(self, places: Ints) -> Ints:
        """Return the chunks of the vertices at some places, each once."""
        chunks: Ints = unique_rows(self.manifests.chunks[self._entries_at(places)])[0]
        return chunks

    def _entries_at(self, places: Ints) -> Ints:
        entries: Ints = np.searchsorted(self.starts, places, side="right") - 1
        return entries


def places_in_lines(level: Level, most: int) -> PlacesInLines:
    """Look up where the vertices of all lines are, about ``most`` at a time. Raises as reading all of them."""
    query = Query().checked()
    walk, manifests = _walk(level, query, most)
    return PlacesInLines(manifests, _survey(walk, manifests, query).starts)


class _RowsInFile:
    """A column whose rows are in a temporary file, in the order in which they were put there."""

    def __init__(self, like: Column) -> None:
        self._spool = Spool()
        self._count = 0
        self._likes = [like.take(slice(0, 0))]
        self._from = [0]
        """The first row that each of these is like."""

    def put(self, column: Column) -> None:
        """Put rows behind those that are there."""
        like = self._likes[-1]
        if column.categories != like.categories or column.missing != like.missing:
            self._likes.append(column.take(slice(0, 0)))
            self._from.append(self._count)
        if column.values.size:
            self._spool.put(np.ascontiguousarray(column.values).data.cast("B"))
        self._count += len(column.values)

    def take(self, starts: Ints, ends: Ints) -> npt.NDArray[Any]:
        """Return the values of some runs of rows, as users see them; all of a run were put together."""
        like = np.searchsorted(self._from, starts, side="right") - 1
        found = []
        for number in np.unique(like).tolist() or [0]:
            values = self._likes[number].values
            size = values.dtype.itemsize * prod(values.shape[1:])
            mine = like == number
            data = [
                self._spool.take(start * size, (end - start) * size)
                for start, end in zip(starts[mine].tolist(), ends[mine].tolist(), strict=True)
            ]
            rows = np.frombuffer(bytearray().join(data), values.dtype).reshape(-1, *values.shape[1:])
            found.append(replace(self._likes[number], values=rows).decoded())
        return join_values(found)


class GatheredLines:
    """The lines that were asked for, read once, and given in batches as often as wanted.

    ``most``: about as many vertices are in memory while they are read; ``seen`` is told how many more were read. In
    memory are then 32 bytes for each piece of a line in a chunk, and attributes of whole lines. Raises what reading
    them raises.
    """

    def __init__(
        self, level: Level, query: Query, most: int, seen: Callable[[int], object] = lambda count: None
    ) -> None:
        walk, manifests = _walk(level, query, most)
        asked = walk.asked
        if asked.chooses:
            objects = _survey(walk, manifests, query).objects
        else:
            objects = np.arange(len(manifests.ids)) if asked.wanted is None else asked.wanted
        self._crs = crs_of(level)
        self._entry_starts, entries = take_rows(manifests.starts, objects)
        self._rows, self._counts = np.full((2, len(entries)), -1, np.int64)
        """Of each entry the first row in the files, and how many there are."""
        self._number = np.full(len(manifests.fragments), -1, np.int64)
        self._number[entries] = np.arange(len(entries))
        self._columns: dict[str, _RowsInFile] = {}
        self._positions: _RowsInFile | None = None
        self._puts, self._there = [0], 0
        """Which row was the first each time that some were put, and how many there are."""
        plain = replace(query, bbox=None, where=None, chunks=None)
        if asked.chunks is None and not asked.chooses:  # a whole level is read whole: nothing of it may be lost
            for found in walk.found(query.attributes, fragments=True):
                self._put(walk, found.content, query.attributes)
                seen(len(found.content.positions))
        missing = entries[self._counts < 0]
        keys = unique_rows(manifests.chunks[missing])[0]
        for content in walk.contents(keys, plain, fragments=True):
            self._put(walk, content, query.attributes)
            seen(len(content.positions))
        if self._positions is None and len(objects):  # of lines without vertices only types are to be known
            self._put(walk, walk.load(keys, plain, fragments=True), query.attributes)
        del self._number
        self._starts = starts_of(self._counts)
        """Where the vertices of each entry start among those of all lines."""
        self._ids = manifests.ids[objects]
        of_lines = load_object_tables(level, manifests, ALL)
        self._of_lines = {name: column.take(objects) for name, column in of_lines.items()}

    def _put(self, walk: Walk, content: Content, names: Names) -> None:
        """Put the vertices of loaded cells into the files."""
        assert walk.objects is not None
        entries = walk.objects.entries(content.keys)
        numbers = self._number[entries]
        entries, numbers = entries[numbers >= 0], numbers[numbers >= 0]
        starts, taken = take_rows(content.fragments.starts, _fragments(walk, content, entries))
        self._counts[numbers] = np.diff(starts)
        self._rows[numbers] = self._there + starts[:-1]
        self._puts.append(self._there)
        self._there += int(starts[-1])
        rows = content.fragments.rows[taken]
        given = content.vertex_attributes
        wanted = [] if names is None else given if names == ALL else [names] if isinstance(names, str) else names
        if self._positions is None:
            self._positions = _RowsInFile(Column(content.positions))
            self._columns = {name: _RowsInFile(given[name]) for name in wanted}
        self._positions.put(Column(rows_at(content.positions, rows)))
        for name, column in self._columns.items():
            column.put(given[name].take(rows))

    def batches(self, most: int, attributes: Names = ALL) -> Iterator[Polylines]:
        """Give lines, as many as have ``most`` vertices together, or one that has more; of attributes all, or none."""
        starts, first = self._starts[self._entry_starts], 0
        while first < len(self._ids):
            end = max(first + 1, int(np.searchsorted(starts, starts[first] + most, side="right")) - 1)
            yield self._lines(slice(first, end), attributes)
            first = end

    def _lines(self, which: slice, attributes: Names) -> Polylines:
        assert self._positions is not None
        entries = slice(self._entry_starts[which.start], self._entry_starts[which.stop])
        starts = self._starts[self._entry_starts[which.start : which.stop + 1]]
        starts = starts - starts[0]
        order = np.argsort(self._rows[entries], kind="stable")
        begin, counts = self._rows[entries][order], self._counts[entries][order]
        ends, together = begin + counts, np.searchsorted(self._puts, begin, side="right")
        cut = np.flatnonzero((begin[1:] != ends[:-1]) | (together[1:] != together[:-1]))
        last = np.append(cut, len(begin) - 1)[: len(begin)]
        runs = begin[np.append(0, cut + 1)[: len(begin)]], ends[last]
        place = inverse(ranges((self._starts[entries] - self._starts[entries.start])[order], counts))
        columns = self._columns if attributes is not None else {}
        return Polylines(
            rows_at(self._positions.take(*runs), place),
            starts,
            self._ids[which],
            {name: rows_at(column.take(*runs), place) for name, column in columns.items()},
            {name: column.take(which).decoded() for name, column in self._of_lines.items()},
            deepcopy(self._crs),
        )


def batches_of_lines(level: Level, query: Query, most: int) -> Iterator[Polylines]:
    """Whole lines, as many as have ``most`` vertices together; a longer line is a batch of its own."""
    yield from GatheredLines(level, query, most).batches(most)


def count_in_lines(level: Level, query: Query, most: int) -> int:
    """How many vertices the lines have that were asked for."""
    walk, manifests = _walk(level, query, most)
    return int(_survey(walk, manifests, query).starts[-1])


def _walk(level: Level, query: Query, most: int) -> tuple[Walk, Manifests]:
    check_geometry(level, "line", "polyline", "streamline")
    asked = resolve(level, query)
    if asked.manifests is None:
        raise SelectionError(f"{level.owner.name} has no lines: level {query.level} has no object index")
    return Walk(asked, most), asked.manifests


def _survey(walk: Walk, manifests: Manifests, query: Query) -> _Lines:
    """Look up which lines are asked for, and how many vertices each entry of them has."""
    asked = walk.asked
    lengths = np.full(len(manifests.fragments), -1, np.int64)
    objects = np.arange(len(manifests.ids)) if asked.wanted is None else asked.wanted
    if asked.chooses or asked.chunks is None:  # a whole level is looked at whole: nothing of it may be lost
        hit = np.zeros(len(manifests.ids), np.bool_)
        for found in walk.found(None, fragments=True):
            _note_lengths(walk, found.content, lengths)
            hit[found.content.objects_with(found.rows)] = True
        objects = objects[hit[objects]] if asked.chooses else objects
    entry_starts, entries = take_rows(manifests.starts, objects)
    missing = entries[lengths[entries] < 0]
    plain = replace(query, bbox=None, where=None, chunks=None, attributes=None)
    for content in walk.contents(unique_rows(manifests.chunks[missing])[0], plain, fragments=True):
        _note_lengths(walk, content, lengths)
    return _Lines(objects, entry_starts, entries, starts_of(lengths[entries]))


def _note_lengths(walk: Walk, content: Content, lengths: Ints) -> None:
    """Note how many vertices each entry has that is in the loaded cells."""
    assert walk.objects is not None
    entries = walk.objects.entries(content.keys)
    fragments = _fragments(walk, content, entries)
    lengths[entries] = np.diff(content.fragments.starts)[fragments]


def _fragments(walk: Walk, content: Content, entries: Ints) -> Ints:
    """The number in ``content`` of the fragment that each entry names."""
    assert walk.objects is not None
    manifests = walk.objects.manifests
    cell = find_rows(content.keys, manifests.chunks[entries])
    check_objects(walk.asked.level, manifests.chunks[entries][cell < 0], None)
    fragments: Ints = content.fragments.before[cell] + manifests.fragments[entries]
    return fragments


__all__ = ["GatheredLines", "PlacesInLines", "batches_of_lines", "count_in_lines", "places_in_lines"]
