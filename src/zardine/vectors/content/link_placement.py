"""Which array and cell each link goes to. Pure.

A link is filed under the chunk of its first stored endpoint; the name of the array tells the chunks of the others.
Undirected links across chunks are stored with their endpoints in ascending order, and the order they were given in as
a number.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from zardine.buffers import BytesLike, Ints
from zardine.kernel import KERNEL
from zardine.vectors.format.links import WORDS_BEFORE, encode_link_cells, rank_of, sigma_of
from zardine.vectors.format.pieces import Pieces
from zardine.vectors.format.ragged import find_runs, ranges, stable_order, starts_of, unique_rows


@dataclass(frozen=True, slots=True, eq=False)
class PlacedLinks:
    """The links of one array."""

    offsets: tuple[tuple[int, ...], ...]
    has_order: bool
    """Whether the first column of ``rows`` is the order of the endpoints."""
    cells: Ints
    """The chunks that links are filed under, ascending: ``(C, K)``."""
    starts: Ints
    """Where the links of each of these begin, and in all."""
    given: Ints
    """The number that each link had among those given."""
    stored: Pieces
    """The rows of each cell, as they are stored where all endpoints are of one level."""
    width: int
    """Endpoints of a link."""

    @property
    def is_across(self) -> bool:
        """Whether endpoints lie in different chunks."""
        return any(map(any, self.offsets))

    @property
    def chunks(self) -> Ints:
        """Return the chunk that each link is filed under, ascending: ``(M, K)``."""
        return np.repeat(self.cells, np.diff(self.starts), axis=0)

    @property
    def rows(self) -> Ints:
        """Return row numbers within chunks: ``(M, L)`` or ``(M, 1 + L)``."""
        words, columns = np.frombuffer(self.stored.data, "<i8"), self.width + self.has_order
        heads = WORDS_BEFORE if self.is_across else 0
        places = ranges(self.stored.starts // 8 + heads, np.diff(self.starts) * columns)
        return words[places].astype(np.int64, copy=False).reshape(-1, columns)


def place_links(chunks: Ints, rows: Ints, *, canonical: bool, anchors: Ints | None = None) -> Iterator[PlacedLinks]:
    """Arrays for links with endpoints in ``chunks`` ``(M, L, K)``, at ``rows`` ``(M, L)`` of these.

    ``canonical``: endpoints may be reordered. ``anchors`` ``(M, K)``: what offsets count from, where that is not the
    first endpoint's own chunk (another level).
    """
    keys, cells = unique_rows(chunks.reshape(-1, chunks.shape[2]))
    return place_in_cells(keys, cells.reshape(rows.shape), rows, canonical=canonical, anchors=anchors)


def place_in_cells(
    keys: Ints, cells: Ints, rows: Ints, *, canonical: bool, anchors: Ints | None = None
) -> Iterator[PlacedLinks]:
    """:func:`place_links` of endpoints in the chunks ``keys``, ascending, of the numbers ``cells`` ``(M, L)``."""
    (count, width), rank = cells.shape, keys.shape[1]
    if KERNEL is not None and anchors is None and count:
        found = KERNEL.place_links(*(np.ascontiguousarray(each, np.int64) for each in (keys, cells, rows)), canonical)
        if found is not None:
            yield from placed_by_kernel(keys, width, found, canonical=canonical)
            return
    order: Ints | None = None
    if canonical and width == 2 and anchors is None:  # endpoints in different chunks come in the order of these
        turned = (cells[:, 0] > cells[:, 1])[:, None]
        order = np.where(turned, np.array([1, 0]), np.array([0, 1]))
        cells, rows = (np.where(turned, each[:, ::-1], each) for each in (cells, rows))
    elif canonical:
        intra = (cells == cells[:, :1]).all(axis=1) if anchors is None else np.zeros(count, np.bool_)
        order = np.where(intra[:, None], np.arange(width), np.lexsort((rows, cells), axis=1))
        cells, rows = (np.take_along_axis(each, order, axis=1) for each in (cells, rows))
    base = keys[cells[:, 0]] if anchors is None else anchors
    offsets = (keys[cells[:, 1:]] - base[:, None]).reshape(count, (width - 1) * rank)
    distinct, family = unique_rows(offsets)
    by_cell = stable_order(family * len(keys) + cells[:, 0], len(distinct) * len(keys))
    filed, rows = cells[by_cell, 0], rows[by_cell]
    with_order = rows if order is None else np.concatenate([rank_of(order[by_cell])[:, None], rows], axis=1)
    edges = starts_of(np.bincount(family, minlength=len(distinct))).tolist()
    for which, row in enumerate(distinct.tolist()):
        some = slice(edges[which], edges[which + 1])
        has_order = canonical and any(row)
        begins = find_runs(filed[some], np.zeros(1, np.int64))
        starts = np.append(begins, edges[which + 1] - edges[which])
        table = (with_order if has_order else rows)[some].astype("<i8", copy=False)
        stored = encode_link_cells(table, starts, grouped=any(row))
        own = keys[filed[some][begins]]
        yield PlacedLinks(_split(row, width, rank), has_order, own, starts, by_cell[some], stored, width)


def placed_by_kernel(keys: Ints, width: int, found: Sequence[BytesLike], *, canonical: bool) -> Iterator[PlacedLinks]:
    """:func:`place_in_cells` of what the kernel found: see ``place_links`` there."""
    numbers = [np.frombuffer(each, np.int64) for each in found]
    offsets, families, cells, starts, given, words, edges = numbers
    rank = keys.shape[1]
    data = words.astype("<i8", copy=False).data.cast("B")
    chunks = keys[cells]
    for row, (first, last) in zip(
        offsets.reshape(-1, (width - 1) * rank).tolist(), pairwise(families.tolist()), strict=True
    ):
        begin = starts[first : last + 1]
        stored = Pieces.between(data, edges[first : last + 1] * 8)
        own = given[begin[0] : begin[-1]]
        split = _split(row, width, rank)
        yield PlacedLinks(split, canonical and any(row), chunks[first:last], begin - begin[0], own, stored, width)


def _split(offsets: Sequence[int], width: int, rank: int) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(offsets[i * rank : (i + 1) * rank]) for i in range(width - 1))


def restore_order(stored: Ints, has_order: bool) -> Ints:
    """Column numbers ``(M, L)``: place ``j`` of a link as it was given is stored in column ``result[m, j]``."""
    width = stored.shape[1] - has_order
    if not has_order:
        return np.tile(np.arange(width), (len(stored), 1))
    return np.argsort(sigma_of(stored[:, 0], width), axis=1)


def anchors_for(source: Ints, own: npt.ArrayLike, other: npt.ArrayLike) -> Ints:
    """The chunk of another level that holds the lowest corner of each source chunk.

    ``own`` and ``other`` are the chunk shapes of the levels as whole multiples of that of level 0, along each axis.
    """
    return np.floor_divide(source * np.asarray(own, np.int64), np.asarray(other, np.int64))
