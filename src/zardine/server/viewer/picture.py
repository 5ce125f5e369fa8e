"""A picture of two axes of an array, whatever its size, within so many seconds: all of it, or a sample that grows."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Final

import numpy as np

from zardine.engine.read_each import SeenChunk
from zardine.engine.workers import for_each, most_requests
from zardine.indexing.plan import GridPart
from zardine.server.viewer.canvas import (
    DAMAGED,
    MISSING,
    Canvas,
    Frame,
    Reduction,
    spread,
)
from zardine.server.viewer.snapshot import Snapshot
from zardine.server.viewer.values import drawn_dtype, numbers

_WHOLE: Final = 2**26
"""Bytes of decoded chunks up to which all are read, object by object; more are sampled."""
_BATCH: Final = 2**12
"""Places of the grid of chunks that are looked at together."""

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
    total: int
    """Chunks that the picture is made of."""
    done: set[tuple[int, int]] = field(default_factory=set)
    """Those that were read, by their places along the two axes."""
    damaged: int = 0
    missing: int = 0
    cursor: int = 0
    _guard: Any = field(default_factory=Lock)

    @property
    def is_finished(self) -> bool:
        """Whether nothing is left to be read."""
        return len(self.done) >= self.total


def picture_of(snapshot: Snapshot, view: View) -> Picture:
    """Return the picture of a view as it was left, or an empty one."""
    known: Picture | None = snapshot.kept.pictures.get((snapshot.number, view))
    if known is not None:
        return known
    dtype = snapshot.array.dtype if view.field is None else snapshot.array.dtype[view.field]
    canvas = Canvas(view.rows, view.columns, view.reduction, _pixel_dtype(drawn_dtype(dtype), view.reduction))
    lists = _Lists(snapshot, view)
    made = Picture(snapshot, view, canvas, len(lists.rows) * len(lists.columns))
    snapshot.kept.pictures.put((snapshot.number, view), made, canvas.nbytes)
    return made


def draw(picture: Picture, seconds: float, gone: Callable[[], bool]) -> None:
    """Read chunks and draw them until all are drawn, ``seconds`` are over, or nobody waits any more.

    At least something is read. Where all chunks together are few bytes they are read object by object, else one by one
    from all over the picture.
    """
    lists = _Lists(picture.snapshot, picture.view)
    deadline = time.monotonic() + seconds
    array = picture.snapshot.array
    threads = most_requests(array.store)
    if picture.total * array._handle.layout.chunk_nbytes <= _WHOLE:
        parts = list(lists.whole())[picture.cursor :]

        def read(number: int) -> None:
            if (number < threads or time.monotonic() < deadline) and not gone():
                _add(picture, parts[number])
                through[number] = True

        through = [False] * len(parts)
        for_each(read, range(len(parts)), len(parts), threads)
        picture.cursor += through.index(False) if False in through else len(parts)
        return
    while not picture.is_finished and not gone():
        places = [place for place in lists.sample(picture.cursor) if place not in picture.done]

        def work(place: tuple[int, int]) -> None:
            if time.monotonic() < deadline and not gone():
                _add(picture, lists.one(place))

        for_each(work, places, len(places), threads)
        if time.monotonic() >= deadline:
            return
        picture.cursor += _BATCH


def _add(picture: Picture, part: GridPart) -> None:
    view = picture.view
    grids = picture.snapshot.array._handle.layout.grids.chunks
    for seen in picture.snapshot.read(part):
        place = (0 if view.down is None else seen.place[view.down]), seen.place[view.across]
        with picture._guard:
            if place in picture.done:
                continue
            picture.done.add(place)
        bounds = []
        for axis, frame in ((view.down, view.rows), (view.across, view.columns)):
            if axis is None:
                bounds.append((0, 1, 0))
                continue
            start = grids[axis].start(seen.place[axis])
            low = max(start, frame.start)
            bounds.append((low, min(start + grids[axis].extent(seen.place[axis]), frame.stop), low - start))
        (row, row_stop, row_in), (column, column_stop, column_in) = bounds
        shape = row_stop - row, column_stop - column
        if seen.values is None:
            with picture._guard:
                picture.damaged += seen.error is not None
                picture.missing += seen.error is None
                picture.canvas.mark(row, column, shape, MISSING if seen.error is None else DAMAGED)
            continue
        values = _plane(picture, seen, (row_in, column_in), shape)
        absent = picture.snapshot.marks.absent(values)
        drawn = numbers(values, view.part)
        with picture._guard:
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


class _Lists:
    """The chunks that a view touches along its two axes, and the blocks of elements that they are read by."""

    def __init__(self, snapshot: Snapshot, view: View) -> None:
        self._snapshot, self._view = snapshot, view
        self.rows = [0] if view.down is None else self._touched(view.down, view.rows)
        self.columns = self._touched(view.across, view.columns)

    def _touched(self, axis: int, frame: Frame) -> list[int]:
        grid = self._snapshot.array._handle.layout.grids.chunks[axis]
        if self._view.reduction == "nearest":
            return np.unique(grid.locate(frame.middles())[0]).tolist()  # type: ignore[no-any-return]
        low, high = grid.locate(np.array([frame.start, frame.stop - 1], np.int64))[0].tolist()
        return list(range(low, high + 1))

    def sample(self, cursor: int) -> Iterator[tuple[int, int]]:
        for row, column in spread(len(self.rows), len(self.columns), cursor, _BATCH):
            yield self.rows[row], self.columns[column]

    def one(self, place: tuple[int, int]) -> GridPart:
        """Return the plan of one chunk."""
        grids = self._snapshot.array._handle.layout.grids.chunks
        starts, stops = list(self._view.at), [i + 1 for i in self._view.at]
        for axis, chunk in zip((self._view.down, self._view.across), place, strict=True):
            if axis is not None:
                starts[axis] = grids[axis].start(chunk)
                stops[axis] = min(starts[axis] + grids[axis].extent(chunk), grids[axis].length)
        return next(self._snapshot.parts(tuple(starts), tuple(stops)))

    def whole(self) -> Iterator[GridPart]:
        """Yield the plans of all chunks, by the objects they lie in."""
        starts, stops = list(self._view.at), [i + 1 for i in self._view.at]
        for axis, frame in ((self._view.down, self._view.rows), (self._view.across, self._view.columns)):
            if axis is not None:
                starts[axis], stops[axis] = frame.start, frame.stop
        yield from self._snapshot.parts(tuple(starts), tuple(stops))


def _pixel_dtype(dtype: np.dtype[Any], reduction: Reduction) -> np.dtype[Any]:
    if reduction != "mean" or dtype.kind == "f":
        return dtype
    return np.dtype(np.float64 if dtype.itemsize >= 4 else np.float32)


__all__ = ["MOST_PIXELS", "Picture", "View", "draw", "picture_of"]
