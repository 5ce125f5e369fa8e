"""What a server keeps for its pages, within a number of bytes for all of them together."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from zardine.cache import Cache
from zardine.engine.read_each import SeenChunk


@dataclass(frozen=True, slots=True, eq=False)
class Kept:
    """Decoded chunks by the number of their snapshot and their place, and pictures by that and what they show."""

    chunks: Cache[tuple[int, tuple[int, ...]], SeenChunk] = field(default_factory=lambda: Cache(80 * 2**20))
    pictures: Cache[Any, Any] = field(default_factory=lambda: Cache(72 * 2**20))


__all__ = ["Kept"]
