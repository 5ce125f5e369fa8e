"""What the tools say: faults and notes with their places, as frozen values."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong, or (among the notes of a report) worth knowing."""

    place: str
    """Path of the node, with a leading slash."""
    key: str | None = None
    """The store key."""
    chunk: tuple[int, ...] | None = None
    """Grid coordinates of the chunk, or inner chunk, in its array."""
    byte_range: tuple[int, int] | None = None
    """Offset and length in the stored object."""
    kind: str = ""
    """One word for programs; ``docs/tools.md`` lists them."""
    message: str = ""

    def __str__(self) -> str:
        words = [self.key if self.key is not None else self.place]
        if self.chunk is not None:
            words.append(f"chunk {self.chunk}")
        if self.byte_range is not None:
            words.append(f"bytes {self.byte_range[0]} to {self.byte_range[0] + self.byte_range[1]}")
        return f"{', '.join(words)}: {self.kind}: {self.message}"


@dataclass(frozen=True, slots=True)
class Report:
    """What :func:`zardine.verify` found. True where there are no faults."""

    faults: tuple[Fault, ...]
    notes: tuple[Fault, ...]
    """What is allowed, and perhaps not wanted: unused space, shared bytes, objects kept by a repair."""
    deep: bool
    """Whether every chunk was decoded."""
    nodes: int
    objects: int
    """Stored chunks and shards looked at."""
    chunks: int
    """Stored chunks, inner chunks of shards among them, looked at."""
    nbytes: int
    """Bytes read of them."""

    def __bool__(self) -> bool:
        return not self.faults

    def to_dict(self) -> dict[str, Any]:
        """The report as JSON has it."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Repairs:
    """What :func:`zardine.repair` did, or with ``dry_run`` would do. True where nothing is left to do."""

    actions: tuple[Fault, ...]
    """Kinds: ``repaired``, ``dropped`` (a chunk is empty now), ``kept`` (as it was), ``removed`` (it was outside of the
    array), ``cleared`` (of values beyond its shape), ``leftover`` (of a writer that died, removed)."""
    left: tuple[Fault, ...]
    """Faults that are still there."""
    dry_run: bool

    def __bool__(self) -> bool:
        return not self.left

    def to_dict(self) -> dict[str, Any]:
        """The report as JSON has it."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Flaw:
    """A fault or note within one stored object, before its place is known."""

    kind: str
    message: str
    row: int | None = None
    """Row of the shard's index."""
    byte_range: tuple[int, int] | None = None
    is_note: bool = False


def sort_faults(faults: Iterable[Fault]) -> tuple[Fault, ...]:
    """Return them by node, then key, then chunk."""
    return tuple(sorted(faults, key=lambda each: (each.place, each.key or "", each.chunk or ())))


__all__ = ["Fault", "Flaw", "Repairs", "Report", "sort_faults"]
