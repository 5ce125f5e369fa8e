"""The form of an array: all that its (first) document says besides shape and attributes.

The arrays of one program mostly have one form, or a few. What a form says is parsed and checked twice, then it is
known: of other documents of it only shape and attributes are. A form is known by its members, and by its text, so that
the text of the others need not be parsed again.
"""

from __future__ import annotations

import marshal
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

from zardine.cache import Cache
from zardine.errors import DataError
from zardine.frozen import with_fields
from zardine.json_document import DEEPEST, JSON, Problems, load_object, parse_shape, parse_value
from zardine.metadata.documents import ArrayMetadata

Parse: TypeAlias = Callable[[Mapping[str, JSON], JSON, Problems], ArrayMetadata | None]
"""Gives the array that a document and its attributes describe; notes every problem."""

_MOST: Final = 2 * 2**20
"""Bytes of all forms that are remembered, and of all texts, about."""
_PARSED: Final = 8 * 2**10
"""Bytes that a form takes when it is parsed, about, beside its text."""
_LONGEST: Final = 16 * 2**10
"""Bytes of a form that is worth remembering."""
_LONGEST_DOCUMENT: Final = 64 * 2**10
"""Bytes of a document that may be parsed in parts, and then as a whole."""
_STEADY: Final = 2
"""Version of ``marshal`` that gives the same bytes for equal values of the same types, and others for all others."""

