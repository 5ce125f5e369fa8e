"""Which rows of the object index stand for no object any more, and what it claims of fragments. JSON to values; no I/O.

An object that is removed keeps its row, with a manifest of nothing, so that no other row gets another number: that is
how zarr-vectors records it, too. Its id is named here, and readers do not know it; it may come back in the same row.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from zardine.buffers import Ints
from zardine.errors import CorruptionError

REMOVED = "zardine_removed"
"""Attribute of an object index: pairs of ids, the first that is removed and the one behind the last; ascending."""

SOLE = "zardine_sole_owners"
"""Attribute of an object index: ``[num_objects, num_present]`` when each fragment was part of one object at most."""

MOST_RUNS = 2**13
"""Of removed ids, before the tables of objects are to be stored anew without them."""


@dataclass(frozen=True, slots=True, eq=False)
class RemovedIds:
    """Ids of removed objects: from each of ``starts`` up to, and without, the one of ``stops``."""

    starts: Ints
    stops: Ints

    def __bool__(self) -> bool:
        return len(self.starts) > 0

    def among(self, ids: Ints) -> npt.NDArray[np.bool_]:
        """Which of ``ids`` are removed."""
        if not self:
            return np.zeros(len(ids), np.bool_)
        run = np.searchsorted(self.starts, ids, side="right") - 1
        inside: npt.NDArray[np.bool_] = (run >= 0) & (ids < self.stops[run])
        return inside

    def count(self) -> int:
        """How many ids there are."""
        return sum(b - a for a, b in zip(self.starts.tolist(), self.stops.tolist(), strict=True))


def parse_removed(attributes: Mapping[str, Any], place: str) -> RemovedIds:
    """What the ``attributes`` of an object index say. Raises :class:`~zardine.errors.CorruptionError`."""
    runs = attributes.get(REMOVED, [])
    good = isinstance(runs, list | tuple) and all(
        isinstance(run, list | tuple)
        and len(run) == 2
        and all(type(each) is int and abs(each) < 2**63 for each in run)
        and run[0] < run[1]
        for run in runs
    )
    table = np.array(runs if good else [], np.int64).reshape(-1, 2)
    if not good or (table[1:, 0] < table[:-1, 1]).any():
        raise CorruptionError(f"{REMOVED} is no list of ascending pairs of ids", array=place)
    return RemovedIds(table[:, 0], table[:, 1])


def runs_of(ids: Ints) -> list[list[int]]:
    """The runs of consecutive numbers among distinct ``ids``, ascending, as :data:`REMOVED` has them."""
    ordered = np.sort(ids)
    breaks = np.flatnonzero(ordered[1:] - 1 != ordered[:-1]) + 1
    first = np.concatenate([[0], breaks]) if len(ordered) else breaks
    last = np.append(breaks, len(ordered)) - 1 if len(ordered) else breaks
    return [[a, b + 1] for a, b in zip(ordered[first].tolist(), ordered[last].tolist(), strict=True)]


def are_sole(attributes: Mapping[str, Any]) -> bool:
    """Whether an object index claims that no fragment is part of two objects, and nobody has added objects since."""
    claim = attributes.get(SOLE)
    return isinstance(claim, list | tuple) and list(claim) == [
        attributes.get("num_objects"),
        attributes.get("num_present"),
    ]
