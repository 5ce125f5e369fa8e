"""Documents of v2 groups, of v1 and of the sharding draft that must be refused; see ``make_bad_documents_old.py``."""

from __future__ import annotations

from typing import Any

from old_document_cases import ENDIAN, V1, V2, Cases, Json, bad, draft, v2, without


def groups() -> Cases:
    """``.zgroup`` and ``.zmetadata``."""
    good: Json = {"zarr_format": 2}
    cases = [
        bad(about, {".zgroup": content}, reason, "group")
        for about, content, reason in [
            ("an empty object as .zgroup", {}, "zarr_format: missing"),
            ("zarr_format 3 in .zgroup", {"zarr_format": 3}, "zarr_format: expected 2"),
            ('zarr_format "2" in .zgroup', {"zarr_format": "2"}, "zarr_format: expected 2"),
            ("zarr_format null in .zgroup", {"zarr_format": None}, "zarr_format: expected 2"),
            ("a list as .zgroup", [2], ".zgroup: expected an object"),
            ("an empty .zgroup", "", ".zgroup: not JSON: empty"),
            ("zarr_format twice in .zgroup", '{"zarr_format": 2, "zarr_format": 2}', "zarr_format appears twice"),
            ("a number as .zgroup", "2", ".zgroup: expected an object"),
        ]
    ]
    cases.append(bad("a list as attributes", {".zgroup": good, ".zattrs": [1]}, ".zattrs: expected an object", "group"))
    cases.append(bad("a group opened as an array", {".zgroup": good}, "a group, not an array"))
    cases.append(bad("an array opened as a group", {".zarray": V2}, "an array, not a group", "group"))

    def consolidated(about: str, content: Any, reason: str, when: str = "") -> Json:
        return bad(about, {".zgroup": good, ".zmetadata": content}, reason, "consolidated", when)

    def listed(**metadata: Any) -> Json:
        keys = {name.replace("__", "/."): value for name, value in metadata.items()}
        return {"zarr_consolidated_format": 1, "metadata": {".zgroup": good} | keys}

    wrong = v2(chunks=[2, 2])
    broken = {"zarr_consolidated_format": 1, "metadata": {".zgroup": good, "x/.zarray": "{"}}
    outside = {"zarr_consolidated_format": 1, "metadata": {".zgroup": good, "../x/.zarray": V2}}
    dots = {"zarr_consolidated_format": 1, "metadata": {".zgroup": good, "a/./.zgroup": good}}
    below = {"zarr_consolidated_format": 1, "metadata": {".zgroup": good, "x/.zarray": V2, "x/y/.zarray": V2}}
    return [
        *cases,
        consolidated(
            "zarr_consolidated_format 2", listed() | {"zarr_consolidated_format": 2}, "zarr_consolidated_format"
        ),
        consolidated(
            'zarr_consolidated_format "1"', listed() | {"zarr_consolidated_format": "1"}, "zarr_consolidated_format"
        ),
        consolidated("no metadata", {"zarr_consolidated_format": 1}, "metadata: missing"),
        consolidated(
            "metadata is a list", {"zarr_consolidated_format": 1, "metadata": []}, "metadata: expected an object"
        ),
        consolidated(
            "no .zgroup of the root", {"zarr_consolidated_format": 1, "metadata": {}}, "metadata: .zgroup missing"
        ),
        consolidated("a bad array", listed(x__zarray=wrong), "x/.zarray: chunks: 2 elements for 1 dimension", "read"),
        consolidated("a bad group", listed(x__zgroup={"zarr_format": 5}), "x/.zgroup: zarr_format: expected 2", "read"),
        consolidated("bad attributes", listed(x__zgroup=good, x__zattrs=[]), "x/.zattrs: expected an object", "read"),
        consolidated("a document as text", broken, "x/.zarray: expected an object", "read"),
        consolidated("a path that leaves the store", outside, "../x/.zarray: path with .."),
        consolidated("a path with a dot", dots, "a/./.zgroup: path with ."),
        consolidated("an array within an array", below, "x/y/.zarray: x is an array"),
        consolidated("not JSON", "{", ".zmetadata: not JSON"),
        consolidated("an empty file", "", ".zmetadata: not JSON: empty"),
        bad("no .zmetadata", {".zgroup": good}, ".zmetadata: not there", "consolidated"),
    ]


