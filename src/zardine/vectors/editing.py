"""Adding to a store, and changing what is in it: the whole of level 0 is worked out anew and replaced at one moment.

Coarser levels would no longer agree and are removed; :func:`zardine.vectors.build_pyramid` makes them again.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from zardine.errors import DataError, SelectionError
from zardine.metadata.documents import ArrayMetadata, GroupMetadata
from zardine.nodes import erase_node, load_group, update_node
from zardine.stores.resolve import StoreLike
from zardine.vectors.cell_arrays import child
from zardine.vectors.columns import Column, check_name, column_of, columns_of, join_columns
from zardine.vectors.content import Columns, Content, Groups
from zardine.vectors.documents import LEVEL, ROOT, ome
from zardine.vectors.grids import chunks_of
from zardine.vectors.kinds import KINDS
from zardine.vectors.level_access import Level, VectorStore
from zardine.vectors.level_plan import Grid, plan_level
from zardine.vectors.loading import ALL, load_cells
from zardine.vectors.loading_links import load_links
from zardine.vectors.loading_objects import load_groups, load_manifests, with_objects
from zardine.vectors.merging import merge
from zardine.vectors.new_objects import new_objects, object_rows
from zardine.vectors.one_writer import alone
from zardine.vectors.point_content import binned_points, by_object
from zardine.vectors.positions import checked_ids, checked_positions
from zardine.vectors.querying import Query, Where, matching_rows, wanted_objects
from zardine.vectors.ragged import Ints, unique_rows
from zardine.vectors.remaking import changed_vertices
from zardine.vectors.run_content import joined_columns, joined_lines, polyline_content
from zardine.vectors.store_writing import grid_of, level_attributes
from zardine.vectors.transactions import finish, replace_nodes


@alone
def append_points(
    path: StoreLike,
    positions: npt.ArrayLike,
    *,
    vertex_attributes: Mapping[str, Any] | None = None,
    object_ids: npt.ArrayLike | None = None,
    object_attributes: Mapping[str, Any] | None = None,
) -> None:
    """Add points to a store. Bounds and grid grow where that is needed.

    Attributes that are not given for the new points, or were not there before, get fill values (NaN, 0, missing text).
    Where the store has objects, ``object_ids`` are needed; known ids add to these objects, and ``object_attributes``
    have a row for each distinct new id, ascending. Raises as :func:`write_points`, before anything is written.
    """
    level = _open(path)
    old = load_whole(level)
    points = checked_positions(positions, old.positions.dtype)
    _check_rank(points, level)
    columns = columns_of(vertex_attributes, len(points), "points")
    if (object_ids is not None) != (old.objects is not None):
        reason = "has objects: give object_ids" if old.objects is not None else "has no objects: leave object_ids out"
        raise DataError(f"{level.owner.name} {reason}")
    if old.objects is None:
        new = binned_points(points, columns, level.document.chunk_shape, None)
        both = merge(old, new)
        bins = level.owner.root.bin_shape
        joined = binned_points(both.positions, both.vertex_attributes, level.document.chunk_shape, bins)
        replace_level(level, joined)
        return
    ids = checked_ids(object_ids, len(points), "object_ids")
    distinct, row = np.unique(ids, return_inverse=True)
    fresh = distinct[~np.isin(distinct, old.objects.ids)]
    keys, cell = unique_rows(chunks_of(points, level.document.chunk_shape))
    objects, _ = new_objects(distinct, len(distinct), None, None, None)
    content, _ = by_object(points, columns, keys, cell, row.reshape(-1), objects)
    assert content.objects is not None
    given = columns_of(object_attributes, len(fresh), "new objects (one for each distinct new id)")
    joined = merge(old, content)
    assert joined.objects is not None
    if given:
        joined = _with_new_attributes(joined, old, given)
    replace_level(level, joined)


@alone
def append_polylines(
    path: StoreLike,
    polylines: Sequence[npt.ArrayLike],
    *,
    vertex_attributes: Mapping[str, Any] | None = None,
    object_ids: npt.ArrayLike | None = None,
    object_attributes: Mapping[str, Any] | None = None,
) -> None:
    """Add lines to a store of lines; ``object_ids`` are new ones (default: on from the highest).

    Everything else as in :func:`append_points`.
    """
    level = _open(path)
    old = load_whole(level)
    if old.objects is None:
        raise DataError(f"{level.owner.name} has no lines to add to")
    whole, lengths = joined_lines(polylines, level.owner.root.ndim)
    points = checked_positions(whole, old.positions.dtype)
    _check_rank(points, level)
    columns = columns_of(joined_columns(vertex_attributes, lengths), len(points), "vertices")
    ids = _new_ids(object_ids, len(lengths), old.objects.ids)
    objects, _ = new_objects(ids, len(ids), object_attributes, None, None)
    replace_level(level, merge(old, polyline_content(points, columns, lengths, level.document.chunk_shape, objects)))


@alone
def append_graph(
    path: StoreLike,
    positions: npt.ArrayLike,
    links: npt.ArrayLike,
    *,
    vertex_attributes: Mapping[str, Any] | None = None,
    link_attributes: Mapping[str, Any] | None = None,
    object_ids: npt.ArrayLike | None = None,
) -> None:
    """Add vertices and edges, or faces, to a store of graphs or meshes; ``links`` are rows of the new vertices.

    ``object_ids`` ``(N,)``: known ids add to these objects (default: all belong to one new object).
    """
    from zardine.vectors.content import Links
    from zardine.vectors.graphs import _checked_links
    from zardine.vectors.run_content import inverse

    level = _open(path)
    old = load_whole(level)
    if old.objects is None or 0 not in old.links:
        raise DataError(f"{level.owner.name} has no graph or mesh to add to")
    width = old.links[0].endpoints.shape[1]
    array = _checked_links(links, "links", 2 if width == 2 else 3)
    points = checked_positions(positions, old.positions.dtype)
    _check_rank(points, level)
    if array.shape[1] != width or (len(array) and (array.min() < 0 or array.max() >= len(points))):
        raise DataError(f"links are {width} rows of the {len(points)} new vertices each")
    if object_ids is None:
        object_ids = np.full(len(points), _new_ids(None, 1, old.objects.ids)[0])
    objects, row, _ = object_rows(object_ids, len(points), None, None, None)
    keys, cell = unique_rows(chunks_of(points, level.document.chunk_shape))
    columns = columns_of(vertex_attributes, len(points), "vertices")
    content, order = by_object(points, columns, keys, cell, row, objects)
    stored = inverse(order)
    of_links = columns_of(link_attributes, len(array), "links")
    content = content.changed(links={0: Links(stored[array] if len(array) else array, of_links)})
    replace_level(level, merge(old, content))


@alone
def delete(
    path: StoreLike,
    *,
    bbox: Any = None,
    object_ids: Collection[int] | None = None,
    group_ids: Collection[int] | None = None,
    where: Where = None,
) -> int:
    """Remove the vertices for which everything holds that is given, and links to them; gives how many there were.

    At least one condition is needed; they are those of :func:`read_points`. Objects without vertices go, also from
    groups. All attributes stay with their rows.
    """
    if bbox is None and object_ids is None and group_ids is None and where is None:
        raise SelectionError("say what to delete: bbox, object_ids, group_ids or where")
    level = _open(path)
    content = load_whole(level)
    query = Query(bbox=bbox, object_ids=object_ids, group_ids=group_ids, where=where)
    for name in where or {}:
        if name not in content.vertex_attributes:
            raise SelectionError(f"{level.owner.name} has no vertex attribute {name!r}")
    gone = matching_rows(level, content, query, wanted_objects(level, load_manifests(level), query))
    if len(gone) == 0:
        return 0
    kept = np.ones(len(content.positions), np.bool_)
    kept[gone] = False
    left = _remade(level, content, content.positions, kept)
    if left.groups is not None and left.objects is not None:
        members = tuple(each[np.isin(each, left.objects.ids)] for each in left.groups.members)
        left = left.changed(groups=Groups(members, left.groups.attributes))
    replace_level(level, left)
    return len(gone)


@alone
def move_vertices(path: StoreLike, rows: npt.ArrayLike, positions: npt.ArrayLike) -> None:
    """Put vertices elsewhere: ``rows`` count them in the order in which :func:`read_points` gives the whole level.

    Everything that belongs to them goes with them. Raises :class:`~zardine.errors.SelectionError` for other rows.
    """
    level = _open(path)
    content = load_whole(level)
    visible = np.flatnonzero(content.visible())
    numbers = checked_ids(rows, None, "rows")
    if len(numbers) and (numbers.min() < 0 or numbers.max() >= len(visible)):
        raise SelectionError(f"rows {numbers.min()} to {numbers.max()}: there are {len(visible)} vertices")
    points = checked_positions(positions, content.positions.dtype)
    _check_rank(points, level)
    if len(points) != len(numbers):
        raise DataError(f"{len(points)} positions for {len(numbers)} rows")
    moved = content.positions.copy()
    moved[visible[numbers]] = points
    replace_level(level, _remade(level, content, moved, np.ones(len(moved), np.bool_)))


@alone
def set_attribute(path: StoreLike, name: str, values: Any, *, kind: str = "vertex") -> None:
    """Give the things of one ``kind`` an attribute, or other values of one; ``None`` removes it.

    ``values`` has a row for each, in the order in which the whole level is read: of ``"vertex"`` by
    :func:`read_points`, ``"link"`` by :func:`read_graph` or :func:`read_mesh`, ``"object"``, ``"group"`` and
    ``"fragment"`` by :func:`read_objects`, :func:`read_groups` and :func:`read_fragments`.
    """
    check_name(name)
    level = _open(path)
    content = load_whole(level)
    if kind == "vertex":
        visible = np.flatnonzero(content.visible())
        columns = _with_column(content.vertex_attributes, name, values, len(visible), "vertices")
        if values is not None:
            given = columns[name]
            whole = np.zeros((len(content.positions), *given.row_shape), given.values.dtype)
            whole[visible] = given.values
            columns[name] = replace(given, values=whole)
        content = content.changed(vertex_attributes=columns)
    elif kind == "fragment":
        columns = _with_column(content.fragment_attributes, name, values, content.fragments.count, "fragments")
        content = content.changed(fragment_attributes=columns)
    elif kind == "link" and 0 in content.links:
        links = content.links[0]
        columns = _with_column(links.attributes, name, values, len(links.endpoints), "links")
        content = content.changed(links={0: replace(links, attributes=columns)})
    elif kind == "object" and content.objects is not None:
        columns = _with_column(content.objects.attributes, name, values, len(content.objects.ids), "objects")
        content = content.changed(objects=replace(content.objects, attributes=columns))
    elif kind == "group" and content.groups is not None:
        columns = _with_column(content.groups.attributes, name, values, len(content.groups.members), "groups")
        content = content.changed(groups=replace(content.groups, attributes=columns))
    else:
        raise DataError(f"{level.owner.name} has nothing of the kind {kind!r}")
    replace_level(level, content, keep_coarser=True)


def _with_column(old: Columns, name: str, values: Any, rows: int, what: str) -> dict[str, Column]:
    columns = {each: column for each, column in old.items() if each != name}
    if values is not None:
        columns[name] = column_of(name, values, rows, what)
    return columns


def load_whole(level: Level) -> Content:
    """Everything that a level holds, but links to other levels."""
    content = load_cells(level, vertex_attributes=ALL, fragment_attributes=ALL)
    content = with_objects(level, content, load_manifests(level), attributes=ALL)
    links = load_links(level, content, attributes=ALL)
    return content.changed(links={} if links is None else {0: links}, groups=load_groups(level))


def replace_level(level: Level, content: Content, *, keep_coarser: bool = False) -> None:
    """Store ``content`` in the place of what level 0 holds; see the module's text."""
    owner, root = level.owner, level.owner.root
    if level.document.block.get("chunk_attribute_name") is not None:
        raise DataError(f"{owner.name} is divided by an attribute: such stores can be read, not changed")
    vertices = level.cells("vertices")
    assert vertices is not None
    low, high = np.asarray(root.bounds[0]), np.asarray(root.bounds[1])
    if len(content.positions):
        low = np.minimum(low, content.positions.min(axis=0))
        high = np.maximum(high, content.positions.max(axis=0))
    bounds = (tuple(low.tolist()), tuple(high.tolist()))
    grid: Grid = grid_of(content, bounds, level.document.chunk_shape, vertices.layout)
    if not keep_coarser:
        _remove_coarser(owner)
    if bounds != root.bounds:
        _set_root(owner, {"bounds": [list(bounds[0]), list(bounds[1])]})
    always = KINDS[root.geometry_types[0]].links if root.geometry_types and root.geometry_types[0] in KINDS else False
    nodes = list(plan_level(content, grid, always_links=always))
    there = {node.path for node in nodes}
    removed = [name for name in _below(level) if name not in there and not (keep_coarser and _is_cross(name))]
    fresh = level_attributes(content, 0, nodes)
    block = {**level.document.block, **fresh[LEVEL]}
    if "fragments_tile" not in fresh[LEVEL]:
        block.pop("fragments_tile", None)
    replace_nodes(level, nodes, removed, {**level.document.attributes, LEVEL: block})


