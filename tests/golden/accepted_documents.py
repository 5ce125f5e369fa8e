"""Odd documents that must be read; see ``make_bad_documents_old.py``."""

from __future__ import annotations

import json
from typing import Any

from old_document_cases import ENDIAN, V1, V2, VLEN, Cases, Json, accepted, draft, text_of, v2, without


def oddities_of_v2() -> Cases:
    """Documents beside the text that zarr-python wrote, or that have one meaning alone."""
    good: Json = {"zarr_format": 2}

    def filled(about: str, meaning: str, fill: Any, **changes: Any) -> Json:
        return accepted(about, {".zarray": v2(**changes)}, meaning, shape=[4], fill=fill)

    def bare(dtype: str, text: str, fill: str) -> Json:
        document = text_of(v2(dtype=dtype), '"fill_value": 0', f'"fill_value": {text}')
        return accepted(f"{text} stands bare as fill value", {".zarray": document}, f"the number {text}", fill=fill)

    odd_attributes = '{"missing": NaN, "limits": [-Infinity, Infinity]}'
    meant = {"missing": "NaN", "limits": ["-Infinity", "Infinity"]}
    nested: Any = 1
    for _ in range(100):
        nested = [nested]
    both = {
        ".zarray": V2,
        "zarr.json": draft({"chunk_shape": [2, 2]}, codecs=[{"name": "bytes", "configuration": {"endian": "little"}}]),
    }
    consolidated = {
        "zarr_consolidated_format": 1,
        "metadata": {".zgroup": good, ".zattrs": {"a": 1}, "x/y/.zarray": V2},
    }
    return [
        accepted(
            "NaN and Infinity stand bare in .zattrs",
            {".zarray": V2, ".zattrs": odd_attributes},
            "numbers",
            attributes=meant,
        ),
        accepted(
            "the same in a group", {".zgroup": good, ".zattrs": odd_attributes}, "numbers", "group", attributes=meant
        ),
        accepted(
            "NaN stands bare in .zmetadata",
            {
                ".zgroup": good,
                ".zmetadata": '{"zarr_consolidated_format": 1, "metadata": '
                '{".zgroup": {"zarr_format": 2}, ".zattrs": {"x": NaN}}}',
            },
            "a number",
            "consolidated",
            attributes={"x": "NaN"},
        ),
        accepted("no compressor member", {".zarray": without(V2, "compressor")}, "none", shape=[4], fill="00000000"),
        accepted("no filters member", {".zarray": without(V2, "filters")}, "none", shape=[4], fill="00000000"),
        accepted("a chunk length of 0", {".zarray": v2(chunks=[0])}, "1", shape=[4], fill="00000000"),
        accepted("a chunk length of false", {".zarray": v2(chunks=[False])}, "1", shape=[4], fill="00000000"),
        bare("<f8", "NaN", "000000000000f87f"),
        bare("<f4", "Infinity", "0000807f"),
        bare(">f2", "-Infinity", "00fc"),
        accepted(
            "further members", {".zarray": v2(comment="mine", _nczarr_array={})}, "ignored", shape=[4], fill="00000000"
        ),
        accepted("further members in .zgroup", {".zgroup": good | {"comment": "mine"}}, "ignored", "group", members={}),
        accepted("an empty list of filters", {".zarray": v2(filters=[])}, "no filters", shape=[4]),
        accepted(
            "dimension_separator null", {".zarray": v2(dimension_separator=None)}, "as if it were absent: .", shape=[4]
        ),
        accepted("an empty object as .zattrs", {".zarray": V2, ".zattrs": {}}, "no attributes", attributes={}),
        accepted("no .zattrs", {".zarray": V2}, "no attributes", attributes={}),
        accepted(
            "attributes 100 levels deep",
            {".zarray": V2, ".zattrs": {"a": nested}},
            "as they are",
            attributes={"a": nested},
        ),
        accepted(
            "a large number as attribute", {".zarray": V2, ".zattrs": {"a": 2**70}}, "exact", attributes={"a": 2**70}
        ),
        accepted(
            "a consolidated group of zarr-python 3",
            {
                ".zgroup": good,
                ".zmetadata": {
                    "zarr_consolidated_format": 1,
                    "metadata": {
                        ".zgroup": good,
                        "a/.zgroup": good
                        | {"consolidated_metadata": {"kind": "inline", "must_understand": False, "metadata": {}}},
                    },
                },
            },
            "the member consolidated_metadata is ignored",
            "consolidated",
            members={"a": "group"},
        ),
        accepted(
            "no zarr_consolidated_format, as kerchunk writes references as Parquet",
            {".zgroup": good, ".zmetadata": {"metadata": {".zgroup": good, "x/.zarray": V2}, "record_size": 10}},
            "the only one that there is, 1",
            "consolidated",
            members={"x": "array"},
        ),
        accepted(
            "the .zmetadata lacks a group in between",
            {".zgroup": good, ".zmetadata": consolidated},
            "the group x is there all the same, without attributes",
            "consolidated",
            attributes={"a": 1},
            members={"x": "group", "x/y": "array"},
        ),
        accepted("v2 and v3 documents in one place", both, "opens as v3, and says so", shape=[8, 8], zarr_format=3),
        accepted(
            "a chunk length of zero on an axis of length zero",
            {".zarray": v2(shape=[0], chunks=[0])},
            "as if it were 1",
            shape=[0],
        ),
        accepted(
            "the same in two dimensions", {".zarray": v2(shape=[3, 0], chunks=[3, 0])}, "as if it were 1", shape=[3, 0]
        ),
        accepted(
            "a chunk much longer than the array",
            {".zarray": v2(chunks=[2**62])},
            "one chunk, not stored",
            shape=[4],
            elements=["0"] * 4,
        ),
        accepted(
            "a huge shape",
            {".zarray": v2(shape=[2**40, 2**40], chunks=[1000, 1000])},
            "nothing stored",
            shape=[2**40, 2**40],
        ),
        accepted(
            "no dimensions", {".zarray": v2(shape=[], chunks=[], fill_value=5)}, "one element", shape=[], elements=["5"]
        ),
        filled("byte order of single bytes", "means nothing", "07", dtype="<u1", fill_value=7),
        filled("byte order of booleans", "means nothing", "01", dtype=">b1", fill_value=True),
        filled("byte order of bytes", "means nothing", "6162000000", dtype="<S5", fill_value="YWI="),
        filled("a time without a unit", "NumPy's generic unit", "0000000000000080", dtype="<M8", fill_value=-(2**63)),
        filled("NaT as text", "not a time", "0000000000000080", dtype="<M8[ns]", fill_value="NaT"),
        filled("an integer for a float", "5.0", "0000a040", dtype="<f4", fill_value=5),
        filled("a whole float for an integer", "5", "05000000", fill_value=5.0),
        filled("1 for a boolean", "true", "01", dtype="|b1", fill_value=1),
        filled("base64 of the empty text", "zeros", "00000000", dtype="|S4", fill_value=""),
        filled("base64 with the zeros at the end", "the same without", "61620000", dtype="|S4", fill_value="YWIAAA=="),
        filled(
            "text longer than the type",
            "cut to four characters",
            "61000000620000006300000064000000",
            dtype="<U4",
            fill_value="abcdef",
        ),
        filled("0 for vlen-utf8", "the empty text", "", **VLEN | {"fill_value": 0}),
        filled("null for vlen-utf8", "undefined: reads as the empty text", None, **VLEN | {"fill_value": None}),
        filled("null for numbers", "undefined: reads as zero", None, fill_value=None),
        accepted(
            "a compressor without options",
            {".zarray": v2(compressor={"id": "zlib"})},
            "the defaults of the codec",
            shape=[4],
        ),
        accepted(
            "blosc without blocksize",
            {".zarray": v2(compressor={"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1})},
            "blocksize 0, as in the example of the text",
            shape=[4],
        ),
        accepted(
            "blosc with automatic shuffle",
            {".zarray": v2(compressor={"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": -1, "blocksize": 0})},
            "bits for single bytes, bytes else",
            shape=[4],
        ),
        accepted(
            "padding of an aligned type",
            {".zarray": v2(dtype=[["n", "|u1"], ["", "|V7"], ["x", "<f8"]], fill_value=None)},
            "a field without name, for which NumPy makes up f1",
            shape=[4],
        ),
        accepted(
            "the shape of a sub-array as a number",
            {".zarray": v2(dtype=[["x", "<i4", 2]], fill_value=None)},
            "one dimension",
            shape=[4],
        ),
        accepted(
            "blanks and line ends", {".zarray": "\r\n\t " + json.dumps(V2, indent=8) + "\n\n"}, "as usual", shape=[4]
        ),
        accepted(
            "text beyond ASCII, not escaped",
            {".zarray": V2, ".zattrs": '{"Größe": "2 µm 🐟"}'},
            "UTF-8",
            attributes={"Größe": "2 µm 🐟"},
        ),
    ]


def oddities_of_v1() -> Cases:
    """The same for v1."""

    def one(about: str, files: Json, meaning: str, **expect: Any) -> Json:
        return accepted(f"v1: {about}", files, meaning, **expect)

    bare = text_of(V1 | {"dtype": "<f8"}, '"fill_value": 0', '"fill_value": NaN')
    null = V1 | {"compression": None, "compression_opts": None}
    none = V1 | {"compression": "none", "compression_opts": None}
    return [
        one("NaN stands bare as fill value", {"meta": bare, "attrs": {}}, "a number", fill="000000000000f87f"),
        one("no attrs", {"meta": V1}, "no attributes", attributes={}),
        one("NaN stands bare in attrs", {"meta": V1, "attrs": '{"x": NaN}'}, "a number", attributes={"x": "NaN"}),
        one(
            "compression null",
            {"meta": null, "attrs": {}, "0": {"$hex": "01000000" * 2}},
            "none",
            elements=["1", "1", "0", "0"],
        ),
        one(
            "compression none",
            {"meta": none, "attrs": {}, "0": {"$hex": "01000000" * 2}},
            "none",
            elements=["1", "1", "0", "0"],
        ),
        one("further members", {"meta": V1 | {"comment": "mine"}, "attrs": {}}, "ignored", shape=[4]),
        one("fill value null", {"meta": V1 | {"fill_value": None}, "attrs": {}}, "undefined: reads as zero", fill=None),
    ]


def oddities_of_the_draft() -> Cases:
    """The same for the sharding draft."""

    def one(about: str, configuration: Json, meaning: str) -> Json:
        return accepted(f"draft: {about}", {"zarr.json": draft(configuration)}, meaning, shape=[8, 8], fill="00000000")

    order_c = {"name": "transpose", "configuration": {"order": "C"}}
    return [
        one("codecs absent", {"chunk_shape": [2, 2]}, "little endian, C order"),
        one("codecs empty", {"chunk_shape": [2, 2], "codecs": []}, "little endian, C order"),
        one("transpose C alone", {"chunk_shape": [2, 2], "codecs": [order_c]}, "little endian, C order"),
        one("a codec as a bare name", {"chunk_shape": [2, 2], "codecs": [ENDIAN, "crc32c"]}, "without configuration"),
    ]
