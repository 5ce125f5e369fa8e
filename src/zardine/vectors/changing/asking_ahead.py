"""What adding to a level is going to read, asked for ahead and side by side where each request takes long.

Nothing depends on it: what was not asked for is read when it is needed, and what nobody needs costs a request. First
that which every store has, beside the root document (:func:`of_addition`, for :func:`.one_writer.alone_asking`). Then,
when the positions are known (:func:`ask_for_cells`), the shards of their cells, the ends of tables, and documents of
attributes and links; and then shards that these tell of (:func:`ask_for_links`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
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
from zardine.vectors.format.links import segment_of
from zardine.vectors.storing.cells import CellArray, child
from zardine.vectors.storing.held_values import HeldValues, keys_of
from zardine.vectors.storing.store import Level

_CELLS: Final = ("vertices", "vertex_fragments")
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


def _arrays(vertex_attributes: Any) -> list[str]:
    names = vertex_attributes if isinstance(vertex_attributes, Mapping) else ()
    good = [name for name in names if isinstance(name, str) and explain_bad_name(name, 3) is None]
    return [*_CELLS, *(f"vertex_attributes/{name}" for name in good), "links/0"]


def ask_for_cells(
    level: Level, points: npt.NDArray[Any], links: Ints | None = None, *, only_across: bool = False
) -> None:
    """Ask for what adding vertices at ``points`` to a level is going to read, as far as the arrays are known.

    ``links``: rows of the points that are linked, ``(L, W)``; ``only_across``: those in different chunks.
    """
    store = level.owner.store
    if not isinstance(store, HeldValues) or not store.asks_ahead or not len(points):
        return
    keys, cell = distinct_chunks_of(points, level.document.chunk_shape)
    with suppress(ZardineError, UnfitError):  # who reads it says what is wrong
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
            paths += [path for path, _ in _segments_of(level, keys, cells[some], links[some])]
        if level.node("object_index") is not None:
            for path in _OBJECTS[1:]:
                table = level.table(path)
                if table is not None and table.ndim and len(table):
                    values += keys_of(table, np.array([[len(table) - 1]]))
        store.ask([document_key(child(level.path, path)) for path in paths], values=values)


def ask_for_links(level: Level, new: Content) -> None:
    """Ask for shards of attributes, and of links, that adding ``new`` is going to read."""
    store = level.owner.store
    if not isinstance(store, HeldValues) or not store.asks_ahead:
        return
    with suppress(ZardineError, UnfitError):
        documents, values = list[str](), list[str]()
        for family in ("vertex_attributes", "fragment_attributes"):
            for path in _paths_in(level, family):
                values += _shards_of(level, path, new.keys)
        known = set(_paths_in(level, "links/0"))
        if 0 in new.links:
            for path, chunks in _segments_of(level, new.keys, *new.cells_of(new.links[0].endpoints)):
                if path in known:
                    values += _shards_of(level, path, chunks)
                else:
                    documents.append(document_key(child(level.path, path)))
        store.ask(documents, values=values)


def _paths_in(level: Level, family: str) -> list[str]:
    return [f"{family}/{name}" for name in level.names(family)]


def _shards_of(level: Level, path: str, chunks: Ints) -> list[str]:
    """The keys of the shards that cells of an array are in, of those that it lists."""
    array: CellArray | None = level.cells(path)
    if array is None or array.array.shards is None:
        return []
    there = chunks[is_listed(array, chunks)]
    return keys_of(array.array, there[array.inside(there)] - np.asarray(array.origin))


def _segments_of(level: Level, keys: Ints, cells: Ints, rows: Ints) -> Iterator[tuple[str, Ints]]:
    """Arrays that new links go into, and the chunks of these; ``cells``: of which of ``keys`` the endpoints are."""
    about = level.attributes("links/0")
    if about is not None and len(cells):
        for each in place_in_cells(keys, cells, rows, canonical=not about.get("directed")):
            yield f"links/0/{segment_of(each.offsets)}", each.cells


__all__ = ["ask_for_cells", "ask_for_links", "of_addition"]