def version_one() -> Cases:
    """``meta`` and ``attrs`` of v1."""

    def one(about: str, reason: str, **changes: Any) -> Json:
        return bad(about, {"meta": V1 | changes, "attrs": {}}, reason)

    cases = [
        bad(f"v1 without {name}", {"meta": without(V1, name), "attrs": {}}, f"{name}: missing")
        for name in V1
        if name != "zarr_format"
    ]
    reason = "zarr_format: missing"
    cases.append(bad("v1 without zarr_format", {"meta": without(V1, "zarr_format"), "attrs": {}}, reason))
    for value in ("1", 2, 1.5, None):
        cases.append(one(f"zarr_format {value!r} in meta", "zarr_format: expected 1", zarr_format=value))
    for about, reason, changes in [
        ("unknown compression", "compression: unknown lzo", {"compression": "lzo"}),
        ("a number as compression", "compression: expected text", {"compression": 5}),
        ("an object as compression", "compression: expected text", {"compression": {"id": "zlib"}}),
        ("text as level of zlib", "compression_opts: zlib: expected 0 to 9", {"compression_opts": "best"}),
        ("level 12 of zlib", "compression_opts: zlib: expected 0 to 9", {"compression_opts": 12}),
        ("level 0 of bz2", "compression_opts: bz2: expected 1 to 9", {"compression": "bz2", "compression_opts": 0}),
        (
            "a list as options of blosc",
            "compression_opts: expected an object",
            {"compression": "blosc", "compression_opts": [5]},
        ),
        (
            "unknown cname of blosc",
            "compression_opts: blosc: unknown cname",
            {"compression": "blosc", "compression_opts": {"cname": "lzo", "clevel": 5, "shuffle": 1}},
        ),
        (
            "shuffle 3 of blosc",
            "compression_opts: blosc: shuffle out of range",
            {"compression": "blosc", "compression_opts": {"cname": "lz4", "clevel": 5, "shuffle": 3}},
        ),
        (
            "format 9 of lzma",
            "compression_opts: lzma: format",
            {"compression": "lzma", "compression_opts": {"format": 9, "check": 0, "preset": 1, "filters": None}},
        ),
        ("chunks of the wrong rank", "chunks: 2 elements for 1 dimension", {"chunks": [2, 2]}),
        ("chunks of length zero", "chunks: zero", {"chunks": [0]}),
        ("negative shape", "shape: negative", {"shape": [-4]}),
        ("order K", 'order: expected "C" or "F"', {"order": "K"}),
        ("unknown dtype", "dtype: unknown type", {"dtype": "<x4"}),
        ("dtype without byte order", "dtype: byte order missing", {"dtype": "i4"}),
        ("objects", "dtype: v1 has no objects", {"dtype": "|O"}),
        (
            "a sub-array",
            "dtype: field x has 3 parts, v1 has no sub-arrays",
            {"dtype": [["x", "<f4", [2]]], "fill_value": None},
        ),
        ("text as fill value of a number", "fill_value: no integer", {"fill_value": "abc"}),
        ("fill value out of range", "fill_value: out of range", {"dtype": "|u1", "fill_value": 300}),
    ]:
        cases.append(one(f"v1: {about}", reason, **changes))
    return [
        *cases,
        bad("v1: meta is no JSON", {"meta": "zarr", "attrs": {}}, "meta: not JSON"),
        bad("v1: meta is a list", {"meta": "[1]", "attrs": {}}, "meta: expected an object"),
        bad("v1: a list as attrs", {"meta": V1, "attrs": [1]}, "attrs: expected an object"),
        bad("v1: attrs cut off", {"meta": V1, "attrs": "{"}, "attrs: not JSON"),
        bad("v1: opened as a group", {"meta": V1, "attrs": {}}, "an array, not a group", "group"),
    ]


