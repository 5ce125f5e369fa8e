"""Write the golden files that no program writes: shards in unusual but legal layouts, and damaged ones.

``python tests/golden/make_hand_made.py`` uses nothing but the standard library, NumPy for the samples and
google_crc32c; it follows the text of the specification ("Binary shard format"). The same output on every run.
"""

from __future__ import annotations

import gzip
import json
import struct
from pathlib import Path
from typing import Any

import google_crc32c
import numpy as np
from golden_files import Manifest, fill_hex, sample

MANIFEST = Manifest("hand-made", "by hand", "1")
EMPTY = 2**64 - 1
Codec = dict[str, Any]
LITTLE: Codec = {"name": "bytes", "configuration": {"endian": "little"}}
CRC32C: Codec = {"name": "crc32c"}
GZIP: Codec = {"name": "gzip", "configuration": {"level": 1}}

SHAPE, SHARD, CHUNK = (7, 5), (4, 6), (2, 3)
"""Four inner chunks in each shard, shards in two rows; inner chunks (3, 0) and (3, 1) hold one row of the array, and
every second inner chunk of a row sticks out by one column."""
VALUES = sample("int32", SHAPE)
FILL = -7


def document(shape: tuple[int, ...], dtype: str, chunk: tuple[int, ...], codecs: list[Codec], fill: Any) -> Codec:
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


def sharding(inner: list[Codec], index: list[Codec], location: str) -> Codec:
    configuration = {"chunk_shape": list(CHUNK), "codecs": inner, "index_codecs": index, "index_location": location}
    return {"name": "sharding_indexed", "configuration": configuration}


