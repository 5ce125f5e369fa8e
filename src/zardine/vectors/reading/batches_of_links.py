"""Graphs, meshes and skeletons in batches: runs of vertices, each with the links that are filed there.

A link may lead to a vertex of another batch. That vertex is in both then, and so that they can be told to be the same
one, each vertex of a batch has the number that it has among all. First it is looked up which rows of all cells are
found, a bit for each; that is what the numbers come from.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import BytesIO
from itertools import pairwise
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from zardine.buffers import BytesLike, Ints
from zardine.vectors.content.content import Content, Fragments, Links
from zardine.vectors.content.run_content import parents_of
from zardine.vectors.format.ragged import rows_at, starts_of
from zardine.vectors.reading.answer import Found, check_geometry, ids_of_rows, resolve, values_of
from zardine.vectors.reading.batches import join_values
from zardine.vectors.reading.loading_links import check_all_links, load_links
from zardine.vectors.reading.query import ALL, Names, Query
from zardine.vectors.reading.row_set import RowSet, RowSetMaker
from zardine.vectors.reading.walk import Walk
from zardine.vectors.results import Arrays, Graph, Mesh, Skeleton
from zardine.vectors.storing.store import Level

_WIDTHS: Final = {"graph": 2, "mesh": 3}
_CARRIED: Final = -2
"""Stands for the row before as the parent."""


@dataclass(frozen=True, slots=True, eq=False)
class _Frame:
    """All cells that hold something, without what they hold."""

    cells: Content
    """Keys, and where the rows of each cell start."""
    found: RowSet
    """The rows that were asked for."""
    carried: RowSet
    """Of skeletons: the rows whose parent is the row before, in their fragment."""


@dataclass(frozen=True, slots=True, eq=False)
class _Part:
    """Vertices of a batch: those of its cells, then others that its links lead to."""

    positions: npt.NDArray[Any]
    attributes: Arrays
    ids: Ints | None
    rows: Ints
    """As the frame counts them: ascending for the own vertices, and then for the others."""
    own: int

    def places(self, rows: Ints) -> Ints:
        """Where in the batch each of ``rows``, which are in it, is."""
        own, others = self.rows[: self.own], self.rows[self.own :]
        place = np.searchsorted(own, rows)
        is_own = place < self.own
        is_own[is_own] = own[place[is_own]] == rows[is_own]
        return np.where(is_own, place, self.own + np.searchsorted(others, rows))


def batches_of_links(level: Level, query: Query, of_links: Names, kind: str, most: int) -> Iterator[Graph | Mesh]:
    """The vertices of a graph or mesh in runs of cells with about ``most`` vertices, with the links filed there."""
    check_geometry(level, kind)
    walk = Walk(resolve(level, query), most)
    frame = _survey(walk)
    filed = 0
    for part, count in _of_links(walk, frame, of_links, kind, np.arange(len(frame.cells.keys))):
        filed += count
        if part is not None:
            yield part
    if walk.asked.chunks is None:
        check_all_links(level, filed)


def _of_links(
    walk: Walk, frame: _Frame, of_links: Names, kind: str, cells: Ints
) -> Iterator[tuple[Graph | Mesh | None, int]]:
    """Runs of some cells, and how many links are filed there; ``None``: nothing was asked for of one."""
    query = walk.asked.query
    for content, numbers in _loaded(walk, frame, query, cells):
        links = load_links(walk.asked.level, content, attributes=of_links, ends=frame.cells)
        if links is None:
            links = Links(np.zeros((0, _WIDTHS[kind]), np.int64))
        kept = np.flatnonzero(frame.found.has(links.endpoints).all(axis=1))
        part = _part(walk, frame, query, content, numbers, links.endpoints[kept])
        found: Graph | Mesh | None = None
        if len(part.rows):
            columns = {name: column.take(kept).decoded() for name, column in links.attributes.items()}
            ends, among = part.places(links.endpoints[kept]), frame.found.numbers(part.rows)
            values: Any = (part.positions, ends, part.attributes, columns, part.ids, among, part.own)
            found = Graph(*values) if kind == "graph" else Mesh(*values)
        yield found, len(links.endpoints)


def batches_of_skeletons(level: Level, query: Query, most: int) -> Iterator[Skeleton]:
    """The vertices of skeletons in runs of cells with about ``most`` vertices, and those above them."""
    check_geometry(level, "skeleton")
    walk = Walk(resolve(level, query), most)
    frame = _survey(walk)
    linked = _linked_parents(frame, load_links(level, frame.cells))
    yield from _of_skeletons(walk, frame, linked, np.arange(len(frame.cells.keys)))


def _of_skeletons(walk: Walk, frame: _Frame, linked: tuple[Ints, Ints], cells: Ints) -> Iterator[Skeleton]:
    (children, above), query = linked, walk.asked.query
    for content, numbers in _loaded(walk, frame, query, cells):
        before = parents_of(content, None)
        parents = np.where(before >= 0, numbers[before], -1)
        own = slice(*np.searchsorted(children, [numbers[0], numbers[-1] + 1]).tolist())
        parents[children[own] - numbers[0]] = above[own]
        parents = parents[frame.found.has(numbers)]
        known = frame.found.has(parents)
        part = _part(walk, frame, query, content, numbers, parents[known].reshape(-1, 1))
        if len(part.rows):
            found = np.full(len(part.rows), -1, np.int64)
            found[np.flatnonzero(known)] = part.places(parents[known])
            among = frame.found.numbers(part.rows)
            yield Skeleton(part.positions, found, part.attributes, part.ids, among, part.own)


@dataclass(frozen=True, slots=True, eq=False)
class LinkedCells:
    """All cells of a graph or of skeletons, of which runs can be read by themselves: what was surveyed of all.

    It can be written as bytes, so that other processes need not survey the level again.
    """

    kind: str
    _frame: _Frame
    _linked: tuple[Ints, Ints]

    @classmethod
    def of(cls, level: Level, kind: str, most: int) -> LinkedCells:
        """Survey a level, about ``most`` vertices at a time."""
        check_geometry(level, kind)
        frame = _survey(Walk(resolve(level, Query(level=level.document.level).checked()), most))
        links = load_links(level, frame.cells) if kind == "skeleton" else None
        return cls(kind, frame, _linked_parents(frame, links))

    def runs(self, cuts: Sequence[int]) -> list[Ints]:
        """Return the numbers of cells whose first rows are between two of ``cuts``, which end with all rows."""
        ends = np.searchsorted(self._frame.cells.row_starts[:-1], np.array(cuts, np.int64))
        ends[-1] = len(self._frame.cells.keys)
        return [np.arange(start, end) for start, end in pairwise(ends.tolist())]

    def batches(self, level: Level, cells: Ints, most: int) -> Iterator[tuple[Graph | Skeleton | None, int]]:
        """Yield about ``most`` vertices of some cells at a time, numbered among all, and how many links are filed."""
        walk = Walk(resolve(level, Query(level=level.document.level).checked()), most)
        if self.kind == "skeleton":
            yield from ((part, 0) for part in _of_skeletons(walk, self._frame, self._linked, cells))
            return
        for part, count in _of_links(walk, self._frame, ALL, self.kind, cells):
            assert not isinstance(part, Mesh)
            yield part, count

    def to_bytes(self) -> bytes:
        """Return all as bytes."""
        frame, file = self._frame, BytesIO()
        tables: Any = {"keys": frame.cells.keys, "starts": frame.cells.row_starts, "found": frame.found.words}
        tables |= {"carried": frame.carried.words, "children": self._linked[0], "above": self._linked[1]}
        np.savez(file, **tables)
        return file.getvalue()

    @classmethod
    def from_bytes(cls, kind: str, data: BytesLike) -> LinkedCells:
        """Return what :meth:`to_bytes` wrote. Raises ``ValueError`` and its like for other bytes."""
        found = np.load(BytesIO(bytes(data)), allow_pickle=False)
        cells = _cells(found["keys"], found["starts"])
        frame = _Frame(cells, RowSet(found["found"]), RowSet(found["carried"]))
        return cls(kind, frame, (found["children"], found["above"]))


def _cells(keys: Ints, starts: Ints) -> Content:
    """Cells without what they hold."""
    nothing = Fragments(np.zeros(1, np.int64), np.zeros(1, np.int64), np.zeros(0, np.int64), True)
    return Content(keys, starts, np.zeros((0, 1)), nothing)


def _survey(walk: Walk) -> _Frame:
    keys, counts = [walk.keys[:0]], [np.zeros(0, np.int64)]
    found, carried = RowSetMaker(), RowSetMaker()
    for each in walk.found(None, fragments=True):
        keys.append(each.content.keys)
        counts.append(np.diff(each.content.row_starts))
        flags = np.zeros(len(each.content.positions), np.bool_)
        flags[each.rows] = True
        found.add(flags)
        carried.add(parents_of(each.content, None) >= 0)
    return _Frame(_cells(np.concatenate(keys), starts_of(np.concatenate(counts))), found.rows(), carried.rows())


def _linked_parents(frame: _Frame, links: Links | None) -> tuple[Ints, Ints]:
    """The rows, ascending, whose parent a link says, and these parents; as :func:`parents_of` has it."""
    if links is None:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    ends = links.endpoints
    if not links.directed:
        children, above = ends[ends[:, 0] >= 0].T
    else:
        ends = ends[(ends >= 0).all(axis=1)]
        rows, place = np.unique(ends, return_inverse=True)
        parents = np.where(frame.carried.has(rows), _CARRIED, -1)
        for child, other in place.reshape(-1, 2).tolist():
            if parents[child] == -1 or parents[other] != -1:
                parents[child] = rows[other]
            else:
                parents[other] = rows[child]
        children, above = rows[parents >= 0], parents[parents >= 0]
    order = np.argsort(children, kind="stable")
    children, above = children[order], above[order]
    last = np.append(children[1:] != children[:-1], True)[: len(children)]
    return children[last], above[last]


def _loaded(walk: Walk, frame: _Frame, query: Query, cells: Ints) -> Iterator[tuple[Content, Ints]]:
    """Cells of the frame, portion after portion, with the number of each of their rows in the frame."""
    at = 0
    for content in walk.contents(frame.cells.keys[cells], query, fragments=True) if len(cells) else ():
        own = cells[at : at + len(content.keys)]  # none is empty, so that all are there
        at += len(own)
        shift = frame.cells.row_starts[own] - content.row_starts[:-1]
        yield content, np.repeat(shift, np.diff(content.row_starts)) + np.arange(len(content.positions))


def _part(walk: Walk, frame: _Frame, query: Query, content: Content, numbers: Ints, ends: Ints) -> _Part:
    """The found rows of ``content``, and others that ``ends`` name; rows and ends as the frame counts."""
    own = np.flatnonzero(frame.found.has(numbers))
    distinct = np.unique(ends)
    others = distinct[(distinct < numbers[0]) | (distinct > numbers[-1])]
    cells = np.unique(np.searchsorted(frame.cells.row_starts, others, side="right") - 1)
    pieces = [_Piece.of(walk, query, content, own)]
    for other, theirs in _loaded(walk, frame, query, cells):
        wanted = others[(others >= theirs[0]) & (others <= theirs[-1])]
        pieces.append(_Piece.of(walk, query, other, np.searchsorted(theirs, wanted)))
    ids = [each.ids for each in pieces if each.ids is not None]
    return _Part(
        np.concatenate([each.positions for each in pieces]),
        {name: join_values([each.values[name] for each in pieces]) for name in pieces[0].values},
        np.concatenate(ids) if ids else None,
        np.concatenate([numbers[own], others]),
        len(own),
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Piece:
    """Some rows of loaded cells."""

    positions: npt.NDArray[Any]
    values: Arrays
    ids: Ints | None

    @classmethod
    def of(cls, walk: Walk, query: Query, content: Content, rows: Ints) -> _Piece:
        asked = walk.asked
        found = Found(asked.level, content, asked.manifests, rows, wanted=asked.wanted)
        values = values_of(content.vertex_attributes, rows, query.attributes)
        return cls(rows_at(content.positions, rows), values, ids_of_rows(found))


__all__ = ["LinkedCells", "batches_of_links", "batches_of_skeletons"]
