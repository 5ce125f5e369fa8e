"""New stores of points and lines, of which there may be more than fit in memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from zardine.buffers import Ints
from zardine.hierarchy.place import find_place
from zardine.stores.base import Store
from zardine.stores.resolve import StoreLike
from zardine.vectors.changing.creating import (
    GivenObjects,
    Prepared,
    StoreOptions,
    check_options,
    check_room,
    level_in_parts,
    new_objects,
    new_store,
    prepare,
    write_planned,
    write_store,
)
from zardine.vectors.content.content import Content, Groups, Objects
from zardine.vectors.content.parts import (
    ABOVE,
    OWNER,
    WHOLE,
    Blocks,
    Inside,
    LinksInParts,
    Vertices,
    Without,
    blocks_of,
    loaded,
    loaded_links,
)
from zardine.vectors.content.plan import Grid, Node, plan_groups
from zardine.vectors.content.point_content import binned_points, linked_content
from zardine.vectors.content.run_content import polyline_content, skeleton_content
from zardine.vectors.format.documents import KINDS
from zardine.vectors.storing.cells import child
from zardine.vectors.storing.level_in_parts import (
    Step,
    lines_in_parts,
    linked_in_parts,
    points_in_parts,
    trees_in_parts,
)


@dataclass(frozen=True, slots=True, eq=False)
class Lines:
    """Lines, or skeletons, of a new store: all vertices, and how many of them each line has."""

    vertices: Vertices
    lengths: Ints
    objects: Objects
    """Ids and attributes of the lines."""
    groups: Groups | None


def store_points(
    path: StoreLike,
    vertices: Vertices,
    options: StoreOptions,
    step: Step = lambda share: None,
    origin: str | None = None,
) -> None:
    """Write points that are part of no object to a new store; there may be more of them than fit in memory.

    ``step`` is called with the share of them that is worked out; ``origin`` is what the root document says of where the
    store comes from. Raises as :func:`write_points`.
    """
    prepared = _prepare(path, vertices, options, may_ignore=True)
    chosen = vertices if prepared.kept is None else Inside(vertices, prepared.bounds)
    if vertices.count <= WHOLE:
        content = binned_points(*loaded(chosen), prepared.chunk_shape, prepared.bin_shape, prepared.bounds)
        store_content(path, content, "point_cloud", prepared, options, origin)
        step(1)
        return

    def plan(store: Store, level: str, blocks: Blocks, grid: Grid) -> list[Node]:
        return points_in_parts(store, level, chosen, blocks, prepared.bin_shape, grid, step)

    _store_in_parts(path, chosen, "point_cloud", prepared, options, plan, origin)


def store_lines(
    path: StoreLike,
    lines: Lines,
    kind: str,
    options: StoreOptions,
    step: Step = lambda share: None,
    origin: str | None = None,
) -> None:
    """Write lines to a new store; there may be more of them than fit in memory.

    ``step`` is called with the share of their vertices that is worked out; ``origin`` as in :func:`store_points`.
    Raises as :func:`write_polylines`.
    """
    vertices = lines.vertices
    prepared = _prepare(path, vertices, options)
    if vertices.count <= WHOLE:
        shape, corners = prepared.chunk_shape, prepared.bounds
        content = polyline_content(*loaded(vertices), lines.lengths, shape, lines.objects, corners, lines.groups)
        store_content(path, content, kind, prepared, options, origin)
        step(1)
        return

    def plan(store: Store, level: str, blocks: Blocks, grid: Grid) -> list[Node]:
        of_lines = lines.lengths, lines.objects.ids, lines.objects.attributes
        nodes = lines_in_parts(store, level, vertices, blocks, *of_lines, grid, step)
        return nodes if lines.groups is None else [*nodes, *plan_groups(lines.groups, grid.layout)]

    _store_in_parts(path, vertices, kind, prepared, options, plan, origin)


def store_trees(
    path: StoreLike,
    trees: Lines,
    options: StoreOptions,
    step: Step = lambda share: None,
    origin: str | None = None,
) -> None:
    """Write skeletons to a new store; there may be more of them than fit in memory, but for the largest of them.

    Each object is one, and they come in the order of ids. Of the vertices the column
    :data:`~zardine.vectors.content.parts.ABOVE` says how many before them their parents are; branches are whole. Other
    arguments, and errors, are those of :func:`store_lines`.
    """
    vertices = trees.vertices
    prepared = _prepare(path, vertices, options)
    if vertices.count <= WHOLE:
        positions, columns = loaded(Without(vertices, ABOVE))
        above = np.concatenate([np.zeros(0, np.int64), *(values[ABOVE] for _, values in vertices.parts())])
        parents = np.where(above > 0, np.arange(len(above)) - above, -1)
        row = np.repeat(np.arange(len(trees.lengths)), trees.lengths)
        content = skeleton_content(positions, columns, parents, row, prepared.chunk_shape, trees.objects)
        store_content(path, replace(content, groups=trees.groups), "skeleton", prepared, options, origin)
        step(1)
        return

    def plan(store: Store, level: str, blocks: Blocks, grid: Grid) -> list[Node]:
        of_trees = trees.lengths, trees.objects.ids, trees.objects.attributes
        links = KINDS["skeleton"].links
        nodes = trees_in_parts(store, level, vertices, blocks, *of_trees, grid, step, always_links=links)
        return nodes if trees.groups is None else [*nodes, *plan_groups(trees.groups, grid.layout)]

    _store_in_parts(path, vertices, "skeleton", prepared, options, plan, origin)


@dataclass(frozen=True, slots=True, eq=False)
class Linked:
    """Graphs or meshes of a new store."""

    vertices: Vertices
    """One of their columns is :data:`~zardine.vectors.content.parts.OWNER`."""
    links: LinksInParts
    objects: Objects
    """Distinct ids, ascending, and attributes of the objects."""
    groups: Groups | None


def store_linked(
    path: StoreLike,
    linked: Linked,
    kind: str,
    options: StoreOptions,
    step: Step = lambda share: None,
    origin: str | None = None,
) -> None:
    """Write graphs or meshes to a new store; there may be more of them than fit in memory.

    Other arguments, and errors, are those of :func:`store_lines`.
    """
    vertices, objects = linked.vertices, linked.objects
    prepared = _prepare(path, vertices, options)
    if vertices.count <= WHOLE:
        positions, columns = loaded(vertices)
        row = np.searchsorted(objects.ids, columns[OWNER].values)
        columns = {name: each for name, each in columns.items() if name != OWNER}
        ends, of_links = loaded_links(linked.links)
        content = linked_content(positions, columns, row, objects, ends, of_links, prepared.chunk_shape)
        store_content(path, replace(content, groups=linked.groups), kind, prepared, options, origin)
        step(1)
        return

    def plan(store: Store, level: str, blocks: Blocks, grid: Grid) -> list[Node]:
        tables = objects.ids, objects.attributes
        nodes = linked_in_parts(store, level, vertices, linked.links, blocks, *tables, grid, step)
        return nodes if linked.groups is None else [*nodes, *plan_groups(linked.groups, grid.layout)]

    _store_in_parts(path, vertices, kind, prepared, options, plan, origin)


def write_linked(
    path: StoreLike,
    kind: str,
    whole: Callable[..., None],
    vertices: Vertices,
    links: LinksInParts,
    options: Mapping[str, Any],
    step: Step,
    origin: str | None,
) -> None:
    """Write graphs or meshes that came piece by piece; ``options`` are those of ``whole``, which writes them at once.

    That is done where options have other ids, attributes of vertices or links, or another data type; what came must fit
    in memory then. ``origin`` as in :func:`store_points`.
    """
    of_links = {"link_attributes", "edge_attributes" if kind == "graph" else "face_attributes"}
    if set(options) & {"object_ids", "vertex_attributes", *of_links} or options.get("dtype") is not None:
        (positions, columns), (ends, more) = loaded(vertices), loaded_links(links)
        decoded = {name: each.decoded() for name, each in columns.items() if name != OWNER}
        given: dict[str, Any] = {"vertex_attributes": decoded, "object_ids": columns[OWNER].values}
        if not set(options) & of_links:
            given["link_attributes"] = {name: each.decoded() for name, each in more.items()}
        whole(path, positions, ends, **{**given, **options})
        step(1)
        return
    own = ("object_attributes", "groups", "group_attributes")
    plain = cast(StoreOptions, {name: value for name, value in options.items() if name not in (*own, "dtype")})
    check_options(plain)
    is_described = any(options.get(name) is not None for name in own)
    ids = np.zeros(1 if is_described and not vertices.count else 0, np.int64)  # of nothing, unless something is said
    for _, values in vertices.parts():
        ids = np.union1d(ids, values[OWNER])
    objects, groups = new_objects(GivenObjects(ids, *(options.get(name) for name in own)), len(ids))
    store_linked(path, Linked(vertices, links, objects, groups), kind, plain, step, origin)


def _prepare(path: StoreLike, vertices: Vertices, options: StoreOptions, *, may_ignore: bool = False) -> Prepared:
    """Check the options; before much is read, whether something is stored at ``path`` that is to stay."""
    if vertices.count > WHOLE:
        check_room(path, options.get("overwrite", False))
    return prepare(vertices.corners(), options, may_ignore=may_ignore, count=vertices.count)


def _store_in_parts(
    path: StoreLike,
    vertices: Vertices,
    kind: str,
    prepared: Prepared,
    options: StoreOptions,
    plan: Callable[[Store, str, Blocks, Grid], list[Node]],
    origin: str | None,
) -> None:
    """Write a new store of one level, whose nodes ``plan`` makes block by block."""
    store, inner = find_place(path, mode="a")
    blocks = blocks_of(vertices, prepared.chunk_shape)
    new = new_store(kind, blocks.keys, prepared, options, origin)
    nodes = plan(store, child(inner, "0"), blocks, new.grid)

    def attributes(nodes: Sequence[Node]) -> dict[str, Any]:
        return level_in_parts(blocks, nodes)

    write_planned(store, inner, nodes, attributes, new, overwrite=options.get("overwrite", False))


def store_content(
    path: StoreLike,
    content: Content,
    kind: str,
    prepared: Prepared,
    options: StoreOptions,
    origin: str | None = None,
) -> None:
    """Write a new store of one level, which is in memory."""
    new = new_store(kind, content.keys, prepared, options, origin)
    write_store(path, content, new, overwrite=options.get("overwrite", False))


__all__ = ["Lines", "Linked", "store_content", "store_lines", "store_linked", "store_points", "store_trees"]
__all__ += ["write_linked"]
