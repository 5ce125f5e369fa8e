"""Arrays of the 2023 draft of the sharding codec made by hand; run by ``make_hand_made_old.py``.

A shard is the encoded inner chunks in any order, then one pair of little-endian unsigned 64-bit numbers (offset,
length) for each inner chunk in C order, 2^64-1 twice for one that is not there; no checksum, no ``index_codecs``.
"""

from __future__ import annotations

import itertools
import math
import struct
from typing import Any

import numpy as np
from golden_files_old import OldManifest, samples
from hand_made_bytes import blosc, chunk_box, chunks_of, gzip_member, put, zstd_frame

Json = dict[str, Any]
EMPTY = (2**64 - 1, 2**64 - 1)
SHAPE, SHARD, INNER = (7, 5), (4, 6), (2, 3)
"""Four inner chunks in each of two shards; some of them stick out of the array."""


def codec(name: str, **configuration: Any) -> Json:
    return {"name": name, "configuration": configuration} if configuration else {"name": name}


LITTLE, BIG = codec("endian", endian="little"), codec("endian", endian="big")
GZIP, ZSTD = codec("gzip", level=1), codec("zstd", level=3, checksum=False)
BLOSC = codec("blosc", cname="lz4", clevel=5, shuffle="shuffle", typesize=4, blocksize=0)


def encode(chunk: np.ndarray[Any, Any], codecs: list[Json]) -> bytes:
    """One inner chunk; without a codec that says how, elements lie in C order, little endian."""
    content: bytes | None = None
    for step in codecs:
        name, configuration = step["name"], step.get("configuration", {})
        if name == "transpose":
            order = {"C": None, "F": tuple(range(chunk.ndim))[::-1]}.get(str(configuration["order"]))
            listed = isinstance(configuration["order"], list)
            axes = tuple(configuration["order"]) if listed else order
            chunk = np.ascontiguousarray(chunk if axes is None else chunk.transpose(axes))
        elif name in ("endian", "bytes"):
            content = chunk.astype(chunk.dtype.newbyteorder("<>"[configuration["endian"] == "big"])).tobytes()
        else:
            plain = chunk.astype(chunk.dtype.newbyteorder("<")).tobytes() if content is None else content
            content = compress(plain, name, chunk.dtype)
    return chunk.astype(chunk.dtype.newbyteorder("<")).tobytes() if content is None else content


def compress(plain: bytes, name: str, dtype: np.dtype[Any]) -> bytes:
    if name == "gzip":
        return gzip_member(plain, 1)
    if name == "zstd":
        return zstd_frame(plain)
    return blosc(np.frombuffer(plain, dtype))


def index(entries: list[tuple[int, int]]) -> bytes:
    return b"".join(struct.pack("<QQ", *entry) for entry in entries)


def shard(chunks: list[bytes | None]) -> bytes:
    """Inner chunks one after the other and the index; ``None`` is an empty one."""
    body, entries = b"", []
    for content in chunks:
        entries.append(EMPTY if content is None else (len(body), len(content)))
        body += content or b""
    return body + index(entries)


def sharding(inner: tuple[int, ...], codecs: list[Json] | None) -> Json:
    """The codec as the draft configures it; without ``codecs`` if that is ``None``."""
    members: Json = {"chunk_shape": list(inner)}
    return codec("sharding_indexed", **members if codecs is None else members | {"codecs": codecs})


def document(shape: tuple[int, ...], dtype: str, chunk: tuple[int, ...], codecs: list[Json], fill: Any) -> Json:
    return {
        "zarr_format": 3,
        "node_type": "array",
        "shape": list(shape),
        "data_type": dtype,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": list(chunk)}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": fill,
        "codecs": codecs,
        "attributes": {},
    }


