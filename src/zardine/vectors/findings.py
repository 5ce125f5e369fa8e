"""What checking a store finds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeVar

from zardine.errors import ZardineError
from zardine.public_names import public
from zardine.vectors.storing.store_states import NOT_ON_PURPOSE

T = TypeVar("T")


@public("zardine.vectors")
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


@public("zardine.vectors")
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


def unexpected(fault: BaseException) -> str:
    """The message for an error that nobody raised on purpose."""
    return f"cannot be read: {type(fault).__name__}: {fault}"


def guarded(findings: list[Finding], code: str, place: str, check: Callable[[], T]) -> T | None:
    """What ``check`` gives; an error that it raises becomes a finding."""
    try:
        return check()
    except ZardineError as fault:
        findings.append(error(code, place, str(fault)))
    except NOT_ON_PURPOSE as fault:
        findings.append(error(code, place, unexpected(fault)))
    return None
