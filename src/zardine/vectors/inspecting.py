"""What is in a store: plain facts, objects, groups, fragments, and links between levels."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from zardine.buffers import Ints
from zardine.engine.freshness import is_far
from zardine.engine.side_by_side import each_begun
from zardine.errors import ArrayChangedError, SelectionError, ZardineError
from zardine.metadata.documents import ArrayMetadata
from zardine.nodes.array import Array
from zardine.public_names import public
from zardine.stores.resolve import StoreLike
from zardine.vectors.content.arguments import Box, checked_box
from zardine.vectors.format.documents import EXPLICIT
from zardine.vectors.format.fragment_index import decode_sizes
from zardine.vectors.format.grids import in_box
from zardine.vectors.format.ragged import find_rows
from zardine.vectors.format.removed_objects import parse_removed
from zardine.vectors.reading.answer import chunk_box, chunks_for, given_chunks
from zardine.vectors.reading.levels_together import tell_of_levels
from zardine.vectors.reading.loading import load_cells
from zardine.vectors.reading.loading_links import load_cross_links
from zardine.vectors.reading.loading_objects import load_groups, load_manifests, load_object_tables
from zardine.vectors.reading.looking_below import looked_below
from zardine.vectors.reading.presence import present_chunks
from zardine.vectors.reading.query import ALL, Query
from zardine.vectors.reading.rereading import open_level, read_steadily
from zardine.vectors.results import Arrays
from zardine.vectors.storing.cell_bytes import stored_sizes
from zardine.vectors.storing.cells import CellArray, child
from zardine.vectors.storing.level_nodes import NO_CELLS, cell_arrays, has_cells, nodes_below
from zardine.vectors.storing.store import Level, VectorStore
from zardine.vectors.storing.touched import NEWER, lacks_links
from zardine.vectors.storing.transactions import reopened

_FAMILIES: Final = (
    "vertex_attributes",
    "object_attributes",
    "link_attributes",
    "fragment_attributes",
    "group_attributes",
)
_GROUPS: Final = (*_FAMILIES, "links", "links/0")
_TELLING: Final = ("vertices", "object_index", "groups", "links/0")
"""Nodes whose documents tell of a level."""
_CELLS_READ: Final = 2**12
"""Cells of the fragment index that are read together."""


@public("zardine.vectors")
@dataclass(frozen=True, slots=True, eq=False)
class ObjectTable:
    """The objects of a level."""

    ids: npt.NDArray[np.int64]
    """``(O,)``, in the order of the object index."""
    fragment_counts: npt.NDArray[np.int64]
    """``(O,)``: how many fragments each is made of; 0 for those that this level leaves out."""
    attributes: Arrays = field(default_factory=dict)
    """For each object attribute ``(O,)`` or ``(O, channels)``.

    Where an object has no value: NaN, the lowest integer of the type (without a sign the highest), ``""``.
    """
    present: Mapping[str, npt.NDArray[np.bool_]] = field(default_factory=dict)
    """For each object attribute ``(O,)``: which objects have a value."""


@public("zardine.vectors")
@dataclass(frozen=True, slots=True, eq=False)
class GroupTable:
    """The groups of a level, numbered from 0."""

    members: tuple[npt.NDArray[np.int64], ...]
    """Object ids."""
    attributes: Arrays = field(default_factory=dict)
    """For each group attribute a row for each group."""


@public("zardine.vectors")
@dataclass(frozen=True, slots=True, eq=False)
class FragmentTable:
    """The fragments of a level, chunk by chunk."""

    chunks: npt.NDArray[np.int64]
    """``(F, K)``: the chunk of each fragment."""
    vertex_counts: npt.NDArray[np.int64]
    """``(F,)``: how many rows it names."""
    attributes: Arrays = field(default_factory=dict)
    """For each fragment attribute ``(F,)`` or ``(F, channels)``."""


def describe_store(path: StoreLike, *, sizes: bool = False) -> dict[str, Any]:
    """Return the facts of a store and of each level, for people and programs; reads documents, and no vertices.

    ``geometry_types``, ``crs``, ``axes``, ``bounds``, ``chunk_shape``, ``bin_shape``, ``format_version``, ``claimed``
    (whether a writer stores arrays anew, or was killed over that, where locks do not keep others out), and ``levels``:
    of each ``level``, ``older`` (whether one below was changed since), ``vertex_count``, ``chunk_shape``,
    ``grid_shape``, ``chunks`` (with vertices), ``dtype``, ``shard_shape``, ``compressors`` (of the vertices),
    ``shard_shapes`` (of each array of cells, by its path), ``objects``, ``links`` and names of attributes.

    ``links`` includes those of lines and skeletons that lead from each vertex to the next and are not stored. To count
    them the fragment index is read, if the store is near and the index has at most 4096 cells, or with ``sizes``.
    Otherwise ``links_counted`` is false, and ``links`` is the number for objects of one part each.

    With ``sizes`` each level also has ``stored``: of each array below it, by its path, ``objects`` and ``nbytes``, how
    many objects are stored and how many bytes they have together. That lists all of them.

    Where levels are made or removed meanwhile it is told again, a few times, and then
    :class:`~zardine.errors.StoreError` is raised.
    """
    return tell_of_levels(path, partial(_facts, sizes))


def _facts(sizes: bool, owner: VectorStore, levels: Sequence[Level], older: Sequence[int]) -> dict[str, Any]:
    """What :func:`describe_store` tells."""
    root = owner.root

    def told(level: Level) -> dict[str, Any]:
        below = looked_below(
            level, names=(*_FAMILIES, "links", "links/0"), nodes=_TELLING, left_out=() if sizes else NO_CELLS
        )
        facts = _facts_of(below, level.document.level in older, sizes=sizes)
        return {**facts, **({"stored": _stored(below)} if sizes else {})}

    return {
        "path": owner.name,
        "format_version": root.block.get("zv_version"),
        "geometry_types": list(root.geometry_types),
        "crs": root.block.get("crs"),
        "axes": [dict(axis) for axis in root.axes],
        "bounds": [list(corner) for corner in root.bounds],
        "chunk_shape": list(root.chunk_shape),
        "bin_shape": list(root.bin_shape),
        "links_convention": root.links_convention,
        "notes": root.attributes.get("notes"),
        "levels": [facts() for _, facts in each_begun(owner.store, told, levels)],
        "claimed": any(level.is_claimed for level in levels),
    }


def _stored(level: Level) -> dict[str, dict[str, int]]:
    """What is stored of every array below a level, by its path."""

    def sizes(path: str) -> dict[str, int] | None:
        node, place = level.node(path), child(level.path, path)
        if not isinstance(node, ArrayMetadata):
            return None
        cells = has_cells(path, node)
        array = reopened(level.owner.store, place, node).array if cells else Array(level.owner.store, place, node)
        objects, nbytes = stored_sizes(array)
        return {"objects": objects, "nbytes": nbytes}

    found = ((path, told()) for path, told in each_begun(level.owner.store, sizes, nodes_below(level)))
    return {path: told for path, told in found if told is not None}


def _facts_of(level: Level, older: bool, *, sizes: bool) -> dict[str, Any]:
    vertices = level.cells("vertices")
    objects, groups = level.attributes("object_index"), level.attributes("groups")
    object_count = None if objects is None else _object_count(objects, level)
    links, links_counted = _link_count(level, object_count, sizes=sizes)
    return {
        "level": level.document.level,
        "older": older,
        "vertex_count": level.document.vertex_count,
        "chunk_shape": list(level.document.chunk_shape),
        "grid_shape": None if vertices is None else list(vertices.array.shape),
        "chunks": None if vertices is None else vertices.count(),
        "dtype": None if vertices is None else vertices.attributes.get("dtype"),
        "shard_shape": None if vertices is None or vertices.array.shards is None else list(vertices.array.shards),
        "shard_shapes": {
            name: None if array.array.shards is None else list(array.array.shards) for name, array in cell_arrays(level)
        },
        "compressors": [] if vertices is None else [codec.name for codec in vertices.array.compressors],
        "objects": object_count,
        "groups": None if groups is None else groups.get("num_groups"),
        "links": links,
        "links_counted": links_counted,
        **{family: level.names(family) for family in _FAMILIES},
    }


def _link_count(level: Level, objects: Any, *, sizes: bool) -> tuple[Any, bool]:
    """Return how many links there are, and whether they were counted."""
    about, root = level.attributes("links/0"), level.owner.root
    stored = None if about is None else about.get("num_links")
    if root.links_convention == EXPLICIT or "point_cloud" in root.geometry_types:
        return stored, True
    if stored is not None and type(stored) is not int:
        return stored, False
    implied = _implied_links(level, sizes=sizes)
    if implied is not None:
        return (stored or 0) + implied, True
    count = level.document.vertex_count
    return max(stored or 0, count - min(count, objects if type(objects) is int else 0)), False


def _implied_links(level: Level, *, sizes: bool) -> int | None:
    """Return how many links lead from a vertex to the next of its fragment; ``None`` if the index is not read."""
    try:
        index = level.cells("vertex_fragments")
        chunks = None if index is None else index.listed()
        if index is None or chunks is None:
            return None
        if not sizes and (is_far(level.owner.store) or len(chunks) > _CELLS_READ):
            return None
        count = 0
        for start in range(0, len(chunks), _CELLS_READ):
            for blob in index.read(chunks[start : start + _CELLS_READ]):
                count += int(np.maximum(decode_sizes(blob, level.document.vertex_count) - 1, 0).sum())
    except ArrayChangedError:
        raise
    except ZardineError:  # `validate` says what is damaged
        return None
    return count


def _object_count(about: Mapping[str, Any], level: Level) -> Any:
    """How many objects there are, as the object index says; without those that are removed."""
    rows = about.get("num_objects")
    return rows - parse_removed(about, child(level.path, "object_index")).count() if type(rows) is int else rows


def read_objects(path: StoreLike, *, level: int = 0) -> ObjectTable:
    """Read the ids and attributes of all objects of a level; none where it has none."""
    return read_steadily(path, level, _objects)


def _objects(opened: Level) -> ObjectTable:
    manifests = load_manifests(opened)
    if manifests is None:
        none = np.zeros(0, np.int64)
        return ObjectTable(none, none)
    columns = load_object_tables(opened, manifests)
    values = {name: column.decoded() for name, column in columns.items()}
    present = {name: _present(opened.table(f"object_attributes/{name}"), values[name]) for name in values}
    return ObjectTable(manifests.ids, np.diff(manifests.starts), values, present)


def _present(table: Array | None, values: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Which rows are not wholly the fill value, where the document says that this stands for nothing."""
    if table is None or table.metadata.attributes.get("fill_sentinel_meaning") != "absent":
        return np.ones(len(values), np.bool_)
    fill = table.fill_value
    absent: npt.NDArray[np.bool_] = np.asarray(values == fill, np.bool_)
    if values.dtype.kind == "f" and np.isnan(fill):
        absent = np.isnan(values)
    rows: npt.NDArray[np.bool_] = absent.reshape(len(values), int(np.prod(values.shape[1:])))
    return np.asarray((~rows).any(axis=1), np.bool_)


