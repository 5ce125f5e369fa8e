"""Stored things that claim to be enormous, and what reading or writing them has to give."""

from __future__ import annotations

import gzip
import json
import resource
import struct
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import zardine
from corrupt.specimens import CRC, GZIP, LITTLE, ZSTD, blosc, sharding
from zardine.errors import ZardineError

REFUSED = ("CorruptionError", "ChunkDecodeError", "ShardIndexError", "ChecksumError")


@dataclass(frozen=True)
class Claim:
    """A document, the bytes of the object ``c/0`` (where there is one), and what is done with them."""

    document: dict[str, Any]
    stored: bytes | None
    action: Callable[[Any], Any]
    outcomes: tuple[str, ...]
    """Names of errors, or ``"ok"``."""


def array(shape: int, chunk: int, codecs: list[Any], **more: Any) -> dict[str, Any]:
    return {
        "zarr_format": 3,
        "node_type": "array",
        "shape": [shape],
        "data_type": "uint8",
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [chunk]}},
        "chunk_key_encoding": {"name": "default"},
        "fill_value": 3,
        "codecs": codecs,
    } | more


def first(a: Any) -> Any:
    return a[0]


def every(a: Any) -> Any:
    return a[...]


def write_first(a: Any) -> None:
    a[0] = 1


def describe(a: Any) -> Any:
    return repr(a), str(a.info), a._repr_html_(), a.nchunks, a.nbytes, a.cdata_shape, a.nchunks_initialized


def count_stored(a: Any) -> Any:
    return a.nchunks_initialized


RAW = [LITTLE]
BLOSC = [LITTLE, blosc("lz4")]
ZSTD_CHAIN = [LITTLE, ZSTD]
GZIP_CHAIN = [LITTLE, GZIP]


def blosc_header(nbytes: int, blocksize: int, stored: int) -> bytes:
    return struct.pack("<BBBBIII", 2, 1, 0x21, 2, nbytes, blocksize, stored)


def zstd_header(nbytes: int) -> bytes:
    """A frame that says it holds ``nbytes``, with one block that repeats a byte."""
    return b"\x28\xb5\x2f\xfd" + bytes([0b11000000, 0x58]) + struct.pack("<Q", nbytes) + bytes([0x03, 0, 0, 7])


def zstd_blocks(count: int) -> bytes:
    """A frame without a size, of ``count`` blocks that each repeat one byte 128 KiB times."""
    block = (128 * 1024 << 3 | 2).to_bytes(3, "little") + b"\7"
    last = (128 * 1024 << 3 | 3).to_bytes(3, "little") + b"\7"
    return b"\x28\xb5\x2f\xfd" + bytes([0, 0x88]) + block * (count - 1) + last


BOMB = gzip.compress(bytes(100 * 2**20))
MANY = sharding((1,), RAW, "end")
NESTED = sharding((2**20,), [sharding((1,), RAW)], "end")


