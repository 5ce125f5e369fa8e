"""Reading links between levels."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from zardine.errors import SelectionError
from zardine.stores.resolve import StoreLike
from zardine.vectors.level_access import VectorStore
from zardine.vectors.loading import load_cells
from zardine.vectors.loading_links import load_cross_links
from zardine.vectors.querying import open_level


def read_cross_level_links(path: StoreLike, level: int, delta: int = 1) -> npt.NDArray[np.int64]:
    """Links from ``level`` to ``level + delta``: ``(M, 2)`` rows of vertices on the one and on the other.

    Rows count the vertices in the order in which :func:`read_points` gives a whole level. Raises
    :class:`~zardine.errors.SelectionError` where there are no such levels or links.
    """
    own = open_level(path, level)
    owner: VectorStore = own.owner
    if delta == 0 or level + delta not in owner.level_numbers():
        raise SelectionError(f"{owner.name} has no level {level + delta} beside level {level}")
    other = owner.level(level + delta)
    content, its = load_cells(own), load_cells(other)
    links = load_cross_links(own, content, its, other, delta)
    if links is None:
        raise SelectionError(f"{owner.name} has no links from level {level} to level {level + delta}")
    found = links.endpoints.copy()
    for column, each in ((0, content), (1, its)):
        number = np.full(len(each.positions) + 1, -1, np.int64)
        number[:-1][each.visible()] = np.arange(int(each.visible().sum()))
        found[:, column] = number[found[:, column]]
    return found[(found >= 0).all(axis=1)]
