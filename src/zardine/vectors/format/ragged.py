"""Rows of different lengths as two arrays: all values one after the other, and where each row starts."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from zardine.buffers import Ints
from zardine.kernel import KERNEL
from zardine.settings import thread_count


def starts_of(counts: npt.ArrayLike) -> Ints:
    """Where each row starts, and at the end how many values there are: one longer than ``counts``."""
    lengths = np.asarray(counts, np.int64)
    starts = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=starts[1:])
    return starts


def ranges(starts: npt.ArrayLike, counts: npt.ArrayLike) -> Ints:
    """``start, start + 1, … start + count - 1`` for each pair, one after the other."""
    first, lengths = np.asarray(starts, np.int64), np.asarray(counts, np.int64)
    if len(first) == 0:
        return np.zeros(0, np.int64)
    before = starts_of(lengths)
    return np.repeat(first - before[:-1], lengths) + np.arange(before[-1])


def row_numbers(counts: npt.ArrayLike) -> Ints:
    """For each value the number of its row."""
    lengths = np.asarray(counts, np.int64)
    return np.repeat(np.arange(len(lengths)), lengths)


def find_places(starts: Ints, values: Ints) -> tuple[Ints, Ints]:
    """For each of some values, named by their places in all, the number of its row, and its place in that."""
    if KERNEL is not None and values.size >= _FEWEST:
        plain = np.ascontiguousarray(starts, np.int64), np.ascontiguousarray(values, np.int64)
        found = KERNEL.find_cells(*plain)
        rows, places = (np.frombuffer(each, np.int64).reshape(values.shape) for each in found)
        return rows, places
    rows = row_numbers(np.diff(starts))[values]
    return rows, values - starts[rows]


def take_rows(starts: Ints, rows: Ints) -> tuple[Ints, Ints]:
    """Some rows of a ragged array: the new starts, and the places of their values in the old one."""
    counts = starts[rows + 1] - starts[rows]
    return starts_of(counts), ranges(starts[rows], counts)


_MANY_BYTES = 2**17
"""Of rows that are worth a call of the kernel."""

_FEWEST = 2**10
"""Numbers that are worth a call of the kernel."""

_SIDE_BY_SIDE = 256
"""Rows that are looked at as one, which is four times as fast as column by column."""


_A_HANDFUL = 512
"""Rows that one call of NumPy looks at sooner than one for each column."""


def bounds_of(rows: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """The lowest and the highest value of each column."""
    if len(rows) <= _A_HANDFUL:
        return rows.min(axis=0), rows.max(axis=0)
    found = extent_of(rows)
    if found is not None:
        return found
    low = high = rows
    if len(rows) >= 4 * _SIDE_BY_SIDE and rows.flags.c_contiguous and rows.shape[1]:
        whole = len(rows) // _SIDE_BY_SIDE * _SIDE_BY_SIDE
        wide, rest = rows[:whole].reshape(-1, _SIDE_BY_SIDE * rows.shape[1]), rows[whole:]
        low = np.concatenate([wide.min(axis=0).reshape(_SIDE_BY_SIDE, -1), rest])
        high = np.concatenate([wide.max(axis=0).reshape(_SIDE_BY_SIDE, -1), rest])
    return np.array([column.min() for column in low.T]), np.array([column.max() for column in high.T])


def extent_of(rows: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[Any]] | None:
    """:func:`bounds_of` many rows of finite floats, by the kernel; ``None`` for others, and where one is not finite."""
    is_plain = rows.dtype in (np.dtype("f4"), np.dtype("f8")) and rows.ndim == 2 and rows.flags.c_contiguous
    if KERNEL is None or not is_plain or rows.nbytes < _MANY_BYTES:
        return None
    plain = rows.reshape(-1).view(np.uint8)
    found = KERNEL.find_extent(plain, rows.itemsize == 8, rows.shape[1], thread_count())
    return None if found is None else (np.array(found[0], rows.dtype), np.array(found[1], rows.dtype))


_FEW = 2**16
"""Rows that the kernel looks at sooner than that they are prepared to be looked at by NumPy."""


def _are_few(rows: npt.NDArray[Any]) -> bool:
    return len(rows) <= _FEW and rows.dtype == np.int64 and rows.flags.c_contiguous


def unique_rows(rows: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], Ints]:
    """The distinct rows of a matrix of integers in ascending (lexicographic) order, and for each row its number."""
    if len(rows) == 0:
        return rows, np.zeros(0, np.int64)
    if len(rows) == 1:
        return rows, np.zeros(1, np.int64)
    if rows.shape[1] == 0:
        return rows[:1], np.zeros(len(rows), np.int64)
    found = KERNEL.unique_rows(rows, rows.shape[1]) if KERNEL is not None and _are_few(rows) else None
    if found is not None:
        return np.frombuffer(found[0], np.int64).reshape(-1, rows.shape[1]), np.frombuffer(found[1], np.int64)
    low, high = bounds_of(rows)
    widths = [int(b) - int(a) + 1 for a, b in zip(low, high, strict=True)]
    cells = 1
    for width in widths:
        cells *= width
    if cells < 2**62:
        distinct, numbers = unique_numbers(np.ravel_multi_index(tuple((rows - low).T), widths), cells)
        return np.stack(np.unravel_index(distinct, widths), axis=1) + low, numbers
    distinct, numbers = np.unique(rows, axis=0, return_inverse=True)
    return distinct, numbers.astype(np.int64).reshape(-1)


def unique_numbers(values: Ints, count: int) -> tuple[Ints, Ints]:
    """The distinct ones of ``values``, from 0 to below ``count``, ascending, and for each value its place there."""
    if count > 4 * len(values) + 1024:
        distinct, places = np.unique(values, return_inverse=True)
        return distinct, places.astype(np.int64).reshape(-1)
    seen = np.zeros(count, np.bool_)  # counting is faster than sorting
    seen[values] = True
    return np.flatnonzero(seen), (np.cumsum(seen) - 1)[values]


def are_distinct(numbers: Ints) -> bool:
    """Whether none of ``numbers`` is there twice."""
    return bool((numbers[1:] > numbers[:-1]).all()) or len(np.unique(numbers)) == len(numbers)


def _size_of_rows(values: npt.NDArray[Any]) -> int:
    """Bytes of a row, where rows are plain bytes one after the other; else 0."""
    is_plain = values.flags.c_contiguous and values.dtype.kind in "biufc"
    return values.itemsize * prod(values.shape[1:]) if is_plain else 0


def rows_at(values: npt.NDArray[Any], rows: Ints) -> npt.NDArray[Any]:
    """The rows of an array at these places. (``take`` is three times as fast as an index that is an array.)"""
    size = _size_of_rows(values)
    if KERNEL is None or not size or len(rows) * size < _MANY_BYTES:
        return values.take(rows, axis=0)
    plain = values.reshape(-1).view(np.uint8)
    taken = KERNEL.take_rows(plain, size, np.ascontiguousarray(rows, np.int64), thread_count())
    return np.frombuffer(taken, values.dtype).reshape(len(rows), *values.shape[1:])


def stable_order(numbers: Ints, count: int) -> Ints:
    """The stable ascending order of ``numbers``, which are from 0 to below ``count``."""
    if KERNEL is not None and len(numbers) >= _FEWEST and count <= len(numbers):
        return np.frombuffer(KERNEL.stable_order(np.ascontiguousarray(numbers, np.int64), count), np.int64)
    if count <= 2**16:
        return np.argsort(numbers.astype(np.uint16), kind="stable")  # by counting
    return np.argsort(numbers, kind="stable")


def runs_at(values: npt.NDArray[Any], first: Ints, lengths: Ints) -> npt.NDArray[Any]:
    """:func:`rows_at` of ``lengths`` rows from each of ``first`` on."""
    size = _size_of_rows(values)
    if KERNEL is None or not size or len(values) * size < _MANY_BYTES:
        return rows_at(values, ranges(first, lengths))
    spans = (np.ascontiguousarray(each, np.int64) for each in (first, lengths))
    taken = KERNEL.take_runs(values.reshape(-1).view(np.uint8), size, *spans, thread_count())
    return np.frombuffer(taken, values.dtype).reshape(-1, *values.shape[1:])


def find_runs(numbers: Ints, edges: Ints) -> Ints:
    """Where runs of equal ``numbers`` begin, which are cut at the rows ``edges`` (ascending)."""
    if KERNEL is not None and len(numbers) >= _FEWEST:
        plain = (np.ascontiguousarray(each, np.int64) for each in (numbers, edges))
        return np.frombuffer(KERNEL.find_runs(*plain), np.int64)
    begins = np.ones(len(numbers), np.bool_)
    begins[1:] = numbers[1:] != numbers[:-1]
    begins[edges] = True
    return np.flatnonzero(begins)


def slices_of(rows: Ints) -> tuple[slice, ...] | None:
    """The slices of which ``rows`` are all combinations, the last column running fastest; ``None`` for other rows."""
    if len(rows) == 0:
        return None
    low, high = rows[0], rows[-1]
    shape = (high - low + 1).tolist()
    if min(shape, default=1) < 1 or prod(shape) != len(rows):
        return None
    if len(rows) > 1 and (np.stack(np.unravel_index(np.arange(len(rows)), shape), axis=1) + low != rows).any():
        return None
    return tuple(slice(first, last + 1) for first, last in zip(low.tolist(), high.tolist(), strict=True))


def find_rows(table: npt.NDArray[Any], rows: npt.NDArray[Any]) -> Ints:
    """The number of each of ``rows`` in ``table`` (distinct rows of integers in any order); -1 where it is missing."""
    if len(table) == 0 or len(rows) == 0:
        return np.full(len(rows), -1, np.int64)
    if np.array_equal(table, rows):
        return np.arange(len(rows))
    if KERNEL is not None and _are_few(table) and _are_few(rows) and table.shape[1] == rows.shape[1]:
        found = KERNEL.find_rows(table, rows, rows.shape[1])
        if found is not None:
            return np.frombuffer(found, np.int64)
    _, numbers = unique_rows(np.concatenate([table, rows]).astype(np.int64))
    place = np.full(int(numbers.max()) + 1, -1, np.int64)
    place[numbers[: len(table)]] = np.arange(len(table))
    return place[numbers[len(table) :]]
