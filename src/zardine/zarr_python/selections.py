"""From a batch of zarr-python to one selection of zardine.

zarr-python cuts a selection at the borders of stored objects and hands over one item for each: the key, what of the
object, where in the output. Here the items are put together again, so that the engine plans all of them at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, product
from math import prod
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from zardine.buffers import Ints
from zardine.chunk_grids.axis import Axis
from zardine.indexing.block import Block
from zardine.indexing.selection import AxisList, AxisSelection, AxisSlice, GridSelection, PointSelection

Item: TypeAlias = "tuple[Any, Any, Any, Any, Any]"
"""Where an object is, its specification, what of it, where in the output, and whether that is all of it."""

Coordinates: TypeAlias = "Sequence[tuple[str, ...]]"
"""For each item the grid coordinates of its object, as they stand in the key."""


class _OddBatchError(Exception):
    """The items are not what one selection gives."""


class _Piece(NamedTuple):
    """What of one object is taken along one axis, and where it goes."""

    start: int
    """The first element of the object, in the array."""
    extent: int
    taken: Any
    place: Any


def selection_of(
    items: Sequence[Item], coordinates: Coordinates, axes: tuple[Axis, ...], drop_axes: tuple[int, ...]
) -> GridSelection | PointSelection | None:
    """Return the selection that ``items`` are the parts of; ``None``: there is none, and each stands for itself.

    ``axes``: those of the grid of objects. ``drop_axes``: those that the output has not got, beside those selected by
    an integer. The result of a grid selection has the shape of the output, of points its flat length.
    """
    try:
        if isinstance(items[0][3], tuple):
            return _grid(items, coordinates, axes, drop_axes)
        return _points(items, coordinates, axes)
    except (_OddBatchError, TypeError, ValueError, OverflowError):
        return None


def block_of(
    items: Sequence[Item], coordinates: Coordinates, axes: tuple[Axis, ...], shape: tuple[int, ...]
) -> Block | None:
    """Return the block of elements that the only one of ``items`` asks for, if it is all of an output of ``shape``."""
    taken, placed = items[0][2:4]
    if len(items) != 1 or not isinstance(taken, tuple) or not isinstance(placed, tuple) or len(taken) != len(axes):
        return None
    starts, counts = [], []
    kept: list[slice | int] = []
    lengths: list[int] = []
    for each, name, axis in zip(taken, coordinates[0], axes, strict=True):
        chunk = int(name)
        extent = axis.extent(chunk)
        if isinstance(each, slice):
            start, stop, step = each.indices(extent)
            if step != 1 or stop <= start:
                return None
            count = stop - start
            kept.append(slice(None))
            lengths.append(count)
        elif _is_integer(each) and 0 <= each < extent:
            start, count = int(each), 1
            kept.append(0)
        else:
            return None
        starts.append(axis.start(chunk) + start)
        counts.append(count)
    if tuple(lengths) != shape or len(placed) != len(shape):
        return None
    for each, count in zip(placed, shape, strict=True):
        if not isinstance(each, slice) or each.indices(count) != (0, count, 1):
            return None
    return Block(tuple(starts), tuple(counts), tuple(kept) if len(lengths) < len(axes) else None)


def selection_of_one(taken: Any, coordinates: tuple[str, ...], axes: tuple[Axis, ...]) -> PointSelection:
    """Return the elements that ``taken`` means as an index into the object, whatever NumPy takes it to mean."""
    numbers = [int(each) for each in coordinates]
    extents = tuple(axis.extent(number) for axis, number in zip(axes, numbers, strict=True))
    chosen = np.arange(prod(extents), dtype=np.int64).reshape(extents)[taken]
    inside = np.unravel_index(chosen.reshape(-1), extents) if extents else ()
    starts = [axis.start(number) for axis, number in zip(axes, numbers, strict=True)]
    points = tuple(np.asarray(each, np.int64) + start for each, start in zip(inside, starts, strict=True))
    return PointSelection(points, chosen.shape)


def reach(selection: GridSelection | PointSelection) -> list[int]:
    """Return for each axis one more than the last index that is selected."""
    if isinstance(selection, PointSelection):
        return [int(each.max()) + 1 if len(each) else 0 for each in selection.coordinates]
    ends = []
    for axis in selection.axes:
        if isinstance(axis, AxisSlice):
            ends.append(axis.start + (axis.count - 1) * axis.step + 1 if axis.count else 0)
        else:
            ends.append(int(axis.indices.max()) + 1 if axis.count else 0)
    return ends


def _grid(
    items: Sequence[Item], coordinates: Coordinates, axes: tuple[Axis, ...], drop_axes: tuple[int, ...]
) -> GridSelection:
    ndim = len(axes)
    first = items[0][2]
    if not isinstance(first, tuple) or len(first) != ndim:
        raise _OddBatchError
    integers = [_is_integer(each) for each in first]
    drop = tuple(integer or number in drop_axes for number, integer in enumerate(integers))
    out_axes = [number for number in range(ndim) if not drop[number]]
    if len(items[0][3]) != len(out_axes):
        raise _OddBatchError
    distinct = [tuple(dict.fromkeys(column)) for column in zip(*coordinates, strict=True)]
    if any(dropped and len(each) > 1 for dropped, each in zip(drop, distinct, strict=True)):
        raise _OddBatchError
    if prod(map(len, distinct)) != len(items) or (len(items) > 1 and list(product(*distinct)) != coordinates):
        raise _OddBatchError
    if len(items) > 1:
        samples = _samples(items, [len(each) for each in distinct])
        _check_product(items, samples, out_axes)
    else:
        samples = [[items[0]] for _ in range(ndim)]
    if sum(isinstance(each, np.ndarray) and each.ndim == 1 for each in first) > 1:
        raise _OddBatchError  # NumPy takes these for points
    places = {number: place for place, number in enumerate(out_axes)}
    selected: list[AxisSelection] = []
    for number, axis in enumerate(axes):
        pieces = []
        for name, item in zip(distinct[number], samples[number], strict=True):
            chunk = int(name)
            place = None if drop[number] else item[3][places[number]]
            pieces.append(_Piece(axis.start(chunk), axis.extent(chunk), item[2][number], place))
        selected.append(_axis(pieces))
    return GridSelection(tuple(selected), drop, (False,) * ndim)


def _samples(items: Sequence[Item], counts: list[int]) -> list[list[Item]]:
    """For each axis the items with the first object of all other axes, one for each object of this axis."""
    samples, stride = [], len(items)
    for count in counts:
        stride //= count
        samples.append([items[i * stride] for i in range(count)])
    return samples


def _check_product(items: Sequence[Item], samples: list[list[Item]], out_axes: list[int]) -> None:
    """Raise :class:`_OddBatchError` unless the items are all combinations of what the samples take."""
    taken = product(*[[item[2][number] for item in each] for number, each in enumerate(samples)])
    placed = product(*[[item[3][i] for item in samples[number]] for i, number in enumerate(out_axes)])
    if not _same([item[2] for item in items], list(taken)) or not _same([item[3] for item in items], list(placed)):
        raise _OddBatchError


def _same(found: list[tuple[Any, ...]], expected: list[tuple[Any, ...]]) -> bool:
    try:
        return found == expected  # arrays are told by identity where zarr-python uses one in many items
    except ValueError:
        if len(found) != len(expected) or any(len(a) != len(b) for a, b in zip(found, expected, strict=True)):
            return False
        pairs = chain.from_iterable(zip(a, b, strict=True) for a, b in zip(found, expected, strict=True))
        return all(a is b or (np.array_equal(a, b) if _is_array(a) else a == b) for a, b in pairs)


def _axis(pieces: list[_Piece]) -> AxisSelection:
    """What the pieces of one axis are together."""
    if len(pieces) == 1 and not _is_array(pieces[0].taken):
        return _only(pieces[0])
    whole = _one_slice(pieces)
    if whole is not None:
        return whole
    indices = [_indices(piece) for piece in pieces]
    joined = np.concatenate(indices)
    return AxisList(_placed(joined, [piece.place for piece in pieces], [len(each) for each in indices]))


def _only(piece: _Piece) -> AxisSlice:
    taken = piece.taken
    if not isinstance(taken, slice):
        return AxisSlice(piece.start + _integer(taken, piece.extent), 1, 1)
    start, step, count = _slice(taken, piece.extent)
    if piece.place is not None and _slice(piece.place, count) != (0, 1, count):
        raise _OddBatchError
    return AxisSlice(piece.start + start, step, count)


def _one_slice(pieces: list[_Piece]) -> AxisSlice | None:
    """The slice that the pieces are cut from, if they are cut from one."""
    total, first, step = 0, 0, 1
    for number, piece in enumerate(pieces):
        if not isinstance(piece.taken, slice) or not isinstance(piece.place, slice):
            return None
        start, each, count = _slice(piece.taken, piece.extent)
        if number == 0:
            first, step = piece.start + start, each
        if piece.start + start != first + total * step or (each != step and count > 1):
            return None
        if piece.place != slice(total, total + count):
            return None
        total += count
    return AxisSlice(first, step, total)


def _slice(taken: slice, extent: int) -> tuple[int, int, int]:
    start, stop, step = taken.indices(extent)
    if step < 1:
        raise _OddBatchError
    return start, step, len(range(start, stop, step))


def _indices(piece: _Piece) -> Ints:
    """The elements of the array that a piece takes."""
    taken = piece.taken
    if isinstance(taken, slice):
        start, step, count = _slice(taken, piece.extent)
        return piece.start + start + step * np.arange(count, dtype=np.int64)
    if not _is_array(taken):
        return np.array([piece.start + _integer(taken, piece.extent)], np.int64)
    flat = taken.reshape(-1)
    if flat.dtype == np.bool_:
        if taken.size != piece.extent:
            raise _OddBatchError
        return np.flatnonzero(flat) + piece.start
    return _within(flat, piece.extent) + piece.start


def _within(indices: np.ndarray[Any, Any], extent: int) -> Ints:
    found: Ints = indices.astype(np.int64)
    if found.size and (int(found.min()) < 0 or int(found.max()) >= extent):
        raise _OddBatchError
    return found


def _placed(values: Ints, places: Sequence[Any], counts: Sequence[int]) -> Ints:
    """``values``, which come piece by piece, in the order of the output."""
    if places[0] is None:
        return values
    total = len(values)
    where = np.empty(total, np.int64)
    at = 0
    for place, count in zip(places, counts, strict=True):
        part = np.arange(total, dtype=np.int64)[place] if isinstance(place, slice) else np.asarray(place).reshape(-1)
        if len(part) != count:
            raise _OddBatchError
        where[at : at + count] = part
        at += count
    if at and not (where[0] == 0 and bool((np.diff(where) == 1).all())):
        if int(where.min()) < 0 or not bool((np.bincount(where, minlength=total) == 1).all()):
            raise _OddBatchError
        values = values[np.argsort(where)]
    return values


def _points(items: Sequence[Item], coordinates: Coordinates, axes: tuple[Axis, ...]) -> PointSelection:
    columns: list[list[Ints]] = [[] for _ in axes]
    counts: list[int] = []
    for item, names in zip(items, coordinates, strict=True):
        taken = item[2]
        if not isinstance(taken, tuple) or len(taken) != len(axes) or not axes:
            raise _OddBatchError
        if not all(_is_array(each) and each.ndim == 1 and each.dtype.kind in "iu" for each in taken):
            raise _OddBatchError
        if len({len(each) for each in taken}) != 1:
            raise _OddBatchError
        counts.append(len(taken[0]))
        for column, each, axis, name in zip(columns, taken, axes, names, strict=True):
            chunk = int(name)
            column.append(_within(each, axis.extent(chunk)) + axis.start(chunk))
    places = [item[3] for item in items]
    joined = [np.concatenate(column) for column in columns]
    return PointSelection(tuple(_placed(each, places, counts) for each in joined), (sum(counts),))


def _integer(taken: Any, extent: int) -> int:
    if not _is_integer(taken) or not 0 <= int(taken) < extent:
        raise _OddBatchError
    return int(taken)


def _is_integer(taken: Any) -> bool:
    return isinstance(taken, (int, np.integer)) and not isinstance(taken, bool)


def _is_array(taken: Any) -> bool:
    return isinstance(taken, np.ndarray)


__all__ = ["Coordinates", "Item", "block_of", "reach", "selection_of", "selection_of_one"]