def _remade(level: Level, content: Content, positions: npt.NDArray[Any], kept: npt.NDArray[np.bool_]) -> Content:
    root = level.owner.root
    kind = root.geometry_types[0] if root.geometry_types else "point_cloud"
    return changed_vertices(content, kind, positions, kept, level.document.chunk_shape, root.bin_shape)


def _is_cross(relative: str) -> bool:
    parts = relative.split("/")
    return parts[0] == "links" and len(parts) > 1 and parts[1] != "0"


def _below(level: Level, relative: str = "") -> list[str]:
    found = []
    for name in level.names(relative):
        path = f"{relative}/{name}" if relative else name
        node = level.node(path)
        if isinstance(node, GroupMetadata):
            found += [*_below(level, path), path]
        elif isinstance(node, ArrayMetadata):
            found.append(path)
    return found


def _open(path: StoreLike) -> Level:
    owner = VectorStore.open(path, writable=True)
    finish(owner.level(0))
    return owner.level(0)


def _remove_coarser(owner: VectorStore) -> None:
    coarser = [number for number in owner.level_numbers() if number > 0]
    for number in coarser:
        erase_node(owner.store, child(owner.path, str(number)))
    if coarser:
        _set_root(owner, {}, levels=[0])


def _set_root(owner: VectorStore, block: Mapping[str, Any], levels: Sequence[int] | None = None) -> None:
    def change(old: GroupMetadata) -> GroupMetadata:
        attributes = {**old.attributes, ROOT: {**old.attributes[ROOT], **block}}
        if levels is not None:
            scales = dict(attributes["multiscales"][0])
            names = {str(level) for level in levels}
            scales["datasets"] = [each for each in scales.get("datasets", ()) if each.get("path") in names]
            attributes["multiscales"] = [scales, *attributes["multiscales"][1:]]
            name = (attributes.get("ome") or {}).get("name", "")
            attributes["ome"] = ome(name, scales["axes"], levels)
        return old.with_attributes(attributes)

    update_node(owner.store, owner.path, load_group(owner.store, owner.path, 3), change)


