"""What checking a store finds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Finding:
    """A fault, or something to look at."""

    severity: Literal["error", "warning"]
    code: str
    """A short name for this kind of fault, for programs."""
    place: str
    """Path of the node in the store, empty for the root."""
    message: str

    def __str__(self) -> str:
        return f"{self.severity}: {self.place or 'root'}: {self.message} [{self.code}]"


@dataclass(frozen=True, slots=True)
class Report:
    """Everything that was found."""

    findings: tuple[Finding, ...]
    vertex_counts: tuple[int, ...] = ()
    """Vertices that are there, level by level."""

    @property
    def ok(self) -> bool:
        """Whether there is no error; there may be warnings."""
        return not self.errors

    @property
    def errors(self) -> tuple[Finding, ...]:
        """Faults: readers give wrong or no answers."""
        return tuple(each for each in self.findings if each.severity == "error")

    @property
    def warnings(self) -> tuple[Finding, ...]:
        """What readers get along with."""
        return tuple(each for each in self.findings if each.severity == "warning")

    @property
    def codes(self) -> set[str]:
        """The kinds of everything that was found."""
        return {each.code for each in self.findings}


def error(code: str, place: str, message: str) -> Finding:
    """A fault."""
    return Finding("error", code, place, message)


def warning(code: str, place: str, message: str) -> Finding:
    """Something to look at."""
    return Finding("warning", code, place, message)
