"""Reading links between levels."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from zardine.errors import ArrayChangedError, SelectionError
from zardine.stores.resolve import StoreLike
from zardine.vectors.reading.loading import load_cells
from zardine.vectors.reading.loading_links import load_cross_links
from zardine.vectors.reading.rereading import open_level, read_steadily
from zardine.vectors.storing.store import Level


def read_cross_level_links(path: StoreLike, level: int, delta: int = 1) -> npt.NDArray[np.int64]:
    """Links from ``level`` to ``level + delta``: ``(M, 2)`` rows of vertices on the one and on the other.

    Rows count the vertices in the order in which :func:`read_points` gives a whole level. Raises
    :class:`~zardine.errors.SelectionError` where there are no such levels or links.
    """
    if isinstance(delta, bool) or not isinstance(delta, int | np.integer) or delta == 0:
        raise SelectionError(f"delta is a number of levels up or down, not {delta!r}")
    return read_steadily(path, level, lambda own: _read(path, own, int(delta)))


def _read(path: StoreLike, own: Level, delta: int) -> npt.NDArray[np.int64]:
    level = own.document.level
    if level + delta < 0:
        raise SelectionError(f"{own.owner.name} has no level {level + delta}")
    other = open_level(path, level + delta)
    content, its = load_cells(own), load_cells(other)
    links = load_cross_links(own, content, its, other, delta)
    if links is None:
        raise SelectionError(f"{own.owner.name} has no links from level {level} to level {level + delta}")
    if not other.is_current():
        raise ArrayChangedError(f"level {level + delta} of {own.owner.name} was changed while it was read")
    found = links.endpoints.copy()
    for column, each in ((0, content), (1, its)):
        number = np.full(len(each.positions) + 1, -1, np.int64)
        number[:-1][each.visible()] = np.arange(int(each.visible().sum()))
        found[:, column] = number[found[:, column]]
    return found[(found >= 0).all(axis=1)]