def exact_fill(fill: Any, dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """The fill value that a document means."""
    if isinstance(fill, list):
        fill = complex(float(fill[0]), float(fill[1]))
    return np.array(float(fill) if isinstance(fill, str) else fill).astype(dtype)


def write(
    manifest: OldManifest,
    name: str,
    codecs: list[Json] | None,
    dtype: str = "int32",
    shape: tuple[int, ...] = SHAPE,
    outer: tuple[int, ...] = SHARD,
    inner: tuple[int, ...] = INNER,
    *,
    fill: Any = 0,
    leave_out: tuple[tuple[int, ...], ...] = (),
    **more: Any,
) -> None:
    """Store a sharded array without the inner chunks (positions in the whole array) ``leave_out``, and note it.

    A shard without any inner chunk is not stored.
    """
    values = samples(dtype, shape)
    noted = exact_fill(fill, values.dtype)
    path = manifest.path(f"draft/{name}")
    put(path / "zarr.json", document(shape, dtype, outer, [sharding(inner, codecs)], fill))
    for place, whole in chunks_of(values, outer, beyond=noted):
        contents: list[bytes | None] = []
        for within, chunk in chunks_of(whole, inner):
            number = tuple(p * (o // i) + w for p, o, i, w in zip(place, outer, inner, within, strict=True))
            inside = all(n * i < length for n, i, length in zip(number, inner, shape, strict=True))
            contents.append(encode(chunk, codecs or []) if inside and number not in leave_out else None)
        if any(content is not None for content in contents):
            put(path / "/".join(["c", *map(str, place)]), shard(contents))
    for number in leave_out:
        values[chunk_box(number, inner)] = noted
    manifest.array(f"draft/{name}", "3-draft", values, dtype, noted, **more)


def features(manifest: OldManifest) -> None:
    """The example of the text; every spelling of the codecs; types; missing inner chunks."""
    example(manifest)
    transpose = {"C": "C", "F": "F", "10": [1, 0]}
    chains: dict[str, list[Json] | None] = {
        "absent": None,
        "empty": [],
        "endian-little": [LITTLE],
        "endian-big": [BIG],
        "bytes": [codec("bytes", endian="little")],
        "gzip": [LITTLE, GZIP],
        "zstd": [LITTLE, ZSTD],
        "blosc": [LITTLE, BLOSC],
        "big-gzip": [BIG, GZIP],
        "gzip-alone": [GZIP],
        "blosc-alone": [BLOSC],
        "gzip-twice": [LITTLE, GZIP, GZIP],
    }
    for label, order in transpose.items():
        chains[f"transpose-{label}"] = [codec("transpose", order=order), LITTLE]
        chains[f"transpose-{label}-alone"] = [codec("transpose", order=order)]
        chains[f"transpose-{label}-gzip"] = [codec("transpose", order=order), BIG, GZIP]
    for name, codecs in chains.items():
        write(manifest, f"codecs/{name}", codecs)
    for order in ("C", "F"):
        codecs = [codec("transpose", order=order), LITTLE]
        write(manifest, f"codecs/transpose-{order}-3d", codecs, "int16", (5, 4, 6), (4, 4, 6), (2, 4, 3))
    for dtype, fill in {
        "bool": True,
        "int8": -128,
        "uint8": 255,
        "uint16": 7,
        "int64": -(2**63),
        "uint64": 2**64 - 1,
        "float16": "Infinity",
        "float32": "-Infinity",
        "float64": "NaN",
        "complex64": [1.5, -2.0],
        "complex128": ["NaN", "Infinity"],
    }.items():
        for label, codecs in {"little": [LITTLE, GZIP], "big": [BIG], "absent": None}.items():
            write(manifest, f"types/{dtype}-{label}", codecs, dtype, fill=fill, leave_out=((1, 0), (0, 1)))
    some = ((0, 0), (1, 1), (2, 0))
    write(manifest, "missing/some-inner-chunks", None, fill=-7, leave_out=some)
    write(manifest, "missing/a-whole-shard", [LITTLE, GZIP], fill=-7, leave_out=((2, 0), (2, 1), (3, 0), (3, 1)))
    everything = tuple(itertools.product(range(4), range(2)))
    write(manifest, "missing/everything", None, fill=-7, leave_out=everything)
    write(manifest, "shapes/1d", None, "int16", (11,), (6,), (2,))
    write(manifest, "shapes/3d", [LITTLE, GZIP], "int16", (5, 4, 6), (4, 4, 4), (2, 2, 4))
    write(manifest, "shapes/one-inner-chunk", [], "int16", (5, 4), (3, 4), (3, 4))
    write(manifest, "shapes/scalar", None, "float64", (), (), (), fill=2.5)


def example(manifest: OldManifest) -> None:
    """The configuration in the text: inner chunks of 32 x 32 in shards of 64 x 64, compressed with gzip alone."""
    shape, outer, inner = (128, 64), (64, 64), (32, 32)
    values = np.repeat(np.arange(8, dtype="u2"), 16)[:, None] + np.zeros((1, 64), "u2")
    values[:32, 32:] = 9
    values[64:96, :32] = 9
    path = manifest.path("draft/example")
    put(path / "zarr.json", document(shape, "uint16", outer, [sharding(inner, [GZIP])], 9))
    for place, whole in chunks_of(values, outer):
        contents = [None if (chunk == 9).all() else encode(chunk, [GZIP]) for _, chunk in chunks_of(whole, inner)]
        put(path / f"c/{place[0]}/{place[1]}", shard(contents))
    about = "the codecs have no endian codec; two inner chunks are empty"
    manifest.array("draft/example", "3-draft", values, "uint16", np.array(9, "u2"), about=about)


def layouts(manifest: OldManifest) -> None:
    """Shards in every layout that the text permits, and sharding among other codecs."""
    values, fill = samples("int32", SHAPE), np.array(-7, "i4")
    pieces = [[encode(chunk, []) for _, chunk in chunks_of(whole, INNER)] for _, whole in chunks_of(values, SHARD)]

    def arranged(number: int, order: tuple[int, ...], gap: bytes = b"", front: bytes = b"") -> bytes:
        body, entries = front, [EMPTY] * 4
        for position in order:
            body += gap
            entries[position] = (len(body), len(pieces[number][position]))
            body += pieces[number][position]
        return body + gap + index(entries)

    def case(name: str, shards: list[bytes], about: str = "", codecs: list[Json] | None = None) -> None:
        path = manifest.path(f"draft/layout/{name}")
        chain = [sharding(INNER, None)] if codecs is None else codecs
        put(path / "zarr.json", document(SHAPE, "int32", SHARD, chain, -7))
        for row, content in enumerate(shards):
            put(path / f"c/{row}/0", content)
        manifest.array(f"draft/layout/{name}", "3-draft", values, "int32", fill, about=about)

    plain = [arranged(0, (0, 1, 2, 3)), arranged(1, (0, 1, 2, 3))]
    case("row-major", plain)
    case("reversed", [arranged(0, (3, 2, 1, 0)), arranged(1, (3, 1, 2, 0))])
    case("gaps", [arranged(0, (0, 1, 2, 3), b"\xa5" * 5), arranged(1, (2, 0, 3, 1), b"\xff" * 16)])
    old = arranged(0, (1, 0))
    case("append-only", [arranged(0, (0, 1, 2, 3), front=old), plain[1]], "an old index stands before the chunks")
    case("other-file-format", [arranged(0, (0, 1, 2, 3), front=b"\x89HDF\r\n\x1a\n" + bytes(40)), plain[1]])
    outside = "a codec outside: the shard as a whole is compressed"
    case("gzip-outside", [gzip_member(content, 1) for content in plain], outside, [sharding(INNER, None), GZIP])
    for label, order in {"F": "F", "10": [1, 0]}.items():
        transposed(manifest, f"transpose-{label}-outside", order)
    nested(manifest)
    chain = [codec("transpose", order="F"), BIG, GZIP]
    whole = [encode(chunk, chain) for _, chunk in chunks_of(values, SHARD)]
    case("old-names-without-sharding", whole, "old names of codecs, no shards", chain)


def transposed(manifest: OldManifest, name: str, order: Any) -> None:
    """A transpose codec before sharding: the inner chunks are those of the transposed shard."""
    path, outer, inner, values = manifest.path(f"draft/layout/{name}"), (6, 6), (3, 2), samples("int32", SHAPE)
    codecs = [codec("transpose", order=order), sharding(inner, [LITTLE])]
    put(path / "zarr.json", document(SHAPE, "int32", outer, codecs, -7))
    for place, chunk in chunks_of(values, outer, beyond=-7):
        contents = [encode(part, [LITTLE]) for _, part in chunks_of(np.ascontiguousarray(chunk.T), inner)]
        put(path / f"c/{place[0]}/{place[1]}", shard(contents))
    about = "the shape of an inner chunk is that of the transposed shard"
    manifest.array(f"draft/layout/{name}", "3-draft", values, "int32", np.array(-7, "i4"), about=about)


def nested(manifest: OldManifest) -> None:
    """Shards within shards, both in the form of the draft; one inner shard and one innermost chunk are empty."""
    shape, outer, middle, inner = (13, 11), (12, 12), (4, 6), (2, 3)
    values = samples("int32", shape)
    values[4:8, 0:6] = 5
    values[0:2, 3:6] = 5
    path = manifest.path("draft/layout/nested")
    codecs = [sharding(middle, [sharding(inner, [LITTLE, GZIP])])]
    put(path / "zarr.json", document(shape, "int32", outer, codecs, 5))
    for place, whole in chunks_of(values, outer, beyond=5):
        contents: list[bytes | None] = []
        for _, part in chunks_of(whole, middle):
            chunks = [None if (c == 5).all() else encode(c, [LITTLE, GZIP]) for _, c in chunks_of(part, inner)]
            contents.append(None if chunks == [None] * math.prod((2, 2)) else shard(chunks))
        put(path / f"c/{place[0]}/{place[1]}", shard(contents))
    manifest.array("draft/layout/nested", "3-draft", values, "int32", np.array(5, "i4"))
