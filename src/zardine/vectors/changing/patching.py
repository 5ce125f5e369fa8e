"""Adding to a level by the cells that it touches: a log of these, and of the rows that tables gain.

What cannot be done so raises :class:`UnfitError`, and the caller stores the level anew: chunks before the first one of
the grid, attributes that are new, more categories than their codes can tell, documents of others that contradict.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from zardine.buffers import Ints
from zardine.cache import Cache
from zardine.errors import DataError
from zardine.metadata.documents import ArrayMetadata, GroupMetadata
from zardine.nodes.array import Array
from zardine.vectors.content.changes import merge
from zardine.vectors.content.columns import Column, column_of, join_columns
from zardine.vectors.content.content import Columns, Content, Links, Objects
from zardine.vectors.content.plan import (
    MANIFESTS_AT_ONCE,
    ROWS_AT_ONCE,
    Grid,
    Node,
    plan_columns,
    plan_level,
    plan_links,
    table_values,
)
from zardine.vectors.format.cell_documents import NONEMPTY
from zardine.vectors.format.change_log import Changed, ChangeLog
from zardine.vectors.format.fragment_index import encode_indexes
from zardine.vectors.format.grids import MOST_CELLS
from zardine.vectors.format.layouts import fitting_shards, table_metadata
from zardine.vectors.format.links import join_links, segment_of
from zardine.vectors.format.manifests import encode_manifests
from zardine.vectors.format.ragged import find_rows, ranges, row_numbers, starts_of, unique_rows
from zardine.vectors.format.removed_objects import REMOVED, SOLE, are_sole, runs_of
from zardine.vectors.reading.loading import load_cells, read_column
from zardine.vectors.reading.loading_objects import KnownIds, manifests_of
from zardine.vectors.reading.manifests import Manifests
from zardine.vectors.reading.presence import same_list
from zardine.vectors.reading.query import ALL
from zardine.vectors.storing.cells import CellArray
from zardine.vectors.storing.held_values import hold_shards, look_at_chunks, look_at_shards
from zardine.vectors.storing.logs import new_token, revision_of
from zardine.vectors.storing.store import Level
from zardine.vectors.storing.table_rows import row_bytes


class UnfitError(Exception):
    """A change that cannot be made by its cells."""


@dataclass(slots=True)
class Patch:
    """What a change of some cells of a level comes to."""

    level: Level
    content: Content
    """The touched cells, as they are to be."""
    more: int
    """How many rows there are then, beside those that there were; negative for fewer."""
    nodes: list[Node] = field(default_factory=list)
    """Nodes that are new, or stored anew."""
    documents: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    cells: dict[str, Changed] = field(default_factory=dict)
    rows: dict[str, Changed] = field(default_factory=dict)
    known: dict[str, Array] = field(default_factory=dict)
    """Arrays of which cells or rows change, as they were opened: what was read of their shards is known then."""
    keeps_rows: bool = False
    """Whether every row that there was is the same one in its cell."""

    @property
    def touched(self) -> Ints:
        """The chunks of which vertices or fragments change: ``(C, K)``."""
        families = ("vertices", "vertex_fragments")
        found = [self.cells[name].places for name in families if name in self.cells]
        return unique_rows(np.concatenate([np.zeros((0, self.level.rank), np.int64), *found]))[0]

    def log(self) -> ChangeLog:
        """What is to be agreed on."""
        revision = revision_of(self.level.document.attributes) + 1
        return ChangeLog(new_token(self.level.owner.store, revision), self.documents, self.cells, self.rows)


def addition(
    level: Level, new: Content, ids: KnownIds | None, of_objects: Columns, remake: Callable[[Content], Content]
) -> Patch:
    """What adding ``new`` comes to: in each cell its rows and fragments follow those that are there.

    ``ids``: those of all objects of the level. Objects of ``new`` that are among them go on; ``of_objects`` has a row
    for each of the others. ``remake`` makes of the touched cells what they are to be.

    Raises :class:`UnfitError`, and :class:`~zardine.errors.DataError` as
    :func:`~zardine.vectors.content.changes.merge`.
    """
    old = touched_cells(level, new.keys)
    _check_names(new.vertex_attributes, old.vertex_attributes)
    some = 0 in new.links and len(new.links[0].endpoints)
    links = _no_links_like(level, new.links[0]) if some else None
    old = replace(old, links={} if links is None else {0: links})
    if new.objects is not None:
        none = np.zeros(0, np.int64)
        new = replace(new, objects=replace(new.objects, attributes={}))
        old = replace(old, objects=Objects(none, starts_of(none), none))
    joined = remake(merge(old, new))
    patch = Patch(level, joined, len(joined.positions) - len(old.positions))
    patch.keeps_rows = _are_first(old, joined)
    put_cells(patch)
    if some:
        _put_links(patch, grid_for_patch(patch))
    if joined.objects is not None and ids is not None:
        _put_objects(patch, ids, joined.objects, of_objects)
    return patch


def _are_first(old: Content, joined: Content) -> bool:
    """Whether the rows of each cell of ``old`` are the first that it has in ``joined``."""
    places = ranges(joined.row_starts[find_rows(joined.keys, old.keys)], np.diff(old.row_starts))
    return np.array_equal(joined.positions[places], old.positions)


def touched_cells(level: Level, keys: Ints) -> Content:
    """What the chunks ``keys`` hold, without links and objects. Raises :class:`UnfitError` where lists contradict."""
    vertices, index = level.cells("vertices"), level.cells("vertex_fragments")
    if vertices is None or index is None or not same_list(vertices, index):
        raise UnfitError("nonempty_chunks")
    there = keys[is_listed(vertices, keys)]

    def cells() -> Iterator[tuple[CellArray, Ints]]:
        yield from ((vertices, there), (index, there))
        for family in ("vertex_attributes", "fragment_attributes"):
            found = [level.cells(f"{family}/{name}") for name in level.names(family)]
            yield from ((each, there) for each in found if each is not None)

    hold_shards(cells, level.owner.store)
    return load_cells(level, there, vertex_attributes=ALL, fragment_attributes=ALL, vertices=vertices)


def is_listed(array: CellArray, keys: Ints) -> Any:
    """Which of ``keys`` an array lists. Raises :class:`UnfitError` where it has no list."""
    texts = texts_of(array.attributes.get(NONEMPTY))
    return np.fromiter((text in texts for text in texts_in(keys)), np.bool_, len(keys))


_OF_A_KEY: Final = 128
"""Bytes that a key takes in a set, about, with its text."""
_seen: Cache[int, tuple[Any, frozenset[Any]]] = Cache(32 * 2**20)
"""The keys of lists, by the identity of these, which documents hold and nobody changes: they are held here."""


def texts_of(listed: Any) -> frozenset[Any]:
    """The keys that a list of chunks holds. Raises :class:`UnfitError` for what can be no list of keys."""
    if not isinstance(listed, list | tuple):
        raise UnfitError(NONEMPTY)
    known = _seen.get(id(listed))
    if known is not None and known[0] is listed:
        return known[1]
    try:
        found = frozenset(listed)
    except TypeError:
        raise UnfitError(NONEMPTY) from None
    _seen.put(id(listed), (listed, found), 1024 + _OF_A_KEY * len(found))
    return found


def put_cells(patch: Patch, gone: Ints | None = None, *, only: str | None = None) -> None:
    """Let the touched cells be what they are to be, and those of the chunks ``gone`` be no more; without links.

    ``only``: in one array.
    """
    unlinked = replace(patch.content, links={}, objects=None, groups=None)
    for node in plan_level(unlinked, grid_for_patch(patch), always_links=False):
        if node.chunks is not None and only in (None, node.path):
            if gone is not None and len(gone):
                chunks = np.concatenate([node.chunks, gone])
                node = replace(node, chunks=chunks, cells=[*node.cells, *(b"" for _ in gone)])
            put_node(patch, node, existing(patch, node.path))


def grid_for_patch(patch: Patch) -> Grid:
    """The grid of the level, or a larger one that holds the touched cells."""
    vertices, keys = patch.level.cells("vertices"), patch.content.keys
    assert vertices is not None
    last = np.maximum(np.asarray(vertices.array.shape), (keys - vertices.origin).max(axis=0, initial=0) + 1)
    shape = tuple(last.tolist())
    return Grid(vertices.origin, shape, vertices.layout_for(shape))


def put_column(patch: Patch, name: str, old: Column, new: Column) -> None:
    """Let an attribute of vertices have the values ``new`` in the cells where they are not the ``old`` ones."""
    content, array = patch.content, existing(patch, f"vertex_attributes/{name}")
    differs = (new.values != old.values).reshape(len(new.values), prod(new.row_shape)).any(axis=1)
    cells = np.unique(content.cell_of_rows()[differs])
    grid = Grid(array.origin, array.array.shape, array.layout)
    for node in plan_columns("vertex_attributes", {name: new}, content.row_starts, content, grid):
        if node.chunks is not None:
            kept = find_rows(content.keys[cells], node.chunks) >= 0
            some = [cell for cell, wanted in zip(node.cells, kept.tolist(), strict=True) if wanted]
            if some:
                put_node(patch, replace(node, chunks=node.chunks[kept], cells=some), array)


def put_column_anew(patch: Patch, name: str, new: Column) -> None:
    """Let an attribute of vertices be stored anew; the content is that of the whole level."""
    content, array = patch.content, existing(patch, f"vertex_attributes/{name}")
    grid = Grid(array.origin, array.array.shape, array.layout_for(array.array.shape))
    planned = plan_columns("vertex_attributes", {name: new}, content.row_starts, content, grid)
    patch.nodes += [node for node in planned if node.chunks is not None]


def existing(patch: Patch, path: str) -> CellArray:
    array = patch.level.cells(path)
    if array is None:
        raise UnfitError(path)
    return array


def put_node(patch: Patch, node: Node, array: CellArray) -> None:
    """Let the cells of ``node`` take the places of those of ``array``."""
    assert isinstance(node.metadata, ArrayMetadata)
    assert node.chunks is not None
    old, about = array.array.metadata, node.metadata.attributes
    attributes: dict[str, Any] = dict(old.attributes)
    listed: Any = attributes.get(NONEMPTY)
    texts = texts_of(listed)
    same = ("dtype", "row_shape", "encoding", "offsets", "has_perm", "link_width")
    if any(_plain(attributes.get(name, about.get(name))) != _plain(about.get(name)) for name in same):
        raise UnfitError(f"{node.path} is stored otherwise")
    for name in ("categories", "_FillValue"):
        if name in about and _plain(about[name]) != _plain(attributes.get(name)):
            attributes[name] = about[name]
    wanted = dict(zip(texts_in(node.chunks), map(bool, node.cells), strict=True))
    there = wanted.keys() & texts
    missing = [text for text, filled in wanted.items() if filled and text not in there]
    kept = [text for text in listed if wanted.get(text, True)] if any(not wanted[text] for text in there) else listed
    if missing:
        try:
            kept = sorted([*kept, *missing])
        except TypeError:  # a number among them: looking at each would cost all appends
            raise UnfitError(NONEMPTY) from None
    if kept is not listed:
        attributes[NONEMPTY] = kept
    filled = np.fromiter(wanted.values(), np.bool_, len(wanted))
    local = node.chunks - np.asarray(array.origin)
    shape = np.asarray(array.array.shape)
    if filled.any():
        shape = np.maximum(shape, local[filled].max(axis=0) + 1)
    some = [number for number, text in enumerate(wanted) if wanted[text] or text in there]
    size = tuple(shape.tolist())
    if (local[some] < 0).any() or (local[some] >= shape).any() or prod(size) > MOST_CELLS:
        raise UnfitError("chunks before the first one of the grid")
    if size != array.array.shape and not _has_room(array, size):
        raise UnfitError("larger shards")
    if attributes != dict(old.attributes) or size != old.shape:
        patch.documents[node.path] = replace(old, shape=size, attributes=attributes).to_dict()
    if some:
        look_at_shards(array, node.chunks[some])
        patch.known[node.path] = array.array
        patch.cells[node.path] = Changed(node.chunks[some], [bytes(node.cells[number]) for number in some])


def _has_room(array: CellArray, grid: tuple[int, ...]) -> bool:
    """Whether the shards are those that a grid of this shape would have."""
    try:
        return fitting_shards(array.layout.shard_shape, grid) == array.array.shards
    except DataError:
        return array.layout.shard_shape == array.array.shards


def _put_links(patch: Patch, grid: Grid) -> None:
    """Add the links of the content to those that the level has."""
    level, links = patch.level, patch.content.links[0]
    family = level.node("links/0")
    if not isinstance(family, GroupMetadata):
        raise UnfitError("links")
    count = len(links.endpoints)
    patch.documents["links/0"] = counted(family, count, "num_links", "num_physical_records")
    nodes = list(plan_links(0, links, patch.content, grid))
    there = {node.path.rpartition("/")[2] for node in nodes if _is_segment(node) and level.node(node.path) is not None}

    def cells() -> Iterator[tuple[CellArray, Ints]]:
        for node in nodes:
            if node.chunks is not None and node.path.rpartition("/")[2] in there:
                array = level.cells(node.path)
                if array is not None:
                    yield array, node.chunks

    hold_shards(cells, level.owner.store)
    for node in nodes:
        parts = node.path.split("/")
        if isinstance(node.metadata, GroupMetadata):
            if len(parts) == 3:
                about = level.node(node.path)
                if not isinstance(about, GroupMetadata):
                    raise UnfitError(node.path)
                patch.documents[node.path] = counted(about, count, "num_links")
        elif node.path != "link_fragments" and parts[-1] not in there:
            patch.nodes.append(node)
        elif parts[0] == "links":
            _add_links(patch, node)
        elif parts[0] == "link_attributes":
            _put_behind(patch, node)
    intra = patch.cells.get(f"links/0/{segment_of(((0,) * level.rank,) * (links.endpoints.shape[1] - 1))}")
    if intra is not None:
        _put_link_fragments(patch, intra, links.endpoints.shape[1], grid)
    new_intra = [node for node in nodes if node.path == "link_fragments"]
    if intra is None and new_intra:
        if level.node("link_fragments") is not None:
            raise UnfitError("link_fragments")
        patch.nodes += new_intra


def _is_segment(node: Node) -> bool:
    return node.path.startswith("links/") and isinstance(node.metadata, ArrayMetadata)


def counted(group: GroupMetadata, more: int, *names: str) -> Mapping[str, Any]:
    """The document of a group with higher counts, where it has any."""
    attributes = dict(group.attributes)
    for name in names:
        if type(attributes.get(name)) is int:
            attributes[name] += more
    return group.with_attributes(attributes).to_dict()


def _add_links(patch: Patch, node: Node) -> None:
    assert isinstance(node.metadata, ArrayMetadata)
    assert node.chunks is not None
    array = existing(patch, node.path)
    about = node.metadata.attributes
    width, plain = about["link_width"] + about["has_perm"], not any(map(any, about["offsets"]))
    if (
        array.attributes.get("dtype") != "int64"
        or array.attributes.get("has_perm", about["has_perm"]) != about["has_perm"]
    ):
        raise UnfitError(f"{node.path} is stored otherwise")
    both = zip(_old_cells(array, node.chunks), map(bytes, node.cells), strict=True)
    cells = [join_links(old, new, width, grouped=not plain) if old else new for old, new in both]
    put_node(patch, replace(node, cells=cells), array)


def _put_behind(patch: Patch, node: Node) -> None:
    """Let the values of ``node`` follow those of the cells that are there."""
    assert isinstance(node.metadata, ArrayMetadata)
    assert node.chunks is not None
    array = existing(patch, node.path)
    about = node.metadata.attributes
    known = list(array.attributes.get("categories") or ())
    if list(about.get("categories") or ())[: len(known)] != known:
        raise UnfitError(f"{node.path} has other categories")
    cells = [a + bytes(b) for a, b in zip(_old_cells(array, node.chunks), node.cells, strict=True)]
    put_node(patch, replace(node, cells=cells), array)


def _put_link_fragments(patch: Patch, intra: Changed, width: int, grid: Grid) -> None:
    """One fragment for all links within a chunk."""
    counts = np.fromiter(map(len, intra.values), np.int64, len(intra.values)) // (8 * width)
    rows = np.arange(int(counts.sum())) - np.repeat(starts_of(counts)[:-1], counts)
    blobs = encode_indexes(np.arange(len(counts) + 1), counts, rows)
    array = existing(patch, "link_fragments")
    put_node(patch, Node("link_fragments", array.array.metadata, intra.places, blobs), array)


def _old_cells(array: CellArray, chunks: Ints) -> list[bytes]:
    cells = array.read_together(chunks).apart()
    named = is_listed(array, chunks)
    if any(listed and not cell for listed, cell in zip(named.tolist(), cells, strict=True)):
        raise UnfitError("a cell is lost")  # who reads all says which
    return [cell if listed else b"" for listed, cell in zip(named.tolist(), cells, strict=True)]


def _no_links_like(level: Level, links: Links) -> Links:
    """No links, with the attributes that those of the level have."""
    about = level.attributes("links/0")
    if about is None:
        raise UnfitError("links")
    width = links.endpoints.shape[1]
    if about.get("link_width") != width or about.get("store", "canonical") != "canonical":
        raise UnfitError("links")
    columns = {}
    for name in level.names("link_attributes"):
        if level.node(f"link_attributes/{name}/0") is None:
            continue
        first = next(iter(level.names("links/0")), None)
        array = None if first is None else level.cells(f"link_attributes/{name}/0/{first}")
        if array is None:
            raise UnfitError("link_attributes")
        none = np.zeros(0, np.int64)
        columns[name] = read_column(array, np.zeros((0, level.rank), np.int64), none, none)
    _check_names(links.attributes, columns)
    return Links(np.zeros((0, width), np.int64), columns, bool(about.get("directed")))


def _check_names(new: Columns, old: Columns) -> None:
    if set(new) - set(old):
        raise UnfitError("new attributes")


def texts_in(chunks: Ints) -> list[str]:
    """The keys of chunks, in their order."""
    return [".".join(map(str, chunk)) for chunk in chunks.tolist()]


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _put_objects(patch: Patch, ids: KnownIds, objects: Objects, of_fresh: Columns) -> None:
    """Add objects to the tables; those that are there already go on with the fragments that are new.

    Those that were removed come back in their rows.
    """
    level, content = patch.level, patch.content
    about = object_index(level)
    row = ids.rows_of(objects.ids)
    is_fresh = row < 0
    fresh = np.flatnonzero(is_fresh)
    again = ids.places_of(objects.ids[fresh]) if ids.removed else np.full(len(fresh), -1)
    added = fresh[again < 0]
    row[fresh] = again
    row[added] = ids.count + np.arange(len(added))
    cell = np.searchsorted(content.fragments.before, objects.fragments, side="right") - 1
    chunks = content.keys[cell] if len(cell) else np.zeros((0, level.rank), np.int64)
    local = objects.fragments - content.fragments.before[cell] if len(cell) else objects.fragments
    started = np.diff(objects.starts) > 0
    present = int(started[fresh].sum())
    going_on = np.flatnonzero(~is_fresh)
    if len(going_on):
        old = manifests_of(level, objects.ids[going_on], row[going_on])
        if old is None:
            raise UnfitError("object_index/manifests")  # who reads all says what it is
        present += int((started[going_on] & (np.diff(old.starts) == 0)).sum())
        starts, chunks, local = _joined_manifests(old, going_on, objects.starts, chunks, local)
    else:
        starts = objects.starts
    values = blobs_of(encode_manifests(starts, chunks, local))
    manifests = table_of(level, "object_index/manifests", ids.count)
    put_rows(patch, manifests, "object_index/manifests", row, values, MANIFESTS_AT_ONCE)
    identifiers = table_of(level, "object_index/object_ids", ids.count)
    put_rows(patch, identifiers, "object_index/object_ids", row[added], objects.ids[added], ROWS_AT_ONCE)
    _check_names(of_fresh, dict.fromkeys(level.names("object_attributes"), Column(np.zeros(0))))
    for name in level.names("object_attributes"):
        put_table(patch, f"object_attributes/{name}", ids.count, row[fresh], of_fresh.get(name))
    more: dict[str, Any] = {"num_objects": ids.count + len(added)}
    if len(added):
        new = objects.ids[added]
        more["object_ids_sorted"] = ids.ascending and bool(new[0] > ids.highest() and (np.diff(new) > 0).all())
    if len(added) < len(fresh):
        there = ids.all()
        more[REMOVED] = runs_of(np.setdiff1d(there[ids.removed.among(there)], objects.ids))
    put_index(patch, about, present, are_sole(about.attributes), more)


def object_index(level: Level) -> GroupMetadata:
    """The document of the object index, of the layout of today. Raises :class:`UnfitError` for another one."""
    about = level.node("object_index")
    if not isinstance(about, GroupMetadata) or about.attributes.get("layout") != "vlen_manifests_v2":
        raise UnfitError("object_index")
    return about


def put_index(patch: Patch, about: GroupMetadata, present: int, sole: bool, more: Mapping[str, Any]) -> None:
    """Let the object index tell of so many more objects that are made of something, and what else is to be told.

    ``sole``: whether no fragment is part of two objects, and none that is part of one is empty.
    """
    attributes = {**about.attributes, **more}
    if type(attributes.get("num_present")) is int:
        attributes["num_present"] += present
    attributes.pop(SOLE, None)
    if sole:
        attributes[SOLE] = [attributes.get("num_objects"), attributes.get("num_present")]
    patch.documents["object_index"] = about.with_attributes(attributes).to_dict()


def blobs_of(blobs: Sequence[bytes]) -> npt.NDArray[Any]:
    """Bytes as the values of a table."""
    values = np.empty(len(blobs), object)
    values[:] = blobs
    return values


def _joined_manifests(
    old: Manifests, rows: Ints, starts: Ints, chunks: Ints, fragments: Ints
) -> tuple[Ints, Ints, Ints]:
    """Manifests with entries of those that were there, of the objects ``rows``, before the new ones."""
    owner = np.concatenate([rows[row_numbers(np.diff(old.starts))], row_numbers(np.diff(starts))])
    order = np.argsort(owner, kind="stable")
    counts = np.bincount(owner, minlength=len(starts) - 1)
    both = np.concatenate([old.chunks, chunks])[order], np.concatenate([old.fragments, fragments])[order]
    return starts_of(counts), *both


def put_table(patch: Patch, path: str, count: int, rows: Ints, given: Column | None) -> None:
    """Let some rows of an attribute of ``count`` objects be those of ``given``; without: let them have no value."""
    table, name = table_of(patch.level, path, count), path.rpartition("/")[2]
    shape = (0, *table.shape[1:])
    none = column_of(name, np.zeros(shape, object), 0, "objects") if table.dtype.kind in "TOUS" else None
    column = Column(np.zeros(shape, table.dtype)) if none is None else none
    column = join_columns(name, column, None if given is None else given.decoded(), len(rows), of_objects=True)
    put_rows(patch, table, path, rows, table_values(column)[0], ROWS_AT_ONCE)


def table_of(level: Level, path: str, count: int) -> Array:
    table = level.table(path)
    if table is None or table.ndim == 0 or len(table) != count:
        raise UnfitError(path)
    return table


def _as_stored(values: npt.NDArray[Any], table: Array, path: str) -> npt.NDArray[Any]:
    stored = values.astype(table.dtype)
    if table.dtype.kind in "US" and (stored.astype(values.dtype) != values).any():
        raise UnfitError(f"{path} holds shorter text")
    return stored


def put_rows(patch: Patch, table: Array, path: str, rows: Ints, values: npt.NDArray[Any], at_once: int) -> None:
    """Let some rows of a table be ``values``; those that are new follow those that are there.

    A table whose chunks are small gets larger ones before it has many of them.
    """
    if len(rows) == 0:
        return
    before, old = len(table), table.metadata
    count = max(before, int(rows.max()) + 1)
    if values.shape[1:] != table.shape[1:]:
        raise DataError(f"{path} has rows of shape {table.shape[1:]}, the new values {values.shape[1:]}")
    values = _as_stored(values, table, path)
    order = np.argsort(rows)
    rows, values = rows[order], values[order]
    attributes = dict(old.attributes)
    if "shape" in attributes:
        attributes["shape"] = [count, *table.shape[1:]]
    new = replace(old, shape=(count, *old.shape[1:]), attributes=attributes)
    if count > before and table.chunks[0] < min(count, at_once):
        stored = patch.level.values(path)
        assert stored is not None
        whole = np.empty((count, *table.shape[1:]), stored[1].dtype)
        whole[:before] = stored[1]
        whole[rows] = values
        chunks = (at_once, *table.chunks[1:])
        larger = table_metadata(new.shape, "int64", chunks, {}, checksum=False).chunk_grid
        patch.nodes.append(Node(path, replace(new, chunk_grid=larger), values=whole))
        return
    if count > before:
        patch.documents[path] = new.to_dict()
    look_at_chunks(table, rows)
    patch.known[path] = table
    patch.rows[path] = Changed(rows.reshape(-1, 1), row_bytes(values))
