"""The examples of the v2 text and documents that zarr-python does not write; run by ``make_hand_made_old.py``."""

from __future__ import annotations

import base64
import io
import itertools
import json
import math
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from golden_files_old import OldManifest, native, samples
from hand_made_bytes import CHUNKS, EXAMPLE_ATTRIBUTES, SHAPE, blosc, chunks_of, put

Json = dict[str, Any]
ZLIB: Json = {"id": "zlib", "level": 1}
BLOSC: Json = {"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1}
COMMENT = {"comment": "answer to life, the universe and everything"}


def document(dtype: Any, shape: tuple[int, ...], chunks: tuple[int, ...], **more: Any) -> Json:
    """A ``.zarray`` document; ``more`` replaces members."""
    return {
        "zarr_format": 2,
        "shape": list(shape),
        "chunks": list(chunks),
        "dtype": dtype,
        "compressor": None,
        "fill_value": None,
        "order": "C",
        "filters": None,
    } | more


def put_chunks(path: Path, values: np.ndarray[Any, Any], stored: Any, meta: Json) -> None:
    """Every chunk of an array, compressed as the document says (zlib, blosc or not at all)."""
    separator = meta.get("dimension_separator", ".")
    for place, chunk in chunks_of(values, tuple(meta["chunks"])):
        chunk = chunk.astype(stored, order=meta["order"])
        content = blosc(chunk) if meta["compressor"] == BLOSC else chunk.tobytes("A")
        if meta["compressor"] == ZLIB:
            content = zlib.compress(content, 1)
        put(path / (separator.join(map(str, place)) or "0"), content)


def example_values() -> np.ndarray[Any, Any]:
    values = np.full((20, 20), 3, "i4")
    values[:10, :10], values[:10, 10:] = 1, 2
    return values


def examples(manifest: OldManifest) -> None:
    """Every example of the v2 text."""
    meta = document("<i4", (20, 20), (10, 10), compressor=ZLIB, fill_value=42)
    fill, values = np.array(42, "i4"), example_values()
    put(manifest.path("v2/example-empty/.zarray"), meta)
    about = "as the text shows it before anything is written"
    manifest.array("v2/example-empty", "2", np.full((20, 20), 42, "i4"), "int32", fill, about=about)
    put(manifest.path("v2/example/.zarray"), meta)
    put(manifest.path("v2/example/.zattrs"), EXAMPLE_ATTRIBUTES)
    put_chunks(manifest.path("v2/example"), values, "<i4", meta)
    manifest.array("v2/example", "2", values, "int32", fill, attributes=EXAMPLE_ATTRIBUTES)
    large_example(manifest)
    hierarchy_example(manifest)
    for name, fields in {
        "colour": [["r", "|u1"], ["g", "|u1"], ["b", "|u1"]],
        "sub-array": [["x", "<f4"], ["y", "<f4"], ["z", "<f4", [2, 2]]],
        "nested": [["foo", "<f4"], ["bar", [["baz", "<f4"], ["qux", "<i4"]]]],
    }.items():
        write(manifest, f"example-{name}", document(fields, SHAPE, CHUNKS, compressor=ZLIB))
    for dtype in ("<f8", ">i4", "|b1", "|S12", "<M8[ns]"):
        name = f"example-type-{dtype[1:].replace('[', '-').replace(']', '')}"
        write(manifest, name, document(dtype, SHAPE, CHUNKS, compressor=ZLIB))
    for text in ("NaN", "Infinity", "-Infinity"):
        fill = np.array(float(text), "f8")
        unwritten(manifest, f"example-fill-{text}", document("<f8", (3, 2), (2, 2), fill_value=text), fill)
    content = b"twelve bytes"
    meta = document("|S12", (3, 2), (2, 2), fill_value=base64.b64encode(content).decode())
    unwritten(manifest, "example-fill-base64", meta, np.array(content, "S12"))


def numpy_type(dtype: Any) -> np.dtype[Any]:
    """The NumPy type for the ``dtype`` of a document."""
    if isinstance(dtype, str):
        return np.dtype(dtype)
    return np.dtype([(name, numpy_type(inner), *map(tuple, shape)) for name, inner, *shape in dtype])


def write(manifest: OldManifest, name: str, meta: Json, *, fill: Any = None, **more: Any) -> None:
    """Store sample values under a document, and note them."""
    stored = numpy_type(meta["dtype"])
    values = samples(stored, tuple(meta["shape"]))
    put(manifest.path(f"v2/{name}/.zarray"), meta)
    put_chunks(manifest.path(f"v2/{name}"), values, stored, meta)
    manifest.array(f"v2/{name}", "2", values, str(values.dtype), fill, **more)


def unwritten(manifest: OldManifest, name: str, meta: Json, fill: np.ndarray[Any, Any] | None, **more: Any) -> None:
    """Note a document without chunks: all elements are the fill value."""
    put(manifest.path(f"v2/{name}/.zarray"), meta)
    plain = native(numpy_type(meta["dtype"]))
    shape = tuple(meta["shape"])
    expected = np.full(shape, np.zeros((), plain) if fill is None else fill.astype(plain), plain)
    if fill is None:
        counts = [-(-length // size) for length, size in zip(shape, meta["chunks"], strict=True)]
        more["undefined_chunks"] = [list(place) for place in itertools.product(*map(range, counts))]
    manifest.array(f"v2/{name}", "2", expected, str(plain), fill if fill is None else fill.astype(plain), **more)


def large_example(manifest: OldManifest) -> None:
    """The 10000 x 10000 array of the v2 text with a delta filter; of its chunks, 2.4 alone is stored."""
    delta = {"id": "delta", "dtype": "<f8", "astype": "<f4"}
    large = {"compressor": BLOSC, "fill_value": "NaN", "filters": [delta]}
    put(manifest.path("v2/example-large/.zarray"), document("<f8", (10000, 10000), (1000, 1000), **large))
    steps = np.zeros(1_000_000, "<f4")
    steps[1] = 1  # the first element, then differences: 0, 1, 1, 1, ...
    put(manifest.path("v2/example-large/2.4"), blosc(steps))
    region = np.array([[math.nan] * 4, [math.nan, 0, 1, 1], [math.nan, 1, 1, 1]])
    more: Json = {"region": [[1999, 2002], [3999, 4003]], "about": "chunk 2.4 alone is stored"}
    manifest.array("v2/example-large", "2", region, "float64", np.array(math.nan), **more)


def hierarchy_example(manifest: OldManifest) -> None:
    """The group with an array below a sub-group, in a directory and in a zip file."""
    meta = document("<f8", (20, 20), (10, 10), compressor=BLOSC, fill_value=0.0)
    values = np.full((20, 20), 42.0)
    root = manifest.path("v2/example-group")
    put(root / ".zgroup", {"zarr_format": 2})
    put(root / "foo/.zgroup", {"zarr_format": 2})
    put(root / "foo/bar/.zarray", meta)
    put(root / "foo/bar/.zattrs", COMMENT)
    put_chunks(root / "foo/bar", values, "<f8", meta)
    manifest.array("v2/example-group/foo/bar", "2", values, "float64", np.array(0.0), attributes=COMMENT)
    members = {"foo": "group", "foo/bar": "array"}
    more: Json = {"member_attributes": {"foo/bar": COMMENT}, "consolidated": False}
    manifest.group("v2/example-group", "2", members, **more)
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_STORED) as archive:
        for file in sorted(file for file in root.rglob("*") if file.is_file()):
            entry = zipfile.ZipInfo(file.relative_to(root).as_posix(), (2024, 1, 1, 0, 0, 0))
            entry.create_system = 3
            archive.writestr(entry, file.read_bytes())
    put(manifest.path("v2/example-group.zip"), packed.getvalue())
    manifest.group("v2/example-group.zip", "2", members, store="zip", about="the same in a zip file", **more)


def documents(manifest: OldManifest) -> None:
    """Documents that are right, or were read by everyone, and that zarr-python does not write."""
    small: tuple[tuple[int, ...], tuple[int, ...]] = ((3, 2), (2, 2))

    def fill(name: str, dtype: str, value: Any, exact: Any, about: str = "") -> None:
        meta = document(dtype, *small, fill_value=value)
        unwritten(manifest, f"fill/{name}", meta, np.array(exact, dtype), about=about)

    fill("float-as-integer", "<f4", 5, 5)
    fill("float-minus-zero", "<f8", -0.0, -0.0)
    fill("integer-as-float", "<i4", 5.0, 5)
    fill("bool-as-number", "|b1", 1, True)
    fill("int64-not-a-double", "<i8", 2**53 + 1, 2**53 + 1)
    fill("uint64-big", ">u8", 2**64 - 1, 2**64 - 1)
    fill("float16-infinity-big", ">f2", "-Infinity", -math.inf)
    fill("complex-mixed", "<c16", [1.5, "NaN"], complex(1.5, math.nan))
    fill("complex-minus-infinity", ">c8", ["-Infinity", -0.0], complex(-math.inf, -0.0))
    fill("time-nat-as-text", "<M8[ns]", "NaT", "NaT", "zarr-python writes -9223372036854775808")
    fill("time-number", ">M8[D]", 18000, np.datetime64(18000, "D"))
    fill("bytes-empty", "|S4", "", b"")
    fill("bytes-padded", "|S4", base64.b64encode(b"ab\0\0").decode(), b"ab", "with the zeros that zarr-python drops")
    fill("raw", "|V4", base64.b64encode(b"\0\1\2\3").decode(), np.void(b"\0\1\2\3"))
    fill("text-big", ">U4", "Zü∅", "Zü∅")
    point = np.dtype([("x", "<i4"), ("y", ">f8")])
    value = np.array((-3, 1.5), point)
    meta = document([["x", "<i4"], ["y", ">f8"]], *small, fill_value=base64.b64encode(value.tobytes()).decode())
    about = "base64 of the bytes as they are stored, in the byte order of each field"
    unwritten(manifest, "fill/structure", meta, value, about=about)
    unwritten(manifest, "fill/null", document("<i4", *small), None)
    unusual(manifest)


def unusual(manifest: OldManifest) -> None:
    """Arrays with chunks under unusual documents."""
    path = manifest.path("v2/documents/one-line")
    values = samples(">i2", SHAPE)
    meta = document(">i2", SHAPE, CHUNKS, dimension_separator="/", fill_value=0)
    put(path / ".zarray", (json.dumps(meta, separators=(",", ":")) + "\n").encode())
    put_chunks(path, values, ">i2", meta)
    manifest.array("v2/documents/one-line", "2", values, "int16", np.array(0, "i2"))
    zero = np.array(0, "i4")
    extra = {"_nczarr_array": {"storage": "chunked"}, "comment": "ignored"}
    meta = document("<i4", SHAPE, CHUNKS, fill_value=0, **extra)
    write(manifest, "documents/other-members", meta, fill=zero, about="other members are to be ignored")
    meta = document("<i4", SHAPE, CHUNKS, fill_value=0, filters=[])
    write(manifest, "documents/no-filters-as-list", meta, fill=zero, about="an empty list of filters")
    meta = document(">m8", SHAPE, CHUNKS, compressor=ZLIB)
    about = "no unit, which the text asks for; NumPy's own conversions between byte orders of this type swap nothing"
    values = samples("i8", SHAPE)
    put(manifest.path("v2/documents/span-generic-big/.zarray"), meta)
    put_chunks(manifest.path("v2/documents/span-generic-big"), values, ">i8", meta)
    manifest.array("v2/documents/span-generic-big", "2", values.view("m8"), "timedelta64", None, about=about)
    path = manifest.path("v2/documents/beyond-the-edge")
    meta = document("<i4", SHAPE, CHUNKS, fill_value=-1)
    put(path / ".zarray", meta)
    for place, chunk in chunks_of(samples("<i4", SHAPE), CHUNKS, beyond=0x5A5A5A5A):
        put(path / ".".join(map(str, place)), chunk.astype("<i4").tobytes())
    about = "parts of chunks beyond the edge hold other values than the fill value"
    values = samples("<i4", SHAPE)
    manifest.array("v2/documents/beyond-the-edge", "2", values, "int32", np.array(-1, "i4"), about=about)
