"""The chunk plan: a normalized selection cut at the borders of chunks, and dealt out to stored objects.

A *chunk* here is the unit that one codec chain run encodes: an inner chunk of a shard, or a chunk that is an object by
itself. An *object* is what one key holds: a shard, or again such a chunk. Plans hold integer arrays, never one Python
object per chunk; only :class:`GridPart` and :class:`PointPart` (one per stored object) are handed out one by one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import product
from math import prod
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from zardine.buffers import Ints
from zardine.cache import Cache
from zardine.chunk_grids.axis import Axis
from zardine.indexing.axis_plan import AxisPlan, combine, group_rows, plan_axis
from zardine.indexing.block import BlockPlan
from zardine.indexing.selection import AxisSelection, AxisSlice, GridSelection, PointSelection


@dataclass(frozen=True, slots=True)
class TwoGrids:
    """The grid of stored objects over an array, and the grid of chunks within them.

    ``chunks`` equals ``storage`` where every object is one chunk. Borders of objects are borders of chunks.
    """

    storage: tuple[Axis, ...]
    chunks: tuple[Axis, ...]
    seen: tuple[_SeenPlans, ...] = field(default=(), compare=False, repr=False)
    """For each axis, plans of not too many chunks made lately, since programs come back to the same blocks."""

    def __post_init__(self) -> None:
        if not self.seen:
            object.__setattr__(self, "seen", tuple(Cache(_MOST_SEEN) for _ in self.storage))

    def resized(self, shape: tuple[int, ...]) -> TwoGrids:
        """The same regular grids over an array of another shape, of which the axes that keep their length are kept."""
        storage, chunks, seen = [], [], []
        for length, objects, inner, known in zip(shape, self.storage, self.chunks, self.seen, strict=True):
            same = length == objects.length
            storage.append(objects if same else Axis(length, objects.runs))
            chunks.append(inner if same else storage[-1] if inner is objects else Axis(length, inner.runs))
            seen.append(known if same else Cache(_MOST_SEEN))
        return TwoGrids(tuple(storage), tuple(chunks), tuple(seen))


_MOST_SEEN = 4 * 2**20
"""Bytes of the plans that are remembered for one axis, about."""
_SHORT = 4096
"""Chunks of a plan that is worth remembering."""
_OF_A_PLAN = 4096
"""Bytes that one takes, about, beside those of its chunks: a dozen arrays ..."""
_OF_A_CHUNK = 66
"""... that have so many for each."""


_SeenPlans: TypeAlias = "Cache[AxisSlice, tuple[AxisPlan, _AxisGroups]]"


@dataclass(frozen=True, slots=True, eq=False)
class _AxisGroups:
    """The chunks of one axis plan, grouped by the object they lie in."""

    objects: Ints
    bounds: Ints
    local: Ints
    """Position of each chunk within its object, along this axis."""
    covered: int
    """Of so many chunks, the first ones, all elements that lie in the array are selected; mostly that is all."""
    whole: int
    """So many of them have no elements beyond the array."""


@dataclass(frozen=True, slots=True, eq=False)
class GridPlan:
    """All combinations of the chunks of ``axes``."""

    axes: tuple[AxisPlan, ...]
    groups: tuple[_AxisGroups, ...]

    @property
    def chunk_count(self) -> int:
        """How many chunks are touched."""
        return prod(len(axis.chunks) for axis in self.axes)

    @property
    def object_count(self) -> int:
        """How many stored objects are touched."""
        return prod(len(group.objects) for group in self.groups)

    @property
    def all_whole(self) -> bool:
        """Whether of all chunks all elements are selected, and none of them lies beyond the array."""
        return all(group.whole == len(axis.chunks) for axis, group in zip(self.axes, self.groups, strict=True))

    def kernel_axes(self) -> list[tuple[object, ...]]:
        """The axes as plain tuples of arrays, in the form that the native kernel takes."""
        return [axis.kernel_form() for axis in self.axes]

    def kernel_places(self, strides: tuple[int, ...]) -> list[Ints]:
        """Of each axis what each of its chunks adds to a place in the object's index, as :meth:`GridPart.positions`."""
        return [group.local * stride for group, stride in zip(self.groups, strides, strict=True)]

    def parts(self) -> Iterator[GridPart]:
        """What lies in each object, objects in C order."""
        yield from self._parts([range(len(group.objects)) for group in self.groups])

    def object_coordinates(self) -> Iterator[tuple[int, ...]]:
        """Grid coordinates of all objects, in the order of :meth:`parts`."""
        return product(*(group.objects.tolist() for group in self.groups))

    def rows_of_objects(self, start: int, count: int) -> Ints:
        """Where objects are one chunk each: of ``count`` parts, the first with this number, what :meth:`GridPart.rows`
        gives; shape ``(count, axes)``."""
        numbers = np.arange(start, start + count, dtype=np.int64)
        if not self.groups:
            return np.zeros((count, 0), np.int64)
        return np.stack(np.unravel_index(numbers, [len(group.objects) for group in self.groups]), axis=1)

    def border_parts(self, storage: tuple[Axis, ...]) -> list[GridPart]:
        """Where it takes all that lies in the array of the last objects of an axis, and these reach beyond it.

        ``storage``: the axes of the grid of objects.
        """
        axes = zip(storage, self.axes, self.groups, strict=True)
        cut = [
            number
            for number, (axis, planned, group) in enumerate(axes)
            if len(group.objects) and planned.covered[-1] and axis.is_cut(int(group.objects[-1]))
        ]
        return list(self._last_parts(cut)) if cut else []

    def _last_parts(self, axes: Iterable[int]) -> Iterator[GridPart]:
        """What lies in each object that is the last one touched along some of ``axes``."""
        ranges = [range(len(group.objects)) for group in self.groups]
        for axis in axes:
            yield from self._parts([*ranges[:axis], ranges[axis][-1:], *ranges[axis + 1 :]])
            ranges[axis] = ranges[axis][:-1]

    def _parts(self, ranges: list[range]) -> Iterator[GridPart]:
        axes = []
        for group, which in zip(self.groups, ranges, strict=True):
            objects, bounds = group.objects.tolist(), group.bounds.tolist()
            axes.append([(objects[i], bounds[i], bounds[i + 1]) for i in which])
        for part in product(*axes):
            coordinates, low, high = zip(*part, strict=True) if part else ((), (), ())
            yield GridPart(self, coordinates, low, high)


