"""Adding points to cells that are there: their rows follow those of the cells, as bytes behind bytes.

The usual case only: a cell is one fragment, attributes are those that there are, in the same data type, and shards are
files. All else is left to :mod:`~zardine.vectors.changing.patching`, with the same outcome.
"""

from __future__ import annotations

from itertools import pairwise
from math import prod

import numpy as np

from zardine.vectors.changing.patching import Patch, UnfitError, is_listed
from zardine.vectors.content.content import Content
from zardine.vectors.format.change_log import Changed
from zardine.vectors.format.fragment_index import decode_ranges, encode_tiles
from zardine.vectors.reading.loading import dtype_of, row_shape_of
from zardine.vectors.reading.presence import same_list
from zardine.vectors.storing.cells import CellArray
from zardine.vectors.storing.steady import find_alike
from zardine.vectors.storing.store import Level


def points_behind(level: Level, new: Content) -> Patch | None:
    """What adding points comes to that are one fragment in each of their cells; ``None`` for all that is unusual."""
    index, names = level.cells("vertex_fragments"), list(new.vertex_attributes)
    opened = [level.cells(path) for path in ("vertices", *(f"vertex_attributes/{name}" for name in names))]
    arrays = [each for each in opened if each is not None]
    if index is None or len(arrays) < len(opened) or set(level.names("vertex_attributes")) != set(names):
        return None
    if len(new.keys) == 0 or new.fragments.count != len(new.keys) or new.keys.shape[1] != level.rank:
        return None
    columns = [new.positions, *(column.values for column in new.vertex_attributes.values())]
    shapes = [(level.owner.root.ndim,), *map(row_shape_of, arrays[1:])]
    plain = all(column.categories is None for column in new.vertex_attributes.values())
    for array, values, shape in zip(arrays, columns, shapes, strict=True):
        plain &= array.attributes.get("encoding", "raw") == "raw" and values.shape[1:] == shape
        plain &= dtype_of(array, "float32", text=True) == values.dtype
    if not plain or not same_list(arrays[0], index) or not _are_listed([*arrays, index], new):
        return None
    found = find_alike([*arrays, index], new.keys)
    cells = None if found is None else found.read(*range(len(arrays) + 1))
    if cells is None:
        return None
    sizes = [values.itemsize * prod(values.shape[1:]) for values in columns]
    counts = cells[0].lengths // sizes[0]
    if any((each.lengths != counts * size).any() for each, size in zip(cells, sizes, strict=False)):
        return None
    fragments = decode_ranges(cells[-1].data, cells[-1].lengths, counts)
    if fragments is None or not fragments.tile or (fragments.numbers != 1).any() or not counts.all():
        return None
    patch = Patch(level, new, len(new.positions), keeps_rows=True)
    edges = list(pairwise(new.row_starts.tolist()))
    for array, values, old in zip(arrays, columns, cells, strict=False):
        more = (values[start:stop].tobytes() for start, stop in edges)
        _put(patch, array, new, [cell + rows for cell, rows in zip(old.apart(), more, strict=True)])
    _put(patch, index, new, list(encode_tiles(np.arange(len(new.keys) + 1), counts + np.diff(new.row_starts))))
    return patch


def _are_listed(arrays: list[CellArray], new: Content) -> bool:
    try:
        return all(is_listed(array, new.keys).all() for array in arrays)
    except UnfitError:
        return False


def _put(patch: Patch, array: CellArray, new: Content, cells: list[bytes]) -> None:
    relative = array.array.path[len(patch.level.path) + 1 :]
    patch.known[relative] = array.array
    patch.cells[relative] = Changed(new.keys, cells)


__all__ = ["points_behind"]
