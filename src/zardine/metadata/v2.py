"""Zarr v2 documents (``.zarray``, ``.zgroup``, ``.zattrs``, ``.zmetadata``) to and from the normal form."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from zardine.data_types.base import DataType
from zardine.data_types.v2_fill_values import fill_to_json, parse_fill
from zardine.errors import Problem
from zardine.json_document import (
    JSON,
    MISSING,
    Extension,
    Number,
    Problems,
    copy_json,
    is_integer,
    parse_choice,
    parse_integers,
    parse_shape,
    show,
)
from zardine.metadata.documents import ArrayMetadata, GroupMetadata, OlderForm
from zardine.metadata.forms import parse_by_form
from zardine.metadata.node_names import is_key
from zardine.metadata.v2_codecs import Storage, check_options, codec_places, object_codec, to_codecs
from zardine.metadata.v2_dtypes import parse_dtype

ARRAY, GROUP, ATTRIBUTES, CONSOLIDATED = ".zarray", ".zgroup", ".zattrs", ".zmetadata"

_REQUIRED = ("zarr_format", "shape", "chunks", "dtype", "fill_value", "order")
_MEMBERS = frozenset((*_REQUIRED, "compressor", "filters", "dimension_separator"))


@dataclass(frozen=True, slots=True, kw_only=True)
class FormOfV2(OlderForm):
    """What ``.zarray`` says in its own words."""

    def to_json(self, metadata: ArrayMetadata) -> dict[str, JSON]:
        """Return ``.zarray``."""
        document: dict[str, Any] = {
            "zarr_format": 2,
            "shape": list(metadata.shape),
            "chunks": chunk_shape(metadata),
            "dtype": self.dtype,
            "compressor": self.compressor,
            "fill_value": self.fill_value,
            "order": self.order,
            "filters": None if self.filters is None else [dict(each) for each in self.filters],
        }
        if self.dimension_separator is not None:
            document["dimension_separator"] = self.dimension_separator
        return dict(copy_json({**document, **metadata.unknown}))


def parse_array(document: Mapping[str, JSON], attributes: JSON, problems: Problems) -> ArrayMetadata | None:
    """Return the array that ``.zarray`` and ``.zattrs`` describe; notes every problem.

    More is read than the specification allows, as by zarr-python: without ``compressor`` or ``filters`` there are none.
    """
    return parse_by_form(_parse_array, document, {} if attributes is None else attributes, problems, 2)


def _parse_array(document: Mapping[str, JSON], attributes: JSON, problems: Problems) -> ArrayMetadata | None:
    for member in _REQUIRED:
        if member not in document:
            problems.add(member, "the member is missing; it is required")
    check_format(document, 2, problems)
    return parse_common(document, attributes, problems, 2, FormOfV2)


def parse_common(
    document: Mapping[str, JSON], attributes: JSON, problems: Problems, zarr_format: int, form: type[OlderForm]
) -> ArrayMetadata | None:
    """Return an array in the words of v2, whichever version (``form``) stored it. Missing members were noted before."""
    shape = chunks = dtype = order = None
    if "shape" in document:
        shape = parse_shape(document["shape"], "shape", problems)
    if "chunks" in document:
        lengths = document["chunks"]
        for i, length in enumerate(lengths if isinstance(lengths, list) else ()):
            if length is False or length == 0:
                problems.note(f"chunks[{i}]", f"{show(length)} is no length of a chunk; it is read as 1")
        if zarr_format == 2 and isinstance(lengths, list):  # others wrote 0 and false, which zarr-python reads as 1
            lengths = [1 if length is False or length == 0 else length for length in lengths]
        chunks = parse_integers(lengths, "chunks", problems, low=0)
        if chunks is not None and shape is not None and len(shape) == len(chunks):
            for i, (length, chunk) in enumerate(zip(shape, chunks, strict=True)):
                if chunk == 0 and length > 0:
                    problems.expected(f"chunks[{i}]", "an integer of 1 or more", chunk)
            chunks = tuple(max(1, chunk) for chunk in chunks)
    if shape is not None and chunks is not None and len(shape) != len(chunks):
        problems.add("chunks", f"expected {len(shape)} lengths, one for each dimension, found {len(chunks)}")
    if "dtype" in document:
        dtype = parse_dtype(document["dtype"], "dtype", problems)
    if "order" in document:
        order = parse_choice(document["order"], ("C", "F"), "order", problems)
    compressor = _parse_codec(document.get("compressor"), "compressor", problems)
    filters = _parse_filters(document.get("filters"), problems)
    separator = document.get("dimension_separator")
    if "dimension_separator" in document and separator is None:
        problems.note("dimension_separator", 'null is no separator: leave the member out, or store "."')
    if separator is not None:
        parse_choice(separator, (".", "/"), "dimension_separator", problems)
    attributes = parse_attributes(attributes, problems)
    if problems or shape is None or chunks is None or dtype is None or order is None:
        return None
    storage = Storage(dtype, order, filters or (), compressor)
    if dtype.kind == "O" and object_codec(storage) is None:
        problems.add(
            "filters", 'a data type of objects ("|O") needs an object codec, such as vlen-utf8, as first filter'
        )
        return None
    data_type, codecs = to_codecs(storage)
    fill = parse_fill(document.get("fill_value"), data_type, dtype, "fill_value", problems)
    if problems or fill is None:
        return None
    return ArrayMetadata(
        shape=shape,
        data_type=data_type,
        fill=fill,
        chunk_grid=Extension("regular", {"chunk_shape": list(chunks)}),
        chunk_key_encoding=Extension("v2", {"separator": separator or "."}),
        codecs=codecs,
        attributes=attributes,
        unknown={name: value for name, value in document.items() if name not in _MEMBERS},
        zarr_format=zarr_format,
        older=form(
            dtype=document["dtype"],
            order=order,
            fill_value=_plain_fill(document.get("fill_value"), fill, data_type, dtype),
            compressor=compressor,
            filters=filters,
            dimension_separator=separator,
        ),
    )


def parse_group(
    document: Mapping[str, JSON], attributes: JSON, consolidated: Mapping[str, JSON] | None, problems: Problems
) -> GroupMetadata | None:
    """Return the group that ``.zgroup``, ``.zattrs`` and, if it is there, ``.zmetadata`` describe.

    Notes every problem; those of ``.zmetadata`` in the result.
    """
    if "zarr_format" not in document:
        problems.add("zarr_format", "the member is missing; it is required")
    check_format(document, 2, problems)
    attributes = parse_attributes(attributes, problems)
    faults = Problems(with_notes=problems.with_notes)
    nodes = None if consolidated is None else _parse_consolidated(consolidated, faults)
    problems.notes += faults.notes
    unknown = {name: value for name, value in document.items() if name != "zarr_format"}
    for name in unknown:
        problems.note(name, "a group has no such member: leave it out")
    if problems:
        return None
    return GroupMetadata(
        attributes=attributes,
        consolidated_metadata=None if faults else nodes,
        unknown=unknown,
        zarr_format=2,
        consolidated_faults=tuple(faults.found),
    )


def _plain_fill(value: JSON, fill: npt.NDArray[Any], data_type: DataType, dtype: np.dtype[Any]) -> JSON:
    """Return ``value``, or where its text says more than the nearest float, the fill value that came of it."""
    parts = value if isinstance(value, (list, tuple)) else (value,)
    return fill_to_json(fill, data_type, dtype) if any(isinstance(part, Number) for part in parts) else value


def check_format(document: Mapping[str, JSON], zarr_format: int, problems: Problems) -> None:
    """Note a ``zarr_format`` that is not the one that the document's key tells."""
    value = document.get("zarr_format", zarr_format)
    if not is_integer(value) or value != zarr_format:
        problems.expected("zarr_format", str(zarr_format), value)


