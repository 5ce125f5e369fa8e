"""Chunks cut out of elements that lie in a file one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from math import prod

import numpy as np

from zardine.buffers import BytesLike
from zardine.sources.foreign_store import Coordinates, Span
from zardine.sources.stored_file import StoredFile

_WANTED = 2**20
"""Bytes of a chunk, at most, where elements are smaller."""
_AT_ONCE = 2**24
"""Bytes of records that are read at a time, with what lies between them."""


def block_shape(shape: Coordinates, item_size: int) -> Coordinates:
    """Return the shape of chunks of about a MiB each of which is one range of the elements in order C."""
    lengths = [max(1, length) for length in shape]
    for axis, length in enumerate(lengths):
        below = prod(lengths[axis + 1 :]) * max(1, item_size)
        if below <= _WANTED:
            most = max(1, _WANTED // below)
            parts = -(-length // most)
            return (*(1 for _ in lengths[:axis]), -(-length // parts), *lengths[axis + 1 :])
    return tuple(1 for _ in lengths)


class Blocks:
    """Chunks of the shape that :func:`block_shape` gives, of elements from ``offset`` on.

    ``stride``: bytes from one index of the first axis to the next, where they do not follow each other (the records of
    NetCDF 3). The end of a chunk that reaches past the array is filled with ``fill``, the bytes of one element.
    """

    def __init__(
        self,
        file: StoredFile,
        shape: Coordinates,
        blocks: Coordinates,
        fill: bytes,
        offset: int,
        stride: int | None = None,
    ) -> None:
        self._file, self._shape, self._blocks, self._fill = file, shape, blocks, fill
        self._offset, self._stride = offset, stride

    def stored(self) -> Iterator[Coordinates]:
        """Yield all chunks of the array: none of an array without elements."""
        return product(*(range(-(-length // size)) for length, size in zip(self._shape, self._blocks, strict=True)))

    def find(self, coordinates: Coordinates) -> Span | BytesLike | None:
        """Return the range of a chunk; its bytes where it reaches past the end, or lies in records."""
        starts = [i * size for i, size in zip(coordinates, self._blocks, strict=True)]
        if any(start >= length for start, length in zip(starts, self._shape, strict=True)):
            return None
        item = len(self._fill)
        stops = [min(a + n, m) for a, n, m in zip(starts, self._blocks, self._shape, strict=True)]
        full = prod(self._blocks) * item
        length = prod(stop - start for start, stop in zip(starts, stops, strict=True)) * item
        if self._stride is not None:
            return self._padded(self._records(starts, stops, self._stride), full)
        first = 0
        for start, size in zip(starts, self._shape, strict=True):
            first = first * size + start
        if length == full:
            return Span(self._offset + first * item, length)
        return self._padded(bytes(self._file.read([(self._offset + first * item, length)])[0]), full)

    def _records(self, starts: list[int], stops: list[int], stride: int) -> bytes:
        item = len(self._fill)
        within = 0
        for start, size in zip(starts[1:], self._shape[1:], strict=True):
            within = within * size + start
        each = prod(stop - start for start, stop in zip(starts[1:], stops[1:], strict=True)) * item
        first = self._offset + starts[0] * stride + within * item
        count = stops[0] - starts[0]
        if stride - each > self._file.block // 4:
            return b"".join(map(bytes, self._file.read([(first + i * stride, each) for i in range(count)])))
        parts, most = [], max(1, _AT_ONCE // stride)
        for i in range(0, count, most):  # what lies between is read along
            number = min(most, count - i)
            data = np.frombuffer(self._file.read([(first + i * stride, (number - 1) * stride + each)])[0], np.uint8)
            rows = np.lib.stride_tricks.as_strided(data, (number, each), (stride, 1), writeable=False)
            parts.append(rows.tobytes())
        return b"".join(parts)

    def _padded(self, data: bytes, full: int) -> bytes:
        missing = (full - len(data)) // len(self._fill)
        return data + self._fill * missing


Make = Callable[[Coordinates], BytesLike]


class MadeChunks:
    """Chunks that are made when they are asked for; ``shape`` and ``blocks`` say which there are."""

    def __init__(self, shape: Coordinates, blocks: Coordinates, make: Make) -> None:
        self._counts = tuple(-(-length // size) for length, size in zip(shape, blocks, strict=True))
        self._make = make

    def stored(self) -> Iterator[Coordinates]:
        """Yield all chunks of the array."""
        return product(*map(range, self._counts))

    def find(self, coordinates: Coordinates) -> BytesLike | None:
        """Return a chunk, encoded."""
        if any(i >= count for i, count in zip(coordinates, self._counts, strict=True)):
            return None
        return self._make(coordinates)


class NoChunks:
    """No chunk at all: nothing was ever written."""

    def stored(self) -> Iterator[Coordinates]:
        """Yield nothing."""
        return iter(())

    def find(self, coordinates: Coordinates) -> None:
        """Return ``None``."""


__all__ = ["Blocks", "MadeChunks", "NoChunks", "block_shape"]