def sharding() -> Cases:
    """The draft of the sharding codec."""

    def one(about: str, configuration: Any, reason: str, **changes: Any) -> Json:
        return bad(f"draft: {about}", {"zarr.json": draft(configuration, **changes)}, reason)

    def chain(*codecs: Any) -> Json:
        return {"chunk_shape": [2, 2], "codecs": list(codecs)}

    gzip = {"name": "gzip", "configuration": {"level": 1}}
    no_configuration = draft({}) | {"codecs": [{"name": "sharding_indexed"}]}
    return [
        bad("draft: no configuration", {"zarr.json": no_configuration}, "codecs[0].configuration: missing"),
        one("configuration is a list", [2, 2], "configuration: expected an object"),
        one("no chunk_shape", {"codecs": [ENDIAN]}, "chunk_shape: missing"),
        one("chunk_shape is a number", {"chunk_shape": 2}, "chunk_shape: expected a list of integers"),
        one("chunk_shape of the wrong rank", {"chunk_shape": [2]}, "chunk_shape: 1 element for 2 dimensions"),
        one("chunk_shape with zero", {"chunk_shape": [2, 0]}, "chunk_shape: expected 1 or more"),
        one("chunk_shape with a negative number", {"chunk_shape": [-2, 2]}, "chunk_shape: expected 1 or more"),
        one("chunk_shape with text", {"chunk_shape": ["2", "2"]}, "chunk_shape: expected an integer"),
        one("chunk_shape that does not divide the shard", {"chunk_shape": [3, 2]}, "chunk_shape: does not divide 4"),
        one("chunk_shape larger than the shard", {"chunk_shape": [8, 8]}, "chunk_shape: does not divide 4"),
        one("codecs is an object", {"chunk_shape": [2, 2], "codecs": ENDIAN}, "codecs: expected a list"),
        one("codecs is null", {"chunk_shape": [2, 2], "codecs": None}, "codecs: expected a list"),
        one("a codec is a number", chain(5), "codecs[0]: expected a name or an object"),
        one("unknown inner codec", chain(ENDIAN, {"name": "lz77"}), "codecs[1]: unknown codec lz77"),
        one("unknown byte order", chain({"name": "endian", "configuration": {"endian": "middle"}}), "endian: middle"),
        one("endian without configuration", chain({"name": "endian"}), "endian: missing for int32"),
        one("endian twice", chain(ENDIAN, ENDIAN), "codecs[1]: a second codec from array to bytes"),
        one("endian after gzip", chain(gzip, ENDIAN), "codecs[1]: endian after a codec of bytes"),
        one("transpose K", chain({"name": "transpose", "configuration": {"order": "K"}}), "order: K"),
        one("transpose FC", chain({"name": "transpose", "configuration": {"order": "FC"}}), "order: FC"),
        one(
            "transpose 0, 0", chain({"name": "transpose", "configuration": {"order": [0, 0]}}), "order: no permutation"
        ),
        one(
            "transpose of 3", chain({"name": "transpose", "configuration": {"order": [2, 1, 0]}}), "order: 3 axes for 2"
        ),
        one(
            "transpose after endian", chain(ENDIAN, {"name": "transpose", "configuration": {"order": "F"}}), "codecs[1]"
        ),
        one("gzip level 99", chain(ENDIAN, {"name": "gzip", "configuration": {"level": 99}}), "level: expected 0 to 9"),
        one("unknown member", {"chunk_shape": [2, 2], "order": "C"}, "order: unknown member"),
        one("index_codecs is null", {"chunk_shape": [2, 2], "index_codecs": None}, "index_codecs: expected a list"),
    ]