def read_groups(path: StoreLike, *, level: int = 0) -> GroupTable:
    """Read the members and attributes of all groups of a level; none where it has none."""
    groups = read_steadily(path, level, load_groups)
    if groups is None:
        return GroupTable(())
    return GroupTable(groups.members, {name: column.decoded() for name, column in groups.attributes.items()})


def read_fragments(
    path: StoreLike, *, level: int = 0, bbox: Box = None, chunks: Collection[Sequence[int]] | None = None
) -> FragmentTable:
    """Read the chunks and attributes of the fragments of a level: of all, or of those that are asked for.

    ``bbox``: of those with a vertex in a closed box; ``chunks``: of those in some chunks, rows of integers. Raises as
    :func:`zardine.vectors.read_points`.
    """
    query = Query(level=level, bbox=bbox, chunks=chunks).checked()
    return read_steadily(path, level, lambda opened: _fragments(opened, query))


def _fragments(opened: Level, query: Query) -> FragmentTable:
    asked = chunks_for(opened, query, None, opened.cells("vertices"))
    content = load_cells(opened, asked, fragment_attributes=ALL)
    own, rows = content.fragments.of_rows(), content.fragments.rows
    wanted = np.ones(content.fragments.count, np.bool_)
    if query.bbox is not None:
        wanted[:] = False
        wanted[own[in_box(content.positions[rows], *checked_box(query.bbox, opened.owner.root.ndim))]] = True
    found = np.flatnonzero(wanted)
    chunks = np.repeat(content.keys, np.diff(content.fragments.before), axis=0)[found]
    values = {name: column.take(found).decoded() for name, column in content.fragment_attributes.items()}
    return FragmentTable(chunks, np.diff(content.fragments.starts)[found], values)


