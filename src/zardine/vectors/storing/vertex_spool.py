"""Vertices that come piece by piece and are kept in a temporary file, to be gone through as often as needed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from zardine.errors import DataError
from zardine.vectors.content.arguments import checked_positions
from zardine.vectors.content.columns import Column
from zardine.vectors.content.content import Columns
from zardine.vectors.content.parts import AT_ONCE, Values, as_records, from_records, record_type
from zardine.vectors.format.ragged import bounds_of
from zardine.vectors.storing.spools import Runs


class VertexSpool:
    """Vertices of which each piece that is added has the same attributes, of the same types: all are numbers.

    It can be gone through as :class:`~zardine.vectors.content.parts.Vertices`. ``dtype`` is that of positions, as
    :func:`~zardine.vectors.content.arguments.checked_positions` takes it.
    """

    def __init__(self, rank: int, dtype: npt.DTypeLike | None = None) -> None:
        self.rank, self.count = rank, 0
        self._wanted = dtype
        self._like: dict[str, Column] = {}
        self._runs: Runs | None = None
        self._corners = np.zeros((0, rank))

    def add(self, positions: npt.NDArray[Any], columns: Columns) -> None:
        """Add vertices with attributes. Raises :class:`~zardine.errors.DataError` for positions that cannot be any."""
        points = checked_positions(positions, self._wanted)
        if self._runs is None:
            self._like = {name: column.take(slice(0, 0)) for name, column in columns.items()}
            self._wanted = points.dtype
            self._runs = Runs(record_type(self))
        if points.shape[1] != self.rank or _types(columns) != _types(self._like):
            raise DataError("pieces of one file have different attributes, or positions of different kinds")
        for start in range(0, len(points), AT_ONCE):
            some = slice(start, start + AT_ONCE)
            values = {name: column.values[some] for name, column in columns.items()}
            self._runs.add(as_records(self._runs.dtype, points[some], values))
        if len(points):
            self._corners = np.stack(bounds_of(np.concatenate([self._corners, np.stack(bounds_of(points))])))
        self.count += len(points)

    def rename(self, names: Mapping[str, str]) -> None:
        """Let attributes have other names: ``names`` gives for each new one, in order, the old one."""
        self._like = {name: self._like[old] for name, old in names.items()}

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of positions."""
        return np.dtype(np.float64 if self._wanted is None else self._wanted)

    @property
    def columns(self) -> Columns:
        """The attributes, without values."""
        return self._like

    def corners(self) -> npt.NDArray[Any]:
        """The lowest and the highest corner."""
        return self._corners

    def parts(self) -> Iterator[tuple[npt.NDArray[Any], Values]]:
        """Give positions and values, piece by piece."""
        for number in range(0 if self._runs is None else len(self._runs)):
            assert self._runs is not None
            positions, columns = from_records(self._runs[number], self._like)
            yield positions, {name: column.values for name, column in columns.items()}


def _types(columns: Columns) -> list[Any]:
    return [(name, column.values.dtype, column.row_shape, column.categories) for name, column in columns.items()]


__all__ = ["VertexSpool"]
