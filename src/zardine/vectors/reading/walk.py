"""Going through what was asked of a level in portions of cells, so that never all of it is in memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from zardine.buffers import Ints
from zardine.errors import CorruptionError
from zardine.vectors.content.content import Content
from zardine.vectors.format.ragged import find_rows, unique_rows
from zardine.vectors.reading.answer import Asked, Found, load_asked, matching_rows
from zardine.vectors.reading.loading import dtype_of
from zardine.vectors.reading.portions import Portions
from zardine.vectors.reading.presence import check_all, present_chunks, stored_chunks
from zardine.vectors.reading.query import Names, Query
from zardine.vectors.storing.cell_costs import CellSizes
from zardine.vectors.storing.cells import CellArray, child


class Walk:
    """What was asked of a level, cells after cells, in the order in which it is stored."""

    def __init__(self, asked: Asked, most: int) -> None:
        if asked.vertices is None:
            raise CorruptionError("the level has no vertices", array=child(asked.level.path, "vertices"))
        self.asked = asked
        self.most = most
        self.vertices: CellArray = asked.vertices
        self._index = asked.level.cells("vertex_fragments") if asked.chunks is None else None
        self.keys = present_chunks(self.vertices, self._index) if asked.chunks is None else asked.chunks
        self._sizes = CellSizes(self.vertices)
        self.objects = None if asked.manifests is None else asked.manifests.by_chunk

    def found(self, attributes: Names, *, fragments: bool) -> Iterator[Found]:
        """Go through the cells that may hold what was asked for, and through the rows of them that are it.

        Raises, at the end of a whole level, :class:`~zardine.errors.CorruptionError` where it has lost rows.
        """
        asked, total, seen = self.asked, 0, self.keys
        query = replace(asked.query, attributes=attributes)
        for content in self.contents(self.keys, query, fragments=fragments):
            total += len(content.positions)
            yield self.matching(content)
        if asked.chunks is not None:
            return
        if total != asked.level.document.vertex_count:  # as load_cells does: what is stored counts, not what is listed
            stored = stored_chunks(self.vertices)
            more = None if stored is None else unique_rows(stored)[0]
            more = more if more is None else more[find_rows(seen, more) < 0]
            for content in () if more is None else self.contents(more, query, fragments=fragments):
                total += len(content.positions)
                seen = np.concatenate([seen, content.keys])
                yield self.matching(content)
        check_all(asked.level, self.vertices, self._index, seen, total)

    def contents(self, keys: Ints, query: Query, *, fragments: bool) -> Iterator[Content]:
        """Load the cells of ``keys``, portion after portion, with their objects."""
        portions = Portions(self.vertices, keys, self.most, self._row_bytes(), self._sizes)
        for run in portions:
            content = self.load(run, query, fragments=fragments)
            portions.learn(len(content.positions))
            yield content

    def load(self, keys: Ints, query: Query, *, fragments: bool) -> Content:
        """Load the cells of ``keys`` at once."""
        manifests = None if self.objects is None else self.objects.within(keys)
        return load_asked(self.asked.level, keys, query, manifests, fragments, self.vertices)

    def matching(self, content: Content) -> Found:
        """Return the rows of loaded cells that were asked for."""
        asked = self.asked
        rows = matching_rows(asked.level, content, asked.query, asked.wanted)
        return Found(asked.level, content, asked.manifests, rows, wanted=asked.wanted)

    def _row_bytes(self) -> int:
        return self.asked.level.owner.root.ndim * dtype_of(self.vertices, "float32").itemsize


__all__ = ["Walk"]
