"""Geometries whose connections follow from the order of vertices, made anew from changed vertices. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from zardine.errors import UnsupportedError
from zardine.vectors.content.changes import keep_rows, move_rows
from zardine.vectors.content.content import Columns, Content
from zardine.vectors.content.point_content import binned_points
from zardine.vectors.content.run_content import polyline_content, skeleton_content
from zardine.vectors.format.ragged import Ints, row_numbers
from zardine.vectors.graphs import parents_of

LINES = ("line", "polyline", "streamline")


def changed_vertices(
    content: Content,
    kind: str,
    positions: npt.NDArray[Any],
    kept: npt.NDArray[np.bool_],
    chunk_shape: Sequence[float],
    bin_shape: Sequence[float],
) -> Content:
    """``content`` with vertices at other ``positions`` (of every row), and without those that are not ``kept``.

    Neighbours of a vertex that goes become neighbours in lines; in skeletons its children become roots. Raises
    :class:`~zardine.errors.UnsupportedError` where fragments of lines or skeletons have attributes: these are cut anew.
    """
    plain = not content.links and not content.fragment_attributes
    if content.objects is None and plain:
        kept = kept & content.visible()
        made = plain_points(positions, content.vertex_attributes, kept, chunk_shape, bin_shape)
        return made.changed(groups=content.groups)
    if kind not in (*LINES, "skeleton") or content.objects is None:
        return move_rows(keep_rows(content, kept), positions[kept], chunk_shape)
    if content.fragment_attributes:
        raise UnsupportedError(f"the fragments of this {kind} have attributes, which would no longer fit")
    if kind == "skeleton":
        return _skeleton(content, positions, kept, chunk_shape)
    return _lines(content, positions, kept, chunk_shape)


def plain_points(
    positions: npt.NDArray[Any],
    columns: Columns,
    kept: npt.NDArray[np.bool_] | None,
    chunk_shape: Sequence[float],
    bin_shape: Sequence[float],
) -> Content:
    """Points without objects in the order of chunks and bins, without those that are not ``kept``."""
    if kept is not None and not kept.all():
        positions, columns = positions[kept], {name: column.take(kept) for name, column in columns.items()}
    return binned_points(positions, columns, chunk_shape, bin_shape)


def _lines(content: Content, positions: Any, kept: npt.NDArray[np.bool_], chunk_shape: Sequence[float]) -> Content:
    assert content.objects is not None
    starts, rows = content.rows_of_objects()
    owner = row_numbers(np.diff(starts))[kept[rows]]
    rows = rows[kept[rows]]
    before = np.diff(starts)
    lengths = np.bincount(owner, minlength=len(before))
    alive = np.flatnonzero((lengths > 0) | (before == 0))
    columns = {name: column.take(rows) for name, column in content.vertex_attributes.items()}
    objects = content.objects.take(alive)
    made = polyline_content(positions[rows], columns, lengths[alive], chunk_shape, objects)
    return made.changed(groups=content.groups)


def _skeleton(content: Content, positions: Any, kept: npt.NDArray[np.bool_], chunk_shape: Sequence[float]) -> Content:
    assert content.objects is not None
    parents = parents_of(content, content.links.get(0))
    owner = content.row_object()
    rows = np.flatnonzero(kept & content.visible() & (owner >= 0))
    number = np.full(len(positions) + 1, -1, np.int64)
    number[rows] = np.arange(len(rows))
    held = np.bincount(owner[rows], minlength=len(content.objects.ids))
    alive = np.flatnonzero((held > 0) | (np.diff(content.objects.starts) == 0))
    place = np.full(len(content.objects.ids), -1, np.int64)
    place[alive] = np.arange(len(alive))
    columns = {name: column.take(rows) for name, column in content.vertex_attributes.items()}
    objects = content.objects.take(alive)
    row: Ints = place[owner[rows]]
    made = skeleton_content(positions[rows], columns, number[parents[rows]], row, chunk_shape, objects)
    return made.changed(groups=content.groups)
