"""A level, cut into pieces that are each read from few chunks: by themselves, in any process.

Points are cut where chunks end, in the order in which they are stored. A line, or another object that stays whole,
belongs to the chunk that it begins in, so that those of one region are in one piece, in the order of the object index.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from zardine.buffers import Ints
from zardine.errors import CorruptionError, PlanError
from zardine.vectors.exchange.losses import LINES
from zardine.vectors.reading.kept import kind_of
from zardine.vectors.reading.loading import dtype_of, row_shape_of
from zardine.vectors.reading.loading_objects import load_manifests
from zardine.vectors.reading.presence import present_chunks
from zardine.vectors.reading.query import QueryOptions
from zardine.vectors.storing.cell_costs import cell_costs
from zardine.vectors.storing.cells import CellArray, child
from zardine.vectors.storing.claims import own_attributes
from zardine.vectors.storing.logs import LOG
from zardine.vectors.storing.store import PENDING, Level


class LevelCuts:
    """The chunks of the points, or the lines, of a level in the order in which they are cut."""

    def __init__(self, level: Level, *, whole_objects: bool = False) -> None:
        """``whole_objects``: not only lines stay whole."""
        vertices = level.cells("vertices")
        if vertices is None:
            raise CorruptionError("the level has no vertices", array=child(level.path, "vertices"))
        self._level, self._vertices = level, vertices
        manifests = load_manifests(level)
        self.entries = 0 if manifests is None else len(manifests.fragments)
        """How many pieces of objects there are, each in one chunk."""
        self._manifests = manifests if whole_objects or kind_of(level.owner.root) in LINES else None
        if self._manifests is None:
            self._rows = present_chunks(vertices, level.cells("vertex_fragments"))
            return
        entries = np.diff(self._manifests.starts)
        chunk = np.full(len(entries), -1, np.int64)
        chunk[entries > 0] = self._manifests.by_chunk.cell[self._manifests.starts[:-1][entries > 0]]
        self._rows = np.argsort(chunk, kind="stable")

    @property
    def are_lines(self) -> bool:
        """Whether they are lines, or other objects, which are in another order than in the store."""
        return self._manifests is not None

    def __len__(self) -> int:
        """Return how many chunks or lines there are."""
        return len(self._rows)

    def pieces_of(self, count: int) -> list[int]:
        """Return where pieces of about ``count`` vertices begin, and where the last one ends."""
        weights = self._weights().astype(np.float64)
        behind = np.cumsum(weights)
        wanted = max(1, -(-self._level.document.vertex_count // count))
        if not len(behind) or not behind[-1]:
            return [0, len(self)]
        ends = np.searchsorted(behind, behind[-1] * np.arange(1, wanted) / wanted, side="left") + 1
        return sorted({0, *map(int, ends), len(self)})

    def _weights(self) -> Ints:
        """About how many vertices each has, in some unit."""
        if self._manifests is not None:
            entries: Ints = np.diff(self._manifests.starts)[self._rows]
            return entries
        array = self._vertices.array
        if array.shards is None and not array.store.has_cheap_looks:
            return np.ones(len(self), np.int64)
        return cell_costs(self._vertices, self._rows).sizes

    def chosen(self, start: int, end: int) -> QueryOptions:
        """Return what the chunks or lines from ``start`` to before ``end`` are asked for by."""
        rows = self._rows[start:end]
        if self._manifests is None:
            return {"chunks": rows.tolist()}
        return {"object_ids": self._manifests.ids[rows].tolist()}


def checked_cuts(told: Any) -> tuple[int, ...]:
    """Return where the pieces of a level begin, as a plan says. Raises :class:`~zardine.errors.PlanError`."""
    if not isinstance(told, list) or len(told) < 2 or not all(type(each) is int for each in told):
        raise PlanError("a plan of an export says where each piece of the level begins")
    if told[0] != 0 or any(b < a for a, b in pairwise(told)):
        raise PlanError("a plan of an export says that pieces end before they begin")
    return tuple(told)


def state_of(level: Level) -> str:
    """Return a digest of what tells the state of a level from others: its document, and what all levels have."""
    own = own_attributes(level.document.attributes, PENDING, LOG)
    root = level.owner.root
    told = [own, list(root.geometry_types), root.axes, root.block.get("crs")]
    return hashlib.sha256(json.dumps(told, sort_keys=True, default=_plain).encode()).hexdigest()


def row_bytes(level: Level) -> int:
    """Return the bytes of a vertex with its attributes."""
    vertices = level.cells("vertices")
    size = level.owner.root.ndim * (8 if vertices is None else dtype_of(vertices, "float32").itemsize)
    for name in level.names("vertex_attributes"):
        array = level.cells(f"vertex_attributes/{name}")
        size += 0 if array is None else _value_bytes(array)
    return size


def _value_bytes(array: CellArray) -> int:
    return dtype_of(array, text=True).itemsize * prod(row_shape_of(array))


def _plain(value: Any) -> Any:
    """What JSON has no name for."""
    if isinstance(value, np.ndarray | np.generic):
        plain: npt.NDArray[Any] | Any = value.tolist()
        return plain
    return list(value) if isinstance(value, Sequence) else dict(value)


__all__ = ["LevelCuts", "checked_cuts", "row_bytes", "state_of"]
