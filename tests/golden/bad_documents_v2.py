"""Documents of Zarr v2 arrays that must be refused; see ``make_bad_documents_old.py``."""

from __future__ import annotations

import base64
import json
from typing import Any

from old_document_cases import V2, VLEN, Cases, Json, bad, bad_array, text_of, v2, without


def members_of_v2() -> Cases:
    """Members of ``.zarray`` that are missing, of the wrong type or out of range."""
    cases = [
        bad(f"no {name}", {".zarray": without(V2, name)}, f"{name}: missing")
        for name in V2
        if name not in ("compressor", "filters")
    ]
    for value in ("2", 1.5, True, None, 0, 3):
        cases.append(bad_array(f"zarr_format {value!r}", "zarr_format: expected 2", zarr_format=value))
    wrong_shapes: list[tuple[Any, str]] = [
        (4, "expected a list of integers"),
        ([-1], "negative"),
        (["4"], "expected an integer"),
        ([4.5], "expected an integer"),
        ([True], "expected an integer"),
        ([[4]], "expected an integer"),
        (None, "expected a list of integers"),
        ([2**70], "too large"),
    ]
    for value, what in wrong_shapes:
        cases.append(bad_array(f"shape {value!r}", f"shape: {what}", shape=value))
    wrong_chunks: list[tuple[Any, str]] = [
        ([2, 2], "2 elements for 1 dimension"),
        ([], "0 elements for 1 dimension"),
        ([-2], "negative"),
        ([2.5], "expected an integer"),
        ([True], "expected an integer"),
        ("auto", "expected a list of integers"),
        (None, "expected a list of integers"),
        ([[2, 2]], "expected an integer"),
        ([2**70], "too large"),
    ]
    for value, what in wrong_chunks:
        cases.append(bad_array(f"chunks {value!r}", f"chunks: {what}", chunks=value))
    for value in ("K", "A", "c", "", None, 1):
        cases.append(bad_array(f"order {value!r}", 'order: expected "C" or "F"', order=value))
    for value in ("-", "", "//", 1, ["."]):
        reason = 'dimension_separator: expected "." or "/"'
        cases.append(bad_array(f"dimension_separator {value!r}", reason, dimension_separator=value))
    huge = {"shape": [2**40, 2**40], "chunks": [2**40, 2**40]}
    stored: Json = {"0.0": {"$hex": "00" * 16}}
    reason = "chunks: more bytes than fit into memory, or chunk 0.0: 16 bytes instead of 2^82"
    cases.append(bad_array("chunks whose size in bytes overflows", reason, "read", stored, **huge))
    return cases


def types_of_v2() -> Cases:
    """Bad data types."""
    wrong: list[tuple[Any, str]] = [
        ("i4", "byte order missing"),
        ("=i4", "no byte order"),
        ("|i4", "byte order missing"),
        ("<x4", "unknown type"),
        ("<i3", "unknown type"),
        ("<f3", "unknown type"),
        ("|b2", "unknown type"),
        ("int32", "unknown type"),
        ("", "unknown type"),
        ("<i4 ", "unknown type"),
        ("<i4,<f8", "unknown type"),
        ("|V", "no length"),
        ("|S", "no length"),
        ("<U", "no length"),
        ("|V0", "length 0"),
        ("|S0", "length 0"),
        ("<U0", "length 0"),
        ("|V99999999999", "too large"),
        ("<U4000000000", "too large"),
        ("<M8[parsec]", "unknown unit"),
        ("<M8[0s]", "multiple of a unit is 0"),
        ("<M4[s]", "unknown type"),
        (4, "expected a string or a list of fields"),
        (None, "expected a string or a list of fields"),
        ({"name": "<i4"}, "expected a string or a list of fields"),
        ([], "no fields"),
        (["x", "<i4"], "a field is no list"),
        ([["x"]], "field x has no type"),
        ([["x", "<i4", [2], 1]], "field x has 4 parts"),
        ([[1, "<i4"]], "a field name is no string"),
        ([["x", "<i4"], ["x", "<f8"]], "field x appears twice"),
        ([["x", "<i4", [2, -1]]], "field x: negative shape"),
        ([["x", "<i4", "2"]], "field x: shape is no list"),
        ([["x", "<i4", [2**40, 2**40]]], "field x: too large"),
        ([["x", "i4"]], "field x: byte order missing"),
        ([["x", [["y", "<q9"]]]], "field x.y: unknown type"),
        ([["x", "|O"]], "field x: objects inside of structures are not supported"),
    ]
    cases = [bad_array(f"dtype {value!r}", f"dtype: {what}", dtype=value, fill_value=None) for value, what in wrong]
    reason = "filters: objects need one that makes bytes of them, such as vlen-utf8"
    delta = [{"id": "delta", "dtype": "<i4"}]
    cases.append(bad_array("objects without filters", reason, dtype="|O", fill_value=None))
    cases.append(bad_array("objects with a filter for numbers", reason, dtype="|O", filters=delta, fill_value=None))
    cases.append(bad_array("objects with an empty list of filters", reason, dtype="|O", filters=[], fill_value=None))
    pickled = {"dtype": "|O", "filters": [{"id": "pickle", "protocol": 4}], "fill_value": None}
    content = base64.b16encode(b"\x80\x04N.").decode()
    reason = "filters: pickle can run any code, so reading it has to be permitted first"
    cases.append(bad_array("pickled objects without permission", reason, "read", {"0": {"$hex": content}}, **pickled))
    deep: Json = {
        "$nested": ['[["x", ', "]]"],
        "times": 5000,
        "middle": '"<i4"',
        "before": json.dumps(without(V2, "dtype"))[:-1] + ', "dtype": ',
        "after": "}",
    }
    cases.append(bad("5000 structures within each other", {".zarray": deep}, "dtype: nested too deeply"))
    return cases


