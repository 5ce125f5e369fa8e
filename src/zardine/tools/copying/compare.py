"""Comparing elements: bit by bit, and by sums that do not depend on their order."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from zardine.engine.handle import ArrayHandle
from zardine.engine.read_ahead import window_bytes
from zardine.errors import DataError
from zardine.indexing.boxes import box_of, ranges_of
from zardine.indexing.selection import GridSelection
from zardine.tools.copying.move import read_elements

_WORDS = (8, 4, 2, 1)
_SLAB = 2**20
"""Bytes that are compared at a time."""


def sum_of(values: npt.NDArray[Any]) -> str:
    """Return the sum of all elements, taken as integers of their bits, in 16 characters; ``values`` are contiguous."""
    dtype = values.dtype
    if dtype.hasobject or dtype.kind == "T":
        return f"{sum(map(_crc32, values.ravel().tolist())):016x}"
    word = next(size for size in _WORDS if dtype.itemsize % size == 0)
    words = values.reshape(-1).view(np.uint8 if word == 1 else f"u{word}")
    return f"{int(np.add.reduce(words, dtype=np.uint64)):016x}"


def _crc32(value: Any) -> int:
    """Return that of bytes, as those of a chunk, or of what else an object shows; of nothing 0."""
    if value is None:
        return 0
    encoded = isinstance(value, (bytes, bytearray, memoryview))
    return zlib.crc32(value if encoded else repr(value).encode("utf-8", "surrogatepass"))


def is_same(a: npt.NDArray[Any], b: npt.NDArray[Any]) -> bool:
    """Return whether all elements of two arrays of one shape are equal, as :func:`differences` tells it, and sooner."""
    if a.dtype != b.dtype or a.dtype.kind in "TO":
        return not differences(a, b).any()
    one, other = (np.ascontiguousarray(each).reshape(-1).view(np.uint8) for each in (a, b))
    for start in range(0, one.size, _SLAB):
        parts = one[start : start + _SLAB], other[start : start + _SLAB]
        if parts[0].size % 8 == 0:
            parts = parts[0].view(np.uint64), parts[1].view(np.uint64)
        if not np.array_equal(*parts):
            return False
    return True


def differences(a: npt.NDArray[Any], b: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Return where elements of two arrays of one shape differ.

    Floats are compared bit by bit, NaN and -0.0 included; text and bytes by their characters; other objects by type and
    value.
    """
    if a.dtype != b.dtype:
        return np.ones(a.shape, np.bool_)
    if a.dtype.kind == "T":
        return np.asarray(a != b)
    if a.dtype.kind == "O":
        pairs = zip(a.reshape(-1).tolist(), b.reshape(-1).tolist(), strict=True)
        return np.array([not same_object(one, other) for one, other in pairs], np.bool_).reshape(a.shape)
    raw = [np.ascontiguousarray(each).reshape(-1).view(np.uint8).reshape(a.size, -1) for each in (a, b)]
    return np.asarray((raw[0] != raw[1]).any(axis=1)).reshape(a.shape)


def same_object(a: Any, b: Any) -> bool:
    """Whether two objects have the same type and value; floats the same bits."""
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray):
        return a.shape == b.shape and not bool(differences(a, b).any())
    if isinstance(a, float):
        return bool(a.hex() == b.hex())
    if isinstance(a, dict):
        return list(a) == list(b) and all(same_object(a[key], b[key]) for key in a)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same_object, a, b))
    return bool(a == b)


def holds(array: ArrayHandle, box: GridSelection, wanted: Callable[[GridSelection], npt.NDArray[Any]]) -> bool:
    """Return whether an array holds in a box the elements that ``wanted`` returns for each part of it.

    It is compared in slabs along the first axis; two of them fit into the window. ``False`` also for damaged chunks.
    """
    for slab in _slabs(array, box):
        try:
            if not is_same(read_elements(array, slab), wanted(slab)):
                return False
        except DataError:
            return False
    return True


def _slabs(array: ArrayHandle, box: GridSelection) -> Iterator[GridSelection]:
    """Yield a box in parts of whole chunks along the first axis, or at least one."""
    ranges = ranges_of(box)
    if not ranges:
        yield box
        return
    (first, last), *others = ranges
    rows = array.layout.grids.chunks[0].longest
    nbytes = rows * prod(stop - start for start, stop in others) * array.layout.metadata.dtype.itemsize
    step = max(1, window_bytes() // (2 * max(1, nbytes))) * rows
    for start in range(first, last, step):
        yield box_of([(start, min(start + step, last)), *others])


def total(sums: Iterable[str]) -> int:
    """Return the sum of all jobs of a stage."""
    return sum(int(each, 16) for each in sums) % 2**64


__all__ = ["differences", "holds", "is_same", "same_object", "sum_of", "total"]
