"""Sums of elements that do not depend on their order: what a stage writes, the next one has to read."""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

_WORDS = (8, 4, 2, 1)


def sum_of(values: npt.NDArray[Any]) -> str:
    """Return the sum of all elements, taken as integers of their bits, in 16 characters; ``values`` are contiguous."""
    dtype = values.dtype
    if dtype.hasobject or dtype.kind == "T":
        return (
            f"{sum(zlib.crc32(repr(each).encode('utf-8', 'surrogatepass')) for each in values.ravel().tolist()):016x}"
        )
    word = next(size for size in _WORDS if dtype.itemsize % size == 0)
    words = values.reshape(-1).view(np.uint8 if word == 1 else f"u{word}")
    return f"{int(np.add.reduce(words, dtype=np.uint64)):016x}"


def total(sums: Iterable[str]) -> int:
    """Return the sum of all jobs of a stage."""
    return sum(int(each, 16) for each in sums) % 2**64


__all__ = ["sum_of", "total"]