@dataclass(frozen=True, slots=True, eq=False)
class GridPart:
    """The part of a :class:`GridPlan` in one object: of each axis the chunks from ``low`` to ``high`` (exclusive)."""

    plan: GridPlan
    object: tuple[int, ...]
    low: tuple[int, ...]
    high: tuple[int, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """How many chunks along each axis."""
        return tuple(high - low for low, high in zip(self.low, self.high, strict=True))

    @property
    def count(self) -> int:
        """How many chunks."""
        count = 1
        for low, high in zip(self.low, self.high, strict=True):
            count *= high - low
        return count

    def rows(self) -> Ints:
        """For each chunk, its row in the plan of each axis; shape ``(count, axes)``. Not to be changed."""
        if self.count == 1:
            return np.array([self.low], np.int64)
        rows = _rows_from_zero(self.shape)
        return rows + np.array(self.low, np.int64) if any(self.low) else rows

    def positions(self, strides: tuple[int, ...]) -> Ints:
        """The place of each chunk in the object's index, whose layout along the axes ``strides`` tells."""
        start, several = 0, []
        for group, low, high, stride in zip(self.plan.groups, self.low, self.high, strides, strict=True):
            if high - low == 1:
                start += int(group.local[low]) * stride
            else:
                several.append(group.local[low:high] * stride)
        if not several:
            return np.array([start], np.int64)
        places = several[0] + start
        for each in several[1:]:
            places = (places[:, None] + each).reshape(-1)
        return places

    def covered(self) -> npt.NDArray[np.bool_]:
        """For each chunk, whether all of its elements that lie in the array are selected."""
        return self._all([axis.covered for axis in self.plan.axes])

    def whole(self) -> npt.NDArray[np.bool_]:
        """For each chunk, whether all of its elements are selected, and none of them lies beyond the array."""
        return self._all([axis.whole for axis in self.plan.axes])

    def is_covered(self) -> bool:
        """Whether of all chunks all elements that lie in the array are selected."""
        axes = zip(self.plan.axes, self.plan.groups, self.low, self.high, strict=True)
        return all(high <= group.covered or bool(axis.covered[low:high].all()) for axis, group, low, high in axes)

    def is_whole(self) -> bool:
        """Whether of all chunks all elements are selected, and none of them lies beyond the array."""
        axes = zip(self.plan.axes, self.plan.groups, self.low, self.high, strict=True)
        return all(high <= group.whole or bool(axis.whole[low:high].all()) for axis, group, low, high in axes)

    def chunk(self, i: int) -> tuple[int, ...]:
        """Grid coordinates of chunk ``i``."""
        return tuple(int(axis.chunks[k]) for axis, k in zip(self.plan.axes, self._rows(i), strict=True))

    def chunk_shape(self, i: int) -> tuple[int, ...]:
        """Full shape of chunk ``i``."""
        return tuple(int(axis.extents[k]) for axis, k in zip(self.plan.axes, self._rows(i), strict=True))

    def inner(self, i: int) -> tuple[Any, ...]:
        """The selected elements of chunk ``i``, as an index into the chunk."""
        return combine(tuple(axis.inner(k) for axis, k in zip(self.plan.axes, self._rows(i), strict=True)))

    def outer(self, i: int) -> tuple[Any, ...]:
        """Their places in the output (of the selection's full shape), as an index into it."""
        return combine(tuple(axis.outer(k) for axis, k in zip(self.plan.axes, self._rows(i), strict=True)))

    def _rows(self, i: int) -> tuple[int, ...]:
        rows = []
        for low, high in zip(reversed(self.low), reversed(self.high), strict=True):
            i, k = divmod(i, high - low)
            rows.append(low + k)
        return tuple(reversed(rows))

    def _all(self, columns: list[npt.NDArray[np.bool_]]) -> npt.NDArray[np.bool_]:
        if self.count == 1:
            return np.array([all(column[low] for column, low in zip(columns, self.low, strict=True))])
        return self._combined(np.logical_and, True, columns)

    def _combined(self, operation: np.ufunc, start: Any, columns: list[npt.NDArray[Any]]) -> npt.NDArray[Any]:
        result = np.asarray(start)
        for column, low, high in zip(columns, self.low, self.high, strict=True):
            result = operation(result[..., None], column[low:high])
        return result.reshape(-1)


@dataclass(frozen=True, slots=True, eq=False)
class PointPlan:
    """Points sorted by object, then by chunk, then by the order in which the user named them."""

    objects: tuple[Ints, ...]
    """Grid coordinates of each object, one array for each axis."""
    chunk_bounds: Ints
    """Chunks of object ``i``: rows ``chunk_bounds[i]`` to ``chunk_bounds[i + 1]`` (exclusive)."""
    chunks: tuple[Ints, ...]
    local: tuple[Ints, ...]
    extents: tuple[Ints, ...]
    point_bounds: Ints
    """Points of chunk ``i``: rows ``point_bounds[i]`` to ``point_bounds[i + 1]`` (exclusive)."""
    points: tuple[Ints, ...]
    """Index of each point in its chunk."""
    places: Ints
    """Its place in the flat output."""

    @property
    def chunk_count(self) -> int:
        """How many chunks are touched."""
        return len(self.point_bounds) - 1

    @property
    def object_count(self) -> int:
        """How many stored objects are touched."""
        return len(self.chunk_bounds) - 1

    def border_parts(self, storage: tuple[Axis, ...]) -> list[PointPart]:
        """None: points are not looked at for what they cover."""
        return []

    def object_coordinates(self) -> Iterator[tuple[int, ...]]:
        """Grid coordinates of all objects, in the order of :meth:`parts`."""
        return zip(*(axis.tolist() for axis in self.objects), strict=True)

    def rows_of_objects(self, start: int, count: int) -> Ints:
        """As :meth:`GridPlan.rows_of_objects`; shape ``(count, 1)``."""
        return np.arange(start, start + count, dtype=np.int64).reshape(-1, 1)

    def parts(self) -> Iterator[PointPart]:
        """What lies in each object."""
        for i in range(self.object_count):
            coordinates = tuple(int(axis[i]) for axis in self.objects)
            yield PointPart(self, coordinates, int(self.chunk_bounds[i]), int(self.chunk_bounds[i + 1]))


@dataclass(frozen=True, slots=True, eq=False)
class PointPart:
    """The part of a :class:`PointPlan` in one object: chunks ``low`` to ``high`` (exclusive)."""

    plan: PointPlan
    object: tuple[int, ...]
    low: int
    high: int

    @property
    def count(self) -> int:
        """How many chunks."""
        return self.high - self.low

    def rows(self) -> Ints:
        """For each chunk, its row in the plan; shape ``(count, 1)``."""
        return np.arange(self.low, self.high, dtype=np.int64).reshape(-1, 1)

    def positions(self, strides: tuple[int, ...]) -> Ints:
        """The place of each chunk in the object's index, whose layout along the axes ``strides`` tells."""
        places = np.zeros(self.count, np.int64)
        for local, stride in zip(self.plan.local, strides, strict=True):
            places += local[self.low : self.high] * stride
        return places

    def covered(self) -> npt.NDArray[np.bool_]:
        """Whether all elements of each chunk are selected: of chunks of one element; others are not looked at."""
        single = np.ones(self.count, np.bool_)
        for axis in self.plan.extents:
            single &= axis[self.low : self.high] == 1
        return single

    whole = covered

    def is_covered(self) -> bool:
        """Whether of all chunks all elements are selected: the same."""
        return bool(self.covered().all())

    def chunk(self, i: int) -> tuple[int, ...]:
        """Grid coordinates of chunk ``i``."""
        return tuple(int(axis[self.low + i]) for axis in self.plan.chunks)

    def chunk_shape(self, i: int) -> tuple[int, ...]:
        """Full shape of chunk ``i``."""
        return tuple(int(axis[self.low + i]) for axis in self.plan.extents)

    def inner(self, i: int) -> tuple[Any, ...]:
        """The selected elements of chunk ``i``, as an index into the chunk."""
        rows = self._rows(i)
        return tuple(axis[rows] for axis in self.plan.points) or (None,)

    def outer(self, i: int) -> tuple[Any, ...]:
        """Their places in the flat output."""
        return (self.plan.places[self._rows(i)],)

    def _rows(self, i: int) -> slice:
        return slice(int(self.plan.point_bounds[self.low + i]), int(self.plan.point_bounds[self.low + i + 1]))


ChunkPlan: TypeAlias = GridPlan | PointPlan | BlockPlan
ObjectPart: TypeAlias = GridPart | PointPart | BlockPlan


def plan_grid(selection: GridSelection, grids: TwoGrids) -> GridPlan:
    """Cut a grid selection at the borders of chunks and objects."""
    pairs = [_plan_pair(grids, number, each) for number, each in enumerate(selection.axes)]
    return GridPlan(tuple(axis for axis, _ in pairs), tuple(group for _, group in pairs))


def plan_points(selection: PointSelection, grids: TwoGrids) -> PointPlan:
    """Cut a point selection at the borders of chunks and objects."""
    count = selection.size
    located = [axis.locate(each) for axis, each in zip(grids.chunks, selection.coordinates, strict=True)]
    chunk_of = [chunks for chunks, _ in located]
    object_of = [
        found if chunks == objects else objects.locate(each)[0]
        for chunks, objects, each, found in zip(
            grids.chunks, grids.storage, selection.coordinates, chunk_of, strict=True
        )
    ]
    order = np.lexsort((*reversed(chunk_of), *reversed(object_of))) if chunk_of else np.arange(count, dtype=np.int64)
    chunk_of = [axis[order] for axis in chunk_of]
    object_of = [axis[order] for axis in object_of]
    new_chunk = _changes(chunk_of, count)
    chunk_rows = np.flatnonzero(new_chunk)
    chunks = tuple(axis[chunk_rows] for axis in chunk_of)
    objects_per_chunk = [axis[chunk_rows] for axis in object_of]
    object_rows = np.flatnonzero(_changes(objects_per_chunk, len(chunk_rows)))
    firsts = [
        axis.locate(objects_axis.starts(objects))[0]
        for axis, objects_axis, objects in zip(grids.chunks, grids.storage, objects_per_chunk, strict=True)
    ]
    return PointPlan(
        objects=tuple(axis[object_rows] for axis in objects_per_chunk),
        chunk_bounds=np.append(object_rows, len(chunk_rows)).astype(np.int64),
        chunks=chunks,
        local=tuple(chunk - first for chunk, first in zip(chunks, firsts, strict=True)),
        extents=tuple(axis.extents(chunk) for axis, chunk in zip(grids.chunks, chunks, strict=True)),
        point_bounds=np.append(chunk_rows, count).astype(np.int64),
        points=tuple(inner[order] for _, inner in located),
        places=order.astype(np.int64, copy=False),
    )


def make_plan(selection: GridSelection | PointSelection, grids: TwoGrids) -> ChunkPlan:
    """Cut any selection at the borders of chunks and objects."""
    if isinstance(selection, GridSelection):
        return plan_grid(selection, grids)
    return plan_points(selection, grids)


_ONE_GROUP = np.array((0, 1), np.int64)

_rows_seen: Cache[tuple[int, ...], Ints] = Cache(2**18)
"""Rows of a part that begins where its plan does, by its shape: few shapes occur, again and again."""
_MOST_ROWS = 2**14
"""Bytes of those that are worth remembering."""


def _rows_from_zero(shape: tuple[int, ...]) -> Ints:
    """All rows of a grid of this shape, in C order; shape ``(count, axes)``."""
    rows = _rows_seen.get(shape)
    if rows is None:
        rows = np.ascontiguousarray(np.indices(shape, np.int64).reshape(len(shape), -1).T)
        rows.flags.writeable = False
        if rows.nbytes <= _MOST_ROWS:
            _rows_seen.put(shape, rows, rows.nbytes + _OF_A_PLAN)
    return rows


def _plan_pair(grids: TwoGrids, number: int, selection: AxisSelection) -> tuple[AxisPlan, _AxisGroups]:
    seen = grids.seen[number]
    known = seen.get(selection) if isinstance(selection, AxisSlice) else None
    if known is not None:
        return known
    chunks, objects = grids.chunks[number], grids.storage[number]
    plan = plan_axis(chunks, selection)
    pair = plan, _group_axis(plan, chunks, objects)
    if isinstance(selection, AxisSlice) and len(plan.chunks) <= _SHORT:
        seen.put(selection, pair, _OF_A_PLAN + _OF_A_CHUNK * len(plan.chunks))
    return pair


def _group_axis(plan: AxisPlan, chunks: Axis, objects: Axis) -> _AxisGroups:
    planned, covered, whole = plan.chunks, _count_first(plan.covered), _count_first(plan.whole)
    if chunks == objects:
        bounds, local = np.arange(len(planned) + 1, dtype=np.int64), np.zeros(len(planned), np.int64)
        return _AxisGroups(planned, bounds, local, covered, whole)
    if len(planned) == 1 and chunks.is_regular and objects.is_regular:
        number = int(planned[0])
        per_object = objects.runs[0][0] // chunks.runs[0][0]
        row = np.array((number // per_object, number % per_object), np.int64)
        return _AxisGroups(row[0:1], _ONE_GROUP, row[1:2], covered, whole)
    object_of, _ = objects.locate(chunks.starts(planned))
    distinct, bounds = group_rows(object_of)
    firsts, _ = chunks.locate(objects.starts(object_of))
    return _AxisGroups(distinct, bounds, planned - firsts, covered, whole)


def _count_first(flags: npt.NDArray[np.bool_]) -> int:
    """How many flags are set before the first that is not."""
    return len(flags) if flags.all() else int(flags.argmin())


def _changes(columns: list[Ints], count: int) -> npt.NDArray[np.bool_]:
    """Where a row differs from the one before; the first row does."""
    changed = np.zeros(count, np.bool_)
    changed[:1] = True
    for column in columns:
        changed[1:] |= column[1:] != column[:-1]
    return changed
