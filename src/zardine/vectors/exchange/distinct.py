"""Whether whole numbers, which come some at a time, are each there once: by way of a temporary file."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from zardine.vectors.storing.spools import Buckets

_AT_ONCE: Final = 2**16
"""Numbers that are compared at a time, about."""


class Distinct:
    """Numbers that were added."""

    def __init__(self, count: int) -> None:
        """``count``: how many there will be, about."""
        self._count = max(1, count // _AT_ONCE)
        self._numbers = Buckets(np.dtype(np.int64), self._count)

    def add(self, values: npt.NDArray[Any]) -> None:
        """Add some."""
        self._numbers.add(values.astype(np.int64), (values % self._count).astype(np.int64))

    def count(self) -> int:
        """Return how many different ones there are."""
        return sum(len(np.unique(self._numbers.rows(number))) for number in range(self._count))

    def are(self) -> bool:
        """Return whether no two are equal."""
        found = map(self._numbers.rows, range(self._count))
        return all(len(np.unique(each)) == len(each) for each in found)


__all__ = ["Distinct"]
