"""Giving some objects, or their vertices, other values of an attribute: only the cells and rows of these are stored."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any

import numpy as np

from zardine.buffers import Ints
from zardine.errors import DataError, SelectionError
from zardine.vectors.changing.asking_ahead import ask_for_chunks, ask_for_tables
from zardine.vectors.changing.levels import change_cells
from zardine.vectors.changing.patching import Patch, UnfitError, put_column, put_column_anew, put_table
from zardine.vectors.changing.reading_order import rows_as_read
from zardine.vectors.content.arguments import checked_ids
from zardine.vectors.content.columns import Column, column_of, join_columns
from zardine.vectors.content.content import Content
from zardine.vectors.format.ragged import unique_rows
from zardine.vectors.reading.loading import load_cells
from zardine.vectors.reading.loading_objects import known_ids, load_manifests, load_tables, manifests_of, with_objects
from zardine.vectors.storing.cells import child
from zardine.vectors.storing.store import Level


def set_of_objects(level: Level, name: str, values: Any, kind: str, object_ids: Collection[int]) -> None:
    """Let ``values`` be those of an attribute of these objects (``kind`` ``"object"``), or of their vertices.

    Raises :class:`~zardine.errors.SelectionError` for unknown ids and attributes, and
    :class:`~zardine.errors.DataError` for values that the attribute cannot hold.
    """
    if kind not in ("vertex", "object"):
        raise DataError(f"object_ids choose vertices or objects, nothing of the kind {kind!r}")
    if values is None:
        raise DataError("an attribute is removed from all objects: leave object_ids out")
    known = known_ids(level)
    if known is None:
        raise SelectionError(f"{level.owner.name} has no objects")
    ids = checked_ids(list(object_ids), None, "object_ids")
    ask_for_tables(level)
    rows = known.rows_of(ids)
    if (rows < 0).any():
        raise SelectionError(f"there is no object with the id {int(ids[rows < 0][0])}")
    if len(np.unique(rows)) != len(rows):
        raise DataError("object_ids: each id can be there once")
    if name not in level.names(f"{kind}_attributes"):
        reason = f"{level.owner.name} has no {kind} attribute {name!r}: give values for all, without object_ids"
        raise SelectionError(reason)
    if kind == "object":
        patch = Patch(level, load_cells(level, np.zeros((0, level.rank), np.int64)), 0)
        path, given = f"object_attributes/{name}", column_of(name, values, len(ids), "objects")
        try:
            put_table(patch, path, known.count, rows, given)
        except UnfitError as error:
            load_tables(level, "object_attributes", known.count, [name])  # says what is damaged
            reason = f"the table of {name!r} cannot hold these values ({error}): give those of all objects, without ids"
            raise DataError(reason, array=child(level.path, path)) from None
    else:
        try:
            patch = _of_vertices(level, name, values, ids, rows)
        except UnfitError:
            patch = _of_all_vertices(level, name, values, ids)
    if patch.cells or patch.rows or patch.nodes:
        change_cells(level, patch, newer=None if kind == "vertex" else "values")


def _of_vertices(level: Level, name: str, values: Any, ids: Ints, rows: Ints) -> Patch:
    order = np.argsort(rows)
    manifests = manifests_of(level, ids[order], rows[order])
    if manifests is None:
        whole = load_manifests(level)
        assert whole is not None
        manifests = whole.take(np.sort(whole.rows_of(ids)))
    chunks = unique_rows(manifests.chunks)[0]
    ask_for_chunks(level, chunks, [name])
    content = with_objects(level, load_cells(level, chunks, vertex_attributes=[name]), manifests, asked=chunks)
    patch = Patch(level, content, 0)
    mine = rows_as_read(level, content, np.arange(len(ids)))
    put_column(patch, name, content.vertex_attributes[name], _changed(content, name, values, mine))
    return patch


def _of_all_vertices(level: Level, name: str, values: Any, ids: Ints) -> Patch:
    """The whole attribute stored anew: other codes for the text that it can be."""
    manifests = load_manifests(level)
    assert manifests is not None
    content = with_objects(level, load_cells(level, vertex_attributes=[name]), manifests)
    patch = Patch(level, content, 0)
    mine = rows_as_read(level, content, np.sort(manifests.rows_of(ids)))
    put_column_anew(patch, name, _changed(content, name, values, mine))
    return patch


def _changed(content: Content, name: str, values: Any, mine: Ints) -> Column:
    """An attribute of vertices with other values for some rows; of a row that is there twice the last one counts."""
    old = content.vertex_attributes[name]
    given = column_of(name, values, len(mine), "vertices of these objects")
    joined = join_columns(name, old, given.decoded(), len(mine))
    new = joined.values[: len(old.values)].copy()
    new[mine] = joined.values[len(old.values) :]
    return replace(joined, values=new)