def codecs_of_v2() -> Cases:
    """Bad compressors and filters."""
    compressors: list[tuple[Any, str]] = [
        ("zlib", "expected an object or null"),
        (["zlib"], "expected an object or null"),
        (True, "expected an object or null"),
        ({}, "id missing"),
        ({"level": 1}, "id missing"),
        ({"id": None}, "id is no string"),
        ({"id": 5}, "id is no string"),
        ({"id": "no-such-codec"}, "unknown codec no-such-codec"),
        ({"id": "zlib", "level": "high"}, "zlib: level is no integer"),
        ({"id": "zlib", "level": 1, "window": 15}, "zlib: unknown option window"),
        ({"id": "blosc", "cname": "lzma", "clevel": 5, "shuffle": 1}, "blosc: unknown cname lzma"),
        ({"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 7}, "blosc: shuffle out of range"),
        ({"id": "blosc", "cname": "lz4", "clevel": 11, "shuffle": 1}, "blosc: clevel out of range"),
    ]
    cases = [bad_array(f"compressor {json.dumps(c)}", f"compressor: {what}", compressor=c) for c, what in compressors]
    filters: list[tuple[Any, str]] = [
        ({"id": "delta", "dtype": "<i4"}, "expected a list or null"),
        ("delta", "expected a list or null"),
        (["delta"], "filters[0]: expected an object"),
        ([None], "filters[0]: expected an object"),
        ([{"dtype": "<i4"}], "filters[0]: id missing"),
        ([{"id": "no-such-filter"}], "filters[0]: unknown codec no-such-filter"),
        ([{"id": "shuffle", "elementsize": 4}, {"id": "delta"}], "filters[1]: delta: dtype missing"),
        ([{"id": "delta", "dtype": "<x9"}], "filters[0]: delta: dtype is unknown"),
    ]
    cases += [bad_array(f"filters {json.dumps(f)}", f"filters: {what}", filters=f) for f, what in filters]
    return cases


def fill_values_of_v2() -> Cases:
    """Fill values that the data type cannot have."""

    def text(content: bytes) -> str:
        return base64.b64encode(content).decode()

    pair = [["x", "<i4"], ["y", ">f8"]]
    wrong: list[tuple[Any, Any, str]] = [
        ("<i4", "abc", "no integer"),
        ("<i4", "NaN", "no integer"),
        ("<i4", 1.5, "no integer"),
        ("<i4", 2**31, "out of range"),
        ("|u1", -1, "out of range"),
        ("|u1", 256, "out of range"),
        ("<u8", 2**64, "out of range"),
        ("<i4", [1], "no integer"),
        ("<f8", "abc", "no number"),
        ("<f8", [1.0], "no number"),
        ("<f8", {}, "no number"),
        ("|b1", "true", "neither true nor false"),
        ("|b1", 2, "neither true nor false"),
        ("<c16", [1.0], "expected two numbers"),
        ("<c16", [1.0, 2.0, 3.0], "expected two numbers"),
        ("<c16", ["a", 0], "no number"),
        ("|S4", "!!!!", "no base64"),
        ("|S4", "YWI", "no base64: its length is no multiple of 4"),
        ("|S4", text(b"eight by"), "8 bytes, 4 at most"),
        ("|S4", [1], "expected base64 text"),
        ("|V4", text(b"abc"), "3 bytes instead of 4"),
        ("|V4", text(b"abcde"), "5 bytes instead of 4"),
        ("|V4", "zz", "no base64"),
        (pair, text(bytes(11)), "11 bytes instead of 12"),
        (pair, [1, 2.0], "expected base64 text"),
        (pair, {"x": 1, "y": 2.0}, "expected base64 text"),
        ("<U4", 5, "expected text"),
        ("<U4", ["a"], "expected text"),
        ("<M8[s]", "tomorrow", "no time"),
        ("<M8[s]", 1.5, "no time"),
        ("<M8[s]", 2**63, "out of range"),
        ("<m8[s]", [1], "no time span"),
    ]
    cases = []
    for dtype, value, what in wrong:
        about = f"fill_value {json.dumps(value)} of {json.dumps(dtype)}"
        cases.append(bad_array(about, f"fill_value: {what}", dtype=dtype, fill_value=value))
    cases.append(bad_array("fill_value 5 of vlen-utf8", "fill_value: expected text", **VLEN | {"fill_value": 5}))
    octets = {"dtype": "|O", "filters": [{"id": "vlen-bytes"}], "fill_value": "!!!"}
    cases.append(bad_array("fill_value !!! of vlen-bytes", "fill_value: no base64", **octets))
    return cases


def texts() -> Cases:
    """Files that hold no JSON document, or no good one."""
    good = json.dumps(V2)
    attributes: Json = {".zarray": V2}
    deep = {"$nested": ["[", "]"], "times": 100_000}
    return [
        bad("nothing at all", {}, "nothing there: looked for zarr.json, .zarray, .zgroup and meta"),
        bad("nothing at all", {}, "nothing there: looked for zarr.json, .zarray, .zgroup and meta", "group"),
        bad("chunks without a document", {"0.0": "x"}, "no document: looked for zarr.json, .zarray, .zgroup and meta"),
        bad("an empty .zarray", {".zarray": ""}, ".zarray: not JSON: empty"),
        bad("a list as .zarray", {".zarray": "[]"}, ".zarray: expected an object"),
        bad("text as .zarray", {".zarray": '"array"'}, ".zarray: expected an object"),
        bad("null as .zarray", {".zarray": "null"}, ".zarray: expected an object"),
        bad("a .zarray cut off", {".zarray": good[:-9]}, ".zarray: not JSON"),
        bad("something after the document", {".zarray": good + "}"}, ".zarray: not JSON: extra data"),
        bad("two documents in one file", {".zarray": good + good}, ".zarray: not JSON: extra data"),
        bad("single quotes", {".zarray": good.replace('"', "'")}, ".zarray: not JSON"),
        bad("a comma too many", {".zarray": good[:-1] + ",}"}, ".zarray: not JSON"),
        bad("invalid UTF-8", {".zarray": {"$hex": good.encode().hex() + "ff"}}, ".zarray: not UTF-8"),
        bad("UTF-16", {".zarray": {"$hex": good.encode("utf-16").hex()}}, ".zarray: not UTF-8"),
        bad("NUL bytes, as after a crash", {".zarray": {"$hex": "00" * 200}}, ".zarray: not JSON"),
        bad("100000 brackets", {".zarray": deep}, ".zarray: nested too deeply"),
        bad(
            "the member shape twice",
            {".zarray": text_of(V2, '"shape": [4]', '"shape": [4], "shape": [8]')},
            ".zarray: member shape appears twice",
        ),
        bad(
            "the option level twice",
            {".zarray": text_of(v2(compressor={"id": "zlib", "level": 1}), '"level": 1', '"level": 1, "level": 9')},
            ".zarray: compressor: member level appears twice",
        ),
        bad("NaN in shape", {".zarray": text_of(V2, '"shape": [4]', '"shape": [NaN]')}, "shape: expected an integer"),
        bad("1e999 in shape", {".zarray": text_of(V2, "[4]", "[1e999]")}, "shape: expected an integer"),
        bad("NaN as zarr_format", {".zarray": text_of(V2, '"zarr_format": 2', '"zarr_format": NaN')}, "zarr_format"),
        bad(
            "Infinity as fill value of an integer",
            {".zarray": text_of(V2, '"fill_value": 0', '"fill_value": Infinity')},
            "fill_value: no integer",
        ),
        bad("a leading zero", {".zarray": text_of(V2, "[4]", "[04]")}, ".zarray: not JSON"),
        bad("a list as .zattrs", attributes | {".zattrs": "[]"}, ".zattrs: expected an object"),
        bad("text as .zattrs", attributes | {".zattrs": '"x"'}, ".zattrs: expected an object"),
        bad("an empty .zattrs", attributes | {".zattrs": ""}, ".zattrs: not JSON: empty"),
        bad("a .zattrs cut off", attributes | {".zattrs": '{"a": 1'}, ".zattrs: not JSON"),
        bad("invalid UTF-8 in .zattrs", attributes | {".zattrs": {"$hex": "7b22fc223a317d"}}, ".zattrs: not UTF-8"),
        bad("an attribute twice", attributes | {".zattrs": '{"a": 1, "a": 2}'}, ".zattrs: member a appears twice"),
        bad(
            "100000 brackets in .zattrs",
            attributes | {".zattrs": deep | {"before": '{"a": ', "after": "}"}},
            ".zattrs: nested too deeply",
        ),
    ]
