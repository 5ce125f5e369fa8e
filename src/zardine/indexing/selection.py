"""Normalized selections: what of an array is wanted, whatever way the user said it, before any thought of chunks.

Two kinds. A :class:`GridSelection` takes some indices of each axis and means all their combinations (basic,
orthogonal and block selections). A :class:`PointSelection` names elements one by one (coordinate and mask selections).
Both are free of negative indices and negative steps.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from types import EllipsisType
from typing import Any, TypeAlias

import numpy.typing as npt

from zardine.buffers import Ints

AxisLike: TypeAlias = slice | EllipsisType | npt.ArrayLike
"""What users write between square brackets for one axis: an integer, a slice, ``...``, a list, a mask, a field name."""

SelectionLike: TypeAlias = AxisLike | tuple[AxisLike, ...]
"""What users write between square brackets."""


@dataclass(frozen=True, slots=True)
class AxisSlice:
    """Indices ``start``, ``start + step``, ..., ``count`` of them; ``step`` is 1 or more."""

    start: int
    step: int
    count: int


@dataclass(frozen=True, slots=True, eq=False)
class AxisList:
    """Any indices in any order, repeated ones too."""

    indices: Ints

    @property
    def count(self) -> int:
        """How many indices."""
        return len(self.indices)


AxisSelection: TypeAlias = AxisSlice | AxisList


@dataclass(frozen=True, slots=True, eq=False)
class GridSelection:
    """All combinations of the indices that ``axes`` selects.

    ``drop`` marks axes selected by a single integer, which the result does not have; ``flip`` those that were selected
    with a negative step: their indices stand here in ascending order, and the result is turned around.
    """

    axes: tuple[AxisSelection, ...]
    drop: tuple[bool, ...]
    flip: tuple[bool, ...]

    @property
    def full_shape(self) -> tuple[int, ...]:
        """Number of selected indices of each axis, dropped ones (1) included."""
        return tuple(axis.count for axis in self.axes)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the result."""
        return tuple([axis.count for axis, drop in zip(self.axes, self.drop, strict=True) if not drop])

    @property
    def size(self) -> int:
        """Number of selected elements."""
        return prod(self.full_shape)

    def full_view(self, array: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """``array`` of ``shape`` as a view of ``full_shape`` whose elements are in ascending order of their indices."""
        if True not in self.drop and True not in self.flip:
            return array
        backwards = slice(None, None, -1)
        return array[
            tuple(
                None if drop else backwards if flip else slice(None)
                for drop, flip in zip(self.drop, self.flip, strict=True)
            )
        ]


@dataclass(frozen=True, slots=True, eq=False)
class PointSelection:
    """Elements at ``coordinates`` (one array for each dimension, all of the same length); the result has ``shape``."""

    coordinates: tuple[Ints, ...]
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        """Number of selected elements."""
        return prod(self.shape)


Selection: TypeAlias = GridSelection | PointSelection
