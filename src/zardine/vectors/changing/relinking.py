"""Links that follow their vertices: where rows of some cells get other numbers, or other cells, or go."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from zardine.buffers import Ints
from zardine.errors import DataError
from zardine.metadata.documents import ArrayMetadata, GroupMetadata
from zardine.vectors.changing.patching import Patch, UnfitError, counted, existing, grid_for_patch, put_node
from zardine.vectors.content.columns import Column, join_columns
from zardine.vectors.content.content import Content, Links
from zardine.vectors.content.link_placement import PlacedLinks, place_links
from zardine.vectors.content.plan import Node, column_attributes, cut, plan_links
from zardine.vectors.format.fragment_index import encode_indexes
from zardine.vectors.format.links import encode_links, parse_segment, segment_of
from zardine.vectors.format.ragged import find_rows, starts_of, unique_rows
from zardine.vectors.reading.loading import read_column
from zardine.vectors.reading.loading_links import NearLinks, links_near


@dataclass(frozen=True, slots=True, eq=False)
class MovedRows:
    """Where the rows of some cells are to be."""

    old: Content
    """The cells as they are; of these, keys and starts of rows count."""
    new: Content
    """The cells as they are to be."""
    rows: Ints
    """For each row of ``old`` the one of ``new``, or -1 for those that go."""


def relink(patch: Patch, moved: MovedRows, more: Links | None) -> None:
    """Let the links of the level follow the rows that moved, and add ``more`` between rows of what is to be.

    Links to rows that go go, too. Raises :class:`UnfitError` for links that cannot be told apart by their cells.
    """
    level, new = patch.level, moved.new
    family = level.node("links/0")
    wanted = 0 if more is None else len(more.endpoints)
    if family is None:
        if wanted:
            raise UnfitError("links")
        return
    if not isinstance(family, GroupMetadata) or family.attributes.get("store", "canonical") != "canonical":
        raise UnfitError("links")
    near = links_near(level, np.concatenate([moved.old.keys, new.keys]))
    if more is not None and wanted and more.endpoints.shape[1] != near.rows.shape[1]:
        raise UnfitError("links")
    chunks, rows, kept, altered = _followed(near, moved)
    columns = {name: column.take(kept) for name, column in near.columns.items()}
    if more is not None and wanted:
        cell = new.cell_of_rows()[more.endpoints]
        chunks = np.concatenate([chunks, new.keys[cell]])
        rows = np.concatenate([rows, more.endpoints - new.row_starts[cell]])
        if set(more.attributes) - set(columns):
            raise UnfitError("new attributes")
        given = {name: each.decoded() for name, each in more.attributes.items()}
        columns = {name: join_columns(name, each, given.get(name), wanted) for name, each in columns.items()}
    dirty = np.concatenate([altered[kept], np.ones(len(rows) - len(kept), np.bool_)])
    directed = bool(family.attributes.get("directed"))
    placed = list(place_links(chunks, rows, canonical=not directed))
    _put_placed(patch, near, placed, columns, altered, dirty, directed)
    _put_counts(patch, family, len(rows) - len(near.rows), list(near.columns))


def _followed(near: NearLinks, moved: MovedRows) -> tuple[Ints, Ints, Ints, npt.NDArray[np.bool_]]:
    """Chunks and rows of the ends of links that stay, which these are, and of all links which are not as before."""
    old, new = moved.old, moved.new
    count, width, rank = near.chunks.shape
    cell = find_rows(old.keys, near.chunks.reshape(-1, rank)).reshape(count, width)
    ours = cell >= 0
    sizes = np.append(np.diff(old.row_starts), 0)
    if (near.rows < 0).any() or (ours & (near.rows >= sizes[cell])).any():
        raise UnfitError("links")  # who reads all says what is wrong
    number = np.append(old.row_starts, 0)[cell] + near.rows
    to = np.append(moved.rows, -1)[np.where(ours, number, -1)]
    home = np.append(new.cell_of_rows(), -1)[to]
    at = to - np.append(new.row_starts, 0)[home]
    whole = ~(ours & (to < 0)).any(axis=1)
    chunks, rows = near.chunks.copy(), near.rows.copy()
    stays = ours & (to >= 0)
    chunks[stays], rows[stays] = new.keys[home[stays]], at[stays]
    altered = ~whole | (rows != near.rows).any(axis=1) | (chunks != near.chunks).any(axis=(1, 2))
    kept = np.flatnonzero(whole)
    return chunks[kept], rows[kept], kept, altered


def _put_placed(
    patch: Patch,
    near: NearLinks,
    placed: Sequence[PlacedLinks],
    columns: Mapping[str, Column],
    altered: npt.NDArray[np.bool_],
    dirty: npt.NDArray[np.bool_],
    directed: bool,
) -> None:
    """Store the cells of links in which one is not as it was, or was and is no more."""
    level = patch.level
    names = level.names("links/0")
    fresh = [each for each in placed if segment_of(each.offsets) not in names]
    by_segment = {segment_of(each.offsets): each for each in placed}
    for number, segment in enumerate(names):
        left = unique_rows(near.filed[(near.segment == number) & altered])[0]
        each = by_segment.get(segment)
        if each is not None:
            left = unique_rows(np.concatenate([left, each.chunks[dirty[each.given]]]))[0]
        if len(left):
            _put_cells_of(patch, segment, left, each, columns)
    if not fresh:
        return
    nothing = np.zeros((sum(len(each.given) for each in placed), near.rows.shape[1]), np.int64)
    for node in plan_links(0, Links(nothing, columns, directed), patch.content, grid_for_patch(patch), placed=fresh):
        if isinstance(node.metadata, ArrayMetadata):
            if node.path == "link_fragments" and level.node("link_fragments") is not None:
                raise UnfitError("link_fragments")
            patch.nodes.append(node)


def _put_cells_of(
    patch: Patch, segment: str, chunks: Ints, placed: PlacedLinks | None, columns: Mapping[str, Column]
) -> None:
    """Let the cells of ``chunks`` of one array of links hold those of ``placed`` that are filed there."""
    path = f"links/0/{segment}"
    array = existing(patch, path)
    plain = not any(map(any, parse_segment(segment, patch.level.rank)))
    given = np.zeros(0, np.int64)
    cell, rows = given, np.zeros((0, 1), np.int64)
    if placed is not None:
        where = find_rows(chunks, placed.chunks)
        some = where >= 0
        cell, rows, given = where[some], placed.rows[some], placed.given[some]
        if bool(array.attributes.get("has_perm", placed.has_order)) != placed.has_order:
            raise UnfitError(path)
    if array.attributes.get("dtype", "int64") != "int64":
        raise UnfitError(path)
    counts = np.bincount(cell, minlength=len(chunks))
    starts = starts_of(counts)
    table = rows.astype("<i8")
    cells = [encode_links(table[a:b], grouped=not plain) if b > a else b"" for a, b in pairwise(starts.tolist())]
    put_node(patch, Node(path, array.array.metadata, chunks, cells), array)
    if plain:
        index = existing(patch, "link_fragments")
        local = np.arange(int(starts[-1])) - np.repeat(starts[:-1], counts)
        blobs = encode_indexes(np.arange(len(chunks) + 1), counts, local)
        cells = [blob if count else b"" for blob, count in zip(blobs, counts.tolist(), strict=True)]
        put_node(patch, Node("link_fragments", index.array.metadata, chunks, cells), index)
    for name, column in columns.items():
        _put_values(patch, name, segment, chunks, starts, column.take(given))


def _put_values(patch: Patch, name: str, segment: str, chunks: Ints, starts: Ints, column: Column) -> None:
    """Let the values of links in some cells be those of ``column``, as their array has them."""
    path = f"link_attributes/{name}/0/{segment}"
    array = existing(patch, path)
    none = np.zeros(0, np.int64)
    stored = read_column(array, np.zeros((0, patch.level.rank), np.int64), none, none)
    try:
        joined = join_columns(name, stored, column.decoded(), len(column.values))
    except DataError:
        raise UnfitError(path) from None
    metadata = array.array.metadata
    about = {**metadata.attributes, **column_attributes(name, joined)}
    node = Node(path, metadata.with_attributes(about), chunks, cut(joined.values, starts))
    put_node(patch, node, array)


def _put_counts(patch: Patch, family: GroupMetadata, more: int, names: Sequence[str]) -> None:
    if not more:
        return
    patch.documents["links/0"] = counted(family, more, "num_links", "num_physical_records")
    for name in names:
        about = patch.level.node(f"link_attributes/{name}/0")
        if isinstance(about, GroupMetadata):
            patch.documents[f"link_attributes/{name}/0"] = counted(about, more, "num_links")
