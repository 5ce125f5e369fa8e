"""Adding to a store: level 0 is worked out anew and replaced at one moment.

Coarser levels would no longer agree and are removed; :func:`zardine.vectors.build_pyramid` makes them again.
Where there is nothing to add, nothing changes.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from zardine.buffers import Ints
from zardine.errors import DataError
from zardine.stores.resolve import StoreLike
from zardine.vectors.changing.creating import GivenObjects, object_rows
from zardine.vectors.changing.levels import kind_of, load_whole, open_to_change, replace_level
from zardine.vectors.content.arguments import Attributes, checked_ids, checked_links, checked_positions
from zardine.vectors.content.changes import LINES, merge
from zardine.vectors.content.columns import columns_of
from zardine.vectors.content.content import Content, Links, Objects
from zardine.vectors.content.point_content import by_object
from zardine.vectors.content.run_content import inverse
from zardine.vectors.format.grids import chunks_of
from zardine.vectors.format.ragged import unique_rows
from zardine.vectors.storing.store import Level

_APPENDS = {
    **dict.fromkeys(LINES, "append_polylines"),
    "point_cloud": "append_points",
    "graph": "append_graph",
    "mesh": "append_mesh",
    "skeleton": "append_skeleton",
}


def open_to_add(path: StoreLike, name: str, *kinds: str) -> Level:
    """Open level 0 of a store of one of ``kinds``, for the function ``name``. Raises :class:`DataError` for others."""
    level = open_to_change(path)
    kind = kind_of(level)
    if kind not in kinds:
        advice = f": see {_APPENDS[kind]}" if kind in _APPENDS else ""
        raise DataError(f"{level.owner.name} is of the geometry {kind}; {name} adds to {' or '.join(kinds)}{advice}")
    return level


def new_points(positions: Any, level: Level, old: Content) -> npt.NDArray[Any]:
    """Check positions ``(N, D)`` of new vertices; they get the data type of those that are there."""
    points = checked_positions(positions, old.positions.dtype)
    if points.shape[1] != level.owner.root.ndim:
        raise DataError(f"positions have {points.shape[1]} coordinates, the store has {level.owner.root.ndim} axes")
    return points


def objects_for(
    ids: npt.ArrayLike | None, points: npt.NDArray[Any], old: Content, level: Level
) -> tuple[Objects, Ints]:
    """Return the objects that new vertices are part of, and the row among these of each vertex."""
    if old.objects is None:
        raise DataError(f"{level.owner.name} has no object index: nothing can be added to its objects")
    if ids is None:
        ids = np.full(len(points), new_ids(None, 1, old.objects.ids)[0])
    objects, row, _ = object_rows(GivenObjects(ids), len(points))
    return objects, row


def new_ids(ids: npt.ArrayLike | None, count: int, known: Ints) -> Ints:
    """Check ``count`` ids of new objects, or give them some above the ``known``. Raises :class:`DataError`."""
    if ids is None:
        first = int(known.max()) + 1 if len(known) else 0
        if first + count > 2**63:
            raise DataError("no ids are left above the highest: give object_ids")
        return np.arange(count) + np.int64(first if count else 0)  # arange(first, 2**63) would be floats
    found = checked_ids(ids, count, "object_ids")
    if np.isin(found, known).any():
        raise DataError(f"object_ids: {int(found[np.isin(found, known)][0])} is there already")
    return found


def append_links(
    path: StoreLike,
    name: str,
    kinds: tuple[str, ...],
    positions: npt.ArrayLike,
    links: npt.ArrayLike,
    vertex_attributes: Attributes,
    link_attributes: Attributes,
    object_ids: npt.ArrayLike | None,
) -> None:
    """Add vertices, and links (rows of these) between them, for the function ``name``.

    ``object_ids`` ``(N,)``: the object of each vertex; ``None``: all are a new one.
    """
    level = open_to_add(path, name, *kinds)
    old = load_whole(level)
    if 0 not in old.links:
        raise DataError(f"{level.owner.name} has no links to add to")
    width = old.links[0].endpoints.shape[1]
    array = checked_links(links, "links", 2 if width == 2 else 3)
    if len(array) == 0:
        array = np.zeros((0, width), np.int64)
    points = new_points(positions, level, old)
    if array.shape[1] != width or (len(array) and (array.min() < 0 or array.max() >= len(points))):
        raise DataError(f"links are {width} rows of the {len(points)} new vertices each")
    objects, row = objects_for(object_ids, points, old, level)
    keys, cell = unique_rows(chunks_of(points, level.document.chunk_shape))
    columns = columns_of(vertex_attributes, len(points), "vertices")
    content, order = by_object(points, columns, keys, cell, row, objects)
    stored = inverse(order)
    of_links = columns_of(link_attributes, len(array), "links")
    content = replace(content, links={0: Links(stored[array] if len(array) else array, of_links)})
    if len(points):
        replace_level(level, merge(old, content))
