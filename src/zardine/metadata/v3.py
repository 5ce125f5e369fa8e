"""Zarr v3 documents (``zarr.json``) to and from the normal form (core 3.1, "Metadata")."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import lru_cache
from json.encoder import encode_basestring, encode_basestring_ascii
from math import isfinite
from operator import attrgetter
from typing import Any

from zardine.buffers import BytesLike
from zardine.cache import Cache
from zardine.data_types import DataType, parse_data_type
from zardine.json_document import (
    JSON,
    MISSING,
    Extension,
    Problems,
    is_integer,
    load_object,
    may_be_ignored,
    parse_extension,
    parse_shape,
    replace_non_numbers,
)
from zardine.metadata.documents import ArrayMetadata, GroupMetadata
from zardine.metadata.forms import cut_text, find_by_text, note_text, parse_by_form
from zardine.metadata.node_names import explain_bad_name
from zardine.metadata.seen_documents import NO_ATTRIBUTES, recall, remember

DOCUMENT_NAME = "zarr.json"

_ARRAY_REQUIRED = ("shape", "data_type", "chunk_grid", "chunk_key_encoding", "fill_value", "codecs")
_ARRAY_MEMBERS = frozenset(
    ("zarr_format", "node_type", *_ARRAY_REQUIRED, "attributes", "dimension_names", "storage_transformers")
)
_GROUP_MEMBERS = frozenset(("zarr_format", "node_type", "attributes", "consolidated_metadata"))


def parse_node(data: BytesLike, subject: str = "the document is invalid") -> ArrayMetadata | GroupMetadata:
    """Return the node that the bytes of a ``zarr.json`` describe.

    Raises :class:`~zardine.errors.MetadataError`, which lists every problem; its text starts with ``subject``.
    """
    document = bytes(data)
    seen = recall(document)
    if seen is not None:
        return seen
    cut = cut_text(document, 3)
    known = find_by_text(cut, NO_ATTRIBUTES)
    if known is not None:
        return remember(known, document)
    node = parse_node_json(load_object(document, subject), subject)
    if isinstance(node, ArrayMetadata):
        note_text(cut, document, node)
    return remember(node, document)


def parse_node_json(document: Mapping[str, JSON], subject: str) -> ArrayMetadata | GroupMetadata:
    """Return the node that a parsed ``zarr.json`` describes. Raises as :func:`parse_node`."""
    problems = Problems()
    node: ArrayMetadata | GroupMetadata | None = None
    kind = document.get("node_type", MISSING)
    version = document.get("zarr_format", MISSING)
    if not is_integer(version) or version != 3:
        problems.expected("zarr_format", "3", version)
    if kind == "array":
        node = parse_array(document, problems)
    elif kind == "group":
        node = parse_group(document, problems)
    else:
        problems.expected("node_type", '"array" or "group"', kind)
    problems.raise_if_any(subject)
    assert node is not None
    return node


def parse_array(document: Mapping[str, JSON], problems: Problems) -> ArrayMetadata | None:
    """Return an array document; notes every problem. Extensions are checked here only in form, not in meaning."""
    return parse_by_form(_parse_array, document, document.get("attributes", {}), problems, 3)


def _parse_array(document: Mapping[str, JSON], attributes: JSON, problems: Problems) -> ArrayMetadata | None:
    for member in _ARRAY_REQUIRED:
        if member not in document:
            problems.add(member, "the member is missing; it is required")
    shape = data_type = fill = grid = keys = codecs = None
    if "shape" in document:
        shape = parse_shape(document["shape"], "shape", problems)
    if "data_type" in document:
        data_type = parse_data_type(document["data_type"], "data_type", problems)
    if data_type is not None and "fill_value" in document:
        fill = data_type.parse_fill(document["fill_value"], "fill_value", problems)
    if "chunk_grid" in document:
        grid = parse_extension(document["chunk_grid"], "chunk_grid", problems, ignorable=False)
    if "chunk_key_encoding" in document:
        keys = parse_extension(document["chunk_key_encoding"], "chunk_key_encoding", problems, ignorable=False)
    if "codecs" in document:
        codecs = parse_extensions(document["codecs"], "codecs", problems)
        if document["codecs"] in ([], ()):
            problems.add("codecs", "the list is empty; exactly one array -> bytes codec is required")
    if document.get("storage_transformers", ()) is None:
        problems.note("storage_transformers", "null is no array of storage transformers: leave the member out")
    transformers = _parse_storage_transformers(document.get("storage_transformers"), problems)
    attributes = _parse_attributes(attributes, problems)
    if document.get("dimension_names", ()) is None:
        problems.note("dimension_names", "null is no array of names: leave the member out")
    names = _parse_dimension_names(document.get("dimension_names"), shape, problems)
    unknown = _parse_unknown(document, _ARRAY_MEMBERS, problems)
    if problems or shape is None or data_type is None or fill is None or not grid or not keys or codecs is None:
        return None
    return ArrayMetadata(
        shape=shape,
        data_type=data_type,
        fill=fill,
        chunk_grid=grid,
        chunk_key_encoding=keys,
        codecs=codecs,
        attributes=attributes,
        axis_names=names,
        storage_transformers=transformers,
        unknown=unknown,
        stored_data_type=_with_others(document["data_type"], data_type),
    )


def _with_others(value: JSON, data_type: DataType) -> tuple[DataType, JSON] | None:
    """Return a data type beside what the document has, to keep what that has of members that are passed over."""
    return (data_type, value) if _has_others(value) else None


def _has_others(value: JSON) -> bool:
    if isinstance(value, Mapping):
        return any(may_be_ignored(each) or _has_others(each) for each in value.values())
    return isinstance(value, (list, tuple)) and any(map(_has_others, value))


def parse_group(document: Mapping[str, JSON], problems: Problems) -> GroupMetadata | None:
    """Return a group document; notes every problem. Those of consolidated metadata are noted in the result."""
    attributes = _parse_attributes(document.get("attributes", {}), problems)
    if document.get("consolidated_metadata", ()) is None:
        problems.note("consolidated_metadata", "null is no consolidated metadata: leave the member out")
    faults = Problems(with_notes=problems.with_notes)
    consolidated = _parse_consolidated(document.get("consolidated_metadata"), faults)
    problems.notes += faults.notes
    unknown = _parse_unknown(document, _GROUP_MEMBERS, problems)
    if problems:
        return None
    return GroupMetadata(
        attributes=attributes,
        consolidated_metadata=None if faults else consolidated,
        unknown=unknown,
        consolidated_faults=tuple(faults.found),
    )


def parse_extensions(value: JSON, place: str, problems: Problems) -> tuple[Extension, ...] | None:
    """Return an array of extension objects or short-hand names."""
    if not isinstance(value, (list, tuple)):
        problems.expected(place, "an array of codecs", value)
        return None
    found = [parse_extension(item, f"{place}[{i}]", problems) for i, item in enumerate(value)]
    for i, extension in enumerate(found):
        if extension is not None and extension.name.startswith("zardine.v2_"):
            problems.unknown(f"{place}[{i}].name", f"{extension.name} belongs to Zarr v2; no v3 document may name it")
    return tuple(extension for extension in found if extension is not None)


def serialize(metadata: ArrayMetadata | GroupMetadata) -> bytes:
    """Return the bytes of ``zarr.json``: UTF-8, indented by two, so that people can read and compare it."""
    if isinstance(metadata, GroupMetadata):
        return _serialized(metadata)
    members = _steady_members(metadata)
    try:
        attributes = _compact_encoders[False].encode(dict(metadata.attributes)) if metadata.attributes else ""
    except ValueError:  # NaN and infinities, which others wrote
        return _serialized(metadata)
    named: tuple[str | int, ...] = (attributes, *map(id, members))
    shape = _indented_shape(metadata.shape)
    known = _around_shapes.get(named)
    if known is None:
        whole = _serialized(metadata)
        before, _, after = whole.partition(shape)  # members of members stand further to the right
        known = before, after, members
        _around_shapes.put(named, known, len(whole) + len(attributes) + _KNOWN)
    return known[0] + shape + known[1]


def _serialized(metadata: ArrayMetadata | GroupMetadata) -> bytes:
    document = metadata.to_dict()
    try:
        return _encoded(document)
    except ValueError:  # NaN and infinities, which others wrote
        return _encoded(replace_non_numbers(document))


_steady_members: Callable[[ArrayMetadata], tuple[object, ...]] = attrgetter(
    *("data_type", "stored_data_type", "fill", "chunk_grid", "chunk_key_encoding", "codecs"),
    *("axis_names", "storage_transformers", "unknown"),
)
"""What an array that changes its shape has as before, the very same objects; attributes can be changed as they are."""

_KNOWN = 512
"""Bytes that are taken beside the text."""
_around_shapes: Cache[tuple[str | int, ...], tuple[bytes, bytes, tuple[object, ...]]] = Cache(2**20)
"""What is in front of and behind the shape in a document, by its attributes and the ids of its steady members.

