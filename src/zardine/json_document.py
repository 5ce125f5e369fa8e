"""Reading JSON documents strictly: collect every problem with its place, then raise once.

Parsers take a value, the place where it stands (``codecs[0].configuration.level``) and a :class:`Problems` list. They
return ``None`` (or another stand-in) after adding a problem, so that the rest of the document is still looked at.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from zardine.errors import MetadataError, Problem, UnknownExtensionError

JSON: TypeAlias = Any


class Problems:
    """The faults found so far in one document."""

    def __init__(self) -> None:
        self.found: list[Problem] = []
        self.notes: list[Problem] = []
        """What is read although the specification has it otherwise, so that other programs may refuse it."""
        self.unknown_extension = False

    def add(self, place: str, message: str) -> None:
        """Note a fault at ``place``; ``message`` says what was found and what was expected."""
        self.found.append(Problem(place, message))

    def note(self, place: str, message: str) -> None:
        """Note something at ``place`` that is read, and that the specification does not allow."""
        self.notes.append(Problem(place, message))

    def expected(self, place: str, expected: str, value: JSON) -> None:
        """Note that ``value`` at ``place`` is not what the specification asks for."""
        self.add(place, f"expected {expected}, found {show(value)}")

    def unknown(self, place: str, message: str) -> None:
        """Note an extension that nobody here implements."""
        self.unknown_extension = True
        self.add(place, message)

    def __bool__(self) -> bool:
        return bool(self.found)

    def raise_if_any(self, subject: str) -> None:
        """Raise one error that lists everything found."""
        if self.found:
            kind = UnknownExtensionError if self.unknown_extension and len(self.found) == 1 else MetadataError
            raise kind(subject, self.found)


@dataclass(frozen=True, slots=True)
class Extension:
    """A named extension as a metadata document holds it (core 3.1, "Extension definition").

    ``configuration`` is ``None`` where the member is absent.
    """

    name: str
    configuration: Mapping[str, JSON] | None = None
    must_understand: bool = True

    def to_json(self) -> dict[str, JSON]:
        """The object form: always ``name``, and ``configuration`` where there is one."""
        document: dict[str, JSON] = {"name": self.name}
        if self.configuration is not None:
            document["configuration"] = dict(self.configuration)
        if not self.must_understand:
            document["must_understand"] = False
        return document

    def __hash__(self) -> int:
        return hash(self.name)


def parse_extension(value: JSON, place: str, problems: Problems, *, ignorable: bool = True) -> Extension | None:
    """An extension object or short-hand name; not ``ignorable``: ``must_understand: false`` is not allowed here."""
    if isinstance(value, str):
        value = {"name": value}
    if not isinstance(value, Mapping):
        problems.expected(place, 'a name or an object with "name"', value)
        return None
    good = True
    for member in value:
        if member not in ("name", "configuration", "must_understand"):
            problems.add(f"{place}.{member}", "unknown member of an extension object")
            good = False
    name = value.get("name")
    if not isinstance(name, str) or not name:
        problems.expected(f"{place}.name", "a non-empty string", name)
        good = False
    configuration = value.get("configuration")
    if "configuration" in value and not isinstance(configuration, Mapping):
        problems.expected(f"{place}.configuration", "an object", configuration)
        good = False
    must_understand = value.get("must_understand", True)
    if not isinstance(must_understand, bool):
        problems.expected(f"{place}.must_understand", "true or false", must_understand)
        good = False
    elif not must_understand and not ignorable:
        problems.add(f"{place}.must_understand", "false is not allowed here: this extension has to be understood")
        good = False
    return Extension(str(name), configuration, bool(must_understand)) if good else None


def check_members(
    value: Mapping[str, JSON] | None, allowed: Iterable[str], place: str, problems: Problems
) -> Mapping[str, JSON]:
    """``value`` (empty where absent), after noting every member that is not ``allowed``."""
    allowed = tuple(allowed)
    known = ", ".join(f'"{name}"' for name in allowed) or "none"
    for member in value or {}:
        if member not in allowed:
            problems.add(f"{place}.{member}", f"unknown member; known are: {known}")
    return value or {}


def is_integer(value: JSON) -> bool:
    """Whether a JSON value is a number without fraction or exponent."""
    return isinstance(value, int) and not isinstance(value, bool)


def parse_integer(
    value: JSON, place: str, problems: Problems, *, low: int | None = None, high: int | None = None
) -> int | None:
    """An integer from ``low`` to ``high`` (both inclusive, either open)."""
    if not is_integer(value) or (low is not None and value < low) or (high is not None and value > high):
        bounds = ""
        if low is not None and high is not None:
            bounds = f" from {low} to {high}"
        elif low is not None:
            bounds = f" of {low} or more"
        elif high is not None:
            bounds = f" of {high} or less"
        problems.expected(place, f"an integer{bounds}", value)
        return None
    return int(value)


def parse_integers(
    value: JSON, place: str, problems: Problems, *, low: int, length: int | None = None
) -> tuple[int, ...] | None:
    """An array of integers of ``low`` or more, with exactly ``length`` elements where given."""
    if not isinstance(value, (list, tuple)):
        problems.expected(place, "an array of integers", value)
        return None
    if length is not None and len(value) != length:
        problems.add(place, f"expected {length} elements, one for each dimension, found {len(value)}")
        return None
    numbers = [parse_integer(item, f"{place}[{i}]", problems, low=low, high=2**63 - 1) for i, item in enumerate(value)]
    return None if None in numbers else tuple(n for n in numbers if n is not None)


def parse_choice(value: JSON, choices: Iterable[str], place: str, problems: Problems) -> str | None:
    """One of the strings ``choices``."""
    choices = tuple(choices)
    if not isinstance(value, str) or value not in choices:
        problems.expected(place, "one of " + ", ".join(f'"{choice}"' for choice in choices), value)
        return None
    return value


def parse_bool(value: JSON, place: str, problems: Problems) -> bool | None:
    """``true`` or ``false``."""
    if not isinstance(value, bool):
        problems.expected(place, "true or false", value)
        return None
    return value


def show(value: JSON) -> str:
    """A value for an error text: JSON where possible, cut to a readable length."""
    try:
        text = json.dumps(value)
    except (TypeError, ValueError, RecursionError):
        text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def load_object(data: bytes | bytearray | memoryview, subject: str) -> dict[str, JSON]:
    """Parse the bytes of a metadata document, which must be one JSON object without repeated members."""

    def pairs(items: list[tuple[str, JSON]]) -> dict[str, JSON]:
        document = dict(items)
        if len(document) != len(items):
            names = [name for name, _ in items]
            repeated = sorted({name for name in names if names.count(name) > 1})
            raise ValueError(f"repeated member {', '.join(map(repr, repeated))}")
        return document

    text = bytes(data)
    try:
        document = json.loads(text.decode("utf-8"), object_pairs_hook=pairs)
    except RecursionError:
        raise MetadataError(subject, [Problem("", "the document is nested too deeply")]) from None
    except ValueError as error:
        reason = _instead_of_json(text) or str(error)
        raise MetadataError(subject, [Problem("", f"not a JSON document: {reason}")]) from None
    if not isinstance(document, dict):
        raise MetadataError(subject, [Problem("", f"expected a JSON object, found {show(document)}")])
    if text.count(b"{") + text.count(b"[") > _DEEPEST and _is_deep(document):
        raise MetadataError(subject, [Problem("", f"the document is nested more than {_DEEPEST} levels deep")])
    return document


def _instead_of_json(data: bytes) -> str:
    """What servers send in place of a document, so that the error can say it; empty where it is something else."""
    if data.startswith(b"\x1f\x8b"):
        return "it is gzip data, which a web server should send only to programs that ask for it"
    start = data[:200].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if start.startswith((b"<!doctype html", b"<html")):
        return "it is an HTML page, as a web server gives it for a login or in place of what it does not have"
    if start.startswith(b"<?xml"):
        return "it is an XML document, as an object store gives it for an error"
    return "" if data.strip() else "it is empty"


_DEEPEST = 200


def _is_deep(document: JSON) -> bool:
    level = [document]
    for _ in range(_DEEPEST):
        level = [
            child
            for value in level
            for child in (value.values() if isinstance(value, dict) else value)
            if isinstance(child, (dict, list))
        ]
        if not level:
            return False
    return True
