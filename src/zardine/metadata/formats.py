"""The documents that a node has in each version of Zarr: their names, and how they become metadata and come from it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import TypeAlias

from zardine.buffers import BytesLike
from zardine.errors import MetadataError, Problem
from zardine.frozen import with_fields
from zardine.json_document import JSON, Problems, find_non_numbers, load_object, replace_non_numbers
from zardine.metadata import v1, v2, v3
from zardine.metadata.documents import ArrayMetadata, GroupMetadata, use_parser
from zardine.metadata.forms import cut_text, find_by_text, note_text
from zardine.metadata.seen_documents import NO_ATTRIBUTES, load_attributes, recall_older, remember_older
from zardine.settings import config

NodeMetadata: TypeAlias = ArrayMetadata | GroupMetadata

FORMATS = (3, 2, 1)
"""Versions of Zarr in the order in which a node is looked for."""

_NAMES: Mapping[tuple[int, str], tuple[str, ...]] = {
    (3, "array"): (v3.DOCUMENT_NAME,),
    (3, "group"): (v3.DOCUMENT_NAME,),
    (2, "array"): (v2.ARRAY, v2.ATTRIBUTES),
    (2, "group"): (v2.GROUP, v2.ATTRIBUTES, v2.CONSOLIDATED),
    (1, "array"): (v1.META, v1.ATTRIBUTES),
}

ALL_NAMES = frozenset(name for names in _NAMES.values() for name in names)
"""Names of all documents; a node whose path ends in one of them could not be told from one."""


def check_format(zarr_format: int | None) -> None:
    """Raise ``ValueError`` for what is no version of Zarr."""
    if isinstance(zarr_format, bool) or zarr_format not in (None, 1, 2, 3):
        raise ValueError(f"there is no Zarr format {zarr_format!r}: use 3, 2 or 1, or leave zarr_format out")


def format_of_new(zarr_format: int | None) -> int:
    """Return the version of Zarr of a new node: the one that is asked for, else the setting ``default_zarr_format``."""
    version = config["default_zarr_format"] if zarr_format is None else zarr_format
    check_format(version)
    return int(version)


def document_names(zarr_format: int, node_type: str) -> tuple[str, ...]:
    """Return the names of the documents of a node, the first of which makes it one."""
    return _NAMES[zarr_format, node_type]


@cache
def main_names(zarr_format: int) -> tuple[str, ...]:
    """Return the names of documents one of which a node of that version must have."""
    return tuple(dict.fromkeys(names[0] for (version, _), names in _NAMES.items() if version == zarr_format))


def parse_documents(name: str, documents: Mapping[str, BytesLike | None], subject: str) -> NodeMetadata:
    """Return the node whose first document is called ``name``; ``documents`` are by name, ``None`` if absent.

    Raises :class:`~zardine.errors.MetadataError`, which lists every problem; its text starts with ``subject``.
    """
    first = documents[name]
    assert first is not None
    if name == v3.DOCUMENT_NAME:
        return v3.parse_node(first, subject)
    if name == v2.ARRAY:
        return _parse_array_of_v2(documents, subject)
    return _parse_older(name, documents, subject, Problems())


def _parse_array_of_v2(documents: Mapping[str, BytesLike | None], subject: str) -> NodeMetadata:
    """As :func:`parse_documents`; what was parsed lately is not parsed again, apart from attributes."""
    document, attributes = bytes(documents[v2.ARRAY] or b""), documents.get(v2.ATTRIBUTES)
    known = recall_older(v2.ARRAY, document)
    if known is None:
        cut = cut_text(document, 2)
        found = find_by_text(cut, NO_ATTRIBUTES)
        if found is None:
            node = _parse_older(v2.ARRAY, documents, subject, Problems())
            if not isinstance(node, ArrayMetadata):
                return node
            note_text(cut, document, node)
            return remember_older(node, v2.ARRAY, document)
        known = remember_older(found, v2.ARRAY, document)
    if attributes is None:
        return known
    try:
        return with_fields(known, attributes=load_attributes(bytes(attributes), subject))
    except MetadataError:
        return _parse_older(v2.ARRAY, documents, subject, Problems())  # which says where it is


def note_documents(name: str, documents: Mapping[str, BytesLike | None]) -> list[Problem]:
    """Return what is taken by :func:`parse_documents` although the specification has it otherwise."""
    problems = Problems(with_notes=True)
    first = documents[name]
    assert first is not None
    if name == v3.DOCUMENT_NAME:
        document = load_object(first, "")
        (v3.parse_array if document.get("node_type") == "array" else v3.parse_group)(document, problems)
    else:
        _parse_older(name, documents, "", problems)
    for each, data in documents.items():
        if data is not None:
            prefix = "" if each == name else f"{each}: "
            for place, word in find_non_numbers(data):
                problems.note(
                    f"{prefix}{place}", f"{word} is no JSON; zardine writes it as text when it stores this again"
                )
    return problems.notes


def _parse_older(
    name: str, documents: Mapping[str, BytesLike | None], subject: str, problems: Problems
) -> NodeMetadata:
    first = documents[name]
    assert first is not None
    loaded: dict[str, JSON] = {name: load_object(first, subject)}
    faults: list[Problem] = []
    for each, data in documents.items():
        if data is not None and each != name:
            try:
                attributes = each in (v2.ATTRIBUTES, v1.ATTRIBUTES)
                loaded[each] = load_object(data, subject, only_attributes=attributes)
            except MetadataError as error:
                found = faults if each == v2.CONSOLIDATED else problems.found
                found.extend(Problem(each, problem.message) for problem in error.problems)
    problems.raise_if_any(subject)
    node: NodeMetadata | None
    if name == v2.ARRAY:
        node = v2.parse_array(loaded[name], loaded.get(v2.ATTRIBUTES), problems)
    elif name == v2.GROUP:
        node = v2.parse_group(loaded[name], loaded.get(v2.ATTRIBUTES), loaded.get(v2.CONSOLIDATED), problems)
    else:
        node = v1.parse_array(loaded[name], loaded.get(v1.ATTRIBUTES), problems)
    problems.raise_if_any(subject)
    assert node is not None
    return replace(node, consolidated_faults=tuple(faults)) if faults and isinstance(node, GroupMetadata) else node


def parse_words_of_v2(
    document: Mapping[str, JSON], attributes: JSON, problems: Problems, zarr_format: int
) -> ArrayMetadata | None:
    """Return a new array of v2, or of v1, from what ``.zarray`` would say of it; notes every problem."""
    form = v1.FormOfV1 if zarr_format == 1 else v2.FormOfV2
    return v2.parse_common(document, attributes, problems, zarr_format, form)


def parse_node_json(document: Mapping[str, JSON], subject: str) -> NodeMetadata:
    """Return the node that one JSON object describes, as ``to_dict`` of metadata gives it.

    Raises as `parse_documents`.
    """
    version = document.get("zarr_format")
    if version not in (1, 2) or isinstance(version, bool):
        return v3.parse_node_json(document, subject)
    beside = ("attributes", "consolidated_metadata", "node_type")
    own = {name: value for name, value in document.items() if name not in beside}
    attributes = document.get("attributes")
    problems = Problems()
    node: NodeMetadata | None
    if version == 1:
        node = v1.parse_array(own, attributes, problems)
    elif "shape" in own or "dtype" in own:
        node = v2.parse_array(own, attributes, problems)
    else:
        node = v2.parse_group(own, attributes, None, problems)
    problems.raise_if_any(subject)
    assert node is not None
    return node


def to_documents(metadata: NodeMetadata) -> dict[str, bytes | None]:
    """Return the documents of a node by name; ``None`` for those that need not be there."""
    if metadata.zarr_format == 3:
        return {v3.DOCUMENT_NAME: v3.serialize(metadata)}
    names = document_names(metadata.zarr_format, metadata.node_type)
    documents: dict[str, bytes | None] = {names[0]: _dump(_first_json(metadata))}
    needed = metadata.zarr_format == 1 or metadata.attributes
    documents[names[1]] = _dump(dict(metadata.attributes)) if needed else None
    if isinstance(metadata, GroupMetadata):
        consolidated = v2.consolidated_to_json(metadata)
        documents[v2.CONSOLIDATED] = None if consolidated is None else _dump(consolidated)
    return documents


def _first_json(metadata: NodeMetadata) -> dict[str, JSON]:
    if isinstance(metadata, GroupMetadata):
        return v2.group_to_json(metadata)
    assert metadata.older is not None
    return metadata.older.to_json(metadata)


def _dump(document: JSON) -> bytes:
    """Return a document as zarr-python 2 writes it, with texts in place of NaN and infinities, which JSON lacks."""
    return json.dumps(replace_non_numbers(document), indent=4, sort_keys=True, allow_nan=False).encode("ascii")


use_parser(parse_node_json)
