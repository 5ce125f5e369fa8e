"""What the tools say, of arrays and of Zarr Vectors: faults with their places, as frozen values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, TypeAlias

from zardine.shown_text import printable

Severity: TypeAlias = Literal["error", "warning", "action"]
"""``error``: a fault; ``warning``: what is allowed, and perhaps not wanted; ``action``: what a repair did."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong, or worth knowing, or that was done."""

    place: str
    """Path of the node: with a leading slash; in a store of Zarr Vectors relative to it, empty for its root."""
    key: str | None = None
    """The store key."""
    chunk: tuple[int, ...] | None = None
    """Grid coordinates of the chunk, or inner chunk, in its array."""
    byte_range: tuple[int, int] | None = None
    """Offset and length in the stored object."""
    kind: str = ""
    """One word for programs; ``docs/tools.md`` lists those of arrays."""
    message: str = ""
    severity: Severity = "error"
    coordinates: str = ""
    """What the chunk or shard covers by the coordinates of the array, such as "time 2004-03-01 to 2004-05-31".

    Empty if the array has none; only :func:`zardine.verify` looks for them.
    """

    @property
    def code(self) -> str:
        """The same as ``kind``."""
        return self.kind

    def __str__(self) -> str:
        words = [self.key if self.key is not None else self.place or "root"]
        if self.chunk is not None:
            words.append(f"chunk {self.chunk}")
        if self.coordinates:
            words.append(self.coordinates)
        if self.byte_range is not None:
            words.append(f"bytes {self.byte_range[0]} to {self.byte_range[0] + self.byte_range[1]}")
        return printable(f"{', '.join(words)}: {self.kind}: {one_line(self.message)}")

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON has it in the lists of a report, which say how severe it is."""
        return {each.name: getattr(self, each.name) for each in fields(self) if each.name != "severity"}

    @classmethod
    def from_dict(cls, document: Mapping[str, Any], severity: Severity = "error") -> Fault:
        """Return what :meth:`to_dict` wrote, also where that has been JSON since."""
        places = {name: tuple(document[name]) for name in ("chunk", "byte_range") if document[name] is not None}
        return cls(**{**document, **places}, severity=severity)


def one_line(message: str) -> str:
    """Return a message whose problems are listed, a line for each, as one line."""
    head, *problems = message.split("\n  - ")
    return f"{head}: {'; '.join(problems)}" if problems else message


class Outcome:
    """What is common to what the tools give: whether all is well, and a form for JSON. A frozen dataclass below it."""

    __slots__ = ()

    @property
    def ok(self) -> bool:
        """Whether there is nothing left to complain of: what it counts as, too, where a truth value is wanted."""
        raise NotImplementedError

    def __bool__(self) -> bool:
        return self.ok

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        found = {each.name: getattr(self, each.name) for each in fields(self)}  # type: ignore[arg-type]
        return {name: _plain(value) for name, value in found.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, tuple) and any(isinstance(each, Fault) for each in value):
        return tuple(each.to_dict() for each in value)
    return value


@dataclass(frozen=True, slots=True)
class Report(Outcome):
    """What was found. True where there are no faults."""

    faults: tuple[Fault, ...]
    notes: tuple[Fault, ...] = ()
    """What is allowed, and perhaps not wanted: unused space, shared bytes, objects kept by a repair."""

    @property
    def ok(self) -> bool:
        """Whether there are no faults; there may be notes."""
        return not self.faults


@dataclass(frozen=True, slots=True)
class Repairs(Outcome):
    """What a repair did, or with ``dry_run`` would do. True where nothing is left to do."""

    actions: tuple[Fault, ...]
    """Kinds: ``repaired``, ``dropped`` (a chunk is empty now), ``kept`` (as it was), ``removed`` (it was outside of the
    array), ``cleared`` (of values beyond its shape), ``leftover`` (of a writer that died, removed)."""
    left: tuple[Fault, ...]
    """Faults that are still there."""
    dry_run: bool

    @property
    def ok(self) -> bool:
        """Whether no faults are left."""
        return not self.left


@dataclass(frozen=True, slots=True)
class Flaw:
    """A fault within one stored object, before its place is known."""

    kind: str
    message: str
    row: int | None = None
    """Row of the shard's index."""
    byte_range: tuple[int, int] | None = None
    severity: Severity = "error"


def note(place: str, key: str | None = None, *, kind: str, message: str) -> Fault:
    """Return something that is allowed, and perhaps not wanted."""
    return Fault(place, key, kind=kind, message=message, severity="warning")


def action(place: str, key: str | None = None, *, kind: str, message: str) -> Fault:
    """Return something that a repair did."""
    return Fault(place, key, kind=kind, message=message, severity="action")


def sort_faults(faults: Iterable[Fault]) -> tuple[Fault, ...]:
    """Return them by node, then key, then chunk."""
    return tuple(sorted(faults, key=lambda each: (each.place, each.key or "", each.chunk or ())))


__all__ = ["Fault", "Flaw", "Outcome", "Repairs", "Report", "Severity", "action", "note", "one_line", "sort_faults"]