def parse_attributes(value: JSON, problems: Problems) -> Mapping[str, JSON]:
    """Return user attributes (``.zattrs``); ``None``: the document is absent."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        problems.expected("attributes", "an object", value)
        return {}
    return value


def group_to_json(metadata: GroupMetadata) -> dict[str, JSON]:
    """Return ``.zgroup``."""
    return {"zarr_format": 2, **metadata.unknown}


def consolidated_to_json(metadata: GroupMetadata) -> dict[str, JSON] | None:
    """Return ``.zmetadata``, which holds the documents of the group itself, too."""
    if metadata.consolidated_metadata is None:
        return None
    documents: dict[str, JSON] = {GROUP: group_to_json(metadata)}
    if metadata.attributes:
        documents[ATTRIBUTES] = dict(metadata.attributes)
    for path, node in metadata.consolidated_metadata.items():
        own = {name: value for name, value in node.items() if name not in ("attributes", "consolidated_metadata")}
        documents[f"{path}/{ARRAY if 'shape' in node else GROUP}"] = own
        if node.get("attributes"):
            documents[f"{path}/{ATTRIBUTES}"] = node["attributes"]
    return {"zarr_consolidated_format": 1, "metadata": dict(sorted(documents.items()))}


def chunk_shape(metadata: ArrayMetadata) -> list[int]:
    """Return the member ``chunks``."""
    configuration = metadata.chunk_grid.configuration
    assert configuration is not None
    return list(configuration["chunk_shape"])


def in_words_of_the_document(metadata: ArrayMetadata, problems: Sequence[Problem]) -> list[Problem]:
    """Return problems of codecs with the members of the document that these stand for as places."""
    older = metadata.older
    assert older is not None
    storage = Storage(stored_dtype(metadata), older.order, older.filters or (), older.compressor)
    places = codec_places(storage, metadata.codecs, metadata.zarr_format)
    found = []
    for problem in problems:
        match = re.match(r"codecs\[([0-9]+)\](\.configuration|\.name)?", problem.place)
        if match is not None and int(match[1]) < len(places):
            problem = Problem(places[int(match[1])] + problem.place[match.end() :], problem.message)
        found.append(problem)
    return found


def stored_dtype(metadata: ArrayMetadata) -> np.dtype[Any]:
    """Return the NumPy dtype of stored elements, with their byte order."""
    assert metadata.older is not None
    dtype = parse_dtype(metadata.older.dtype, "dtype", Problems())
    assert dtype is not None  # it was parsed before
    return dtype


def _parse_codec(value: JSON, place: str, problems: Problems) -> Mapping[str, JSON] | None:
    if value is None:
        return None
    if not isinstance(value, Mapping):
        problems.expected(place, 'null or an object with "id"', value)
        return None
    if not isinstance(value.get("id"), str) or not value["id"]:
        problems.expected(f"{place}.id", "the name of a codec", value.get("id", MISSING))
        return None
    check_options(value, place, problems)
    return value


def _parse_filters(value: JSON, problems: Problems) -> tuple[Mapping[str, JSON], ...] | None:
    if value is None:
        return None
    if not isinstance(value, (list, tuple)):
        problems.expected("filters", "null or an array of codecs", value)
        return None
    filters = []
    for i, item in enumerate(value):
        if item is None:
            problems.expected(f"filters[{i}]", 'an object with "id"', item)
            continue
        codec = _parse_codec(item, f"filters[{i}]", problems)
        if codec is not None:
            filters.append(codec)
    return tuple(filters)


def _parse_consolidated(value: Mapping[str, JSON], problems: Problems) -> dict[str, Mapping[str, JSON]]:
    """Return the documents of the nodes below by path, each with its attributes as the member ``attributes``."""
    version = value.get("zarr_consolidated_format", MISSING)
    if version is MISSING:
        problems.note(
            f"{CONSOLIDATED}: zarr_consolidated_format", "the member is missing, as kerchunk leaves it out; 1 is meant"
        )
    elif version != 1:
        problems.expected(f"{CONSOLIDATED}: zarr_consolidated_format", "1", version)
    documents = value.get("metadata", MISSING)
    if not isinstance(documents, Mapping):
        problems.expected(f"{CONSOLIDATED}: metadata", "an object of documents by key", documents)
        return {}
    if GROUP not in documents:
        problems.add(f"{CONSOLIDATED}: metadata", f"{GROUP} is missing, the document of the group itself")
    nodes: dict[str, Mapping[str, JSON]] = {}
    documents = {key.strip("/"): document for key, document in documents.items()}
    for key, document in documents.items():
        path, _, name = key.rpartition("/")
        if path and name in (ARRAY, GROUP) and isinstance(document, Mapping):
            if not is_key(path):
                problems.add(f"{CONSOLIDATED}: metadata.{key}", "no key of a store")
                continue
            attributes = documents.get(f"{path}/{ATTRIBUTES}", {})
            if path not in nodes or name == ARRAY:
                nodes[path] = {**document, "attributes": attributes}
        elif not isinstance(document, Mapping):
            problems.expected(f"{CONSOLIDATED}: metadata.{key}", "a document", document)
    for path in nodes:
        above = next((each for each in _above(path) if "shape" in nodes.get(each, ())), None)
        if above is not None:
            problems.add(f"{CONSOLIDATED}: metadata.{path}", f"it is below {above!r}, which is an array")
    return nodes


def _above(path: str) -> Iterator[str]:
    while "/" in path:
        path = path.rpartition("/")[0]
        yield path