These are kept with it, so that no other objects get their ids.
"""


def _indented_shape(shape: tuple[int, ...]) -> bytes:
    lengths = ",\n".join([f"    {length}" for length in shape])
    return (f'\n  "shape": [\n{lengths}\n  ]' if shape else '\n  "shape": []').encode()


def _encoded(document: Mapping[str, JSON]) -> bytes:
    try:
        return _indented(document, ascii_only=False).encode("utf-8")
    except UnicodeEncodeError:  # lone surrogates in attributes: UTF-8 has them only as JSON escapes
        return _indented(document, ascii_only=True).encode("ascii")


def _indented(document: Mapping[str, JSON], *, ascii_only: bool) -> str:
    """Return ``json.dumps(document, indent=2)``, which is slow, so that members that stay are remembered."""
    members, text = [], encode_basestring_ascii if ascii_only else encode_basestring
    for name, value in document.items():
        changes = name == "attributes" and document.get("node_type") == "group"
        if changes or type(value) in (int, str):
            with suppress(_UnusualError, RecursionError):
                members.append(f"  {text(name)}: {_indent(value, _LINE, text)}")
                continue
        compact = _compact_encoders[ascii_only].encode({name: value})
        indent = _indent_member if len(compact) <= _LONGEST_REMEMBERED else _indent_member.__wrapped__
        members.append(indent(compact, ascii_only))
    return "{\n" + ",\n".join(members) + "\n}" if members else "{}"


@lru_cache(maxsize=512)
def _indent_member(compact: str, ascii_only: bool) -> str:
    """Return the one member of the object ``compact``, as a line or more of an indented document."""
    return json.dumps(json.loads(compact), indent=2, ensure_ascii=ascii_only)[2:-2]


class _UnusualError(Exception):
    """Something that JSON has another form for than Python, or none."""


def _indent(value: Any, line: str, text: Callable[[str], str]) -> str:
    """Return what ``json.dumps(value, indent=2)`` gives, on a line that begins so. Raises :class:`_UnusualError`."""
    kind = type(value)
    if kind is str:
        return text(value)
    if kind is int or (kind is float and isfinite(value)):
        return repr(value)
    if kind is dict and value:
        inner = line + "  "
        if any(type(name) is not str for name in value):
            raise _UnusualError
        members = [f"{inner}{text(name)}: {_indent(each, inner, text)}" for name, each in value.items()]
        return "{" + ",".join(members) + line + "}"
    if kind in (list, tuple) and value:
        inner = line + "  "
        return "[" + ",".join([inner + _indent(each, inner, text) for each in value]) + line + "]"
    if kind not in _WORDS:
        raise _UnusualError
    return _WORDS[kind] if kind is not bool else "true" if value else "false"


_LINE = "\n  "
_WORDS = {type(None): "null", dict: "{}", list: "[]", tuple: "[]", bool: ""}
_LONGEST_REMEMBERED = 4096
"""Characters of a member that is remembered."""
_compact_encoders = (json.JSONEncoder(ensure_ascii=False, allow_nan=False), json.JSONEncoder(allow_nan=False))


def _parse_attributes(attributes: JSON, problems: Problems) -> Mapping[str, JSON]:
    if not isinstance(attributes, Mapping):
        problems.expected("attributes", "an object", attributes)
        return {}
    return attributes


def _parse_dimension_names(
    value: JSON, shape: tuple[int, ...] | None, problems: Problems
) -> tuple[str | None, ...] | None:
    if value is None:
        return None
    if not isinstance(value, (list, tuple)):
        problems.expected("dimension_names", "an array of strings or null", value)
        return None
    for i, name in enumerate(value):
        if name is not None and not isinstance(name, str):
            problems.expected(f"dimension_names[{i}]", "a string or null", name)
    if shape is not None and len(value) != len(shape):
        problems.add("dimension_names", f"expected {len(shape)} names, one for each dimension, found {len(value)}")
    return tuple(value)


def _parse_storage_transformers(value: JSON, problems: Problems) -> tuple[Extension, ...]:
    if value is None:
        return ()
    if not isinstance(value, (list, tuple)):
        problems.expected("storage_transformers", "an array of storage transformers", value)
        return ()
    found = []
    for i, item in enumerate(value):
        place = f"storage_transformers[{i}]"
        transformer = parse_extension(item, place, problems)
        if transformer is not None and transformer.must_understand:
            problems.unknown(place, f"unknown storage transformer {transformer.name!r}; none are defined so far")
        elif transformer is not None:
            found.append(transformer)
    return tuple(found)


def _parse_unknown(document: Mapping[str, JSON], known: frozenset[str], problems: Problems) -> dict[str, JSON]:
    unknown: dict[str, JSON] = {}
    for member, value in document.items():
        if member in known:
            continue
        if may_be_ignored(value):
            unknown[member] = value
        else:
            problems.unknown(member, 'unknown member; only members that say "must_understand": false may be ignored')
    return unknown


def _parse_consolidated(value: JSON, problems: Problems) -> dict[str, Mapping[str, Any]] | None:
    if value is None:
        return None
    place = "consolidated_metadata"
    if not isinstance(value, Mapping):
        problems.expected(place, "an object", value)
        return None
    if "kind" not in value:
        problems.note(f"{place}.kind", 'the member is missing; "inline" is meant')
    elif value["kind"] != "inline":
        problems.expected(f"{place}.kind", '"inline"', value["kind"])
    if not may_be_ignored(value):
        problems.note(f"{place}.must_understand", "it is not false, so that programs which do not know the member stop")
    nodes = value.get("metadata", MISSING)
    if not isinstance(nodes, Mapping):
        problems.expected(f"{place}.metadata", "an object of metadata documents by path", nodes)
        return None
    for path, node in nodes.items():
        if not isinstance(node, Mapping):
            problems.expected(f"{place}.metadata.{path}", "a metadata document", node)
        elif path.strip("/"):  # else it is the group itself
            parts = path.strip("/").split("/")
            reason = next(filter(None, map(explain_bad_name, parts)), None)
            if reason is not None:
                problems.add(f"{place}.metadata.{path}", reason)
    found = {path.strip("/"): node for path, node in nodes.items() if isinstance(node, Mapping)}
    found.pop("", None)
    return found
