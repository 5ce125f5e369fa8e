"""Arrays of Zarr v1 made by hand; run by ``make_hand_made_old.py``."""

from __future__ import annotations

import bz2
import itertools
import lzma
import zlib
from typing import Any

import numpy as np
from golden_files_old import OldManifest, native, samples
from hand_made_bytes import CHUNKS, EXAMPLE_ATTRIBUTES, SHAPE, blosc, chunk_box, chunks_of, put

Json = dict[str, Any]
BY_THE_TEXT = "F order as the text says; zarr-python 1.1 stores and reads such chunks in C order: others_read"
BARE = "the fill value stands bare in the document, which is no JSON"


def compress(chunk: np.ndarray[Any, Any], compression: str | None, options: Any) -> bytes:
    """The bytes of one chunk, in the order in which its elements lie in memory."""
    if compression == "blosc":
        return blosc(chunk, **options)
    plain = chunk.tobytes("A")
    if compression == "zlib":
        return zlib.compress(plain, options)
    if compression == "bz2":
        return bz2.compress(plain, options)
    if compression == "lzma":
        return lzma.compress(plain, **options)
    return plain


def write(
    manifest: OldManifest,
    name: str,
    dtype: Any,
    shape: tuple[int, ...] = SHAPE,
    chunks: tuple[int, ...] = CHUNKS,
    *,
    compression: str | None = "none",
    options: Any = None,
    order: str = "C",
    fill: Any = None,
    leave_out: tuple[tuple[int, ...], ...] = (),
    values: np.ndarray[Any, Any] | None = None,
    attributes: Json | None = None,
    **more: Any,
) -> None:
    """Store an array without the chunks ``leave_out``, and note it."""
    path, stored = manifest.path(f"v1/{name}"), np.dtype(dtype)
    document = {
        "zarr_format": 1,
        "shape": list(shape),
        "chunks": list(chunks),
        "dtype": stored.descr if stored.names else stored.str,
        "compression": compression,
        "compression_opts": options,
        "fill_value": fill,
        "order": order,
    }
    put(path / "meta", document)
    put(path / "attrs", attributes or {})
    values = samples(dtype, shape) if values is None else values
    noted = None if fill is None else np.array(fill, stored).astype(native(stored))
    expected, swapped = values.copy(), values.copy()
    for place, chunk in chunks_of(values, chunks):
        box = chunk_box(place, chunks)
        if place in leave_out:
            expected[box] = np.zeros((), values.dtype) if noted is None else noted
            continue
        put(path / ".".join(map(str, place)), compress(chunk.astype(stored, order=order), compression, options))
        as_c = chunk.reshape(-1, order="F").reshape(chunks)
        swapped[box] = as_c[tuple(slice(length) for length in values[box].shape)]
    undefined = [list(place) for place in leave_out] if fill is None else []
    more |= {"attributes": attributes, "undefined_chunks": undefined}
    if order == "F" and len(shape) > 1 and compression != "blosc":
        more |= {"disputed": BY_THE_TEXT, "others_read": swapped}
    manifest.array(f"v1/{name}", "1", expected, str(values.dtype), noted, **more)


def examples(manifest: OldManifest) -> None:
    """The examples of the v1 text."""
    values = np.full((20, 20), 3, "i4")
    values[:10, :10], values[:10, 10:] = 1, 2
    common: Json = {"values": values, "compression": "zlib", "options": 1, "fill": 42}
    write(manifest, "example", "<i4", (20, 20), (10, 10), attributes=EXAMPLE_ATTRIBUTES, **common)
    every = tuple(itertools.product((0, 1), (0, 1)))
    about = "as the text shows it before anything is written"
    write(manifest, "example-empty", "<i4", (20, 20), (10, 10), leave_out=every, about=about, **common)
    colour = [("r", "|u1"), ("g", "|u1"), ("b", "|u1")]
    write(manifest, "example-colour", np.dtype(colour), compression="zlib", options=1)
    for dtype in ("<f8", ">i4", "|b1", "|S12"):
        name = f"example-type-{dtype[1:]}"
        write(manifest, name, dtype, compression="zlib", options=1)
    large_example(manifest)


