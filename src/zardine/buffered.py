"""``Array.buffered``: writes that are collected in memory and stored together."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy.typing as npt

from zardine.engine.source import ArraySource
from zardine.engine.write import flush, rows_of
from zardine.engine.write_buffer import WriteBuffer
from zardine.indexing.plan import ChunkPlan

if TYPE_CHECKING:
    from zardine.arrays import Array


class BufferedWrites:
    """A context within which writes to an array wait in memory; see :meth:`zardine.Array.buffered`."""

    def __init__(self, array: Array, limit: int, on_error: Literal["keep", "discard"]) -> None:
        if on_error not in ("keep", "discard"):
            raise ValueError(f"on_error is 'keep' or 'discard', not {on_error!r}")
        self._array = array
        self._on_error = on_error
        self._buffer = WriteBuffer(limit)

    @property
    def nbytes(self) -> int:
        """Bytes that wait in memory."""
        return self._buffer.nbytes

    def flush(self) -> None:
        """Store all that waits. After an error, what could not be stored waits still."""
        self._array.flush()

    def __enter__(self) -> Self:
        self._array._start_buffer(self._buffer)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._buffer.lock:
            if error is not None and self._on_error == "discard":
                self._buffer.discard()
            self._array.flush()
            self._buffer.closed = True
            self._array._end_buffer()


def write_buffered(source: ArraySource, plan: ChunkPlan, values: npt.NDArray[Any]) -> bool:
    """Collect ``values`` in the buffer of ``source``; ``False`` if there is none, so that they are to be stored."""
    buffer = source.buffer
    if buffer is None:
        return False
    with buffer.lock:
        if buffer.closed:
            return False
        buffer.add(plan, values, lambda part: rows_of(source, part), source.layout.metadata.fill)
        if buffer.nbytes > buffer.limit:
            flush(source, buffer)
    return True


def read_buffered(source: ArraySource, plan: ChunkPlan, out: npt.NDArray[Any]) -> None:
    """Put what waits in the buffer of ``source`` over what was read."""
    buffer = source.buffer
    if buffer is not None:
        with buffer.lock:
            buffer.overlay(plan, lambda part: rows_of(source, part), out)


def flush_buffer(source: ArraySource) -> None:
    """Store what waits, if anything does."""
    buffer = source.buffer
    if buffer is not None:
        with buffer.lock:
            flush(source, buffer)
