"""A part of a store that is asked for, held before anything is read: what it is, and how to have it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Any, Final, Unpack

import numpy as np

from zardine.errors import SelectionError
from zardine.nodes.argument_hints import unknown_argument
from zardine.public_names import public
from zardine.stores.resolve import StoreLike
from zardine.vectors.content.arguments import shown
from zardine.vectors.graph import read_graph
from zardine.vectors.mesh import read_mesh
from zardine.vectors.points import read_points
from zardine.vectors.polylines import read_polylines
from zardine.vectors.reading.batches import batches_of_points, count_vertices, in_batches
from zardine.vectors.reading.batches_of_lines import batches_of_lines, count_in_lines
from zardine.vectors.reading.batches_of_links import batches_of_links, batches_of_skeletons
from zardine.vectors.reading.explaining import Explanation, explain
from zardine.vectors.reading.kept import KeptLevel, KeptPlace, kind_of
from zardine.vectors.reading.query import ALL, Query, QueryOptions
from zardine.vectors.reading.rereading import read_steadily
from zardine.vectors.results import Geometry
from zardine.vectors.skeleton import read_skeleton
from zardine.vectors.storing.store import Level

LINES: Final = ("line", "polyline", "streamline")
_AT_ONCE: Final = 2**20
"""Vertices that are looked at together to count."""


@public("zardine.vectors")
class Selection:
    """A part of a store. Nothing is read before it is asked for, and each time anew."""

    def __init__(self, path: StoreLike, kind: str, **query: Unpack[QueryOptions]) -> None:
        self.path = path
        self._kind = kind
        unknown = sorted(query.keys() - QueryOptions.__annotations__)
        if unknown:
            known = list(QueryOptions.__annotations__)
            raise TypeError(f"{unknown_argument('read', unknown[0], known)}; there are {', '.join(known)}")
        self.query = Query(**query).checked()

    @property
    def kind(self) -> str:
        """The geometry; of a store that is held open, as it was told last."""
        return self.path.documents.kind if isinstance(self.path, KeptPlace) else self._kind

    def read(self) -> Geometry:
        """Read all of it, as :meth:`Vectors.read` does."""
        while True:
            kind = self.kind
            try:
                found = self._read(kind)
            except SelectionError:
                if isinstance(self.path, KeptPlace):
                    self.path.look_at_kind()
                if self.kind == kind:
                    raise
            else:
                if self.kind == kind:
                    return found

    def _read(self, kind: str) -> Geometry:
        query: Any = {each.name: getattr(self.query, each.name) for each in fields(self.query)}
        match kind:
            case "graph":
                return read_graph(self.path, **query)
            case "skeleton":
                return read_skeleton(self.path, **query)
            case "mesh":
                return read_mesh(self.path, **query)
            case "line" | "polyline" | "streamline":
                return read_polylines(self.path, **query)
        return read_points(self.path, **query)

    def explain(self) -> Explanation:
        """Look up what :meth:`read` takes where nothing is remembered yet: cells, shards, requests, bytes.

        Reads documents, the object index, and indexes of shards or sizes of cells; ``print`` shows it as a table.
        """
        return explain(self.path, self.query, None if isinstance(self.path, KeptPlace) else self._kind)

    def count(self) -> int:
        """Return how many vertices it has: rows of ``positions`` that :meth:`read` would give.

        Positions are read where documents do not tell, in bounded memory; what :meth:`batches` says of it holds here.
        Of a whole level its document tells, which is believed: other programs may leave cells that it does not count
        (zarr-vectors 0.9.2 does), which :meth:`read` gives, too, and which only reading, or ``validate``, finds.
        """
        query = replace(self.query, attributes=None)

        def look(level: Level) -> int:
            counted = count_in_lines if self._kind_at(level) in LINES else count_vertices
            return counted(KeptLevel.of(level), query, _AT_ONCE)

        return read_steadily(self.path, query.level, look)

    def batches(self, most: int) -> Iterator[Geometry]:
        """Go through it in parts of about ``most`` vertices, which together are what :meth:`read` gives.

        - Points come in the same order, ``most`` at a time; the last part may have fewer.
        - Lines come whole and in the same order, as many as have ``most`` vertices together, or one that has more.
        - Vertices of graphs, meshes and skeletons come in the same order, those of some chunks at a time, with the
          edges, faces and parents that are filed there, each in one part. Vertices of other parts that these lead to
          come after the ``own`` ones; of a skeleton, the parents of such are -1. ``rows`` of a part are the numbers of
          its vertices in what :meth:`read` gives.

        Memory is bounded by ``most`` vertices with their attributes, or those of the fullest chunk, a few times over;
        and by the object index (16 bytes and more for each piece of an object in a chunk, 32 more of lines), the list
        of chunks, a quarter byte for each vertex of the chunks of links, and all links of a skeleton. Lines are read
        once before the first part comes, into temporary files, which lie where ``TMPDIR`` says; what boxes, chunks and
        values choose among is read once more before that.

        Raises :class:`~zardine.errors.ArrayChangedError` where somebody changes the level meanwhile: all parts are of
        one state. Other errors are those of :meth:`read`.
        """
        if isinstance(most, bool) or not isinstance(most, int | np.integer) or most < 1:
            raise SelectionError(f"batches have a number of vertices, from 1 on, not {most!r}")
        query, number = self.query, int(most)

        def make(level: Level) -> Iterator[Geometry]:
            kind = self._kind_at(level)
            if kind in LINES:
                return batches_of_lines(level, query, number)
            if kind == "skeleton":
                return batches_of_skeletons(level, query, number)
            if kind in ("graph", "mesh"):
                return batches_of_links(level, query, ALL, kind, number)
            return batches_of_points(level, query, number)

        return in_batches(self.path, query.level, make)

    def _kind_at(self, level: Level) -> str:
        return kind_of(level.owner.root) if isinstance(self.path, KeptPlace) else self._kind

    def __repr__(self) -> str:
        values = {each.name: getattr(self.query, each.name) for each in fields(self.query)}
        usual = {"level": 0, "attributes": ALL}
        asked = [f"{name}={shown(each)}" for name, each in values.items() if not _same(each, usual.get(name))]
        return f"<Selection of {self.kind}{': ' if asked else ''}{', '.join(asked)}>"


def _same(value: Any, usual: Any) -> bool:
    return value is usual or (isinstance(value, int | str) and value == usual)


__all__ = ["Selection"]
