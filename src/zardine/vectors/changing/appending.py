"""Adding to a store: the cells that are touched, and rows that tables gain, count from one moment on.

What cannot be added so, such as attributes that are new, is added to the whole of level 0, which is stored anew.
Coarser levels are older then; :func:`zardine.vectors.build_pyramid` makes them anew.
Where there is nothing to add, nothing changes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from zardine.buffers import Ints
from zardine.errors import CorruptionError, DataError
from zardine.stores.resolve import StoreLike
from zardine.vectors.changing.asking_ahead import ask_for_cells, ask_for_links
from zardine.vectors.changing.creating import GivenObjects, object_rows
from zardine.vectors.changing.levels import change_cells, kind_of, load_whole, open_to_change, replace_level
from zardine.vectors.changing.patching import Patch, UnfitError, addition
from zardine.vectors.changing.spelling import check_spelling
from zardine.vectors.content.arguments import Attributes, GroupsLike, checked_ids, checked_links, checked_positions
from zardine.vectors.content.changes import LINES, merge
from zardine.vectors.content.columns import columns_of, join_columns, native
from zardine.vectors.content.content import Columns, Content, Links, Objects
from zardine.vectors.content.grouping import Gains, gains_of, with_gains
from zardine.vectors.content.plan import plan_groups
from zardine.vectors.content.point_content import by_object
from zardine.vectors.content.run_content import inverse
from zardine.vectors.format.grids import distinct_chunks_of
from zardine.vectors.reading.loading import dtype_of
from zardine.vectors.reading.loading_links import width_of
from zardine.vectors.reading.loading_objects import KnownIds, known_ids, load_groups
from zardine.vectors.storing.cells import child
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
    return checked_kind(open_to_change(path), name, *kinds)


def checked_kind(level: Level, name: str, *kinds: str) -> Level:
    """``level``, if it is of one of ``kinds``, for the function ``name``. Raises :class:`DataError` for others."""
    kind = kind_of(level)
    if kind not in kinds:
        advice = f": see {_APPENDS[kind]}" if kind in _APPENDS else ""
        raise DataError(f"{level.owner.name} is of the geometry {kind}; {name} adds to {' or '.join(kinds)}{advice}")
    return level


def add(
    level: Level,
    new: Content,
    ids: KnownIds | None = None,
    of_objects: Columns | None = None,
    remake: Callable[[Content], Content] = lambda joined: joined,
    gains: Gains = (),
) -> None:
    """Add ``new`` to what a level holds: in each cell its rows and fragments follow those that are there.

    ``ids``: those of all objects of the level, if it has any. ``of_objects`` has a row for each object of ``new`` that
    is not among them. ``remake`` makes of old and new cells what they are to be; cells by themselves, or all. ``gains``
    are members that groups gain by it.
    """
    columns = {} if of_objects is None else of_objects
    ask_for_links(level, new)
    links = new.links[0].attributes if 0 in new.links else {}
    for family, given in (("vertex", new.vertex_attributes), ("link", links), ("object", columns)):
        check_spelling(level, family, given, "To have both, make the new one first: set_attribute(..., new=True)")
    try:
        patch = addition(level, new, ids, columns, remake)
        if gains:
            put_gains(patch, gains)
    except UnfitError:
        old = load_whole(level)
        groups = with_gains(old.groups, gains) if gains else old.groups
        joined = replace(remake(merge(old, new)), groups=groups)
        replace_level(level, with_new_attributes(joined, old, columns))
    else:
        change_cells(level, patch)


def put_gains(patch: Patch, gains: Gains) -> None:
    """Let groups have more members: their tables are stored anew. Raises :class:`UnfitError` where there are none."""
    level = patch.level
    old, vertices = load_groups(level), level.cells("vertices")
    if old is None or vertices is None:
        raise UnfitError("groups")
    planned = plan_groups(with_gains(old, gains), vertices.layout)
    patch.nodes += [node for node in planned if node.path != "group_attributes" or level.node(node.path) is None]


def with_new_attributes(joined: Content, old: Content, given: Columns) -> Content:
    """Attributes of the objects that ``joined`` has after those of ``old``."""
    if joined.objects is None or old.objects is None:
        return joined
    count, total = len(old.objects.ids), len(joined.objects.ids)
    columns = dict(joined.objects.attributes)
    for name, column in given.items():
        before = old.objects.attributes.get(name)
        if before is None:
            before = join_columns(name, column.take(np.zeros(0, np.int64)), None, count, of_objects=True)
        columns[name] = join_columns(name, before, column.decoded(), total - count, of_objects=True)
    return replace(joined, objects=replace(joined.objects, attributes=columns))


def new_points(positions: Any, level: Level) -> npt.NDArray[Any]:
    """Check positions ``(N, D)`` of new vertices; they get the data type of those that are there."""
    vertices = level.cells("vertices")
    if vertices is None:
        raise CorruptionError("the level has no vertices", array=child(level.path, "vertices"))
    points = checked_positions(positions, native(dtype_of(vertices, "float32")))
    if points.shape[1] != level.owner.root.ndim:
        raise DataError(f"positions have {points.shape[1]} coordinates, the store has {level.owner.root.ndim} axes")
    return points


def ids_to_add_to(level: Level) -> KnownIds:
    """Return the ids of all objects. Raises :class:`~zardine.errors.DataError` where the level has no object index."""
    known = known_ids(level)
    if known is None:
        raise DataError(f"{level.owner.name} has no object index: nothing can be added to its objects")
    return known


def objects_for(
    ids: npt.ArrayLike | None, attributes: Attributes, points: npt.NDArray[Any], known: KnownIds
) -> tuple[Objects, Ints, Columns]:
    """Return the objects that new vertices are part of, and the row among these of each vertex.

    Also gives the columns of ``attributes``, which have a row for each distinct id that is new, ascending.
    """
    if ids is None:
        ids = np.full(len(points), new_ids(None, 1, known)[0])
    objects, row, _ = object_rows(GivenObjects(ids), len(points))
    fresh = int((known.rows_of(objects.ids) < 0).sum()) if len(points) else 0
    return objects, row, columns_of(attributes, fresh, "new objects (one for each distinct new id)")


def new_ids(ids: npt.ArrayLike | None, count: int, known: KnownIds) -> Ints:
    """Check ``count`` ids of new objects, or give them some above the ``known``. Raises :class:`DataError`."""
    if ids is None:
        first = known.highest() + 1
        if first + count > 2**63:
            raise DataError("no ids are left above the highest: give object_ids")
        return np.arange(count) + np.int64(first if count else 0)  # arange(first, 2**63) would be floats
    found = checked_ids(ids, count, "object_ids")
    there = known.rows_of(found) >= 0
    if there.any():
        raise DataError(f"object_ids: {int(found[there][0])} is there already")
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
    object_attributes: Attributes,
    groups: GroupsLike,
) -> None:
    """Add vertices, and links (rows of these) between them, for the function ``name``.

    ``object_ids`` ``(N,)``: the object of each vertex; ``None``: all are a new one.
    """
    level = open_to_add(path, name, *kinds)
    about = level.attributes("links/0")
    if about is None:
        raise DataError(f"{level.owner.name} has no links to add to")
    width = width_of(about, level, 0)
    array = checked_links(links, "links", 2 if width == 2 else 3)
    if len(array) == 0:
        array = np.zeros((0, width), np.int64)
    points = new_points(positions, level)
    if array.shape[1] != width or (len(array) and (array.min() < 0 or array.max() >= len(points))):
        raise DataError(f"links are {width} rows of the {len(points)} new vertices each")
    ask_for_cells(level, points, lambda: array)
    known = ids_to_add_to(level)
    objects, row, of_objects = objects_for(object_ids, object_attributes, points, known)
    gains = gains_of(groups, objects.ids, numbered=object_ids is None)
    keys, cell = distinct_chunks_of(points, level.document.chunk_shape)
    columns = columns_of(vertex_attributes, len(points), "vertices")
    content, order = by_object(points, columns, keys, cell, row, objects)
    stored = inverse(order)
    of_links = columns_of(link_attributes, len(array), "links")
    content = replace(content, links={0: Links(stored[array] if len(array) else array, of_links)})
    if len(points):
        add(level, content, known, of_objects, gains=gains)
