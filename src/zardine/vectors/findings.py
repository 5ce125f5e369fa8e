"""What checking a store finds."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

from zardine.errors import ZardineError
from zardine.public_names import public
from zardine.tools import report as tools
from zardine.tools.report import Fault, note
from zardine.vectors.storing.store_states import NOT_ON_PURPOSE

T = TypeVar("T")


Finding = Fault


@public("zardine.vectors")
@dataclass(frozen=True, slots=True)
class Report(tools.Report):
    """Everything that was found in a store: faults are errors, notes are warnings. True where there are no faults."""

    vertex_counts: tuple[int, ...] = ()
    """Vertices that are there, level by level."""

    @classmethod
    def of(cls, findings: Iterable[Finding], vertex_counts: tuple[int, ...] = ()) -> Report:
        """Return the report of ``findings``, each among faults or notes as it is severe."""
        found = tuple(findings)
        faults = tuple(each for each in found if each.severity == "error")
        return cls(faults, tuple(each for each in found if each.severity != "error"), vertex_counts)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Faults and notes."""
        return (*self.faults, *self.notes)

    @property
    def errors(self) -> tuple[Finding, ...]:
        """The same as ``faults``: readers give wrong or no answers."""
        return self.faults

    @property
    def warnings(self) -> tuple[Finding, ...]:
        """The same as ``notes``: what readers get along with."""
        return self.notes

    @property
    def codes(self) -> set[str]:
        """The kinds of everything that was found."""
        return {each.kind for each in self.findings}

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        found = [finding_dict(each) for each in self.findings]
        return {"ok": self.ok, "findings": found, "vertex_counts": self.vertex_counts}


def finding_dict(found: Finding) -> dict[str, Any]:
    """Return a finding as JSON has it of stores of vectors: without keys and chunks, and with how severe it is."""
    return {name: getattr(found, name) for name in ("severity", "code", "place", "message")}


def error(code: str, place: str, message: str) -> Finding:
    """Return a fault."""
    return Fault(place, kind=code, message=message)


def warning(code: str, place: str, message: str) -> Finding:
    """Return something to look at."""
    return note(place, kind=code, message=message)


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


def found_by(check: Callable[[list[Finding]], object]) -> list[Finding]:
    """What ``check`` adds to the list that it is given, to be put in order with what others find meanwhile."""
    own: list[Finding] = []
    check(own)
    return own
