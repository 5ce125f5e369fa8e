"""Reading arrays with a row for each object while a writer brings them to their usual form.

As for cells (:mod:`~zardine.vectors.storing.steady`), what is missing by one document may be there by a newer
one.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from zardine.nodes.array import Array
from zardine.vectors.storing.steady import WAITS

Table = tuple[Array, npt.NDArray[Any]]


def read_table(open_table: Callable[[], Array | None]) -> Table | None:
    """The array that ``open_table`` gives, and its values; anew while values are missing and its document changes."""
    table = open_table()
    for wait in (*WAITS, None):
        if table is None:
            return None
        values = np.asarray(table[...])
        if wait is None or not _lacks_some(values, table.fill_value):
            return table, values
        newer = open_table()
        if newer is not None and newer.metadata == table.metadata:
            return table, values
        time.sleep(wait)
        table = newer
    raise AssertionError("unreachable")


def _lacks_some(values: npt.NDArray[Any], fill: Any) -> bool:
    """Whether there are values that may stand for chunks which are not stored."""
    if values.dtype.kind == "f" and np.isnan(fill):
        return bool(np.isnan(values).any())
    return bool(np.any(values == fill))
