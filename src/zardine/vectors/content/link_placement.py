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


def place_links(
    chunks: Ints, rows: Ints, *, canonical: bool, anchors: Ints | None = None, numbers: Ints | None = None
) -> Iterator[PlacedLinks]:
    """Arrays for links with endpoints in ``chunks`` ``(M, L, K)``, at ``rows`` ``(M, L)`` of these.

    ``canonical``: endpoints may be reordered. ``anchors`` ``(M, K)``: what offsets count from, where that is not the
    first endpoint's own chunk (another level). ``numbers`` ``(M, L)``: those of the chunks, in their order, if known.
    """
    count, width, rank = chunks.shape
    number = unique_rows(chunks.reshape(-1, rank))[1].reshape(count, width) if numbers is None else numbers
    order: Ints | None = None
    if canonical and width == 2 and anchors is None:  # endpoints of different chunks in the order of these
        turned = number[:, 0] > number[:, 1]
        order = np.stack([turned, ~turned], axis=1).astype(np.int64)
        chunks, rows, number = (np.where(_like(turned, each), each[:, ::-1], each) for each in (chunks, rows, number))
    elif canonical:
        intra = (number == number[:, :1]).all(axis=1) if anchors is None else np.zeros(count, np.bool_)
        order = np.where(intra[:, None], np.arange(width), np.lexsort((rows, number), axis=1))
        chunks = np.take_along_axis(chunks, order[:, :, None], axis=1)
        rows, number = (np.take_along_axis(each, order, axis=1) for each in (rows, number))
    base = chunks[:, 0] if anchors is None else anchors
    offsets = (chunks[:, 1:] - base[:, None]).reshape(count, (width - 1) * rank)
    distinct, family = unique_rows(offsets)
    sources = int(number.max()) + 1 if count else 1
    by_cell = stable_order(family * sources + number[:, 0], len(distinct) * sources)
    edges = starts_of(np.bincount(family, minlength=len(distinct))).tolist()
    for which, row in enumerate(distinct.tolist()):
        members = by_cell[edges[which] : edges[which + 1]]
        has_order = canonical and any(row)
        stored = rows[members]
        if has_order and order is not None:
            stored = np.concatenate([rank_of(order[members])[:, None], stored], axis=1)
        split = tuple(tuple(row[i * rank : (i + 1) * rank]) for i in range(width - 1))
        yield PlacedLinks(split, has_order, chunks[members, 0], stored, members)


def _like(chosen: npt.NDArray[np.bool_], values: Ints) -> npt.NDArray[np.bool_]:
    """A flag for each row, with as many axes as ``values`` has."""
    return chosen.reshape(-1, *(1,) * (values.ndim - 1))


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
