"""Damage to encoded chunks, made so that much of it gets past the checks of sizes and checksums."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence

import numpy as np
from cases import CRC, NUMBERS, Step, encode_bytes

WORDS = (
    *(0, 1, 2, 4, 15, 16, 17, 127, 128, 255, 256, 0x7FFF, 0xFFFF, 2**20, 2**24, 2**26, 2**28),
    *(2**31 - 1, 2**31, 2**32 - 1),
)


def damage(rng: np.random.Generator, steps: Sequence[Step], body: bytes, other: bytes) -> bytes:
    """``body``, a chunk without its checksums outside, with up to three kinds of damage."""
    data = bytearray(body)
    for _ in range(int(rng.integers(0, 4))):
        kind = int(rng.integers(9))
        # the first bytes hold headers and tables
        reach = len(data) if rng.random() < 0.5 else min(len(data), 48)
        at = int(rng.integers(reach)) if reach else 0
        if kind == 0 and data:
            data[at] ^= 1 << int(rng.integers(8))
        elif kind == 1 and data:
            data[at] = int(rng.integers(256))
        elif kind == 2:
            del data[at:]
        elif kind == 3:
            del data[at : at + int(rng.integers(1, 20))]
        elif kind == 4:
            data[at:at] = rng.bytes(int(rng.integers(1, 20)))
        elif kind == 5:
            data[at : at + 4] = struct.pack("<I", int(rng.choice(WORDS)))
        elif kind == 6:
            data[at:] = other[at:]
        elif kind == 7:
            data += data[at:] if rng.random() < 0.5 else other
        elif kind == 8 and len(data) >= 4:
            place = at // 4 * 4
            (word,) = struct.unpack_from("<I", data.ljust(place + 4, b"\0"), place)
            data[place : place + 4] = struct.pack("<I", (word + int(rng.integers(-3, 4))) % 2**32)
    names = [step[0] for step in steps]
    if "blosc" in names and len(data) >= 16 and rng.random() < 0.7:
        data[12:16] = struct.pack("<I", len(data))  # the size of the whole, which is checked first
    if "gzip" in names and len(data) > 18 and rng.random() < 0.7:
        return _with_trailer(bytes(data))
    return bytes(data)


def seal(rng: np.random.Generator, body: bytes, checksums: int) -> bytes:
    """Checksums around ``body``, mostly right."""
    data = encode_bytes([CRC] * checksums, body)
    if checksums and rng.random() < 0.05:
        data = data[:-1] + bytes([data[-1] ^ 1])
    return data


def places(rng: np.random.Generator, sizes: Sequence[int]) -> list[tuple[int, int]]:
    """Offset and length of pieces of these ``sizes`` that lie one after the other; at times a hostile index instead."""
    stops = np.cumsum([0, *sizes]).tolist()
    right = list(zip(stops[:-1], sizes, strict=True))
    if rng.random() < 0.85:
        return right
    total = stops[-1]
    numbers = (*NUMBERS, total - 1, total, total + 1, -1, *stops[:3], *sizes[:3])
    return [
        place if rng.random() < 0.5 else tuple(int(each) for each in rng.choice(np.array(numbers), 2))
        for place in right
    ]


def _with_trailer(data: bytes) -> bytes:
    """A gzip member whose deflate stream, as far as zlib understands it, has the right checksum and size."""
    stream = zlib.decompressobj(-15)
    try:
        content = stream.decompress(data[10:], 1 << 20)
    except zlib.error:
        return data
    if not stream.eof:
        return data
    end = len(data) - len(stream.unused_data)
    return data[:end] + struct.pack("<II", zlib.crc32(content), len(content))
