"""One axis of a plan: which chunks a selection touches, and what of each goes where. Integer arrays throughout.

Row ``i`` of every array speaks of the chunk ``chunks[i]``; chunks are distinct and ascending.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from zardine.buffers import Ints
from zardine.chunk_grids.axis import Axis
from zardine.indexing.selection import AxisList, AxisSelection, AxisSlice

Index: TypeAlias = "slice | Ints"


@dataclass(frozen=True, slots=True, eq=False)
class StridedAxis:
    """Of chunk ``i`` the elements ``first[i] + n * step``, ``n < count[i]``; they go to ``out_first[i] + n``."""

    chunks: Ints
    extents: Ints
    """Full length of each chunk, also where it reaches beyond the array."""
    covered: npt.NDArray[np.bool_]
    """Whether every element of the chunk that lies in the array is selected."""
    whole: npt.NDArray[np.bool_]
    """Whether none of its elements lies beyond the array, besides."""
    first: Ints
    count: Ints
    out_first: Ints
    step: int

    def inner(self, i: int) -> Index:
        """The selected elements of chunk ``i``, as an index into the chunk."""
        first, count = int(self.first[i]), int(self.count[i])
        return slice(first, first + (count - 1) * self.step + 1, self.step)

    def outer(self, i: int) -> Index:
        """Their places in the output."""
        first = int(self.out_first[i])
        return slice(first, first + int(self.count[i]))

    def kernel_form(self) -> tuple[object, ...]:
        """Tag and arrays, as the native kernel takes them."""
        return ("s", self.extents, self.first, self.count, self.out_first, self.step)


@dataclass(frozen=True, slots=True, eq=False)
class ListedAxis:
    """Of chunk ``i`` the elements ``indices[bounds[i]:bounds[i + 1]]``; they go to ``places`` at the same positions."""

    chunks: Ints
    extents: Ints
    covered: npt.NDArray[np.bool_]
    whole: npt.NDArray[np.bool_]
    bounds: Ints
    indices: Ints
    places: Ints | None
    """``None``: the output is in the order of ``indices``."""

    def inner(self, i: int) -> Index:
        """The selected elements of chunk ``i``, as an index into the chunk."""
        return self.indices[self.bounds[i] : self.bounds[i + 1]]

    def outer(self, i: int) -> Index:
        """Their places in the output."""
        low, high = int(self.bounds[i]), int(self.bounds[i + 1])
        return slice(low, high) if self.places is None else self.places[low:high]

    def kernel_form(self) -> tuple[object, ...]:
        """Tag and arrays, as the native kernel takes them."""
        return ("l", self.extents, self.bounds, self.indices, self.places)


AxisPlan: TypeAlias = StridedAxis | ListedAxis


def plan_axis(axis: Axis, selection: AxisSelection) -> AxisPlan:
    """Cut what ``selection`` takes of ``axis`` at the borders of its chunks."""
    if isinstance(selection, AxisSlice):
        return _plan_slice(axis, selection)
    return _plan_list(axis, selection)


def _plan_slice(axis: Axis, selection: AxisSlice) -> StridedAxis:
    start, step, count = selection.start, selection.step, selection.count
    if count == 0:
        none = np.empty(0, np.int64)
        no = np.empty(0, np.bool_)
        return StridedAxis(none, none, no, no, none, none, none, step)
    last = start + (count - 1) * step
    if axis.is_regular and start // axis.runs[0][0] == last // axis.runs[0][0]:
        return _plan_within_one_chunk(axis, selection)
    ends, _ = axis.locate(np.array([start, last], np.int64))
    if int(ends[1]) - int(ends[0]) < count:
        chunks = np.arange(int(ends[0]), int(ends[1]) + 1, dtype=np.int64)
    else:  # long strides over short chunks: most chunks are not touched
        chunks, _ = group_rows(axis.locate(start + step * np.arange(count, dtype=np.int64))[0])
    begins = axis.starts(chunks)
    extents = axis.extents(chunks)
    ends = np.minimum(extents, axis.length - begins) + begins
    before = np.maximum(0, -((start - begins) // step))  # selected elements before each chunk, rounded up
    first = start + before * step
    counts = np.minimum(-((first - ends) // step), count - before)
    touched = counts > 0
    if not touched.all():
        chunks, begins, extents, ends = chunks[touched], begins[touched], extents[touched], ends[touched]
        before, first, counts = before[touched], first[touched], counts[touched]
    covered, whole = counts == ends - begins, counts == extents
    return StridedAxis(chunks, extents, covered, whole, first - begins, counts, before, step)


def _plan_within_one_chunk(axis: Axis, selection: AxisSlice) -> StridedAxis:
    """The same as the general way, for the many small reads that take one chunk."""
    size = axis.runs[0][0]
    chunk = selection.start // size
    begin = chunk * size
    covered = selection.count == min(size, axis.length - begin)
    row = np.array((chunk, size, selection.start - begin, selection.count, 0), np.int64)
    full = np.array((covered, selection.count == size))
    return StridedAxis(row[0:1], row[1:2], full[:1], full[1:], row[2:3], row[3:4], row[4:5], selection.step)


def _plan_list(axis: Axis, selection: AxisList) -> ListedAxis:
    chunk_of, inner = axis.locate(selection.indices)
    places: Ints | None = None
    if len(chunk_of) > 1 and not bool((chunk_of[1:] >= chunk_of[:-1]).all()):
        places = np.argsort(chunk_of, kind="stable")
        chunk_of, inner = chunk_of[places], inner[places]
    chunks, bounds = group_rows(chunk_of)
    begins = axis.starts(chunks)
    extents = axis.extents(chunks)
    valid = np.minimum(extents, axis.length - begins)
    distinct, _ = group_rows(np.sort(selection.indices))  # np.unique loads 5 ms of NumPy when it is used first
    covered = np.searchsorted(distinct, begins + valid) - np.searchsorted(distinct, begins) == valid
    return ListedAxis(chunks, extents, covered, covered & (valid == extents), bounds, inner, places)


def group_rows(ascending: Ints) -> tuple[Ints, Ints]:
    """The distinct values of an ascending array, and the bounds of their runs (one more than there are values)."""
    if len(ascending) == 0:
        return ascending, np.zeros(1, np.int64)
    firsts = np.flatnonzero(np.concatenate(([True], ascending[1:] != ascending[:-1])))
    return ascending[firsts], np.append(firsts, len(ascending)).astype(np.int64)


def combine(indices: tuple[Index, ...]) -> tuple[Any, ...]:
    """One index for each axis as an index that NumPy takes to mean all combinations."""
    if not indices:
        return (...,)  # an empty tuple would give a scalar, and put an array as an object into an object array
    if sum(isinstance(index, np.ndarray) for index in indices) <= 1:
        return indices
    arrays = [np.arange(i.start, i.stop, i.step or 1) if isinstance(i, slice) else i for i in indices]
    return np.ix_(*arrays)
