"""Making anew of a level above another one only what was changed of this: the blocks with cells that are touched.

A block (:class:`~zardine.vectors.content.coarsening.Nesting`) is made as it is made with all others. Objects that lead
through one get those parts of their paths anew; the others are those of the coarser level as it is.

Three transactions, in this order: links from the finer level to what is changed above it go; the coarser level changes,
and is newer than what is above it; links come, and the finer level is no longer newer. Who is killed leaves a finer
level that is still newer, of which the next one makes the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from zardine.buffers import Ints
from zardine.errors import DataError, MetadataError
from zardine.vectors.changing.levels import change_cells, open_to_update, store_patch
from zardine.vectors.changing.links_between import nesting_of, put_links_between
from zardine.vectors.changing.patching import (
    Patch,
    UnfitError,
    blobs_of,
    grid_for_patch,
    object_index,
    put_cells,
    put_index,
    put_rows,
    put_table,
    table_of,
)
from zardine.vectors.content.coarsening import Nesting, coarsened
from zardine.vectors.content.columns import Column, column_of
from zardine.vectors.content.content import Content, Links
from zardine.vectors.content.link_placement import anchors_for, place_links
from zardine.vectors.content.plan import (
    MANIFESTS_AT_ONCE,
    ROWS_AT_ONCE,
    Grid,
    Node,
    plan_groups,
    plan_links,
    plan_objects,
)
from zardine.vectors.format.manifests import encode_manifests, manifest_pieces
from zardine.vectors.format.ragged import find_rows, ranges, row_numbers, starts_of, take_rows, unique_rows
from zardine.vectors.reading.loading import load_cells
from zardine.vectors.reading.loading_objects import (
    load_groups,
    load_manifests,
    load_object_tables,
    with_objects,
)
from zardine.vectors.reading.manifests import Manifests, places_among
from zardine.vectors.reading.presence import present_chunks
from zardine.vectors.storing.cells import CellArray
from zardine.vectors.storing.store import Level, VectorStore
from zardine.vectors.storing.touched import MADE, NEWER, Touched, touched_in, without_age

_MOST_ROWS = 2**22
"""Vertices that are made anew together, about; where more are touched, the level is made anew."""

_FEW = 64
"""Cells, of which most may be touched."""


def update_level(
    owner: VectorStore,
    number: int,
    bin_shape: npt.NDArray[np.float64],
    made: Mapping[str, Any],
    known: dict[int, Manifests],
) -> bool:
    """Let a level be what is made of the one below, whose bins there are of ``bin_shape``; gives whether it is.

    ``made``: the options of the pyramid, as both levels tell them, but how many vertices there were. Where it is not,
    nothing has changed but links between the two, and the level is to be made anew. ``known``: the objects of levels
    that were changed so before, by number, to which this one comes, while nobody else can change them.
    """
    fine = open_to_update(owner, number - 1)
    touched = touched_in(fine.document.attributes, fine.rank, fine.document.vertex_count)
    if touched is None or fine.rank != owner.root.ndim:
        return False
    try:
        coarse = open_to_update(owner, number)
        if NEWER not in fine.document.attributes:
            told = coarse.document.attributes.get(MADE)
            return isinstance(told, Mapping) and told.get("of") == fine.document.vertex_count
        _Update(fine, coarse, touched, bin_shape, linked=bool(made["cross_level_links"])).carry_out(made, known)
    except (UnfitError, DataError, MetadataError):  # what is damaged below is told by who makes all anew
        return False
    return True


@dataclass(frozen=True, slots=True, eq=False)
class _Blocks:
    """What there is of the finer level in the blocks that are touched, and what is made of it."""

    fine: Content
    coarse: Content
    parent: Ints
    """For each row of ``fine`` the one of ``coarse``, or -1."""
    blocks: Ints
    chunks: Ints
    """Of the finer level, that hold vertices or held some."""


class _Update:
    """One level, to be made anew where the finer one was touched."""

    def __init__(
        self, fine: Level, coarse: Level, touched: Touched, bin_shape: npt.NDArray[np.float64], *, linked: bool
    ) -> None:
        self._fine, self._coarse, self._touched = fine, coarse, touched
        self._bin_shape, self._linked = bin_shape, linked
        self._nesting: Nesting = nesting_of(fine, coarse)
        if self._nesting.step is None:
            raise UnfitError("blocks are larger than space")

    def carry_out(self, made: Mapping[str, Any], known: dict[int, Manifests]) -> None:
        """Make the cells, and let them take their places. Raises :class:`UnfitError`."""
        manifests = known.get(self._fine.document.level)
        manifests = load_manifests(self._fine) if manifests is None else manifests
        old, after = load_manifests(self._coarse), None
        if (manifests is None) != (old is None):
            raise UnfitError("objects")
        found = self._made(manifests)
        patch = self._patch(found)
        if manifests is not None and old is not None:
            after = self._put_objects(patch, found, manifests, old)
        elif self._touched.tables:
            self._put_groups(patch)
        linked = self._linked and len(found.chunks) > 0
        links = self._links(found, grid_for_patch(patch)) if linked else ([], [])
        if linked:
            put_links_between(patch, self._nesting, -1, found.chunks, links[1])
            self._unlink(found)
        newer: Any = "vertices" if len(self._touched.chunks) else "values"
        block = {} if manifests is None else {"inherited_num_objects": len(manifests.ids)}
        attributes = {MADE: {**made, "of": self._fine.document.vertex_count}}
        more: Any = {"tables": self._touched.tables, "block": block, "attributes": attributes}
        change_cells(self._coarse, patch, newer=newer, **more)
        if after is not None and self._coarse.owner.store.lock_is_exclusive:
            known[self._coarse.document.level] = after
        fine = open_to_update(self._fine.owner, self._fine.document.level)
        last = Patch(fine, found.fine, 0)
        if linked:
            put_links_between(last, self._nesting, 1, found.chunks, links[0])
        store_patch(last, without_age(fine.document.attributes))

    def _made(self, manifests: Manifests | None) -> _Blocks:
        fine, nesting = self._fine, self._nesting
        vertices, index = _cells(fine, "vertices"), fine.cells("vertex_fragments")
        keys = present_chunks(vertices, index)
        blocks = unique_rows(nesting.blocks_of(self._touched.chunks))[0]
        mine = keys[find_rows(blocks, nesting.blocks_of(keys)) >= 0]
        if len(mine) > _FEW and len(mine) * 2 > len(keys):
            raise UnfitError("most cells are touched")
        if len(mine) * fine.document.vertex_count > _MOST_ROWS * len(keys):
            raise UnfitError("many vertices are touched")
        content = load_cells(fine, mine, fragments=manifests is not None or not fine.document.tiles, vertices=vertices)
        kept = content.visible()
        if manifests is not None:
            content = with_objects(fine, content, manifests, asked=mine)
            kept &= content.rows_in(np.arange(len(manifests.ids)))
        shape = np.asarray(self._coarse.document.chunk_shape)
        coarse, parent = coarsened(content, kept, self._bin_shape, shape, nesting)
        chunks = unique_rows(np.concatenate([mine, self._touched.chunks]))[0]
        return _Blocks(content, coarse, parent, blocks, chunks)

    def _patch(self, found: _Blocks) -> Patch:
        vertices = _cells(self._coarse, "vertices")
        listed = vertices.listed()
        if listed is None:
            raise UnfitError("nonempty_chunks")
        old = unique_rows(listed[find_rows(found.blocks, self._nesting.blocks_of_coarse(listed)) >= 0])[0]
        size = self._coarse.owner.root.ndim * found.coarse.positions.dtype.itemsize
        before = sum(map(len, vertices.read(old))) // size
        patch = Patch(self._coarse, found.coarse, len(found.coarse.positions) - before)
        put_cells(patch, old[find_rows(found.coarse.keys, old) < 0])
        return patch

    # links

    def _unlink(self, found: _Blocks) -> None:
        patch = Patch(self._fine, found.fine, 0)
        put_links_between(patch, self._nesting, 1, found.chunks)
        if patch.cells:
            store_patch(patch, self._fine.document.attributes)

    def _links(self, found: _Blocks, grid: Grid) -> tuple[list[Node], list[Node]]:
        """The links from the finer level to the coarser, and back; ``grid``: of the coarser as it is to be."""
        own = _grid(_cells(self._fine, "vertices"))
        return (
            links_to_parents(found.fine, found.coarse, found.parent, self._nesting, own, 1),
            links_to_parents(found.fine, found.coarse, found.parent, self._nesting, grid, -1),
        )

    # objects

    def _put_objects(self, patch: Patch, found: _Blocks, new: Manifests, old: Manifests) -> Manifests:
        """Let the objects be what they are to be: rows of those whose paths change. Gives them as they are then."""
        fine, coarse, count = self._fine, self._coarse, len(old.ids)
        paths = _Paths(found, self._nesting, new, old)
        goes_on = old.rows is None and not self._touched.tables and np.array_equal(new.ids[:count], old.ids)
        names = fine.names("object_attributes")
        if not goes_on or names != coarse.names("object_attributes"):
            after = paths.all(*paths.changed())
            starts, chunks, fragments = after.starts, after.chunks, after.fragments
            blobs = manifest_pieces(starts, chunks, fragments)
            size = int(blobs.lengths.sum())
            present = int((np.diff(starts) > 0).sum())
            layout = _cells(coarse, "vertices").layout
            columns = load_object_tables(fine, new)
            patch.nodes += plan_objects(new.ids, columns, blobs, size, present, coarse.rank, layout, sole=False)
            self._put_groups(patch)
            return after
        rows, starts, chunks, fragments = paths.changed()
        about = object_index(coarse)
        before = np.diff(old.starts)[rows[rows < count]] > 0
        present = int((np.diff(starts) > 0).sum()) - int(before.sum())
        manifests = table_of(coarse, "object_index/manifests", count)
        values = blobs_of(encode_manifests(starts, chunks, fragments))
        put_rows(patch, manifests, "object_index/manifests", rows, values, MANIFESTS_AT_ONCE)
        fresh = np.arange(count, len(new.ids))
        identifiers = table_of(coarse, "object_index/object_ids", count)
        put_rows(patch, identifiers, "object_index/object_ids", fresh, new.ids[fresh], ROWS_AT_ONCE)
        for name in names if len(fresh) else ():
            in_tables = fresh if new.rows is None else new.rows[fresh]
            put_table(patch, f"object_attributes/{name}", count, fresh, _some_of(fine, name, in_tables))
        ascend = bool((np.diff(new.ids) > 0).all())
        more = {"num_objects": len(new.ids), "object_ids_sorted": ascend}
        put_index(patch, about, present, False, more)
        return paths.all(rows, starts, chunks, fragments)

    def _put_groups(self, patch: Patch) -> None:
        groups = load_groups(self._fine)
        if (groups is None) != (self._coarse.node("groups") is None):
            raise UnfitError("groups")
        if groups is not None:
            if set(groups.attributes) != set(self._coarse.names("group_attributes")):
                raise UnfitError("group_attributes")
            patch.nodes += plan_groups(groups, _cells(self._coarse, "vertices").layout)


class _Paths:
    """The objects of a level as paths through the vertices of the coarser one."""

    def __init__(self, found: _Blocks, nesting: Nesting, new: Manifests, old: Manifests) -> None:
        self._found, self._new, self._old = found, new, old
        self._block, self._old_block = nesting.blocks_of(new.chunks), nesting.blocks_of_coarse(old.chunks)
        self._is_touched = _are_among(found.blocks, self._block)
        self._was_touched = _are_among(found.blocks, self._old_block)
        self._place = places_among(old.ids, new.ids)
        """Of each object its row among the old ones, or -1."""

    def _rows(self) -> Ints:
        """The objects that lead, or led, through what is touched, or are new; ascending."""
        touched = np.zeros(len(self._new.ids), np.bool_)
        touched[row_numbers(np.diff(self._new.starts))[self._is_touched]] = True
        was = np.zeros(len(self._old.ids) + 1, np.bool_)
        was[row_numbers(np.diff(self._old.starts))[self._was_touched]] = True
        return np.flatnonzero(touched | was[self._place] | (self._place < 0))

    def all(self, rows: Ints, starts: Ints, chunks: Ints, fragments: Ints) -> Manifests:
        """All objects, those that are :meth:`changed` among them."""
        old, count = self._old, len(self._old.ids)
        are_last = np.array_equal(rows, np.arange(count, count + len(rows)))
        if are_last and np.array_equal(self._place, np.append(np.arange(count), np.full(len(rows), -1))):
            both = np.concatenate([old.chunks, chunks]), np.concatenate([old.fragments, fragments])
            return Manifests(self._new.ids, np.concatenate([old.starts[:-1], old.starts[-1] + starts]), *both)
        same = np.setdiff1d(np.arange(len(self._new.ids)), rows)
        kept = self._old.take(self._place[same])
        counts = np.zeros(len(self._new.ids), np.int64)
        counts[rows], counts[same] = np.diff(starts), np.diff(kept.starts)
        owner = np.concatenate([rows[row_numbers(np.diff(starts))], same[row_numbers(np.diff(kept.starts))]])
        order = np.argsort(owner, kind="stable")
        both = np.concatenate([chunks, kept.chunks])[order], np.concatenate([fragments, kept.fragments])[order]
        return Manifests(self._new.ids, starts_of(counts), *both)

    def changed(self) -> tuple[Ints, Ints, Ints, Ints]:
        """The objects that are new, or whose paths are others: their rows, and starts, chunks and fragments of these.

        Raises :class:`UnfitError` where what lies outside of the touched blocks is not as it was.
        """
        rows, old = self._rows(), self._old
        _, entries = take_rows(self._new.starts, rows)
        owner = row_numbers(np.diff(self._new.starts)[rows])
        had = np.flatnonzero(self._place[rows] >= 0)
        _, before = take_rows(old.starts, self._place[rows[had]])
        old_owner = had[row_numbers(np.diff(old.starts)[self._place[rows[had]]])]
        block = unique_rows(np.concatenate([self._block[entries], self._old_block[before]]))[1]
        block, old_block = block[: len(entries)], block[len(entries) :]
        runs, old_runs = _runs(owner, block), _runs(old_owner, old_block)
        inside, was_inside = self._is_touched[entries][runs[:-1]], self._was_touched[before][old_runs[:-1]]
        mine, theirs = runs[:-1][~inside], old_runs[:-1][~was_inside]
        same = np.array_equal(owner[mine], old_owner[theirs])
        if not same or not np.array_equal(block[mine], old_block[theirs]):
            raise UnfitError("paths outside of what is touched are others")
        firsts, lengths, chunks, fragments = self._inside(entries, owner, runs, inside)
        at = np.zeros(len(inside), np.int64)
        size = np.zeros(len(inside), np.int64)
        at[inside], size[inside] = firsts, lengths
        at[~inside], size[~inside] = len(chunks) + theirs, np.diff(old_runs)[~was_inside]
        places = ranges(at, size)
        all_chunks = np.concatenate([chunks, old.chunks[before]])[places]
        all_fragments = np.concatenate([fragments, old.fragments[before]])[places]
        counts = np.bincount(np.repeat(owner[runs[:-1]], size), minlength=len(rows))
        other = ~self._as_before(rows, starts_of(counts), all_chunks, all_fragments)
        starts, entries = take_rows(starts_of(counts), np.flatnonzero(other))
        return rows[other], starts, all_chunks[entries], all_fragments[entries]

    def _as_before(self, rows: Ints, starts: Ints, chunks: Ints, fragments: Ints) -> npt.NDArray[np.bool_]:
        """Which of some objects, by their rows, have the paths that they had."""
        old, place = self._old, self._place[rows]
        found: npt.NDArray[np.bool_] = place >= 0
        found[found] = np.diff(starts)[found] == np.diff(old.starts)[place[found]]
        number = np.flatnonzero(found)
        of_each, new = take_rows(starts, number)
        was = take_rows(old.starts, place[number])[1]
        differ = (fragments[new] != old.fragments[was]) | (chunks[new] != old.chunks[was]).any(axis=1)
        found[number[row_numbers(np.diff(of_each))[differ]]] = False
        return found

    def _inside(
        self, entries: Ints, owner: Ints, runs: Ints, inside: npt.NDArray[np.bool_]
    ) -> tuple[Ints, Ints, Ints, Ints]:
        """The paths within touched blocks, run after run: where each starts, its length, and chunks and fragments."""
        fine, coarse = self._found.fine, self._found.coarse
        run = row_numbers(np.diff(runs))
        mine = np.flatnonzero(inside[run])
        cell = find_rows(fine.keys, self._new.chunks[entries[mine]])
        number = np.where(cell >= 0, fine.fragments.before[cell] + self._new.fragments[entries[mine]], -1)
        if (number < 0).any():
            raise UnfitError("fragments are lost")
        starts, places = take_rows(fine.fragments.starts, number)
        path = self._found.parent[fine.fragments.rows[places]]
        of_run = np.repeat(run[mine], np.diff(starts))
        new = np.ones(len(path), np.bool_)
        new[1:] = (path[1:] != path[:-1]) | (of_run[1:] != of_run[:-1])
        path, of_run = path[new], of_run[new]
        lengths = np.bincount(of_run, minlength=len(inside))[inside]
        at = coarse.cell_of_rows()[path]
        return starts_of(lengths)[:-1], lengths, coarse.keys[at], path - coarse.row_starts[at]


def _are_among(blocks: Ints, places: Ints) -> npt.NDArray[np.bool_]:
    """Which of many places are in one of a few blocks."""
    found = np.zeros(len(places), np.bool_)
    if len(blocks):
        near = np.flatnonzero(((places >= blocks.min(axis=0)) & (places <= blocks.max(axis=0))).all(axis=1))
        found[near] = find_rows(blocks, places[near]) >= 0
    return found


def _runs(owner: Ints, block: Ints) -> Ints:
    """Where runs of one owner and block start among entries, and at the end how many these are."""
    new = np.ones(len(owner), np.bool_)
    new[1:] = (owner[1:] != owner[:-1]) | (block[1:] != block[:-1])
    return np.append(np.flatnonzero(new), len(owner))


def links_to_parents(
    fine: Content, coarse: Content, parent: Ints, nesting: Nesting, grid: Grid, delta: int
) -> list[Node]:
    """Plan links from each vertex to its ``parent``, which stands for it, or back; ``grid``: where they are filed."""
    rows = np.flatnonzero(parent >= 0)
    up = np.stack([rows, parent[rows]], axis=1)
    first, second, ends = (fine, coarse, up) if delta > 0 else (coarse, fine, up[:, ::-1])
    a, b = first.cell_of_rows()[ends[:, 0]], second.cell_of_rows()[ends[:, 1]]
    chunks = np.stack([first.keys[a], second.keys[b]], axis=1)
    local = np.stack([ends[:, 0] - first.row_starts[a], ends[:, 1] - second.row_starts[b]], axis=1)
    ratios = (nesting.own, nesting.its)
    placed = list(place_links(chunks, local, canonical=False, anchors=anchors_for(first.keys[a], *ratios[::delta])))
    return list(plan_links(delta, Links(ends, {}, True), first, grid, placed=placed))


def _cells(level: Level, name: str) -> CellArray:
    found = level.cells(name)
    if found is None:
        raise UnfitError(name)
    return found


def _grid(vertices: CellArray) -> Grid:
    return Grid(vertices.origin, vertices.array.shape, vertices.layout_for(vertices.array.shape))


def _some_of(level: Level, name: str, rows: Ints) -> Column:
    """An attribute of some objects, by their rows in the table."""
    table = level.table(f"object_attributes/{name}")
    if table is None:
        raise UnfitError(name)
    values = np.asarray(table.get_orthogonal_selection((rows,)))
    if values.dtype.kind in "TOUS":
        return column_of(name, np.asarray(values, object), len(values), "objects")
    return Column(values)


__all__ = ["links_to_parents", "update_level"]
