"""Which rows of a level a reader asked for: from boxes, chunks, objects, groups and values of attributes."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from itertools import repeat
from math import floor, prod
from sys import float_info
from typing import Any

import numpy as np
import numpy.typing as npt

from zardine.buffers import Ints
from zardine.engine.side_by_side import begun
from zardine.errors import SelectionError
from zardine.vectors.content.arguments import checked_box
from zardine.vectors.content.content import Content
from zardine.vectors.format.documents import KINDS
from zardine.vectors.format.grids import chunks_of, in_box
from zardine.vectors.format.ragged import find_rows, unique_rows
from zardine.vectors.reading.conditions import holds
from zardine.vectors.reading.kept import KeptLevel
from zardine.vectors.reading.loading import load_cells
from zardine.vectors.reading.loading_links import load_links
from zardine.vectors.reading.loading_objects import load_groups, load_manifests, load_object_tables, with_objects
from zardine.vectors.reading.manifests import Manifests
from zardine.vectors.reading.missing import no_attribute
from zardine.vectors.reading.presence import check_on_grid, present_chunks
from zardine.vectors.reading.query import ALL, Names, Query
from zardine.vectors.storing.cells import CellArray
from zardine.vectors.storing.store import Level

MORE_CHUNKS = 64
"""Chunks of objects that are read together with those that choose the objects, beside four for each of these."""
_FARTHEST = 2.0**53
"""Chunks from the origin that a position may be away."""

_Chunk = tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """What a query found: cells, and which of their rows are wanted."""

    level: Level
    content: Content
    manifests: Manifests | None
    rows: Ints
    """Ascending."""
    wanted: Ints | None = None
    """Rows of the objects that were asked for, by id or group."""


@dataclass(frozen=True, slots=True, eq=False)
class FoundObjects:
    """Whole objects that a query found: their manifests, and the cells that they are in."""

    level: Level
    manifests: Manifests
    content: Content
    """With these objects, in the same order; there may be other rows in the cells."""


@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """A query, with the objects that it names and the chunks that may hold what it asks for. No cells are read."""

    level: Level
    query: Query
    manifests: Manifests | None
    wanted: Ints | None
    """Rows of the objects that were asked for, by id or group; ``None``: all will do."""
    vertices: CellArray | None
    chunks: Ints | None
    """``None``: all."""
    chosen: Manifests | None
    """The manifests of the objects that were asked for; ``None``: all will do."""

    @property
    def chooses(self) -> bool:
        """Whether boxes, chunks or values choose among the vertices."""
        return self.query.bbox is not None or self.query.where is not None or self.query.chunks is not None


def resolve(level: Level, query: Query) -> Asked:
    """Look up which objects and chunks ``query`` is about. Raises :class:`~zardine.errors.SelectionError`.

    What is asked for is in the ``query`` of the answer, in which no condition is about objects.
    """
    if query.where:  # whose documents are looked at twice
        level = KeptLevel.of(level)
    query = with_objects_named(level, query)
    of_objects, of_vertices = begun(level.owner.store, (lambda: load_manifests(level), lambda: level.cells("vertices")))
    manifests = of_objects()
    wanted = wanted_objects(level, manifests, query)
    chosen = None if manifests is None or wanted is None else manifests.take(wanted)
    vertices = of_vertices()
    return Asked(level, query, manifests, wanted, vertices, chunks_for(level, query, chosen, vertices), chosen)


def with_objects_named(level: Level, query: Query) -> Query:
    """The query with ids of objects in the place of conditions on attributes of objects.

    An attribute of vertices of the same name counts first. Raises :class:`~zardine.errors.SelectionError`.
    """
    names = [name for name in query.where or {} if _is_of_objects(level, name)]
    manifests = load_manifests(level) if names else None
    if manifests is None or query.where is None:
        return query
    chosen = np.ones(len(manifests.ids), np.bool_)
    if query.object_ids is not None:
        chosen[:] = False
        chosen[manifests.rows_of(np.asarray(query.object_ids))] = True
    for name, column in load_object_tables(level, manifests, names).items():
        chosen &= holds(column.decoded(), query.where[name], name)
    others = {name: each for name, each in query.where.items() if name not in names}
    return replace(query, object_ids=manifests.ids[chosen], where=others or None)


def _is_of_objects(level: Level, name: str) -> bool:
    if level.node("object_index") is None or name == level.document.block.get("chunk_attribute_name"):
        return False
    return level.node(f"vertex_attributes/{name}") is None and level.node(f"object_attributes/{name}") is not None


def check_geometry(level: Level, *names: str) -> None:
    """Raise :class:`SelectionError` for a store that holds another geometry, whose vertices are connected otherwise."""
    held = [name for name in level.owner.root.geometry_types if name in KINDS]
    if held and not set(held) & set(names):
        readers = list(dict.fromkeys((KINDS[held[0]].reader, "read_points")))
        raise SelectionError(f"{level.owner.name} holds a {held[0]}: see {' or '.join(readers)}")


def run_query(level: Level, query: Query, *, fragments: bool = False) -> Found:
    """The vertices that ``query`` asks for; ``fragments``: the fragment index is needed in any case."""
    asked = resolve(level, query)
    level, query = asked.level, asked.query
    content = load_asked(level, asked.chunks, query, asked.manifests, fragments, asked.vertices)
    return Found(level, content, asked.manifests, matching_rows(level, content, query, asked.wanted), asked.wanted)


def find_objects(asked: Asked) -> FoundObjects | None:
    """Every object that a query names and that has a vertex that it asks for, whole; ``None`` without an index.

    ``bbox``, ``chunks`` and ``where`` choose objects.
    """
    level, query = asked.level, asked.query
    manifests = asked.manifests if asked.chosen is None else asked.chosen
    if manifests is None:
        return None
    chunks = asked.chunks
    if asked.chooses and chunks is not None:
        manifests = manifests.take(manifests.by_chunk.objects_in(chunks))
        more = unique_rows(np.concatenate([chunks, manifests.chunks]))[0]
        if reads_together(chunks, more):  # one look at each shard
            chunks = more
    content = load_asked(level, chunks, query, manifests, True, asked.vertices)
    if not asked.chooses:
        return FoundObjects(level, manifests, content)
    objects = content.objects_with(matching_rows(level, content, query, None))
    manifests = manifests.take(objects)
    whole = unique_rows(manifests.chunks)[0]
    if chunks is None or (find_rows(chunks, whole) >= 0).all():
        assert content.objects is not None
        return FoundObjects(level, manifests, replace(content, objects=content.objects.take(objects)))
    return FoundObjects(level, manifests, load_asked(level, whole, query, manifests, True, asked.vertices))


def reads_together(chunks: Ints, more: Ints) -> bool:
    """Whether the chunks of objects are read together with those that choose the objects."""
    return len(more) <= MORE_CHUNKS + 4 * len(chunks)


def wanted_objects(level: Level, manifests: Manifests | None, query: Query) -> Ints | None:
    """Rows of the objects that a query names by id or group; ``None``: it names none, so that all will do."""
    if query.object_ids is None and query.group_ids is None:
        return None
    if manifests is None:
        raise SelectionError(f"level {level.document.level} of {level.owner.name} has no objects")
    rows = None
    if query.object_ids is not None:
        rows = np.unique(manifests.rows_of(np.asarray(query.object_ids)))
    if query.group_ids is not None:
        groups = load_groups(level, attributes=None)
        numbers = np.asarray(query.group_ids)
        count = 0 if groups is None else len(groups.members)
        if groups is None or ((numbers < 0) | (numbers >= count)).any():
            raise SelectionError(f"group_ids {numbers.tolist()}: there are {count} groups, numbered from 0")
        members = np.concatenate([np.zeros(0, np.int64), *(groups.members[n] for n in numbers.tolist())])
        members = np.unique(manifests.rows_of(members))
        rows = members if rows is None else np.intersect1d(rows, members)
    return rows


def chunks_for(level: Level, query: Query, manifests: Manifests | None, vertices: CellArray | None) -> Ints | None:
    """The chunks that may hold what a query asks for; ``None``: all. ``manifests``: those of the wanted objects."""
    found: Ints | None = None
    if manifests is not None:
        found = unique_rows(manifests.chunks)[0]
    if query.chunks is not None:
        given = given_chunks(level, query.chunks)
        found = given if found is None else _both(found, given)
    if query.bbox is not None:
        low, high = chunk_box(level, query.bbox)
        if found is not None:
            space = found[:, -len(low) :]
            return found[((space >= low) & (space <= high)).all(axis=1)]
        return None if vertices is None else _present_in_box(level, vertices, low, high)
    return found


def given_chunks(level: Level, chunks: Collection[Sequence[int]]) -> Ints:
    """The chunks that a user names, distinct and ascending. Raises :class:`~zardine.errors.SelectionError`."""
    try:
        given = np.asarray(list(chunks))
    except (TypeError, ValueError):
        given = np.zeros(1)
    if given.size == 0 and given.ndim < 3:
        given = np.zeros((0, level.rank), np.int64)
    good = given.dtype.kind == "i" or (given.dtype.kind == "u" and (given < 2**63).all())
    if given.ndim != 2 or given.shape[1] != level.rank or not good:
        raise SelectionError(f"chunks are rows of {level.rank} integers, not {given.dtype} of shape {given.shape}")
    rows: Ints = unique_rows(given.astype(np.int64))[0]
    return rows


def matching_rows(level: Level, content: Content, query: Query, wanted: Ints | None) -> Ints:
    """Rows of ``content`` for which all holds that ``query`` says."""
    matches = content.visible()
    if query.chunks is not None:  # more than these may have been loaded
        given = given_chunks(level, query.chunks)
        matches = matches & (find_rows(given, content.keys) >= 0)[content.cell_of_rows()]
    if query.bbox is not None:
        matches = matches & in_box(content.positions, *checked_box(query.bbox, level.owner.root.ndim))
    if wanted is not None:
        matches = matches & content.rows_in(wanted)
    for name, condition in (query.where or {}).items():
        matches = matches & holds(content.vertex_attributes[name].decoded(), condition, name)
    return np.flatnonzero(matches)


def values_of(columns: Mapping[str, Any], rows: Ints, names: Names) -> dict[str, npt.NDArray[Any]]:
    """The values of some rows, of the attributes that were asked for."""
    if names is None:
        return {}
    wanted = columns if names == ALL else [names] if isinstance(names, str) else names
    return {name: columns[name].take(rows).decoded() for name in wanted}


def crs_of(level: Level) -> Mapping[str, Any] | None:
    """What the store says that the coordinates are; a copy, since the document may be kept."""
    found: Mapping[str, Any] | None = deepcopy(level.owner.root.block.get("crs"))
    return found


def ids_of_rows(found: Found) -> npt.NDArray[np.int64] | None:
    """The object id of each found row: of objects that share it the first, of those that were asked for."""
    if found.manifests is None:
        return None
    rows = found.content.row_object(found.wanted)[found.rows]
    return np.where(rows >= 0, found.manifests.ids[rows] if len(found.manifests.ids) else -1, -1)


def load_asked(
    level: Level,
    chunks: Ints | None,
    query: Query,
    manifests: Manifests | None,
    fragments: bool,
    vertices: CellArray | None = None,
) -> Content:
    """Cells with what ``query`` wants of them; ``fragments``: the fragment index is needed in any case."""
    needed = fragments or manifests is not None
    content = load_cells(level, chunks, vertex_attributes=query.names, fragments=needed, vertices=vertices)
    for name in query.where or {}:
        if name not in content.vertex_attributes:
            raise no_attribute(level, name)
    return with_objects(level, content, manifests, asked=chunks)


def _present_in_box(level: Level, vertices: CellArray, low: _Chunk, high: _Chunk) -> Ints | None:
    """The chunks in a box of chunks: all on the grid where they are few, else those that are known to be there."""
    start = vertices.origin
    end = tuple(a + size - 1 for a, size in zip(start, vertices.array.shape, strict=True))
    lead = level.rank - len(low)
    first = (*start[:lead], *map(max, low, start[lead:]))
    last = (*end[:lead], *map(min, high, end[lead:]))
    bounds = chunks_of(np.asarray(level.owner.root.bounds, np.float64), level.document.chunk_shape)
    whole = (np.asarray(low) <= bounds[0]).all() and (np.asarray(high) >= bounds[1]).all()  # the grid may have room
    if whole or (first == start and last == end):
        return None  # everything: then the number of vertices is checked as well
    beyond = any(a < b for a, b in zip(low, start[lead:], strict=True))
    if beyond or lead or any(a > b for a, b in zip(high, end[lead:], strict=True)):
        _check_beyond(level, vertices, low, high)
    shape = [max(0, b - a + 1) for a, b in zip(first, last, strict=True)]
    if prod(shape) <= _few(vertices):
        return np.indices(shape, np.int64).reshape(level.rank, -1).T + np.array(first, np.int64)
    present = present_chunks(vertices, level.cells("vertex_fragments"))
    return present[((present >= first) & (present <= last)).all(axis=1)]


def _check_beyond(level: Level, vertices: CellArray, low: _Chunk, high: _Chunk) -> None:
    """Raise where a chunk in the box is listed that the grid does not have: its cell is lost."""
    listed = vertices.listed()
    if listed is None:
        index = level.cells("vertex_fragments")
        listed = None if index is None else index.listed()
    if listed is not None:
        space = listed[:, -len(low) :]
        check_on_grid(vertices, listed[((space >= low) & (space <= high)).all(axis=1)])


def _few(vertices: CellArray) -> int:
    listed = vertices.attributes.get("nonempty_chunks")
    return 64 + (2 * len(listed) if isinstance(listed, Sequence) else 0)


def chunk_box(level: Level, bbox: Any) -> tuple[_Chunk, _Chunk]:
    """The first and the last chunk along each axis that a closed box touches.

    Stores with bins may have been written by programs that find the chunk by way of the bin; rounding may then put a
    point beside its chunk, so that a face close to that of a chunk counts for both.
    """
    root = level.owner.root
    low, high = checked_box(bbox, root.ndim)
    slack = 1e-6 if root.bin_shape != root.chunk_shape else 0.0

    def chunk_of(place: float, size: float, slack: float) -> int:
        limit = min(_FARTHEST * size, float_info.max)
        near = max(-limit, min(place, limit))
        near += slack * max(size, abs(near))
        return floor(max(-limit, min(near, limit)) / size)

    size = level.document.chunk_shape
    return tuple(map(chunk_of, low, size, repeat(-slack))), tuple(map(chunk_of, high, size, repeat(slack)))


def _both(a: Ints, b: Ints) -> Ints:
    return a[find_rows(b, a) >= 0]


def links_between_rows(found: Found, width: int, names: Names) -> tuple[Ints, dict[str, npt.NDArray[Any]]]:
    """Return the links between found rows, ``(M, width)`` as numbers among these, and their attributes."""
    links = load_links(found.level, found.content, attributes=names)
    if links is None:
        return np.zeros((0, width), np.int64), {}
    number = np.full(len(found.content.positions) + 1, -1, np.int64)
    number[found.rows] = np.arange(len(found.rows))
    endpoints = number[links.endpoints]
    kept = np.flatnonzero((endpoints >= 0).all(axis=1))
    return endpoints[kept], {name: column.take(kept).decoded() for name, column in links.attributes.items()}
