"""Coarser levels: one vertex in the place of all in a bin, linked to them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from operator import index as as_index
from typing import Any

import numpy as np
import numpy.typing as npt

from zardine.buffers import Ints
from zardine.errors import CorruptionError, DataError, MetadataError, ZarrUserWarning
from zardine.stores.resolve import StoreLike
from zardine.tools.progress import Progress
from zardine.user_warnings import warn_user
from zardine.vectors.changing.asking_ahead import ask_for_attributes_of_objects, ask_to_coarsen, of_pyramid
from zardine.vectors.changing.level_updates import links_to_parents, update_level
from zardine.vectors.changing.levels import (
    begin_level,
    describe_levels,
    end_level,
    erase_levels,
    fill_level,
    forget_age,
    forget_levels,
    open_to_update,
)
from zardine.vectors.changing.one_writer import alone_asking
from zardine.vectors.content.arguments import shown
from zardine.vectors.content.coarsening import Nesting, coarsened, each_alone
from zardine.vectors.content.content import Content, Fragments, Objects
from zardine.vectors.content.plan import FAMILIES, Grid, Node, grid_of, group, plan_level, plan_members
from zardine.vectors.format.documents import LevelBlock, new_level
from zardine.vectors.format.links import signed
from zardine.vectors.format.ragged import ranges, row_numbers, starts_of, take_rows, unique_rows
from zardine.vectors.reading.kept import KeptLevel
from zardine.vectors.reading.loading import load_cells
from zardine.vectors.reading.loading_objects import load_groups, load_manifests, with_objects
from zardine.vectors.reading.manifests import Manifests
from zardine.vectors.reading.presence import check_all, present_chunks, stored_chunks
from zardine.vectors.reading.query import ALL
from zardine.vectors.storing.cells import CellArray, child
from zardine.vectors.storing.node_parts import NodeParts
from zardine.vectors.storing.spools import SpooledBlobs
from zardine.vectors.storing.store import UNFINISHED, Level, VectorStore, named_levels
from zardine.vectors.storing.touched import MADE
from zardine.vectors.storing.transactions import replace_nodes

_MOST_TIMES = 64
"""How many times larger than wanted chunks may become, so that bins divide them."""

_COARSEST = 2**32
"""Of a factor between two levels, and of how many times as large chunks are as those of level 0, about."""

_ROWS_OF_A_BLOCK = 2**18
"""Vertices that are coarsened at a time, about."""

_LITTLE = 2**22
"""Bytes of links that are stored beside the level that they lead to: both are in memory, encoded, at the same time."""

_FAR = 2**60
"""Chunks from the origin, more than any is away."""


@alone_asking(of_pyramid, claims=True)
def build_pyramid(
    path: StoreLike,
    *,
    factors: Sequence[tuple[float, float]] | None = None,
    chunk_scale_factors: Sequence[int] | None = None,
    sparsity_seed: int | None = None,
    cross_level_links: bool | None = None,
    anew: bool = False,
    progress: Progress | None = None,
) -> list[int]:
    """Make the levels above 0: one for each ``(coarsen, sparsity)`` of ``factors``; gives their numbers.

    The bins of a level are ``coarsen`` times as large as those of the level below, along each axis; all vertices in one
    become their mean. Of the objects one in ``sparsity`` stays, chosen by ``sparsity_seed`` (0); the others keep their
    ids and attributes, without vertices. ``chunk_scale_factors``: how many times as large chunks are (default:
    ``coarsen``, or the next larger number for which bins divide chunks). With ``cross_level_links`` (true) each vertex
    is linked to the one that stands for it, and back. Levels are stored as level 0 is: data type, shards, compression.
    ``progress`` is called with the number of levels done, and of all.

    Without ``factors`` the levels that there are are made with the options that they were made with, but for those
    that are given; where there are none, one with ``(2, 1)``. Of levels that were made with the same options only what
    was changed is made anew, as far as that is known; where sparsity is above 1 and there are objects, all is.
    ``anew``: all in any case, as after changes by programs that do not tell of them.

    Raises :class:`~zardine.errors.DataError` for other factors, and where bins would not divide chunks; warns
    (:class:`~zardine.errors.ZarrUserWarning`) where there were more levels than are made now, unless none is asked
    for. Levels that are made anew as a whole go first, with all links to them; who is killed leaves fewer levels, never
    wrong ones, and perhaps one that is unfinished: it cannot be read, and whoever changes the store next removes it.
    """
    owner = VectorStore.open(path, writable=True)
    before = _options_of(owner) if factors is None else {}
    factors = before.get("factors", ((2, 1),)) if factors is None else factors
    if chunk_scale_factors is None:
        chunk_scale_factors = before.get("chunk_scale_factors")
    if sparsity_seed is None:
        sparsity_seed = before.get("sparsity_seed", 0)
    if cross_level_links is None:
        cross_level_links = before.get("cross_level_links", True)
    steps, scales = _checked_steps(factors, chunk_scale_factors)
    try:
        generator = np.random.default_rng(as_index(sparsity_seed))
    except (TypeError, ValueError):
        raise DataError(f"sparsity_seed is a whole number from 0 on, not {sparsity_seed!r}") from None
    if owner.level(0).rank != owner.root.ndim:
        raise DataError(f"{owner.name} is divided by an attribute: no coarser levels can be made of it")
    options = {
        "factors": [list(step) for step in steps],
        "chunk_scale_factors": scales,
        "sparsity_seed": as_index(sparsity_seed),
        "cross_level_links": bool(cross_level_links),
    }
    open_to_update(owner, 0)
    ratios = _chunk_ratios(owner, [coarsen for coarsen, _ in steps], scales)
    _tell_of_levels_that_go(owner, len(steps))
    kept = 0 if anew else _update(owner, options, progress)
    try:
        _make(owner, options, ratios, kept, generator, progress)
    except CorruptionError:
        if not kept:
            raise
        _make(owner, options, ratios, 0, generator, progress)  # a level that was kept is damaged
    return [*range(1, len(steps) + 1)]


def _update(owner: VectorStore, options: Mapping[str, Any], progress: Progress | None) -> int:
    """Let the first levels, as many as can be, be what is made of those below; gives how many."""
    bin_shape, steps = np.asarray(owner.root.bin_shape), options["factors"]
    known: dict[int, Manifests] = {}
    if named_levels(owner.root) != [str(number) for number in owner.level_numbers()]:
        return 0  # the list of levels is damaged: it is made with them
    for number, (coarsen, sparsity) in enumerate(steps, 1):
        bin_shape = bin_shape * coarsen
        if number not in owner.level_numbers() or not _was_made_so(owner, number, options):
            return number - 1
        below = owner.level(number - 1)
        if sparsity != 1 and below.attributes("object_index") is not None and owner.is_newer(number - 1):
            return number - 1
        if not update_level(owner, number, bin_shape, options, known):
            return number - 1
        if progress is not None:
            progress(number, len(steps))
    return len(steps)


def _was_made_so(owner: VectorStore, number: int, options: Mapping[str, Any]) -> bool:
    """Whether a level tells that it and those below were made with these options; not where it is damaged."""
    try:
        told = owner.level(number).document.attributes.get(MADE)
    except (DataError, MetadataError):
        return False
    return isinstance(told, Mapping) and _of_levels(told, number) == _of_levels(options, number)


def _of_levels(options: Mapping[str, Any], count: int) -> list[Any]:
    """What options say of the first so many levels."""
    steps, scales = options.get("factors"), options.get("chunk_scale_factors")
    rest = [options.get("sparsity_seed"), options.get("cross_level_links")]
    try:
        return [[list(step) for step in steps[:count]], scales and list(scales[:count]), *rest]  # type: ignore[index]
    except TypeError:
        return []


def _options_of(owner: VectorStore) -> Mapping[str, Any]:
    """The options with which the levels were made; nothing where there are none that tell."""
    told = owner.level(0).document.attributes.get(MADE)
    above = [number for number in owner.level_numbers() if number > 0]
    if not isinstance(told, Mapping) or not all(_was_made_so(owner, number, told) for number in above):
        return {}
    return told


def _make(
    owner: VectorStore,
    options: Mapping[str, Any],
    ratios: Sequence[int],
    kept: int,
    generator: np.random.Generator,
    progress: Progress | None,
) -> None:
    """Make the levels above those ``kept`` anew; others that are there go."""
    steps, linked = options["factors"], options["cross_level_links"]
    bin_shape = np.asarray(owner.root.bin_shape) * np.prod([coarsen for coarsen, _ in steps[:kept]])
    content: Content | None = None
    if len(steps) > kept:
        fine = KeptLevel.of(owner.level(kept))
        ask_to_coarsen(fine, tables=True)
        content = _load_objects(fine)
    for number in range(kept + 1, len(steps) + 1):
        coarsen, sparsity = steps[number - 1]
        bin_shape = bin_shape * coarsen
        fine = KeptLevel.of(owner.level(number - 1))  # each block asks for the same documents
        ask_to_coarsen(fine)
        coarse = _Coarse(owner, fine, ratios[number - 1], bin_shape, sparsity, linked=linked)
        content = coarse.make(content, generator)
        if number == kept + 1:
            _forget_old(owner, kept, options)
        try:
            coarse.store_level(number, options)
            block = _root_block(owner, linked)
            describe_levels(owner, range(number + 1), {number: bin_shape}, block)
            end_level(owner.level(number))
        except BaseException:
            with suppress(Exception):
                erase_levels(owner, [number])
            raise
        if progress is not None:
            progress(number, len(steps))
    if len(steps) == kept and (kept == 0 or any(number > kept for number in owner.level_numbers())):
        _forget_old(owner, kept, options if steps else None)


def _tell_of_levels_that_go(owner: VectorStore, made: int) -> None:
    gone = [number for number in owner.level_numbers() if number > made]
    if gone and made:
        what = f"level {gone[0]} is" if len(gone) == 1 else f"levels {gone[0]} to {gone[-1]} are"
        warn_user(
            f"{owner.name}: {what} removed and not made anew: give one (coarsen, sparsity) for each level as factors",
            ZarrUserWarning,
        )


def _forget_old(owner: VectorStore, kept: int, options: Mapping[str, Any] | None) -> None:
    """Remove the levels above those ``kept``, and all links to them; ``options``: of those to come."""
    erase_levels(owner, [number for number in owner.level_numbers() if number > kept])
    forget_levels(owner.level(kept), range(kept + 1, sys.maxsize))
    forget_age(owner, kept, options)


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
        if least > _COARSEST:
            reason = f"chunks of level {number + 1} would be {least} times as large as those of level 0"
            raise DataError(f"{reason}, more than {_COARSEST:g}: give fewer levels, or smaller factors")
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


class _Coarse:
    """The level above another one, made of it block by block: cells of both levels that cover the same space.

    In memory are the elements of one block, what is to be stored, encoded, and, where there are objects, ``content``.
    """

    def __init__(
        self,
        owner: VectorStore,
        fine: Level,
        ratio: int,
        bin_shape: npt.NDArray[np.float64],
        sparsity: float,
        *,
        linked: bool,
    ) -> None:
        root = np.asarray(owner.root.chunk_shape)
        self._owner, self._fine, self._sparsity, self._linked = owner, fine, sparsity, linked
        self._bin_shape, self._chunk_shape = bin_shape, root * ratio
        self._own_ratio = np.rint(np.asarray(fine.document.chunk_shape) / root).astype(np.int64)
        self._ratio = ratio
        self._nesting = Nesting(self._own_ratio, np.full_like(self._own_ratio, ratio))
        self._begin()

    def _begin(self) -> None:
        self._level, self._up, self._down = (NodeParts(self._owner.store, self._fine.path) for _ in range(3))
        self._count = 0
        self._objects: int | None = None

    def make(self, content: Content | None, generator: np.random.Generator) -> Content | None:
        """Plan the level; ``content``: the finer one, where it has objects. Gives the coarser one then.

        Raises :class:`~zardine.errors.CorruptionError` for what is damaged or lost.
        """
        if content is not None:
            return self._make_with_objects(content, generator)
        _over_cells(self._fine, self._make_of)
        return None

    def _make_of(self, keys: Ints, vertices: CellArray) -> int:
        """Plan the level of the cells of ``keys``; gives how many vertices they have."""
        self._begin()
        grid, rows = self._grid(keys), 0
        for cells in self._blocks(keys):
            block = _load(self._fine, keys[cells], vertices)
            self._add(block, block.visible(), grid)
            rows += len(block.positions)
        return rows

    def _make_with_objects(self, content: Content, generator: np.random.Generator) -> Content:
        grid, kept, chosen = self._grid(content.keys), content.visible(), np.zeros(0, np.int64)
        if content.objects is not None:
            chosen = _chosen(content.objects, self._sparsity, generator)
            kept &= content.rows_in(chosen)
        vertices = _vertices(self._fine)
        parts, parent = list[Content](), np.full(len(content.positions), -1, np.int64)
        for cells in self._blocks(content.keys):
            block, rows = _load(self._fine, content.keys[cells], vertices), take_rows(content.row_starts, cells)[1]
            before = self._count
            part, local = self._add(block, kept[rows], grid)
            parent[rows] = np.where(local >= 0, local + before, -1)
            parts.append(_bare(part))
        coarse, places = _joined(content, parts)
        for start in range(0, len(parent), _ROWS_OF_A_BLOCK):
            some = parent[start : start + _ROWS_OF_A_BLOCK]
            some[:] = places[some]
        if content.objects is not None:
            coarse = replace(coarse, objects=_followed(content, content.objects, chosen, parent))
            self._objects = len(content.objects.ids)
        coarse = replace(coarse, groups=content.groups)
        self._level.add(plan_members(coarse, grid.layout))
        return coarse

    def _add(self, block: Content, kept: npt.NDArray[np.bool_], grid: Grid) -> tuple[Content, Ints]:
        """Plan what is made of the rows of a block that are ``kept``."""
        part, parent = coarsened(block, kept, self._bin_shape, self._chunk_shape, self._nesting)
        self._level.add(plan_level(part, grid, always_links=False))
        self._count += len(part.positions)
        if self._linked:
            self._link(block, part, parent, grid)
        return part, parent

    def store_level(self, number: int, made: Mapping[str, Any]) -> None:
        """Store the level as ``number``, which tells how it was ``made``, and links between it and the finer one."""
        more: LevelBlock = {
            "object_sparsity": 1 / self._sparsity,
            "coarsening_method": "per_object",
            "parent_level": number - 1,
            "chunk_shape": self._chunk_shape.tolist(),
            "preserves_object_ids": self._objects is not None or None,
            "inherited_num_objects": self._objects,
            "shared_fragments": self._objects is not None or None,
            "fragments_tile": None,
        }
        level = begin_level(self._owner, number, **more)
        nodes = self._level.nodes()
        paths = {node.path for node in nodes}
        block = new_level(number, self._count, [name for name in FAMILIES if name in paths], **more)
        told = {MADE: {**made, "of": self._fine.document.vertex_count}, UNFINISHED: True}
        down = [Node("links", group()), *self._down.nodes()] if self._linked else []
        up = self._up.nodes()

        def link() -> None:
            if self._linked:
                _store_links(self._owner.level(number - 1), up, 1)

        held = sum(node.cells.nbytes for node in up if isinstance(node.cells, SpooledBlobs))
        fill_level(level, [*nodes, *down], {**block, **told}, link, is_little=held <= _LITTLE)

    def _grid(self, keys: Ints) -> Grid:
        """The grid of the level, which holds every cell that is made of those of ``keys``."""
        if len(keys):
            first = keys.min(axis=0) * self._own_ratio // self._ratio
            last = -(-(keys.max(axis=0) + 1) * self._own_ratio // self._ratio) - 1
            keys = np.stack([first, last])
        level_0 = _vertices(self._owner.level(0))
        grid = grid_of(keys, self._owner.root.bounds, self._chunk_shape.tolist(), level_0.layout)
        return replace(grid, layout=level_0.layout_for(grid.shape))

    def _blocks(self, keys: Ints) -> Iterator[Ints]:
        """Give the numbers of the cells of some blocks at a time, near each other."""
        step = self._nesting.step
        if len(keys) == 0 or step is None:
            yield np.arange(len(keys))
            return
        corners = keys * self._own_ratio
        most = max(1, _ROWS_OF_A_BLOCK * len(keys) // max(1, self._fine.document.vertex_count))
        blocks, number = unique_rows(corners // step)
        while len(blocks) > 1 and step.max() <= _FAR // 2:
            larger = unique_rows(corners // (2 * step))
            if np.bincount(larger[1]).max() > most:
                break
            step, (blocks, number) = 2 * step, larger
        order = np.argsort(number, kind="stable")
        edges = np.searchsorted(number[order], np.arange(len(blocks) + 1)).tolist()
        for which in range(len(blocks)):
            yield order[edges[which] : edges[which + 1]]

    def _link(self, fine: Content, coarse: Content, parent: Ints, grid: Grid) -> None:
        """Plan links from each vertex of a block to the one that stands for it, and back."""
        vertices = _vertices(self._fine)
        own = Grid(vertices.origin, vertices.array.shape, vertices.layout)
        for parts, where, delta in ((self._up, own, 1), (self._down, grid, -1)):
            parts.add(links_to_parents(fine, coarse, parent, self._nesting, where, delta))


def _vertices(level: Level) -> CellArray:
    found = level.cells("vertices")
    if found is None:
        raise CorruptionError("the level has no vertices", array=child(level.path, "vertices"))
    return found


def _store_links(level: Level, links: Sequence[Node], delta: int) -> None:
    nodes: list[Node] = [Node("links", group())] if level.attributes("links") is None else []
    nodes += links
    there = {node.path for node in nodes}
    family = f"links/{signed(delta)}"
    removed = [f"{family}/{name}" for name in level.names(family) if f"{family}/{name}" not in there]
    replace_nodes(level, nodes, removed, level.document.attributes)


def _over_cells(level: Level, work: Callable[[Ints, CellArray], int]) -> None:
    """Do ``work`` with the chunks of a level; it gives how many vertices these have.

    Where those are fewer than the level counts it is done again with all that are stored. Raises
    :class:`~zardine.errors.CorruptionError` where they still are.
    """
    vertices, index = _vertices(level), level.cells("vertex_fragments")
    keys = present_chunks(vertices, index)
    rows = work(keys, vertices)
    if rows != level.document.vertex_count:
        found = stored_chunks(vertices)
        if found is not None and len(found) != len(keys):
            keys = unique_rows(found)[0]
            rows = work(keys, vertices)
        check_all(level, vertices, index, keys, rows)


def _load(level: Level, keys: Ints, vertices: CellArray) -> Content:
    return load_cells(level, keys, fragments=not level.document.tiles, vertices=vertices)


def _load_objects(level: Level) -> Content | None:
    """The objects and groups of a level, and which rows they have; ``None`` where it has neither.

    Of positions there are none: the values are one and the same zero.
    """
    manifests, groups = load_manifests(level), load_groups(level)
    if manifests is None and groups is None:
        return None
    parts: list[Content] = []

    def load(keys: Ints, vertices: CellArray) -> int:
        at_once = max(1, _ROWS_OF_A_BLOCK * len(keys) // max(1, level.document.vertex_count))
        runs = (keys[start : start + at_once] for start in range(0, max(1, len(keys)), at_once))
        parts[:] = (_bare(load_cells(level, run, vertices=vertices)) for run in runs)
        return sum(len(part.positions) for part in parts)

    _over_cells(level, load)
    ask_for_attributes_of_objects(level)
    content = with_objects(level, _one_after_the_other(parts), manifests, attributes=ALL)
    return replace(content, groups=groups)


def _bare(content: Content) -> Content:
    """Content without positions."""
    nothing = np.broadcast_to(np.zeros((), content.positions.dtype), content.positions.shape)
    return replace(content, positions=nothing)


def _one_after_the_other(parts: Sequence[Content]) -> Content:
    """Cells of several parts, each behind those of the one before."""
    starts = starts_of(np.concatenate([np.diff(part.row_starts) for part in parts]))
    before = starts_of(np.concatenate([np.diff(part.fragments.before) for part in parts]))
    lengths = starts_of(np.concatenate([np.diff(part.fragments.starts) for part in parts]))
    tile = all(part.fragments.tile for part in parts)
    if tile:
        rows = np.arange(int(starts[-1]))
    else:
        firsts = starts_of([len(part.positions) for part in parts])[:-1].tolist()
        rows = np.concatenate([part.fragments.rows + first for part, first in zip(parts, firsts, strict=True)])
    shape = (int(starts[-1]), parts[0].positions.shape[1])
    positions = np.broadcast_to(np.zeros((), parts[0].positions.dtype), shape)
    keys = np.concatenate([part.keys for part in parts])
    return Content(keys, starts, positions, Fragments(before, lengths, rows, tile))


def _chosen(objects: Objects, sparsity: float, generator: np.random.Generator) -> Ints:
    """One in ``sparsity`` of the objects that have vertices."""
    present = np.flatnonzero(np.diff(objects.starts) > 0)
    wanted = len(present) if sparsity == 1 else max(1, round(len(present) / sparsity)) if len(present) else 0
    return np.sort(generator.choice(present, wanted, replace=False)) if wanted < len(present) else present


def _joined(content: Content, parts: Sequence[Content]) -> tuple[Content, Ints]:
    """The coarser level of its blocks, and for each row of these, one after the other, its row there; at the end -1."""
    keys = np.concatenate([content.keys[:0], *(part.keys for part in parts)])
    counts = np.concatenate([np.zeros(0, np.int64), *(np.diff(part.row_starts) for part in parts)])
    number = unique_rows(keys)[1]
    order = np.argsort(number)
    starts = starts_of(counts[order])
    places = ranges(starts[number], counts)
    positions = np.broadcast_to(content.positions[:1], (len(places), content.positions.shape[1]))
    return Content(keys[order], starts, positions, each_alone(starts)), np.append(places, -1)


def _followed(content: Content, objects: Objects, chosen: Ints, parent: Ints) -> Objects:
    """The objects as paths through the vertices that stand for theirs; those that are not chosen have none."""
    lengths = np.diff(content.fragments.starts)
    counts, paths = np.zeros(len(objects.ids), np.int64), [np.zeros(0, np.int64)]
    taken = objects.take(chosen) if len(chosen) < len(objects.ids) else objects
    sizes = starts_of(np.where(taken.fragments >= 0, np.append(lengths, 0)[taken.fragments], 0))[taken.starts]
    for first, last in _runs_of(sizes):
        some = replace(content, objects=taken.take(np.arange(first, last)))
        starts, rows = some.rows_of_objects()
        owner, path = row_numbers(np.diff(starts)), parent[rows]
        new = np.ones(len(path), np.bool_)
        new[1:] = (path[1:] != path[:-1]) | (owner[1:] != owner[:-1])
        where = slice(first, last) if taken is objects else chosen[first:last]
        counts[where] = np.bincount(owner[new], minlength=last - first)
        paths.append(path[new])
    return replace(objects, starts=starts_of(counts), fragments=np.concatenate(paths))


def _runs_of(sizes: Ints) -> Iterator[tuple[int, int]]:
    """Cut objects, whose rows start at ``sizes``, into runs of about as many rows as a block."""
    first, count = 0, len(sizes) - 1
    while first < count:
        last = int(np.searchsorted(sizes, sizes[first] + _ROWS_OF_A_BLOCK, side="right")) - 1
        last = min(count, max(last, first + 1))
        yield first, last
        first = last


def _root_block(owner: VectorStore, linked: bool) -> dict[str, Any]:
    """What the root document says of coarser levels."""
    extra = ["preserved_object_ids", "shared_fragments", *(["multiscale_links"] if linked else [])]
    old = [each for each in owner.root.block.get("format_capabilities", ()) if each != "multiscale_links"]
    block: dict[str, Any] = {"format_capabilities": list(dict.fromkeys([*old, *extra]))}
    return block | {"cross_level_depth": 1, "cross_level_storage": "explicit" if linked else "none"}
