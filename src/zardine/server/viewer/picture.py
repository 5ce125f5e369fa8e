"""A picture of two axes of an array, whatever its size, within so many seconds: all of it, or a sample that grows."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from math import prod
from threading import Lock
from typing import Any, Final

import numpy as np

from zardine.buffers import Ints
from zardine.chunk_grids import Axis
from zardine.engine.read_each import SeenChunk
from zardine.engine.workers import for_each, most_requests
from zardine.indexing.plan import PointPart
from zardine.server.viewer.canvas import (
    DAMAGED,
    MISSING,
    Canvas,
    Frame,
    Reduction,
    numbers_of,
    spread,
)
from zardine.server.viewer.snapshot import Snapshot
from zardine.server.viewer.values import drawn_dtype, numbers
from zardine.settings import thread_count

_WHOLE: Final = 2**26
"""Bytes of decoded chunks up to which all are read at once; of more, a sample is read, then larger ones."""
_ROUND: Final = 2**25
"""Bytes of decoded chunks that a sample is enlarged by."""
_MOST_IN_ROUND: Final = 2**12
"""Chunks of the same."""
_FIRST: Final = 16
"""Chunks of the first sample, at least: if some are not stored, perhaps none is, and a listing tells of all."""
_AT_ONCE: Final = 64
"""Chunks that are all read at once, without a first sample."""
_MOST_SAMPLED: Final = 2**16
"""Chunks that one picture reads."""
_MOST_ASKED: Final = 2**12
"""Reads of objects by one picture where each is a request."""
_MOST_PLACES: Final = 2**22
"""Places of the grid of chunks that are looked at, those of objects that are not stored included."""
_FEW_OBJECTS: Final = 2**10
"""Objects that are asked for one by one where others were not stored; of more there is a listing."""
_FEW_FAR: Final = 2**4
"""The same where each is a request."""

_ONE: Final = Axis.regular(1, 1)
"""An axis that a picture does not have."""

MOST_PIXELS: Final = 2**22


@dataclass(frozen=True, slots=True)
class View:
    """What a picture shows of an array: two axes, one index of each other, and how elements become pixels.

    ``down`` is ``None`` for a picture of one row. ``at`` has an index for each axis; those of the two do not
    count.
    """

    down: int | None
    across: int
    at: tuple[int, ...]
    rows: Frame
    columns: Frame
    reduction: Reduction = "nearest"
    field: str | None = None
    part: str = "abs"


@dataclass(slots=True, eq=False)
class Picture:
    """The picture of a ``view``, as far as it is drawn."""

    snapshot: Snapshot
    view: View
    canvas: Canvas
    rows: _Touched
    columns: _Touched
    seen: int = 0
    """Chunks that were read, or are known not to be stored."""
    damaged: int = 0
    missing: int = 0
    sampled: int = 0
    """Chunks that were in a sample, but those of objects that were known not to be stored."""
    cursor: int = 0
    """The number of the next place, as :func:`~zardine.server.viewer.canvas.spread` counts them."""
    left: list[tuple[int, int]] = field(default_factory=list)
    """Chunks of the present sample that are not read yet, by their places along the two axes."""
    absent: set[tuple[int, int]] = field(default_factory=set)
    """Objects that are drawn as not stored, in the same way."""
    asked: int = 0
    """How often objects were read."""
    has_looked: bool = False
    """Whether a listing was asked for."""
    drawing: Any = field(default_factory=Lock)
    """Held by the answer that draws."""
    _guard: Any = field(default_factory=Lock)

    @property
    def total(self) -> int:
        """How many chunks the picture is made of."""
        return len(self.rows) * len(self.columns)

    @property
    def is_all_taken(self) -> bool:
        """Whether nothing is left to be chosen, or as much was as a picture reads."""
        is_enough = self.sampled >= _MOST_SAMPLED or (
            self.asked >= _MOST_ASKED and not self.snapshot.array.store.has_cheap_looks
        )
        return is_enough or self.cursor >= min(numbers_of(len(self.rows), len(self.columns)), _MOST_PLACES)

    @property
    def is_finished(self) -> bool:
        """Whether nothing is left to be read."""
        return self.seen >= self.total or (self.is_all_taken and not self.left)


def objects_below(snapshot: Snapshot, view: View) -> list[range]:
    """Return the grid coordinates, along each axis, of the stored objects that a picture is made of."""
    grids = snapshot.array._handle.layout.grids.storage
    ranges = [range(grid.find(i), grid.find(i) + 1) for grid, i in zip(grids, view.at, strict=True)]
    for axis, frame in ((view.down, view.rows), (view.across, view.columns)):
        if axis is not None:
            ranges[axis] = range(grids[axis].find(frame.start), grids[axis].find(frame.stop - 1) + 1)
    return ranges


def picture_of(snapshot: Snapshot, view: View) -> Picture:
    """Return the picture of a view as it was left, or an empty one."""
    known: Picture | None = snapshot.kept.pictures.get((snapshot.number, view))
    if known is not None:
        return known
    dtype = snapshot.array.dtype if view.field is None else snapshot.array.dtype[view.field]
    canvas = Canvas(view.rows, view.columns, view.reduction, _pixel_dtype(drawn_dtype(dtype), view.reduction))
    nearest = view.reduction == "nearest"
    grids = snapshot.array._handle.layout.grids
    rows, columns = (
        _Touched(
            _ONE if axis is None else grids.chunks[axis],
            _ONE if axis is None else grids.storage[axis],
            frame,
            nearest=nearest,
        )
        for axis, frame in ((view.down, view.rows), (view.across, view.columns))
    )
    made = Picture(snapshot, view, canvas, rows, columns)
    snapshot.kept.pictures.put((snapshot.number, view), made, canvas.nbytes)
    return made


def draw(picture: Picture, seconds: float, gone: Callable[[], bool]) -> None:
    """Read chunks and draw them until all are drawn, ``seconds`` are over, or nobody waits any more.

    At least something is read. If all chunks together are few bytes, they are read at once; else samples from all over
    the picture are, each as large as all before. Each stored object is asked once for its chunks of a sample.
    """
    deadline = time.monotonic() + seconds
    if not picture.drawing.acquire(timeout=seconds):
        return  # another answer is drawing it

    def is_over() -> bool:
        return time.monotonic() >= deadline or gone()

    try:
        while not (picture.is_finished or gone()):
            if not picture.left:
                _take_sample(picture, is_over)
            _read_sample(picture, is_over)
            if is_over():
                return
            _look_for_absent(picture)
    finally:
        picture.drawing.release()


def _take_sample(picture: Picture, is_over: Callable[[], bool]) -> None:
    """Choose the chunks that are read next; those of objects that are known not to be stored are drawn instead."""
    nbytes = picture.snapshot.array._handle.layout.chunk_nbytes
    wanted = min(max(picture.sampled, _FIRST), _MOST_IN_ROUND, max(_ROUND // max(nbytes, 1), thread_count()))
    if picture.total * nbytes <= _WHOLE and picture.total <= (_MOST_IN_ROUND if picture.sampled else _AT_ONCE):
        wanted = picture.total
    place = [each.start for each in objects_below(picture.snapshot, picture.view)]
    down, across = picture.view.down, picture.view.across
    known: dict[tuple[int, int], bool] = {}
    while len(picture.left) < wanted and not picture.is_all_taken:
        count = max(wanted, _AT_ONCE) if picture.sampled else wanted
        places = spread(len(picture.rows), len(picture.columns), picture.cursor, count)
        picture.cursor += count
        rows, columns = picture.rows.chunks(places[:, 0]), picture.columns.chunks(places[:, 1])
        objects = zip(picture.rows.objects(rows), picture.columns.objects(columns), strict=True)
        for row, column, inside in zip(rows.tolist(), columns.tolist(), objects, strict=True):
            if inside not in known:
                if down is not None:
                    place[down] = inside[0]
                place[across] = inside[1]
                known[inside] = inside in picture.absent or picture.snapshot.is_absent(tuple(place))
                if known[inside]:
                    _add_absent(picture, tuple(place))
            if not known[inside]:
                picture.left.append((row, column))
        if is_over():
            break
    picture.sampled += len(picture.left)


def _read_sample(picture: Picture, is_over: Callable[[], bool]) -> None:
    """Read what is left of the present sample, each stored object at once, until that is to end."""
    if not picture.left:
        return
    view, store = picture.view, picture.snapshot.array.store
    chosen = np.array(picture.left, np.int64)
    coordinates = [np.full(len(chosen), i, np.int64) for i in view.at]
    for axis, touched, chunks in zip((view.down, view.across), (picture.rows, picture.columns), chosen.T, strict=True):
        if axis is not None:
            coordinates[axis] = touched.starts(chunks)
    plan = picture.snapshot.plan(tuple(coordinates))
    # objects that have the first chunks of the sample come first: these are from all over the picture
    parts = sorted(plan.parts(), key=lambda part: int(plan.places[part.low : part.high].min()))
    done: set[tuple[int, int]] = set()

    def work(number: int) -> None:
        if number == 0 or not is_over():
            _add(picture, parts[number], done, is_over)

    try:
        for_each(work, range(len(parts)), len(parts), most_requests(store))
    finally:
        objects = zip(picture.rows.objects(chosen[:, 0]), picture.columns.objects(chosen[:, 1]), strict=True)
        pairs = zip(picture.left, objects, strict=True)
        picture.left = [place for place, inside in pairs if place not in done and inside not in picture.absent]


def _look_for_absent(picture: Picture) -> None:
    """Find out by one listing what is not stored, if something is not and many objects are still to be asked for."""
    snapshot, ranges = picture.snapshot, objects_below(picture.snapshot, picture.view)
    few = _FEW_OBJECTS if snapshot.array.store.has_cheap_looks else _FEW_FAR
    if (
        picture.has_looked
        or not picture.absent
        or min(prod(map(len, ranges)), picture.total) - len(picture.absent) <= few
    ):
        return
    picture.has_looked = True
    listed = snapshot.listed()
    if listed is None or picture.seen > picture.missing:
        return
    if not any(all(i in each for i, each in zip(place, ranges, strict=True)) for place in listed):
        picture.canvas.states[...] = MISSING
        picture.seen = picture.missing = picture.total


def _add(picture: Picture, part: PointPart, done: set[tuple[int, int]], is_over: Callable[[], bool]) -> None:
    view = picture.view
    with picture._guard:
        picture.asked += 1
    with closing(picture.snapshot.read(part)) as chunks:
        for seen in chunks:
            if not seen.object_is_stored:
                _add_absent(picture, part.object)
                return
            place = (0 if view.down is None else seen.place[view.down]), seen.place[view.across]
            _add_chunk(picture, seen, place)
            done.add(place)
            if is_over():
                return


def _add_absent(picture: Picture, coordinates: tuple[int, ...]) -> None:
    """Draw all of an object as not stored."""
    view = picture.view
    place = (0 if view.down is None else coordinates[view.down]), coordinates[view.across]
    row, rows, row_chunks = picture.rows.object_span(place[0])
    column, columns, column_chunks = picture.columns.object_span(place[1])
    with picture._guard:
        if place not in picture.absent:
            picture.absent.add(place)
            picture.canvas.mark(row, column, (rows, columns), MISSING)
            picture.seen += row_chunks * column_chunks
            picture.missing += row_chunks * column_chunks


def _add_chunk(picture: Picture, seen: SeenChunk, place: tuple[int, int]) -> None:
    row, rows, row_in = picture.rows.span(place[0])
    column, columns, column_in = picture.columns.span(place[1])
    if seen.values is None:
        with picture._guard:
            picture.seen += 1
            picture.damaged += seen.error is not None
            picture.missing += seen.error is None
            picture.canvas.mark(row, column, (rows, columns), MISSING if seen.error is None else DAMAGED)
        return
    values = _plane(picture, seen, (row_in, column_in), (rows, columns))
    absent = picture.snapshot.marks.absent(values)
    drawn = numbers(values, picture.view.part)
    with picture._guard:
        picture.seen += 1
        picture.canvas.add(row, column, drawn, absent)


def _plane(picture: Picture, seen: SeenChunk, first: tuple[int, int], shape: tuple[int, int]) -> np.ndarray[Any, Any]:
    """Return the elements of a chunk that the picture shows, rows first."""
    view = picture.view
    grids = picture.snapshot.array._handle.layout.grids.chunks
    index: list[int | slice] = [i - grid.start(j) for i, grid, j in zip(view.at, grids, seen.place, strict=True)]
    index[view.across] = slice(first[1], first[1] + shape[1])
    if view.down is not None:
        index[view.down] = slice(first[0], first[0] + shape[0])
    assert seen.values is not None
    values = seen.values if view.field is None else seen.values[view.field]
    plane = values[tuple(index)]
    if view.down is None:
        return plane[None, :]
    return plane.T if view.down > view.across else plane


class _Touched:
    """The chunks that a picture is made of along one axis; of an axis that it does not have one, of one element."""

    def __init__(self, chunks: Axis, storage: Axis, frame: Frame, *, nearest: bool) -> None:
        self._chunks, self._storage, self._frame = chunks, storage, frame
        self._first, self._last = chunks.find(frame.start), chunks.find(frame.stop - 1)
        self._some = np.unique(chunks.locate(frame.middles())[0]) if nearest else None

    def __len__(self) -> int:
        return self._last - self._first + 1 if self._some is None else len(self._some)

    def chunks(self, numbers: Ints) -> Ints:
        """Return which chunks these are."""
        return numbers + self._first if self._some is None else self._some[numbers]

    def starts(self, chunks: Ints) -> Ints:
        """Return the first element of chunks."""
        return self._chunks.starts(chunks)

    def objects(self, chunks: Ints) -> list[int]:
        """Return the objects that chunks lie in."""
        return self._storage.locate(self.starts(chunks))[0].tolist()  # type: ignore[no-any-return]

    def span(self, chunk: int) -> tuple[int, int, int]:
        """Return the first element of a chunk that is seen, how many are, and the place of the first in the chunk."""
        start = self._chunks.start(chunk)
        low = max(start, self._frame.start)
        return low, min(start + self._chunks.extent(chunk), self._frame.stop) - low, low - start

    def object_span(self, number: int) -> tuple[int, int, int]:
        """Return the first element of an object that is seen, how many are, and how many chunks they are in."""
        start = self._storage.start(number)
        low = max(start, self._frame.start)
        high = min(start + self._storage.extent(number), self._frame.stop)
        first, last = self._chunks.find(low), self._chunks.find(high - 1)
        if self._some is None:
            return low, high - low, last - first + 1
        return low, high - low, int(np.searchsorted(self._some, last, "right") - np.searchsorted(self._some, first))


def _pixel_dtype(dtype: np.dtype[Any], reduction: Reduction) -> np.dtype[Any]:
    if reduction != "mean" or dtype.kind == "f":
        return dtype
    return np.dtype(np.float64 if dtype.itemsize >= 4 else np.float32)


__all__ = ["MOST_PIXELS", "Picture", "View", "draw", "objects_below", "picture_of"]
