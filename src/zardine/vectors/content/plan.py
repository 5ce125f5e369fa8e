"""What is to be stored for a level: documents and cells, made of its content. Pure.

Nodes that hold most come first, since they take longest to store: others are planned meanwhile. Nobody reads a level
before all of its nodes are stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Any, Unpack

import numpy as np
import numpy.typing as npt

from zardine.buffers import BytesLike, Ints
from zardine.errors import DataError
from zardine.metadata.documents import ArrayMetadata, GroupMetadata
from zardine.vectors.content.columns import Column, absent_value
from zardine.vectors.content.content import Columns, Content, GivenRows, Groups, Links
from zardine.vectors.content.line_parts import LineParts
from zardine.vectors.content.link_placement import PlacedLinks, place_in_cells
from zardine.vectors.format.cell_documents import cell_attributes
from zardine.vectors.format.documents import LevelBlock, new_level
from zardine.vectors.format.fragment_index import encode_indexes, encode_tiles
from zardine.vectors.format.grids import MOST_CELLS, MOST_COORDINATE, grid_for
from zardine.vectors.format.layouts import Layout, cells_metadata, table_metadata
from zardine.vectors.format.links import SELF, encode_link_cells, segment_of, signed
from zardine.vectors.format.manifests import block_size, manifest_pieces
from zardine.vectors.format.pieces import Pieces, RunPieces
from zardine.vectors.format.ragged import find_places, starts_of
from zardine.vectors.format.removed_objects import SOLE

MANIFESTS_AT_ONCE = 16384
"""Rows of a chunk of a table of bytes."""

ROWS_AT_ONCE = 65536
"""Rows of a chunk of another table."""

_FEW_ROWS = 1024
"""Rows of a chunk of a small table: what is not there takes next to no bytes."""

_MOST_OBJECTS = 2**26

_MOST_IN_STEP = 2**30
"""Bytes of a table that are sorted by their places: blosc takes no chunk of 2 GiB, and tables grow."""

NO_MEMBERS = b"\0"
"""Stands in the list of groups for a group that is not stored: no list of ids, of 8 bytes each, is like it."""

NO_ID = -(2**63)
"""What ids are that are not stored: no id of any object, so that it tells that they are lost."""

FAMILIES = (
    "vertices",
    "links",
    "object_index",
    "vertex_attributes",
    "fragment_attributes",
    "link_attributes",
    "groups",
)
"""What ``arrays_present`` of a level names, where it is there."""


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """A group, or an array and what it holds: cells of ``chunks``, or ``values``."""

    path: str
    """Below the level."""
    metadata: ArrayMetadata | GroupMetadata
    chunks: Ints | None = None
    cells: Sequence[BytesLike] = ()
    values: npt.NDArray[Any] | None = None
    encoded: bool = False
    """Whether ``cells`` are as they are to be stored."""
    rows: Sequence[bytes] | None = None
    """Of an array of bytes: its values, which are taken a chunk at a time."""


@dataclass(frozen=True, slots=True)
class Grid:
    """The chunks of a level: the first one and how many, along each axis; and how cells are stored."""

    origin: tuple[int, ...]
    shape: tuple[int, ...]
    layout: Layout


def group(attributes: Mapping[str, Any] | None = None) -> GroupMetadata:
    """The document of a group."""
    return GroupMetadata(attributes=dict(attributes or {}))


def grid_of(keys: Ints, bounds: tuple[Sequence[float], Sequence[float]], shape: Any, layout: Layout) -> Grid:
    """Return the grid that holds ``bounds`` and the chunks ``keys``; ``shape`` is that of chunks."""
    origin, extent = grid_for(bounds[0], bounds[1], shape)
    low, high = np.asarray(origin), np.asarray(origin) + extent
    if len(keys):
        low = np.minimum(low, keys.min(axis=0))
        high = np.maximum(high, keys.max(axis=0) + 1)
    return Grid(tuple(low.tolist()), tuple((high - low).tolist()), layout)


def with_room(grid: Grid, old: Grid, keys: Ints) -> Grid:
    """Return ``grid`` with room before its first chunk: that of ``old``; where ``keys`` lie before it, as much again.

    A level whose grid begins elsewhere is stored anew, since cells are counted from its first chunk. So a store that
    grows chunk by chunk to lower coordinates is stored anew each time that it has become twice as large, and not more.
    """
    low, ends = np.asarray(grid.origin), np.asarray(grid.origin) + grid.shape
    room = np.minimum(low, old.origin)
    if len(keys):
        room = np.where(keys.min(axis=0) < old.origin, low - grid.shape, room)
    shape = (ends - room).tolist()
    if prod(shape) > MOST_CELLS or np.abs(room).max() > MOST_COORDINATE:
        return grid
    return Grid(tuple(room.tolist()), tuple(shape), grid.layout)


def level_attributes(content: Content, level: int, nodes: Sequence[Node], **more: Unpack[LevelBlock]) -> dict[str, Any]:
    """Return the attributes of the group of a level that is made of ``nodes``."""
    more.setdefault("fragments_tile", True if content.fragments.tile and content.count else None)
    return new_level(level, content.count, families_in(nodes), **more)


def families_in(nodes: Sequence[Node]) -> list[str]:
    """Return what ``arrays_present`` of a level says that is made of ``nodes``."""
    paths = {node.path for node in nodes}
    return [name for name in FAMILIES if name in paths]


def plan_level(content: Content, grid: Grid, *, always_links: bool) -> Iterator[Node]:
    """Every node below a level but that of the level itself; ``always_links``: also where there are none."""
    given, fragments = content.given, content.fragments  # the rows as they are now, whoever asks for them meanwhile
    cut_rows: Callable[[Any], Pieces | RunPieces]
    if given is None:
        rows, columns = content.positions, content.vertex_attributes
        cut_rows = partial(cut, starts=content.row_starts)
    else:
        rows, columns = given.positions, given.columns
        cut_rows = partial(_cut_runs, given=given, bounds=fragments.before)
    positions = rows.astype(rows.dtype.newbyteorder("<"), copy=False)
    about = {"zv_array": "vertices", "dtype": positions.dtype.name, "encoding": "raw"}
    yield _cells("vertices", grid, content.keys, cut_rows(positions), about)
    yield from _plan_columns("vertex_attributes", columns, cut_rows, content, grid)
    yield from plan_columns("fragment_attributes", content.fragment_attributes, fragments.before, content, grid)
    counts = np.diff(fragments.starts)
    if fragments.tile:
        blobs = encode_tiles(fragments.before, counts)
    else:
        cells = np.repeat(content.row_starts[:-1], np.diff(fragments.before))
        blobs = Pieces.of(encode_indexes(fragments.before, counts, fragments.rows - np.repeat(cells, counts)))
    named = {"zv_array": "vertex_fragments", "encoding": "fragment_index_v1"}
    yield _cells("vertex_fragments", grid, content.keys, blobs, named)
    parts = None if content.lines is None else content.lines.parts()
    if parts is not None:
        yield from _plan_lines(parts, content, grid, always_links=always_links)
        return
    yield from plan_members(content, grid.layout)
    links = content.links.get(0)
    if links is not None and (always_links or len(links.endpoints)):
        yield Node("links", group())
        yield from plan_links(0, links, content, grid, always_intra=always_links)


def _plan_lines(parts: LineParts, content: Content, grid: Grid, *, always_links: bool) -> Iterator[Node]:
    """The tables of lines and groups, and links."""
    rank, blobs = content.keys.shape[1], parts.manifests
    present = int(np.count_nonzero(np.diff(parts.starts)))
    size = int(blobs.lengths.sum())
    yield from plan_objects(parts.ids, parts.attributes, blobs, size, present, rank, grid.layout, sole=True)
    if content.groups is not None:
        yield from plan_groups(content.groups, grid.layout)
    count = sum(len(each.given) for each in parts.placed)
    if always_links or count:
        yield Node("links", group())
        links = Links(np.broadcast_to(np.int64(-1), (count, 2)))  # which rows they are between is known as it is stored
        yield from plan_links(0, links, None, grid, placed=parts.placed, always_intra=always_links)


def plan_members(content: Content, layout: Layout) -> Iterator[Node]:
    """The tables of objects and groups, where there are any."""
    if content.objects is not None:
        yield from _plan_objects(content, layout)
    if content.groups is not None:
        yield from plan_groups(content.groups, layout)


def plan_columns(family: str, columns: Columns, starts: Ints, content: Content, grid: Grid) -> Iterator[Node]:
    """The arrays of attributes with a row for each vertex or fragment."""
    yield from _plan_columns(family, columns, lambda values: cut(values, starts), content, grid)


def _plan_columns(
    family: str, columns: Columns, cut_values: Callable[[Any], Pieces | RunPieces], content: Content, grid: Grid
) -> Iterator[Node]:
    if columns:
        yield Node(family, group())
    for name, column in columns.items():
        kind = "attribute" if family == "vertex_attributes" else "fragment_attribute"
        attributes = {"zv_array": kind, **column_attributes(name, column), **_channels(column), **column.details}
        yield _cells(f"{family}/{name}", grid, content.keys, cut_values(column.values), attributes)


def plan_links(
    delta: int,
    links: Links,
    content: Content | None,
    grid: Grid,
    *,
    always_intra: bool = False,
    placed: Sequence[PlacedLinks] | None = None,
) -> Iterator[Node]:
    """The family of links of one level difference, and its attributes.

    ``placed``: where the links are, if known; else they are between rows of ``content``.
    """
    rank, width = len(grid.origin), links.endpoints.shape[1]
    if placed is None:
        assert content is not None
        cells, rows = content.cells_of(links.endpoints)
        placed = list(place_in_cells(content.keys, cells, rows, canonical=not links.directed))
    family = f"links/{signed(delta)}"
    count = len(links.endpoints)
    about = {
        "zv_array": "links_family",
        "level_delta": delta,
        "link_width": width,
        "directed": links.directed,
        "store": "canonical",
        "sid_ndim": rank,
        "num_links": count,
        "num_physical_records": count,
    }
    yield Node(family, group(about))
    intra = ((0,) * rank,) * (width - 1)
    if always_intra and all(each.offsets != intra for each in placed):
        none = np.zeros((0, rank), np.int64)
        nothing = PlacedLinks(intra, False, none, starts_of([]), np.zeros(0, np.int64), Pieces.of([]), width)
        placed = [*placed, nothing]
    for name in links.attributes:
        attribute = f"link_attributes/{name}"
        if name == next(iter(links.attributes)):
            yield Node("link_attributes", group())
        yield Node(attribute, group())
        facts = {"zv_array": "link_attribute_family", "name": name, "level_delta": delta, "num_links": count}
        yield Node(f"{attribute}/{signed(delta)}", group(facts))
    for each in placed:
        yield from _plan_placed(delta, links, each, grid, plain=delta == 0 and each.offsets == intra)


def _plan_placed(delta: int, links: Links, placed: PlacedLinks, grid: Grid, *, plain: bool) -> Iterator[Node]:
    segment = segment_of(placed.offsets)
    cells, starts = placed.cells, placed.starts
    offsets = [] if segment == SELF else [list(each) for each in placed.offsets]
    for name, column in links.attributes.items():
        taken = column.take(placed.given)
        about = {"zv_array": "link_attribute", **column_attributes(name, column)}
        about |= {"offsets": offsets, "level_delta": delta, **column.details}
        path = f"link_attributes/{name}/{signed(delta)}/{segment}"
        yield _cells(path, grid, cells, cut(taken.values, starts), about)
    blobs = placed.stored
    if not plain and not placed.is_across:  # between levels all are grouped
        blobs = encode_link_cells(placed.rows.astype("<i8", copy=False), starts, grouped=True)
    about = {
        "zv_array": "links",
        "dtype": "int64",
        "offsets": offsets,
        "has_perm": placed.has_order,
        "link_width": links.endpoints.shape[1],
        "level_delta": delta,
    }
    yield _cells(f"links/{signed(delta)}/{segment}", grid, cells, blobs, about)
    if plain:
        blobs = encode_tiles(np.arange(len(cells) + 1), np.diff(starts))
        yield _cells(
            "link_fragments", grid, cells, blobs, {"zv_array": "link_fragments", "encoding": "fragment_index_v1"}
        )


def _plan_objects(content: Content, layout: Layout) -> Iterator[Node]:
    objects = content.objects
    assert objects is not None
    rank = content.keys.shape[1]
    cell, local = find_places(content.fragments.before, objects.fragments)
    chunks = content.keys.take(cell, axis=0) if len(cell) else np.zeros((0, rank), np.int64)
    blobs = manifest_pieces(objects.starts, chunks, local)
    present = int((np.diff(objects.starts) > 0).sum())
    sole = np.bincount(objects.fragments, minlength=1).max() <= 1
    size = int(blobs.lengths.sum())
    yield from plan_objects(objects.ids, objects.attributes, blobs, size, present, rank, layout, sole=bool(sole))


def plan_objects(
    given: Ints,
    columns: Columns,
    manifests: Sequence[bytes],
    size: int,
    present: int,
    rank: int,
    layout: Layout,
    *,
    sole: bool,
) -> Iterator[Node]:
    """The tables of objects with the ids ``given``; ``present`` of the ``manifests`` are not empty.

    ``size``: bytes of the manifests. ``sole``: whether no fragment is part of two objects.
    """
    count = len(given)
    if count > _MOST_OBJECTS:
        raise DataError(f"{count} objects are more than the {_MOST_OBJECTS} that one level can hold")
    about: dict[str, Any] = {
        "zv_array": "object_index",
        "num_objects": count,
        "num_present": present,
        "sid_ndim": rank,
        "layout": "vlen_manifests_v2",
        "object_ids_sorted": bool((np.diff(given) > 0).all()),
    }
    if sole:
        about[SOLE] = [count, present]
    period = block_size(rank) if size <= _MOST_IN_STEP else None
    yield Node("object_index/manifests", _blob_table(count, layout, period=period), rows=manifests)
    ids = given.astype(np.int64)
    no_id = 0 if (ids == NO_ID).any() else NO_ID
    metadata = table_metadata(
        (count,), "int64", (rows_of_a_chunk(count, ROWS_AT_ONCE),), {}, no_id, checksum=layout.has_checksum, period=8
    )
    yield Node("object_index/object_ids", metadata, values=ids)
    yield Node("object_index", group(about))
    yield from plan_tables("object_attributes", "object_attribute", columns, count, layout)


def rows_of_a_chunk(count: int, most: int) -> int:
    """Rows of a chunk of a table of ``count`` rows: with room for more, not to be stored anew for a few."""
    return min(most, max(_FEW_ROWS, count + count // 4))


def plan_groups(groups: Groups, layout: Layout) -> Iterator[Node]:
    """The tables of groups."""
    count = len(groups.members)
    blobs = [members.astype("<i8").tobytes() for members in groups.members]
    metadata = _blob_table(count, layout, {"zv_array": "groups", "num_groups": count}, NO_MEMBERS)
    yield Node("groups", metadata, values=as_objects(blobs))
    yield from plan_tables("group_attributes", "groupings_attribute", groups.attributes, count, layout)


def plan_tables(family: str, kind: str, columns: Columns, count: int, layout: Layout) -> Iterator[Node]:
    """The tables of attributes with a row for each of ``count`` objects or groups."""
    if columns:
        yield Node(family, group())
    for name, column in columns.items():
        values, dtype = table_values(column)
        about = {"zv_array": kind, "name": name, "dtype": str(dtype), "shape": list(values.shape)}
        fill = absent_value(values.dtype) if kind == "object_attribute" else None
        if fill is not None:
            about["fill_sentinel_meaning"] = "absent"
        chunks = (rows_of_a_chunk(count, ROWS_AT_ONCE), *values.shape[1:])
        metadata = table_metadata(values.shape, dtype, chunks, about, fill, checksum=layout.has_checksum)
        yield Node(f"{family}/{name}", metadata, values=values)


def table_values(column: Column) -> tuple[npt.NDArray[Any], Any]:
    """The values of a column as a table holds them, and their data type; text that is missing is empty."""
    values = column.decoded() if column.categories is not None else column.values
    if values.dtype.kind not in "TO":
        return values, values.dtype
    return np.where(np.equal(values, None), "", values).astype(np.dtypes.StringDType()), "string"  # type: ignore[call-overload]


def column_attributes(name: str, column: Column) -> dict[str, Any]:
    """What the document of an attribute says of its values."""
    about: dict[str, Any] = {"name": name, "dtype": column.values.dtype.name, "row_shape": list(column.row_shape)}
    if column.categories is not None:
        about |= {"encoding": "dictionary", "categories": list(column.categories), "ordered": False}
        if column.missing is not None:
            about["_FillValue"] = column.missing
    return about


def _channels(column: Column) -> dict[str, Any]:
    """Names of channels: zarr-vectors takes the number of channels from them, and ``row_shape`` for a comment."""
    return {"channel_names": [f"ch{number}" for number in range(column.row_shape[0])]} if column.row_shape else {}


def cut(values: npt.NDArray[Any], starts: Ints) -> Pieces:
    """The bytes of the rows of each cell."""
    data, size = _bytes_of_rows(values)
    return Pieces.between(data, starts * size)


def _cut_runs(values: npt.NDArray[Any], given: GivenRows, bounds: Ints) -> RunPieces:
    """:func:`cut` of what has a row for each that was ``given``; cells are of the runs between ``bounds``."""
    data, size = _bytes_of_rows(values)
    return RunPieces(data, given.first * size, given.lengths * size, bounds)


def _bytes_of_rows(values: npt.NDArray[Any]) -> tuple[BytesLike, int]:
    """The rows of an array, one after the other, and how many bytes each has."""
    size = values.dtype.itemsize * prod(values.shape[1:])
    return np.ascontiguousarray(values).reshape(-1).view(np.uint8).data, size


def _cells(path: str, grid: Grid, chunks: Ints, cells: Pieces | RunPieces, about: Mapping[str, Any]) -> Node:
    if isinstance(cells, Pieces) and not cells.filled.all():
        filled = cells.filled
        chunks, cells = chunks[filled], cells.take(filled)
    metadata = cells_metadata(grid.shape, grid.layout, cell_attributes(chunks, grid.origin, about))
    return Node(path, metadata, chunks, cells)


def _blob_table(
    count: int,
    layout: Layout,
    attributes: Mapping[str, Any] | None = None,
    fill_value: bytes | None = None,
    *,
    period: int | None = None,
) -> ArrayMetadata:
    chunks, about = (rows_of_a_chunk(count, MANIFESTS_AT_ONCE),), attributes or {}
    checksum = layout.has_checksum
    return table_metadata(
        (count,), "variable_length_bytes", chunks, about, fill_value, checksum=checksum, period=period
    )


def as_objects(blobs: Sequence[bytes]) -> npt.NDArray[Any]:
    """Pieces of bytes as an array of objects."""
    values = np.empty(len(blobs), object)
    values[:] = blobs
    return values