def list_chunks(path: StoreLike, *, level: int = 0, bbox: Box = None, array: str = "vertices") -> npt.NDArray[np.int64]:
    """Return the chunks ``(C, K)`` of a level that have a cell, ascending; reads documents only.

    ``bbox``: of those that touch a closed box. ``array``: of another array of cells, by its path below the level. Where
    documents do not list them, looks at what is stored. Raises :class:`~zardine.errors.SelectionError` for levels and
    arrays that are not there.
    """
    query = Query(level=level, bbox=bbox).checked()
    return read_steadily(path, level, lambda opened: _listed(opened, array, query))


def _listed(opened: Level, name: str, query: Query) -> Ints:
    present = present_chunks(_cells(opened, name), None)
    if query.bbox is None:
        return present
    low, high = chunk_box(opened, query.bbox)
    space = present[:, -len(low) :]
    return np.asarray(present[((space >= low) & (space <= high)).all(axis=1)], np.int64)


def chunk_exists(path: StoreLike, chunk: Sequence[int], *, level: int = 0, array: str = "vertices") -> bool:
    """Tell whether a chunk has a cell, as :func:`list_chunks`. Raises :class:`~zardine.errors.SelectionError`."""
    return read_steadily(path, level, lambda opened: _has_cell(opened, array, chunk))