def large_example(manifest: OldManifest) -> None:
    """The 10000 x 10000 array of the v1 text with the chunk of which the text gives the key, 2.4."""
    path = manifest.path("v1/example-large")
    document = {
        "chunks": [1000, 1000],
        "compression": "blosc",
        "compression_opts": {"clevel": 5, "cname": "lz4", "shuffle": 1},
        "dtype": "<f8",
        "fill_value": None,
        "order": "C",
        "shape": [10000, 10000],
        "zarr_format": 1,
    }
    put(path / "meta", document)
    put(path / "attrs", {})
    put(path / "2.4", blosc(np.full((1000, 1000), 2.0)))
    more: Json = {"region": [[2998, 3000], [4000, 4003]], "about": "chunk 2.4 alone is stored"}
    manifest.array("v1/example-large", "1", np.full((2, 3), 2.0), "float64", None, **more)


def features(manifest: OldManifest) -> None:
    """Types, compressions, orders, fill values, missing chunks."""
    types(manifest)
    cases = compressions()
    for name, (compression, options) in cases.items():
        shape = (16, 10) if compression == "blosc" else SHAPE
        chunks = shape if compression == "blosc" else CHUNKS
        write(manifest, f"compressions/{name}", "<i4", shape, chunks, compression=compression, options=options)
    for name in ("none", "zlib-9", "bz2-9", "lzma", "blosc-lz4-1"):
        compression, options = cases[name]
        write(manifest, f"orders/{name}-F", "<i4", order="F", compression=compression, options=options)
    compression, options = cases["blosc-lz4-1"]
    common: Json = {"order": "F", "compression": compression, "options": options}
    write(manifest, "orders/3d-F", ">i2", (5, 4, 3), (2, 3, 3), **common)
    write(manifest, "orders/1d-F", "<i2", (7,), (3,), order="F", compression="zlib", options=1)
    write(manifest, "chunks/larger-than-array", "<i2", (3, 2), (10, 20))
    write(manifest, "chunks/many", "|u1", (13,), (1,))


def types(manifest: OldManifest) -> None:
    """Types in both byte orders, with a fill value and without, two chunks missing."""
    fills: list[tuple[Any, Any]] = [
        ("|b1", True),
        ("|i1", -128),
        ("<u2", 65535),
        (">u2", 7),
        ("<i8", -(2**63)),
        (">u8", 2**64 - 1),
        ("<f2", 0.5),
        (">f4", -0.0),
        ("<f8", float("nan")),
        (">f8", float("inf")),
        ("<U4", "Zü"),
        (">U4", None),
        ("|S5", None),
        ("|V3", None),
        ("<c8", None),
        (">c16", None),
        ("<M8[s]", 0),
        (">M8[10us]", None),
        ("<m8[D]", None),
        ([("x", "<i4"), ("y", ">f8"), ("name", "<U3")], None),
    ]
    for dtype, fill in fills:
        stored = np.dtype(dtype)
        name = "point" if stored.names else stored.str[1:].replace("[", "-").replace("]", "")
        name = name.replace("M8", "time").replace("m8", "span") + ("-big" if stored.str[0] == ">" else "")
        more: Json = {"compression": "bz2", "options": 1, "about": BARE if stored.kind == "f" and fill != fill else ""}
        write(manifest, f"types/{name}", stored, fill=fill, leave_out=((1, 0), (0, 1)), **more)


def compressions() -> dict[str, tuple[str | None, Any]]:
    """Every compression with its options, by name."""
    xz = {"format": lzma.FORMAT_XZ, "check": lzma.CHECK_NONE, "preset": 1, "filters": None}
    filters = [{"id": lzma.FILTER_DELTA, "dist": 4}, {"id": lzma.FILTER_LZMA2, "preset": 1}]
    raw = {"format": lzma.FORMAT_RAW, "check": lzma.CHECK_NONE, "preset": None, "filters": filters}
    cases: dict[str, tuple[str | None, Any]] = {
        "none": ("none", None),
        "null": (None, None),
        "zlib-0": ("zlib", 0),
        "zlib-9": ("zlib", 9),
        "bz2-9": ("bz2", 9),
        "lzma": ("lzma", xz),
        "lzma-crc64": ("lzma", xz | {"check": lzma.CHECK_CRC64}),
        "lzma-raw": ("lzma", raw),
    }
    for cname, shuffle in itertools.product(("blosclz", "lz4", "lz4hc", "zlib"), (0, 1, 2)):
        cases[f"blosc-{cname}-{shuffle}"] = ("blosc", {"cname": cname, "clevel": 5, "shuffle": shuffle})
    return cases
