"""The manifests of objects as numbers: which chunks and fragments each object is made of."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from zardine.buffers import Ints
from zardine.errors import SelectionError
from zardine.vectors.format.ragged import find_rows, stable_order, starts_of, take_rows, unique_rows


class Manifests:
    """The ids of a level's objects, and for each the chunks and fragment numbers that it is made of.

    Objects are counted without those that are removed: their numbers are those of the tables where none is.
    """

    def __init__(
        self,
        ids: Ints,
        starts: Ints,
        chunks: Ints,
        fragments: Ints,
        rows: Ints | None = None,
        row_count: int | None = None,
    ) -> None:
        self.ids = ids
        self.starts = starts
        self.chunks = chunks
        self.fragments = fragments
        self.rows = rows
        """Of each the row in the tables; ``None``: the same."""
        self.row_count = len(ids) if row_count is None else row_count
        """How many rows the tables have."""

    @property
    def nbytes(self) -> int:
        """Bytes in memory, with those of :attr:`by_chunk`."""
        own = sum(each.nbytes for each in (self.ids, self.starts, self.chunks, self.fragments))
        return own + 2 * self.fragments.nbytes + (0 if self.rows is None else self.rows.nbytes)

    def freeze(self) -> None:
        """Let nobody change them."""
        for each in (self.ids, self.starts, self.chunks, self.fragments):
            each.flags.writeable = False

    @cached_property
    def by_chunk(self) -> ManifestsByChunk:
        """The same, chunk by chunk."""
        return ManifestsByChunk(self)

    def rows_of(self, ids: Ints) -> Ints:
        """The rows of the objects with these ids. Raises :class:`~zardine.errors.SelectionError` for unknown ones."""
        rows = places_among(self.ids, ids)
        if (rows < 0).any():
            raise SelectionError(f"there is no object with the id {int(ids[rows < 0][0])}")
        return rows

    def take(self, rows: Ints) -> Manifests:
        """Some of them."""
        starts, entries = take_rows(self.starts, rows)
        in_tables = rows if self.rows is None else self.rows[rows]
        return Manifests(
            self.ids[rows], starts, self.chunks[entries], self.fragments[entries], in_tables, self.row_count
        )


class ManifestsByChunk:
    """Manifests whose entries can be had chunk by chunk."""

    def __init__(self, manifests: Manifests) -> None:
        self.manifests = manifests
        self.keys, self.cell = unique_rows(manifests.chunks)
        """The chunks with entries, ascending, and for each entry the number of its own."""
        self._order = stable_order(self.cell, len(self.keys))
        self._starts = starts_of(np.bincount(self.cell, minlength=len(self.keys)))

    def entries(self, keys: Ints) -> Ints:
        """The entries in the chunks ``keys``, ascending."""
        cells = find_rows(self.keys, keys)
        return np.sort(self._order[take_rows(self._starts, cells[cells >= 0])[1]])

    def objects_in(self, keys: Ints) -> Ints:
        """Rows of the objects that have an entry in one of the chunks ``keys``, ascending."""
        return np.unique(np.searchsorted(self.manifests.starts, self.entries(keys), side="right") - 1)

    def within(self, keys: Ints) -> Manifests:
        """The same objects with what they have in the chunks ``keys``."""
        whole, entries = self.manifests, self.entries(keys)
        starts = np.searchsorted(entries, whole.starts)
        return Manifests(whole.ids, starts, whole.chunks[entries], whole.fragments[entries])


def places_among(ids: Ints, wanted: Ints) -> Ints:
    """The place of each of a few ids among all, which are distinct; -1 for those that are not there."""
    if not len(ids):
        return np.full(len(wanted), -1, np.int64)
    order = None if bool((ids[1:] > ids[:-1]).all()) else np.argsort(ids, kind="stable")
    place = np.minimum(np.searchsorted(ids, wanted, sorter=order), len(ids) - 1)
    found = place if order is None else order[place]
    return np.where(ids[found] == wanted, found, -1)


__all__ = ["Manifests", "ManifestsByChunk", "places_among"]
