"""Points in the order that they are stored in. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from zardine.buffers import Ints
from zardine.errors import DataError
from zardine.vectors.content.arguments import checked_ids
from zardine.vectors.content.columns import checked_mapping, columns_of
from zardine.vectors.content.content import Columns, Content, Fragments, Groups, Links, Objects
from zardine.vectors.format.grids import Corners, bins_of, bins_per_chunk, counted_chunks_of, distinct_chunks_of
from zardine.vectors.format.ragged import rows_at, stable_order, starts_of


def binned_points(
    positions: npt.NDArray[Any],
    columns: Columns,
    chunk_shape: Sequence[float],
    bin_shape: Sequence[float] | None,
    corners: Corners | None = None,
) -> Content:
    """Points without ids: a fragment for each bin of a chunk, rows in the order of bins, then as they were given.

    ``corners``: of a box that holds all positions, if one is known.
    """
    keys, number, counts = counted_chunks_of(positions, chunk_shape, corners)
    per_chunk = (1,) * len(chunk_shape) if bin_shape is None else bins_per_chunk(chunk_shape, bin_shape)
    bins = prod(per_chunk)
    if bins == len(keys) == 1 and all(each.flags.c_contiguous for each in _values_of(positions, columns)):
        starts = np.array([0, len(positions)])  # they are in order
        return Content(keys, starts, positions, Fragments.tiling(np.arange(2), starts), dict(columns))
    if bins > 1:
        number = number * bins + bins_of(positions, keys[number], chunk_shape, per_chunk)
        counts = np.bincount(number, minlength=len(keys) * bins)
    order = stable_order(number, len(counts))
    starts = starts_of(counts)
    before = np.arange(len(keys) + 1) * bins
    return Content(
        keys,
        starts[::bins] if len(counts) else starts,
        rows_at(positions, order),
        Fragments.tiling(before, starts),
        {name: column.take(order) for name, column in columns.items()},
    )


def _values_of(positions: npt.NDArray[Any], columns: Columns) -> list[npt.NDArray[Any]]:
    return [positions, *(column.values for column in columns.values())]


def object_points(
    positions: npt.NDArray[Any],
    columns: Columns,
    ids: Ints,
    chunk_shape: Sequence[float],
    *,
    object_columns: Columns,
    object_ids: Ints,
) -> Content:
    """Points that belong to objects: a fragment for each object in a chunk, in the order of ids, then as given.

    ``object_ids`` are the distinct ids, ascending.
    """
    keys, cell = distinct_chunks_of(positions, chunk_shape)
    row = np.searchsorted(object_ids, ids)
    return by_object(positions, columns, keys, cell, row, Objects(object_ids, row, row, object_columns))[0]


def by_object(
    positions: npt.NDArray[Any],
    columns: Columns,
    keys: Ints,
    cell: Ints,
    row: Ints,
    objects: Objects,
) -> tuple[Content, Ints]:
    """Rows in the order of cells, then objects, then as given; one fragment for each object in a cell.

    Of ``objects`` the ids and attributes count; ``row`` says which one each row is part of. Also gives the number that
    each stored row had among those given.
    """
    object_ids = objects.ids
    by_row = stable_order(row, len(object_ids))
    order = by_row[stable_order(cell[by_row], len(keys))]
    ordered = cell[order] * max(1, len(object_ids)) + row[order]
    first = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]])) if len(ordered) else order[:0]
    starts = np.concatenate([first, [len(ordered)]]).astype(np.int64)
    cells_of, rows_of = cell[order][first], row[order][first]
    before = starts_of(np.bincount(cells_of, minlength=len(keys)))
    manifest = starts_of(np.bincount(rows_of, minlength=len(object_ids)))
    content = Content(
        keys,
        starts_of(np.bincount(cell, minlength=len(keys))),
        rows_at(positions, order),
        Fragments.tiling(before, starts),
        {name: column.take(order) for name, column in columns.items()},
        objects=Objects(object_ids, manifest, stable_order(rows_of, len(object_ids)), objects.attributes),
    )
    return content, order


def linked_content(
    positions: npt.NDArray[Any],
    columns: Columns,
    row: Ints,
    objects: Objects,
    links: npt.NDArray[np.int64],
    link_columns: Columns,
    chunk_shape: Sequence[float],
) -> Content:
    """Vertices, and edges or faces between them: ``links`` ``(M, width)``, rows of the vertices.

    ``row``, ``objects``: as in :func:`by_object`.
    """
    keys, cell = distinct_chunks_of(positions, chunk_shape)
    content, order = by_object(positions, columns, keys, cell, row, objects)
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    return replace(content, links={0: Links(place[links] if len(links) else links, link_columns)})


def groups_of(
    groups: Mapping[Any, Any] | Sequence[Any] | None, attributes: Mapping[str, Any] | None, ids: Ints
) -> Groups | None:
    """A user's groups: lists of object ids, in order, by number from 0, or by names, which are an attribute then.

    Raises :class:`DataError`.
    """
    checked_mapping(attributes)
    if groups is None:
        if attributes:
            raise DataError("group_attributes need groups")
        return None
    if isinstance(groups, Mapping) and groups and all(isinstance(name, str) for name in groups):
        if "name" in (attributes or {}):
            raise DataError("groups are given by their names, and group_attributes say other names: give one of them")
        attributes, groups = {"name": list(groups), **(attributes or {})}, list(groups.values())
    if isinstance(groups, Mapping):
        if set(groups) != set(range(len(groups))):
            raise DataError("groups have names, or are numbered from 0 on without gaps")
        groups = [groups[number] for number in range(len(groups))]
    members = []
    for number, each in enumerate(_lists_in(groups)):
        found = checked_ids(each, None, f"group {number}")
        unknown = found[~np.isin(found, ids)]
        if len(unknown):
            raise DataError(f"group {number} names object {int(unknown[0])}, which does not exist")
        members.append(found)
    return Groups(tuple(members), columns_of(attributes, len(members), "groups"))


def _lists_in(groups: Any) -> list[list[Any]]:
    try:
        return [list(each) for each in groups]
    except TypeError:
        raise DataError(f"groups are lists of object ids, not {groups!r}") from None
