"""A level as one file, or as several that are parts of it: first it is seen what all of it is like, then written."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from zardine.stores.resolve import StoreLike
from zardine.vectors.exchange.file_parts import Step
from zardine.vectors.exchange.level_parts import LevelParts
from zardine.vectors.exchange.targets import writing

Look: TypeAlias = Callable[[StoreLike, Path, int, LevelParts[Any]], dict[str, Any]]
"""Is given the store, the file, the level and its parts, and warns of what is lost; gives, as JSON, what files have."""
Write: TypeAlias = Callable[[StoreLike, Path, LevelParts[Any], Mapping[str, Any]], None]
"""Is given the store, where to write, parts, and what was seen of all of them."""


@dataclass(frozen=True, slots=True)
class FileWriter:
    """How a level, or a part of it, becomes a file of a format."""

    look: Look
    write: Write
    ways: int = 2
    """How often a level is gone through for a file, or what takes as long."""

    def __call__(self, path: StoreLike, target: Path, level: int, step: Step) -> None:
        """Write a level to one file."""
        parts = LevelParts[Any](path, level, step, self.ways)
        layout = self.look(path, target, level, parts)
        with writing(target) as place:
            self.write(path, place, parts, layout)


__all__ = ["FileWriter"]