CASES: dict[str, Claim] = {
    # enormous shapes and chunks
    "shape-2^62-missing": Claim(array(2**62, 2**10, RAW), None, first, ("ok",)),
    "shape-2^62-described": Claim(array(2**62, 2**10, RAW), None, describe, ("ok",)),
    "shape-2^62-all": Claim(array(2**62, 2**10, RAW), None, every, ("ChunkTooLargeError",)),
    "chunk-2^60-missing": Claim(array(2**62, 2**60, RAW), None, first, ("ok",)),
    "chunk-2^60-short": Claim(array(2**62, 2**60, RAW), b"abc", first, REFUSED),
    "chunk-2^60-gzip": Claim(array(2**62, 2**60, GZIP_CHAIN), gzip.compress(b"abc"), first, REFUSED),
    "chunk-2^60-write": Claim(array(2**62, 2**60, RAW), None, write_first, ("EncodeError", "ChunkTooLargeError")),
    "chunk-2^62-sharded-write": Claim(
        array(2**62, 2**61, [sharding((2**60,), RAW)]),
        None,
        write_first,
        ("EncodeError", "ChunkTooLargeError"),
    ),
    # enormous numbers of inner chunks
    "inner-2^40-missing": Claim(array(2**40, 2**40, [MANY]), None, first, ("ok",)),
    "inner-2^40-short": Claim(array(2**40, 2**40, [MANY]), b"\0" * 100, first, REFUSED),
    "inner-2^40-count": Claim(array(2**40, 2**40, [MANY]), b"\0" * 100, count_stored, REFUSED),
    "inner-2^40-described": Claim(array(2**40, 2**40, [MANY]), None, describe, ("ok",)),
    "inner-2^40-write": Claim(array(2**40, 2**40, [MANY]), None, write_first, ("EncodeError", "ChunkTooLargeError")),
    "inner-2^40-write-over-short": Claim(array(2**40, 2**40, [MANY]), b"\0" * 100, write_first, REFUSED),
    "inner-2^62": Claim(array(2**62, 2**62, [MANY]), b"\0" * 100, first, ("MetadataError",)),
    "nested-2^40": Claim(array(2**40, 2**40, [NESTED]), b"\0" * 100, first, REFUSED),
    "nested-2^40-missing": Claim(array(2**40, 2**40, [NESTED]), None, first, ("ok",)),
    # entries of an index
    "entry-2^60": Claim(
        array(4, 4, [sharding((4,), RAW, "end", [LITTLE])]), struct.pack("<QQ", 0, 2**60), first, REFUSED
    ),
    "entry-all-at-one-place": Claim(
        array(2**16, 2**16, [sharding((16,), RAW, "end", [LITTLE])]),
        b"x" * 16 + struct.pack("<QQ", 0, 16) * 2**12,
        first,
        ("ok",),
    ),
    # headers of compressed data
    "blosc-2^31": Claim(array(8, 8, BLOSC), blosc_header(2**31 - 20, 2**20, 16), first, REFUSED),
    "blosc-2^31-in-2^40": Claim(array(2**40, 2**40, BLOSC), blosc_header(2**31 - 20, 2**20, 16), first, REFUSED),
    "blosc-block-2^31": Claim(array(8, 8, BLOSC), blosc_header(8, 2**31 - 20, 16), first, REFUSED),
    "blosc-claims-its-chunk": Claim(
        array(2**30, 2**30, BLOSC), blosc_header(2**30, 2**30, 20) + b"\0" * 4, first, REFUSED
    ),
    "blosc-many-blocks": Claim(array(2**30, 2**30, BLOSC), blosc_header(2**30, 1, 20) + b"\0" * 4, first, REFUSED),
    "zstd-2^60": Claim(array(8, 8, ZSTD_CHAIN), zstd_header(2**60), first, REFUSED),
    "zstd-2^60-in-2^60": Claim(array(2**60, 2**60, ZSTD_CHAIN), zstd_header(2**60), first, REFUSED),
    "zstd-claims-its-chunk": Claim(array(2**31, 2**31, ZSTD_CHAIN), zstd_header(2**31), first, REFUSED),
    "zstd-no-size": Claim(array(8, 8, ZSTD_CHAIN), zstd_blocks(4000), first, REFUSED),
    "gzip-bomb": Claim(array(8, 8, GZIP_CHAIN), BOMB, first, REFUSED),
    "gzip-bomb-in-a-shard": Claim(
        array(8, 8, [sharding((8,), GZIP_CHAIN, "end", [LITTLE])]),
        BOMB + struct.pack("<QQ", 0, len(BOMB)),
        first,
        REFUSED,
    ),
    "gzip-many-members": Claim(array(8, 8, GZIP_CHAIN), gzip.compress(b"") * 2000, first, REFUSED),
    "crc-of-nothing": Claim(array(2**60, 2**60, [LITTLE, CRC]), b"\0\0\0\0", first, REFUSED),
    # elements of varying length
    "strings-2^31": Claim(
        array(2**31, 2**31, [{"name": "vlen-utf8"}], data_type="string", fill_value=""),
        struct.pack("<II", 2**31, 2**31),
        first,
        REFUSED,
    ),
    "strings-one-of-2^32": Claim(
        array(1, 1, [{"name": "vlen-utf8"}], data_type="string", fill_value=""),
        struct.pack("<II", 1, 2**32 - 1),
        first,
        REFUSED,
    ),
    "strings-bomb": Claim(
        array(1, 1, [{"name": "vlen-utf8"}, GZIP], data_type="string", fill_value=""),
        gzip.compress(struct.pack("<II", 5, 1) + bytes(8 * 2**20)),
        first,
        REFUSED,
    ),
    # grids and data types
    "rectilinear-2^40": Claim(
        array(
            2**40,
            1,
            RAW,
            chunk_grid={"name": "rectilinear", "configuration": {"kind": "inline", "chunk_shapes": [[[1, 2**40]]]}},
        ),
        None,
        first,
        ("ok",),
    ),
    "raw-element-2^31": Claim(
        array(4, 4, RAW, data_type={"name": "raw_bytes", "configuration": {"length_bytes": 2**31}}, fill_value=""),
        None,
        first,
        ("MetadataError",),
    ),
    "text-element-2^27": Claim(
        array(
            4, 4, RAW, data_type={"name": "fixed_length_utf32", "configuration": {"length_bytes": 2**27}}, fill_value=""
        ),
        None,
        first,
        ("MetadataError", "ok"),
    ),
}


def outcome(claim: Claim) -> str:
    store = {"zarr.json": json.dumps(claim.document).encode()}
    if claim.stored is not None:
        store["c/0"] = claim.stored
    try:
        claim.action(zardine.open_array(zardine.storage.MemoryStore(store), mode="r+"))
    except ZardineError as error:
        return type(error).__name__
    except Exception as error:
        return f"{type(error).__name__}" if isinstance(error, MemoryError) else f"foreign: {error!r}"
    return "ok"


def main() -> None:
    """One line of JSON for each case: outcome, seconds of processor time, and the growth of resident memory."""
    plain = Claim(array(8, 8, [LITTLE, GZIP, ZSTD, CRC]), None, write_first, ("ok",))
    for codecs in (RAW, BLOSC, ZSTD_CHAIN, GZIP_CHAIN):  # imports what is imported late
        assert outcome(Claim(array(8, 8, codecs), None, write_first, ("ok",))) == "ok"
        outcome(Claim(array(8, 8, codecs), b"abc", first, REFUSED))
    outcome(plain)
    for name, claim in CASES.items():
        before = reset_peak()
        start = time.process_time()
        result = outcome(claim)
        seconds = time.process_time() - start
        megabytes = (peak() - before) / 2**10
        print(json.dumps({"case": name, "outcome": result, "seconds": seconds, "megabytes": megabytes}), flush=True)


def reset_peak() -> int:
    """Start to measure the peak of resident memory anew, where the system can; kilobytes resident now."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
    return peak()


def peak() -> int:
    """The most kilobytes that were resident at once."""
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))


if __name__ == "__main__":
    main()
