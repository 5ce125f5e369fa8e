"""Coarser levels: one vertex in the place of all in a bin, linked to them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from zardine.errors import DataError
from zardine.metadata.documents import GroupMetadata
from zardine.nodes import create_ancestors, erase_node, load_group, update_node
from zardine.stores.resolve import StoreLike
from zardine.vectors.cell_arrays import child
from zardine.vectors.content import Content, Fragments, Links, Objects
from zardine.vectors.documents import ROOT, dataset, ome
from zardine.vectors.editing import load_whole
from zardine.vectors.grids import chunks_of
from zardine.vectors.level_access import Level, VectorStore
from zardine.vectors.level_plan import Grid, Node, group, plan_level, plan_links
from zardine.vectors.link_placement import anchors_for, place_links
from zardine.vectors.node_writing import write_document, write_nodes
from zardine.vectors.one_writer import alone
from zardine.vectors.ragged import Ints, row_numbers, starts_of, unique_rows
from zardine.vectors.store_writing import grid_of, level_attributes
from zardine.vectors.transactions import finish, replace_nodes

Progress = Callable[[int, int], object] | None


@alone
def build_pyramid(
    path: StoreLike,
    *,
    factors: Sequence[tuple[float, float]] = ((2, 1),),
    chunk_scale_factors: Sequence[int] | None = None,
    sparsity_seed: int = 0,
    cross_level_links: bool = True,
    progress: Progress = None,
) -> list[int]:
    """Make the levels above 0 anew: one for each ``(coarsen, sparsity)`` of ``factors``; gives their numbers.

    The bins of a level are ``coarsen`` times as large as those of the level below, along each axis; all vertices in one
    become their mean. Of the objects one in ``sparsity`` stays, chosen by ``sparsity_seed``; the others keep their ids
    and attributes, without vertices. ``chunk_scale_factors``: how many times as large chunks are (default:
    ``coarsen``, rounded up). With ``cross_level_links`` each vertex is linked to the one that stands for it, and back.
    Levels are stored as level 0 is: data type, shards, compression. ``progress`` is called with the number of levels
    done, and of all.

    Raises :class:`~zardine.errors.DataError` for other factors. Old levels go first; who is killed leaves fewer levels,
    never wrong ones.
    """
    steps = [(float(a), float(b)) for a, b in factors]
    if any(not (np.isfinite(a) and a >= 1 and np.isfinite(b) and b >= 1) for a, b in steps):
        raise DataError(f"factors are pairs of numbers from 1 on, not {list(factors)!r}")
    scales = [int(np.ceil(a)) for a, _ in steps] if chunk_scale_factors is None else list(chunk_scale_factors)
    if len(scales) != len(steps) or any(isinstance(s, bool) or not isinstance(s, int) or s < 1 for s in scales):
        raise DataError(f"chunk_scale_factors are whole numbers from 1 on, one for each level, not {scales!r}")
    owner = VectorStore.open(path, writable=True)
    base = owner.level(0)
    if base.rank != owner.root.ndim:
        raise DataError(f"{owner.name} is divided by an attribute: no coarser levels can be made of it")
    finish(base)
    for number in owner.level_numbers()[1:]:
        erase_node(owner.store, child(owner.path, str(number)))
    _describe(owner, [np.asarray(owner.root.bin_shape)])
    fine, content = owner.level(0), load_whole(owner.level(0))
    generator = np.random.default_rng(sparsity_seed)
    bins, made = [np.asarray(owner.root.bin_shape)], []
    ratio = 1
    for number, ((coarsen, sparsity), scale) in enumerate(zip(steps, scales, strict=True), 1):
        bins.append(bins[-1] * coarsen)
        ratio *= scale
        chunk_shape = np.asarray(owner.root.chunk_shape) * ratio
        coarse, parent = coarsened(content, bins[-1], chunk_shape, sparsity, generator)
        level = _store_level(owner, number, coarse, chunk_shape, sparsity)
        _describe(owner, bins)
        if cross_level_links:
            _link(fine, content, level, coarse, parent)
        fine, content = owner.level(number), coarse
        made.append(number)
        if progress is not None:
            progress(number, len(steps))
    return made


def coarsened(
    content: Content,
    bin_shape: npt.NDArray[np.float64],
    chunk_shape: npt.NDArray[np.float64],
    sparsity: float,
    generator: np.random.Generator,
) -> tuple[Content, Ints]:
    """The next level, and for each row of this one the row of it that stands for it, or -1."""
    kept = content.visible()
    objects = content.objects
    chosen: Ints = np.zeros(0, np.int64)
    if objects is not None:
        present = np.flatnonzero(np.diff(objects.starts) > 0)
        wanted = len(present) if sparsity == 1 else max(1, round(len(present) / sparsity)) if len(present) else 0
        chosen = np.sort(generator.choice(present, wanted, replace=False)) if wanted < len(present) else present
        kept = kept & content.rows_in(chosen)
    rows = np.flatnonzero(kept)
    _, number = unique_rows(chunks_of(content.positions[rows], bin_shape.tolist()))
    count = int(number.max()) + 1 if len(number) else 0
    totals = np.bincount(number, minlength=count)
    means = np.stack(
        [np.bincount(number, column, count) / totals for column in content.positions[rows].astype(np.float64).T], axis=1
    ).astype(content.positions.dtype)
    keys, cell = unique_rows(chunks_of(means, chunk_shape.tolist()))
    order = np.argsort(cell, kind="stable")
    place = np.empty(count, np.int64)
    place[order] = np.arange(count)
    parent = np.full(len(content.positions), -1, np.int64)
    parent[rows] = place[number]
    starts = starts_of(np.bincount(cell, minlength=len(keys)))
    each = np.arange(count)
    new_objects = None if objects is None else _followed(content, objects, chosen, parent)
    coarse = Content(
        keys, starts, means[order], Fragments(starts, np.arange(count + 1), each, True), objects=new_objects
    )
    return coarse.changed(groups=content.groups), parent


def _followed(content: Content, objects: Objects, chosen: Ints, parent: Ints) -> Objects:
    """The objects as paths through the vertices that stand for theirs; those that are not chosen have none."""
    starts, rows = content.rows_of_objects()
    owner = row_numbers(np.diff(starts))
    inside = np.isin(owner, chosen)
    owner, path = owner[inside], parent[rows[inside]]
    new = np.ones(len(path), np.bool_)
    new[1:] = (path[1:] != path[:-1]) | (owner[1:] != owner[:-1])
    counts = np.bincount(owner[new], minlength=len(objects.ids))
    return replace(objects, starts=starts_of(counts), fragments=path[new])


def _store_level(
    owner: VectorStore, number: int, content: Content, chunk_shape: npt.NDArray[np.float64], sparsity: float
) -> Level:
    vertices = owner.level(0).cells("vertices")
    assert vertices is not None
    grid = grid_of(content, owner.root.bounds, chunk_shape.tolist(), vertices.layout)
    nodes = list(plan_level(content, grid, always_links=False))
    path = child(owner.path, str(number))
    has_objects = content.objects is not None
    attributes = level_attributes(
        content,
        number,
        nodes,
        object_sparsity=1 / sparsity,
        coarsening_method="per_object",
        parent_level=number - 1,
        chunk_shape=chunk_shape.tolist(),
        preserves_object_ids=has_objects or None,
        inherited_num_objects=None if content.objects is None else len(content.objects.ids),
        shared_fragments=has_objects or None,
        fragments_tile=None,
    )
    owner.store.erase_prefix(f"{path}/")
    try:
        create_ancestors(owner.store, path)
        write_nodes(owner.store, path, nodes)
        write_document(owner.store, path, group(attributes))
    except BaseException:
        owner.store.erase_prefix(f"{path}/")
        raise
    return owner.level(number)


def _link(fine: Level, content: Content, coarse: Level, other: Content, parent: Ints) -> None:
    """Store links from each vertex to the one that stands for it, and back."""
    rows = np.flatnonzero(parent >= 0)
    up = np.stack([rows, parent[rows]], axis=1)
    root = np.asarray(fine.owner.root.chunk_shape)
    for level, own, its, ends, delta in ((fine, content, other, up, 1), (coarse, other, content, up[:, ::-1], -1)):
        ratios = [np.rint(np.asarray(each.document.chunk_shape) / root) for each in (fine, coarse)][::delta]
        first, second = own.cell_of_rows()[ends[:, 0]], its.cell_of_rows()[ends[:, 1]]
        chunks = np.stack([own.keys[first], its.keys[second]], axis=1)
        local = np.stack([ends[:, 0] - own.row_starts[first], ends[:, 1] - its.row_starts[second]], axis=1)
        anchors = anchors_for(own.keys[first], ratios[0].astype(np.int64), ratios[1].astype(np.int64))
        placed = list(place_links(chunks, local, canonical=False, anchors=anchors))
        vertices = level.cells("vertices")
        assert vertices is not None
        grid = Grid(vertices.origin, vertices.array.shape, vertices.layout)
        nodes: list[Node] = [Node("links", group())] if level.attributes("links") is None else []
        nodes += plan_links(delta, Links(ends, {}, True), own, grid, placed=placed)
        there = {node.path for node in nodes}
        family = f"links/{'+1' if delta > 0 else '-1'}"
        removed = [f"{family}/{name}" for name in level.names(family) if f"{family}/{name}" not in there]
        replace_nodes(level, nodes, removed, level.document.attributes)


def _describe(owner: VectorStore, bins: Sequence[npt.NDArray[np.float64]]) -> None:
    """Say in the root document which levels there are."""

    def change(old: GroupMetadata) -> GroupMetadata:
        attributes: dict[str, Any] = dict(old.attributes)
        base = bins[0].tolist()
        scales = dict(attributes["multiscales"][0])
        first = (scales.get("datasets") or [dataset(0, base, base)])[:1]
        scales["datasets"] = [*first, *(dataset(n, each.tolist(), base) for n, each in enumerate(bins[1:], 1))]
        attributes["multiscales"] = [scales]
        name = (attributes.get("ome") or {}).get("name", "")
        attributes["ome"] = ome(name, scales["axes"], list(range(len(bins))))
        block = dict(attributes[ROOT])
        if len(bins) > 1:
            extra = ["preserved_object_ids", "shared_fragments", "multiscale_links"]
            block["format_capabilities"] = list(dict.fromkeys([*block.get("format_capabilities", ()), *extra]))
            block |= {"cross_level_depth": 1, "cross_level_storage": "explicit"}
        attributes[ROOT] = block
        return old.with_attributes(attributes)

    update_node(owner.store, owner.path, load_group(owner.store, owner.path, 3), change)
