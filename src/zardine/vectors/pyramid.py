"""Coarser levels: one vertex in the place of all in a bin, linked to them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from operator import index as as_index
from typing import Any

import numpy as np
import numpy.typing as npt

from zardine.buffers import Ints
from zardine.errors import DataError
from zardine.stores.resolve import StoreLike
from zardine.tools.progress import Progress
from zardine.vectors.changing.levels import (
    begin_level,
    describe_levels,
    end_level,
    erase_levels,
    forget_levels,
    load_whole,
)
from zardine.vectors.changing.one_writer import alone
from zardine.vectors.content.arguments import shown
from zardine.vectors.content.content import Content, Fragments, Links, Objects
from zardine.vectors.content.link_placement import anchors_for, place_links
from zardine.vectors.content.plan import Grid, Node, grid_of, group, level_attributes, plan_level, plan_links
from zardine.vectors.format.documents import LevelBlock
from zardine.vectors.format.grids import chunks_of
from zardine.vectors.format.ragged import row_numbers, starts_of, unique_rows
from zardine.vectors.storing.store import UNFINISHED, Level, VectorStore
from zardine.vectors.storing.transactions import finish, replace_nodes

_MOST_TIMES = 64
"""How many times larger than wanted chunks may become, so that bins divide them."""

_COARSEST = 2**32
"""Of a factor between two levels."""


@alone
def build_pyramid(
    path: StoreLike,
    *,
    factors: Sequence[tuple[float, float]] = ((2, 1),),
    chunk_scale_factors: Sequence[int] | None = None,
    sparsity_seed: int = 0,
    cross_level_links: bool = True,
    progress: Progress | None = None,
) -> list[int]:
    """Make the levels above 0 anew: one for each ``(coarsen, sparsity)`` of ``factors``; gives their numbers.

    The bins of a level are ``coarsen`` times as large as those of the level below, along each axis; all vertices in one
    become their mean. Of the objects one in ``sparsity`` stays, chosen by ``sparsity_seed``; the others keep their ids
    and attributes, without vertices. ``chunk_scale_factors``: how many times as large chunks are (default:
    ``coarsen``, or the next larger number for which bins divide chunks). With ``cross_level_links`` each vertex is
    linked to the one that stands for it, and back. Levels are stored as level 0 is: data type, shards, compression.
    ``progress`` is called with the number of levels done, and of all.

    Raises :class:`~zardine.errors.DataError` for other factors, and where bins would not divide chunks. Old levels go
    first, with all links to them; who is killed leaves fewer levels, never wrong ones, and perhaps one that is
    unfinished: it cannot be read, and whoever changes the store next removes it.
    """
    steps, scales = _checked_steps(factors, chunk_scale_factors)
    try:
        generator = np.random.default_rng(sparsity_seed)
    except (TypeError, ValueError):
        raise DataError(f"sparsity_seed is a whole number from 0 on, not {sparsity_seed!r}") from None
    owner = VectorStore.open(path, writable=True)
    if owner.level(0).rank != owner.root.ndim:
        raise DataError(f"{owner.name} is divided by an attribute: no coarser levels can be made of it")
    finish(owner.level(0))
    ratios = _chunk_ratios(owner, [coarsen for coarsen, _ in steps], scales)
    content = load_whole(owner.level(0))
    erase_levels(owner, [number for number in owner.level_numbers() if number > 0])
    forget_levels(owner.level(0), range(1, sys.maxsize))
    bin_shape, made = np.asarray(owner.root.bin_shape), list[int]()
    for number, ((coarsen, sparsity), ratio) in enumerate(zip(steps, ratios, strict=True), 1):
        bin_shape = bin_shape * coarsen
        chunk_shape = np.asarray(owner.root.chunk_shape) * ratio
        coarse, parent = coarsened(content, bin_shape, chunk_shape, sparsity, generator)
        try:
            _store_level(owner, number, coarse, chunk_shape, sparsity)
            if cross_level_links:
                _link(owner.level(number - 1), content, owner.level(number), coarse, parent)
            block = _root_block(owner, cross_level_links)
            describe_levels(owner, [0, *made, number], {number: bin_shape}, block)
            end_level(owner.level(number))
        except BaseException:
            with suppress(Exception):
                erase_levels(owner, [number])
            raise
        content = coarse
        made.append(number)
        if progress is not None:
            progress(number, len(steps))
    return made


def _checked_steps(factors: Any, chunk_scale_factors: Any) -> tuple[list[tuple[float, float]], list[int] | None]:
    """What a user says of each level. Raises :class:`~zardine.errors.DataError`."""
    try:
        steps = [(float(a), float(b)) for a, b in factors]
        good = all(1 <= each <= _COARSEST for step in steps for each in step)
    except (TypeError, ValueError, OverflowError):
        good = False
    if not good:
        raise DataError(
            f"factors are pairs of numbers from 1 to {_COARSEST:g}, one for each level, not {shown(factors)}"
        )
    if chunk_scale_factors is None:
        return steps, None
    try:
        scales = [as_index(each) for each in chunk_scale_factors]
    except TypeError:
        scales = []
    if len(scales) != len(steps) or not all(1 <= each <= _COARSEST for each in scales):
        reason = "chunk_scale_factors are whole numbers from 1 on, one for each level"
        raise DataError(f"{reason}, not {chunk_scale_factors!r}")
    return steps, scales


def _chunk_ratios(owner: VectorStore, factors: Sequence[float], scales: Sequence[int] | None) -> list[int]:
    """How many times as large as on level 0 the chunks of each new level are: such that bins divide them.

    Raises :class:`~zardine.errors.DataError` where they cannot be.
    """
    root = owner.root
    bins, found, ratio = np.asarray(root.bin_shape), list[int](), 1
    for number, factor in enumerate(factors):
        bins = bins * factor
        least = ratio * (int(np.ceil(factor)) if scales is None else scales[number])
        most = _MOST_TIMES * least if scales is None else least
        for ratio in range(least, most + 1):
            if _divides(bins, np.asarray(root.chunk_shape) * ratio):
                break
        else:
            chunks = tuple((np.asarray(root.chunk_shape) * least).tolist())
            reason = f"bins of {tuple(bins.tolist())} at level {number + 1} do not divide chunks of {chunks}"
            raise DataError(f"{reason}: give other factors or chunk_scale_factors")
        found.append(ratio)
    return found


def _divides(bins: npt.NDArray[np.float64], chunks: npt.NDArray[np.float64]) -> bool:
    counts = np.rint(chunks / bins)
    return bool((counts >= 1).all() and (np.abs(chunks / bins - counts) <= 1e-6 * counts).all())


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
    means = _means(content.positions[rows], number, totals)
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
    return replace(coarse, groups=content.groups), parent


def _means(positions: npt.NDArray[Any], number: Ints, counts: Ints) -> npt.NDArray[Any]:
    """The mean of the positions with each number, of which there are ``counts``, rounded to none outside of them."""
    if len(counts) == 0:
        return positions[:0]
    order = np.argsort(number, kind="stable")
    starts = starts_of(counts)[:-1]
    columns = []
    for column in positions[order].T:
        mean = (np.add.reduceat(column.astype(np.float64), starts) / counts).astype(column.dtype)
        columns.append(np.clip(mean, np.minimum.reduceat(column, starts), np.maximum.reduceat(column, starts)))
    return np.stack(columns, axis=1)


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
) -> None:
    vertices = owner.level(0).cells("vertices")
    assert vertices is not None
    grid = grid_of(content, owner.root.bounds, chunk_shape.tolist(), vertices.layout)
    grid = replace(grid, layout=vertices.layout_for(grid.shape))
    nodes = list(plan_level(content, grid, always_links=False))
    has_objects = content.objects is not None
    more: LevelBlock = {
        "object_sparsity": 1 / sparsity,
        "coarsening_method": "per_object",
        "parent_level": number - 1,
        "chunk_shape": chunk_shape.tolist(),
        "preserves_object_ids": has_objects or None,
        "inherited_num_objects": None if content.objects is None else len(content.objects.ids),
        "shared_fragments": has_objects or None,
        "fragments_tile": None,
    }
    level = begin_level(owner, number, **more)
    attributes = level_attributes(content, number, nodes, **more)
    replace_nodes(level, nodes, [], {**attributes, UNFINISHED: True})


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


def _root_block(owner: VectorStore, linked: bool) -> dict[str, Any]:
    """What the root document says of coarser levels."""
    extra = ["preserved_object_ids", "shared_fragments", *(["multiscale_links"] if linked else [])]
    old = [each for each in owner.root.block.get("format_capabilities", ()) if each != "multiscale_links"]
    block: dict[str, Any] = {"format_capabilities": list(dict.fromkeys([*old, *extra]))}
    return block | {"cross_level_depth": 1, "cross_level_storage": "explicit" if linked else "none"}
