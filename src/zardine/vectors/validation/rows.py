"""Checking the rows of a level, portion after portion: vertices, fragments, and attributes of both."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from math import prod
from typing import Any

import numpy as np

from zardine.buffers import Ints
from zardine.engine.side_by_side import each_begun
from zardine.errors import CorruptionError, DataError
from zardine.vectors.content.content import Content, Fragments
from zardine.vectors.findings import Finding, error, found_by, guarded, warning
from zardine.vectors.format.grids import bins_of, bins_per_chunk, chunks_of
from zardine.vectors.format.ragged import find_rows, starts_of, unique_rows
from zardine.vectors.reading.kept import KeptLevel
from zardine.vectors.reading.loading import column_of_cells, dtype_of, load_cells, row_column, stored_column
from zardine.vectors.reading.portions import Portions
from zardine.vectors.reading.presence import check_rows_of_values, present_chunks, stored_chunks
from zardine.vectors.storing.cells import CellArray, child
from zardine.vectors.storing.store import Level

AT_ONCE = 2**18
"""Vertices that are in memory together."""


def contents(level: KeptLevel) -> Iterator[Content]:
    """Go through all cells of a level that are stored, each once: positions and fragments. Raises as ``load_cells``."""
    vertices = level.cells("vertices")
    if vertices is None:
        raise CorruptionError("the level has no vertices", array=child(level.path, "vertices"))
    row_bytes = level.owner.root.ndim * dtype_of(vertices, "float32").itemsize
    total = 0

    def load(keys: Ints) -> Iterator[Content]:
        nonlocal total
        portions = Portions(vertices, _by_shard(vertices, keys), AT_ONCE, row_bytes)
        for run in portions:
            content = load_cells(level, run, trust_count=False, vertices=vertices)
            portions.learn(len(content.positions))
            total += len(content.positions)
            yield content

    keys = present_chunks(vertices, level.cells("vertex_fragments"))
    yield from load(keys)
    if total != level.document.vertex_count:  # what is stored counts, not what is listed
        stored = stored_chunks(vertices)
        more = keys[:0] if stored is None else unique_rows(stored)[0]
        yield from load(more[find_rows(keys, more) < 0])


def _by_shard(array: CellArray, keys: Ints) -> Ints:
    """Chunks in the order of the shards that their cells are in, so that each shard is asked for once or twice."""
    if array.array.shards is None or not len(keys):
        return keys
    number = unique_rows((keys - np.asarray(array.origin)) // np.asarray(array.array.shards))[1]
    return keys[np.argsort(number, kind="stable")]


class Outline:
    """Which cells a level has, and how many rows and fragments are in each; what refers to rows is checked with it."""

    def __init__(self) -> None:
        self._keys: list[Ints] = []
        self._rows: list[Ints] = []
        self._fragments: list[Ints] = []
        self.visible = 0
        """Rows that a fragment names: the vertices."""

    def add(self, content: Content) -> None:
        """Take note of some cells."""
        self._keys.append(content.keys)
        self._rows.append(np.diff(content.row_starts))
        self._fragments.append(np.diff(content.fragments.before))
        self.visible += int(content.visible().sum())

    def content(self, rank: int) -> Content:
        """Return all cells, with positions and rows of fragments that take no memory and mean nothing."""
        none = np.zeros(0, np.int64)
        keys = np.concatenate([np.zeros((0, rank), np.int64), *self._keys])
        order = np.lexsort(keys.T[::-1])
        keys = keys[order]
        rows, before = (starts_of(np.concatenate([none, *each])[order]) for each in (self._rows, self._fragments))
        positions = np.broadcast_to(np.zeros((1, 1), np.float32), (int(rows[-1]), 1))
        starts = np.broadcast_to(np.zeros(1, np.int64), (int(before[-1]) + 1,))
        return Content(keys, rows, positions, Fragments(before, starts, none, True))


def parts_of(outline: Content) -> Iterator[Content]:
    """Go through the cells of an outline in parts of about :data:`AT_ONCE` rows, or of one cell."""
    count, start = len(outline.keys), 0
    while start < count:
        most = int(outline.row_starts[start]) + AT_ONCE
        end = max(start + 1, int(np.searchsorted(outline.row_starts, most, side="right")) - 1)
        rows, before = (each[start : end + 1] - each[start] for each in (outline.row_starts, outline.fragments.before))
        fragments = Fragments(before, outline.fragments.starts[: int(before[-1]) + 1], outline.fragments.rows, True)
        yield Content(outline.keys[start:end], rows, outline.positions[: int(rows[-1])], fragments)
        start = end


class RowChecks:
    """What there is to say of positions, chunks, bins, fragments and counts."""

    def __init__(self, level: Level) -> None:
        self._level = level
        self._total = self._visible = self._infinite = self._outside = self._stray = self._hidden = 0
        self._example: tuple[list[float], list[int]] | None = None
        self._tile = True
        self._bins = _bins_of_level(level)
        self._most_bins = self._wrong_bins = 0
        self._all_binned = True

    def add(self, content: Content) -> None:
        """Look at some cells."""
        positions, fragments = content.positions, content.fragments
        visible = int(content.visible().sum())
        self._total += len(positions)
        self._visible += visible
        self._hidden += len(positions) - visible
        self._tile &= fragments.tile
        finite = np.isfinite(positions).all(axis=1)
        self._infinite += int((~finite).sum())
        if self._infinite or not len(positions):
            return
        low, high = np.asarray(self._level.owner.root.bounds)
        for_each_axis = zip(positions.T, low - _slack(low), high + _slack(high), strict=True)
        outside = np.zeros(len(positions), np.bool_)
        for column, a, b in for_each_axis:
            outside |= (column < a) | (column > b)
        self._outside += int(outside.sum())
        own = content.keys[content.cell_of_rows()][:, -positions.shape[1] :]
        stray = (chunks_of(positions, self._level.document.chunk_shape) != own).any(axis=1)
        if stray.any() and self._example is None:
            row = int(np.flatnonzero(stray)[0])
            self._example = positions[row].tolist(), own[row].tolist()
        self._stray += int(stray.sum())
        self._add_bins(content, own)

    def of_rows(self) -> Iterator[Finding]:
        """Yield what was found of positions, chunks, bins and counts."""
        place, named, visible = str(self._level.document.level), self._level.document.vertex_count, self._visible
        if named not in (visible, self._total):
            kind = error if named > visible else warning  # programs forget to count what they add
            yield kind("vertex-count", place, f"vertex_count is {named}; there are {visible}")
        if self._infinite:
            yield error("not-finite", f"{place}/vertices", f"{self._infinite} vertices")
            return
        if self._outside:
            reason = f"{self._outside} vertices are outside of the bounds of the store"
            yield error("bounds", f"{place}/vertices", reason)
        if self._example is not None:
            position, chunk = self._example
            yield error(
                "outside-chunk",
                f"{place}/vertices",
                f"{self._stray} vertices are not in the chunk that holds them, such as {position} in {chunk}: "
                "boxes may miss them",
            )
        if self._bins is None:
            return
        place, count = f"{place}/vertex_fragments", prod(self._bins)
        if self._most_bins > count:
            yield error("too-many-bins", place, f"a chunk has {self._most_bins} fragments, and {count} bins")
        elif self._all_binned and self._wrong_bins:
            reason = f"{self._wrong_bins} points are in another bin than their fragment says"
            yield warning("outside-bin", place, reason)

    def of_fragments(self) -> Iterator[Finding]:
        """Yield what was found of claims about fragments."""
        place = str(self._level.document.level)
        if self._level.document.tiles and not self._tile:
            reason = "fragments_tile is claimed, but fragments do not cut each cell in pieces in order"
            yield error("tile-claim", place, reason)
        if self._hidden:
            yield warning("rows-hidden", f"{place}/vertex_fragments", f"{self._hidden} rows are part of no fragment")

    def _add_bins(self, content: Content, own: Ints) -> None:
        if self._bins is None:
            return
        counts, count = np.diff(content.fragments.before), prod(self._bins)
        self._most_bins = max(self._most_bins, int(counts.max(initial=0)))
        self._all_binned &= bool((counts == count).all()) and count > 1 and content.fragments.tile
        if self._all_binned:
            bins = bins_of(content.positions, own, self._level.owner.root.chunk_shape, self._bins)
            stored = content.fragments.of_rows() - content.fragments.before[content.cell_of_rows()]
            self._wrong_bins += int((bins != stored).sum())


class AttributeChecks:
    """Whether the attributes of vertices and of fragments can be read; each until something is wrong with it."""

    def __init__(self, level: KeptLevel, findings: list[Finding]) -> None:
        self._level, self._findings = level, findings
        self._fine: dict[tuple[str, str], None] = {}
        for family in ("vertex_attributes", "fragment_attributes"):
            place = f"{level.document.level}/{family}"
            for name in guarded(findings, "attribute", place, partial(level.names, family)) or ():
                self._fine[family, name] = None

    def add(self, content: Content) -> None:
        """Read the values for some cells."""
        self._each(lambda family, name: self._read(f"{family}/{name}", content))

    def end(self, outline: Content) -> None:
        """Look for values of cells that the level does not have."""
        self._each(lambda family, name: self._check_others(f"{family}/{name}", outline))

    def _each(self, check: Any) -> None:
        def found(each: tuple[str, str]) -> list[Finding]:
            place = f"{self._level.document.level}/{'/'.join(each)}"
            return found_by(lambda own: guarded(own, "attribute", place, partial(check, *each)))

        for each, of_each in list(each_begun(self._level.owner.store, found, list(self._fine))):
            wrong = of_each()
            if wrong:
                self._findings += wrong
                del self._fine[each]

    def _read(self, relative: str, content: Content) -> None:
        stored = stored_column(self._level, relative, content.keys, _nothing)
        if relative.startswith("vertex_attributes/"):
            row_column(content, *stored).take(content.visible()).decoded()
        else:
            counts = np.diff(content.fragments.before)
            column_of_cells(*stored, content.keys, counts, counts).decoded()

    def _check_others(self, relative: str, outline: Content) -> None:
        array, vertices = self._level.cells(relative), self._level.cells("vertices")
        if array is not None and vertices is not None:
            check_rows_of_values(vertices, outline.keys, None, array)


def _nothing(array: CellArray) -> None:
    """Check nothing."""


def _bins_of_level(level: Level) -> tuple[int, ...] | None:
    """How many bins a chunk has along each axis; ``None`` where fragments are something else."""
    root = level.owner.root
    if root.geometry_types != ("point_cloud",) or level.document.level or level.node("object_index") is not None:
        return None
    try:
        return bins_per_chunk(root.chunk_shape, root.bin_shape)
    except DataError:
        return None


def _slack(corner: np.ndarray[tuple[int], np.dtype[np.float64]]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return np.abs(corner) * 1e-6
