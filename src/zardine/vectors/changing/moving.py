"""Moving vertices by the cells that they leave and enter; links, fragments and objects go with them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from zardine.buffers import Ints
from zardine.errors import DataError, SelectionError
from zardine.vectors.changing.levels import kind_of
from zardine.vectors.changing.patching import Patch, UnfitError, put_cells, touched_cells
from zardine.vectors.changing.reading_order import reads_lines, rows_as_read
from zardine.vectors.changing.removing import (
    Members,
    all_members,
    changed_cells,
    members_of,
    remade,
    whole_objects,
    without_points,
)
from zardine.vectors.content.arguments import checked_ids, checked_positions
from zardine.vectors.content.changes import LINES
from zardine.vectors.content.content import Content, Objects
from zardine.vectors.content.point_content import by_object
from zardine.vectors.content.run_content import inverse
from zardine.vectors.format.grids import chunks_of
from zardine.vectors.format.ragged import find_rows, unique_rows
from zardine.vectors.reading.batches_of_lines import places_in_lines
from zardine.vectors.reading.loading import load_cells
from zardine.vectors.reading.loading_objects import known_ids, with_objects
from zardine.vectors.reading.presence import check_all, present_chunks, same_list
from zardine.vectors.storing.store import Level

_ROWS_AT_ONCE = 2**20
"""Vertices that are looked at together to find those of some numbers, about."""


@dataclass(frozen=True, slots=True, eq=False)
class _Moves:
    """Vertices by the cells that they are in, and where they go."""

    chunks: Ints
    """``(M, K)``"""
    rows: Ints
    """Within the cells."""
    positions: npt.NDArray[Any]
    entered: Ints
    """The chunks of ``positions``."""


def movement(level: Level, rows: Any, positions: Any, object_ids: Collection[int] | None) -> Patch | None:
    """What it comes to that vertices are elsewhere; ``None`` where there are none.

    ``rows`` count the vertices of the level, or of some objects, as reading gives them; ``None``: all of these. Raises
    :class:`UnfitError`, and :class:`~zardine.errors.SelectionError` for other rows.
    """
    vertices, index = level.cells("vertices"), level.cells("vertex_fragments")
    if vertices is None or index is None or not same_list(vertices, index) or level.rank != level.owner.root.ndim:
        raise UnfitError("nonempty_chunks")
    points = checked_positions(positions, np.dtype(str(vertices.attributes.get("dtype", "float32"))))
    if points.shape[1] != level.owner.root.ndim:
        raise DataError(f"positions have {points.shape[1]} coordinates, the store has {level.owner.root.ndim} axes")
    members: Members | None = None
    if object_ids is not None:
        members, chunks, local, numbers = _in_objects(level, rows, len(points), object_ids)
    elif reads_lines(level):
        chunks, local, numbers = _in_lines(level, rows, len(points))
    else:
        chunks, local, numbers = _in_level(level, rows, len(points))
    if not len(numbers):
        return None
    _, first = np.unique(numbers[::-1], return_index=True)
    last = len(numbers) - 1 - first  # of a row that is named twice the last position counts
    entered = chunks_of(points[last], level.document.chunk_shape)
    moves = _Moves(chunks[last], local[last], points[last], entered)
    if level.node("object_index") is None:
        content = touched_cells(level, _distinct(moves.chunks, entered))
        return without_points(level, content, _placed(content, moves), np.zeros(len(content.positions), np.bool_))
    leaving = (moves.chunks != entered).any(axis=1)
    if not leaving.any():
        content = touched_cells(level, _distinct(moves.chunks))
        patch = Patch(level, replace(content, positions=_placed(content, moves)), 0)
        put_cells(patch, only="vertices")
        return patch
    if members is None:
        known = known_ids(level)
        assert known is not None
        members = all_members(level, known)
    if kind_of(level) in (*LINES, "skeleton"):
        return _of_lines(level, members, moves, leaving)
    return _of_others(level, members, moves, leaving)


def numbers_of(rows: Any, points: int, count: int) -> Ints:
    """The numbers of vertices among ``count``, one for each of the ``points``; ``rows`` ``None``: all.

    Raises :class:`~zardine.errors.SelectionError` for numbers of none and those that come twice,
    :class:`~zardine.errors.DataError` for more or fewer than points.
    """
    if rows is None:
        if points != count:
            raise DataError(f"{points} positions for {count} vertices: give one for each, or rows of some")
        return np.arange(count)
    numbers = checked_ids(rows, None, "rows")
    if len(numbers) and (numbers.min() < 0 or numbers.max() >= count):
        raise SelectionError(f"rows {numbers.min()} to {numbers.max()}: there are {count} vertices")
    if points != len(numbers):
        raise DataError(f"{points} positions for {len(numbers)} rows")
    if not (numbers[1:] > numbers[:-1]).all():
        in_order = np.sort(numbers)
        again = in_order[1:][in_order[1:] == in_order[:-1]]
        if len(again):
            raise SelectionError(f"row {again[0]} is named more than once: a vertex is in one place")
    return numbers


def _in_objects(level: Level, rows: Any, points: int, object_ids: Collection[int]) -> tuple[Members, Ints, Ints, Ints]:
    """Where the vertices of some objects are that have these numbers among all of theirs, and the numbers."""
    known = known_ids(level)
    if known is None:
        raise SelectionError(f"{level.owner.name} has no objects")
    ids = np.unique(checked_ids(list(object_ids), None, "object_ids"))
    members = members_of(level, known, ids) or all_members(level, known)
    wanted = members.manifests.rows_of(ids)
    wanted = wanted[np.argsort(members.rows[wanted])]
    chunks = unique_rows(members.manifests.take(wanted).chunks)[0]
    content = with_objects(level, load_cells(level, chunks), members.manifests, asked=chunks)
    mine = rows_as_read(level, content, wanted)
    numbers = numbers_of(rows, points, len(mine))
    row = mine[numbers]
    cell = content.cell_of_rows()[row]
    return members, content.keys[cell], row - content.row_starts[cell], numbers


def _in_lines(level: Level, rows: Any, points: int) -> tuple[Ints, Ints, Ints]:
    """Where the vertices are that have these numbers when all lines are read, and the numbers."""
    lines = places_in_lines(level, _ROWS_AT_ONCE)
    numbers = numbers_of(rows, points, int(lines.starts[-1]))
    content = load_cells(level, lines.chunks_at(numbers))
    cell, row = lines.rows_at(content, numbers)
    return content.keys[cell], row, numbers


def _in_level(level: Level, rows: Any, points: int) -> tuple[Ints, Ints, Ints]:
    """Where the vertices are that have these numbers when the whole level is read, and the numbers."""
    vertices, index = level.cells("vertices"), level.cells("vertex_fragments")
    assert vertices is not None
    keys = present_chunks(vertices, index)
    at_once = max(1, _ROWS_AT_ONCE * len(keys) // max(1, level.document.vertex_count))
    wanted = np.arange(points) if rows is None else checked_ids(rows, None, "rows")
    chunks, local = np.zeros((len(wanted), level.rank), np.int64), np.zeros(len(wanted), np.int64)
    seen = stored = 0
    for start in range(0, len(keys), at_once):
        some = keys[start : start + at_once]
        part = load_cells(level, some, fragments=not level.document.tiles, vertices=vertices)
        visible = np.flatnonzero(part.visible())
        here = np.flatnonzero((wanted >= seen) & (wanted < seen + len(visible)))
        row = visible[wanted[here] - seen]
        cell = part.cell_of_rows()[row]
        chunks[here], local[here] = part.keys[cell], row - part.row_starts[cell]
        seen, stored = seen + len(visible), stored + len(part.positions)
    check_all(level, vertices, index, keys, stored)
    return chunks, local, numbers_of(rows, points, seen)


def _distinct(*chunks: Ints) -> Ints:
    found: Ints = unique_rows(np.concatenate(chunks))[0]
    return found


def _rows_of(content: Content, moves: _Moves) -> Ints:
    """The row of ``content`` that each of the vertices is."""
    found: Ints = content.row_starts[find_rows(content.keys, moves.chunks)] + moves.rows
    return found


def _placed(content: Content, moves: _Moves) -> npt.NDArray[Any]:
    """The positions of all rows, those that move at their new places."""
    positions = content.positions.copy()
    positions[_rows_of(content, moves)] = moves.positions
    return positions


def _of_lines(level: Level, members: Members, moves: _Moves, leaving: npt.NDArray[np.bool_]) -> Patch:
    """Lines and skeletons are cut anew where a vertex of theirs is in another chunk then."""
    near = _distinct(moves.chunks)
    content = with_objects(level, touched_cells(level, near), members.manifests, asked=near)
    objects = content.objects_with(_rows_of(content, moves)[leaving])
    content = whole_objects(level, members, objects, _distinct(moves.chunks, moves.entered))
    positions = _placed(content, moves)
    new, kept = remade(level, content, positions, np.zeros(len(positions), np.bool_))
    if new is None or not kept[_rows_of(content, moves)[leaving]].any():
        return changed_cells(level, members, replace(content, positions=positions, objects=None, links={}), kept, new)
    raise UnfitError("vertices of no object")


def _of_others(level: Level, members: Members, moves: _Moves, leaving: npt.NDArray[np.bool_]) -> Patch:
    """Vertices that enter a cell become a fragment there for each object."""
    if level.names("fragment_attributes"):
        raise UnfitError("fragment_attributes")
    chunks = _distinct(moves.chunks, moves.entered)
    content = touched_cells(level, chunks)
    content = with_objects(level, replace(content, positions=_placed(content, moves)), members.manifests, asked=chunks)
    rows = _rows_of(content, moves)[leaving]
    owner = content.row_object()[rows]
    times = np.bincount(content.fragments.rows, minlength=len(content.positions))[rows]
    if (owner < 0).any() or (times != 1).any():
        raise UnfitError("vertices of several objects, or of none")
    kept = content.visible()
    kept[rows] = False
    ids, row = np.unique(owner, return_inverse=True)
    keys, cell = unique_rows(moves.entered[leaving])
    columns = {name: column.take(rows) for name, column in content.vertex_attributes.items()}
    objects = Objects(members.manifests.ids[ids], row, row)
    new, order = by_object(content.positions[rows], columns, keys, cell, row.reshape(-1), objects)
    became = np.full(len(content.positions), -1, np.int64)
    became[rows] = inverse(order)
    return changed_cells(level, members, replace(content, objects=None), kept, new, became)