def put(path: Path, value: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(value)


def checksum(value: bytes) -> bytes:
    return struct.pack("<I", google_crc32c.value(value))


def inner_bytes(row: int, column: int, fill: int = FILL) -> bytes:
    """Inner chunk (row, column) of the whole array, padded with ``fill`` beyond the array's edge, little endian."""
    whole = np.full(CHUNK, fill, "<i4")
    part = VALUES[row * 2 : row * 2 + 2, column * 3 : column * 3 + 3]
    whole[: part.shape[0], : part.shape[1]] = part
    return whole.tobytes()


def index_bytes(entries: list[tuple[int, int]], *, check: bool = True) -> bytes:
    plain = struct.pack("<8Q", *(number for entry in entries for number in entry))
    return plain + checksum(plain) if check else plain


INDEX_SIZE = 4 * 16 + 4


class Shard:
    """A shard being laid out by hand: chunks go where they are told to, the index says so."""

    def __init__(self, row: int, *, chunk_crc: bool = False, gzipped: bool = False, location: str = "end") -> None:
        self.row, self.chunk_crc, self.gzipped, self.location = row, chunk_crc, gzipped, location
        self.body = bytearray(INDEX_SIZE if location == "start" else 0)
        self.entries = [(EMPTY, EMPTY)] * 4

    def chunk(self, number: int, *, fill: int = FILL) -> bytes:
        value = inner_bytes(self.row * 2 + number // 2, number % 2, fill)
        if self.gzipped:
            value = gzip.compress(value, 1, mtime=0)
        return value + checksum(value) if self.chunk_crc else value

    def gap(self, length: int, value: int = 0xA5) -> Shard:
        self.body += bytes([value]) * length
        return self

    def add(self, *numbers: int, fill: int = FILL) -> Shard:
        for number in numbers:
            value = self.chunk(number, fill=fill)
            self.entries[number] = (len(self.body), len(value))
            self.body += value
        return self

    def encoded(self) -> bytes:
        if self.location == "start":
            return index_bytes(self.entries) + bytes(self.body[INDEX_SIZE:])
        return bytes(self.body) + index_bytes(self.entries)


def case(
    name: str,
    shards: list[bytes],
    *,
    inner: list[Codec] | None = None,
    index: list[Codec] | None = None,
    location: str = "end",
    expected: np.ndarray[Any, Any] | None = None,
    notes: str = "",
    damage: dict[str, Any] | None = None,
) -> None:
    codec = sharding(inner or [LITTLE], index or [LITTLE, CRC32C], location)
    path = MANIFEST.path(name)
    put(path / "zarr.json", json.dumps(document(SHAPE, "int32", SHARD, [codec], FILL), indent=1).encode())
    for row, value in enumerate(shards):
        put(path / f"c/{row}/0", value)
    right = VALUES if expected is None else expected
    MANIFEST.array(name, right, "int32", fill=fill_hex(FILL, "int32"), notes=notes, damage=damage)


def with_fill(*chunks: tuple[int, int]) -> np.ndarray[Any, Any]:
    """The values, with these inner chunks replaced by the fill value."""
    values = VALUES.copy()
    for row, column in chunks:
        values[row * 2 : row * 2 + 2, column * 3 : column * 3 + 3] = FILL
    return values


def layouts() -> None:
    """Legal shards."""
    plain = [Shard(row).add(0, 1, 2, 3).encoded() for row in (0, 1)]
    case("layout/plain", plain, notes="what the others are variations of")

    both = [Shard(row).gap(3).add(0).gap(17).add(1).gap(1).add(2, 3).gap(40).encoded() for row in (0, 1)]
    case("layout/gaps", both, notes="unused bytes before, between and after the chunks")
    case("layout/unused-start", [Shard(row).gap(4096).add(0, 1, 2, 3).encoded() for row in (0, 1)])
    case("layout/out-of-order", [Shard(0).add(3, 0, 2, 1).encoded(), Shard(1).add(2, 3, 1, 0).encoded()])
    case(
        "layout/old-index-inside",
        [_appended(Shard(0)).encoded(), plain[1]],
        notes="appended to twice: replaced chunks and old indexes are unused space",
    )
    case(
        "layout/index-at-start",
        [Shard(row, location="start").gap(5).add(1, 0).gap(9).add(3, 2).gap(6).encoded() for row in (0, 1)],
        location="start",
        notes="gaps, another order, and unused bytes at the end of the file",
    )

    shared = Shard(0).add(0, 1, 2)
    shared.entries[3] = shared.entries[0]
    values = VALUES.copy()
    values[2:4, 3:5] = values[0:2, 0:2]
    case("layout/shared-range", [shared.encoded(), plain[1]], expected=values, notes="two entries, one byte range")

    overlap = Shard(0).add(0, 1, 2)
    overlap.entries[3] = (12, 24)  # the second row of chunk 0, then the first row of chunk 1
    values = VALUES.copy()
    values[2, 3:5] = VALUES[1, 0:2]
    values[3, 3:5] = VALUES[0, 3:5]
    case("layout/overlapping-ranges", [overlap.encoded(), plain[1]], expected=values, notes="one range cuts two others")

    case(
        "layout/empty-entries",
        [Shard(0).add(1).encoded(), Shard(1).add(2, 0).encoded()],
        expected=with_fill((0, 0), (1, 0), (1, 1), (2, 1), (3, 1)),
    )
    case(
        "layout/all-entries-empty",
        [Shard(0).encoded(), Shard(1).gap(8).encoded()],
        expected=np.full_like(VALUES, FILL),
        notes="a stored shard without chunks",
    )
    case(
        "layout/garbage-beyond-edge",
        [Shard(row).add(0, 1, 2, 3, fill=0x5A5A5A5A).encoded() for row in (0, 1)],
        notes="the parts of inner chunks that lie beyond the array hold other values than the fill value",
    )
    case(
        "layout/index-without-checksum",
        [shard[:-4] for shard in plain],
        index=[LITTLE],
    )
    swapped = [shard[: -4 - 64] + np.frombuffer(shard[-68:-4], "<u8").astype(">u8").tobytes() for shard in plain]
    big = {"name": "bytes", "configuration": {"endian": "big"}}
    case("layout/index-big-endian", swapped, index=[big])
    case(
        "layout/index-checked-twice",
        [shard + checksum(shard[-68:]) for shard in plain],
        index=[LITTLE, CRC32C, CRC32C],
    )
    transposed = []
    for shard in plain:
        entries = np.frombuffer(shard[-68:-4], "<u8").reshape(2, 2, 2)
        turned = np.ascontiguousarray(entries.transpose(2, 1, 0)).tobytes()
        transposed.append(shard[:-68] + turned + checksum(turned))
    order: Codec = {"name": "transpose", "configuration": {"order": [2, 1, 0]}}
    case("layout/index-transposed", transposed, index=[order, LITTLE, CRC32C], notes="a fixed-size index codec")


def _appended(shard: Shard) -> Shard:
    """Written with wrong values first, then each chunk again behind the old index."""
    shard.gap(24).gap(24, 0).body += index_bytes([(0, 24), (24, 24), (EMPTY, EMPTY), (EMPTY, EMPTY)])
    shard.add(0, 2)
    shard.body += index_bytes(shard.entries)
    return shard.add(3, 1)


def damaged() -> None:
    """Shards that must give an error for what is damaged, and the right values for what is not."""
    good = Shard(1).add(0, 1, 2, 3).encoded()
    whole_shard = [[0, 0], [0, 1], [1, 0], [1, 1]]

    def entry(name: str, number: int, value: tuple[int, int], notes: str, location: str = "end") -> None:
        shards = []
        for row in (0, 1):
            shard = Shard(row, location=location).add(0, 1, 2, 3)
            if row == 0:
                shard.entries[number] = value
            shards.append(shard.encoded())
        damage = {"error": "ShardIndexError", "chunks": whole_shard}  # one wrong entry makes all others doubtful
        case(f"damaged/{name}", shards, location=location, damage=damage, notes=notes)

    for location in ("end", "start"):
        entry(f"past-the-end-{location}", 1, (2**40, 24), "the entry points behind the shard", location)
        entry(f"reaches-past-the-end-{location}", 3, (150, 24), "the entry begins inside, ends outside", location)
        entry(f"sum-overflows-{location}", 2, (2**64 - 8, 24), "offset + nbytes is 16 modulo 2^64", location)
        entry(f"only-offset-empty-{location}", 0, (EMPTY, 24), "offset is 2^64-1, nbytes is not", location)
        entry(f"only-nbytes-empty-{location}", 0, (72, EMPTY), "nbytes is 2^64-1, offset is not", location)
    entry("huge-nbytes", 1, (0, 2**62), "a length that must not be allocated")
    entry("overlaps-index-end", 3, (80, 24), "96 bytes of chunks: the range reaches into the index")
    entry("overlaps-index-start", 0, (60, 24), "the range begins in the index", "start")

    checksummed: list[Codec] = [LITTLE, CRC32C]
    first = Shard(0).add(0, 1, 2, 3).encoded()
    flipped = bytearray(first)
    flipped[-1] ^= 1
    case(
        "damaged/index-checksum",
        [bytes(flipped), good],
        damage={"error": "ChecksumError", "chunks": whole_shard},
        notes="one bit of the stored checksum",
    )
    flipped = bytearray(first)
    flipped[-68] ^= 4
    case(
        "damaged/index-bit",
        [bytes(flipped), good],
        damage={"error": "ChecksumError", "chunks": whole_shard},
        notes="one bit of an offset",
    )
    for label, length in {"truncated-index": 60, "one-byte": 1, "no-bytes": 0}.items():
        case(
            f"damaged/{label}",
            [first[-length:] if length else b"", good],
            damage={"error": "ShardIndexError", "chunks": whole_shard},
            notes=f"the shard is {length} bytes long, its index {INDEX_SIZE}",
        )
    case(
        "damaged/cut-at-the-end",
        [first[:-20], good],
        damage={"error": "ChecksumError", "chunks": whole_shard},
        notes="the last 20 bytes are missing, so that chunk bytes stand where the index should",
    )

    cut = Shard(0).add(0, 1, 2, 3)
    cut.entries[1] = (cut.entries[1][0], 20)
    case(
        "damaged/short-chunk",
        [cut.encoded(), good],
        damage={"error": "ChunkDecodeError", "chunks": [[0, 1]]},
        notes="20 bytes where 24 are needed",
    )
    long = Shard(0).add(0, 1, 2, 3)
    long.entries[1] = (long.entries[1][0], 28)
    case(
        "damaged/long-chunk",
        [long.encoded(), good],
        damage={"error": "ChunkDecodeError", "chunks": [[0, 1]]},
        notes="28 bytes where 24 are needed",
    )
    for label, keep in {"gzip-cut": 12, "gzip-header-only": 5, "gzip-nothing": 0}.items():
        packed = Shard(0, gzipped=True).add(0, 1, 2, 3)
        packed.entries[2] = (packed.entries[2][0], keep)
        case(
            f"damaged/{label}",
            [packed.encoded(), Shard(1, gzipped=True).add(0, 1, 2, 3).encoded()],
            inner=[LITTLE, GZIP],
            damage={"error": "ChunkDecodeError", "chunks": [[1, 0]]},
            notes=f"{keep} bytes of a gzip member",
        )
    bomb = Shard(0, gzipped=True).add(0, 1, 3)
    value = gzip.compress(bytes(30_000_000), 9, mtime=0)
    bomb.entries[2] = (len(bomb.body), len(value))
    bomb.body += value
    case(
        "damaged/gzip-bomb",
        [bomb.encoded(), Shard(1, gzipped=True).add(0, 1, 2, 3).encoded()],
        inner=[LITTLE, GZIP],
        damage={"error": "ChunkDecodeError", "chunks": [[1, 0]]},
        notes="30 MB where 24 bytes are expected",
    )
    for label, place in {"chunk-bit": 30, "chunk-checksum-bit": 28 + 26}.items():
        summed = Shard(0, chunk_crc=True).add(0, 1, 2, 3)
        summed.body[place] ^= 16
        case(
            f"damaged/{label}",
            [summed.encoded(), Shard(1, chunk_crc=True).add(0, 1, 2, 3).encoded()],
            inner=checksummed,
            damage={"error": "ChecksumError", "chunks": [[0, 1]]},
            notes="one bit of a checksummed inner chunk",
        )
    tiny = Shard(0, chunk_crc=True).add(0, 1, 2, 3)
    tiny.entries[3] = (tiny.entries[3][0], 3)
    case(
        "damaged/shorter-than-checksum",
        [tiny.encoded(), Shard(1, chunk_crc=True).add(0, 1, 2, 3).encoded()],
        inner=checksummed,
        damage={"error": "CorruptionError", "chunks": [[1, 1]]},
        notes="3 bytes cannot hold a checksum",
    )


def documents() -> None:
    """Fill values and raw types in every spelling that the core specification permits."""
    endian_free: Codec = {"name": "bytes"}

    def unwritten(name: str, dtype: str, fill: Any, bits: bytes, notes: str = "") -> None:
        path = MANIFEST.path(name)
        codec = endian_free if dtype in ("bool", "r8", "r24") else LITTLE
        put(path / "zarr.json", json.dumps(document((3, 2), dtype, (2, 2), [codec], fill), indent=1).encode())
        kind = np.dtype(f"V{int(dtype[1:]) // 8}" if dtype[0] == "r" else dtype)
        expected = np.frombuffer(bits * 6, kind).reshape(3, 2)
        MANIFEST.array(name, expected, dtype, fill=bits.hex(), notes=notes)

    quiet = struct.pack("<I", 0x7FC00001)
    unwritten("fill/float32-hex", "float32", "0x7fc00001", quiet, "a NaN with a payload")
    unwritten("fill/float32-hex-signalling", "float32", "0xff800001", struct.pack("<I", 0xFF800001))
    unwritten("fill/float64-hex", "float64", "0xfff8000000abcdef", struct.pack("<Q", 0xFFF8000000ABCDEF))
    unwritten("fill/float16-hex", "float16", "0x7e07", struct.pack("<H", 0x7E07))
    unwritten("fill/float32-nan", "float32", "NaN", struct.pack("<I", 0x7FC00000), "the NaN that the text means")
    unwritten("fill/float64-minus-infinity", "float64", "-Infinity", struct.pack("<d", -np.inf))
    unwritten("fill/float64-minus-zero", "float64", -0.0, struct.pack("<d", -0.0))
    unwritten("fill/float64-integer", "float64", 3, struct.pack("<d", 3))
    unwritten("fill/complex64", "complex64", ["NaN", "0x80000001"], struct.pack("<II", 0x7FC00000, 0x80000001))
    unwritten("fill/complex128", "complex128", [-0.0, "-Infinity"], struct.pack("<dd", -0.0, -np.inf))
    unwritten("fill/int64", "int64", -(2**63), struct.pack("<q", -(2**63)))
    unwritten("fill/int64-odd", "int64", 2**53 + 1, struct.pack("<q", 2**53 + 1), "not a double")
    unwritten("fill/uint64", "uint64", 2**64 - 1, struct.pack("<Q", 2**64 - 1))
    unwritten("fill/bool", "bool", True, b"\1")
    unwritten("fill/r8", "r8", [254], b"\xfe")
    unwritten("fill/r24", "r24", [1, 0, 255], b"\1\0\xff")

    path = MANIFEST.path("fill/r24-written")
    put(path / "zarr.json", json.dumps(document((3, 2), "r24", (2, 2), [endian_free], [0, 0, 9])).encode())
    put(path / "c/1/0", bytes(range(12)))
    expected = np.frombuffer(bytes([0, 0, 9] * 4) + bytes(range(6)), "V3").reshape(3, 2)
    MANIFEST.array("fill/r24-written", expected, "r24", fill="000009")

    path = MANIFEST.path("documents/short-names")
    text = document((3, 2), "uint8", (3, 2), ["bytes", "crc32c"], 0)  # type: ignore[list-item]
    text |= {"chunk_key_encoding": "default", "unknown": {"must_understand": False, "x": 1}, "storage_transformers": []}
    del text["attributes"]
    put(path / "zarr.json", json.dumps(text).encode())
    put(path / "c/0/0", bytes(range(6)) + checksum(bytes(range(6))))
    expected = np.arange(6, dtype="u1").reshape(3, 2)
    MANIFEST.array("documents/short-names", expected, "uint8", fill="00", notes="names instead of objects")

    path = MANIFEST.path("documents/bool-bytes")
    put(path / "zarr.json", json.dumps(document((3, 2), "bool", (3, 2), [endian_free], False)).encode())
    put(path / "c/0/0", bytes([0, 1, 0, 1, 1, 0]))
    expected = np.array([[0, 1], [0, 1], [1, 0]], bool)
    MANIFEST.array("documents/bool-bytes", expected, "bool", fill="00")

    path = MANIFEST.path("documents/rectilinear")
    text = document((7, 5), "uint8", (1, 1), [endian_free], 0)
    shapes: list[Any] = [[[3, 2], 4], 2]  # three, three, four (beyond the edge); twos
    text["chunk_grid"] = {"name": "rectilinear", "configuration": {"kind": "inline", "chunk_shapes": shapes}}
    put(path / "zarr.json", json.dumps(text).encode())
    expected = np.arange(35, dtype="u1").reshape(7, 5)
    for row, start, height in ((0, 0, 3), (1, 3, 3), (2, 6, 4)):
        for column in range(3):
            chunk = np.full((height, 2), 255, "u1")
            part = expected[start : start + height, column * 2 : column * 2 + 2]
            chunk[: part.shape[0], : part.shape[1]] = part
            put(path / f"c/{row}/{column}", chunk.tobytes())
    MANIFEST.array("documents/rectilinear", expected, "uint8", fill="00", notes="runs, and chunks beyond the edge")


def packbits() -> None:
    """The packbits codec, bit by bit as its specification says."""

    def write(
        name: str, values: np.ndarray[Any, Any], width: int, first: int, configuration: Codec, **more: Any
    ) -> None:
        """Store ``width`` bits from bit ``first`` of each element on; ``more`` goes to the manifest."""
        numbers = [int(number) >> first & (2**width - 1) for number in values.reshape(-1)]
        bits = [number >> place & 1 for number in numbers for place in range(width)]
        padding = -len(bits) % 8
        packed = np.packbits(np.array(bits + [0] * padding, "u1"), bitorder="little").tobytes()
        where = configuration.get("padding_encoding", "none")
        packed = {"none": packed, "first_byte": bytes([padding]) + packed, "last_byte": packed + bytes([padding])}[
            where
        ]
        dtype = more.pop("dtype", str(values.dtype))
        codec: Codec = {"name": "packbits", "configuration": configuration} if configuration else {"name": "packbits"}
        fill = False if dtype == "bool" else 0
        path = MANIFEST.path(name)
        put(path / "zarr.json", json.dumps(document(values.shape, dtype, values.shape, [codec], fill)).encode())
        put(path / "/".join(["c", *["0"] * values.ndim]), packed)
        MANIFEST.array(name, values, dtype, fill=fill_hex(0, values.dtype), **more)

    flags = sample("bool", (7, 5))
    write("packbits/bool", flags, 1, 0, {})
    for where in ("none", "first_byte", "last_byte"):
        write(f"packbits/bool-{where.replace('_', '-')}", flags, 1, 0, {"padding_encoding": where})
    small = (np.arange(35) % 8).astype("u1").reshape(7, 5)
    write("packbits/uint8-three-bits", small, 3, 0, {"last_bit": 2})
    write("packbits/uint8-middle", small * 4, 3, 2, {"first_bit": 2, "last_bit": 4, "padding_encoding": "last_byte"})
    signed = (np.arange(35) % 16 - 8).astype("i2").reshape(7, 5)
    write("packbits/int16-sign-extended", signed, 4, 0, {"first_bit": 0, "last_bit": 3})
    write("packbits/uint32-all-bits", sample("uint32", (7, 5)), 32, 0, {})
    write(
        "packbits/uint4", (np.arange(35) % 16).astype("u1").reshape(7, 5), 4, 0, {}, dtype="uint4", needs=["ml_dtypes"]
    )


def of_zarrs() -> None:
    """Codecs that the program zarrs has of its own, from the description of their bytes in its source."""

    def write(name: str, values: np.ndarray[Any, Any], dtype: str, codecs: list[Codec], chunk: bytes) -> None:
        fill: Any = {"string": "", "bytes": []}.get(dtype, 0)
        path = MANIFEST.path(f"zarrs/{name}")
        put(path / "zarr.json", json.dumps(document(values.shape, dtype, values.shape, codecs, fill)).encode())
        put(path / "/".join(["c", *["0"] * values.ndim]), chunk)
        noted: Any = fill if dtype in ("string", "bytes") else fill_hex(0, dtype)
        MANIFEST.array(f"zarrs/{name}", values, dtype, fill=noted, notes="a codec of zarrs")

    def in_turn(elements: list[bytes]) -> bytes:
        """A count, then the length and the bytes of each element."""
        return b"".join(struct.pack("<I", len(each)) + each for each in elements)

    squeezed = sample("int16", (1, 3, 1, 4))
    write("squeeze", squeezed, "int16", [{"name": "zarrs.squeeze"}, LITTLE], squeezed.astype("<i2").tobytes())
    write("squeeze-one", np.full((1, 1), 5, "i2"), "int16", [{"name": "zarrs.squeeze"}, LITTLE], struct.pack("<h", 5))
    for dtype in ("string", "bytes"):
        values = sample(dtype, (3, 4))
        elements = [each.encode() if isinstance(each, str) else each for each in values.reshape(-1)]
        counted = struct.pack("<I", len(elements)) + in_turn(elements)
        for name in ("vlen-array", "zarrs.vlen_v2", "vlen-bytes", "vlen-utf8"):
            write(f"{name}-{dtype}", values, dtype, [{"name": name}], counted)
        ends = np.cumsum([0, *map(len, elements)])
        whole = b"".join(elements)
        for word, where in (("uint64", "start"), ("uint32", "end"), ("uint32", None)):
            order = "big" if where == "end" else "little"
            stored = ("<" if order == "little" else ">") + {"uint64": "u8", "uint32": "u4"}[word]
            index = ends.astype(stored).tobytes()
            index += checksum(index)
            data = gzip.compress(whole, 1, mtime=0) if where == "end" else whole
            size = struct.pack("<Q", len(index))
            configuration: Codec = {
                "index_codecs": [{"name": "bytes", "configuration": {"endian": order}}, CRC32C],
                "data_codecs": [{"name": "bytes"}, GZIP] if where == "end" else [{"name": "bytes"}],
                "index_data_type": word,
            }
            if where is not None:
                configuration["index_location"] = where
            chunk = data + index + size if where == "end" else size + index + data
            codec = {"name": "zarrs.vlen", "configuration": configuration}
            write(f"vlen-{dtype}-{word}-{where}", values, dtype, [codec], chunk)
    halves = sample("float16", (3, 4))
    write("packbits-float16", halves, "float16", [{"name": "packbits"}], halves.astype("<f2").tobytes())


def registry_samples() -> None:
    """Note the sample arrays of the bitround codec, copied from the registry of extensions; see their README.md."""
    registry = Manifest("registry", "zarr-extensions registry", "codecs/bitround/sample_data", keep=True)
    nan, infinity = np.nan, np.inf
    floats = np.array([0, 0.1015625, 1.25, 12, 120, 1280, nan, infinity, -infinity], "float32")
    integers = np.array([0, 1, 10, 12, 96, 128, 192, 192, 224, 224], "uint8")
    for values in (floats, integers):
        kind = str(values.dtype)
        registry.array(f"bitround_{kind}.zarr", values, kind, fill=fill_hex(0, kind), notes="licence: CC BY 3.0")
    registry.save()


if __name__ == "__main__":
    layouts()
    damaged()
    documents()
    packbits()
    of_zarrs()
    MANIFEST.save()
    registry_samples()
