"""The regular grid: all chunks have the same shape (core 3.1, "Regular grids")."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from zardine.chunk_grids.axis import Axis
from zardine.chunk_grids.base import ChunkGrid
from zardine.json_document import JSON, Problems, check_members, parse_integers


@dataclass(frozen=True)
class RegularGrid(ChunkGrid):
    """A grid of chunks of ``chunk_shape``, which may overhang the array at the far edges."""

    chunk_shape: tuple[int, ...]
    name = "regular"

    @classmethod
    def from_json(
        cls, configuration: Mapping[str, JSON] | None, shape: tuple[int, ...], place: str, problems: Problems
    ) -> RegularGrid | None:
        """The grid that a ``configuration`` object describes."""
        members = check_members(configuration, ("chunk_shape",), place, problems)
        if "chunk_shape" not in members:
            problems.add(f"{place}.chunk_shape", "the member is missing; it is required")
            return None
        chunk_shape = parse_integers(members["chunk_shape"], f"{place}.chunk_shape", problems, low=0, length=len(shape))
        if chunk_shape is None:
            return None
        before = len(problems.found)
        for axis, (size, length) in enumerate(zip(chunk_shape, shape, strict=True)):
            if size == 0 and length > 0:
                problems.add(
                    f"{place}.chunk_shape[{axis}]", f"chunks of length 0 cannot hold an axis of length {length}"
                )
            elif size == 0:
                problems.note(f"{place}.chunk_shape[{axis}]", "0 is no length of a chunk; it is read as 1")
        return cls(chunk_shape) if len(problems.found) == before else None

    def configuration(self) -> dict[str, JSON]:
        """The ``configuration`` member."""
        return {"chunk_shape": list(self.chunk_shape)}

    def axes(self, shape: tuple[int, ...]) -> tuple[Axis, ...]:
        """The grid over an array of ``shape``."""
        return tuple(Axis.regular(length, max(size, 1)) for length, size in zip(shape, self.chunk_shape, strict=True))

    def resized(self, shape: tuple[int, ...]) -> RegularGrid:
        """The same grid: it has no end. A length of 0 (of an empty axis) becomes 1."""
        return self if 0 not in self.chunk_shape else RegularGrid(tuple(max(size, 1) for size in self.chunk_shape))

    def continues(self, other: ChunkGrid) -> bool:
        """Whether the chunks are the same; a length of 0 is that of an empty axis, and as good as 1."""
        return isinstance(other, RegularGrid) and self.resized(()) == other.resized(())
