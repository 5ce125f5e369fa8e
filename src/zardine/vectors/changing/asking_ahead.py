"""What a change of a level is going to read, asked for ahead and side by side where each request takes long.

Nothing depends on it: what was not asked for is read when it is needed, and what nobody needs costs a request. First
that which every store has, beside the root document (:func:`of_addition` and its kin, for
:func:`.one_writer.alone_asking`). Of what is added the positions are known then (:func:`ask_for_cells`): the shards of
their cells, the ends of tables, and documents of attributes and links; and then shards that these tell of
(:func:`ask_for_links`). What else is changed is looked for first, in tables (:func:`ask_for_tables`), and then the
shards that are to be changed are asked for (:func:`ask_for_chunks`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from zardine.buffers import Ints
from zardine.errors import ZardineError
from zardine.hierarchy.find import document_key
from zardine.metadata.node_names import explain_bad_name
from zardine.vectors.changing.one_writer import Asked
from zardine.vectors.changing.patching import UnfitError, is_listed
from zardine.vectors.content.content import Content
from zardine.vectors.content.link_placement import place_in_cells
from zardine.vectors.format.grids import distinct_chunks_of
from zardine.vectors.format.links import parse_segment, segment_of
from zardine.vectors.reading.presence import present_chunks
from zardine.vectors.storing.cells import CellArray, child
from zardine.vectors.storing.held_values import HeldValues, keys_of
from zardine.vectors.storing.store import Level
from zardine.vectors.storing.store_states import NOT_ON_PURPOSE

_CELLS: Final = ("vertices", "vertex_fragments")
_MOST: Final = 32
"""Arrays of links of which documents are asked for before it is known which of them are needed."""

_MOST_CHUNKS: Final = 1024
"""Chunks of which shards are asked for: of more, most are large, and are not held."""

_OF_A_VERTEX: Final = 64
"""Bytes that a vertex takes with what it is in, at most, about."""
_MOST_COARSENED: Final = 32 * 2**20
"""Bytes of vertices of a level that are held while a coarser one is made of them ..."""
_MOST_COARSENED_OBJECTS: Final = 2048
"""... and how many objects they are stored in."""

_FEW: Final = 2
"""Chunks of a table that are asked for before it is known which of them are needed."""

_ANY: Final = (ZardineError, UnfitError, *NOT_ON_PURPOSE)
"""What is passed over here: who reads what is damaged says what it is."""

_FOLDERS: Final = ("", "vertex_attributes")
_OBJECTS: Final = ("object_index", "object_index/manifests", "object_index/object_ids")


def of_addition(*_: Any, vertex_attributes: Any = None, **__: Any) -> Asked:
    """What adding vertices and links is going to read in any case; of the arguments these attributes tell something."""
    return Asked([*_arrays(vertex_attributes), *_OBJECTS], [*_FOLDERS, "links/0", "object_attributes"])


def of_points(_: Any, vertex_attributes: Any, object_ids: Any, *__: Any) -> Asked:
    """The same of points, by the arguments of :func:`zardine.vectors.append_points`."""
    if object_ids is None:
        return Asked([*_arrays(vertex_attributes), *_OBJECTS[:2]], _FOLDERS)
    return Asked([*_arrays(vertex_attributes), *_OBJECTS], [*_FOLDERS, "object_attributes"])


def of_change(*_: Any, **__: Any) -> Asked:
    """What changing elements that are there is going to read in any case."""
    return Asked([*_CELLS, "links/0", *_OBJECTS], [*_FOLDERS, "links/0", "object_attributes"])


def of_pyramid(*_: Any, **__: Any) -> Asked:
    """What making coarser levels, or making them anew, is going to read of each level in any case."""
    return Asked([*_CELLS, *_OBJECTS, "groups", "links"], ["", "links", "object_attributes"])


def _arrays(vertex_attributes: Any) -> list[str]:
    names = vertex_attributes if isinstance(vertex_attributes, Mapping) else ()
    good = [name for name in names if isinstance(name, str) and explain_bad_name(name, 3) is None]
    return [*_CELLS, *(f"vertex_attributes/{name}" for name in good), "links/0"]


def ask_for_cells(
    level: Level, points: npt.NDArray[Any], given: Callable[[], Ints] | None = None, *, only_across: bool = False
) -> None:
    """Ask for what adding vertices at ``points`` to a level is going to read, as far as the arrays are known.

    ``given`` makes the rows of the points that are linked, ``(L, W)``; ``only_across``: those in different chunks.
    """
    store = _asking(level)
    if store is None or not len(points):
        return
    with suppress(*_ANY):
        links = None if given is None else given()
        keys, cell = distinct_chunks_of(points, level.document.chunk_shape)
        paths, values = list[str](), list[str]()
        families = {each: _paths_in(level, each) for each in ("vertex_attributes", "fragment_attributes")}
        for path in (*_CELLS, *families["vertex_attributes"], *families["fragment_attributes"]):
            if path in _CELLS or store.has_asked(document_key(child(level.path, path))):
                values += _shards_of(level, path, keys)
            else:
                paths.append(path)
        paths += _paths_in(level, "object_attributes")
        if links is not None:
            cells = cell[links]
            some = (cells != cells[:, :1]).any(axis=1) if only_across else slice(None)
            known = set(_paths_in(level, "links/0"))
            for path, chunks in _segments_of(level, keys, cells[some], links[some]):
                paths.append(path)
                if path in known:  # as a rule it has the shards that vertices have
                    place = child(level.path, "vertices"), child(level.path, path)
                    values += [place[1] + key.removeprefix(place[0]) for key in _shards_of(level, "vertices", chunks)]
        if level.node("object_index") is not None:
            for path in _OBJECTS[1:]:
                table = level.table(path)
                if table is not None and table.ndim and len(table):
                    values += keys_of(table, np.array([[len(table) - 1]]))
        store.ask(_documents(level, paths), values=values)


def ask_for_links(level: Level, new: Content) -> None:
    """Ask for shards of attributes, and of links, that adding ``new`` is going to read."""
    store = _asking(level)
    if store is None:
        return
    with suppress(*_ANY):
        values = list[str]()
        for family in ("vertex_attributes", "fragment_attributes"):
            for path in _paths_in(level, family):
                values += _shards_of(level, path, new.keys)
        known = set(_paths_in(level, "links/0"))
        if 0 in new.links:
            for path, chunks in _segments_of(level, new.keys, *new.cells_of(new.links[0].endpoints)):
                if path in known:
                    values += _shards_of(level, path, chunks)
        store.ask((), values=list(dict.fromkeys(values)))


def ask_for_tables(level: Level) -> None:
    """Ask for the tables of objects, where they are not large, and for documents of attributes and links."""
    store = _asking(level)
    if store is None:
        return
    with suppress(*_ANY):
        segments = _paths_in(level, "links/0")
        families = ("vertex_attributes", "fragment_attributes", "object_attributes")
        paths = [path for each in families for path in _paths_in(level, each)]
        paths += [*(segments if len(segments) <= _MOST else ()), "groups"]
        values = _few_of(level, _OBJECTS[1:] if level.node("object_index") is not None else ())
        store.ask(_documents(level, paths), values=values)


def ask_to_coarsen(level: Level, *, tables: bool = False) -> None:
    """Ask for the vertices of a level, and what they are in, where all of that can be held; ``tables``: of objects."""
    store = _asking(level)
    if store is None:
        return
    with suppress(*_ANY):
        values, paths = list[str](), list[str]()
        vertices, index = (level.cells(path) for path in _CELLS)
        if vertices is not None and level.document.vertex_count * _OF_A_VERTEX <= _MOST_COARSENED:
            chunks = present_chunks(vertices, index)
            for array in (vertices, *([] if index is None else [index])):
                there = chunks[array.inside(chunks)]
                values += keys_of(array.array, there - np.asarray(array.origin))
        if tables:
            values += _few_of(level, _OBJECTS[1:] if level.node("object_index") is not None else ())
            paths += _paths_in(level, "object_attributes")
        store.ask(_documents(level, paths), values=values if len(values) <= _MOST_COARSENED_OBJECTS else ())


def ask_for_attributes_of_objects(level: Level) -> None:
    """Ask for the attributes of the objects of a level, where they are not large."""
    store = _asking(level)
    if store is not None:
        with suppress(*_ANY):
            store.ask((), values=_few_of(level, _paths_in(level, "object_attributes")))


def _few_of(level: Level, paths: Iterable[str]) -> list[str]:
    """The keys of the values of tables that are not large."""
    values = list[str]()
    for path in paths:
        table = level.table(path)
        if table is not None and table.ndim and 0 < len(table) <= _FEW * (table.shards or table.chunks)[0]:
            values += keys_of(table, np.arange(len(table)).reshape(-1, 1))
    return values


def ask_for_chunks(level: Level, chunks: Ints, names: Iterable[str] | None = None) -> None:
    """Ask for the shards of cells that are to be changed: of attributes of vertices with these ``names`` alone.

    Without: of all that belongs to vertices, and of links that end there.
    """
    store = _asking(level)
    if store is None or not 0 < len(chunks) <= _MOST_CHUNKS:
        return
    with suppress(*_ANY):
        if names is not None:
            store.ask(
                (), values=[key for name in names for key in _shards_of(level, f"vertex_attributes/{name}", chunks)]
            )
            return
        families = (*_CELLS, *_paths_in(level, "vertex_attributes"), *_paths_in(level, "fragment_attributes"))
        values = [key for path in families for key in _shards_of(level, path, chunks)]
        segments = _paths_in(level, "links/0")
        for path in segments if len(segments) <= _MOST else ():
            offsets = parse_segment(path.rpartition("/")[2], level.rank)
            near = np.concatenate([chunks, *(chunks - np.asarray(each) for each in offsets)])
            values += _shards_of(level, path, near, only_listed=True)
        store.ask((), values=list(dict.fromkeys(values)))


def _asking(level: Level) -> HeldValues | None:
    """The store of a level that is changed, where it is worth while to ask it ahead."""
    store = level.owner.store
    return store if isinstance(store, HeldValues) and store.asks_ahead else None


def _paths_in(level: Level, family: str) -> list[str]:
    return [f"{family}/{name}" for name in level.names(family)]


def _shards_of(level: Level, path: str, chunks: Ints, *, only_listed: bool = False) -> list[str]:
    """The keys of the shards that cells of an array are in; ``only_listed``: of those that it lists."""
    array: CellArray | None = level.cells(path)
    if array is None or array.array.shards is None:
        return []
    there = chunks[is_listed(array, chunks)] if only_listed else chunks
    return keys_of(array.array, there[array.inside(there)] - np.asarray(array.origin))


def _documents(level: Level, paths: Iterable[str]) -> list[str]:
    return [document_key(child(level.path, path)) for path in paths]


def _segments_of(level: Level, keys: Ints, cells: Ints, rows: Ints) -> Iterator[tuple[str, Ints]]:
    """Arrays that new links go into, and the chunks of these; ``cells``: of which of ``keys`` the endpoints are."""
    about = level.attributes("links/0")
    if about is not None and len(cells):
        for each in place_in_cells(keys, cells, rows, canonical=not about.get("directed")):
            yield f"links/0/{segment_of(each.offsets)}", each.cells


__all__ = [
    *("ask_for_attributes_of_objects", "ask_for_cells", "ask_for_chunks", "ask_for_links", "ask_for_tables"),
    *("ask_to_coarsen", "of_addition", "of_change", "of_points", "of_pyramid"),
]
