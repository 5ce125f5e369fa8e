"""One table of checks per codec, used both for metadata documents and for constructor arguments."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from typing import Any, ClassVar, Self, TypeAlias

from zardine.codecs.base import Codec
from zardine.json_document import JSON, Problems, check_members, parse_bool, parse_choice, parse_integer, parse_integers

Check: TypeAlias = Callable[[JSON, str, Problems], Any]
"""Takes a value, its place and the problems; returns the value in its regular form, or notes what is wrong."""


class Configured(Codec):
    """A codec whose dataclass fields are the members of its ``configuration``, each with a check.

    ``from_json`` reports faults with their place in the document; the constructor raises ``ValueError`` for the same
    faults. Both store the regular form: plain strings for enums, tuples for lists.
    """

    MEMBERS: ClassVar[Mapping[str, Check]] = {}
    """The check of each member, under the name of the field that holds it."""

    REQUIRED: ClassVar[tuple[str, ...]] = ()
    """Members that a metadata document has to have (a constructor may have defaults for them)."""

    AUTOMATIC: ClassVar[tuple[str, ...]] = ()
    """Fields for which a constructor also takes ``None``: ``resolve`` chooses a value."""

    def __post_init__(self) -> None:
        problems = Problems()
        values: dict[str, Any] = {}
        for name, check in self.MEMBERS.items():
            value = getattr(self, name)
            if value is not None or name not in self.AUTOMATIC:
                value = check(value, name, problems)
            values[name] = value
        if not problems:
            self.check_together(values, "", problems)
        if problems:
            raise ValueError(f"{type(self).__name__}: " + "; ".join(map(str, problems.found)))
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @classmethod
    def from_json(cls, configuration: Mapping[str, JSON] | None, place: str, problems: Problems) -> Self | None:
        """The codec that a ``configuration`` object describes; ``None`` after noting every problem."""
        before = len(problems.found)
        given = check_members(configuration, cls.MEMBERS, place, problems)
        for name in cls.REQUIRED:
            if name not in given:
                problems.add(f"{place}.{name}", "required member is missing")
        values = {
            name: check(given[name], f"{place}.{name}", problems)
            for name, check in cls.MEMBERS.items()
            if name in given
        }
        if len(problems.found) == before:
            cls.check_together(values, f"{place}.", problems)
        return None if len(problems.found) > before else cls(**values)

    @classmethod
    def check_together(cls, values: Mapping[str, Any], prefix: str, problems: Problems) -> None:
        """Note faults of members that are right each by itself. Places are ``prefix`` + the member."""

    def configuration(self) -> dict[str, JSON] | None:
        """Every member spelled out."""
        members = {name: _to_json(getattr(self, name)) for name in self.MEMBERS}
        return members or None


def integer(low: int, high: int) -> Check:
    """An integer from ``low`` to ``high``, both inclusive."""
    return lambda value, place, problems: parse_integer(value, place, problems, low=low, high=high)


def integers(low: int) -> Check:
    """An array of integers, each ``low`` or more; a tuple in memory."""
    return lambda value, place, problems: parse_integers(value, place, problems, low=low)


def choice(choices: Iterable[str]) -> Check:
    """One of the strings ``choices``; string enums are taken as their value."""
    allowed = tuple(str(choice) for choice in choices)

    def check(value: JSON, place: str, problems: Problems) -> str | None:
        return parse_choice(
            str(getattr(value, "value", value)) if isinstance(value, (str, Enum)) else value, allowed, place, problems
        )

    return check


def flag() -> Check:
    """``true`` or ``false``."""
    return parse_bool


def nullable(check: Check) -> Check:
    """``null``, or what ``check`` accepts."""
    return lambda value, place, problems: None if value is None else check(value, place, problems)


def _to_json(value: Any) -> JSON:
    return [_to_json(item) for item in value] if isinstance(value, tuple) else value
