"""Removing vertices by the cells that they are in: these, the links that end there, and rows of the tables of objects.

Fragments keep their numbers, also those left with nothing, and objects their rows: nobody else is changed. Lines and
skeletons of which a part goes are taken out whole, and what is left of them is added.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from zardine.buffers import Ints
from zardine.errors import SelectionError
from zardine.vectors.changing.asking_ahead import ask_for_chunks
from zardine.vectors.changing.levels import kind_of
from zardine.vectors.changing.patching import (
    Patch,
    UnfitError,
    blobs_of,
    object_index,
    put_cells,
    put_index,
    put_rows,
    put_table,
    table_of,
    touched_cells,
)
from zardine.vectors.changing.relinking import MovedRows, relink
from zardine.vectors.content.changes import LINES, changed_vertices, merge, plain_points, take_cells, thin_out
from zardine.vectors.content.content import Content
from zardine.vectors.content.plan import MANIFESTS_AT_ONCE
from zardine.vectors.format.manifests import encode_manifests
from zardine.vectors.format.ragged import find_rows, row_numbers, starts_of, take_rows, unique_rows
from zardine.vectors.format.removed_objects import MOST_RUNS, REMOVED, are_sole, runs_of
from zardine.vectors.reading.answer import chunks_for, matching_rows, wanted_objects, with_objects_named
from zardine.vectors.reading.loading import load_cells
from zardine.vectors.reading.loading_links import load_links
from zardine.vectors.reading.loading_objects import (
    KnownIds,
    known_ids,
    load_groups,
    load_manifests,
    manifests_of,
    with_objects,
)
from zardine.vectors.reading.manifests import Manifests
from zardine.vectors.reading.missing import no_attribute
from zardine.vectors.reading.presence import same_list
from zardine.vectors.reading.query import ALL, Query
from zardine.vectors.storing.store import Level

_SPARE = 2**10
"""Rows of removed objects that the tables may have in any case, and beside these as many as of others."""


@dataclass(frozen=True, slots=True, eq=False)
class Members:
    """The objects that a change may be about."""

    known: KnownIds
    manifests: Manifests
    rows: Ints
    """Of each the row in the tables."""
    are_all: bool


def removal(level: Level, query: Query) -> tuple[Patch | None, int]:
    """What removing the vertices comes to that ``query`` asks for, and how many there are; ``None`` where none is.

    Raises :class:`UnfitError`, and :class:`~zardine.errors.SelectionError` as readers do.
    """
    kind, query = kind_of(level), with_objects_named(level, query)
    members, wanted = _members(level, query)
    content, gone = _found(level, query, members, wanted)
    count = int(gone.sum())
    if not count:
        return None, 0
    if members is None:
        return without_points(level, content, content.positions, gone), count
    new = None
    kept = content.visible() & ~gone
    if kind in (*LINES, "skeleton") and (members.are_all or query.bbox is not None or query.where):
        objects = content.objects_with(np.flatnonzero(gone))
        content = whole_objects(level, members, objects)
        among = None if wanted is None else np.flatnonzero(np.isin(objects, wanted))
        gone = np.zeros(len(content.positions), np.bool_)
        gone[matching_rows(level, content, query, among)] = True
        new, kept = remade(level, content, content.positions, gone)
    return changed_cells(level, members, replace(content, objects=None, links={}), kept, new), count


def _members(level: Level, query: Query) -> tuple[Members | None, Ints | None]:
    """The objects of the level, or only those asked for by id; and which of these are asked for (``None``: all)."""
    known = known_ids(level)
    if known is None:
        return None, wanted_objects(level, None, query)
    if query.object_ids is not None and query.group_ids is None:
        ids = np.unique(np.asarray(query.object_ids, np.int64))
        some = members_of(level, known, ids)
        if some is not None:
            return some, np.arange(len(ids))
    members = all_members(level, known)
    return members, wanted_objects(level, members.manifests, query)


def members_of(level: Level, known: KnownIds, ids: Ints) -> Members | None:
    """Some objects; ``None`` where others may be part of the same fragments, so that all are to be looked at.

    Raises :class:`~zardine.errors.SelectionError` for unknown ids.
    """
    rows = known.rows_of(ids)
    if (rows < 0).any():
        raise SelectionError(f"there is no object with the id {int(ids[rows < 0][0])}")
    if not are_sole(level.attributes("object_index") or {}):
        return None
    manifests = manifests_of(level, ids, rows)
    return None if manifests is None else Members(known, manifests, rows, False)


def all_members(level: Level, known: KnownIds) -> Members:
    """All objects."""
    manifests = load_manifests(level)
    assert manifests is not None
    rows = np.arange(len(manifests.ids)) if manifests.rows is None else manifests.rows
    return Members(known, manifests, rows, True)


def _found(
    level: Level, query: Query, members: Members | None, wanted: Ints | None
) -> tuple[Content, npt.NDArray[np.bool_]]:
    """The cells that hold vertices which are asked for, with these objects, and which of their rows these are."""
    vertices, index = level.cells("vertices"), level.cells("vertex_fragments")
    if vertices is None or index is None or not same_list(vertices, index):
        raise UnfitError("nonempty_chunks")
    for name in query.where or {}:
        if name not in level.names("vertex_attributes"):
            raise no_attribute(level, name)
    manifests = None if members is None else members.manifests
    chosen = None if manifests is None or wanted is None else manifests.take(wanted)
    chunks = chunks_for(level, query, chosen, vertices)
    if chunks is None:  # all are looked at, and only what is touched is held
        light = load_cells(level, vertex_attributes=list(query.where or {}), vertices=vertices)
        light = with_objects(level, light, manifests)
        rows = matching_rows(level, light, query, wanted)
        cells = np.unique(light.cell_of_rows()[rows])
        content = touched_cells(level, light.keys[cells])
        gone = np.isin(take_rows(light.row_starts, cells)[1], rows)
    else:
        ask_for_chunks(level, chunks)
        content = load_cells(level, chunks, vertex_attributes=ALL, fragment_attributes=ALL, vertices=vertices)
        found = with_objects(level, content, manifests, asked=chunks)
        rows = matching_rows(level, found, query, wanted)
        cells = np.unique(content.cell_of_rows()[rows])
        content = take_cells(content, cells)
        gone = np.isin(take_rows(found.row_starts, cells)[1], rows)
    return with_objects(level, content, manifests, asked=content.keys), gone


def whole_objects(level: Level, members: Members, objects: Ints, more: Ints | None = None) -> Content:
    """All cells of some of the objects, with these and the links within them; and the cells of ``more`` chunks."""
    manifests = members.manifests.take(objects)
    chunks = unique_rows(manifests.chunks if more is None else np.concatenate([manifests.chunks, more]))[0]
    ask_for_chunks(level, chunks)
    content = with_objects(level, touched_cells(level, chunks), manifests, asked=chunks)
    links = load_links(level, content)
    return replace(content, links={} if links is None else {0: links})


def without_points(level: Level, content: Content, positions: npt.NDArray[Any], gone: npt.NDArray[np.bool_]) -> Patch:
    """What it comes to that cells of points without objects hold others, at other ``positions``; not those ``gone``."""
    if level.names("fragment_attributes") or level.node("links/0") is not None:
        raise UnfitError("links")
    shapes = level.document.chunk_shape, level.owner.root.bin_shape
    left = plain_points(positions, content.vertex_attributes, content.visible() & ~gone, *shapes)
    patch = Patch(level, left, len(left.positions) - len(content.positions))
    put_cells(patch, content.keys[find_rows(left.keys, content.keys) < 0])
    return patch


def remade(
    level: Level, content: Content, positions: npt.NDArray[Any], gone: npt.NDArray[np.bool_]
) -> tuple[Content | None, npt.NDArray[np.bool_]]:
    """What is left of lines or skeletons that lose vertices or have them elsewhere, and the rows of other objects.

    ``content`` has all cells of all its objects.
    """
    assert content.objects is not None
    kept = content.visible() & ~gone
    cut = (gone | (positions != content.positions).any(axis=1)) & content.rows_in(np.arange(len(content.objects.ids)))
    starts, rows = content.rows_of_objects()
    left = np.bincount(row_numbers(np.diff(starts))[~gone[rows]], minlength=len(content.objects.ids))
    objects = content.objects_with(np.flatnonzero(cut))
    again = objects[left[objects] > 0]
    taken = content.rows_in(again)
    if not len(again):
        return None, kept
    if level.names("fragment_attributes") or not are_sole(level.attributes("object_index") or {}):
        raise UnfitError("fragments may be parts of other lines, or have attributes")
    some = replace(content, objects=content.objects.take(again))
    shapes = level.document.chunk_shape, level.owner.root.bin_shape
    new = changed_vertices(some, kind_of(level), positions, ~gone & taken, *shapes)
    return new, kept & ~taken


def changed_cells(
    level: Level,
    members: Members,
    content: Content,
    kept: npt.NDArray[np.bool_],
    new: Content | None,
    became: Ints | None = None,
) -> Patch:
    """What it comes to that cells lose the rows that are not ``kept``, and ``new`` is added.

    ``new`` has no objects but those of ``members``; ``became``: for each row of ``content`` the one of ``new`` that it
    is, or -1; links follow.
    """
    thin = thin_out(content, kept)
    joined = thin if new is None else merge(thin, replace(new, links={}, objects=None, groups=None))
    patch = Patch(level, joined, len(joined.positions) - len(content.positions))
    put_cells(patch, content.keys[find_rows(joined.keys, content.keys) < 0])
    of_thin = _rows_in(joined, thin, np.zeros(len(thin.keys), np.int64))
    to = np.full(len(content.positions), -1, np.int64)
    to[kept] = of_thin
    parts_before = np.zeros(len(joined.keys), np.int64)
    parts_before[find_rows(joined.keys, thin.keys)] = np.diff(thin.fragments.before)
    more = None
    if new is not None:
        rows_before = np.append(np.diff(thin.row_starts), 0)[find_rows(thin.keys, new.keys)]
        of_new = _rows_in(joined, new, rows_before)
        if became is not None:
            to[became >= 0] = of_new[became[became >= 0]]
        links = new.links.get(0)
        more = None if links is None else replace(links, endpoints=of_new[links.endpoints])
    relink(patch, MovedRows(content, joined, to), more)
    _put_members(patch, members, content, thin, new, parts_before)
    return patch


def _rows_in(joined: Content, part: Content, before: Ints) -> Ints:
    """The row of ``joined`` that each row of a part is; ``before``: how many rows come first in each cell of it."""
    cell = part.cell_of_rows()
    first = joined.row_starts[find_rows(joined.keys, part.keys)] + before - part.row_starts[:-1]
    return np.arange(len(part.positions)) + first[cell]


def _put_members(
    patch: Patch, members: Members, content: Content, thin: Content, new: Content | None, parts_before: Ints
) -> None:
    """Take fragments that are left with nothing out of the objects, and add those of ``new``."""
    level, manifests, joined = patch.level, members.manifests, patch.content
    about = object_index(level)
    dropped = _are_empty(content, thin, manifests)
    owner = row_numbers(np.diff(manifests.starts))
    some = [owner[~dropped], manifests.chunks[~dropped], manifests.fragments[~dropped]]
    if not members.are_all:
        _check_covered(content, thin, manifests)
    touched = owner[dropped]
    if new is not None and new.objects is not None:
        cell = np.searchsorted(new.fragments.before, new.objects.fragments, side="right") - 1
        chunks = new.keys[cell]
        local = new.objects.fragments - new.fragments.before[cell] + parts_before[find_rows(joined.keys, chunks)]
        own = find_rows(manifests.ids.reshape(-1, 1), new.objects.ids.reshape(-1, 1))
        owner = own[row_numbers(np.diff(new.objects.starts))]
        touched = np.concatenate([touched, owner])
        some = [np.concatenate(pair) for pair in zip(some, (owner, chunks, local), strict=True)]
    objects = np.unique(touched)
    place = np.full(len(manifests.ids), -1, np.int64)
    place[objects] = np.arange(len(objects))
    mine = np.flatnonzero(place[some[0]] >= 0)
    mine = mine[np.argsort(place[some[0][mine]], kind="stable")]
    counts = np.bincount(place[some[0][mine]], minlength=len(objects))
    blobs = encode_manifests(starts_of(counts), some[1][mine], some[2][mine])
    rows = members.rows[objects]
    table = table_of(level, "object_index/manifests", members.known.count)
    put_rows(patch, table, "object_index/manifests", rows, blobs_of(blobs), MANIFESTS_AT_ONCE)
    had = np.diff(manifests.starts)[objects] > 0
    dead = objects[had & (counts == 0)]
    present = int((~had & (counts > 0)).sum()) - len(dead)
    sole = are_sole(about.attributes)
    put_index(patch, about, present, sole, _put_dead(patch, members, dead))


def _are_empty(content: Content, thin: Content, manifests: Manifests) -> npt.NDArray[np.bool_]:
    """Which entries of the manifests are of fragments that lost all their rows, or whose cell is gone."""
    lost = _lost_fragments(content, thin)
    cell = find_rows(content.keys, manifests.chunks)
    number = np.append(content.fragments.before, 0)[cell] + manifests.fragments
    inside = (cell >= 0) & (manifests.fragments < np.append(np.diff(content.fragments.before), 0)[cell])
    found: npt.NDArray[np.bool_] = inside & np.append(lost, False)[np.where(inside, number, -1)]
    return found


def _lost_fragments(content: Content, thin: Content) -> npt.NDArray[np.bool_]:
    """Which fragments have no rows any more, or are gone with their cell."""
    before = np.diff(content.fragments.starts)
    alive = find_rows(thin.keys, content.keys) >= 0
    after = np.zeros(content.fragments.count, np.int64)
    per_part = np.repeat(alive, np.diff(content.fragments.before))
    after[per_part] = np.diff(thin.fragments.starts)
    lost: npt.NDArray[np.bool_] = ((before > 0) & (after == 0)) | ~per_part
    return lost


def _check_covered(content: Content, thin: Content, manifests: Manifests) -> None:
    """Raise where fragments lost all rows that none of the objects has: those of others that share rows with them."""
    lost = _lost_fragments(content, thin) & (np.diff(content.fragments.starts) > 0)
    cell = find_rows(content.keys, manifests.chunks)
    named = np.zeros(len(lost) + 1, np.bool_)
    named[np.where(cell >= 0, np.append(content.fragments.before, 0)[cell] + manifests.fragments, -1)] = True
    if (lost & ~named[:-1]).any():
        raise UnfitError("objects share vertices")


def _put_dead(patch: Patch, members: Members, dead: Ints) -> dict[str, Any]:
    """Remove objects that are made of nothing any more; gives what the object index is to say of that."""
    if not len(dead):
        return {}
    level, known = patch.level, members.known
    ids = members.manifests.ids[dead]
    for name in level.names("object_attributes"):
        put_table(patch, f"object_attributes/{name}", known.count, members.rows[dead], None)
    _put_groups(patch, ids)
    there = known.all()
    removed = np.concatenate([there[known.removed.among(there)], ids])
    runs = runs_of(removed)
    if len(runs) > MOST_RUNS or len(removed) > _SPARE + known.count // 2:
        raise UnfitError("many objects are removed: tables without them are due")
    return {REMOVED: runs}


def _put_groups(patch: Patch, ids: Ints) -> None:
    """Take objects out of all groups."""
    level = patch.level
    groups = load_groups(level, attributes=None)
    if groups is None:
        return
    changed = [number for number, each in enumerate(groups.members) if np.isin(each, ids).any()]
    if not changed:
        return
    table = table_of(level, "groups", len(groups.members))
    left = [groups.members[number] for number in changed]
    blobs = blobs_of([each[~np.isin(each, ids)].astype("<i8").tobytes() for each in left])
    put_rows(patch, table, "groups", np.array(changed), blobs, MANIFESTS_AT_ONCE)
    spans = dict(table.metadata.attributes.get("group_ranges") or {})
    fewer = {name: span for name, span in spans.items() if name not in map(str, changed)}
    if fewer != spans:
        attributes = {**table.metadata.attributes, "group_ranges": fewer}
        patch.documents["groups"] = replace(table.metadata, attributes=attributes).to_dict()
