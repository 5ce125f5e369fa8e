"""Reading JSON documents strictly: collect every problem with its place, then raise once.

Parsers take a value, the place where it stands (``codecs[0].configuration.level``) and a :class:`Problems` list. They
return ``None`` (or another stand-in) after adding a problem, so that the rest of the document is still looked at.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from math import isfinite, isinf, isnan
from typing import Any, Final, TypeAlias

from zardine.buffers import BytesLike
from zardine.errors import ChunkTooLargeError, DataError, MetadataError, Problem, UnknownExtensionError
from zardine.limits import CHUNK, check_size, limit_of, no_memory

JSON: TypeAlias = Any

MISSING: Final = object()
"""Stands for a member that is not there, where a value is looked at."""


class Number(float):
    """A number whose text says more than the nearest ``float``: it has many digits, or is beyond the range."""

    text: str

    def __new__(cls, text: str) -> Number:
        number = super().__new__(cls, text)
        number.text = text
        return number

    def __reduce__(self) -> tuple[type[Number], tuple[str]]:
        return Number, (self.text,)


class Problems:
    """The faults found so far in one document.

    ``with_notes``: also what is read although the specification has it otherwise, so that other programs may refuse it.
    """

    def __init__(self, *, with_notes: bool = False) -> None:
        self.found: list[Problem] = []
        self.notes: list[Problem] = []
        self.with_notes = with_notes
        self.unknown_extension = False

    def add(self, place: str, message: str) -> None:
        """Note a fault at ``place``; ``message`` says what was found and what was expected."""
        self.found.append(Problem(place, message))

    def note(self, place: str, message: str) -> None:
        """Note something at ``place`` that is read, and that the specification does not allow."""
        if self.with_notes:
            self.notes.append(Problem(place, message))

    def expected(self, place: str, expected: str, value: JSON) -> None:
        """Note that ``value`` at ``place``, or :data:`MISSING`, is not what the specification asks for."""
        if value is MISSING:
            self.add(place, f"the member is missing; expected {expected}")
        else:
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
    others: Mapping[str, JSON] = field(default_factory=dict)
    """Members that nobody here knows and that may be ignored; kept for writing."""

    def to_json(self) -> dict[str, JSON]:
        """The object form, a copy: always ``name``, and ``configuration`` where there is one."""
        document: dict[str, JSON] = {"name": self.name}
        if self.configuration is not None:
            document["configuration"] = copy_json(self.configuration)
        if not self.must_understand:
            document["must_understand"] = False
        return {**document, **copy_json(self.others)}

    to_dict = to_json

    def __getattr__(self, member: str) -> JSON:
        """A member of the configuration, with tuples for lists: ``metadata.chunk_grid.chunk_shape``."""
        if member not in ("name", "configuration", "must_understand") and member in (self.configuration or {}):
            assert self.configuration is not None
            return as_tuples(self.configuration[member])
        raise AttributeError(f"the extension {self.name!r} has no {member!r}" if member[:1] != "_" else member)

    def __hash__(self) -> int:
        return hash(self.name)


def copy_json(value: JSON) -> JSON:
    """Return a copy that shares nothing that can be changed: what is parsed is shared by all who open an equal one."""
    if isinstance(value, Mapping):
        return {name: copy_json(each) for name, each in value.items()}
    return type(value)(map(copy_json, value)) if type(value) in (list, tuple) else value


def as_tuples(value: JSON) -> JSON:
    """Return ``value`` with tuples in place of lists."""
    return tuple(map(as_tuples, value)) if isinstance(value, list) else value


def parse_extension(value: JSON, place: str, problems: Problems, *, ignorable: bool = True) -> Extension | None:
    """An extension object or short-hand name; not ``ignorable``: ``must_understand: false`` is not allowed here."""
    if isinstance(value, str):
        value = {"name": value}
    if not isinstance(value, Mapping):
        problems.expected(place, 'a name or an object with "name"', value)
        return None
    good = True
    others: dict[str, JSON] = {}
    for member in value:
        if member in ("name", "configuration", "must_understand"):
            continue
        if may_be_ignored(value[member]):
            others[member] = value[member]
        else:
            problems.add(f"{place}.{member}", "unknown member of an extension object")
            good = False
    name = value.get("name", MISSING)
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
    return Extension(str(name), configuration, bool(must_understand), others) if good else None


def may_be_ignored(value: JSON) -> bool:
    """Whether a member with this value says that programs that do not know it may pass over it."""
    return isinstance(value, Mapping) and value.get("must_understand") is False


def check_members(
    value: Mapping[str, JSON] | None, allowed: Iterable[str], place: str, problems: Problems
) -> Mapping[str, JSON]:
    """``value`` (empty where absent), after noting members that are not ``allowed`` and may not be ignored either."""
    allowed = tuple(allowed)
    known = ", ".join(f'"{name}"' for name in allowed) or "none"
    for member in value or {}:
        if member not in allowed and not may_be_ignored((value or {})[member]):
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
    if {*map(type, value)} == {int} and low <= min(value) and max(value) < 2**63:  # the usual case first
        return tuple(value)
    numbers = [parse_integer(item, f"{place}[{i}]", problems, low=low, high=2**63 - 1) for i, item in enumerate(value)]
    return None if None in numbers else tuple(n for n in numbers if n is not None)


def parse_shape(value: JSON, place: str, problems: Problems) -> tuple[int, ...] | None:
    """The shape of an array: lengths of 0 or more, of as many dimensions as NumPy can hold."""
    shape = parse_integers(value, place, problems, low=0)
    if shape is not None and len(shape) > MOST_DIMENSIONS:
        problems.add(place, f"{len(shape)} dimensions are more than NumPy can hold, which is {MOST_DIMENSIONS}")
        return None
    return shape


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
        text = _QUOTED.sub(r"\1", json.dumps(_with_texts(value)))
    except (TypeError, ValueError, RecursionError):
        text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def load_object(
    data: bytes | bytearray | memoryview, subject: str, *, only_attributes: bool = False
) -> dict[str, JSON]:
    """Parse the bytes of a metadata document, which must be one JSON object without repeated members.

    Numbers that are no attributes are of class :class:`Number` where their text matters.
    """

    text = bytes(data)
    try:
        precise = not only_attributes and _is_precise(text)
        document = parse_json(text, _without_repeated, _number if precise else None)
    except RecursionError:
        raise MetadataError(subject, [Problem("", "the document is nested too deeply")]) from None
    except ChunkTooLargeError:
        raise
    except ValueError as error:
        reason = _instead_of_json(text) or str(error)
        raise MetadataError(subject, [Problem("", f"not a JSON document: {reason}")]) from None
    if not isinstance(document, dict):
        raise MetadataError(subject, [Problem("", f"expected a JSON object, found {show(document)}")])
    if text.count(b"{") + text.count(b"[") > DEEPEST and _is_deep(document):
        raise MetadataError(subject, [Problem("", f"the document is nested more than {DEEPEST} levels deep")])
    return _with_plain_attributes(document) if precise else document


def _without_repeated(items: list[tuple[str, JSON]]) -> dict[str, JSON]:
    """An object of these members; ``ValueError`` where two have one name."""
    document = dict(items)
    if len(document) != len(items):
        names = [name for name, _ in items]
        repeated = sorted({name for name in names if names.count(name) > 1})
        raise ValueError(f"repeated member {', '.join(map(repr, repeated))}")
    return document


def parse_value(text: str, start: int) -> tuple[JSON, int]:
    """The value that begins at a place in a JSON text, without objects of repeated members, and where it ends.

    All numbers are ordinary ones. Raises as :func:`parse_json`.
    """
    _check_memory(text)
    return _decoder(_without_repeated, None).raw_decode(text, start)


def find_non_numbers(data: bytes | bytearray | memoryview) -> list[tuple[str, str]]:
    """Places of the words ``NaN``, ``Infinity`` and ``-Infinity`` in a document that :func:`load_object` takes."""
    text = bytes(data)
    if b"NaN" not in text and b"Infinity" not in text:
        return []
    found: list[tuple[str, str]] = []

    def walk(value: JSON, place: str) -> None:
        if isinstance(value, dict):
            for name, each in value.items():
                walk(each, f"{place}.{name}" if place else name)
        elif isinstance(value, list):
            for i, each in enumerate(value):
                walk(each, f"{place}[{i}]")
        elif isinstance(value, _Word):
            found.append((place, value))

    walk(json.loads(text.decode("utf-8"), parse_constant=_Word), "")
    return found


def name_non_number(value: float) -> str:
    """Return the text that fill values have in place of NaN or an infinity."""
    return "NaN" if isnan(value) else "Infinity" if value > 0 else "-Infinity"


def replace_non_numbers(value: JSON, place: str = "", replaced: list[tuple[str, str]] | None = None) -> JSON:
    """Return ``value`` with texts in place of NaN and infinities, which JSON lacks; ``value`` itself if it has none.

    Add the place and the text of each to ``replaced``.
    """
    if isinstance(value, float) and not isfinite(value):
        text = name_non_number(value)
        if replaced is not None:
            replaced.append((place, text))
        return text
    parts: list[JSON]
    if isinstance(value, Mapping):
        above = f"{place}." if place else ""
        parts = [replace_non_numbers(each, f"{above}{name}", replaced) for name, each in value.items()]
        same = all(a is b for a, b in zip(parts, value.values(), strict=True))
        return value if same else dict(zip(value, parts, strict=True))
    if isinstance(value, (list, tuple)):
        parts = [replace_non_numbers(each, f"{place}[{i}]", replaced) for i, each in enumerate(value)]
        return value if all(a is b for a, b in zip(parts, value, strict=True)) else parts
    return value


class _Word(str):
    """A word that is no JSON, where a number is meant."""


_QUOTED = re.compile(r'"\\u0000([^"]*)\\u0000"')


def _with_texts(value: JSON) -> JSON:
    """``value`` with the texts of numbers, marked, in their place."""
    if isinstance(value, Number):
        return f"\0{value.text}\0"
    if isinstance(value, dict):
        return {name: _with_texts(each) for name, each in value.items()}
    return list(map(_with_texts, value)) if isinstance(value, (list, tuple)) else value


_HUGE = tuple(re.compile(letter + rb"[+]?[0-9]{3}") for letter in (b"e", b"E"))  # not [eE], which is ten times as slow
_LONG = re.compile(rb"[0-9][0-9.]{15}")
_FILL = b'"fill_value"'
_FILL_REACH = 512
"""Bytes behind that name in which a number is looked for."""


def _is_precise(text: bytes) -> bool:
    """Whether a document may have numbers whose text matters: huge ones, and long ones in fill values."""
    if any(pattern.search(text) is not None for pattern in _HUGE):
        return True
    at = text.find(_FILL)
    while at >= 0:
        if _LONG.search(text, at, at + _FILL_REACH) is not None:
            return True
        at = text.find(_FILL, at + 1)
    return False


_MANY_DIGITS = 17
"""Characters of a number that may lie closer to half-way between two short floats than its nearest ``float`` tells."""


def _number(text: str) -> float:
    number = float(text)
    return Number(text) if len(text) >= _MANY_DIGITS or isinf(number) else number


def _with_plain_attributes(value: JSON, *, plain: bool = False) -> JSON:
    """``value`` with ordinary numbers in user attributes, wherever a document has them."""
    if isinstance(value, dict):
        return {
            name: _with_plain_attributes(each, plain=plain or _holds_attributes(name, each))
            for name, each in value.items()
        }
    if isinstance(value, list):
        return [_with_plain_attributes(each, plain=plain) for each in value]
    return float(value) if plain and isinstance(value, Number) else value


def _holds_attributes(name: str, value: JSON) -> bool:
    return name.rpartition("/")[2] in ("attributes", ".zattrs") and isinstance(value, dict)


def parse_json(
    data: BytesLike,
    pairs: Callable[[list[tuple[str, JSON]]], JSON] | None = None,
    number: Callable[[str], float] | None = None,
) -> JSON:
    """What JSON text in UTF-8 says; ``pairs`` makes objects of their members, ``number`` what is no integer.

    Raises ``ValueError`` or ``RecursionError`` for what is no JSON, and :class:`~zardine.errors.ChunkTooLargeError` for
    text whose values take more memory than the settings allow: each takes many times its text.
    """
    try:
        text = bytes(data).decode("utf-8")
        _check_memory(text)
        if text.startswith("\ufeff"):
            raise ValueError("it begins with a byte order mark")
        return _decoder(pairs, number).decode(text)
    except DataError:
        raise
    except MemoryError:
        raise no_memory("what the document says", _VALUE * sum(map(bytes(data).count, (b",", b"[", b"{")))) from None


def _check_memory(text: str) -> None:
    """Raise :class:`~zardine.errors.ChunkTooLargeError` where the values of a text are more than the settings allow."""
    if _VALUE * len(text) > limit_of(CHUNK):  # more values than characters there are not
        check_size("what the document says", _VALUE * sum(map(text.count, ",[{")))


@cache
def _decoder(
    pairs: Callable[[list[tuple[str, JSON]]], JSON] | None, number: Callable[[str], float] | None
) -> json.JSONDecoder:
    return json.JSONDecoder(object_pairs_hook=pairs, parse_float=number)


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


MOST_DIMENSIONS = 64
"""Of an array of NumPy."""

DEEPEST = 200
"""Levels of a document."""

_VALUE = 80
"""Bytes that a value takes when it is parsed, at least, with its place in what holds it."""


def _is_deep(document: JSON) -> bool:
    level = [document]
    for _ in range(DEEPEST):
        level = [
            child
            for value in level
            for child in (value.values() if isinstance(value, dict) else value)
            if isinstance(child, (dict, list))
        ]
        if not level:
            return False
    return True
