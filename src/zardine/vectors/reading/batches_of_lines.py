"""Whole lines in batches, in the order of the object index.

First it is looked up how many vertices every line has, cells after cells; then the lines of a batch are put together
from the cells that they run through, a few cells at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from zardine.buffers import Ints
from zardine.errors import SelectionError
from zardine.vectors.content.columns import Column
from zardine.vectors.content.content import Content
from zardine.vectors.format.ragged import find_rows, ranges, rows_at, starts_of, take_rows, unique_rows
from zardine.vectors.reading.answer import check_geometry, crs_of, resolve, values_of
from zardine.vectors.reading.batches import join_values
from zardine.vectors.reading.loading_objects import load_object_tables, with_objects
from zardine.vectors.reading.manifests import Manifests
from zardine.vectors.reading.presence import check_objects
from zardine.vectors.reading.query import ALL, Query
from zardine.vectors.reading.walk import Walk
from zardine.vectors.results import Polylines
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

    @property
    def line_starts(self) -> Ints:
        """Where the vertices of each line start."""
        return self.starts[self.entry_starts]


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


def batches_of_lines(level: Level, query: Query, most: int) -> Iterator[Polylines]:
    """Whole lines, as many as have ``most`` vertices together; a longer line is a batch of its own."""
    walk, manifests = _walk(level, query, most)
    lines = _survey(walk, manifests, query)
    columns = load_object_tables(level, manifests, ALL)
    starts, first = lines.line_starts, 0
    while first < len(lines.objects):
        end = max(first + 1, int(np.searchsorted(starts, starts[first] + most, side="right")) - 1)
        yield _put_together(walk, manifests, query, lines, slice(first, end), columns)
        first = end


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


def _put_together(
    walk: Walk, manifests: Manifests, query: Query, lines: _Lines, which: slice, columns: dict[str, Column]
) -> Polylines:
    assert walk.objects is not None
    objects, starts = lines.objects[which], lines.line_starts[which.start : which.stop + 1]
    places = slice(lines.entry_starts[which.start], lines.entry_starts[which.stop])
    entries, targets = lines.entries[places], lines.starts[places] - starts[0]
    counts = np.diff(lines.starts[places.start : places.stop + 1])
    cells, cell = np.unique(walk.objects.cell[entries], return_inverse=True)
    order, at = np.argsort(cell, kind="stable"), 0
    edges = np.searchsorted(cell[order], np.arange(len(cells) + 1))
    plain = replace(query, bbox=None, where=None, chunks=None)
    target, positions = [np.zeros(0, np.int64)], list[npt.NDArray[Any]]()
    values: dict[str, list[npt.NDArray[Any]]] = {}
    keys = walk.objects.keys[cells]
    contents = walk.contents(keys, plain, fragments=True) if len(keys) else [walk.load(keys, plain, fragments=True)]
    for content in contents:
        end = at + len(content.keys)
        own = order[edges[at] : edges[end]]
        at = end
        _, taken = take_rows(content.fragments.starts, _fragments(walk, content, entries[own]))
        rows = content.fragments.rows[taken]
        target.append(ranges(targets[own], counts[own]))
        positions.append(rows_at(content.positions, rows))
        for name, each in values_of(content.vertex_attributes, rows, query.attributes).items():
            values.setdefault(name, []).append(each)
    place = np.argsort(np.concatenate(target))
    of_lines = {name: column.take(objects).decoded() for name, column in columns.items()}
    attributes = {name: join_values(each)[place] for name, each in values.items()}
    crs = crs_of(walk.asked.level)
    ids = manifests.ids[objects]
    return Polylines(np.concatenate(positions)[place], starts - starts[0], ids, attributes, of_lines, crs)


__all__ = ["PlacesInLines", "batches_of_lines", "count_in_lines", "places_in_lines"]
