"""What an answer takes, before it is read: which cells of which arrays, in how many requests and bytes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from zardine.errors import CorruptionError
from zardine.hierarchy.place import find_place
from zardine.nodes.array import Array
from zardine.public_names import public
from zardine.stores.path import StorePath
from zardine.stores.resolve import StoreLike
from zardine.stores.wrappers.counting import CountingStore
from zardine.vectors.format.ragged import find_rows, unique_rows
from zardine.vectors.reading.answer import Asked, reads_together, resolve
from zardine.vectors.reading.kept import KeptLevel, kind_of
from zardine.vectors.reading.loading import names_in
from zardine.vectors.reading.loading_objects import load_object_tables
from zardine.vectors.reading.missing import missing_attribute
from zardine.vectors.reading.presence import present_chunks
from zardine.vectors.reading.query import ALL, Names, Query
from zardine.vectors.reading.rereading import open_level
from zardine.vectors.storing.cell_costs import cell_costs
from zardine.vectors.storing.cells import CellArray, child
from zardine.vectors.storing.store import Level


@public("zardine.vectors")
@dataclass(frozen=True, slots=True)
class ReadCosts:
    """What reading something takes."""

    name: str
    """Path of an array of cells below the level, or ``"documents and tables"``."""
    cells: int
    """Cells that are stored and are read."""
    objects: int
    """Stored objects that these are in: shards, or single cells. Of documents and tables: 0."""
    requests: int
    """Values, parts of values (the index of a shard is one) and listings that are asked for."""
    nbytes: int
    """Bytes that come back."""


@public("zardine.vectors")
@dataclass(frozen=True, slots=True)
class Explanation:
    """What reading a selection takes where nothing is remembered yet; ``print`` shows it as a table."""

    documents: ReadCosts
    """Documents, the object index and tables of attributes: these were read to tell the rest."""
    arrays: tuple[ReadCosts, ...]
    """For each array of cells."""
    exact: bool
    """Whether all of it will be read; false where which lines are found decides, so that it may be less."""

    @property
    def cells(self) -> int:
        """Cells that are read, of all arrays."""
        return sum(each.cells for each in self.arrays)

    @property
    def objects(self) -> int:
        """Shards, or single cells that are objects of their own, that are read from."""
        return sum(each.objects for each in self.arrays)

    @property
    def requests(self) -> int:
        """All requests, with those for documents and tables."""
        return self.documents.requests + sum(each.requests for each in self.arrays)

    @property
    def nbytes(self) -> int:
        """All bytes, with those of documents and tables."""
        return self.documents.nbytes + sum(each.nbytes for each in self.arrays)

    def __str__(self) -> str:
        families: dict[str, list[ReadCosts]] = {}
        for each in (self.documents, *self.arrays):
            families.setdefault(each.name.split("/0/")[0], []).append(each)
        rows = [["", "cells", "objects", "requests", "bytes"]]
        for name, parts in families.items():
            sums = [sum(getattr(each, what) for each in parts) for what in ("cells", "objects", "requests", "nbytes")]
            if sums[2]:
                rows.append([name, *(f"{number:,}" if number else "" for number in sums)])
        total = self.cells, self.objects, self.requests, self.nbytes
        rows.append(["in all" if self.exact else "in all, at most", *(f"{number:,}" for number in total)])
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [[row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])] for row in rows]
        return "\n".join("  ".join(line).rstrip() for line in lines)


def explain(path: StoreLike, query: Query, kind: str | None) -> Explanation:
    """Look up what reading ``query`` takes of a store of the geometry ``kind`` (``None``: its own); no cells are read.

    Raises what reading raises of documents, the object index, and indexes of shards.
    """
    store, inner = find_place(path)
    counting = CountingStore(store)
    level = KeptLevel.of(open_level(StorePath(counting, inner), query.level))
    kind = kind_of(level.owner.root) if kind is None else kind
    asked = resolve(level, query)
    if asked.vertices is None:
        raise CorruptionError("the level has no vertices", array=child(level.path, "vertices"))
    lines = kind in ("line", "polyline", "streamline")
    if lines and asked.manifests is not None:
        load_object_tables(level, asked.manifests)
    linked = kind in ("graph", "mesh", "skeleton")
    index = level.cells("vertex_fragments") if asked.chunks is None else None
    chunks = present_chunks(asked.vertices, index) if asked.chunks is None else asked.chunks
    exact = True
    if lines and asked.manifests is not None and asked.chunks is not None:
        members = asked.manifests if asked.chosen is None else asked.chosen
        near = members.take(members.by_chunk.objects_in(chunks))
        more = unique_rows(np.concatenate([chunks, near.chunks]))[0]
        exact = reads_together(chunks, more)
        chunks = more
    arrays = [("vertices", asked.vertices, False)]
    arrays += [(name, array, False) for name, array in _of_vertices(asked, fragments=linked or lines)]
    if linked:
        arrays += [(name, array, True) for name, array in _of_links(level, None if kind == "skeleton" else ALL)]
    told = []
    for name, counted_array, listed in arrays:
        # what is looked up of cells is no part of reading: it is not counted
        array = CellArray(Array(store, counted_array.array.path, counted_array.array.metadata), counted_array.origin)
        wanted = chunks
        if listed:
            present = present_chunks(array, None)
            wanted = present[find_rows(chunks, present) >= 0]
        costs = cell_costs(array, wanted)
        if name == "vertices":
            there = costs.sizes > 0
            if not there.all():
                level.cells("vertex_fragments")  # which readers ask whether that is right
            chunks = chunks[there]
        told.append(ReadCosts(name, int((costs.sizes > 0).sum()), costs.objects, costs.requests, costs.nbytes))
    counts = counting.counts
    documents = ReadCosts("documents and tables", 0, 0, counts.ranges + counts.lists, counts.bytes_read)
    return Explanation(documents, tuple(told), exact)


def _of_vertices(asked: Asked, *, fragments: bool) -> Iterator[tuple[str, CellArray]]:
    """The arrays beside the positions that are read of the vertices in some chunks; see :func:`load_cells`."""
    level, query = asked.level, asked.query
    needed = fragments or asked.manifests is not None
    if needed or not level.document.tiles or asked.chunks is None:
        index = level.cells("vertex_fragments")
        if index is not None and not (level.document.tiles and not needed):
            yield "vertex_fragments", index
    for name in names_in(level, "vertex_attributes", query.names):
        relative = f"vertex_attributes/{name}"
        array = level.cells(relative)
        if array is None:
            raise missing_attribute(level, relative)
        yield relative, array


def _of_links(level: Level, attributes: Names) -> Iterator[tuple[str, CellArray]]:
    """The arrays of links between vertices, and of the attributes of these; see :func:`load_links`."""
    if level.attributes("links/0") is None:
        return
    for segment in level.names("links/0"):
        for relative in (f"links/0/{segment}", *(f"{each}/0/{segment}" for each in _families(level, attributes))):
            array = level.cells(relative)
            if array is not None:
                yield relative, array


def _families(level: Level, attributes: Names) -> list[str]:
    return [] if attributes is None else [f"link_attributes/{name}" for name in level.names("link_attributes")]


__all__ = ["Explanation", "ReadCosts", "explain"]
