"""Giving all things of a kind an attribute: nothing but its array is stored, cell after cell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from zardine.buffers import Ints
from zardine.errors import CorruptionError, DataError
from zardine.vectors.changing.levels import LevelsAbove
from zardine.vectors.changing.reading_order import reads_lines
from zardine.vectors.content.columns import Column, absent_value, array_of, column_of, join_columns
from zardine.vectors.content.plan import FAMILIES, Grid, Node, plan_columns, plan_tables
from zardine.vectors.format.documents import LEVEL
from zardine.vectors.format.removed_objects import are_sole
from zardine.vectors.reading.batches_of_lines import PlacesInLines, places_in_lines
from zardine.vectors.reading.loading import load_cells
from zardine.vectors.reading.loading_objects import known_ids, load_groups
from zardine.vectors.reading.presence import check_all, present_chunks
from zardine.vectors.storing.cells import CellArray, child
from zardine.vectors.storing.level_nodes import with_empty_groups
from zardine.vectors.storing.node_parts import NodeParts
from zardine.vectors.storing.store import Level
from zardine.vectors.storing.transactions import replace_nodes

_ROWS_AT_ONCE = 2**18
"""Vertices whose values are encoded together, about."""

KINDS = ("vertex", "fragment", "object", "group")


def set_of_all(level: Level, name: str, values: Any, kind: str) -> None:
    """Let ``values`` be those of an attribute of all things of one of :data:`KINDS`; ``None``: let there be none.

    Raises :class:`~zardine.errors.DataError` for other numbers of values, and where there are no such things.
    """
    family = f"{kind}_attributes"
    vertices = level.cells("vertices")
    if vertices is None:
        raise CorruptionError("the level has no vertices", array=child(level.path, "vertices"))
    if kind in ("object", "group"):
        nodes = _table(level, vertices, family, name, values)
    else:
        nodes = [] if values is None else _cells(level, vertices, family, name, values)
    there = level.names(family)
    nodes = [node for node in nodes if node.path != family or level.node(family) is None]
    removed = with_empty_groups(level, [f"{family}/{name}"]) if values is None and name in there else []
    attributes = _attributes(level, family, bool(nodes) or bool(set(there) - {name}) or values is not None)
    if kind in ("object", "group"):
        none = np.zeros((0, level.rank), np.int64)
        attributes = LevelsAbove.of(level, level.document.vertex_count, "values").noted_in(attributes, none)
    replace_nodes(level, nodes, removed, attributes, is_whole=True)


def _cells(level: Level, vertices: CellArray, family: str, name: str, values: Any) -> list[Node]:
    """An attribute of vertices or fragments, made run after run of cells."""
    parts, per_vertex = NodeParts(level.owner.store, level.path), family == "vertex_attributes"
    what = "vertices" if per_vertex else "fragments"
    column = _column(name, values, what, level.document.vertex_count)
    index, given = level.cells("vertex_fragments"), len(column.values)
    grid = Grid(vertices.origin, vertices.array.shape, vertices.layout_for(vertices.array.shape))
    keys = present_chunks(vertices, index)
    at_once = max(1, _ROWS_AT_ONCE * len(keys) // max(1, level.document.vertex_count))
    lines = places_in_lines(level, _ROWS_AT_ONCE) if per_vertex and reads_lines(level) else None
    if lines is not None and not _are_each_in_one(level, lines):
        column = join_columns(name, column, None, 1)
    fragments = lines is not None or not per_vertex or not level.document.tiles
    seen = stored = 0
    for start in range(0, max(1, len(keys)), at_once):
        part = load_cells(level, keys[start : start + at_once], fragments=fragments, vertices=vertices)
        starts = part.row_starts if per_vertex else part.fragments.before
        if lines is not None:
            rows, places = lines.of_rows(level, part)
        else:
            rows = np.flatnonzero(part.visible()) if per_vertex else np.arange(part.fragments.count)
            places = np.arange(seen, seen + len(rows))
        whole = np.full((int(starts[-1]), *column.row_shape), _filling(column, given), column.values.dtype)
        whole[rows[places < given]] = column.values[places[places < given]]
        seen, stored = seen + len(rows), stored + len(part.positions)
        parts.add(plan_columns(family, {name: replace(column, values=whole)}, starts, part, grid))
    check_all(level, vertices, index, keys, stored)
    column_of(name, values, seen, what)
    return parts.nodes()


def _column(name: str, values: Any, what: str, count: int) -> Column:
    """The column of ``values``, however many there are; a single value is an error."""
    array = array_of(name, values)
    return column_of(name, values, len(array) if array.ndim else count, what)


def _are_each_in_one(level: Level, lines: PlacesInLines) -> bool:
    """Whether each vertex is part of one line, as in what zardine writes."""
    whole = int(lines.starts[-1]) == level.document.vertex_count
    return whole and are_sole(level.attributes("object_index") or {})


def _filling(column: Column, given: int) -> Any:
    """What vertices have that no reader of lines gives: the row behind the ``given`` ones."""
    return column.values[given] if len(column.values) > given else 0


def _table(level: Level, vertices: CellArray, family: str, name: str, values: Any) -> list[Node]:
    """An attribute of objects or groups."""
    if family == "group_attributes":
        groups = load_groups(level, attributes=None)
        if groups is None:
            raise DataError(f"{level.owner.name} has nothing of the kind 'group'")
        count, rows, kind = len(groups.members), None, "groupings_attribute"
    else:
        known = known_ids(level)
        if known is None:
            raise DataError(f"{level.owner.name} has nothing of the kind 'object'")
        rows = np.flatnonzero(~known.removed.among(known.all())) if known.removed else None
        count, kind = known.count, "object_attribute"
    if values is None:
        return []
    given = column_of(name, values, count if rows is None else len(rows), family.partition("_")[0] + "s")
    column = given if rows is None else _with_absent(name, given, rows, count)
    return list(plan_tables(family, kind, {name: column}, count, vertices.layout))


def _with_absent(name: str, column: Column, rows: Ints, count: int) -> Column:
    """``count`` rows, of which some have the values of ``column`` and the others none."""
    if column.categories is not None:
        whole = np.full((count, *column.row_shape), None, object)
        whole[rows] = column.decoded()
        return column_of(name, whole, count, "objects")
    filled = np.full((count, *column.row_shape), absent_value(column.values.dtype) or 0, column.values.dtype)
    filled[rows] = column.values
    return Column(filled)


def _attributes(level: Level, family: str, is_there: bool) -> Mapping[str, Any]:
    """The attributes of the level, which name the families that it has."""
    block = level.document.block
    present = [name for name in block.get("arrays_present", ()) if name != family]
    if is_there and family in FAMILIES:
        present.append(family)
    ours = [name for name in FAMILIES if name in present]
    theirs = [name for name in present if name not in FAMILIES]
    return {**level.document.attributes, LEVEL: {**block, "arrays_present": [*ours, *theirs]}}
