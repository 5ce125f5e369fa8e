"""Zarr v1 documents (``meta`` and ``attrs``) to and from the normal form, by way of the words of v2."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from zardine.errors import Problem
from zardine.json_document import JSON, Problems, is_integer, parse_integer
from zardine.metadata.documents import ArrayMetadata, OlderForm
from zardine.metadata.v2 import check_format, chunk_shape, parse_common

META, ATTRIBUTES = "meta", "attrs"

_REQUIRED = (
    *("zarr_format", "shape", "chunks", "dtype"),
    *("compression", "compression_opts", "fill_value", "order"),
)
_LEVELS = ("zlib", "bz2")
_DEFAULT_LEVEL = {"zlib": 1, "bz2": 9}


@dataclass(frozen=True, slots=True, kw_only=True)
class FormOfV1(OlderForm):
    """What ``meta`` says, in the words of v2."""

    def to_json(self, metadata: ArrayMetadata) -> dict[str, JSON]:
        """Return ``meta``."""
        compression, options = _compression(self.compressor)
        fill_value = self.fill_value
        if isinstance(self.dtype, str) and self.dtype[1:2] == "S" and isinstance(fill_value, str):
            from base64 import standard_b64decode

            fill_value = standard_b64decode(fill_value).decode("latin-1")
        return {
            "zarr_format": 1,
            "shape": list(metadata.shape),
            "chunks": chunk_shape(metadata),
            "dtype": self.dtype,
            "compression": compression,
            "compression_opts": options,
            "fill_value": fill_value,
            "order": self.order,
            **metadata.unknown,
        }


def parse_array(document: Mapping[str, JSON], attributes: JSON, problems: Problems) -> ArrayMetadata | None:
    """Return the array that ``meta`` and ``attrs`` describe; notes every problem."""
    for member in _REQUIRED:
        if member not in document:
            problems.add(member, "the member is missing; it is required")
    check_format(document, 1, problems)
    if attributes is None:
        problems.note(ATTRIBUTES, "the document is missing; it is required")
    for reason in _explain_bad_dtype(document.get("dtype")):
        problems.add("dtype", reason)
    compressor = _compressor(document.get("compression"), document.get("compression_opts"), problems)
    words = {name: value for name, value in document.items() if name not in ("compression", "compression_opts")}
    fill_value = document.get("fill_value")
    if isinstance(document.get("dtype"), str) and isinstance(fill_value, str) and document["dtype"][1:2] == "S":
        from base64 import standard_b64encode  # v1 has plain text here, v2 base64

        fill_value = standard_b64encode(fill_value.encode("latin-1", "replace")).decode("ascii")
    words |= {"compressor": compressor, "filters": None, "fill_value": fill_value}
    words.pop("dimension_separator", None)
    before = len(problems.found)
    metadata = parse_common(words, attributes, problems, 1, FormOfV1)
    problems.found[before:] = [_in_words_of_v1(problem) for problem in problems.found[before:]]
    return metadata


def _in_words_of_v1(problem: Problem) -> Problem:
    return Problem(problem.place.replace("compressor", "compression_opts", 1), problem.message)


def explain_unfit(metadata: ArrayMetadata) -> list[str]:
    """Return why a document in the words of v2 cannot be one of v1; nothing if it can."""
    older = metadata.older
    assert older is not None
    reasons = []
    if older.filters:
        reasons.append("v1 has no filters")
    if older.dimension_separator not in (None, "."):
        reasons.append(f"v1 has no chunk keys with {older.dimension_separator!r}")
    reasons += [f"dtype: {reason}" for reason in _explain_bad_dtype(older.dtype)]
    if not has_compression(older.compressor):
        reasons.append(f"v1 has no compression {(older.compressor or {}).get('id')}")
    return reasons


def _explain_bad_dtype(dtype: JSON) -> list[str]:
    """Return why v1 has no such ``dtype``, which v2 may have; an empty list if v1 has it."""
    if dtype == "|O":
        return ["v1 has no objects"]
    name = _find_shaped_field(dtype)
    return [] if name is None else [f"the field {name!r} has a shape; v1 has fields of a name and a type only"]


def _find_shaped_field(dtype: JSON) -> JSON | None:
    """Return the name of the first field with a shape, in nested structs too; ``None`` if there is none."""
    for field in dtype if isinstance(dtype, (list, tuple)) else ():
        if isinstance(field, (list, tuple)) and len(field) >= 2:
            found = field[0] if len(field) > 2 else _find_shaped_field(field[1])
            if found is not None:
                return found
    return None


def has_compression(compressor: Mapping[str, JSON] | None) -> bool:
    """Return whether v1 has such a compression."""
    return _compression(compressor) != ("", None)


def _compressor(name: JSON, options: JSON, problems: Problems) -> dict[str, JSON] | None:
    if name is None or name == "none":
        return None
    if name == "blosc":
        if options is not None and not isinstance(options, Mapping):
            problems.expected("compression_opts", "an object, for blosc", options)
            return None
        return {"id": "blosc", **(options or {})}
    if name in _LEVELS:
        level = _DEFAULT_LEVEL[name] if options is None else options
        parse_integer(level, "compression_opts", problems, low=0, high=9)
        return {"id": name, "level": level}
    if name == "lzma":
        if options is not None and not isinstance(options, Mapping) and not is_integer(options):
            problems.expected("compression_opts", "an object, for lzma", options)
            return None
        return {"id": "lzma", **({"preset": options} if is_integer(options) else options or {})}
    problems.expected("compression", 'one of "blosc", "zlib", "bz2", "lzma", "none"', name)
    return None


def _compression(compressor: Mapping[str, JSON] | None) -> tuple[str, JSON]:
    """Return ``compression`` and ``compression_opts``; the first is empty if v1 has no such compression."""
    if compressor is None:
        return "none", None
    options = {name: value for name, value in compressor.items() if name != "id"}
    identifier = compressor["id"]
    if identifier == "blosc":
        known = {name: options[name] for name in ("cname", "clevel", "shuffle") if name in options}
        return ("blosc", known) if not options.get("blocksize") else ("", None)
    if identifier in _LEVELS:
        return str(identifier), options.get("level", _DEFAULT_LEVEL[str(identifier)])
    return ("lzma", options) if identifier == "lzma" else ("", None)
