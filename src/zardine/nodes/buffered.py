"""``Array.buffered``: writes that are collected in memory and stored together.

A read takes hold of what waits before it reads what is stored, and so misses nothing that is stored meanwhile. Where
the layout of the array changes, what waits moves along, see :func:`move_buffer`.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
import numpy.typing as npt

from zardine.engine.freshness import is_same_generation, moment, note_seen
from zardine.engine.handle import ArrayHandle
from zardine.engine.layout import ArrayLayout, prepare_layout
from zardine.engine.read import read_plan
from zardine.engine.write import flush, rows_of
from zardine.engine.write_buffer import RowsOf, WriteBuffer, placed_alike
from zardine.errors import (
    ArrayChangedError,
    ChunkNotFoundError,
    DataError,
    MetadataError,
    NodeExistsError,
    NodeNotFoundError,
)
from zardine.hierarchy.find import describe
from zardine.hierarchy.update import stored_node
from zardine.indexing.plan import ChunkPlan, make_plan
from zardine.indexing.selection import AxisSlice, GridSelection, PointSelection

if TYPE_CHECKING:
    from zardine.nodes.array import Array


_HOW_TO_GO_ON = (
    "What waits in buffered() waits still: refresh() takes over how the array lies then, and flush() stores it there"
)


class BufferedWrites:
    """A context within which assignments to an array wait in memory; see :meth:`zardine.Array.buffered`.

    ``append`` does not wait: each call stores what waits, and then its data.
    """

    def __init__(self, array: Array, limit: int, on_error: Literal["keep", "discard"]) -> None:
        if on_error not in ("keep", "discard"):
            raise ValueError(f"on_error is 'keep' or 'discard', not {on_error!r}")
        self._array = array
        self._on_error = on_error
        self._limit = limit
        self._buffer: WriteBuffer | None = None

    @property
    def nbytes(self) -> int:
        """Bytes that wait in memory."""
        return 0 if self._buffer is None else self._buffer.nbytes

    def flush(self) -> None:
        """Store all that waits. After an error, what could not be stored waits still."""
        self._array.flush()

    def discard(self) -> None:
        """Forget all that waits."""
        if self._buffer is not None:
            with self._buffer.lock:
                self._buffer.discard()
                self._buffer.closed = self._buffer.ended

    def __enter__(self) -> Self:
        self._buffer = self._array._start_buffer(self._limit)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        buffer = self._buffer
        assert buffer is not None
        with buffer.lock:
            if error is not None and self._on_error == "discard":
                buffer.discard()
            buffer.ended = True
            _store(self._array._handle, buffer)
        self._array._end_buffer(buffer)


def is_buffered(handle: ArrayHandle) -> bool:
    """Return whether values may wait in memory."""
    return handle.buffer is not None and not handle.buffer.closed


def write_buffered(handle: ArrayHandle, plan: ChunkPlan, values: npt.NDArray[Any]) -> bool:
    """Collect ``values`` in the buffer of ``handle``; ``False`` if they are to be stored now, all older ones being so.

    That is where there is no buffer, where its block is over, and where the chunks are more than it may hold.
    """
    buffer = handle.buffer
    if buffer is None or buffer.closed:
        return False
    with buffer.lock:
        if buffer.closed:
            return False
        _check_placing(handle, buffer)
        too_much = buffer.bytes_of(plan) > buffer.limit
        if buffer.ended or too_much or buffer.nbytes > buffer.limit:
            _store(handle, buffer)
            if buffer.ended or too_much:
                return False
        buffer.add(handle.layout, plan, values, _rows_of(handle))
        if buffer.nbytes > buffer.limit:
            _store(handle, buffer)
    return True


def read_buffered(handle: ArrayHandle, plan: ChunkPlan, out: npt.NDArray[Any]) -> None:
    """Fill ``out`` (of the selection's full shape; flat for points) with what is stored, and over it what waits.

    No element is older than it was when this was called.
    """
    buffer = handle.buffer
    if buffer is None or buffer.closed:
        read_plan(handle, plan, out)
        return
    rows = _rows_of(handle)
    with buffer.lock:
        _check_placing(handle, buffer)
        pending = buffer.pending(plan, rows)
    if len(pending.whole) < plan.chunk_count:
        try:
            read_plan(handle, plan, out)
        except (ChunkNotFoundError, DataError):
            if not pending.whole:
                raise
            _read_others(handle, plan, pending.whole, out)
    with buffer.lock:
        buffer.put(pending, out)
        if placed_alike(handle.layout, buffer.layout):
            buffer.put(buffer.pending(plan, rows), out)


def flush_buffer(handle: ArrayHandle) -> None:
    """Store what waits, if anything does."""
    buffer = handle.buffer
    if buffer is not None and not buffer.closed:
        with buffer.lock:
            _store(handle, buffer)


def move_buffer(handle: ArrayHandle) -> None:
    """Return the array of ``handle`` has this layout from now on: what waits moves to where it belongs by it.

    What lies beyond its shape is forgotten. Raises :class:`~zardine.errors.ArrayChangedError`, so that nothing changes,
    where it cannot hold the values.
    """
    buffer = handle.buffer
    if buffer is None or buffer.closed:
        return
    with buffer.lock:
        old, new = buffer.layout.metadata, handle.layout.metadata
        if placed_alike(handle.layout, buffer.layout):
            if buffer.reaches_beyond(new.shape):  # by the document, since another thread may have been later
                buffer.cut(_stored_layout(handle, buffer))
        elif not buffer.objects:
            buffer.reach = ()
        elif (old.data_type, old.ndim) != (new.data_type, new.ndim):
            raise ArrayChangedError(
                f"{describe(handle.store, handle.path)} was replaced: it was of {old.ndim} dimensions and "
                f"{old.data_type}, and is of {new.ndim} and {new.data_type}. What waits in buffered() cannot be stored "
                "there: discard() forgets it"
            )
        else:
            _move(buffer, handle)
        buffer.layout = handle.layout


def _move(buffer: WriteBuffer, handle: ArrayHandle) -> None:
    """Sort the values in ``buffer`` into the chunks of ``handle``."""
    moved = WriteBuffer(buffer.limit, handle.layout)
    before = buffer.layout.grids.chunks
    kept = tuple(replace(axis, length=n) for axis, n in zip(before, handle.layout.metadata.shape, strict=True))
    for chunk in buffer.held():
        inside = chunk.inside(kept)
        starts = [axis.start(i) for axis, i in zip(before, chunk.chunk, strict=True)]
        values = chunk.values[inside]
        if chunk.covers(inside):
            selection: GridSelection | PointSelection = _box(starts, values.shape)
        else:
            assert chunk.mask is not None
            places = np.nonzero(chunk.mask[inside])
            values = values[places]
            points = tuple(place + start for place, start in zip(places, starts, strict=True))
            selection = PointSelection(points, values.shape)
        if selection.size:
            moved.add(handle.layout, make_plan(selection, handle.layout.grids), values, _rows_of(handle))
    buffer.objects, buffer.nbytes, buffer.reach = moved.objects, moved.nbytes, moved.reach


def _store(handle: ArrayHandle, buffer: WriteBuffer) -> None:
    """Store what waits, for the array as its document says that it is now."""
    if buffer.objects:
        layout = _stored_layout(handle, buffer)
        buffer.cut(layout)
        present = replace(handle, layout=layout)
        try:
            flush(present, buffer)
        except DataError:
            _store_others(present, buffer)
            raise
        except ArrayChangedError as error:
            raise ArrayChangedError(f"{error}. {_HOW_TO_GO_ON}") from None
    if buffer.ended:
        buffer.closed = True


def _store_others(handle: ArrayHandle, buffer: WriteBuffer) -> None:
    """Store every object that can be: one whose values or stored bytes are bad does not keep others from the store."""
    for one in buffer.one_by_one():
        coordinates = next(iter(one.objects))
        try:
            flush(handle, one)
        except DataError:
            continue
        buffer.forget(coordinates)
    buffer.recount()


def _stored_layout(handle: ArrayHandle, buffer: WriteBuffer) -> ArrayLayout:
    """Return the layout of the array as it is stored now; the one that is known where that does not tell."""
    known = buffer.layout.metadata
    when = moment()
    try:
        node = stored_node(handle.store, handle.path, known)
    except (MetadataError, NodeNotFoundError, NodeExistsError):
        return buffer.layout
    now = node.metadata
    if now.document is not None and now.document == known.document:
        reading = node.readings[handle.watch.key.rpartition("/")[2]]
        note_seen(handle, None if reading is None else reading.version, now, when)  # storing it needs no other look
        return buffer.layout
    layout = None
    with suppress(MetadataError):
        layout = prepare_layout(now)
    if layout is None or not placed_alike(layout, buffer.layout) or not is_same_generation(buffer.layout, now):
        raise ArrayChangedError(
            f"{describe(handle.store, handle.path)} was resharded or replaced while values waited: nothing was "
            f"written. {_HOW_TO_GO_ON}"
        )
    return layout


def _check_placing(handle: ArrayHandle, buffer: WriteBuffer) -> None:
    if not placed_alike(handle.layout, buffer.layout):
        raise ArrayChangedError(
            f"{describe(handle.store, handle.path)} was found to be resharded by another use of buffered(): "
            "refresh() this array"
        )


def _read_others(handle: ArrayHandle, plan: ChunkPlan, whole: frozenset[tuple[int, ...]], out: Any) -> None:
    """Read the chunks of a plan of which something stored is wanted; others may be damaged, or not be there."""
    for part in plan.parts():
        for i in range(part.count):
            chunk = part.chunk(i)
            if chunk not in whole:
                axes = handle.layout.grids.chunks
                starts = [axis.start(k) for axis, k in zip(axes, chunk, strict=True)]
                ends = zip(axes, starts, part.chunk_shape(i), strict=True)
                box = _box(starts, tuple(min(extent, axis.length - start) for axis, start, extent in ends))
                values = np.empty(box.shape, out.dtype)
                read_plan(handle, make_plan(box, handle.layout.grids), values)
                out[part.outer(i)] = values[part.inner(i)]


def _box(starts: list[int], shape: tuple[int, ...]) -> GridSelection:
    axes = tuple(AxisSlice(start, 1, count) for start, count in zip(starts, shape, strict=True))
    return GridSelection(axes, (False,) * len(axes), (False,) * len(axes))


def _rows_of(handle: ArrayHandle) -> RowsOf:
    return lambda part: rows_of(handle, part)
