"""Whether elements are the same: sums that do not depend on their order, and bit by bit."""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

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


def same_bits(a: npt.NDArray[Any], b: npt.NDArray[Any]) -> bool:
    """Return whether two arrays of one shape have the same elements, bit for bit; objects and text, equal ones."""
    if a.dtype.hasobject or a.dtype.kind == "T":
        return bool(np.array_equal(a, b))
    one, other = (np.ascontiguousarray(each).reshape(-1).view(np.uint8) for each in (a, b))
    for start in range(0, one.size, _SLAB):
        parts = one[start : start + _SLAB], other[start : start + _SLAB]
        if parts[0].size % 8 == 0:
            parts = parts[0].view(np.uint64), parts[1].view(np.uint64)
        if not np.array_equal(*parts):
            return False
    return True


def total(sums: Iterable[str]) -> int:
    """Return the sum of all jobs of a stage."""
    return sum(int(each, 16) for each in sums) % 2**64


__all__ = ["same_bits", "sum_of", "total"]
