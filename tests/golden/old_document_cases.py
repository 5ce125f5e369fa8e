"""Parts of which the cases of ``make_bad_documents_old.py`` are made."""

from __future__ import annotations

import json
from typing import Any

Json = dict[str, Any]
Cases = list[dict[str, Any]]
V2: Json = {
    "zarr_format": 2,
    "shape": [4],
    "chunks": [2],
    "dtype": "<i4",
    "compressor": None,
    "fill_value": 0,
    "order": "C",
    "filters": None,
}
V1: Json = {
    "zarr_format": 1,
    "shape": [4],
    "chunks": [2],
    "dtype": "<i4",
    "compression": "zlib",
    "compression_opts": 1,
    "fill_value": 0,
    "order": "C",
}
ENDIAN: Json = {"name": "endian", "configuration": {"endian": "little"}}
VLEN: Json = {"dtype": "|O", "filters": [{"id": "vlen-utf8"}], "fill_value": ""}


def v2(**changes: Any) -> Json:
    return V2 | changes


def without(document: Json, member: str) -> Json:
    return {name: value for name, value in document.items() if name != member}


def draft(configuration: Any, **changes: Any) -> Json:
    """A ``zarr.json`` in the dialect of the draft, with this configuration of the sharding codec."""
    return {
        "zarr_format": 3,
        "node_type": "array",
        "shape": [8, 8],
        "data_type": "int32",
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [4, 4]}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": 0,
        "codecs": [{"name": "sharding_indexed", "configuration": configuration}],
    } | changes


def text_of(document: Json, old: str, new: str) -> str:
    """The text of a document with a part replaced by something that JSON tools do not write."""
    text = json.dumps(document)
    assert old in text, old
    return text.replace(old, new)


def bad(about: str, files: Json, reason: str, opened: str = "array", when: str = "") -> Json:
    return {"about": about, "open": opened, "files": files, "reason": reason} | ({"when": when} if when else {})


def bad_array(about: str, reason: str, when: str = "", files: Json | None = None, **changes: Any) -> Json:
    """A bad ``.zarray``: the good one with some members replaced."""
    return bad(about, {".zarray": v2(**changes)} | (files or {}), reason, when=when)


def accepted(about: str, files: Json, meaning: str, opened: str = "array", **expect: Any) -> Json:
    return {"about": about, "open": opened, "files": files, "meaning": meaning, "expect": expect}
