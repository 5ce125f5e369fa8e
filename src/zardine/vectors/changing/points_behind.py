"""Adding points to cells that are there: their rows follow those of the cells, as bytes behind bytes.

The usual case only: a cell is one fragment, attributes are those that there are, in the same data type, and shards are
files. All else is left to :mod:`~zardine.vectors.changing.patching`, with the same outcome.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from zardine.buffers import Ints
from zardine.vectors.changing.patching import Patch, UnfitError, texts_in, texts_of
from zardine.vectors.content.content import Content
from zardine.vectors.format.cell_documents import NONEMPTY
from zardine.vectors.format.change_log import Changed
from zardine.vectors.format.fragment_index import decode_ranges, encode_tile
from zardine.vectors.reading.kept import KeptLevel
from zardine.vectors.reading.loading import dtype_of, row_shape_of
from zardine.vectors.reading.presence import same_list
from zardine.vectors.storing.cells import CellArray
from zardine.vectors.storing.held_cells import AlikeShards, HeldChange
from zardine.vectors.storing.steady import find_alike
from zardine.vectors.storing.store import Level


@dataclass(frozen=True, slots=True, eq=False)
class Arrays:
    """The arrays of a level that points are added to, if rows may be put behind those that are there."""

    names: list[str]
    """Of attributes."""
    arrays: list[CellArray]
    """Vertices, attributes, and last the index of fragments."""
    paths: list[str]
    rows: list[tuple[np.dtype[Any], tuple[int, ...], int]]
    """Data type and shape of a row of each, but of the index, and bytes of it."""
    listed: list[frozenset[Any]]
    """What chunks each lists."""
    alike: AlikeShards | None

    @classmethod
    def of(cls, level: Level, names: list[str]) -> Arrays | None:
        paths = ["vertices", *(f"vertex_attributes/{name}" for name in names), "vertex_fragments"]
        arrays = [each for each in map(level.cells, paths) if each is not None]
        if len(arrays) < len(paths) or set(level.names("vertex_attributes")) != set(names):
            return None
        columns, index = arrays[:-1], arrays[-1]
        if not same_list(arrays[0], index) or any(each.attributes.get("encoding", "raw") != "raw" for each in columns):
            return None
        shapes = [(level.owner.root.ndim,), *map(row_shape_of, columns[1:])]
        types = [dtype_of(each, "float32", text=True) for each in columns]
        rows = [(dtype, shape, dtype.itemsize * prod(shape)) for dtype, shape in zip(types, shapes, strict=True)]
        try:
            listed = [texts_of(each.attributes.get(NONEMPTY)) for each in arrays]
        except UnfitError:
            return None
        same = all((each.origin, each.array.shape) == (index.origin, index.array.shape) for each in columns)
        alike = AlikeShards.of(level.path, [each.array for each in arrays]) if same else None
        return cls(names, arrays, paths, rows, listed, alike)

    def take(self, columns: Sequence[npt.NDArray[Any]], keys: npt.NDArray[np.int64]) -> bool:
        """Whether values in these columns can be put behind those of the chunks ``keys``."""
        for values, (dtype, shape, _) in zip(columns, self.rows, strict=True):
            if values.dtype != dtype or values.shape[1:] != shape:
                return False
        return self.are_listed(keys)

    def are_listed(self, keys: Ints) -> bool:
        """Whether all arrays say that they have cells for chunks."""
        texts = texts_in(keys)
        return all(text in listed for listed in self.listed for text in texts)

    def cells_of(self, keys: Ints) -> Ints | None:
        """The cells of chunks, which all arrays have; ``None`` where one does not lie in the grid, or is not stored."""
        return self._inside(keys) if self.are_listed(keys) else None

    def hold(self, keys: npt.NDArray[np.int64]) -> HeldChange | None:
        """Hold the cells of chunks; ``None`` where that is not to be had."""
        cells = None if self.alike is None else self._inside(keys)
        return None if self.alike is None or cells is None else self.alike.hold(cells)

    def _inside(self, keys: Ints) -> Ints | None:
        array = self.arrays[0]
        if len(keys) > 1 and not array.inside(keys).all():
            return None
        cells: Ints = keys - array.origin
        first = zip(cells[0].tolist(), array.array.shape, strict=True)
        return cells if all(0 <= number < size for number, size in first) else None


def points_behind(level: Level, new: Content) -> Patch | None:
    """What adding points comes to that are one fragment in each of their cells; ``None`` for all that is unusual.

    Where its cells are held, who stores it lets go of them.
    """
    found = arrays_of(level, list(new.vertex_attributes))
    if found is None or len(new.keys) == 0 or new.fragments.count != len(new.keys) or new.keys.shape[1] != level.rank:
        return None
    columns = [new.positions, *(column.values for column in new.vertex_attributes.values())]
    if any(column.categories is not None for column in new.vertex_attributes.values()):
        return None
    if not found.take(columns, new.keys):
        return None
    held = found.hold(new.keys)
    if held is not None:
        try:
            patch = _patch(level, new, found, columns, [held.cells(number) for number in range(len(found.arrays))])
        except BaseException:
            with held:
                raise
        if patch is None:
            with held:
                return None
        patch.held = held
        return patch
    if isinstance(level, KeptLevel) and level.is_again:
        return None
    there = find_alike(found.arrays, new.keys)
    read = None if there is None else there.read(*range(len(found.arrays)))
    return None if read is None else _patch(level, new, found, columns, [each.apart() for each in read])


def arrays_of(level: Level, names: list[str]) -> Arrays | None:
    """The arrays of a level whose points have these attributes; ``None`` where rows may not be put behind theirs."""
    if not isinstance(level, KeptLevel):
        return Arrays.of(level, names)
    known = level.forms.get("points_behind")
    if known is None or known.names != names:
        known = level.forms["points_behind"] = Arrays.of(level, names)
    return known


def _patch(
    level: Level, new: Content, found: Arrays, columns: Sequence[npt.NDArray[Any]], old: list[list[bytes]]
) -> Patch | None:
    """Put the rows behind those of ``old`` cells of the arrays."""
    (*_, size), *_ = found.rows
    counts = [len(cell) // size for cell in old[0]]
    if not all(counts):
        return None
    for cells, (_, _, size) in zip(old, found.rows, strict=False):
        if any(len(cell) != count * size for cell, count in zip(cells, counts, strict=True)):
            return None
    if any(encode_tile(count) != cell for count, cell in zip(counts, old[-1], strict=True)):
        lengths = np.fromiter(map(len, old[-1]), np.int64, len(counts))
        fragments = decode_ranges(bytearray().join(old[-1]), lengths, np.asarray(counts))
        if fragments is None or not fragments.tile or (fragments.numbers != 1).any():
            return None
    patch = Patch(level, new, len(new.positions), keeps_rows=True)
    edges = list(pairwise(new.row_starts.tolist()))
    put = [
        [cell + values[start:stop].tobytes() for cell, (start, stop) in zip(some, edges, strict=True)]
        for values, some in zip(columns, old, strict=False)
    ]
    put.append([encode_tile(count + stop - start) for count, (start, stop) in zip(counts, edges, strict=True)])
    for path, array, some in zip(found.paths, found.arrays, put, strict=True):
        patch.known[path] = array.array
        patch.cells[path] = Changed(new.keys, some)
    return patch


__all__ = ["Arrays", "arrays_of", "points_behind"]
