"""What reading gives: NumPy arrays that belong together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from operator import index
from typing import Any, SupportsIndex, overload

import numpy as np
import numpy.typing as npt

from zardine.public_names import public

Array = npt.NDArray[Any]
Arrays = Mapping[str, npt.NDArray[Any]]


@public("zardine.vectors")
@dataclass(frozen=True, slots=True, eq=False)
class Points:
    """Points, in the order that they are stored in."""

    positions: Array
    """``(N, D)``, float32 or float64 as stored."""
    attributes: Arrays = field(default_factory=dict)
    """For each vertex attribute ``(N,)`` or ``(N, channels)``."""
    object_ids: npt.NDArray[np.int64] | None = None
    """``(N,)``: the object of each point, -1 for none; ``None`` where the store has no objects."""

    def __len__(self) -> int:
        return len(self.positions)


@public("zardine.vectors")
@dataclass(frozen=True, slots=True, eq=False)
class Polylines:
    """Lines, each a run of vertices: line ``i`` is ``positions[starts[i]:starts[i + 1]]``."""

    positions: Array
    """``(N, D)``, in the order of the lines."""
    starts: npt.NDArray[np.int64]
    """``(lines + 1,)``."""
    object_ids: npt.NDArray[np.int64]
    """``(lines,)``."""
    attributes: Arrays = field(default_factory=dict)
    """Of vertices."""
    object_attributes: Arrays = field(default_factory=dict)
    """Of lines."""

    def __len__(self) -> int:
        return len(self.object_ids)

    @overload
    def __getitem__(self, number: SupportsIndex) -> Array: ...
    @overload
    def __getitem__(self, number: slice) -> list[Array]: ...
    def __getitem__(self, number: SupportsIndex | slice) -> Array | list[Array]:
        """The vertices of a line, or a list of those of some lines. Raises ``IndexError`` and ``TypeError``."""
        if isinstance(number, slice):
            return [self[each] for each in range(*number.indices(len(self)))]
        try:
            number = index(number)
        except TypeError:
            raise TypeError(f"lines have a number, or are a slice of numbers; not {type(number).__name__}") from None
        if not -len(self) <= number < len(self):
            raise IndexError(f"there are {len(self)} lines, so none with the number {number}")
        number %= len(self)
        return self.positions[self.starts[number] : self.starts[number + 1]]

    @property
    def lines(self) -> list[Array]:
        """All lines."""
        return [self[number] for number in range(len(self))]


@public("zardine.vectors")
@dataclass(frozen=True, slots=True, eq=False)
class Graph:
    """Vertices and edges between them."""

    positions: Array
    """``(N, D)``, in the order that they are stored in."""
    edges: npt.NDArray[np.int64]
    """``(E, 2)``: rows of ``positions``."""
    attributes: Arrays = field(default_factory=dict)
    edge_attributes: Arrays = field(default_factory=dict)
    object_ids: npt.NDArray[np.int64] | None = None
    """``(N,)``: the object of each vertex, -1 for none."""

    def __len__(self) -> int:
        return len(self.positions)


@public("zardine.vectors")
@dataclass(frozen=True, slots=True, eq=False)
class Skeleton:
    """Trees: each vertex but the roots has a parent."""

    positions: Array
    """``(N, D)``."""
    parents: npt.NDArray[np.int64]
    """``(N,)``: the row of each vertex's parent; -1 for roots, and where the parent was not read."""
    attributes: Arrays = field(default_factory=dict)
    object_ids: npt.NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return len(self.positions)

    @property
    def edges(self) -> npt.NDArray[np.int64]:
        """``(E, 2)``: child and parent."""
        child = np.flatnonzero(self.parents >= 0)
        return np.stack([child, self.parents[child]], axis=1)


@public("zardine.vectors")
@dataclass(frozen=True, slots=True, eq=False)
class Mesh:
    """Vertices and faces."""

    positions: Array
    """``(N, D)``."""
    faces: npt.NDArray[np.int64]
    """``(F, corners)``: rows of ``positions``, in the order that tells the outside."""
    attributes: Arrays = field(default_factory=dict)
    face_attributes: Arrays = field(default_factory=dict)
    object_ids: npt.NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return len(self.positions)


@public("zardine.vectors")
@dataclass(frozen=True, slots=True, eq=False)
class ParametricObject:
    """A named geometry that numbers describe."""

    type: str
    coefficients: npt.NDArray[np.float64]
    name: str = ""