_forms: Final[Cache[bytes, ArrayMetadata]] = Cache(_MOST)
"""An array of each form, without attributes."""
_seen_once: Final[Cache[bytes, bool]] = Cache(_MOST // 4)
"""Forms of which it is not known yet whether other arrays have them as well."""
_NOTED: Final = 256
"""Bytes that it takes to remember such a one, about, beside the form."""


def parse_by_form(
    parse: Parse, document: Mapping[str, JSON], attributes: JSON, problems: Problems, zarr_format: int
) -> ArrayMetadata | None:
    """Return what ``parse``, that of ``zarr_format``, gives, which is called for unknown forms, and for faults.

    What it gives must depend on the number of dimensions, not on the lengths that ``shape`` has. What is remembered is
    made of a copy of all but shape and attributes, so that nobody changes it.
    """
    if problems or problems.with_notes:
        return parse(document, attributes, problems)
    form = _form_of(document, zarr_format)
    if form is None:
        return parse(document, attributes, problems)
    known = _forms.get(form)
    if known is not None:
        found = _like(known, document["shape"], attributes)
        return parse(document, attributes, problems) if found is None else found
    if len(form) > _LONGEST:
        return parse(document, attributes, problems)
    if _seen_once.drop(form) is None:
        node = parse(document, attributes, problems)
        if node is not None:
            _seen_once.put(form, True, len(form) + _NOTED)
        return node
    rest = marshal.loads(form)[-1]
    if not all(value is _VARIES or _is_json(value) for value in rest.values()):
        return parse(document, attributes, problems)
    own = {name: document[name] if value is _VARIES else value for name, value in rest.items()}
    node = parse(own, attributes, problems)
    if node is not None:
        object.__setattr__(node, "form", form)
        _forms.put(form, with_fields(node, attributes={}), len(form) + _PARSED)
    return node


_VARIES: Final = ...
"""Stands for what is no part of a form. No JSON is like it."""


def _form_of(document: Mapping[str, JSON], zarr_format: int) -> bytes | None:
    """Return what belongs to the form of a document, as bytes; ``None`` where it cannot be told."""
    shape = document.get("shape")
    if type(document) is not dict or type(shape) is not list:
        return None
    rest = {**document, "shape": _VARIES}
    if zarr_format == 3 and "attributes" in rest:
        rest["attributes"] = _VARIES
    try:
        return marshal.dumps((zarr_format, len(shape), rest), _STEADY)
    except ValueError:  # classes of our own, as of numbers of many digits, and of users; or it is nested too deeply
        return None


def _is_json(value: JSON) -> bool:
    """Return whether all is what JSON has. ``marshal`` makes bytes of some other objects."""
    if type(value) is dict:
        return all(map(_is_json, value.values()))
    return all(map(_is_json, value)) if type(value) is list else type(value) in _PLAIN


_PLAIN: Final = (str, int, float, bool, type(None))


def _like(known: ArrayMetadata, shape: JSON, attributes: JSON) -> ArrayMetadata | None:
    """Return an array of a known form; ``None`` where its shape or attributes have a fault, which the parser tells."""
    faults = Problems()
    lengths = parse_shape(shape, "shape", faults)
    if lengths is None or len(lengths) != known.ndim or not isinstance(attributes, Mapping):
        return None
    return with_fields(known, shape=lengths, attributes=attributes)


_texts: Final[Cache[str, ArrayMetadata | None]] = Cache(_MOST)
"""By the text around shape and attributes, an array that has it."""


class CutText:
    """The text of a (first) document around what seem to be shape and attributes, and these by name, in their order."""

    __slots__ = ("around", "key", "values", "zarr_format")

    def __init__(self, zarr_format: int, around: Sequence[str], values: Mapping[str, JSON]) -> None:
        self.zarr_format = zarr_format
        self.around = around
        self.values = values
        self.key = _GAP.join((_VERSIONS[zarr_format], *around))


def find_by_text(cut: CutText | None, attributes: JSON) -> ArrayMetadata | None:
    """Return the array that a document describes, if an array of the same form is known by its text.

    ``attributes`` are for documents without. ``None`` also for whatever is wrong: the parser tells what that is.
    """
    known = None if cut is None else _texts.get(cut.key)
    if cut is None or known is None:
        return None
    return _like(known, cut.values["shape"], cut.values.get("attributes", attributes))


def note_text(cut: CutText | None, document: bytes, node: ArrayMetadata) -> None:
    """Remember the form of ``document``, of which ``node`` was parsed, by its text, if another one had that form.

    JSON in which the text of a value is replaced by that of another says the same besides that. So all that has to be
    known is that it was cut where the members shape and attributes are: a document with other values tells.
    """
    if cut is None or node.form is None:
        return
    text, around, values = cut.key, cut.around, cut.values
    if len(text) > _LONGEST or _MANY_DIGITS.search(text):
        return
    last = around[-1]
    other = "".join([part + _OTHERS[name] for part, name in zip(around, values, strict=False)]) + last
    whole, changed = load_object(document, ""), load_object(other.encode(), "")
    expected = {name: _OTHER_VALUES[name] if name in values else value for name, value in whole.items()}
    is_whole = cut.zarr_format != 3 or ("attributes" in whole) == ("attributes" in values)
    if is_whole and changed == expected and list(changed) == list(expected):
        _texts.put(text, with_fields(node, attributes={}), len(text) + _PARSED)


def cut_text(document: bytes, zarr_format: int) -> CutText | None:
    """Cut a document where its shape, and attributes in Zarr v3, seem to be; ``None`` where that is not so simple."""
    if len(document) > _LONGEST_DOCUMENT or _GAP.encode() in document:  # else a zero byte would pass for a value
        return None
    try:
        text = document.decode()
        named = _SHAPE.search(text)
        if named is None:
            return None
        beside = _ATTRIBUTES.search(text) if zarr_format == 3 else None
        if beside is None:
            start = named.end()
            shape, stop = parse_value(text, start)
            return CutText(zarr_format, (text[:start], text[stop:]), {"shape": shape})
        start = beside.end()
        attributes, stop = parse_value(text, start)
        if text.count("{", start, stop) + text.count("[", start, stop) >= DEEPEST:
            return None
        if start < named.start() < stop:
            named = _SHAPE.search(text, stop)
            if named is None:
                return None
        first = named.end()
        shape, last = parse_value(text, first)
    except (ValueError, RecursionError, MemoryError, DataError):
        return None
    if last <= start:
        around = text[:first], text[last:start], text[stop:]
        return CutText(zarr_format, around, {"shape": shape, "attributes": attributes})
    if stop <= first:
        around = text[:start], text[stop:first], text[last:]
        return CutText(zarr_format, around, {"attributes": attributes, "shape": shape})
    return None


_SHAPE: Final = re.compile(r'"shape"[ \t\n\r]*:[ \t\n\r]*(?=\[)')
_ATTRIBUTES: Final = re.compile(r'"attributes"[ \t\n\r]*:[ \t\n\r]*(?=\{)')
_GAP: Final = "\0"
"""Stands for a value. No JSON has it."""
_VERSIONS: Final = {3: "3", 2: "2"}
"""What a text begins with where it is remembered: those of one version mean nothing in another."""
_MANY_DIGITS: Final = re.compile(r"[0-9.eE+-]{16}")
"""A number whose text may matter; for that the parser looks at the whole document."""
_OTHERS: Final = {"shape": "[8589934593]", "attributes": '{"8589934593": 8589934593}'}
_OTHER_VALUES: Final = {name: parse_value(text, 0)[0] for name, text in _OTHERS.items()}

__all__ = ["CutText", "cut_text", "find_by_text", "note_text", "parse_by_form"]
