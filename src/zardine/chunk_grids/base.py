"""What a chunk grid is: how each axis is cut (core 3.1, "Chunk grids")."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar, Self

from zardine.chunk_grids.axis import Axis
from zardine.json_document import JSON, Extension, Problems


class ChunkGrid(ABC):
    """A grid of chunks whose borders are straight through the whole array. A frozen, hashable value."""

    name: ClassVar[str]

    @classmethod
    @abstractmethod
    def from_json(
        cls, configuration: Mapping[str, JSON] | None, shape: tuple[int, ...], place: str, problems: Problems
    ) -> Self | None:
        """The grid that a ``configuration`` object describes for an array of ``shape``; notes every problem."""

    @abstractmethod
    def configuration(self) -> dict[str, JSON]:
        """The ``configuration`` member to write."""

    @abstractmethod
    def axes(self, shape: tuple[int, ...]) -> tuple[Axis, ...]:
        """The grid over an array of ``shape``, one axis for each dimension."""

    @abstractmethod
    def resized(self, shape: tuple[int, ...]) -> ChunkGrid:
        """The grid for the same array grown or shrunk to ``shape``: chunks that exist keep their borders."""

    def continues(self, other: ChunkGrid) -> bool:
        """Whether the two are one grid, perhaps resized: chunks that both have, have the same borders in both."""
        return self == other

    def to_extension(self) -> Extension:
        """The ``chunk_grid`` member."""
        return Extension(self.name, self.configuration())