def _has_cell(opened: Level, name: str, chunk: Sequence[int]) -> bool:
    array, wanted = _cells(opened, name), given_chunks(opened, [chunk])
    named = array.lists(wanted)
    return bool((find_rows(array.found(), wanted) >= 0)[0] if named is None else named[0])


def _cells(opened: Level, name: str) -> CellArray:
    found = dict(cell_arrays(opened))
    if name not in found:
        known = ", ".join(sorted(found))
        raise SelectionError(f"level {opened.document.level} of {opened.owner.name} has no {name!r} of cells: {known}")
    array = opened.cells(name)
    assert array is not None
    return array


def read_cross_level_links(path: StoreLike, level: int, delta: int = 1) -> npt.NDArray[np.int64]:
    """Read the links from ``level`` to ``level + delta``: ``(M, 2)`` rows of vertices on the one and on the other.

    Rows count the vertices in the order in which :func:`read_points` gives a whole level. Raises
    :class:`~zardine.errors.SelectionError` where there are no such levels or links.
    """
    if isinstance(delta, bool) or not isinstance(delta, int | np.integer) or delta == 0:
        raise SelectionError(f"delta is a number of levels up or down, not {delta!r}")
    return read_steadily(path, level, lambda own: _cross_level_links(path, own, int(delta)))


def _cross_level_links(path: StoreLike, own: Level, delta: int) -> npt.NDArray[np.int64]:
    level = own.document.level
    if level + delta < 0:
        raise SelectionError(f"{own.owner.name} has no level {level + delta}")
    other = open_level(path, level + delta)
    below, above = (each.document.attributes for each in ((own, other) if delta > 0 else (other, own)))
    if below.get(NEWER) == "vertices" or lacks_links(above):
        reason = f"has no links from level {level} to level {level + delta} that hold, since the one is older"
        raise SelectionError(f"{own.owner.name} {reason}: build_pyramid makes them")
    changed = f"level {level + delta} of {own.owner.name} was changed while it was read"
    try:
        content, its = load_cells(own), load_cells(other)
        links = load_cross_links(own, content, its, other, delta)
    except ZardineError:
        if other.is_unchanged():
            raise
        raise ArrayChangedError(changed) from None
    if not other.is_current():
        raise ArrayChangedError(changed)
    if links is None:
        raise SelectionError(f"{own.owner.name} has no links from level {level} to level {level + delta}")
    found = links.endpoints.copy()
    for column, each in ((0, content), (1, its)):
        number = np.full(len(each.positions) + 1, -1, np.int64)
        number[:-1][each.visible()] = np.arange(int(each.visible().sum()))
        found[:, column] = number[found[:, column]]
    return found[(found >= 0).all(axis=1)]
