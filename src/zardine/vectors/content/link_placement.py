"""Which array and cell each link goes to. Pure.

A link is filed under the chunk of its first stored endpoint; the name of the array tells the chunks of the others.
Undirected links across chunks are stored with their endpoints in ascending order, and the order they were given in as
a number.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from zardine.buffers import Ints
from zardine.vectors.format.links import rank_of, sigma_of
from zardine.vectors.format.ragged import stable_order, starts_of, unique_rows


@dataclass(frozen=True, slots=True, eq=False)
class PlacedLinks:
    """The links of one array."""

    offsets: tuple[tuple[int, ...], ...]
    has_order: bool
    """Whether the first column of ``rows`` is the order of the endpoints."""
    chunks: Ints
    """Of each link, ascending: ``(M, K)``."""
    rows: Ints
    """``(M, L)`` or ``(M, 1 + L)``: row numbers within chunks."""
    given: Ints
    """The number that each link had among those given."""


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
    chunks, rows = keys[cells[by_cell, 0]], rows[by_cell]
    with_order = rows if order is None else np.concatenate([rank_of(order[by_cell])[:, None], rows], axis=1)
    edges = starts_of(np.bincount(family, minlength=len(distinct))).tolist()
    for which, row in enumerate(distinct.tolist()):
        some = slice(edges[which], edges[which + 1])
        has_order = canonical and any(row)
        split = tuple(tuple(row[i * rank : (i + 1) * rank]) for i in range(width - 1))
        yield PlacedLinks(split, has_order, chunks[some], (with_order if has_order else rows)[some], by_cell[some])


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