def _check_rank(points: npt.NDArray[Any], level: Level) -> None:
    if points.shape[1] != level.owner.root.ndim:
        raise DataError(f"positions have {points.shape[1]} coordinates, the store has {level.owner.root.ndim} axes")


def _new_ids(ids: npt.ArrayLike | None, count: int, known: Ints) -> Ints:
    if ids is None:
        return np.arange(count) + (int(known.max()) + 1 if len(known) else 0)
    found = checked_ids(ids, count, "object_ids")
    if np.isin(found, known).any():
        raise DataError(f"object_ids: {int(found[np.isin(found, known)][0])} is there already")
    return found


def _with_new_attributes(joined: Content, old: Content, given: Mapping[str, Any]) -> Content:
    """Attributes of the objects that ``joined`` has after those of ``old``."""
    assert joined.objects is not None
    assert old.objects is not None
    count, total = len(old.objects.ids), len(joined.objects.ids)
    columns = dict(joined.objects.attributes)
    for name, column in given.items():
        before = old.objects.attributes.get(name)
        if before is None:
            before = join_columns(name, column.take(np.zeros(0, np.int64)), None, count)
        columns[name] = join_columns(name, before, column.decoded(), total - count)
    return joined.changed(objects=replace(joined.objects, attributes=columns))
